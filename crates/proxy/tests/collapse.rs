//! One response for many: who waits for whom, who reads what arrives, and who goes alone (RFC 9111
//! §4, RFC 9211 §2.6).
//!
//! The next hop is played by hand, so that it holds its head, or its content, until all are known
//! to be where the test wants them.

mod support;

#[path = "collapse/concurrent_misses.rs"]
mod concurrent_misses;
#[path = "collapse/disabled.rs"]
mod disabled;
#[path = "collapse/disconnect.rs"]
mod disconnect;
#[path = "collapse/eligibility.rs"]
mod eligibility;
#[path = "collapse/hit_for_miss.rs"]
mod hit_for_miss;
#[path = "collapse/join.rs"]
mod join;
#[path = "collapse/leader_failure.rs"]
mod leader_failure;
#[path = "collapse/purge.rs"]
mod purge;
#[path = "collapse/random_clients.rs"]
mod random_clients;
#[path = "collapse/responses.rs"]
mod responses;
#[path = "collapse/shutdown.rs"]
mod shutdown;
#[path = "collapse/stalled_client.rs"]
mod stalled_client;
#[path = "collapse/too_large.rs"]
mod too_large;
#[path = "collapse/truncation.rs"]
mod truncation;
#[path = "collapse/vary.rs"]
mod vary;

use responses::{FRESH, chunk, with_length};
