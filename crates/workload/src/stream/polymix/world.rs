//! Where ids come from: new ones are counted up, old ones are drawn from the working set.
//!
//! A world is three numbers, whatever it has produced: ids are contiguous, the working set is a
//! window at their end, and the hot set is a window in that. So seven million ids take no more room
//! than seven.
//!
//! Polygraph keeps a world for each server, kind of content and client process. Here there is one
//! for each kind, and an id's server is a hash of the id: the same uniform law over the same ids,
//! but the hot set stays 1 % of the working set when a run is scaled down to a few ids a server.

use crate::Chance;
use crate::number::whole;

/// How repeated ids are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Popularity {
    /// The hot set's share of the working set, in [0, 1].
    pub(super) hot_set_share: f64,
    /// How often an id is drawn from the hot set, in [0, 1].
    pub(super) hot_set_chance: f64,
}

/// A counter of ids and the window of them that are requested again. 32 bytes.
#[derive(Clone, Debug, Default)]
pub(super) struct World {
    /// Ids `0..size` exist.
    size: u64,
    /// How many of the youngest may be repeated: all, until the working set is frozen.
    window: Option<u64>,
    /// The first id of the hot set.
    hot_at: u64,
}

impl World {
    /// A new id.
    pub(super) fn produce(&mut self, popularity: Popularity, chance: &mut Chance) -> u64 {
        let id = self.size;
        self.size += 1;
        self.keep_hot_inside(popularity, chance);
        id
    }

    /// An id of the working set; `None` where there is none.
    pub(super) fn repeat(&self, popularity: Popularity, chance: &mut Chance) -> Option<u64> {
        let ids = self.working_set();
        if ids.is_empty() {
            return None;
        }
        // as in Polygraph, nothing is hot before the working set has its size
        if self.window.is_some() && chance.is(popularity.hot_set_chance) {
            let hot = self.hot_set(popularity);
            return Some(hot.start + chance.below(hot.end - hot.start));
        }
        Some(ids.start + chance.below(ids.end - ids.start))
    }

    /// From now on the working set keeps its size, and its oldest id is removed when a new one is
    /// produced.
    pub(super) fn freeze(&mut self, popularity: Popularity, chance: &mut Chance) {
        if self.window.is_none() {
            self.window = Some(self.size);
            self.draw_hot(popularity, chance);
        }
    }

    /// The ids that may be repeated.
    pub(super) fn working_set(&self) -> std::ops::Range<u64> {
        let window = self.window.unwrap_or(self.size);
        self.size - window..self.size
    }

    /// The ids that are repeated more often than others, once the working set is frozen.
    pub(super) fn hot_set(&self, popularity: Popularity) -> std::ops::Range<u64> {
        let ids = self.working_set();
        let width = hot_width(ids.end - ids.start, popularity);
        self.hot_at..self.hot_at + width
    }

    /// The hot set is chosen again when its first id was removed from the working set.
    fn keep_hot_inside(&mut self, popularity: Popularity, chance: &mut Chance) {
        if self.window.is_some() && self.hot_at < self.working_set().start {
            self.draw_hot(popularity, chance);
        }
    }

    fn draw_hot(&mut self, popularity: Popularity, chance: &mut Chance) {
        let ids = self.working_set();
        let count = ids.end - ids.start;
        if count > 0 {
            let places = count - hot_width(count, popularity) + 1;
            self.hot_at = ids.start + chance.below(places);
        }
    }
}

/// How many ids are hot among `count`: at least one, at most all.
fn hot_width(count: u64, popularity: Popularity) -> u64 {
    let width: u64 = whole((count as f64 * popularity.hot_set_share).round());
    width.clamp(1, count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POPULARITY: Popularity = Popularity {
        hot_set_share: 0.01,
        hot_set_chance: 0.1,
    };

    fn frozen(count: u64, chance: &mut Chance) -> World {
        let mut world = World::default();
        for expected in 0..count {
            assert_eq!(world.produce(POPULARITY, chance), expected);
        }
        world.freeze(POPULARITY, chance);
        world
    }

    #[test]
    fn frozen_working_set_keeps_its_size_and_moves_with_each_new_id() {
        let mut chance = Chance::new(1, 0);
        let mut world = frozen(1000, &mut chance);
        for made in 1..5000 {
            world.produce(POPULARITY, &mut chance);
            assert_eq!(world.working_set(), made..made + 1000);
            let hot = world.hot_set(POPULARITY);
            assert_eq!(hot.end - hot.start, 10);
            assert!(hot.start >= made && hot.end <= made + 1000, "{hot:?}");
        }
    }

    #[test]
    fn empty_world_has_nothing_to_repeat() {
        let mut chance = Chance::new(1, 0);
        assert_eq!(World::default().repeat(POPULARITY, &mut chance), None);
        let mut world = frozen(0, &mut chance);
        assert_eq!(world.repeat(POPULARITY, &mut chance), None);
        // frozen before it had an id: it can produce, and what it produced is not requested again
        assert_eq!(world.produce(POPULARITY, &mut chance), 0);
        assert_eq!(world.repeat(POPULARITY, &mut chance), None);
    }

    #[test]
    fn hot_set_gets_its_share_of_repeats() {
        const DRAWS: u32 = 200_000;
        let mut chance = Chance::new(2, 0);
        let world = frozen(10_000, &mut chance);
        let hot = world.hot_set(POPULARITY);
        let mut hits = 0_u32;
        for _ in 0..DRAWS {
            let id = world.repeat(POPULARITY, &mut chance);
            hits += u32::from(id.is_some_and(|id| hot.contains(&id)));
        }
        // one in ten by choice, one in a hundred of the others by accident
        let share = f64::from(hits) / f64::from(DRAWS);
        assert!((share - (0.1 + 0.9 * 0.01)).abs() < 0.003, "{share}");
    }

    #[test]
    fn world_takes_at_most_32_bytes() {
        // a guarantee of the crate: seven million ids take no more room than seven
        assert!(size_of::<World>() <= 32);
        assert!(!std::mem::needs_drop::<World>(), "it owns no heap memory");
    }

    #[test]
    fn repeat_is_in_the_working_set() {
        let mut chance = Chance::new(3, 0);
        let mut world = frozen(50, &mut chance);
        for _ in 0..10_000 {
            world.produce(POPULARITY, &mut chance);
            let id = world.repeat(POPULARITY, &mut chance);
            assert!(id.is_some_and(|id| world.working_set().contains(&id)));
        }
    }
}
