//! The virtual clock, and what is going to happen.
//!
//! Beside the live proxy's clock this is the only place that makes `policy::Now`: a decision does
//! not depend on which world it is in.

mod event_queue;
pub(crate) mod slab;

pub(crate) use event_queue::EventQueue;
use weir_policy::{Now, Tick};
use weir_semantics::Timestamp;

/// Nanoseconds since the beginning of the run.
pub(crate) type Nanos = u64;

/// Nanoseconds in a microsecond: a trace counts in those.
pub(crate) const MICROSECOND: Nanos = 1000;
pub(crate) const MILLISECOND: Nanos = 1_000_000;
const SECOND: Nanos = 1_000_000_000;

/// What happens to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The next stage of an exchange.
    Step(u32),
    /// An acknowledgement reaches the sender towards a client.
    Acknowledged(u32),
    /// A client has the last byte of its response.
    Received(u32),
    /// The sender to a client notices the disconnect.
    Left(u32),
    /// Packets of a fetch reach the queue in front of the proxy.
    Queued(u32),
    /// A packet of a fetch reaches the proxy.
    Arrived(u32),
    /// A fetch in the background may take more.
    Resumed(u32),
    /// An exchange has waited for others as long as it may.
    WaitedLong(u32),
}

/// Time, and the events to come in the order of their times; of two at one time the one that was
/// made first comes first.
#[derive(Debug)]
pub(crate) struct World {
    /// What the wall clock said at the beginning, microseconds since 1970.
    start_us: i64,
    /// The same in seconds, and the nanoseconds beyond: it is looked at with every event.
    start: (i64, Nanos),
    at: Nanos,
    now: Now,
    queue: EventQueue,
    made: u64,
}

impl World {
    /// A world whose wall clock says `start_us`, microseconds since 1970.
    pub(crate) fn new(start_us: i64) -> Self {
        let beyond_us = start_us.rem_euclid(1_000_000) as u64;
        let start = (start_us.div_euclid(1_000_000), beyond_us * MICROSECOND);
        Self {
            start_us,
            start,
            at: 0,
            now: now(start, 0),
            queue: EventQueue::default(),
            made: 0,
        }
    }

    pub(crate) const fn at(&self) -> Nanos {
        self.at
    }

    /// The time of a decision.
    pub(crate) const fn now(&self) -> Now {
        self.now
    }

    /// The time of a decision at `at`.
    pub(crate) const fn now_at(&self, at: Nanos) -> Now {
        now(self.start, at)
    }

    /// Events that were made so far.
    pub(crate) const fn made(&self) -> u64 {
        self.made
    }

    const fn stand_at(&mut self, at: Nanos) {
        self.at = at;
        self.now = now(self.start, at);
    }

    /// When something happens that the trace puts at `at_us`; never before the present.
    pub(crate) fn of_trace(&self, at_us: i64) -> Nanos {
        let since_us = u64::try_from(at_us.saturating_sub(self.start_us)).unwrap_or(0);
        since_us.saturating_mul(MICROSECOND).max(self.at)
    }

    /// Nothing happens before `at`: time passes until then.
    pub(crate) fn pass_until(&mut self, at: Nanos) {
        self.stand_at(self.at.max(at));
    }

    pub(crate) fn schedule(&mut self, at: Nanos, event: Event) {
        debug_assert!(at >= self.at, "an event in the past");
        let (kind, whom) = event.split();
        let order = (self.made << WHOM_BITS) | u64::from(whom);
        self.made = (self.made + 1) & MADE_MASK;
        // the kind stands behind the order of making: it must not decide
        let low = (order << KIND_BITS) | u64::from(kind);
        let key = (u128::from(at) << 64) | u128::from(low);
        self.queue.push(key);
    }

    /// The next event before `until`; the clock then stands at its time.
    pub(crate) fn next(&mut self, until: Nanos) -> Option<Event> {
        let key = self.queue.pop_below(u128::from(until) << 64)?;
        self.stand_at((key >> 64) as u64);
        #[expect(clippy::cast_possible_truncation, reason = "the lower half")]
        Some(Event::joined(key as u64))
    }
}

/// The tick of a run without a wall clock.
pub(crate) const fn tick(at: Nanos) -> Tick {
    Tick(at / MILLISECOND)
}

