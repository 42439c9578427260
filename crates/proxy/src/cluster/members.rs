//! Who is in the cluster, from the configuration.

use crate::cluster::nonces::Nonces;
use crate::cluster::proof::{ClusterSecret, Proof};
use crate::cluster::state::ClusterState;
use crate::config;
use crate::config::{Config, Mode};
use std::sync::Arc;
use weir_net::next_hops::HopKey;
use weir_policy::route::policy::PolicyKind;
use weir_policy::route::{Balancing, NodeKey, Place, Weight};
use weir_policy::{KeyHasher, Secret};
use weir_semantics::{PEER_FIELD, PeerReport, PeerRequest};

/// The cluster as a configuration has it, with what is known of its nodes.
pub(crate) struct Cluster {
    /// This node.
    own: Place,
    /// All nodes, by place: in the order of their names, which is the same on every node.
    members: Vec<Member>,
    state: Arc<ClusterState>,
    target_secret: Secret,
    secret: ClusterSecret,
    nonces: Nonces,

    policy: PolicyKind,
}

/// One node.
#[derive(PartialEq, Eq)]
struct Member {
    name: Box<str>,
    hop: HopKey,
    weight: Weight,
    /// What it sends to this node.
    proof: Proof,
    /// What this node sends to it.
    own_proof: Proof,
}

impl Cluster {
    /// The cluster of a valid configuration; `None` if it has none. `secret` is what
    /// `cluster.secret_file` holds.
    pub(crate) fn new(config: &Config, secret: Option<&str>) -> Option<Self> {
        let cluster = &config.cluster;
        let node = cluster.node.as_deref()?;
        let secret = ClusterSecret::new(secret);
        let mut members: Vec<&config::Member> = cluster.members.iter().collect();
        members.sort_by(|one, other| one.name.cmp(&other.name));
        let own = members.iter().position(|member| member.name == node)?;
        let members: Vec<Member> = members
            .into_iter()
            .map(|member| Member::new(member, node, &secret))
            .collect();
        let nodes = members.iter().map(Member::node);
        let own = Place(u16::try_from(own).ok()?);
        let balancing = Balancing {
            policy: cluster.policy,
            ..Balancing::default()
        };
        Some(Self {
            own,
            state: Arc::new(ClusterState::new(nodes, own, &balancing)),
            members,
            target_secret: secret.target_key(),
            nonces: Nonces::default(),
            secret,
            policy: cluster.policy,
        })
    }

    /// Takes over what `before` knows of the nodes, if they are the same.
    pub(crate) fn keep_state(&mut self, before: &Self) {
        let is_same = self.members == before.members
            && self.own == before.own
            && self.policy == before.policy;
        if is_same {
            self.state = Arc::clone(&before.state);
        }
    }

    /// The key under which targets are hashed, the same on every node.
    pub(crate) const fn target_secret(&self) -> &Secret {
        &self.target_secret
    }

    /// The node that a request of `node` with this proof is of, if it is another member.
    pub(crate) fn knows(&self, node: &str, proof: &str) -> bool {
        let place = self.place_of(node).filter(|place| *place != self.own);
        place.is_some_and(|place| self.member(place).proof.is(proof))
    }

    /// Its peer listener.
    pub(crate) fn hop(&self, place: Place) -> &HopKey {
        &self.member(place).hop
    }

    /// Its name.
    pub(crate) fn name(&self, place: Place) -> &str {
        &self.member(place).name
    }

    /// This node.
    pub(super) const fn own(&self) -> Place {
        self.own
    }

    /// Its weight.
    pub(super) fn weight(&self, place: Place) -> u16 {
        self.member(place).weight.get()
    }

    /// The policy that chooses.
    pub(super) const fn policy(&self) -> PolicyKind {
        self.policy
    }

    /// The node of that name.
    pub(crate) fn place_of(&self, name: &str) -> Option<Place> {
        let place = self
            .members
            .binary_search_by(|member| (*member.name).cmp(name));
        place
            .ok()
            .and_then(|place| u16::try_from(place).ok())
            .map(Place)
    }

    /// The node at `place`.
    fn member(&self, place: Place) -> &Member {
        &self.members[place.index()]
    }

    /// Appends the field line of a request to `place` for a client of a listener of `mode`.
    pub(crate) fn write_request(&self, place: Place, mode: Mode, nonce: &str, out: &mut Vec<u8>) {
        let request = PeerRequest {
            node: &self.member(self.own).name,
            mode: mode.as_str(),
            proof: self.member(place).own_proof.as_str(),
            nonce,
        };
        write_line(out, |out| request.write(out));
    }

    /// A nonce for one request; empty without a secret.
    pub(crate) fn nonce(&self) -> String {
        if self.secret.is_some() {
            self.nonces.next()
        } else {
            String::new()
        }
    }

    /// Whether `report` is of the node at `place`, for a request with `nonce`.
    pub(crate) fn is_proved(&self, place: Place, nonce: &str, report: &PeerReport<'_>) -> bool {
        let (name, own) = (self.name(place), &self.member(self.own).name);
        let proof = self.secret.response_proof(name, own, nonce);
        report.node == name && proof.is(report.proof)
    }

    /// Appends the field line of a response of this node to `asked`, a request of another one.
    /// `reads_waiting` are reads that wait for its disk; `is_own`: no origin has made the response.
    pub(crate) fn write_report(
        &self,
        asked: &PeerRequest<'_>,
        reads_waiting: u32,
        is_own: bool,
        out: &mut Vec<u8>,
    ) {
        let own = self.member(self.own);
        let (outstanding, waiting) = self.state.own_load();
        let miss_pressure = waiting.saturating_add(reads_waiting);
        let proof = self
            .secret
            .response_proof(&own.name, asked.node, asked.nonce);
        let report = PeerReport {
            node: &own.name,
            state: "in",
            weight: u32::from(own.weight.get()),
            outstanding,
            miss_pressure,
            proof: proof.as_str(),
            is_own,
        };
        write_line(out, |out| report.write(out));
    }

    /// The state of its nodes.
    pub(crate) fn state(&self) -> &Arc<ClusterState> {
        &self.state
    }
}

impl Member {
    fn new(member: &config::Member, own: &str, secret: &ClusterSecret) -> Self {
        Self {
            name: member.name.as_str().into(),
            hop: HopKey {
                host: member.url.host.as_str().into(),
                port: member.url.port,
            },
            weight: Weight::new(member.weight).unwrap_or(Weight::ONE),
            proof: secret.proof(&member.name, own),
            own_proof: secret.proof(own, &member.name),
        }
    }

    /// As policies see it: its key is a hash of its name, the same on every node.
    fn node(&self) -> weir_policy::route::Node {
        let mut hasher = KeyHasher::new(&Secret([0; 16]));
        hasher.part(self.name.as_bytes());
        weir_policy::route::Node {
            weight: self.weight,
            ..weir_policy::route::Node::new(NodeKey(hasher.finish().0))
        }
    }
}

fn write_line(out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(PEER_FIELD.as_bytes());
    out.extend_from_slice(b": ");
    value(out);
    out.extend_from_slice(b"\r\n");
}
