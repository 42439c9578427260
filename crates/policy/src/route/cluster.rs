//! What a routing policy sees of a cluster: its nodes as they are at the time of a choice.
//!
//! The driver makes the view: a front end from what it counts itself and from what the nodes tell,
//! the simulator from its own nodes. A policy that needs more than the driver knows reads
//! [`HoldsIt::Unknown`], a miss pressure of 0, and no response time.

use crate::digest::{KeyHasher, Secret};
use core::num::{NonZeroU16, NonZeroU32};
use weir_semantics::words;

/// The most nodes of a view; those behind are never chosen.
pub const NODES_MAX: usize = 1024;

/// A node's place in the view. A node keeps its place for as long as it is in the view; before
/// another node gets the place, [`Policy::forget`](super::policy::Policy::forget) is called for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u16);

impl Place {
    /// As an index into the nodes of a view.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The place of the node at `index` of a view.
    pub(super) fn at(index: usize) -> Self {
        Self(u16::try_from(index).unwrap_or(u16::MAX))
    }
}

/// A hash of a node's name, equal on all front ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeKey(pub u64);

impl NodeKey {
    /// Of a node with this name, for front ends that share `secret`.
    #[must_use]
    pub fn of(secret: &Secret, name: &str) -> Self {
        let mut hasher = KeyHasher::new(secret);
        hasher.part(name.as_bytes());
        Self(hasher.finish().0)
    }
}

/// A hash of a target, equal on all front ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TargetKey(pub u64);

impl TargetKey {
    /// Of the target with this host, in lower case, and this path with its query, for front ends
    /// that share `secret`. Clients that know the secret can choose targets of one node.
    #[must_use]
    pub fn of(secret: &Secret, host: &str, path: &str) -> Self {
        let mut hasher = KeyHasher::new(secret);
        hasher.part(host.as_bytes());
        hasher.part(path.as_bytes());
        Self(hasher.finish().0)
    }
}

/// A node's share of the requests, relative to the weights of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(NonZeroU16);

impl Weight {
    /// The weight of a node for which none is set.
    pub const ONE: Self = Self(NonZeroU16::MIN);

    /// `weight`; none if it is 0: a node that is to get nothing is draining.
    #[must_use]
    pub const fn new(weight: u16) -> Option<Self> {
        match NonZeroU16::new(weight) {
            Some(weight) => Some(Self(weight)),
            None => None,
        }
    }

    /// As a number, 1 or more.
    #[must_use]
    pub const fn get(self) -> u16 {
        self.0.get()
    }
}

/// Outstanding requests, in parts of 1024 of a request. Parts, because a node that serves one of
/// several requests of a pipelined batch has a part of the load of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load(u32);

impl Load {
    /// No request.
    pub const NONE: Self = Self(0);

    /// So many requests; at most 4 194 303.
    #[must_use]
    pub const fn requests(requests: u32) -> Self {
        Self(requests.saturating_mul(Self::PARTS))
    }

    /// One of `requests` requests of a batch.
    #[must_use]
    pub const fn share_of(requests: NonZeroU32) -> Self {
        Self(Self::PARTS / requests.get())
    }

    /// In parts of 1024 of a request.
    #[must_use]
    pub const fn parts(self) -> u32 {
        self.0
    }

    /// This and `more`.
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }

    /// This without `less`; not below none.
    #[must_use]
    pub const fn minus(self, less: Self) -> Self {
        Self(self.0.saturating_sub(less.0))
    }

    const PARTS: u32 = 1024;
}

words! {
    /// Where a node is in its life as a member.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum NodeState {
        /// It takes requests; its cache is still to be filled.
        Joining = "joining",
        /// It takes requests.
        In = "in",
        /// It finishes what it has and takes no new request.
        Draining = "draining",
        /// It cannot be reached, or is no member any more.
        Gone = "gone",
        /// It takes requests of its own clients alone, and keeps nothing.
        FrontEnd = "front-end",
    }
}

impl NodeState {
    /// The state with this word.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

words! {
    /// Whether a node holds a response, as far as another one knows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum HoldsIt {
        /// It does, as far as is known.
        Yes = "yes",
        /// It did not when it said so last.
        No = "no",
        /// Nothing is known.
        Unknown = "unknown",
    }
}

/// A node at the time of a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// A hash of its name.
    pub key: NodeKey,
    /// Its outstanding requests.
    pub load: Load,
    /// Reads that are queued at its disk and fetches that wait for the origin.
    pub miss_pressure: u32,
    /// Its response time, microseconds; none if it is not known.
    pub response_time_us: Option<NonZeroU32>,
    /// Its share.
    pub weight: Weight,
    /// Whether it takes requests.
    pub state: NodeState,
}

impl Node {
    /// A node of weight 1 that has nothing to do.
    #[must_use]
    pub const fn new(key: NodeKey) -> Self {
        Self {
            key,
            load: Load::NONE,
            miss_pressure: 0,
            response_time_us: None,
            weight: Weight::ONE,
            state: NodeState::In,
        }
    }

