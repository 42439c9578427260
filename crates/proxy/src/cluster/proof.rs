//! What shows a member that another one knows the secret of the cluster.
//!
//! HMAC-SHA-256 (RFC 2104) under the secret, which is never sent. A request has one of the names of
//! both nodes, a nonce, and its head. A response has one of both names, the nonce of the request
//! and its head. So a program that stands between two nodes can neither ask for something else nor
//! change the head of what is answered; it can send a copy of a request again, and change content.

use crate::cluster::proved_head::ProvedHead;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::hint::black_box;
use std::iter;
use weir_policy::Secret;
use weir_policy::route::{DigestKeys, SealedKey};
use weir_semantics::{PeerReport, PeerRequest};

/// What is signed begins with its purpose: no proof is of use for another one.
const OF_REQUEST: &str = "weir peer 2";
const OF_RESPONSE: &str = "weir peer response 2";
const OF_PURGES: &str = "weir purges 1";
const OF_PURGE_ANSWER: &str = "weir purge answer 1";
const OF_HAND_OFF: &str = "weir hand-off 1";
const OF_MOVE: &str = "weir hand-off move 1";
const OF_TARGETS: &str = "weir targets 1";
const OF_DIGESTS: &str = "weir digests 1";
const OF_DIGEST_MASK: &str = "weir digest mask 1";
const OF_DIGEST_CHECK: &str = "weir digest check 1";
const OF_ROUTES: &str = "weir route targets 1";

/// Bytes of the proof of a connection that is handed over.
pub(crate) const HAND_OFF_PROOF_BYTES: usize = 32;

/// Bytes for which there is room without a second allocation, as most heads have no more.
const HEAD_BYTES: usize = 1024;

/// The key of a secret.
type Key = Hmac<Sha256>;

/// The secrets of a cluster: the one that this node proves with, and perhaps another one that it
/// accepts, too, while the nodes change from one to the other; or that there is none.
#[derive(Clone)]
pub(crate) struct ClusterSecret {
    own: Option<Key>,
    /// Only beside an own one: it proves nothing here that the own one would not.
    accepted: Option<Key>,
}

/// What a node sends, or is to send: base64, empty without a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof(Box<str>);

impl ClusterSecret {
    pub(crate) fn new(secret: Option<&str>) -> Self {
        Self {
            own: secret.map(key_of),
            accepted: None,
        }
    }

    /// One that proves with `own`, and accepts what is proved with `other`, too.
    pub(crate) fn changing(own: &str, other: &str) -> Self {
        Self {
            own: Some(key_of(own)),
            accepted: Some(key_of(other)),
        }
    }

    /// Whether there is one.
    pub(super) const fn is_some(&self) -> bool {
        self.own.is_some()
    }

