//! Nodes that share what they store, request by request.
//!
//! Each node has the proxy's catalog and steps [`Members`], the proxy's choice of the node to ask:
//! the same requests at the same times are sent to the same nodes for the same reasons, live and
//! here (`crates/cli/tests/parity/cluster.rs`).
//!
//! Absent on purpose: time between request and response. A request is answered before the next one
//! comes, but for those that are held ([`ClusterSimulation::hold`]): they make up the load. A node
//! may stop answering the others, and answer again; it keeps what it has. Whether a response may be
//! stored, and for how long, is not asked, as in [`hits`].
//!
//! [`hits`]: crate::hits

use crate::hashing::mix;
use crate::hit_ratio::hits::{Setting, Simulation};
use crate::hit_ratio::keys::NumberedRequest;
use weir_policy::route::{
    AskedBy, Balancing, LateralRequest, Members, Node, NodeReport, NodeState, Place, Source,
    TargetKey,
};
use weir_policy::{Handling, Tick};
use weir_semantics::Fwd;

/// What a cluster is.
#[derive(Clone, Copy, Debug)]
pub struct ClusterSetting {
    /// The cache of each node.
    pub cache: Setting,
    /// How a node is chosen for a target.
    pub balancing: Balancing,
    /// For the tables of the policy, and for choices at random.
    pub seed: u64,
}

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterRequest {
    /// When; never before the last one.
    pub at: Tick,
    /// The node that its client asks.
    pub node: Place,
    /// The target, as nodes are chosen for it.
    pub target: TargetKey,
    /// The same, as caches have it.
    pub access: NumberedRequest,
}

/// Where a response comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedFrom {
    /// The cache of the node that the client asks.
    Here,
    /// The cache of another node.
    Node,
    /// The origin.
    Origin,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterAnswer {
    /// Which node was asked, and why; `None` if the response is stored where the client asks.
    pub source: Option<Source>,
    /// Where the response comes from.
    pub served_from: ServedFrom,
}

/// What came of all requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterTotals {
    /// All of them.
    pub requests: u64,
    /// Those whose response was in the cache of the node that the client asked.
    pub hits_here: u64,
    /// Those whose response was in the cache of another node.
    pub hits_at_nodes: u64,
}

impl ClusterTotals {
    /// Requests that the origin was asked.
    #[must_use]
    pub const fn origin_requests(&self) -> u64 {
        self.requests - self.hits_here - self.hits_at_nodes
    }
}

/// A cluster, stepped request by request.
#[derive(Debug)]
pub struct ClusterSimulation {
    nodes: Vec<SimulatedNode>,
    totals: ClusterTotals,
}

#[derive(Debug)]
struct SimulatedNode {
    cache: Simulation,
    members: Members,
    answers: bool,
    /// Its requests that are held at others, by place; at its own place those that it serves.
    held: Vec<u32>,
    /// Requests that it has asked the origin for and that are held: its miss pressure.
    waiting: u32,
}

impl ClusterSimulation {
    /// A cluster of `nodes`, whose caches are empty.
    #[must_use]
    pub fn new(nodes: &[Node], setting: &ClusterSetting) -> Self {
        let places = (0..).map(Place).take(nodes.len());
        let simulated = places.map(|own| SimulatedNode {
            cache: Simulation::new(setting.cache),
            members: Members::new(nodes.to_vec(), own, &setting.balancing, setting.seed),
            answers: true,
            held: vec![0; nodes.len()],
            waiting: 0,
        });
        Self {
            nodes: simulated.collect(),
            totals: ClusterTotals::default(),
        }
    }

    /// The target of a key that has this number.
    #[must_use]
    pub fn target_of(number: u32) -> TargetKey {
        TargetKey(mix(u64::from(number)))
    }

    /// A request of a client, which is answered at once.
    pub fn ask(&mut self, request: ClusterRequest) -> ClusterAnswer {
        self.ask_slowly(request, 0)
    }

    /// A request of a client. If another node is asked for it, the response of that begins
    /// `after_ms` milliseconds later, and nothing else happens meanwhile.
    pub fn ask_slowly(&mut self, request: ClusterRequest, after_ms: u64) -> ClusterAnswer {
        let ClusterRequest { at, node, .. } = request;
        let answered = Tick(at.0.saturating_add(after_ms));
        self.totals.requests += 1;
        let entry = &mut self.nodes[node.index()];
        if entry.cache.find(request.access) {
            self.totals.hits_here += 1;
            return ClusterAnswer {
                source: None,
                served_from: ServedFrom::Here,
            };
        }
        let source = self.source(&request);
        let is_hit = source.node.is_some_and(|asked| {
            let owner = &mut self.nodes[asked.place.index()];
            let is_hit = owner.cache.ask(request.access);
            let report = NodeReport {
                state: NodeState::In,
                outstanding: 1 + owner.held[asked.place.index()],
                miss_pressure: owner.waiting,
            };
            let members = &mut self.nodes[node.index()].members;
            members.answered(answered, asked.place, after_ms * 1000, report);
            members.correct(request.target, asked.place, is_hit);
            is_hit
        });
        let cache = &mut self.nodes[node.index()].cache;
        match source.node {
            Some(asked) if !asked.is_copied => {}
            Some(asked) if asked.keeps_it() => cache.ask_for_copy(request.access),
            _ => _ = cache.ask(request.access),
        }
        self.totals.hits_at_nodes += u64::from(is_hit);
        ClusterAnswer {
            source: Some(source),
            served_from: match is_hit {
                true => ServedFrom::Node,
                false => ServedFrom::Origin,
            },
        }
    }

