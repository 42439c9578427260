//! Links to next hops: what is moved over each is counted, waits for its rate, and ends with its
//! quota, as `weir_policy::budget` decides.
//!
//! A connection that is used over a link asks before it reads, once there is something to read, and
//! reports what it has read or written. Stored responses use no connection, and wait for nothing.

mod meter;
mod save_signal;
mod usage;

pub use meter::{LinkCounts, LinkMeter, SpentLink};
pub use save_signal::SaveSignal;
pub(super) use usage::count_set_up;
pub(crate) use usage::{ConnectionLink, LinkReads, LinkUse};

use super::hop_key::{ByHop, HopKey};
use std::sync::Arc;

/// Which next hops are behind which link.
#[derive(Clone, Debug, Default)]
pub struct Links {
    named: ByHop<Arc<LinkMeter>>,
    others: Option<Arc<LinkMeter>>,
}

impl Links {
    /// Puts a next hop behind a link.
    pub fn put(&mut self, hop: HopKey, link: Arc<LinkMeter>) {
        self.named.insert(hop.by_http1(), link);
    }

    /// Puts all other next hops behind a link.
    pub fn put_others(&mut self, link: Arc<LinkMeter>) {
        self.others = Some(link);
    }

    /// The first window of a connection to a next hop: where its link has a quota it is not left to
    /// the kernel.
    pub(super) fn first_window(&self, hop: &HopKey, window: Option<u32>) -> Option<u32> {
        let has_quota = |link: &Arc<LinkMeter>| link.counts().1;
        window.or_else(|| {
            let bounded = self.of(hop).is_some_and(has_quota);
            bounded.then_some(usage::FIRST_WINDOW_BYTES)
        })
    }

    /// The link that a next hop is behind, if there is one.
    #[must_use]
    pub fn of(&self, hop: &HopKey) -> Option<&Arc<LinkMeter>> {
        // most often there is none
        if self.named.is_empty() {
            return self.others.as_ref();
        }
        let named = match hop.http2 {
            false => self.named.get(hop),
            true => self.named.get(&hop.clone().by_http1()),
        };
        named.or(self.others.as_ref())
    }
}
