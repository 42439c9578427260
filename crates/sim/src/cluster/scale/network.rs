//! A network of nodes, stepped request by request.

use super::caches::NodeCaches;
use super::setting::ScaleSetting;
use crate::hashing::mix;
use crate::hit_ratio::keys::NumberedRequest;
use weir_policy::route::{
    AskedBy, AskedNode, Balancing, LateralRequest, Members, Node, NodeKey, NodeReport, NodeState,
    Place, Source, TargetKey,
};
use weir_policy::{Handling, Tick};
use weir_semantics::Fwd;

/// The nodes.
#[derive(Debug)]
pub(super) struct NodeNetwork {
    pub(super) caches: NodeCaches,
    members: Vec<Members>,
    states: Vec<NodeState>,
}

/// A request of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeRequest {
    /// When; never before the last one.
    pub(super) at: Tick,
    /// The node that is asked.
    pub(super) node: usize,
    /// What for, as nodes tell which one keeps it.
    pub(super) target: TargetKey,
    /// The same with its number and size.
    pub(super) access: NumberedRequest,
}

/// What came of a request that its node had no response for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MissAnswer {
    /// The node that was asked; `None`: the origin was.
    pub(super) lateral: Option<usize>,
    /// No node that was asked had it.
    pub(super) is_from_origin: bool,
}

impl NodeNetwork {
    pub(super) fn new(setting: &ScaleSetting, count: u16, hot: u32) -> Self {
        let key = |number: u16| Node::new(NodeKey(mix(u64::from(number))));
        let nodes: Vec<Node> = (1..=count).map(key).collect();
        let balancing = Balancing {
            policy: setting.policy,
            ..Balancing::default()
        };
        let of = |place| Members::new(nodes.clone(), Place(place), &balancing, setting.seed);
        Self {
            caches: NodeCaches::new(setting, nodes.len(), hot),
            members: (0..count).map(of).collect(),
            states: vec![NodeState::In; nodes.len()],
        }
    }

    /// Nodes, those that are gone too.
    pub(super) const fn count(&self) -> usize {
        self.states.len()
    }

    /// The node at `index` is in this state from now on, and all know it.
    pub(super) fn set_state(&mut self, index: usize, state: NodeState) {
        self.states[index] = state;
        let place = place(index);
        for members in &mut self.members {
            members.set_state(place, state);
        }
    }

    /// The node to which the balancer in front of the nodes gives this connection: the one of its
    /// hash, or another one while that is gone.
    pub(super) fn node_of(&self, connection: u64) -> usize {
        let count = self.count() as u64;
        let node = below(connection, count);
        if self.states[node] != NodeState::Gone || count == 1 {
            return node;
        }
        let other = below(mix(connection), count - 1);
        other + usize::from(other >= node)
    }

    /// A request of a client. `None`: its node had the response.
    pub(super) fn ask(&mut self, request: NodeRequest) -> Option<MissAnswer> {
        let NodeRequest { node, access, .. } = request;
        if self.caches.find(node, access.number) {
            return None;
        }
        let source = self.source(&request, node, AskedBy::Client);
        let Some(asked) = source.node else {
            self.caches.store(node, access, false);
            return Some(MissAnswer {
                lateral: None,
                is_from_origin: true,
            });
        };
        let is_hit = self.ask_node(&request, asked);
        if asked.is_copied {
            self.caches.store(node, access, asked.keeps_it());
        }
        Some(MissAnswer {
            lateral: Some(asked.place.index()),
            is_from_origin: !is_hit,
        })
    }

    /// The request goes to another node; whether a node had the response.
    fn ask_node(&mut self, request: &NodeRequest, asked: AskedNode) -> bool {
        let NodeRequest {
            at,
            node,
            target,
            access,
        } = *request;
        let owner = asked.place.index();
        let mut is_hit = self.caches.find(owner, access.number);
        if !is_hit && !asked.is_stored_only {
            let by = AskedBy::Node(place(node));
            if let Some(previous) = self.source(request, owner, by).node {
                is_hit = self.caches.find(previous.place.index(), access.number);
            }
            self.caches.store(owner, access, false);
        }
        let report = NodeReport {
            state: self.states[owner],
            outstanding: 1,
            miss_pressure: 0,
        };
        let members = &mut self.members[node];
        members.answered(at, asked.place, 0, report);
        members.correct(target, asked.place, is_hit);
        is_hit
    }

    /// Where `node` sends the request, which it has no response for.
    fn source(&mut self, request: &NodeRequest, node: usize, by: AskedBy) -> Source {
        let handling = Handling::Forward(Fwd::UriMiss);
        let Some(asks) = LateralRequest::of(handling, by, true, &[]) else {
            return Source {
                node: None,
                why: None,
            };
        };
        let own = place(node);
        let requests = |place: Place| u32::from(place == own);
        self.members[node].source(request.at, request.target, asks, requests)
    }
}

fn place(index: usize) -> Place {
    Place(u16::try_from(index).unwrap_or(u16::MAX))
}

/// A number below `count`, of a hash.
fn below(hash: u64, count: u64) -> usize {
    usize::try_from(((hash >> 32) * count) >> 32).unwrap_or(0)
}
