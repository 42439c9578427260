//! The members of the cluster, and what is known of them.

use crate::cluster::nonces::Nonces;
use crate::cluster::placement::Placement;
use crate::cluster::proof::{ClusterSecret, HAND_OFF_PROOF_BYTES, Proof};
use crate::cluster::proved_head::{ProvedHead, received, request_start, status_start, written};
use crate::cluster::state::ClusterState;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_cluster::MemberList;
use weir_net::next_hops::HopKey;
use weir_policy::route::policy::PolicyKind;
use weir_policy::route::{
    Balancing, DigestKeys, NodeKey, NodeState, Place, SealedKey, Weight, tag_key,
};
use weir_policy::{Digest, Now, Secret};
use weir_semantics::{FieldLine, PEER_FIELD, PeerReport, PeerRequest, PurgeSequence, lines_named};
use weir_wire::RequestHead;

/// The cluster with the members that a source lists, and what is known of its nodes.
pub(crate) struct Cluster {
    /// This node.
    own: Place,
    /// All nodes, by place: in the order of their names, which is the same on every node.
    members: Vec<Member>,
    state: Arc<ClusterState>,
    placement: Placement,
    target_secret: Secret,
    digest_key: Secret,
    secret: ClusterSecret,
    nonces: Nonces,
    balancing: Balancing,
    /// Another one is in force: what nodes say is not compared with what this one has them keep.
    is_replaced: AtomicBool,
}

/// One node.
#[derive(PartialEq, Eq)]
struct Member {
    name: Box<str>,
    /// A hash of its name, the same on every node.
    key: NodeKey,
    hop: HopKey,
    weight: Weight,
    /// The list has it as a front end, which may hand connections over.
    is_front_end: bool,
}

