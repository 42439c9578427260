//! The connections of one side, as `policy::connections` keeps them: how many are open, and which
//! is used next.
//!
//! As in PROXIM (INFOCOM 1999) a request takes an idle connection if there is one, the newest, and
//! opens another otherwise: none waits, and there is no limit. A connection keeps its congestion
//! window while it is idle.

use crate::hashing::ByNumber;
use serde::Serialize;
use std::collections::VecDeque;
use weir_policy::connections::{ConnectionId, IdleQueue};
use weir_policy::{Now, Tick};

/// Connections of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connections {
    /// Requests that used one.
    pub requests: u64,
    /// Connections that were opened.
    pub opened: u64,
    /// Open at the same time, at most.
    pub open_max: u64,
}

/// The connections between two kinds of hosts.
#[derive(Debug)]
pub(crate) struct Side {
    idle_ms: u64,
    /// Hosts with a connection that is open.
    hop_of: ByNumber<u32>,
    hops: Vec<Hop>,
    unused_hops: Vec<u32>,
    connections: Vec<Connection>,
    unused: Vec<u32>,
    /// Idle ones in the order in which their time is over.
    ending: VecDeque<(Tick, u32, u32)>,
    times_idle: u64,
    open: u64,
    pub(crate) openings: Connections,
}

/// A host, while it has an open connection; then its number is another one's.
#[derive(Debug)]
struct Hop {
    host: u64,
    open: u32,
    idle: IdleQueue,
}

#[derive(Clone, Copy, Debug)]
struct Connection {
    hop: u32,
    window: u32,
    /// How often it has been idle: tells an older end of its idle time from the present one.
    times_idle: u32,
    is_idle: bool,
}

/// A connection in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionUse {
    pub(crate) id: u32,
    pub(crate) is_new: bool,
    /// Segments that may be under way.
    pub(crate) window: u32,
}

impl Side {
    pub(crate) fn new(idle_ms: u64) -> Self {
        Self {
            idle_ms,
            hop_of: ByNumber::default(),
            hops: Vec::new(),
            unused_hops: Vec::new(),
            connections: Vec::new(),
            unused: Vec::new(),
            ending: VecDeque::new(),
            times_idle: 0,
            open: 0,
            openings: Connections::default(),
        }
    }

    /// A connection to `host`: an idle one, or a new one whose window is `window`.
    pub(crate) fn take(&mut self, now: Now, host: u64, window: u32) -> ConnectionUse {
        self.end_idle(now);
        self.openings.requests += 1;
        let hop = self.hop(host);
        // those that were idle for too long have just been closed
        let (idle, ended) = (&mut self.hops[hop as usize].idle, &mut Vec::new());
        if let Some(ConnectionId(id)) = idle.take(now, self.idle_ms, ended) {
            let connection = &mut self.connections[id as usize];
            connection.is_idle = false;
            return ConnectionUse {
                id,
                is_new: false,
                window: connection.window,
            };
        }
        self.open_one(hop, window)
    }

    /// A new connection to `host`, whether or not one is idle: the request is repeated because a
    /// kept one failed it (RFC 9112 §9.3.1).
    pub(crate) fn take_new(&mut self, now: Now, host: u64, window: u32) -> ConnectionUse {
        self.end_idle(now);
        self.openings.requests += 1;
        let hop = self.hop(host);
        self.open_one(hop, window)
    }

    fn open_one(&mut self, hop: u32, window: u32) -> ConnectionUse {
        self.openings.opened += 1;
        self.hops[hop as usize].open += 1;
        self.open += 1;
        self.openings.open_max = self.openings.open_max.max(self.open);
        let connection = Connection {
            hop,
            window,
            times_idle: 0,
            is_idle: false,
        };
        ConnectionUse {
            id: self.place(connection),
            is_new: true,
            window,
        }
    }

