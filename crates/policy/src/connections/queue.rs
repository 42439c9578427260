//! The idle connections to one next hop.

use super::ConnectionId;
use crate::now::{Now, Tick};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// Idle connections that are alike, by the time they fell idle. Ticks never go back and the
/// time-out is one for all, so this is also the order in which they expire.
///
/// [`super::IdleConnections`] has one for each next hop. A driver without limits on how many there
/// are may keep them itself.
#[derive(Debug, Default)]
pub struct IdleQueue {
    /// The oldest in front.
    queue: VecDeque<Idle>,
}

#[derive(Clone, Copy, Debug)]
struct Idle {
    connection: ConnectionId,
    /// Of all next hops the number of those that fell idle before.
    serial: u64,
    since: Tick,
}

impl IdleQueue {
    /// `connection` fell idle, as number `serial` of all.
    pub fn push(&mut self, now: Now, connection: ConnectionId, serial: u64) {
        self.queue.push_back(Idle {
            connection,
            serial,
            since: now.tick,
        });
    }

    /// Takes the newest one that was idle for less than `idle_timeout_ms` milliseconds; those that
    /// were not are appended to `expired`.
    pub fn take(
        &mut self,
        now: Now,
        idle_timeout_ms: u64,
        expired: &mut Vec<ConnectionId>,
    ) -> Option<ConnectionId> {
        self.expire(now, idle_timeout_ms, expired);
        self.queue.pop_back().map(|idle| idle.connection)
    }

    /// Appends to `expired` those that were idle for `idle_timeout_ms` milliseconds or longer,
    /// oldest first, and forgets them.
    pub fn expire(&mut self, now: Now, idle_timeout_ms: u64, expired: &mut Vec<ConnectionId>) {
        while self.oldest_is_expired(now, idle_timeout_ms) {
            expired.extend(self.shed());
        }
    }

    /// Forgets the one that was idle longest: which it was.
    pub fn shed(&mut self) -> Option<ConnectionId> {
        self.queue.pop_front().map(|idle| idle.connection)
    }

    /// Forgets `connection`; whether it was here. Looks at every one.
    pub fn remove(&mut self, connection: ConnectionId) -> bool {
        let place = self
            .queue
            .iter()
            .position(|idle| idle.connection == connection);
        place.and_then(|place| self.queue.remove(place)).is_some()
    }

    /// Whether the one that was idle longest should be closed.
    #[must_use]
    pub fn oldest_is_expired(&self, now: Now, idle_timeout_ms: u64) -> bool {
        self.oldest_since()
            .is_some_and(|since| now.tick.ms_since(since) >= idle_timeout_ms)
    }

    /// The one that was idle longest.
    #[must_use]
    pub fn oldest(&self) -> Option<ConnectionId> {
        self.queue.front().map(|idle| idle.connection)
    }

    /// When it fell idle.
    #[must_use]
    pub fn oldest_since(&self) -> Option<Tick> {
        self.queue.front().map(|idle| idle.since)
    }

    /// Its number among all.
    #[must_use]
    pub fn oldest_serial(&self) -> Option<u64> {
        self.queue.front().map(|idle| idle.serial)
    }

    /// How many there are, expired ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