/// Who sends a request that names a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// Another member.
    Member,
    /// A node of the cluster, by what it proves, that is none of the members as this node has them:
    /// the lists of two nodes differ for a moment. Nothing is done for it.
    Unlisted,
    /// A node that proves itself by the name of this one: this node itself, or another process that
    /// should have another name.
    Namesake,
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
        let members: Vec<Member> = list.members.iter().map(Member::new).collect();
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
        let target_secret = secret.target_key();
        Some(Self {
            own,
            state,
            members,
            placement: Placement::new(&target_secret, balancing, &list.members),
            target_secret,
            digest_key: secret.digest_key(),
            nonces: Nonces::default(),
            secret: secret.clone(),
            balancing: *balancing,
            is_replaced: AtomicBool::new(false),
        })
    }

    /// Another one is in force from now on.
    pub(super) fn set_replaced(&self) {
        self.is_replaced.store(true, Ordering::Relaxed);
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
    pub(crate) fn is_front_end(&self) -> bool {
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

    /// Who sends a request with this field and head.
    pub(crate) fn asker(&self, asked: &PeerRequest<'_>, head: &RequestHead<'_, '_>) -> Asker {
        if !is_proved_request(&self.secret, self.own_name(), asked, head) {
            return Asker::Stranger;
        }
        match self.place_of(asked.node) {
            Some(place) if place == self.own => Asker::Namesake,
            Some(_) => Asker::Member,
            None => Asker::Unlisted,
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
    pub(crate) const fn own(&self) -> Place {
        self.own
    }

    /// Its weight.
    pub(super) fn weight(&self, place: Place) -> u16 {
        self.member(place).weight.get()
    }

    /// The policy that chooses.
    pub(crate) const fn policy(&self) -> PolicyKind {
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

    /// Appends the field line of a request to `place` to its head, which is whole but for its end:
    /// what is appended behind it is not proved. `mode` is that of the listener that the client
    /// came to, [`PURGES`], [`DIGESTS`] or [`STATE`], which tells the state of this node, too.
    pub(crate) fn seal_request(&self, place: Place, mode: &str, nonce: &str, head: &mut Vec<u8>) {
        let state = (mode == STATE).then(|| self.state.own_state().as_str());
        let asked = PeerRequest {
            state,
            ..self.asks(place, mode, nonce)
        };
        self.seal(place, &asked, head);
    }

    /// The same of a message with purges, at this place of the sequence of messages to that node.
    pub(crate) fn seal_purges(
        &self,
        place: Place,
        nonce: &str,
        sequence: PurgeSequence<'_>,
        head: &mut Vec<u8>,
    ) {
        let asked = PeerRequest {
            sequence: Some(sequence),
            ..self.asks(place, PURGES, nonce)
        };
        self.seal(place, &asked, head);
    }

    fn asks<'a>(&'a self, place: Place, mode: &'a str, nonce: &'a str) -> PeerRequest<'a> {
        PeerRequest {
            node: self.own_name(),
            mode,
            proof: "",
            nonce,
            to: Some(self.name(place)),
            state: None,
            sequence: None,
        }
    }

    fn seal(&self, place: Place, unproved: &PeerRequest<'_>, head: &mut Vec<u8>) {
        let (line, lines) = written(head);
        let proved = ProvedHead {
            start: request_start(line),
            lines,
        };
        // without a proof the node refuses it
        let proof = self
            .secret
            .request_proof(self.name(place), unproved, proved);
        let request = PeerRequest {
            proof: proof.as_ref().map_or("", Proof::as_str),
            ..*unproved
        };
        write_line(head, |out| request.write(out));
    }

    /// The names of the other nodes.
    pub(crate) fn others(&self) -> impl Iterator<Item = &str> {
        let others = (0..).map(Place).zip(&self.members);
        let others = others.filter(|(place, _)| *place != self.own);
        others.map(|(_, member)| &*member.name)
    }

    /// The names of the other nodes that failed and have not answered since.
    pub(crate) fn not_back(&self, now: Now) -> BTreeSet<&str> {
        let others = self.others();
        let is_not_back = |name: &&str| {
            let place = self.other(name);
            place.is_some_and(|place| self.state.is_not_back(now, place))
        };
        others.filter(is_not_back).collect()
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
        self.secret.are_purges_proved((node, own), content, proof)
    }

    /// What proves that `content` is the answer of `from` to a message of `to` with `nonce`, one of
    /// which is this node.
    pub(crate) fn purge_answer_proof(
        &self,
        names: (&str, &str),
        nonce: &str,
        content: &str,
    ) -> Proof {
        self.secret.purge_answer_proof(names, nonce, content)
    }

    /// Whether `proof` proves that `content` is such an answer.
    pub(crate) fn is_purge_answer_proved(
        &self,
        names: (&str, &str),
        nonce: &str,
        answer: (&str, &str),
    ) -> bool {
        self.secret.is_purge_answer_proved(names, nonce, answer)
    }

    /// `content` with what proves that this node says it to the node at `place`, for `nonce`;
    /// `None` without a secret.
    pub(crate) fn prove_hand_off(
        &self,
        place: Place,
        nonce: &str,
        content: &[u8],
    ) -> Option<Vec<u8>> {
        let words = [self.own_name(), self.name(place), nonce];
        let proof = self.secret.hand_off_proof(words, content)?;
        Some([content, &proof].concat())
    }

    /// Whether a member is at this address, as far as members are named by addresses.
    pub(crate) fn has_address(&self, ip: IpAddr) -> bool {
        let mut hosts = self.members.iter().map(|member| &member.hop.host);
        hosts.any(|host| host.parse() == Ok(ip))
    }

    /// Whether the list has the node of that name as a front end.
    pub(crate) fn is_listed_front_end(&self, node: &str) -> bool {
        let other = self.other(node);
        other.is_some_and(|place| self.member(place).is_front_end)
    }

    /// The content of what `node` has sent to this node for `nonce`; `None` if it is not proved.
    pub(crate) fn proved_hand_off<'c>(
        &self,
        node: &str,
        nonce: &str,
        message: &'c [u8],
    ) -> Option<&'c [u8]> {
        self.other(node)?;
        let end = message.len().checked_sub(HAND_OFF_PROOF_BYTES)?;
        let (content, presented) = message.split_at(end);
        let words = [node, self.own_name(), nonce];
        let is_proved = self.secret.is_hand_off_proved(words, content, presented);
        is_proved.then_some(content)
    }

    /// What this front end gives a node that may move a connection: `words` are the names of both
    /// nodes, the client's address, the ticket of the connection, and which attempt it is.
    pub(crate) fn move_permit(&self, words: [&str; 5]) -> Proof {
        let [from, to, flow, ticket, attempt] = words;
        let words = [self.own_name(), from, to, flow, ticket, attempt];
        self.secret.move_permit(words)
    }

    /// Whether `permit` is what the member `front_end`, which the list has as a front end, gives
    /// `from` that may move a connection to this node.
    pub(crate) fn is_move_permitted(
        &self,
        (front_end, from): (&str, &str),
        words: [&str; 3],
        permit: &str,
    ) -> bool {
        let [flow, ticket, attempt] = words;
        let words = [front_end, from, self.own_name(), flow, ticket, attempt];
        self.is_listed_front_end(front_end) && self.secret.is_move_permitted(words, permit)
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

    /// What the node at `place` says of itself in a response with this head to a request with
    /// `nonce`; `None` if the response is not as that node has sent it.
    pub(crate) fn report_in<'h>(
        &self,
        place: Place,
        nonce: &str,
        (status, fields): (u16, &'h [FieldLine<'h>]),
    ) -> Option<PeerReport<'h>> {
        let mut lines = lines_named(fields, PEER_FIELD);
        let (Some(line), None) = (lines.next(), lines.next()) else {
            return None;
        };
        let report = PeerReport::read(line)?;
        let mut digits = *b"000";
        for (digit, divisor) in digits.iter_mut().zip([100, 10, 1]) {
            *digit += u8::try_from(status / divisor % 10).unwrap_or_default();
        }
        let head = ProvedHead {
            start: [&digits, b""],
            lines: received(fields),
        };
        let to = (self.own_name(), nonce);
        let is_proved = self.secret.is_response_proved(to, &report, head);
        (is_proved && report.node == self.name(place)).then_some(report)
    }

    /// Appends the field line of a response of this node to `asked`, a request of another one, to
    /// its head, which begins at `from` and is whole but for its end: what is appended behind it is
    /// not proved. `reads_waiting` are reads that wait for its disk; `process` is this one, where
    /// that is told.
    pub(crate) fn seal_response(
        &self,
        asked: &PeerRequest<'_>,
        (reads_waiting, process): (u32, Option<&str>),
        (maker, asker): (Maker, Asker),
        (out, from): (&mut Vec<u8>, usize),
    ) {
        let own = self.member(self.own);
        let (outstanding, waiting) = self.state.own_load();
        let miss_pressure = waiting.saturating_add(reads_waiting);
        let report = PeerReport {
            node: &own.name,
            state: self.state.own_state().as_str(),
            outstanding,
            miss_pressure,
            placement: Some(self.placement.get()),
            proof: "",
            is_own: maker == Maker::Node,
            is_unlisted: asker == Asker::Unlisted,
            process,
        };
        seal_response(&self.secret, asked, &report, (out, from));
    }

    /// The node at `place` says `report`. Whether it has other nodes keep targets than this one
    /// does, if the operator is to be told that: it begins to, or ends. What answers a request of
    /// before a reload says nothing of that: the node may have said another one since.
    pub(super) fn note_placement(&self, place: Place, report: &PeerReport<'_>) -> Option<bool> {
        let is_replaced = self.is_replaced.load(Ordering::Relaxed);
        let theirs = report.placement.filter(|_| !is_replaced)?;
        self.state.placement_of(place).note(self.placement, theirs)
    }

    /// Whether the node at `place` has other nodes keep targets than this one does, as far as it
    /// said.
    pub(super) fn is_placement_different(&self, place: Place) -> bool {
        place != self.own && self.state.placement_of(place).differs(self.placement)
    }

    /// The other nodes.
    pub(crate) fn other_places(&self) -> impl Iterator<Item = Place> {
        let all = (0..).map(Place).take(self.members.len());
        all.filter(|place| *place != self.own)
    }

    /// The key in the digest of this node of what has this tag in its store.
    pub(crate) fn digest_key_of(&self, tag: u64) -> Digest {
        tag_key(&self.digest_key, tag)
    }

    /// The secret of this node's store, sealed for its digest of `epoch`.
    pub(crate) fn seal_digest(&self, epoch: u64, secret: Secret) -> SealedKey {
        self.secret.seal(self.own_name(), epoch, secret)
    }

    /// The key under which tags in the digest of this node are hashed.
    pub(crate) const fn digest_key(&self) -> &Secret {
        &self.digest_key
    }

    /// What `node` has sealed for its digest of `epoch`.
    pub(crate) fn open_digest(
        &self,
        node: &str,
        epoch: u64,
        key: &SealedKey,
    ) -> Option<DigestKeys> {
        self.secret.open(node, epoch, key)
    }

    /// The state of its nodes.
    pub(crate) fn state(&self) -> &Arc<ClusterState> {
        &self.state
    }
}

