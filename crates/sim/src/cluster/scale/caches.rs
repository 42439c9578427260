//! The caches of all nodes of a network.
//!
//! A node holds few of the targets that there are, so one table has the entries of all nodes, by
//! node and number: some 30 bytes an entry, where an array by number would have four bytes for each
//! target in each node.

use super::setting::ScaleSetting;
use crate::hashing::ByNumber;
use crate::hit_ratio::hits::digest;
use crate::hit_ratio::keys::NumberedRequest;
use weir_policy::catalog::{Catalog, Slot};

/// The number of the target of a flash crowd.
pub(super) const CROWD_TARGET: u32 = u32::MAX - 1;

/// What all nodes hold.
#[derive(Debug)]
pub(super) struct NodeCaches {
    nodes: Vec<NodeCache>,
    /// By [`place`].
    slots: ByNumber<Slot>,
    victims: Vec<Slot>,
    one_in: u64,
    /// Numbers below are hot.
    hot: u32,
}

#[derive(Debug)]
struct NodeCache {
    catalog: Catalog,
    /// By slot.
    number_of: Vec<u32>,
}

impl NodeCaches {
    pub(super) fn new(setting: &ScaleSetting, nodes: usize, hot: u32) -> Self {
        let one_in = u64::from(setting.one_in.get());
        let cache = |_| {
            let catalog = Catalog::content_only(setting.cache_bytes / one_in, setting.eviction);
            NodeCache {
                catalog: match setting.is_sampled() {
                    true => catalog.sampled_from(setting.cache_bytes),
                    false => catalog,
                },
                number_of: Vec::new(),
            }
        };
        Self {
            nodes: (0..nodes).map(cache).collect(),
            slots: ByNumber::default(),
            victims: Vec::new(),
            one_in,
            hot,
        }
    }

    /// Whether the target with this number stands for itself alone.
    pub(super) const fn is_hot(&self, number: u32) -> bool {
        number < self.hot || number == CROWD_TARGET
    }

    /// A request for what a node holds; whether it does.
    pub(super) fn find(&mut self, node: usize, number: u32) -> bool {
        let Some(slot) = self.slots.get(&place(node, number)) else {
            return false;
        };
        self.nodes[node].catalog.touch(*slot);
        true
    }

    /// Whether a node holds a response; it is no request.
    pub(super) fn holds(&self, node: usize, number: u32) -> bool {
        self.slots.contains_key(&place(node, number))
    }

    /// A node keeps the response, which it does not hold yet, as its own or as a copy of another
    /// node's, unless it is too large.
    pub(super) fn store(&mut self, node: usize, asked: NumberedRequest, is_copy: bool) {
        let NumberedRequest { number, size_bytes } = asked;
        let size_bytes = match self.is_hot(number) {
            true => size_bytes.div_ceil(self.one_in),
            false => size_bytes,
        };
        let NodeCache { catalog, number_of } = &mut self.nodes[node];
        let key = digest(number);
        let admitted = catalog
            .check_newcomer(key, size_bytes)
            .and_then(|()| match is_copy {
                true => catalog.admit_copy(key, size_bytes, &mut self.victims),
                false => catalog.admit(key, size_bytes, &mut self.victims),
            });
        for victim in self.victims.drain(..) {
            self.slots.remove(&place(node, number_of[victim.index()]));
        }
        if let Ok(slot) = admitted {
            self.slots.insert(place(node, number), slot);
            if slot.index() >= number_of.len() {
                number_of.resize(slot.index() + 1, 0);
            }
            number_of[slot.index()] = number;
        }
    }

    /// Responses that all nodes hold, of all targets.
    pub(super) fn residents(&self) -> u64 {
        let hot = self.slots.keys().filter(|key| self.is_hot(number(**key)));
        let hot = hot.count() as u64;
        hot + (self.slots.len() as u64 - hot) * self.one_in
    }
}

fn place(node: usize, number: u32) -> u64 {
    (node as u64) << 32 | u64::from(number)
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half is taken")]
const fn number(place: u64) -> u32 {
    place as u32
}