    /// What the node that sends `asked` to the node `to` sends with it, in a request with this
    /// head; `None` if no such head is sent.
    pub(super) fn request_proof<'h>(
        &self,
        to: &str,
        asked: &PeerRequest<'_>,
        head: ProvedHead<'h, impl Iterator<Item = (&'h [u8], &'h [u8])>>,
    ) -> Option<Proof> {
        if !self.is_some() {
            return Some(Proof(Box::default()));
        }
        let text = request_text(to, asked, head)?;
        Some(self.proof(|key| mac(key, &text)))
    }

    /// Whether the proof in `asked` is one of such a request, with any of the secrets.
    pub(super) fn is_request_proved<'h>(
        &self,
        to: &str,
        asked: &PeerRequest<'_>,
        head: ProvedHead<'h, impl Iterator<Item = (&'h [u8], &'h [u8])>>,
    ) -> bool {
        if !self.is_some() {
            return asked.proof.is_empty();
        }
        let text = request_text(to, asked, head);
        text.is_some_and(|text| self.accepts(asked.proof, |key| mac(key, &text)))
    }

    /// What a node that sends `report` sends with it to the node `to`, in a response with this head
    /// to a request with `nonce`; `None` if no such head is sent.
    pub(super) fn response_proof<'h>(
        &self,
        of: (&str, &str),
        report: &PeerReport<'_>,
        head: ProvedHead<'h, impl Iterator<Item = (&'h [u8], &'h [u8])>>,
    ) -> Option<Proof> {
        if !self.is_some() {
            return Some(Proof(Box::default()));
        }
        let text = response_text(of, report, head)?;
        Some(self.proof(|key| mac(key, &text)))
    }

    /// Whether the proof in `report` is one of such a response, with any of the secrets.
    pub(super) fn is_response_proved<'h>(
        &self,
        of: (&str, &str),
        report: &PeerReport<'_>,
        head: ProvedHead<'h, impl Iterator<Item = (&'h [u8], &'h [u8])>>,
    ) -> bool {
        if !self.is_some() {
            return report.proof.is_empty();
        }
        let text = response_text(of, report, head);
        text.is_some_and(|text| self.accepts(report.proof, |key| mac(key, &text)))
    }

    /// What `from` sends to `to` with purges: of what they are, so that no other ones can be sent
    /// with it.
    pub(super) fn purges_proof(&self, from: &str, to: &str, content: &str) -> Proof {
        self.proof(|key| mac_of(key, &[OF_PURGES, from, to, content]))
    }

    /// Whether `proof` is that of `content`, with any of the secrets.
    pub(super) fn are_purges_proved(
        &self,
        (from, to): (&str, &str),
        content: &str,
        proof: &str,
    ) -> bool {
        self.accepts(proof, |key| mac_of(key, &[OF_PURGES, from, to, content]))
    }

    /// What `from` sends with its answer to purges of `to` with `nonce`.
    pub(super) fn purge_answer_proof(
        &self,
        (from, to): (&str, &str),
        nonce: &str,
        content: &str,
    ) -> Proof {
        let parts = [OF_PURGE_ANSWER, from, to, nonce, content];
        self.proof(|key| mac_of(key, &parts))
    }

    /// Whether `proof` is that of `content`, with any of the secrets.
    pub(super) fn is_purge_answer_proved(
        &self,
        (from, to): (&str, &str),
        nonce: &str,
        (content, proof): (&str, &str),
    ) -> bool {
        let parts = [OF_PURGE_ANSWER, from, to, nonce, content];
        self.accepts(proof, |key| mac_of(key, &parts))
    }

    /// What `from` sends to `to` with a connection that it hands over, or with the word to go on
    /// with it: of the content, and of a nonce. `None` without a secret.
    pub(super) fn hand_off_proof(
        &self,
        words: [&str; 3],
        content: &[u8],
    ) -> Option<[u8; HAND_OFF_PROOF_BYTES]> {
        Some(hand_off_mac(self.own.as_ref()?, words, content))
    }

    /// Whether `presented` is that of `content`, with any of the secrets.
    pub(super) fn is_hand_off_proved(
        &self,
        words: [&str; 3],
        content: &[u8],
        presented: &[u8],
    ) -> bool {
        let mut keys = self.own.iter().chain(&self.accepted);
        keys.any(|key| are_equal(&hand_off_mac(key, words, content), presented))
    }

    /// What a front end gives a node that may move a connection: of what, in words.
    pub(super) fn move_permit(&self, words: [&str; 6]) -> Proof {
        self.proof(|key| mac_of_words(key, OF_MOVE, words))
    }

    /// Whether `presented` is that, with any of the secrets; never without a secret.
    pub(super) fn is_move_permitted(&self, words: [&str; 6], presented: &str) -> bool {
        self.is_some() && self.accepts(presented, |key| mac_of_words(key, OF_MOVE, words))
    }

    /// The key under which targets are hashed, the same on every node: clients that do not know it
    /// cannot choose targets that one node has all of.
    pub(super) fn target_key(&self) -> Secret {
        Secret(first_half(self.own.as_ref(), &[OF_TARGETS]))
    }

    /// The key under which tags in the digest of this node are hashed.
    pub(super) fn digest_key(&self) -> Secret {
        Secret(first_half(self.own.as_ref(), &[OF_DIGESTS]))
    }

    /// The secret of `node`'s store for its digest of `epoch`, as the other nodes alone can read
    /// it; as it is without a secret of the cluster.
    pub(super) fn seal(&self, node: &str, epoch: u64, secret: Secret) -> SealedKey {
        seal(self.own.as_ref(), (node, epoch), secret)
    }

    /// What `node` has sealed for its digest of `epoch`, with any of the secrets; `None` if it was
    /// sealed otherwise.
    pub(super) fn open(&self, node: &str, epoch: u64, key: &SealedKey) -> Option<DigestKeys> {
        let own = iter::once(self.own.as_ref());
        let mut all = own.chain(self.accepted.iter().map(Some));
        all.find_map(|with| {
            let mask = first_half(with, &[OF_DIGEST_MASK, node, &epoch.to_string()]);
            let store = Secret(xor(key.masked, mask));
            let is_right = seal(with, (node, epoch), store).check == key.check;
            is_right.then(|| DigestKeys {
                store,
                tags: Secret(first_half(with, &[OF_DIGESTS])),
            })
        })
    }

    /// The same for next hops of routes, which are no nodes; `None` without a secret.
    pub(crate) fn route_key(&self) -> Option<Secret> {
        let own = self.own.as_ref()?;
        Some(Secret(first_half(Some(own), &[OF_ROUTES])))
    }

    /// Made with the secret of this node; empty without one.
    fn proof(&self, mac: impl FnOnce(&Key) -> [u8; 32]) -> Proof {
        let mac = self.own.as_ref().map(mac);
        Proof(
            mac.map_or_else(String::new, |mac| BASE64.encode(mac))
                .into(),
        )
    }

    /// Whether `presented` was made with one of the secrets; without any it must be empty.
    fn accepts(&self, presented: &str, mac: impl Fn(&Key) -> [u8; 32]) -> bool {
        let Some(own) = &self.own else {
            return presented.is_empty();
        };
        iter::once(own)
            .chain(&self.accepted)
            .any(|key| Proof(BASE64.encode(mac(key)).into()).is(presented))
    }
}

