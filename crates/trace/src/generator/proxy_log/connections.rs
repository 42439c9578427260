//! The connections of one client, as its browser uses them: few to a server, reused while they
//! persist, and one for all where the version of HTTP multiplexes.

/// A connection of a client.
#[derive(Clone, Copy, Debug)]
struct Connection {
    number: u64,
    /// Hash of the server.
    server: u64,
    /// How many requests it had.
    requests: u32,
    /// When the first request can be sent on it.
    ready_us: u64,
    /// When its last transfer ends.
    free_us: u64,
    /// Whether it can carry another request after that.
    persists: bool,
}

/// What a transaction gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// Place among the client's connections.
    place: usize,
    /// When the transaction begins: the SYN of a new connection, or the request on one that is
    /// there.
    pub(super) begins_us: u64,
    /// Where the connection is still being set up by another: when the request can be sent.
    pub(super) ready_us: u64,
    pub(super) is_new: bool,
}

/// How a client may connect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) a_server: usize,
    pub(super) most: usize,
    pub(super) idle_us: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Connections {
    all: Vec<Connection>,
}

impl Connections {
    /// A connection to this server for a request that could be made at `at_us`.
    pub(super) fn take(
        &mut self,
        server: u64,
        at_us: u64,
        multiplexes: bool,
        limits: Limits,
    ) -> Slot {
        self.all.retain(|one| {
            one.free_us > at_us || (one.persists && one.free_us + limits.idle_us > at_us)
        });
        let same = |one: &Connection| one.server == server;
        if multiplexes && let Some(place) = self.all.iter().position(same) {
            return self.reuse(place, at_us);
        }
        let idle = |one: &Connection| same(one) && one.free_us <= at_us;
        if let Some(place) = self.latest(idle) {
            return self.reuse(place, at_us);
        }
        let to_server = self.all.iter().filter(|one| same(one)).count();
        if to_server >= limits.a_server && !multiplexes {
            return self.after(same, server, at_us);
        }
        if self.all.len() >= limits.most {
            // an idle one to another server is closed for it
            match self.latest(|one| one.free_us <= at_us) {
                Some(place) => self.all.swap_remove(place),
                None => return self.after(|_| true, server, at_us),
            };
        }
        self.open(server, at_us)
    }

    /// The transaction on this connection ends at `free_us`.
    pub(super) fn give_back(
        &mut self,
        slot: Slot,
        number: u64,
        ready_us: u64,
        free_us: u64,
        persists: bool,
    ) -> (u64, u32) {
        let one = &mut self.all[slot.place];
        if slot.is_new {
            one.number = number;
            one.ready_us = ready_us;
        }
        one.requests += 1;
        one.free_us = one.free_us.max(free_us);
        one.persists = persists;
        (one.number, one.requests)
    }

    /// The one that was used last, of those that are suitable.
    fn latest(&self, suits: impl Fn(&Connection) -> bool) -> Option<usize> {
        let suitable = self.all.iter().enumerate().filter(|(_, one)| suits(one));
        suitable
            .max_by_key(|(_, one)| one.free_us)
            .map(|(place, _)| place)
    }

    /// When the first of these is free: on it, or instead of it.
    fn after(&mut self, suits: impl Fn(&Connection) -> bool, server: u64, at_us: u64) -> Slot {
        let suitable = self.all.iter().enumerate().filter(|(_, one)| suits(one));
        let first = suitable.min_by_key(|(_, one)| one.free_us);
        let Some((place, one)) = first.map(|(place, one)| (place, *one)) else {
            return self.open(server, at_us);
        };
        let free_us = one.free_us.max(at_us);
        if one.persists && one.server == server {
            return self.reuse(place, free_us);
        }
        self.all.swap_remove(place);
        self.open(server, free_us)
    }

    fn reuse(&self, place: usize, at_us: u64) -> Slot {
        Slot {
            place,
            begins_us: at_us,
            ready_us: self.all[place].ready_us.max(at_us),
            is_new: false,
        }
    }

    fn open(&mut self, server: u64, at_us: u64) -> Slot {
        self.all.push(Connection {
            number: 0,
            server,
            requests: 0,
            ready_us: at_us,
            free_us: at_us,
            persists: true,
        });
        Slot {
            place: self.all.len() - 1,
            begins_us: at_us,
            ready_us: at_us,
            is_new: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        a_server: 2,
        most: 3,
        idle_us: 100,
    };

    fn ask(all: &mut Connections, server: u64, at_us: u64, persists: bool) -> (Slot, (u64, u32)) {
        let slot = all.take(server, at_us, false, LIMITS);
        let number = 1000 + slot.begins_us;
        let done = all.give_back(
            slot,
            number,
            slot.begins_us + 5,
            slot.begins_us + 10,
            persists,
        );
        (slot, done)
    }

    #[test]
    fn persistent_connection_is_reused_until_its_idle_limit() {
        let mut all = Connections::default();
        assert_eq!(ask(&mut all, 7, 0, true).1, (1000, 1));
        assert_eq!(ask(&mut all, 7, 50, true).1, (1000, 2));
        // free at 60, idle until 160
        assert_eq!(ask(&mut all, 7, 159, true).1, (1000, 3));
        assert_eq!(ask(&mut all, 7, 269, true).1, (1269, 1));
    }

    #[test]
    fn non_persistent_connection_has_a_single_request() {
        let mut all = Connections::default();
        assert_eq!(ask(&mut all, 7, 0, false).1, (1000, 1));
        assert_eq!(ask(&mut all, 7, 20, false).1, (1020, 1));
    }

    #[test]
    fn connections_are_limited_per_server_and_per_client() {
        let mut all = Connections::default();
        assert_eq!(ask(&mut all, 7, 0, false).0.begins_us, 0);
        assert_eq!(ask(&mut all, 7, 0, false).0.begins_us, 0);
        // two to this server: the third waits for the end of the first
        assert_eq!(ask(&mut all, 7, 0, false).0.begins_us, 10);
        assert_eq!(ask(&mut all, 8, 0, false).0.begins_us, 0);
        // three in all
        assert_eq!(ask(&mut all, 9, 0, false).0.begins_us, 10);
        assert!(all.all.len() <= 3);
    }

    #[test]
    fn multiplexed_request_waits_only_for_connection_set_up() {
        let mut all = Connections::default();
        let first = all.take(7, 0, true, LIMITS);
        assert!(first.is_new);
        all.give_back(first, 1, 30, 500, true);
        let second = all.take(7, 10, true, LIMITS);
        assert_eq!(
            (second.is_new, second.begins_us, second.ready_us),
            (false, 10, 30)
        );
        assert_eq!(all.give_back(second, 2, 0, 400, true), (1, 2));
    }
}
