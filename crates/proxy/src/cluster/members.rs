//! The members of the cluster, and what is known of them.

use crate::cluster::nonces::Nonces;
use crate::cluster::proof::{ClusterSecret, Proof};
use crate::cluster::state::ClusterState;
use crate::config::Mode;
use std::sync::Arc;
use weir_cluster::MemberList;
use weir_net::next_hops::HopKey;
use weir_policy::route::policy::PolicyKind;
use weir_policy::route::{Balancing, NodeKey, NodeState, Place, SealedKey, Weight, tag_key};
use weir_policy::{Digest, Secret};
use weir_semantics::{PEER_FIELD, PeerReport, PeerRequest};

/// The cluster with the members that a source lists, and what is known of its nodes.
pub(crate) struct Cluster {
    /// This node.
    own: Place,
    /// All nodes, by place: in the order of their names, which is the same on every node.
    members: Vec<Member>,
    state: Arc<ClusterState>,
    target_secret: Secret,
    digest_key: Secret,
    secret: ClusterSecret,
    nonces: Nonces,

    balancing: Balancing,
}

/// One node.
#[derive(PartialEq, Eq)]
struct Member {
    name: Box<str>,
    /// A hash of its name, the same on every node.
    key: NodeKey,
    hop: HopKey,
    weight: Weight,
    /// What it sends to this node.
    proof: Proof,
    /// What this node sends to it.
    own_proof: Proof,
}

/// Who sends a request that names a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// Another member.
    Member,
    /// A node of the cluster, by what it proves, that is none of the members as this node has them:
    /// the lists of two nodes differ for a moment. Nothing is done for it.
    Unlisted,
    /// Any program.
    Stranger,
}

/// What has made a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    /// An origin.
    Origin,
    /// The node itself.
    Node,
}

/// What a configuration says of its cluster, beside the members.
#[derive(Clone)]
pub(super) struct ClusterTerms {
    pub(super) balancing: Balancing,
    pub(super) secret: ClusterSecret,
}

impl Cluster {
    /// The cluster of these members, which goes on from `before`; `None` if this node is none of
    /// them.
    pub(super) fn new(
        list: &MemberList,
        terms: &ClusterTerms,
        before: Option<&Self>,
    ) -> Option<Self> {
        let ClusterTerms { balancing, secret } = terms;
        let own = Place(u16::try_from(list.own?).ok()?);
        let node = &list.members[own.index()].name;
        let members = list.members.iter();
        let members = members.map(|member| Member::new(member, node, secret));
        let members: Vec<Member> = members.collect();
        let state = match before {
            Some(before) if before.own == own && before.is_alike(&members, *balancing) => {
                Arc::clone(&before.state)
            }
            _ => Arc::new(Self::state_of(&members, own, balancing, before)),
        };
        let others = (0..).map(Place).zip(&list.members);
        for (place, member) in others.filter(|(place, _)| *place != own) {
            state.set_state(place, member.state);
        }
        Some(Self {
            own,
            state,
            members,
            target_secret: secret.target_key(),
            digest_key: secret.digest_key(),
            nonces: Nonces::default(),
            secret: secret.clone(),
            balancing: *balancing,
        })
    }

    fn is_alike(&self, members: &[Member], balancing: Balancing) -> bool {
        self.members == members && self.balancing == balancing
    }

    /// What is known of these members, by name from `before`.
    fn state_of(
        members: &[Member],
        own: Place,
        balancing: &Balancing,
        before: Option<&Self>,
    ) -> ClusterState {
        let mut state = ClusterState::new(members.iter().map(Member::node), own, balancing);
        if let Some(before) = before {
            let places = before.members.iter();
            let places = places.map(|member| place_of(members, &member.name));
            state.take_over(&before.state, &places.collect::<Vec<_>>());
        }
        state
    }

    /// Whether this node keeps nothing.
    pub(super) fn is_front_end(&self) -> bool {
        self.state.own_state() == NodeState::FrontEnd
    }