/// `words` are the names of both nodes and the nonce.
fn hand_off_mac(key: &Key, words: [&str; 3], content: &[u8]) -> [u8; HAND_OFF_PROOF_BYTES] {
    let mut mac = key.clone();
    for part in iter::once(OF_HAND_OFF).chain(words) {
        mac.update(part.as_bytes());
        mac.update(&[0]);
    }
    mac.update(content);
    mac.finalize().into_bytes().into()
}

fn key_of(secret: &str) -> Key {
    Hmac::new_from_slice(secret.as_bytes()).expect("HMAC takes keys of any length")
}

/// What is proved of a request; `None` if no such head is sent.
fn request_text<'h>(
    to: &str,
    asked: &PeerRequest<'_>,
    head: ProvedHead<'h, impl Iterator<Item = (&'h [u8], &'h [u8])>>,
) -> Option<Vec<u8>> {
    let unproved = PeerRequest {
        proof: "",
        ..*asked
    };
    head_text([OF_REQUEST, to], |out| unproved.write(out), head)
}

/// What is proved of a response to the node `to` with `nonce`; `None` if no such head is sent.
fn response_text<'h>(
    (to, nonce): (&str, &str),
    report: &PeerReport<'_>,
    head: ProvedHead<'h, impl Iterator<Item = (&'h [u8], &'h [u8])>>,
) -> Option<Vec<u8>> {
    let unproved = PeerReport {
        proof: "",
        ..*report
    };
    let write = |out: &mut Vec<u8>| {
        out.extend_from_slice(nonce.as_bytes());
        out.push(0);
        unproved.write(out);
    };
    head_text([OF_RESPONSE, to], write, head)
}

/// Of words without NUL, of a field, which has none either, and of a head. In one piece: to add
/// many small ones to a MAC takes half as long again.
fn head_text<'h>(
    words: [&str; 2],
    field: impl Fn(&mut Vec<u8>),
    head: ProvedHead<'h, impl Iterator<Item = (&'h [u8], &'h [u8])>>,
) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(HEAD_BYTES);
    for word in words {
        text.extend_from_slice(word.as_bytes());
        text.push(0);
    }
    field(&mut text);
    text.push(0);
    let is_proved = head.hand_over(|part| text.extend_from_slice(part));
    is_proved.then_some(text)
}

