//! How a run is conducted: a master, one or more origins, one or more hosts of clients. The master
//! waits until all participants have joined, sends them their tasks, starts them at one instant and
//! gathers their results. `weir bench run` is the same with all roles in one process, over
//! loopback: there is one way that a run goes, and every test of the short form is one of the long.
//!
//! Messages are lines of JSON over TCP, so that a run that hangs can be looked at with `tcpdump
//! -A`:
//!
//! ```text
//! participant                                       master
//!   hello   (role, name, version, host, wall clock) ->
//!                          <- serve (scenario, seed, form, shares)         to origins, as soon as all are there
//!   ready   (address of every server)              ->
//!                          <- ask (the same, share, proxy, servers)        to clients, who ask the proxy once: is there a way to the origin?
//!   ready                                          ->
//!                          <- ping ... pong, then go (in so many us)       to all
//!   second  (each thread, once a second)           ->
//!   served  (origins, once a second)               ->
//!   result                                         ->                      clients, when they are through
//!                          <- stop                                         to origins then; to all if the run is ended early
//!   counted                                        ->                      origins
//! ```
//!
//! Clocks need not agree for the start: `go` counts from its arrival, less half of the round trip.
//! They must agree to a second for the check of freshness, and a participant whose wall clock does
//! not is refused. A participant that disconnects, or sends nothing for [`SILENCE_MAX`], ends the
//! run: the counts of the others are kept, and the record names the lost one.
//!
//! Deliberately absent: authentication and encryption. Run it in a network where that is no matter.

mod client_role;
mod connections;
mod interrupt;
mod line;
mod local;
mod master;
mod message;
mod origin_role;
mod participant;
mod participant_pool;
mod plan;
mod probe;
mod run;
mod run_outcome;
mod shaping;

pub use interrupt::Interrupt;
pub use local::{LocalPlan, run};
pub use master::{ExpectedParticipants, Master};
pub use message::Role;
pub use participant::{ClientRole, JoinSettings, OriginRole};
pub use plan::{ERRORS_SHARE_MAX, RunPlan};
pub use probe::ask_all;
pub use run_outcome::{Participant, RunOutcome};
pub use shaping::Shaping;

use std::time::Duration;

/// How long the master waits for participants, and a participant for its master, by default.
pub const ARRIVAL_MAX: Duration = Duration::from_secs(60);

/// How long a participant may prepare itself: the generator of a large scenario runs up to its last
/// phase.
pub const PREPARATION_MAX: Duration = Duration::from_secs(300);

/// A participant that has said nothing for so long is lost; it speaks once a second.
pub const SILENCE_MAX: Duration = Duration::from_secs(20);

/// How long a participant that was stopped may take to say what it has counted.
pub const STOP_MAX: Duration = Duration::from_secs(30);

/// From `go` to the start, beside what participants say they take: long enough for the message to
/// arrive everywhere.
const START_DELAY: Duration = Duration::from_millis(250);

/// Wall clocks may be so far apart: what remains of the two seconds that the check of freshness
/// allows.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(1);
