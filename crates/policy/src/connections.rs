//! The connections to next hops, as a cache: a size, hits and misses, and a reason for each
//! connection that is opened or closed.
//!
//! PROXIM (INFOCOM 1999) found that caching connections gains more than caching data; its default
//! idle time-out towards servers is ours. Six decisions are made here:
//!
//! * *Which idle one is taken?* The newest ([`IdleConnections::check_out`]): it is the least likely
//!   to have been closed by its next hop, its congestion window is the least likely to have been
//!   forgotten (RFC 5681 §4.1), and those not needed at the present load grow old and leave, so
//!   that the set shrinks to the load by itself.
//! * *None is idle: open one, wait for a busy one, or both?* [`Hop::choose`], from measured set-up
//!   and exchange times.
//! * *How many may be open*, to one next hop and in all? The same, [`OpenRules`].
//! * *How many may the requests of one client use?* [`ClientShares`], to one next hop; to all of
//!   them [`has_share_left`], which is the same rule.
//! * *When is one closed?* Idle for too long, open for too long, or the oldest for room
//!   ([`CloseReason`]).
//! * *Is one opened before it is needed?* [`judge_preconnect`]; off by default.
//!
//! Connections of HTTP/2 carry many requests: [`MultiplexedHop`] has which one takes the next, and
//! when it is closed.
//!
//! Of clients' connections, [`hand_off`] decides which ones another machine goes on with,
//! [`HandshakePlaces`] whose TLS handshakes make room for others, and [`FrameBudget`] and
//! [`ClientResets`] which ones of HTTP/2 end as they bring about work without requests. [`renewal`]
//! decides when the certificates that clients are shown are ordered.
//!
//! This module has no sockets: the driver carries out the commands, and calls
//! [`IdleConnections::remove`] when a peer closes an idle one.

mod client_resets;
mod client_shares;
mod estimate;
mod frame_budget;
pub mod hand_off;
mod handshake_places;
mod hop;
mod multiplexed;
mod preconnect;
mod queue;
mod reasons;
pub mod renewal;
pub mod retry;
mod send_order;

pub use client_resets::{ClientResets, RESET_CLIENTS_MAX, UNPAID_RESETS_MAX};
pub use client_shares::{ClientShares, HeldBackRequest, SHARED_FROM, has_share_left};
pub use estimate::{Mean, WaitConfidence};
pub use frame_budget::{Flood, FrameBudget, FrameKind};
pub use handshake_places::{HandshakeId, HandshakeLimits, HandshakePlaces};
pub use hop::{Choice, ConnectionState, Demand, Hop, OpenRules, Room, WhenBusy};
pub use multiplexed::{MultiplexedHop, StreamChoice, StreamRules};
pub use preconnect::{NoPreconnect, PreconnectDemand, PreconnectRules, judge_preconnect};
pub use queue::IdleQueue;
pub use reasons::{OpenReason, WaitEnd, WaitReason};
pub use send_order::SendOrder;

use crate::now::{Now, Tick};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use weir_semantics::words;

/// A next hop as far as connections are alike: one address, one scheme, one set of TLS parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HopId(pub u32);

/// A connection; the driver's number for it, unique while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u32);

/// How many connections may be idle, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleLimits {
    /// Idle connections to one next hop; 0: none is kept.
    pub per_hop_max: usize,
    /// Idle connections in all; 0: none is kept.
    pub total_max: usize,
    /// A connection idle for so many milliseconds is not used again.
    pub idle_timeout_ms: u64,
    /// A connection that was opened so many milliseconds ago is not kept: without it a busy one
    /// would never notice that its next hop's name has another address now.
    pub lifetime_ms: u64,
}

impl Default for IdleLimits {
    /// 64 a hop, 1024 in all, 30 s, an hour.
    ///
    /// 30 s is PROXIM's proxy-server time-out; its traces never held more than 243 server
    /// connections at once for 18 000 modem users (table of connection cache sizes), so 1024 is
    /// room for several such proxies. An hour is nginx's `keepalive_time`.
    fn default() -> Self {
        Self {
            per_hop_max: 64,
            total_max: 1024,
            idle_timeout_ms: 30_000,
            lifetime_ms: 3_600_000,
        }
    }
}

words! {
    /// Why an idle connection is closed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum CloseReason {
        /// Its next hop has as many idle connections as one may have.
        PerHopMax = "per-hop-max",
        /// There are as many idle connections as there may be.
        TotalMax = "total-max",
        /// It was idle for too long.
        IdleTimeout = "idle-timeout",
        /// It was open for too long.
        Lifetime = "lifetime",
    }
}

/// What becomes of a connection that fell idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckIn {
    /// It is kept.
    Kept,
    /// It is kept; an older one is closed for it.
    KeptFor {
        /// The one to close.
        close: ConnectionId,
        /// Why.
        why: CloseReason,
    },
    /// It is closed itself: the limits allow none, or its time is over.
    NotKept {
        /// Why.
        why: CloseReason,
    },
}

/// What has happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounters {
    /// Check-outs that found a connection.
    pub hits: u64,
    /// Check-outs that found none: a connection had to be opened.
    pub misses: u64,
    /// Connections that were idle or open for too long.
    pub expiries: u64,
    /// Connections that had to leave for a limit before their time.
    pub evictions: u64,
}

/// The idle connections of one driver.
///
/// The ordinary ways, in and out by next hop, touch one [`IdleQueue`] and allocate nothing once it
/// has grown; the rare ones (a total limit reached, a sweep) look at every hop.
#[derive(Debug)]
pub struct IdleConnections {
    limits: IdleLimits,
    /// An empty queue stays until the next [`Self::expire`]: it is about to be filled again.
    hops: BTreeMap<HopId, IdleQueue>,
    len: usize,
    /// Connections that fell idle so far.
    next: u64,
    counters: ConnectionCounters,
}

