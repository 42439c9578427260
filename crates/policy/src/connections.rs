//! The idle connections to next hops, as a cache: a size, hits and misses, and a reason for whoever leaves.
//!
//! PROXIM (INFOCOM 1999) found that caching connections gains more than caching data; its default idle time-out
//! towards servers is ours. The newest idle connection is taken first: it is the least likely to have been closed by
//! its next hop, and those not needed at the present load grow old and leave. For room the oldest leaves.
//!
//! Sockets are not here: the driver closes what it is told to close, and calls [`IdleConnections::remove`] when a
//! peer closes an idle one.

use crate::now::{Now, Tick};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

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
}

impl Default for IdleLimits {
    /// 64 a hop, 1024 in all, 30 s.
    ///
    /// 30 s is PROXIM's proxy-server time-out; its traces never held more than 243 server connections at once for
    /// 18 000 modem users (table of connection cache sizes), so 1024 is room for several such proxies.
    fn default() -> Self {
        Self {
            per_hop_max: 64,
            total_max: 1024,
            idle_timeout_ms: 30_000,
        }
    }
}

/// Why an idle connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CloseReason {
    /// Its next hop has as many idle connections as one may have.
    PerHopMax,
    /// There are as many idle connections as there may be.
    TotalMax,
    /// It was idle for too long.
    IdleTimeout,
}

impl CloseReason {
    /// The reason as a word for logs and counters.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PerHopMax => "per-hop-max",
            Self::TotalMax => "total-max",
            Self::IdleTimeout => "idle-timeout",
        }
    }
}

/// What becomes of a connection that fell idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckIn {
    /// It is kept.
    Kept,
    /// It is kept; an older one is to be closed for it.
    KeptFor {
        /// The one to close.
        close: ConnectionId,
        /// Why.
        why: CloseReason,
    },
    /// It is to be closed itself: the limits allow none.
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
    /// Connections that were idle for too long.
    pub expiries: u64,
    /// Connections that had to leave for a limit before their time.
    pub evictions: u64,
}

/// The idle connections of one driver.
#[derive(Debug)]
pub struct IdleConnections {
    limits: IdleLimits,
    /// By the order in which they fell idle. Ticks never go back and the time-out is one for all, so this is also
    /// the order in which they expire.
    idle: BTreeMap<Serial, Idle>,
    serials: BTreeMap<ConnectionId, Serial>,
    /// The oldest in front; a hop without idle connections has no entry, so that hops seen once cost nothing.
    hops: BTreeMap<HopId, VecDeque<Serial>>,
    next: Serial,
    counters: ConnectionCounters,
}

type Serial = u64;

#[derive(Clone, Copy, Debug)]
struct Idle {
    connection: ConnectionId,
    hop: HopId,
    since: Tick,
}

impl IdleConnections {
    /// None yet.
    #[must_use]
    pub fn new(limits: IdleLimits) -> Self {
        Self {
            limits,
            idle: BTreeMap::new(),
            serials: BTreeMap::new(),
            hops: BTreeMap::new(),
            next: 0,
            counters: ConnectionCounters::default(),
        }
    }

    /// `connection` to `hop` fell idle and can be used again.
    pub fn check_in(&mut self, now: Now, hop: HopId, connection: ConnectionId) -> CheckIn {
        for (max, why) in [
            (self.limits.per_hop_max, CloseReason::PerHopMax),
            (self.limits.total_max, CloseReason::TotalMax),
        ] {
            if max == 0 {
                self.counters.evictions += 1;
                return CheckIn::NotKept { why };
            }
        }
        self.remove(connection);
        let serial = self.next;
        self.next += 1;
        let since = now.tick;
        self.idle.insert(
            serial,
            Idle {
                connection,
                hop,
                since,
            },
        );
        self.serials.insert(connection, serial);
        self.hops.entry(hop).or_default().push_back(serial);
        self.shed_one(now, hop)
            .map_or(CheckIn::Kept, |(close, why)| CheckIn::KeptFor {
                close,
                why,
            })
    }

