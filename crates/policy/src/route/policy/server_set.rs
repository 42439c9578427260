//! The nodes of one target: a small set without memory of its own.

use super::choice::moved;
use crate::route::cluster::Place;

/// Up to [`ServerSet::MAX`] nodes; 18 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerSet {
    places: [u16; Self::MAX],
    len: u8,
}

impl ServerSet {
    /// The most nodes of a target. ASPLOS'98 has no limit; its clusters have up to 16 nodes. A
    /// target that needs more is one for `replicated-hash`, which has no set.
    pub(super) const MAX: usize = 8;

    pub(super) fn of(place: Place) -> Self {
        let mut set = Self::default();
        set.add(place);
        set
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Place> + use<> {
        let Self { places, len } = *self;
        places.into_iter().take(usize::from(len)).map(Place)
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(super) fn contains(&self, place: Place) -> bool {
        self.iter().any(|other| other == place)
    }

    /// Adds a node, if it is not in the set and there is room.
    pub(super) fn add(&mut self, place: Place) {
        if self.len() < Self::MAX && !self.contains(place) {
            self.places[self.len()] = place.0;
            self.len += 1;
        }
    }

    /// Keeps the nodes that are `fit`, in their order.
    pub(super) fn retain(&mut self, mut is_fit: impl FnMut(Place) -> bool) {
        let mut kept = Self::default();
        for place in self.iter() {
            if is_fit(place) {
                kept.add(place);
            }
        }
        *self = kept;
    }

    /// The nodes have other places, as [`Policy::move_nodes`](super::Policy::move_nodes) has them.
    pub(super) fn move_nodes(&mut self, places: &[Option<Place>]) {
        let mut kept = Self::default();
        for place in self.iter().filter_map(|place| moved(places, place)) {
            kept.add(place);
        }
        *self = kept;
    }

    pub(super) fn remove(&mut self, place: Place) {
        self.retain(|other| other != place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn set_holds_each_node_once_up_to_its_maximum() {
        let mut set = ServerSet::of(Place(3));
        set.add(Place(3));
        assert_eq!(set.len(), 1);
        for place in 0..100 {
            set.add(Place(place));
        }
        assert_eq!(set.len(), ServerSet::MAX);
        set.remove(Place(3));
        let places: Vec<u16> = set.iter().map(|place| place.0).collect();
        assert_eq!(places, [0, 1, 2, 4, 5, 6, 7]);
    }
}