const fn now((start_s, beyond_ns): (i64, Nanos), at: Nanos) -> Now {
    Now {
        wall: Timestamp(start_s + ((beyond_ns + at) / SECOND) as i64),
        tick: tick(at),
    }
}

/// Kinds of events.
const KIND_BITS: u32 = 3;
/// Things under way at once: 33 million.
const WHOM_BITS: u32 = 25;
/// The rest counts events: after 68 thousand million the count starts again at 0, and two events of
/// the same nanosecond may change places.
const MADE_MASK: u64 = (1 << (64 - KIND_BITS - WHOM_BITS)) - 1;

impl Event {
    const fn split(self) -> (u8, u32) {
        match self {
            Self::Step(whom) => (0, whom),
            Self::Acknowledged(whom) => (1, whom),
            Self::Received(whom) => (2, whom),
            Self::Left(whom) => (3, whom),
            Self::Queued(whom) => (4, whom),
            Self::Arrived(whom) => (5, whom),
            Self::Resumed(whom) => (6, whom),
            Self::WaitedLong(whom) => (7, whom),
        }
    }

    const fn joined(low: u64) -> Self {
        let whom = ((low >> KIND_BITS) & ((1 << WHOM_BITS) - 1)) as u32;
        match low & ((1 << KIND_BITS) - 1) {
            0 => Self::Step(whom),
            1 => Self::Acknowledged(whom),
            2 => Self::Received(whom),
            3 => Self::Left(whom),
            4 => Self::Queued(whom),
            5 => Self::Arrived(whom),
            6 => Self::Resumed(whom),
            _ => Self::WaitedLong(whom),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_occur_in_time_order_and_ties_in_order_of_scheduling() {
        let mut world = World::new(0);
        world.schedule(20, Event::Resumed(1));
        world.schedule(10, Event::Arrived(2));
        world.schedule(10, Event::Step(3));
        world.schedule(10, Event::Queued((1 << WHOM_BITS) - 1));
        let mut seen = Vec::new();
        while let Some(event) = world.next(21) {
            seen.push((world.at(), event));
        }
        let expected = [
            (10, Event::Arrived(2)),
            (10, Event::Step(3)),
            (10, Event::Queued((1 << WHOM_BITS) - 1)),
            (20, Event::Resumed(1)),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn events_scheduled_meanwhile_occur_once_and_in_order() {
        let mut world = World::new(0);
        let mut naive: Vec<(Nanos, u32)> = Vec::new();
        let chance = &mut weir_workload::Chance::new(1, 0);
        let mut made = 0;
        for _ in 0..20_000 {
            for _ in 0..chance.below(4) {
                let far = if chance.is(0.5) { 3 } else { 50 };
                let at = world.at() + chance.below(far);
                world.schedule(at, Event::Step(made));
                naive.push((at, made));
                made = (made + 1) % (1 << WHOM_BITS);
            }
            let until = world.at() + chance.below(20);
            while let Some(event) = world.next(until) {
                let next = naive.iter().min_by_key(|(at, number)| (*at, *number));
                let next = next.copied().unwrap();
                assert_eq!((world.at(), event), (next.0, Event::Step(next.1)));
                naive.retain(|other| *other != next);
            }
            world.pass_until(until);
            assert!(naive.iter().all(|(at, _)| *at >= until));
        }
    }

    #[test]
    fn event_at_the_bound_does_not_happen_before_it() {
        let mut world = World::new(0);
        world.schedule(10, Event::Step(0));
        assert_eq!(world.next(10), None);
        assert_eq!(world.at(), 0);
        assert_eq!(world.next(11), Some(Event::Step(0)));
    }

    #[test]
    fn wall_clock_counts_seconds_from_1970_and_ticks_from_the_start() {
        let mut world = World::new(1_999_600);
        assert_eq!(world.now().wall, Timestamp(1));
        world.pass_until(399 * MICROSECOND);
        assert_eq!(world.now().wall, Timestamp(1));
        world.pass_until(400 * MICROSECOND);
        assert_eq!(world.now().wall, Timestamp(2));
        world.pass_until(MILLISECOND);
        assert_eq!(world.now().tick, Tick(1));
    }
}