    /// A request of a client that is not answered any more: it is outstanding at its node and at
    /// the one that is asked, and waits for the origin there. Which one is asked, and why.
    pub fn hold(&mut self, request: ClusterRequest) -> Source {
        let source = self.source(&request);
        let node = request.node.index();
        self.nodes[node].held[node] += 1;
        let mut asks_origin = node;
        if let Some(asked) = source.node {
            asks_origin = asked.place.index();
            self.nodes[node].held[asks_origin] += 1;
            self.nodes[asks_origin].held[asks_origin] += 1;
        }
        self.nodes[asks_origin].waiting += 1;
        source
    }

    /// From now on the node at `place` answers the others, or does not.
    pub fn set_answers(&mut self, place: Place, answers: bool) {
        self.nodes[place.index()].answers = answers;
    }

    /// Where a request goes that is not stored at its node: those that do not answer are asked in
    /// vain first.
    fn source(&mut self, request: &ClusterRequest) -> Source {
        let mut failed = Vec::new();
        loop {
            let source = self.nodes[request.node.index()].source(request, &failed);
            let Some(asked) = source.node else {
                return source;
            };
            if self.nodes[asked.place.index()].answers {
                return source;
            }
            let members = &mut self.nodes[request.node.index()].members;
            members.failed(request.at, asked.place, None);
            failed.push(asked.place);
        }
    }

    /// What came of the requests so far.
    #[must_use]
    pub const fn totals(&self) -> ClusterTotals {
        self.totals
    }
}

impl SimulatedNode {
    /// Where a request goes that is not stored here, after the nodes that `failed`.
    fn source(&mut self, request: &ClusterRequest, failed: &[Place]) -> Source {
        let handling = Handling::Forward(Fwd::UriMiss);
        let own = self.members.own();
        let Some(asks) = LateralRequest::of(handling, AskedBy::Client, true, failed) else {
            return Source {
                node: None,
                why: None,
            };
        };
        self.members.set_own_pressure(self.waiting);
        let held = &self.held;
        let requests = |place: Place| held[place.index()] + u32::from(place == own);
        self.members
            .source(request.at, request.target, asks, requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::hits::Simulation;
    use weir_policy::admission::Rule;
    use weir_policy::eviction::EvictionKind;
    use weir_policy::route::NodeKey;
    use weir_policy::route::policy::PolicyKind;
    use weir_workload::Chance;

    const TARGETS: u32 = 3000;

    fn nodes(count: u64) -> Vec<Node> {
        (1..=count)
            .map(|key| Node::new(NodeKey(mix(key))))
            .collect()
    }

    fn setting(policy: PolicyKind, capacity_bytes: u64) -> ClusterSetting {
        ClusterSetting {
            cache: Setting {
                capacity_bytes,
                eviction: EvictionKind::S3Fifo,
                admission: Rule::Always,
            },
            balancing: Balancing {
                policy,
                ..Balancing::default()
            },
            seed: 1,
        }
    }

    /// Keys by a Zipf law of 0.8, of one byte each.
    fn accesses(count: usize) -> impl Iterator<Item = NumberedRequest> {
        let mut sum = 0.0;
        let sums = (1..=TARGETS).map(|rank| {
            sum += f64::from(rank).powf(-0.8);
            sum
        });
        let sums: Vec<f64> = sums.collect();
        let mut chance = Chance::new(7, 0);
        (0..count).map(move |_| {
            let drawn = chance.unit() * sums[sums.len() - 1];
            let number = sums.partition_point(|sum| *sum <= drawn);
            NumberedRequest {
                number: u32::try_from(number).unwrap(),
                size_bytes: 1,
            }
        })
    }

    fn play(policy: PolicyKind, count: u64, capacity_bytes: u64, requests: usize) -> ClusterTotals {
        let mut cluster = ClusterSimulation::new(&nodes(count), &setting(policy, capacity_bytes));
        for (step, access) in (0..).zip(accesses(requests)) {
            cluster.ask(ClusterRequest {
                at: Tick(step / 4),
                node: Place(u16::try_from(step % count).unwrap()),
                target: ClusterSimulation::target_of(access.number),
                access,
            });
        }
        cluster.totals()
    }

    #[test]
    fn cluster_with_room_for_all_asks_the_origin_once_for_each_target() {
        for policy in [
            PolicyKind::Hash,
            PolicyKind::BoundedHash,
            PolicyKind::ReplicatedHash,
            PolicyKind::ExtendedLard,
        ] {
            let totals = play(policy, 4, u64::from(TARGETS), 120_000);
            assert!(totals.origin_requests() <= u64::from(TARGETS), "{policy}");
        }
    }

    #[test]
    fn three_nodes_with_a_third_of_the_memory_ask_the_origin_as_often_as_one_with_all() {
        // as `cargo xtask cluster` measures it
        const REQUESTS: usize = 8 * TARGETS as usize;
        let capacity = u64::from(TARGETS) / 4;
        let mut alone = Simulation::new(setting(PolicyKind::Hash, 3 * capacity).cache);
        accesses(REQUESTS).for_each(|access| _ = alone.ask(access));
        let misses = alone.totals().requests - alone.totals().hits;
        for (policy, hits_here_percent) in [
            (PolicyKind::Hash, 0),
            (PolicyKind::BoundedHash, 0),
            (PolicyKind::LardR, 0),
            // with copies of what is requested often, or of everything
            (PolicyKind::ReplicatedHash, 35),
            (PolicyKind::ExtendedLard, 40),
        ] {
            let totals = play(policy, 3, capacity, REQUESTS);
            let asked = totals.origin_requests();
            assert!(
                asked * 100 <= misses * 102,
                "{policy}: {totals:?}, {asked} for {misses}"
            );
            assert!(
                totals.hits_here * 100 >= totals.requests * hits_here_percent,
                "{policy}: {totals:?}"
            );
        }
    }
}