    /// The number of a host, until its last connection is closed.
    fn hop(&mut self, host: u64) -> u32 {
        let (hops, unused) = (&mut self.hops, &mut self.unused_hops);
        *self.hop_of.entry(host).or_insert_with(|| {
            if let Some(number) = unused.pop() {
                hops[number as usize].host = host;
                return number;
            }
            hops.push(Hop {
                host,
                open: 0,
                idle: IdleQueue::default(),
            });
            u32::try_from(hops.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn place(&mut self, connection: Connection) -> u32 {
        if let Some(id) = self.unused.pop() {
            let place = &mut self.connections[id as usize];
            // what waits for the end of the connection that was here before must not find this one
            let times_idle = place.times_idle;
            *place = Connection {
                times_idle,
                ..connection
            };
            return id;
        }
        self.connections.push(connection);
        u32::try_from(self.connections.len() - 1).unwrap_or(u32::MAX)
    }

    /// The connection is not used any more and stays open.
    pub(crate) fn give_back(&mut self, now: Now, id: u32, window: u32) {
        let connection = &mut self.connections[id as usize];
        connection.window = window;
        connection.times_idle = connection.times_idle.wrapping_add(1);
        connection.is_idle = true;
        let (hop, times) = (connection.hop, connection.times_idle);
        let idle = &mut self.hops[hop as usize].idle;
        idle.push(now, ConnectionId(id), self.times_idle);
        self.times_idle += 1;
        let ends = now.tick.plus_ms(self.idle_ms);
        self.ending.push_back((ends, id, times));
    }

    /// The connection is closed.
    pub(crate) fn close(&mut self, id: u32) {
        let connection = &mut self.connections[id as usize];
        connection.is_idle = false;
        connection.times_idle = connection.times_idle.wrapping_add(1);
        let number = connection.hop;
        self.open -= 1;
        self.unused.push(id);
        let hop = &mut self.hops[number as usize];
        hop.open -= 1;
        if hop.open == 0 {
            self.hop_of.remove(&hop.host);
            self.unused_hops.push(number);
        }
    }

    /// Those that were idle for too long are closed by now.
    fn end_idle(&mut self, now: Now) {
        while let Some((ends, id, times)) = self.ending.front().copied() {
            if ends > now.tick {
                break;
            }
            self.ending.pop_front();
            let connection = &self.connections[id as usize];
            if connection.is_idle && connection.times_idle == times {
                // of its host's it has been idle longest
                let oldest = self.hops[connection.hop as usize].idle.shed();
                debug_assert_eq!(oldest, Some(ConnectionId(id)), "another one is older");
                self.close(id);
            }
        }
    }

    /// How many were open at the last look.
    #[cfg(test)]
    pub(crate) fn open(&mut self, now: Now) -> u64 {
        self.end_idle(now);
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_semantics::Timestamp;

    fn at(ms: u64) -> Now {
        Now {
            wall: Timestamp(0),
            tick: Tick(ms),
        }
    }

    #[test]
    fn idle_connection_is_reused_before_its_timeout_and_closed_at_it() {
        let mut side = Side::new(30_000);
        let first = side.take(at(0), 7, 1);
        assert!(first.is_new);
        side.give_back(at(1000), first.id, 9);
        let again = side.take(at(30_999), 7, 1);
        assert_eq!((again.is_new, again.window), (false, 9));
        side.give_back(at(31_000), again.id, 9);
        assert_eq!(side.open(at(60_999)), 1);
        let late = side.take(at(61_000), 7, 1);
        assert_eq!((late.is_new, late.window), (true, 1));
        assert_eq!(side.open(at(61_000)), 1);
        assert_eq!(
            (
                side.openings.requests,
                side.openings.opened,
                side.openings.open_max
            ),
            (3, 2, 1)
        );
    }

    #[test]
    fn reused_connection_slot_does_not_inherit_the_previous_idle_timeout() {
        let mut side = Side::new(1000);
        let first = side.take(at(0), 7, 1);
        side.give_back(at(0), first.id, 1);
        let second = side.take(at(500), 7, 1);
        side.close(second.id);
        let third = side.take(at(600), 8, 1);
        assert_eq!(third.id, first.id);
        side.give_back(at(700), third.id, 1);
        assert_eq!(
            side.open(at(1000)),
            1,
            "the first one's time is over, this one's is not"
        );
        assert_eq!(side.open(at(1700)), 0);
    }

    #[test]
    fn connections_of_idle_hosts_expire_and_their_state_is_freed() {
        let mut side = Side::new(1000);
        for host in 0..5000 {
            let taken = side.take(at(host * 10), host, 1);
            assert!(taken.is_new, "{host} has another one's connection");
            side.give_back(at(host * 10 + 5), taken.id, 1);
        }
        assert_eq!(side.openings.open_max, 101);
        // a second's worth is open
        assert!(side.hops.len() <= 102 && side.connections.len() <= 102);
        let idle = side.hops.iter().map(|hop| hop.idle.len());
        assert!(idle.max() <= Some(1), "a set keeps what is over");
        let busy = [side.take(at(60_000), 1, 1), side.take(at(60_000), 1, 1)];
        side.close(busy[0].id);
        side.give_back(at(60_001), busy[1].id, 7);
        assert_eq!(side.take(at(60_002), 1, 1).window, 7);
        assert_eq!(side.hop_of.len(), 1);
    }

    #[test]
    fn newest_idle_connection_to_the_same_host_is_reused() {
        let mut side = Side::new(1000);
        let (one, two) = (side.take(at(0), 7, 1), side.take(at(0), 7, 1));
        side.give_back(at(10), two.id, 2);
        side.give_back(at(20), one.id, 3);
        assert!(side.take(at(30), 8, 1).is_new);
        assert_eq!(side.take(at(30), 7, 1).window, 3);
        assert_eq!(side.openings.open_max, 3);
    }
}
