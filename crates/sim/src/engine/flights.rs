//! Targets that are being asked for: one request leads, those that want the same follow. As
//! `proxy/src/flights` has it.

use super::slab::Slab;
use crate::hashing::ByNumber;
use weir_policy::{Now, Tick};

/// Requests that ask the next hop for one flight, one after the other; if all fail, each who waited
/// asks for itself.
pub(super) const LEADERS_MAX: u32 = 2;

/// Targets that are remembered as not to be shared; for another one those whose time is over are
/// forgotten, and if there are none, all.
const ALONE_MAX: usize = 65_536;

/// One target that is being asked for.
#[derive(Debug, Default)]
pub(super) struct Flight {
    pub(super) target: u64,
    /// No other one has it, ever.
    pub(super) number: u64,
    /// The response, once its head is there.
    pub(super) in_flight: Option<u32>,
    pub(super) leaders: u32,
    /// Who waits for the head, in the order of coming.
    pub(super) waiting: Vec<u32>,
    /// The next flight of the same target: for another variant.
    next: Option<u32>,
}

/// All flights.
#[derive(Debug, Default)]
pub(super) struct Flights {
    flights: Slab<Flight>,
    made: u64,
    first: ByNumber<u32>,
    alone: ByNumber<Tick>,
}

impl Flights {
    /// The flights of a target: first those of what is arriving already, the newest in front, then
    /// in the order of asking.
    pub(super) fn of(&self, target: u64) -> impl Iterator<Item = u32> + '_ {
        let first = self.first.get(&target).copied();
        std::iter::successors(first, |id| self.flights.at(*id).next)
    }

    pub(super) fn at(&self, id: u32) -> &Flight {
        self.flights.at(id)
    }

    pub(super) fn at_mut(&mut self, id: u32) -> &mut Flight {
        self.flights.at_mut(id)
    }

    /// A flight whose response is asked for.
    pub(super) fn begin(&mut self, target: u64) -> u32 {
        let id = self.make(target, None);
        let last = self.of(target).last();
        match last {
            Some(last) => self.flights.at_mut(last).next = Some(id),
            None => {
                self.first.insert(target, id);
            }
        }
        id
    }

    /// A flight for a response that is arriving, and that nobody waited for: it is open to those
    /// who come from now on.
    pub(super) fn publish(&mut self, target: u64, in_flight: u32) -> u32 {
        self.mark_shared(target);
        let id = self.make(target, Some(in_flight));
        self.flights.at_mut(id).next = self.first.insert(target, id);
        id
    }

    fn make(&mut self, target: u64, in_flight: Option<u32>) -> u32 {
        self.made += 1;
        let id = self.flights.reuse();
        let flight = self.flights.at_mut(id);
        flight.target = target;
        flight.number = self.made;
        flight.in_flight = in_flight;
        flight.leaders = 1;
        flight.waiting.clear();
        flight.next = None;
        id
    }

    /// Nobody boards it any more; who waited is in `waiting`.
    pub(super) fn remove(&mut self, id: u32, waiting: &mut Vec<u32>) {
        waiting.append(&mut self.flights.at_mut(id).waiting);
        self.unlink(id);
        self.flights.remove(id);
    }

    /// Whether it is still offered to those who come. One that was forgotten is not, though those
    /// on it stay.
    fn unlink(&mut self, id: u32) {
        let (target, next) = (self.flights.at(id).target, self.flights.at(id).next);
        let Some(first) = self.first.get(&target).copied() else {
            return;
        };
        if first == id {
            match next {
                Some(next) => self.first.insert(target, next),
                None => self.first.remove(&target),
            };
            return;
        }
        let mut before = first;
        while let Some(after) = self.flights.at(before).next {
            if after == id {
                self.flights.at_mut(before).next = next;
                return;
            }
            before = after;
        }
    }

    /// The target was invalidated: what is on its way was asked for before, and is for those alone
    /// who are on it.
    pub(super) fn forget(&mut self, target: u64) {
        let mut at = self.first.remove(&target);
        while let Some(id) = at {
            at = self.flights.at_mut(id).next.take();
        }
    }

    pub(super) fn mark_alone(&mut self, now: Now, target: u64, until: Tick) {
        if self.alone.len() >= ALONE_MAX {
            self.alone.retain(|_, until| *until > now.tick);
            if self.alone.len() >= ALONE_MAX {
                self.alone.clear();
            }
        }
        self.alone.insert(target, until);
    }

    pub(super) fn mark_shared(&mut self, target: u64) {
        self.alone.remove(&target);
    }

    pub(super) fn is_alone(&mut self, now: Now, target: u64) -> bool {
        match self.alone.get(&target) {
            None => false,
            Some(until) if *until > now.tick => true,
            Some(_) => {
                self.alone.remove(&target);
                false
            }
        }
    }
}
