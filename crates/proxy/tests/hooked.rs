//! Hooks on the phases of requests: the order in which they are called, and the tests of `wire` and
//! `sharing` again with a hook that waits at every phase.
//!
//! Every proxy that this program starts has the hook (see `support::running`). The tests in
//! `sharing/terms` are left out: they count on a request being judged before content that is sent
//! after it arrives, and here it waits in between.

mod support;

#[path = "hooked/order.rs"]
mod order;
#[path = "sharing/responses.rs"]
mod responses;

#[path = "sharing/alone.rs"]
mod alone;
#[path = "sharing/arriving.rs"]
mod arriving;
#[path = "sharing/crowd.rs"]
mod crowd;
#[path = "sharing/cut.rs"]
mod cut;
#[path = "sharing/failure.rs"]
mod failure;
#[path = "wire/fields.rs"]
mod fields;
#[path = "wire/framing.rs"]
mod framing;
#[path = "sharing/herd.rs"]
mod herd;
#[path = "wire/host.rs"]
mod host;
#[path = "wire/interim.rs"]
mod interim;
#[path = "wire/keep_alive.rs"]
mod keep_alive;
#[path = "sharing/leaving.rs"]
mod leaving;
#[path = "wire/methods.rs"]
mod methods;
#[path = "sharing/off.rs"]
mod off;
#[path = "sharing/passing.rs"]
mod passing;
#[path = "wire/phases.rs"]
mod phases;
#[path = "sharing/purge.rs"]
mod purge;
#[path = "sharing/shutdown.rs"]
mod shutdown;
#[path = "sharing/stopped.rs"]
mod stopped;
#[path = "sharing/vary.rs"]
mod vary;

use responses::{FRESH, chunk, with_length};