fn mac(key: &Key, text: &[u8]) -> [u8; 32] {
    let mut mac = key.clone();
    mac.update(text);
    mac.finalize().into_bytes().into()
}

/// Names, nonces and lines of words have no NUL, so that no two lists are signed alike.
fn mac_of(key: &Key, parts: &[&str]) -> [u8; 32] {
    let mut mac = key.clone();
    for part in parts {
        mac.update(part.as_bytes());
        mac.update(&[0]);
    }
    mac.finalize().into_bytes().into()
}

fn mac_of_words(key: &Key, purpose: &str, words: [&str; 6]) -> [u8; 32] {
    let [a, b, c, d, e, f] = words;
    mac_of(key, &[purpose, a, b, c, d, e, f])
}

/// Zeros without a secret.
fn first_half(key: Option<&Key>, parts: &[&str]) -> [u8; 16] {
    let mut half = [0; 16];
    if let Some(key) = key {
        half.copy_from_slice(&mac_of(key, parts)[..16]);
    }
    half
}

fn seal(key: Option<&Key>, (node, epoch): (&str, u64), secret: Secret) -> SealedKey {
    let epoch = epoch.to_string();
    let mask = first_half(key, &[OF_DIGEST_MASK, node, &epoch]);
    let parts = [OF_DIGEST_CHECK, node, &epoch, &BASE64.encode(secret.0)];
    SealedKey {
        masked: xor(secret.0, mask),
        check: first_half(key, &parts),
    }
}

fn xor(bytes: [u8; 16], mask: [u8; 16]) -> [u8; 16] {
    std::array::from_fn(|at| bytes[at] ^ mask[at])
}

impl Proof {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `presented` is this one. The time depends on its length alone.
    pub(crate) fn is(&self, presented: &str) -> bool {
        are_equal(self.0.as_bytes(), presented.as_bytes())
    }
}