    /// This node is in `state`.
    pub(super) fn set_own_state(&self, state: NodeState) {
        self.state.set_state(self.own, state);
    }

    /// The key under which targets are hashed, the same on every node.
    pub(crate) const fn target_secret(&self) -> &Secret {
        &self.target_secret
    }

    /// Who sends a request with this field.
    pub(crate) fn asker(&self, asked: &PeerRequest<'_>) -> Asker {
        let own = self.own_name();
        match self.place_of(asked.node) {
            Some(place) if place == self.own => Asker::Stranger,
            Some(place) if self.member(place).proof.is(asked.proof) => Asker::Member,
            None if self.secret.proof(asked.node, own).is(asked.proof) => Asker::Unlisted,
            _ => Asker::Stranger,
        }
    }

    /// Its peer listener.
    pub(crate) fn hop(&self, place: Place) -> &HopKey {
        &self.member(place).hop
    }

    /// What distinguishes it, in this list of members and all others.
    pub(crate) fn key(&self, place: Place) -> NodeKey {
        self.member(place).key
    }

    /// The places of nodes that are still members.
    pub(crate) fn places_of(&self, nodes: &[NodeKey]) -> Vec<Place> {
        let places = (0..).map(Place).zip(&self.members);
        let places = places.filter(|(_, member)| nodes.contains(&member.key));
        places.map(|(place, _)| place).collect()
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
        self.balancing.policy
    }

    /// The node of that name.
    pub(crate) fn place_of(&self, name: &str) -> Option<Place> {
        place_of(&self.members, name)
    }

    /// The node at `place`.
    fn member(&self, place: Place) -> &Member {
        &self.members[place.index()]
    }

    /// Appends the field line of a request to `place` for a client of a listener of `mode`.
    pub(crate) fn write_request(&self, place: Place, mode: Mode, nonce: &str, out: &mut Vec<u8>) {
        self.write_request_for(place, mode.as_str(), nonce, out);
    }

    /// Appends the field line of a message to `place` that says what it is to purge.
    pub(crate) fn write_purges(&self, place: Place, nonce: &str, out: &mut Vec<u8>) {
        self.write_request_for(place, PURGES, nonce, out);
    }

    fn write_request_for(&self, place: Place, mode: &str, nonce: &str, out: &mut Vec<u8>) {
        let to = self.member(place);
        let request = PeerRequest {
            node: &self.member(self.own).name,
            mode,
            proof: to.own_proof.as_str(),
            nonce,
            to: Some(&to.name),
        };
        write_line(out, |out| request.write(out));
    }

    /// The names of the other nodes.
    pub(crate) fn others(&self) -> impl Iterator<Item = &str> {
        let others = (0..).map(Place).zip(&self.members);
        let others = others.filter(|(place, _)| *place != self.own);
        others.map(|(_, member)| &*member.name)
    }

    /// The other node of that name.
    pub(crate) fn other(&self, name: &str) -> Option<Place> {
        self.place_of(name).filter(|place| *place != self.own)
    }

    /// What proves that `content` says what this node wants the node at `place` to purge.
    pub(crate) fn purges_proof(&self, place: Place, content: &str) -> Proof {
        let (own, to) = (&self.member(self.own).name, self.name(place));
        self.secret.purges_proof(own, to, content)
    }

    /// Whether `proof` proves that `content` says what `node` wants this node to purge.
    pub(crate) fn are_purges_proved(&self, node: &str, content: &str, proof: &str) -> bool {
        let own = &self.member(self.own).name;
        self.secret.purges_proof(node, own, content).is(proof)
    }

    /// What proves that `content` is the answer of `from` to a message of `to` with `nonce`, one of
    /// which is this node.
    pub(crate) fn purge_answer_proof(
        &self,
        (from, to): (&str, &str),
        nonce: &str,
        content: &str,
    ) -> Proof {
        self.secret.purge_answer_proof(from, to, nonce, content)
    }

