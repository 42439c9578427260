//! Targets that are being asked for: one request leads, those that want the same follow (RFC 9211
//! §2.6 calls them collapsed).
//!
//! A flight begins when a request is about to be forwarded and ends when its response is stored,
//! turns out not to be shared, or fails. Until the response head the followers wait at the gate;
//! from then on they read what is arriving, or are judged again and go alone. A target whose
//! response could not be shared is remembered for a while, so that its requests do not wait for
//! each other in vain (Varnish: hit-for-miss, two minutes).

mod flight;

use crate::fetch::in_flight::InFlightResponse;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_policy::{Digest, Now, Tick};
use weir_store::VaryRule;

pub(crate) use flight::{Flight, Following, Landed, Leading};

/// Parts of the table, so that workers seldom meet at a lock.
const SHARDS: usize = 64;

/// Flights for one target at once: one for each variant of its response that is being asked for.
/// Beyond it requests go alone.
const PER_TARGET_MAX: usize = 64;

/// Targets a shard remembers as not to be shared; for another one those whose time is over are
/// forgotten, and if there are none, all.
const ALONE_MAX: usize = 1024;

/// All flights of the proxy.
#[derive(Debug)]
pub(crate) struct Flights {
    shards: Box<[Mutex<Shard>]>,
}

#[derive(Debug, Default)]
struct Shard {
    flights: HashMap<Digest, Vec<Arc<Flight>>>,
    alone: HashMap<Digest, Tick>,
}

/// What a request that must be forwarded is to do.
pub(crate) enum Boarded {
    /// Ask the next hop, for the others too.
    Lead(Leading),
    /// Wait for the one who asks.
    Follow(Following),
    /// Read what is arriving.
    Read(Arc<Flight>, Arc<InFlightResponse>),
    /// Ask the next hop, for itself alone.
    Alone,
}

/// What a request may do with others.
pub(crate) struct Terms<'a> {
    /// It may ask for others too.
    pub(crate) leads: bool,
    /// Digests its nominated fields under a rule (RFC 9111 §4.1).
    pub(crate) selecting: &'a dyn Fn(&VaryRule) -> Digest,
    /// Followers a flight takes.
    pub(crate) followers_max: usize,
}

impl Default for Flights {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
        }
    }
}

impl Flights {
    /// Finds the flight for a request, or begins one. `passed` are flights it was on already, and
    /// has left.
    pub(crate) fn board(
        self: &Arc<Self>,
        now: Now,
        key: Digest,
        terms: &Terms<'_>,
        passed: &[Arc<Flight>],
    ) -> Boarded {
        let mut shard = self.shard(key);
        let known = shard.flights.get(&key).map_or(&[][..], Vec::as_slice);
        for flight in known {
            if passed.iter().any(|left| Arc::ptr_eq(left, flight)) {
                continue;
            }
            if let Some(boarded) = flight.board(self, terms) {
                return boarded;
            }
        }
        let full = known.len() >= PER_TARGET_MAX;
        if !terms.leads || full || shard.is_alone(now, key) {
            return Boarded::Alone;
        }
        let flight = Arc::new(Flight::asking(key));
        shard.of(key).push(Arc::clone(&flight));
        Boarded::Lead(Leading::new(Arc::clone(self), flight))
    }

    /// A response that arrives without a flight is open to followers from now on.
    pub(crate) fn publish(
        &self,
        key: Digest,
        in_flight: &Arc<InFlightResponse>,
    ) -> Option<Arc<Flight>> {
        let mut shard = self.shard(key);
        shard.alone.remove(&key);
        if shard.flights.get(&key).map_or(0, Vec::len) >= PER_TARGET_MAX {
            return None;
        }
        let flight = Arc::new(Flight::in_flight(key, in_flight));
        // the newest is offered first
        shard.of(key).insert(0, Arc::clone(&flight));
        Some(flight)
    }

    /// Remembers until `until` that what this target answers is not to be shared.
    pub(crate) fn mark_alone(&self, now: Now, key: Digest, until: Tick) {
        let mut shard = self.shard(key);
        if shard.alone.len() >= ALONE_MAX {
            shard.alone.retain(|_, until| *until > now.tick);
            if shard.alone.len() >= ALONE_MAX {
                shard.alone.clear();
            }
        }
        shard.alone.insert(key, until);
    }

    /// What this target answers can be shared after all.
    pub(crate) fn mark_shared(&self, key: Digest) {
        self.shard(key).alone.remove(&key);
    }

    /// Nobody boards `flight` any more; who is on it stays.
    pub(crate) fn remove(&self, flight: &Arc<Flight>) {
        let mut shard = self.shard(flight.key());
        if let Entry::Occupied(mut flights) = shard.flights.entry(flight.key()) {
            flights
                .get_mut()
                .retain(|known| !Arc::ptr_eq(known, flight));
            if flights.get().is_empty() {
                flights.remove();
            }
        }
    }

    /// The target was purged or invalidated: what is arriving for it was asked for before, and is
    /// for those alone who are on it.
    pub(crate) fn forget(&self, key: Digest) {
        let in_flight = self.shard(key).flights.remove(&key);
        drop(in_flight);
    }

    /// Everything was purged.
    pub(crate) fn forget_all(&self) {
        for shard in &self.shards {
            let flights = std::mem::take(&mut lock(shard).flights);
            drop(flights);
        }
    }

    fn shard(&self, key: Digest) -> MutexGuard<'_, Shard> {
        let at = usize::try_from(key.1).unwrap_or(0) & (SHARDS - 1);
        lock(&self.shards[at])
    }
}

impl Shard {
    fn of(&mut self, key: Digest) -> &mut Vec<Arc<Flight>> {
        self.flights.entry(key).or_default()
    }

    fn is_alone(&mut self, now: Now, key: Digest) -> bool {
        match self.alone.get(&key) {
            None => false,
            Some(until) if *until > now.tick => true,
            Some(_) => {
                self.alone.remove(&key);
                false
            }
        }
    }
}

/// Every operation leaves the table whole before anything that can fail.
fn lock(shard: &Mutex<Shard>) -> MutexGuard<'_, Shard> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
