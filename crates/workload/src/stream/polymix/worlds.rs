//! Which world a request goes to: one that all robots share, or one of the robot's own.

use super::world::{Popularity, World};
use crate::{Chance, PolyMix};

/// A world for each kind of content that all robots share, and, where interest is not all
/// public, one for each robot and kind.
#[derive(Clone, Debug)]
pub(super) struct Worlds {
    popularity: Popularity,
    public_interest: f64,
    kinds: usize,
    public: Vec<World>,
    private: Vec<World>,
    is_frozen: bool,
}

/// An id, and whether it was requested before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) index: u64,
    pub(super) is_new: bool,
    /// The robot whose world it is; `None`: it is public.
    pub(super) owner: Option<u32>,
    /// The ids of the world's working set next to which another may be chosen instead.
    pub(super) first: u64,
    pub(super) end: u64,
}

impl Worlds {
    pub(super) fn new(robots: u32, polymix: &PolyMix) -> Self {
        let kinds = polymix.contents.len();
        let own = if polymix.public_interest < 1.0 {
            robots
        } else {
            0
        };
        Self {
            popularity: Popularity {
                hot_set_share: polymix.hot_set_share,
                hot_set_chance: polymix.hot_set_chance,
            },
            public_interest: polymix.public_interest,
            kinds,
            public: vec![World::default(); kinds],
            private: vec![World::default(); kinds * own as usize],
            is_frozen: false,
        }
    }

    /// Draws the world, and from it an old id with the chance `recurrence`, else the next new one.
    /// A world without old ids produces.
    pub(super) fn pick(
        &mut self,
        kind: u8,
        robot: u32,
        recurrence: f64,
        chance: &mut Chance,
    ) -> Pick {
        let is_public = self.private.is_empty() || chance.is(self.public_interest);
        let world = if is_public {
            &mut self.public[usize::from(kind)]
        } else {
            &mut self.private[robot as usize * self.kinds + usize::from(kind)]
        };
        let repeated = if chance.is(recurrence) {
            world.repeat(self.popularity, chance)
        } else {
            None
        };
        let index = repeated.unwrap_or_else(|| world.produce(self.popularity, chance));
        let ids = world.working_set();
        Pick {
            index,
            is_new: repeated.is_none(),
            owner: (!is_public).then_some(robot),
            first: ids.start,
            end: ids.end,
        }
    }

    /// All working sets keep their present sizes from now on.
    pub(super) fn freeze(&mut self, chance: &mut Chance) {
        if !self.is_frozen {
            self.is_frozen = true;
            for world in self.public.iter_mut().chain(&mut self.private) {
                world.freeze(self.popularity, chance);
            }
        }
    }

    #[cfg(test)]
    pub(super) fn public_hot_set(&self, kind: u8) -> std::ops::Range<u64> {
        self.public[usize::from(kind)].hot_set(self.popularity)
    }

    #[cfg(test)]
    pub(super) fn public_working_set(&self, kind: u8) -> std::ops::Range<u64> {
        self.public[usize::from(kind)].working_set()
    }

    /// How many ids may be repeated.
    #[cfg(test)]
    pub(super) fn working_set_ids(&self) -> u64 {
        let worlds = self.public.iter().chain(&self.private);
        worlds
            .map(|world| world.working_set())
            .map(|ids| ids.end - ids.start)
            .sum()
    }
}