    /// The name of this node.
    pub(crate) fn own_name(&self) -> &str {
        &self.member(self.own).name
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
    /// `reads_waiting` are reads that wait for its disk.
    pub(crate) fn write_report(
        &self,
        asked: &PeerRequest<'_>,
        reads_waiting: u32,
        (maker, asker): (Maker, Asker),
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
            state: self.state.own_state().as_str(),
            weight: u32::from(own.weight.get()),
            outstanding,
            miss_pressure,
            proof: proof.as_str(),
            is_own: maker == Maker::Node,
            is_unlisted: asker == Asker::Unlisted,
        };
        write_line(out, |out| report.write(out));
    }

    /// The other nodes.
    pub(crate) fn other_places(&self) -> impl Iterator<Item = Place> {
        let all = (0..).map(Place).take(self.members.len());
        all.filter(|place| *place != self.own)
    }

    /// Appends the field line of a request for the digest of the node at `place`.
    pub(crate) fn write_digest_request(&self, place: Place, nonce: &str, out: &mut Vec<u8>) {
        self.write_request_for(place, DIGESTS, nonce, out);
    }

    /// The key in a digest of what has this tag in its node's store.
    pub(crate) fn digest_key_of(&self, tag: u64) -> Digest {
        tag_key(&self.digest_key, tag)
    }

    /// The secret of this node's store, sealed for its digest of `epoch`.
    pub(crate) fn seal_digest(&self, epoch: u64, secret: Secret) -> SealedKey {
        self.secret.seal(self.own_name(), epoch, secret)
    }

    /// What `node` has sealed for its digest of `epoch`.
    pub(crate) fn open_digest(&self, node: &str, epoch: u64, key: &SealedKey) -> Option<Secret> {
        self.secret.open(node, epoch, key)
    }

    /// The state of its nodes.
    pub(crate) fn state(&self) -> &Arc<ClusterState> {
        &self.state
    }
}

impl ClusterTerms {
    /// Who sends a request with this field to a node that is none of the members as it has them.
    pub(super) fn asker(&self, asked: &PeerRequest<'_>) -> Asker {
        let proof = asked.to.map(|to| self.secret.proof(asked.node, to));
        match proof {
            Some(proof) if proof.is(asked.proof) => Asker::Unlisted,
            _ => Asker::Stranger,
        }
    }

    /// Appends the field line of the answer of such a node to `asked`, in the name that it is asked
    /// by.
    pub(super) fn write_unlisted(&self, asked: &PeerRequest<'_>, out: &mut Vec<u8>) {
        let own = asked.to.unwrap_or_default();
        let proof = self.secret.response_proof(own, asked.node, asked.nonce);
        let report = PeerReport {
            node: own,
            state: NodeState::In.as_str(),
            weight: 0,
            outstanding: 0,
            miss_pressure: 0,
            proof: proof.as_str(),
            is_own: true,
            is_unlisted: true,
        };
        write_line(out, |out| report.write(out));
    }
}

impl Member {
    fn new(member: &weir_cluster::Member, own: &str, secret: &ClusterSecret) -> Self {
        Self {
            name: member.name.as_str().into(),
            key: NodeKey::of(&Secret([0; 16]), &member.name),
            hop: member.hop.clone(),
            weight: member.weight,
            proof: secret.proof(&member.name, own),
            own_proof: secret.proof(own, &member.name),
        }
    }

    /// As policies see it.
    fn node(&self) -> weir_policy::route::Node {
        weir_policy::route::Node {
            weight: self.weight,
            ..weir_policy::route::Node::new(self.key)
        }
    }
}

/// The mode of a message that says what is to be purged.
pub(crate) const PURGES: &str = "purges";

/// The place of the member of that name.
fn place_of(members: &[Member], name: &str) -> Option<Place> {
    let place = members.binary_search_by(|member| (*member.name).cmp(name));
    let place = place.ok().and_then(|place| u16::try_from(place).ok());
    place.map(Place)
}

/// The mode of a request for a digest.
pub(crate) const DIGESTS: &str = "digests";

fn write_line(out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(PEER_FIELD.as_bytes());
    out.extend_from_slice(b": ");
    value(out);
    out.extend_from_slice(b"\r\n");
}