    /// Takes the newest idle connection to `hop` that is within the time-out; those to `hop` that are not are
    /// appended to `expired`, to be closed.
    pub fn check_out(
        &mut self,
        now: Now,
        hop: HopId,
        expired: &mut Vec<ConnectionId>,
    ) -> Option<ConnectionId> {
        while let Some(oldest) = self.oldest_of(hop) {
            if !self.is_expired(now, oldest) {
                break;
            }
            expired.extend(self.take(oldest));
            self.counters.expiries += 1;
        }
        let newest = self
            .hops
            .get(&hop)
            .and_then(|serials| serials.back().copied());
        let found = newest.and_then(|serial| self.take(serial));
        match found {
            Some(_) => self.counters.hits += 1,
            None => self.counters.misses += 1,
        }
        found
    }

    /// Forgets `connection`: its next hop closed it. Whether it was idle here.
    pub fn remove(&mut self, connection: ConnectionId) -> bool {
        let serial = self.serials.get(&connection).copied();
        serial.and_then(|serial| self.take(serial)).is_some()
    }

    /// Appends to `expired` every connection idle for too long, to be closed.
    pub fn expire(&mut self, now: Now, expired: &mut Vec<ConnectionId>) {
        while let Some(oldest) = self.oldest() {
            if !self.is_expired(now, oldest) {
                break;
            }
            expired.extend(self.take(oldest));
            self.counters.expiries += 1;
        }
    }

    /// When [`Self::expire`] next has something to do; earlier only after a check-in into an empty set.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Tick> {
        let (_, oldest) = self.idle.first_key_value()?;
        Some(oldest.since.plus_ms(self.limits.idle_timeout_ms))
    }

    /// The connection that has been idle longest, of all next hops.
    #[must_use]
    pub fn oldest_connection(&self) -> Option<ConnectionId> {
        self.idle.first_key_value().map(|(_, idle)| idle.connection)
    }

    /// How many connections are idle.
    #[must_use]
    pub fn len(&self) -> usize {
        self.idle.len()
    }

    /// Whether no connection is idle.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.idle.is_empty()
    }

    /// What has happened so far.
    #[must_use]
    pub const fn counters(&self) -> ConnectionCounters {
        self.counters
    }

    /// Takes out the one connection that exceeds a limit after a check-in for `hop`.
    fn shed_one(&mut self, now: Now, hop: HopId) -> Option<(ConnectionId, CloseReason)> {
        let (oldest, limit) = if self.hops.get(&hop)?.len() > self.limits.per_hop_max {
            (self.oldest_of(hop)?, CloseReason::PerHopMax)
        } else if self.idle.len() > self.limits.total_max {
            (self.oldest()?, CloseReason::TotalMax)
        } else {
            return None;
        };
        // It would have left anyway: no sign that the limit is too small.
        let why = if self.is_expired(now, oldest) {
            self.counters.expiries += 1;
            CloseReason::IdleTimeout
        } else {
            self.counters.evictions += 1;
            limit
        };
        Some((self.take(oldest)?, why))
    }

    fn oldest(&self) -> Option<Serial> {
        self.idle.first_key_value().map(|(serial, _)| *serial)
    }

    fn oldest_of(&self, hop: HopId) -> Option<Serial> {
        self.hops.get(&hop)?.front().copied()
    }

    fn is_expired(&self, now: Now, serial: Serial) -> bool {
        let limit_ms = self.limits.idle_timeout_ms;
        self.idle
            .get(&serial)
            .is_some_and(|idle| now.tick.ms_since(idle.since) >= limit_ms)
    }

    fn take(&mut self, serial: Serial) -> Option<ConnectionId> {
        let Idle {
            connection, hop, ..
        } = self.idle.remove(&serial)?;
        self.serials.remove(&connection);
        if let Some(serials) = self.hops.get_mut(&hop) {
            if let Ok(place) = serials.binary_search(&serial) {
                serials.remove(place);
            }
            if serials.is_empty() {
                self.hops.remove(&hop);
            }
        }
        Some(connection)
    }
}

#[cfg(test)]
mod tests;