impl IdleConnections {
    /// None yet.
    #[must_use]
    pub fn new(limits: IdleLimits) -> Self {
        Self {
            limits,
            hops: BTreeMap::new(),
            len: 0,
            next: 0,
            counters: ConnectionCounters::default(),
        }
    }

    /// `connection` to `hop`, open since `opened`, fell idle and can be used again. It is not idle
    /// already.
    pub fn check_in(
        &mut self,
        now: Now,
        hop: HopId,
        connection: ConnectionId,
        opened: Tick,
    ) -> CheckIn {
        for (max, why) in [
            (self.limits.per_hop_max, CloseReason::PerHopMax),
            (self.limits.total_max, CloseReason::TotalMax),
        ] {
            if max == 0 {
                self.counters.evictions += 1;
                return CheckIn::NotKept { why };
            }
        }
        if self.is_old(now, opened) {
            self.counters.expiries += 1;
            let why = CloseReason::Lifetime;
            return CheckIn::NotKept { why };
        }
        let queue = self.hops.entry(hop).or_default();
        queue.push(now, connection, self.next);
        self.next += 1;
        self.len += 1;
        let over = if queue.len() > self.limits.per_hop_max {
            Some((hop, CloseReason::PerHopMax))
        } else if self.len > self.limits.total_max {
            self.oldest_hop().map(|hop| (hop, CloseReason::TotalMax))
        } else {
            None
        };
        over.and_then(|(hop, why)| self.shed(now, hop, why)).map_or(
            CheckIn::Kept,
            |(close, why)| CheckIn::KeptFor { close, why },
        )
    }

    /// Whether a connection open since `opened` has been open for too long to be used again.
    #[must_use]
    pub fn is_old(&self, now: Now, opened: Tick) -> bool {
        now.tick.ms_since(opened) >= self.limits.lifetime_ms
    }

    /// Takes the newest idle connection to `hop` that is within the time-out; those to `hop` that
    /// are not are appended to `expired`, to be closed.
    pub fn check_out(
        &mut self,
        now: Now,
        hop: HopId,
        expired: &mut Vec<ConnectionId>,
    ) -> Option<ConnectionId> {
        let idle_timeout_ms = self.limits.idle_timeout_ms;
        let found = self.hops.get_mut(&hop).and_then(|queue| {
            let before = expired.len();
            let found = queue.take(now, idle_timeout_ms, expired);
            let ended = expired.len() - before;
            self.counters.expiries += ended as u64;
            self.len -= ended + usize::from(found.is_some());
            found
        });
        match found {
            Some(_) => self.counters.hits += 1,
            None => self.counters.misses += 1,
        }
        found
    }

    /// Forgets `connection`: its next hop closed it. Whether it was idle here. Looks at every
    /// connection.
    pub fn remove(&mut self, connection: ConnectionId) -> bool {
        for queue in self.hops.values_mut() {
            if queue.remove(connection) {
                self.len -= 1;
                return true;
            }
        }
        false
    }

    /// Appends to `expired` every connection idle for too long, to be closed, oldest first by hop.
    pub fn expire(&mut self, now: Now, expired: &mut Vec<ConnectionId>) {
        let before = expired.len();
        for queue in self.hops.values_mut() {
            queue.expire(now, self.limits.idle_timeout_ms, expired);
        }
        self.hops.retain(|_, queue| !queue.is_empty());
        let count = expired.len() - before;
        self.len -= count;
        self.counters.expiries += count as u64;
    }

    /// How many connections to `hop` are idle, expired ones included.
    #[must_use]
    pub fn idle(&self, hop: HopId) -> usize {
        self.hops.get(&hop).map_or(0, IdleQueue::len)
    }

    /// Whether one more connection to `hop` would be kept without closing another.
    #[must_use]
    pub fn has_room(&self, hop: HopId) -> bool {
        self.idle(hop) < self.limits.per_hop_max && self.len < self.limits.total_max
    }

    /// The connection to `hop` that has been idle longest.
    #[must_use]
    pub fn oldest_of(&self, hop: HopId) -> Option<ConnectionId> {
        self.hops.get(&hop)?.oldest()
    }

    /// The connection that has been idle longest, of all next hops.
    #[must_use]
    pub fn oldest_connection(&self) -> Option<ConnectionId> {
        self.oldest_of(self.oldest_hop()?)
    }

    /// How many connections are idle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no connection is idle.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What has happened so far.
    #[must_use]
    pub const fn counters(&self) -> ConnectionCounters {
        self.counters
    }

    /// Takes out the oldest connection to `hop`, because a limit is exceeded.
    fn shed(
        &mut self,
        now: Now,
        hop: HopId,
        limit: CloseReason,
    ) -> Option<(ConnectionId, CloseReason)> {
        let queue = self.hops.get_mut(&hop)?;
        let is_expired = queue.oldest_is_expired(now, self.limits.idle_timeout_ms);
        let oldest = queue.shed()?;
        self.len -= 1;
        // It would have been closed anyway: no sign that the limit is too small.
        let why = if is_expired {
            self.counters.expiries += 1;
            CloseReason::IdleTimeout
        } else {
            self.counters.evictions += 1;
            limit
        };
        Some((oldest, why))
    }

    fn oldest_hop(&self) -> Option<HopId> {
        let fronts = self
            .hops
            .iter()
            .filter_map(|(hop, queue)| queue.oldest_serial().map(|serial| (serial, *hop)));
        fronts.min().map(|(_, hop)| hop)
    }
}

#[cfg(test)]
mod tests;