    /// Whether a request can be sent to it.
    #[must_use]
    pub const fn takes_requests(&self) -> bool {
        matches!(self.state, NodeState::Joining | NodeState::In)
    }
}

/// A cluster at the time of a choice for one target.
#[derive(Clone, Copy, Debug)]
pub struct ClusterView<'a> {
    /// The nodes by their places.
    nodes: &'a [Node],
    /// Whether they hold the target, by place; those behind its end: unknown.
    holds: &'a [HoldsIt],
}

impl<'a> ClusterView<'a> {
    /// A view of `nodes`, at most [`NODES_MAX`], of which it is not known what they hold.
    #[must_use]
    pub fn new(nodes: &'a [Node]) -> Self {
        Self {
            nodes: &nodes[..nodes.len().min(NODES_MAX)],
            holds: &[],
        }
    }

    /// The same with what is known of the target, by place.
    #[must_use]
    pub const fn with_holds(self, holds: &'a [HoldsIt]) -> Self {
        Self { holds, ..self }
    }

    /// All nodes by their places.
    #[must_use]
    pub const fn nodes(&self) -> &'a [Node] {
        self.nodes
    }

    /// The node at `place`, if it takes requests.
    #[must_use]
    pub fn taking(&self, place: Place) -> Option<&'a Node> {
        self.nodes
            .get(place.index())
            .filter(|node| node.takes_requests())
    }

    /// The nodes that take requests.
    pub fn all_taking(&self) -> impl Iterator<Item = (Place, &'a Node)> + use<'a> {
        let nodes = self.nodes.iter().enumerate();
        let taking = nodes.filter(|(_, node)| node.takes_requests());
        taking.map(|(index, node)| (Place::at(index), node))
    }

    /// Whether the node at `place` holds the target.
    #[must_use]
    pub fn holds(&self, place: Place) -> HoldsIt {
        let holds = self.holds.get(place.index());
        holds.copied().unwrap_or(HoldsIt::Unknown)
    }

    /// The sums over the nodes that take requests.
    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for node in self.nodes.iter().filter(|node| node.takes_requests()) {
            totals.nodes += 1;
            totals.weight += u64::from(node.weight.get());
            totals.load += u64::from(node.load.parts());
        }
        totals
    }
}

/// Sums over the nodes that take requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    pub(super) nodes: u64,
    pub(super) weight: u64,
    /// In parts of 1024 of a request.
    pub(super) load: u64,
}

impl Totals {
    /// The load of `node` as it would be if its weight were the mean: what loads are compared and
    /// limited by.
    pub(super) fn relative_load(&self, node: &Node) -> u64 {
        let load = u64::from(node.load.parts());
        let weights = u64::from(node.weight.get()) * self.nodes;
        if weights == self.weight || weights == 0 {
            return load;
        }
        // below 2^32 x 2^26: at most 1024 nodes of weights below 2^16
        load * self.weight / weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_counts_whole_requests_and_parts_of_a_batch() {
        let third = Load::share_of(NonZeroU32::new(3).unwrap());
        let one = third.plus(third).plus(third);
        assert!(Load::requests(1).minus(one) < Load(2));
        assert_eq!(Load::NONE.minus(third), Load::NONE);
        assert_eq!(Load::requests(u32::MAX).parts(), u32::MAX);
    }

    #[test]
    fn relative_load_of_equal_weights_is_the_load_itself() {
        let check = |weights: [u16; 2], expected: u64| {
            let nodes = weights.map(|weight| Node {
                weight: Weight::new(weight).unwrap(),
                load: Load::requests(12),
                ..Node::new(NodeKey(u64::from(weight)))
            });
            let totals = ClusterView::new(&nodes).totals();
            assert_eq!(totals.relative_load(&nodes[0]), expected * 1024);
        };
        check([1, 1], 12);
        check([100, 100], 12);
        check([3, 1], 8);
        check([1, 3], 24);
    }

    #[test]
    fn nodes_that_are_draining_or_gone_do_not_count() {
        let states = NodeState::ALL.map(|state| Node {
            state,
            load: Load::requests(1),
            ..Node::new(NodeKey(0))
        });
        let view = ClusterView::new(&states);
        let totals = view.totals();
        assert_eq!((totals.nodes, totals.weight, totals.load), (2, 2, 2048));
        let taking: Vec<Place> = view.all_taking().map(|(place, _)| place).collect();
        assert_eq!(taking, [Place(0), Place(1)]);
        assert_eq!(view.taking(Place(2)), None);
        assert_eq!(view.taking(Place(9)), None);
    }

    #[test]
    fn what_a_node_holds_is_unknown_where_nothing_is_known() {
        let nodes = [Node::new(NodeKey(1)), Node::new(NodeKey(2))];
        let view = ClusterView::new(&nodes).with_holds(&[HoldsIt::Yes]);
        assert_eq!(view.holds(Place(0)), HoldsIt::Yes);
        assert_eq!(view.holds(Place(1)), HoldsIt::Unknown);
    }
}
