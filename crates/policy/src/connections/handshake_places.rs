//! Which TLS handshake under way makes room for another.
//!
//! Handshakes are bounded by client and in all. The oldest makes room: a client that goes on with
//! its handshake is done in a few round trips, and those that hold handshakes open are the oldest.
//! It is one of the same client, if that has more than its share, else one of the client that has
//! most, of several the one whose oldest is older: a client that opens many displaces its own, and
//! not those of others.

use crate::destination::ClientNetwork;
use alloc::collections::{BTreeMap, BTreeSet};
use core::cmp::Reverse;

/// How many handshakes may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeLimits {
    /// In all; at least one may.
    pub total_max: usize,
    /// Of one client; at least one may.
    pub per_client_max: usize,
}

/// A handshake under way; later ones have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandshakeId(u64);

/// The handshakes under way.
#[derive(Clone, Debug, Default)]
pub struct HandshakePlaces {
    under_way: BTreeMap<HandshakeId, ClientNetwork>,
    of_client: BTreeMap<ClientNetwork, BTreeSet<HandshakeId>>,
    /// How many each client has, with its oldest: last the one that makes room.
    by_count: BTreeSet<(usize, Reverse<HandshakeId>)>,
    next: u64,
}

impl HandshakePlaces {
    /// One more is under way, of this client. [`Self::displaced`] is to be called then.
    pub fn enter(&mut self, client: ClientNetwork) -> HandshakeId {
        let id = HandshakeId(self.next);
        self.next += 1;
        self.under_way.insert(id, client);
        self.change(client, |ids| ids.insert(id));
        id
    }

    /// One that makes room, and is under way no more; `None` once there are as many as may be.
    /// `client` is the one that has opened the newest.
    pub fn displaced(
        &mut self,
        client: ClientNetwork,
        limits: HandshakeLimits,
    ) -> Option<HandshakeId> {
        let own = self.of_client.get(&client).map_or(0, BTreeSet::len);
        let oldest = if own > limits.per_client_max.max(1) {
            *self.of_client.get(&client)?.first()?
        } else if self.under_way.len() > limits.total_max.max(1) {
            self.by_count.last()?.1.0
        } else {
            return None;
        };
        self.leave(oldest);
        Some(oldest)
    }

    /// It is under way no more.
    pub fn leave(&mut self, id: HandshakeId) {
        if let Some(client) = self.under_way.remove(&id) {
            self.change(client, |ids| ids.remove(&id));
        }
    }

    fn change(
        &mut self,
        client: ClientNetwork,
        change: impl FnOnce(&mut BTreeSet<HandshakeId>) -> bool,
    ) {
        let ids = self.of_client.entry(client).or_default();
        if let Some(oldest) = ids.first() {
            self.by_count.remove(&(ids.len(), Reverse(*oldest)));
        }
        change(ids);
        match ids.first() {
            None => drop(self.of_client.remove(&client)),
            Some(oldest) => drop(self.by_count.insert((ids.len(), Reverse(*oldest)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;
    use std::vec::Vec;

    const LIMITS: HandshakeLimits = HandshakeLimits {
        total_max: 8,
        per_client_max: 3,
    };

    fn client(number: u8) -> ClientNetwork {
        ClientNetwork::of(IpAddr::from([192, 0, 2, number]))
    }

    /// Enters one of a client; those that it displaces.
    fn enter(places: &mut HandshakePlaces, number: u8) -> (HandshakeId, Vec<HandshakeId>) {
        let id = places.enter(client(number));
        let displaced = core::iter::from_fn(|| places.displaced(client(number), LIMITS));
        (id, displaced.collect())
    }

    #[test]
    fn client_beyond_its_share_displaces_its_own_oldest() {
        let mut places = HandshakePlaces::default();
        let (other, _) = enter(&mut places, 1);
        let own: Vec<HandshakeId> = (0..3).map(|_| enter(&mut places, 2).0).collect();
        assert_eq!(places.under_way.len(), 4);
        for oldest in own {
            assert_eq!(enter(&mut places, 2).1, [oldest]);
        }
        assert!(places.under_way.contains_key(&other));
        // those that have left count no more
        let (newest, _) = enter(&mut places, 2);
        places.leave(newest);
        assert_eq!(enter(&mut places, 2).1, []);
    }

    #[test]
    fn client_with_most_makes_room_when_all_places_are_taken() {
        let mut places = HandshakePlaces::default();
        let (lone, _) = enter(&mut places, 1);
        let own: Vec<HandshakeId> = (0..3).map(|_| enter(&mut places, 3).0).collect();
        for number in [4, 4, 5, 5] {
            assert_eq!(enter(&mut places, number).1, []);
        }
        assert_eq!(enter(&mut places, 6).1, [own[0]]);
        assert!(places.under_way.contains_key(&lone));
    }

    #[test]
    fn one_may_be_under_way_whatever_the_limits_are() {
        let none = HandshakeLimits {
            total_max: 0,
            per_client_max: 0,
        };
        let mut places = HandshakePlaces::default();
        let first = places.enter(client(1));
        assert_eq!(places.displaced(client(1), none), None);
        let second = places.enter(client(2));
        assert_eq!(places.displaced(client(2), none), Some(first));
        assert_eq!(places.displaced(client(2), none), None);
        assert!(places.under_way.contains_key(&second));
    }

    #[test]
    fn random_clients_keep_the_limits_and_those_below_their_share_are_never_displaced() {
        let mut random = 1_u64;
        let mut next = |most: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % most
        };
        let mut places = HandshakePlaces::default();
        let mut naive: Vec<(HandshakeId, u8)> = Vec::new();
        for _ in 0..20_000 {
            if next(3) == 0 && !naive.is_empty() {
                let at = usize::try_from(next(naive.len() as u64)).unwrap_or(0);
                places.leave(naive.remove(at).0);
                continue;
            }
            let number = u8::try_from(next(6)).unwrap_or(0);
            let (id, displaced) = enter(&mut places, number);
            naive.push((id, number));
            for gone in displaced {
                let at = naive.iter().position(|(id, _)| *id == gone);
                let (_, from) = naive[at.expect("it was under way")];
                let count = |of: u8| naive.iter().filter(|(_, by)| *by == of).count();
                let most = (0..6).map(count).max();
                assert!(from == number || Some(count(from)) == most);
                let oldest = naive.iter().find(|(_, by)| *by == from);
                assert_eq!(oldest.map(|(id, _)| *id), Some(gone));
                naive.retain(|(id, _)| *id != gone);
            }
            assert!(naive.len() <= LIMITS.total_max);
            assert!((0..6).all(|of| {
                naive.iter().filter(|(_, by)| *by == of).count() <= LIMITS.per_client_max
            }));
            assert_eq!(places.under_way.len(), naive.len());
            assert_eq!(
                places
                    .by_count
                    .iter()
                    .map(|(count, _)| count)
                    .sum::<usize>(),
                naive.len()
            );
        }
    }
}
