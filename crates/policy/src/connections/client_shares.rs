//! How many of the connections to a next hop the requests of one client may use.
//!
//! A few clients that read slowly could use all connections to a next hop, as each request keeps
//! its connection until its response is read. So a client may have as many requests under way as
//! there are connections left for others, and no more: the dynamic threshold of A. Choudhury and
//! E. Hahne ("Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM
//! Transactions on Networking 6(2), 1998), with a factor of 1. One client alone gets half of them,
//! two get a third each, `n` get one of `n + 1` parts; what is left is for clients that come later.
//! Nothing has to be configured, and no client has to be interrupted.
//!
//! A client without a request under way is never held back here: it takes a connection or waits for
//! one as requests do ([`super::Hop::choose`]). Of the clients that are held back, the one with the
//! fewest requests under way goes first.
//!
//! The simulator has no shares: PROXIM's clients do not stop reading.

use crate::destination::ClientNetwork;
use alloc::collections::{BTreeMap, BTreeSet};

/// Next hops with fewer connections than this are not shared by client: half of a few would be less
/// than a page needs (browsers use 6 connections of HTTP/1.1).
pub const SHARED_FROM: usize = 16;

/// Clients that are known before those without a request are forgotten: no more than a node of the
/// tree has.
const KEPT_CLIENTS_MAX: usize = 8;

/// The requests under way to one next hop, by client, and those that are held back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientShares {
    /// Connections that there may be.
    max: usize,
    under_way: usize,
    /// Some of those without a request have an entry, too.
    clients: BTreeMap<ClientNetwork, Share>,
    /// Requests that are held back.
    waiting: usize,
    next: u64,
}

/// The requests of one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Share {
    under_way: usize,
    /// Those that are held back, the first one first.
    waiting: BTreeSet<u64>,
}

/// A request that is held back; its number is used once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HeldBackRequest(u64);

impl ClientShares {
    /// A request of `client` begins, where `max` connections may be open: it is under way now. One
    /// without a client has no share, and counts.
    ///
    /// # Errors
    ///
    /// It is held back: [`Self::release`] says when it is under way.
    pub fn begin(
        &mut self,
        client: Option<ClientNetwork>,
        max: usize,
    ) -> Result<(), HeldBackRequest> {
        if self.try_begin(client, max) {
            return Ok(());
        }
        let number = self.next;
        self.next += 1;
        if let Some(client) = client {
            let share = self.clients.entry(client).or_default();
            share.waiting.insert(number);
            self.waiting += 1;
        }
        Err(HeldBackRequest(number))
    }

    /// The same of a request that cannot wait: whether it is under way.
    pub fn try_begin(&mut self, client: Option<ClientNetwork>, max: usize) -> bool {
        self.max = max;
        let Some(client) = client else {
            self.under_way += 1;
            return true;
        };
        let share = self.clients.get(&client);
        let held = share.map_or(0, |share| share.under_way);
        let is_behind = share.is_some_and(|share| !share.waiting.is_empty());
        let may_begin = !is_behind && self.may_have_more(held);
        if may_begin {
            self.clients.entry(client).or_default().under_way += 1;
            self.under_way += 1;
        }
        may_begin
    }

    /// A request of `client` that was under way has ended. [`Self::release`] is to be called next.
    pub fn end(&mut self, client: Option<ClientNetwork>) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Some(client) = client
            && let Some(share) = self.clients.get_mut(&client)
        {
            share.under_way = share.under_way.saturating_sub(1);
            if share.under_way == 0 {
                self.forget(client);
            }
        }
    }

    /// A request of `client` that is held back waits no more.
    pub fn leave(&mut self, client: ClientNetwork, request: HeldBackRequest) {
        if let Some(share) = self.clients.get_mut(&client) {
            self.waiting -= usize::from(share.waiting.remove(&request.0));
            self.forget(client);
        }
    }

    /// A request that was held back and is under way now, with its client; to be called until there
    /// is none.
    pub fn release(&mut self) -> Option<(ClientNetwork, HeldBackRequest)> {
        // most often none waits
        if self.waiting == 0 {
            return None;
        }
        let waiting = self.clients.iter_mut().filter_map(|(client, share)| {
            let first = *share.waiting.first()?;
            Some((share.under_way, first, *client, share))
        });
        let (held, first, client, share) =
            waiting.min_by_key(|(held, first, ..)| (*held, *first))?;
        if !has_share_left(held, self.under_way, self.max) {
            return None;
        }
        share.waiting.remove(&first);
        share.under_way += 1;
        self.under_way += 1;
        self.waiting -= 1;
        Some((client, HeldBackRequest(first)))
    }

    /// Whether no request is under way or held back: it says nothing that the default does not.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.under_way == 0 && self.waiting == 0
    }

    fn may_have_more(&self, held: usize) -> bool {
        has_share_left(held, self.under_way, self.max)
    }

    /// Forgets a client without a request, where there are more than few: the only one at a time
    /// would be forgotten with each request.
    fn forget(&mut self, client: ClientNetwork) {
        if self.clients.len() <= KEPT_CLIENTS_MAX {
            return;
        }
        let is_idle = |share: &Share| share.under_way == 0 && share.waiting.is_empty();
        if self.clients.get(&client).is_some_and(is_idle) {
            self.clients.remove(&client);
        }
    }
}

/// The rule by itself: whether a client that holds `held` of something may have one more, where
/// `used` of `max` are used in all. Of fewer than [`SHARED_FROM`] there are no shares. A client
/// without any is never refused here: whether one is left at all is for the caller to look at.
#[must_use]
pub const fn has_share_left(held: usize, used: usize, max: usize) -> bool {
    held == 0 || max < SHARED_FROM || held < max.saturating_sub(used)
}

#[cfg(test)]
mod tests;
