//! Which share of all requests a target has, by a count-min sketch that is halved with time.
//!
//! Four rows of counters, of which a target's smallest is read (Cormode and Muthukrishnan 2005),
//! with conservative update; 16 KiB, whatever the number of targets. A count is never too small
//! since the last halving. It is halved every half second, so that a steady target has the count of
//! about one second: a target that becomes hot is noticed within that time, and forgotten within a
//! few.

use super::rendezvous::mix;
use crate::now::Tick;
use crate::route::cluster::TargetKey;
use alloc::boxed::Box;
use alloc::vec;

const ROWS: usize = 4;
/// Counters a row. The error is e / 1024 of all requests at most, with 98 % (e^-4) certainty: a
/// third of a per cent, below what makes a target hot in clusters of up to 64 nodes.
const WIDTH: usize = 1024;
const HALVED_EVERY_MS: u64 = 500;

/// Requests of a target that are too few to tell its share: of one request, one is all.
const COUNT_MIN: u32 = 64;

/// A target's share at which it takes a quarter of a node: with more it gets a second node. Below
/// that, the bounds of `bounded-hash` have room for the rest of the node's targets.
const NODE_QUARTERS: u64 = 4;

/// Requests of a target in about a second, and its share of all, from which a node of a cluster
/// keeps a copy of what another node has: a lateral hit costs twice the CPU time of an own one.
/// Copies that are requested less often would replace one another in their share of memory
/// ([`COPIES_ARE_ONE_IN`](crate::catalog::COPIES_ARE_ONE_IN)).
const COPIED_COUNT_MIN: u32 = 8;
const COPIED_SHARES: u64 = 256;

/// The sketch.
#[derive(Clone, Debug)]
pub(super) struct HotTargets {
    counters: Box<[u32]>,
    all: u32,
    halved: Tick,
    /// Mixed into the counters of a target: clients choose targets, and must not choose counters.
    secret: u64,
}

impl HotTargets {
    pub(super) fn new(secret: u64) -> Self {
        Self {
            counters: vec![0; ROWS * WIDTH].into_boxed_slice(),
            all: 0,
            halved: Tick(0),
            secret,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        size_of_val(&*self.counters)
    }

    /// Counts a request.
    pub(super) fn note(&mut self, now: Tick, target: TargetKey) {
        self.age(now);
        let places = self.places(target);
        let count = self.least(places);
        for place in places {
            if self.counters[place] == count {
                self.counters[place] = count.saturating_add(1);
            }
        }
        self.all = self.all.saturating_add(1);
    }

    /// How many of `nodes` nodes the target needs, so that none has more of it than a quarter of
    /// its own share of all requests; at least 1.
    pub(super) fn nodes_of(&self, target: TargetKey, nodes: u64) -> u64 {
        let count = self.least(self.places(target));
        if count < COUNT_MIN {
            return 1;
        }
        let needs = u64::from(count) * nodes * NODE_QUARTERS;
        needs
            .div_ceil(u64::from(self.all.max(1)))
            .clamp(1, nodes.max(1))
    }

    /// Whether it is requested so often that each node that is asked for it should keep it.
    pub(super) fn is_copied(&self, target: TargetKey) -> bool {
        let count = self.least(self.places(target));
        let is_share = u64::from(count) * COPIED_SHARES >= u64::from(self.all);
        count >= COPIED_COUNT_MIN && is_share
    }

    fn age(&mut self, now: Tick) {
        let halvings = now.ms_since(self.halved) / HALVED_EVERY_MS;
        if halvings == 0 {
            return;
        }
        let shift = u32::try_from(halvings).unwrap_or(u32::MAX);
        let halve = |count: u32| count.checked_shr(shift).unwrap_or(0);
        for counter in &mut self.counters {
            *counter = halve(*counter);
        }
        self.all = halve(self.all);
        self.halved = self.halved.plus_ms(halvings * HALVED_EVERY_MS);
    }

    fn least(&self, places: [usize; ROWS]) -> u32 {
        let counts = places.map(|place| self.counters[place]);
        counts.into_iter().min().unwrap_or(0)
    }

    /// One counter in each row, by ten bits each.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "ten bits of the hash are taken"
    )]
    fn places(&self, target: TargetKey) -> [usize; ROWS] {
        let hash = mix(target.0 ^ self.secret);
        core::array::from_fn(|row| row * WIDTH + (hash >> (row * 16)) as usize % WIDTH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 30 % of `a_second` requests are for one target, from 10 s on.
    fn nodes_after(ms: u64, a_second: u64, nodes: u64) -> u64 {
        let mut hot = HotTargets::new(1);
        let mut other = 0;
        let mut note = |hot: &mut HotTargets, from: u64, to: u64, share: u64| {
            for step in 0..(to - from) * a_second / 1000 {
                let now = Tick(from + step * 1000 / a_second);
                other = mix(other + 1);
                let target = if step % 10 < share { 7 } else { other };
                hot.note(now, TargetKey(target));
            }
        };
        note(&mut hot, 0, 10_000, 0);
        note(&mut hot, 10_000, 10_000 + ms, 3);
        hot.nodes_of(TargetKey(7), nodes)
    }

    #[test]
    fn target_of_high_rate_gets_its_nodes_within_a_second() {
        let check = |ms, a_second, nodes, expected: core::ops::RangeInclusive<u64>| {
            let got = nodes_after(ms, a_second, nodes);
            assert!(expected.contains(&got), "{ms} {a_second} {nodes}: {got}");
        };
        check(1000, 2000, 3, 3..=3);
        check(1000, 2000, 16, 14..=16);
        check(3000, 2000, 64, 64..=64);
        // 10 requests a second are too few for a share, and no load either
        check(3000, 10, 16, 1..=1);
        check(0, 2000, 16, 1..=1);
    }

    #[test]
    fn target_is_copied_from_its_count_and_its_share_on() {
        let check = |requests: u64, others: u64, expected| {
            let mut hot = HotTargets::new(1);
            for _ in 0..requests {
                hot.note(Tick(1), TargetKey(7));
            }
            for other in 0..others {
                hot.note(Tick(1), TargetKey(mix(other)));
            }
            assert_eq!(hot.is_copied(TargetKey(7)), expected, "{requests} {others}");
        };
        check(7, 0, false);
        check(8, 0, true);
        check(8, 8 * 255, true);
        check(8, 8 * 255 + 1, false);
    }

    #[test]
    fn target_that_is_hot_no_longer_is_forgotten_within_seconds() {
        let mut hot = HotTargets::new(1);
        for ms in 0..5000 {
            hot.note(Tick(ms), TargetKey(7));
        }
        assert_eq!(hot.nodes_of(TargetKey(7), 8), 8);
        for ms in 5000..10_000 {
            hot.note(Tick(ms), TargetKey(mix(ms)));
        }
        assert_eq!(hot.nodes_of(TargetKey(7), 8), 1);
    }

    #[test]
    fn targets_of_equal_rates_need_one_node_each() {
        let mut hot = HotTargets::new(3);
        for step in 0..200_000 {
            hot.note(Tick(step / 20), TargetKey(mix(step % 1000)));
        }
        for target in 0..1000 {
            assert_eq!(hot.nodes_of(TargetKey(mix(target)), 16), 1, "{target}");
        }
    }
}