impl ClusterTerms {
    /// Who sends a request with this field and head to a node that is none of the members as it has
    /// them.
    pub(super) fn asker(&self, asked: &PeerRequest<'_>, head: &RequestHead<'_, '_>) -> Asker {
        match asked.to {
            Some(to) if is_proved_request(&self.secret, to, asked, head) => Asker::Unlisted,
            _ => Asker::Stranger,
        }
    }

    /// As [`Cluster::seal_response`], of such a node: it answers in the name that it is asked by.
    pub(super) fn seal_unlisted(
        &self,
        asked: &PeerRequest<'_>,
        (out, from): (&mut Vec<u8>, usize),
    ) {
        let Some(own) = asked.to else { return };
        let report = PeerReport {
            node: own,
            state: NodeState::In.as_str(),
            outstanding: 0,
            miss_pressure: 0,
            placement: None,
            proof: "",
            is_own: true,
            is_unlisted: true,
            process: None,
        };
        seal_response(&self.secret, asked, &report, (out, from));
    }
}

impl Member {
    fn new(member: &weir_cluster::Member) -> Self {
        Self {
            name: member.name.as_str().into(),
            key: NodeKey::of(&Secret([0; 16]), &member.name),
            hop: member.hop.clone(),
            weight: member.weight,
            is_front_end: member.state == NodeState::FrontEnd,
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

/// The mode of a request of a node to its own URL.
pub(crate) const OWN_URL: &str = "own-url";

/// The mode of a request for a digest.
pub(crate) const DIGESTS: &str = "digests";

/// The mode of a message that says how this node is, and asks how the other one is.
pub(crate) const STATE: &str = "state";

/// What that asks for.
pub(crate) const STATE_TARGET: &str = "/weir/state";

/// The mode of a message about a connection that is handed over.
pub(crate) const HAND_OFF: &str = "hand-off";

/// Whether the node that `asked` names has sent this head to the node `to`.
fn is_proved_request(
    secret: &ClusterSecret,
    to: &str,
    asked: &PeerRequest<'_>,
    head: &RequestHead<'_, '_>,
) -> bool {
    let proved = ProvedHead {
        start: [head.method.as_bytes(), head.target.as_bytes()],
        lines: received(head.fields),
    };
    secret.is_request_proved(to, asked, proved)
}

/// Appends the line with `report` and its proof.
fn seal_response(
    secret: &ClusterSecret,
    asked: &PeerRequest<'_>,
    report: &PeerReport<'_>,
    (out, from): (&mut Vec<u8>, usize),
) {
    let (line, lines) = written(&out[from..]);
    let proved = ProvedHead {
        start: status_start(line),
        lines,
    };
    let proof = secret.response_proof((asked.node, asked.nonce), report, proved);
    let report = PeerReport {
        // without a proof the other node does not take it
        proof: proof.as_ref().map_or("", Proof::as_str),
        ..*report
    };
    write_line(out, |out| report.write(out));
}

fn write_line(out: &mut Vec<u8>, value: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(PEER_FIELD.as_bytes());
    out.extend_from_slice(b": ");
    value(out);
    out.extend_from_slice(b"\r\n");
}