/// Whether they are; the time depends on their lengths alone.
pub(super) fn are_equal(own: &[u8], presented: &[u8]) -> bool {
    if own.len() != presented.len() {
        return false;
    }
    let pairs = own.iter().zip(presented);
    let difference = pairs.fold(0, |all, (one, other)| black_box(all | (one ^ other)));
    difference == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_semantics::PurgeSequence;

    impl ClusterSecret {
        fn mac_of(&self, text: &[u8]) -> Option<Proof> {
            let mac = mac(self.own.as_ref()?, text);
            Some(Proof(BASE64.encode(mac).into()))
        }
    }

    const ASKED: PeerRequest<'_> = PeerRequest {
        node: "b",
        mode: "gateway",
        proof: "",
        nonce: "AAAA",
        to: Some("a"),
        state: None,
        sequence: None,
    };
    const SEQUENCE: Option<PurgeSequence<'_>> = Some(PurgeSequence {
        session: "BBBB",
        number: 7,
    });
    const REPORT: PeerReport<'_> = PeerReport {
        node: "a",
        state: "in",
        outstanding: 0,
        miss_pressure: 0,
        placement: Some(7),
        proof: "",
        is_own: false,
        is_unlisted: false,
        process: None,
    };

    type Lines<'l> = &'l [(&'l [u8], &'l [u8])];

    const FIELDS: Lines<'_> = &[(b"Age", b"1"), (b"ETag", b"x")];

    fn head<'h>(
        start: [&'h [u8]; 2],
        lines: Lines<'h>,
    ) -> ProvedHead<'h, impl Iterator<Item = (&'h [u8], &'h [u8])>> {
        let lines = lines.iter().copied();
        ProvedHead { start, lines }
    }

    fn of_response(
        secret: &ClusterSecret,
        to: (&str, &str),
        report: &PeerReport<'_>,
        (status, lines): (&[u8], Lines<'_>),
    ) -> Proof {
        let proof = secret.response_proof(to, report, head([status, b""], lines));
        proof.expect("a head that is sent")
    }

    #[test]
    fn proof_holds_for_one_secret_one_direction_one_nonce_one_report_one_head_and_one_purpose() {
        let secret = ClusterSecret::new(Some("an-agreed-secret-of-nodes"));
        let other = ClusterSecret::new(Some("another-secret-of-nodes"));
        let (to, ok) = (("b", "AAAA"), (&b"200"[..], FIELDS));
        let proof = of_response(&secret, to, &REPORT, ok);
        assert!(proof.is(of_response(&secret, to, &REPORT, ok).as_str()));
        let report = |change: fn(&mut PeerReport<'_>)| {
            let mut report = REPORT;
            change(&mut report);
            of_response(&secret, to, &report, ok)
        };
        let fields = |lines: Lines<'_>| of_response(&secret, to, &REPORT, (b"200", lines));
        let request = secret.request_proof("a", &ASKED, head([b"200", b""], FIELDS));
        for wrong in [
            of_response(&other, to, &REPORT, ok),
            of_response(&secret, ("c", "AAAA"), &REPORT, ok),
            of_response(&secret, ("b", "AAAB"), &REPORT, ok),
            of_response(&secret, ("", "bAAAA"), &REPORT, ok),
            report(|report| report.node = "c"),
            report(|report| report.outstanding = 1),
            report(|report| report.placement = Some(8)),
            report(|report| report.placement = None),
            report(|report| report.is_own = true),
            report(|report| report.is_unlisted = true),
            of_response(&secret, to, &REPORT, (b"203", FIELDS)),
            fields(&FIELDS[1..]),
            fields(&[(b"ETag", b"x"), (b"Age", b"1")]),
            fields(&[(b"Age", b"1"), (b"ETag", b"y")]),
            fields(&[(b"Age", b"1"), (b"ETag", b"x"), (b"Vary", b"")]),
            request.expect("a head that is sent"),
            secret.purges_proof("a", "b", "AAAA"),
            secret.purge_answer_proof(("a", "b"), "AAAA", ""),
        ] {
            assert!(!proof.is(wrong.as_str()), "{wrong:?}");
        }
        assert!(!proof.is(""));
        assert!(!proof.is(&proof.as_str()[1..]));
    }

    #[test]
    fn proofs_are_of_the_texts_that_the_page_has() {
        let secret = ClusterSecret::new(Some("an-agreed-secret-of-nodes"));
        let of = |text: &str| {
            let mac = secret.mac_of(text.as_bytes());
            mac.expect("a secret")
        };
        let request = secret.request_proof("a", &ASKED, head([b"GET", b"/x"], FIELDS));
        let text =
            "weir peer 2\0a\0node=b, mode=gateway, to=a, nonce=:AAAA:\0GET\n/x\nAge:1\nETag:x\n";
        assert_eq!(request, Some(of(text)));
        let purging = PeerRequest {
            mode: "purges",
            sequence: SEQUENCE,
            ..ASKED
        };
        let request = secret.request_proof("a", &purging, head([b"PUT", b"/x"], FIELDS));
        let text = "weir peer 2\0a\0node=b, mode=purges, to=a, session=:BBBB:, number=7, \
                    nonce=:AAAA:\0PUT\n/x\nAge:1\nETag:x\n";
        assert_eq!(request, Some(of(text)));
        let response = of_response(&secret, ("b", "AAAA"), &REPORT, (b"200", FIELDS));
        let report = "node=a, state=in, outstanding=0, miss-pressure=0, placement=7";
        let text = format!("weir peer response 2\0b\0AAAA\0{report}\0200\n\nAge:1\nETag:x\n");
        assert_eq!(response, of(&text));
    }

    #[test]
    fn proof_of_a_request_holds_for_its_nonce_its_mode_its_target_and_its_fields_alone() {
        let secret = ClusterSecret::new(Some("an-agreed-secret-of-nodes"));
        let start: [&[u8]; 2] = [b"GET", b"/x"];
        let of = |to: &str, asked: &PeerRequest<'_>, start, lines| {
            let proof = secret.request_proof(to, asked, head(start, lines));
            proof.expect("a head that is sent")
        };
        let proof = of("a", &ASKED, start, FIELDS);
        let asked = |change: fn(&mut PeerRequest<'_>)| {
            let mut asked = ASKED;
            change(&mut asked);
            of("a", &asked, start, FIELDS)
        };
        for wrong in [
            of("c", &ASKED, start, FIELDS),
            asked(|asked| asked.node = "c"),
            asked(|asked| asked.mode = "forward"),
            asked(|asked| asked.state = Some("draining")),
            asked(|asked| asked.nonce = "AAAB"),
            asked(|asked| asked.sequence = SEQUENCE),
            of("a", &ASKED, [b"HEAD", b"/x"], FIELDS),
            of("a", &ASKED, [b"GET", b"/y"], FIELDS),
            of("a", &ASKED, start, &FIELDS[..1]),
        ] {
            assert!(!proof.is(wrong.as_str()), "{wrong:?}");
        }
        assert!(proof.is(asked(|asked| asked.proof = "AAAA").as_str()));
    }

    #[test]
    fn sealed_key_is_opened_with_the_same_secret_for_the_same_node_and_epoch_alone() {
        let secret = ClusterSecret::new(Some("an-agreed-secret-of-nodes"));
        let sealed = secret.seal("a", 7, Secret([5; 16]));
        assert_ne!(sealed.masked, [5; 16]);
        let open = |secret: &ClusterSecret, node, epoch, key| {
            let keys = secret.open(node, epoch, key);
            keys.map(|keys| keys.store.0)
        };
        assert_eq!(open(&secret, "a", 7, &sealed), Some([5; 16]));
        assert_eq!(open(&secret, "b", 7, &sealed), None);
        assert_eq!(open(&secret, "a", 8, &sealed), None);
        let other = ClusterSecret::new(Some("another-secret-of-nodes"));
        let none = ClusterSecret::new(None);
        assert_eq!(open(&other, "a", 7, &sealed), None);
        assert_eq!(open(&none, "a", 7, &sealed), None);
        let plain = none.seal("a", 7, Secret([5; 16]));
        assert_eq!(open(&none, "a", 7, &plain), Some([5; 16]));
        assert_eq!(open(&secret, "a", 7, &plain), None);
    }

    #[test]
    fn each_of_two_secrets_is_accepted_and_the_first_is_proved_with() {
        let (old, new) = ("an-agreed-secret-of-nodes", "another-secret-of-nodes");
        let of_old = ClusterSecret::new(Some(old));
        let of_new = ClusterSecret::new(Some(new));
        let first_old = ClusterSecret::changing(old, new);
        let first_new = ClusterSecret::changing(new, old);
        let none = ClusterSecret::new(None);
        let all = [&of_old, &first_old, &first_new, &of_new, &none];
        // which of them takes what each of them proves
        let expected = [
            [true, true, true, false, false],
            [true, true, true, false, false],
            [false, true, true, true, false],
            [false, true, true, true, false],
            [false, false, false, false, true],
        ];
        for (proves, row) in all.iter().zip(expected) {
            for (accepts, expected) in all.iter().zip(row) {
                assert_eq!(takes_all_proofs(proves, accepts), [expected; 5]);
            }
        }
        assert_eq!(first_new.target_key().0, of_new.target_key().0);
        assert_eq!(first_new.digest_key().0, of_new.digest_key().0);
        let route_key = |secret: &ClusterSecret| secret.route_key().map(|key| key.0);
        assert_eq!(route_key(&first_new), route_key(&of_new));
    }

    /// Whether `accepts` takes the proofs that `proves` makes, of each kind.
    fn takes_all_proofs(proves: &ClusterSecret, accepts: &ClusterSecret) -> [bool; 5] {
        let start: [&[u8]; 2] = [b"GET", b"/x"];
        let proof = proves.request_proof("a", &ASKED, head(start, FIELDS));
        let proof = proof.expect("a head that is sent");
        let asked = PeerRequest {
            proof: proof.as_str(),
            ..ASKED
        };
        let to = ("b", "AAAA");
        let answered = of_response(proves, to, &REPORT, (b"200", FIELDS));
        let report = PeerReport {
            proof: answered.as_str(),
            ..REPORT
        };
        let purges = proves.purges_proof("a", "b", "x");
        let answer = proves.purge_answer_proof(("a", "b"), "AAAA", "y");
        let sealed = proves.seal("a", 7, Secret([5; 16]));
        let opened = accepts.open("a", 7, &sealed);
        if let Some(keys) = &opened {
            assert_eq!(keys.store.0, [5; 16]);
            assert_eq!(keys.tags.0, proves.digest_key().0);
        }
        [
            accepts.is_request_proved("a", &asked, head(start, FIELDS)),
            accepts.is_response_proved(to, &report, head([b"200", b""], FIELDS)),
            accepts.are_purges_proved(("a", "b"), "x", purges.as_str()),
            accepts.is_purge_answer_proved(("a", "b"), "AAAA", ("y", answer.as_str())),
            opened.is_some(),
        ]
    }

    #[test]
    fn proof_of_a_hand_off_holds_for_its_nodes_its_nonce_and_its_content_alone() {
        let secret = ClusterSecret::new(Some("an-agreed-secret-of-nodes"));
        let words = ["a", "b", "AAAA"];
        let proof = secret.hand_off_proof(words, b"state").expect("a secret");
        let holds = |secret: &ClusterSecret, words, content: &[u8]| {
            secret.is_hand_off_proved(words, content, &proof)
        };
        assert!(holds(&secret, words, b"state"));
        let changing =
            ClusterSecret::changing("a-new-secret-of-nodes", "an-agreed-secret-of-nodes");
        assert!(holds(&changing, words, b"state"));
        assert!(!holds(&secret, ["b", "a", "AAAA"], b"state"));
        assert!(!holds(&secret, ["a", "c", "AAAA"], b"state"));
        assert!(!holds(&secret, ["a", "b", "AAAB"], b"state"));
        assert!(!holds(&secret, ["a", "b", ""], b"AAAA\0state"));
        assert!(!holds(&secret, words, b"stat"));
        let other = ClusterSecret::new(Some("another-secret-of-nodes"));
        assert!(!holds(&other, words, b"state"));
        let none = ClusterSecret::new(None);
        assert!(!holds(&none, words, b"state"));
        assert_eq!(none.hand_off_proof(words, b"state"), None);
        assert!(!none.is_hand_off_proved(words, b"state", b""));
    }

    #[test]
    fn permit_of_a_move_holds_for_its_words_alone_and_never_without_a_secret() {
        let secret = ClusterSecret::new(Some("an-agreed-secret-of-nodes"));
        let words = ["f", "a", "b", "192.0.2.1:5", "AAAA", "1"];
        let permit = secret.move_permit(words);
        assert!(secret.is_move_permitted(words, permit.as_str()));
        for at in 0..words.len() {
            let mut others = words;
            others[at] = "x";
            assert!(
                !secret.is_move_permitted(others, permit.as_str()),
                "{others:?}"
            );
        }
        assert!(!secret.is_move_permitted(words, ""));
        let other = ClusterSecret::new(Some("another-secret-of-nodes"));
        assert!(!other.is_move_permitted(words, permit.as_str()));
        let none = ClusterSecret::new(None);
        assert!(!none.is_move_permitted(words, none.move_permit(words).as_str()));
    }

    #[test]
    fn without_a_secret_proofs_are_empty() {
        let none = ClusterSecret::new(None);
        let request = none.request_proof("a", &ASKED, head([b"GET", b"/x"], FIELDS));
        assert_eq!(request.expect("a head").as_str(), "");
        let response = of_response(&none, ("b", ""), &REPORT, (b"200", FIELDS));
        assert!(response.is(""));
        assert!(!response.is("AAAA"));
    }
}
