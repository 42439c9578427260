//! Networks of up to 1024 caches that share what they store, from a sample of their targets.
//!
//! The nodes step [`Members`](weir_policy::route::Members) as those of [`peers`](super::peers) do,
//! and hold targets of the sample alone. One reading of the trace serves
//! all sizes of the network, with the same requests; only these differ in what a node is.
//!
//! * **Sample**: the [`HOT_TARGETS`] most requested targets of the trace's beginning are simulated
//!   whole. Of the others one in `one_in` is, with all its requests, in caches that are smaller by
//!   as much ([`mrc`](crate::mrc) has the method); a hot response takes a part of its size there.
//! * **Error**: half of the 95 % interval, from the spread of ten groups of sampled targets
//!   (Student's t). The groups share the caches, so what the size of a sample does to eviction is
//!   not in it; a test compares a sample with all.
//! * **Busiest node**: drawn from the sample, so that it is not the luckiest estimate.
//! * **Time**: each node gets `rate_per_s` requests a second of its clients. A request is answered
//!   at once, so loads are those of one request, and no node is overloaded.
//!
//! What nodes tell each other beside responses is computed, not simulated ([`Messages`]).

mod busiest;
mod caches;
mod counts;
mod event;
mod flash_crowd;
mod messages;
mod network;
mod outcome;
mod run;
mod sample;
mod setting;
#[cfg(test)]
mod tests;

pub use counts::Estimated;
pub use flash_crowd::FlashCrowd;
pub use messages::Messages;
pub use outcome::ScaleOutcome;
pub use run::{Rows, ScaleError, simulate};
pub use sample::HOT_TARGETS;
pub use setting::{RATE_MAX_OF_SAMPLE, ScaleSetting, ScaleSettingError};
