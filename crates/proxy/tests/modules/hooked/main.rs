//! Hooks on the phases of requests: the order in which they are called, and the tests of `wire`,
//! `collapse` and `modules/hits` again with a hook that waits at every phase.
//!
//! Every proxy that this program starts has the hook (see `support::running`). The tests in
//! `collapse/eligibility` are left out: they count on a request being judged before content that is
//! sent after it arrives, and here it waits in between.

#[path = "../../support/mod.rs"]
mod support;

#[path = "../../collapse/concurrent_misses.rs"]
mod concurrent_misses;
#[path = "../../collapse/disabled.rs"]
mod disabled;
#[path = "../../collapse/disconnect.rs"]
mod disconnect;
#[path = "../../wire/fields.rs"]
mod fields;
#[path = "../../wire/framing.rs"]
mod framing;
#[path = "../../collapse/hit_for_miss.rs"]
mod hit_for_miss;
#[path = "../hits.rs"]
mod hits;
#[path = "../../wire/host.rs"]
mod host;
#[path = "../../wire/interim.rs"]
mod interim;
#[path = "../../collapse/join.rs"]
mod join;
#[path = "../../wire/keep_alive.rs"]
mod keep_alive;
#[path = "../../collapse/leader_failure.rs"]
mod leader_failure;
#[path = "../../wire/methods.rs"]
mod methods;
#[path = "order.rs"]
mod order;
#[path = "../../wire/phases.rs"]
mod phases;
#[path = "../../collapse/purge.rs"]
mod purge;
#[path = "../../collapse/random_clients.rs"]
mod random_clients;
#[path = "../../collapse/responses.rs"]
mod responses;
#[path = "../../collapse/shutdown.rs"]
mod shutdown;
#[path = "../../collapse/stalled_client.rs"]
mod stalled_client;
#[path = "../../collapse/too_large.rs"]
mod too_large;
#[path = "../../collapse/truncation.rs"]
mod truncation;
#[path = "../../collapse/vary.rs"]
mod vary;

use responses::{FRESH, chunk, with_length};
