//! The listener for the other members.

use crate::client::fast::{InputResult, Receiver};
use crate::client::hand_off::HandOffStep;
use crate::cluster::digests::known_of;
use crate::cluster::purges::TARGET;
use crate::cluster::{
    Asker, Cluster, DIGESTS, HAND_OFF, Maker, NAMESAKE_PROBLEM, PURGES, STATE, STATE_TARGET,
};
use crate::config::Mode;
use crate::exchange::state::{MemberMessage, Plan};
use crate::log::client::{ClientFacts, ForPeers, HttpVersions, ListenerFacts};
use crate::log::module_log::RefusalKind;
use crate::request::answer::{Answer, AnswerReason, reason_phrase};
use crate::request::facts::Request;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use weir_measure::{Metric, PeerRefusal};
use weir_policy::{Digest, Transaction};
use weir_semantics::Scheme;
use weir_semantics::{
    Authority, FieldLine, HostName, Method, PEER_FIELD, PURGE_MESSAGE_BYTES_MAX, PeerRequest,
    ProxyError, RequestFacts, canonical_target, lines_named,
};
use weir_wire::{BodyLength, RequestHead, Version, request_body, write};

/// A request that names a node, at a peer listener. It is proved once: any program can send one
/// with a long head.
pub(crate) struct NodeRequest<'h> {
    asked: PeerRequest<'h>,
    asker: Asker,
}

impl<'h> NodeRequest<'h> {
    /// `None` if there is no such field in the head, or more than one.
    #[cold]
    pub(crate) fn of(settings: &Settings, head: &RequestHead<'h, '_>) -> Option<Self> {
        let asked = peer_request(head)?;
        let asker = settings.membership.asker(&asked, head);
        Some(Self { asked, asker })
    }

    /// What a member asks.
    fn of_member(&self) -> Option<&PeerRequest<'h>> {
        (self.asker == Asker::Member).then_some(&self.asked)
    }
}

/// The two listeners that a peer listener stands for: a node's request says which of them its
/// client came to.
#[derive(Clone, Debug)]
pub(crate) struct PeerListener {
    of_modes: [Rc<ListenerFacts>; 2],
}

impl PeerListener {
    /// For one worker.
    pub(crate) fn new() -> Self {
        // requests of members are in absolute form
        let default = Arc::new(Authority::parse("localhost").expect("a host"));
        let of_modes = [Mode::Forward, Mode::Gateway].map(|mode| {
            Rc::new(ListenerFacts {
                versions: HttpVersions::Http1,
                scheme: Scheme::Http,
                tls: None,
                balancers: Arc::default(),
                tls_address: None,
                is_handed_over: false,
                mode,
                default: Arc::clone(&default),
                peers: ForPeers::Member,
                name: None,
                is_named: false,
                address: None,
                closed: Arc::default(),
            })
        });
        Self { of_modes }
    }

    /// The receiver of a request at a peer listener: as of a listener of the mode that it is for.
    ///
    /// # Errors
    ///
    /// The answer to what is not a request of a member, or none that a member sends.
    #[cold]
    pub(crate) fn receiver<'a>(
        &'a self,
        receiver: &Receiver<'a>,
        head: &RequestHead<'_, '_>,
    ) -> Result<Receiver<'a>, Answer> {
        let listener = self.accept(receiver, head);
        let listener = listener.map_err(|refusal| refusal.answer(receiver))?;
        let client = ClientFacts {
            listener,
            ..receiver.client
        };
        Ok(Receiver {
            client,
            ..*receiver
        })
    }

    /// What becomes of a message to this node alone, about purges, its digest or the states of
    /// both; `None` if the request is none of a member. An answer at once is appended to `out`.
    #[cold]
    pub(crate) fn message(
        &self,
        receiver: &Receiver<'_>,
        head: &RequestHead<'_, '_>,
        (received, started): (&[u8], Instant),
        out: &mut Vec<u8>,
    ) -> Option<InputResult> {
        let consumed = received.len();
        if answer_state(receiver, head, out) {
            return Some(InputResult::Answered { consumed });
        }
        let (message, body) = message_of(receiver, head)?;
        let listener = &self.of_modes[0];
        let client = ClientFacts {
            listener,
            ..receiver.client
        };
        let receiver = Receiver {
            client,
            ..*receiver
        };
        let mut log = receiver.log(started, received.len());
        log.keep_details(received);
        let request = Request::of_member(head, listener, body);
        let facts = RequestFacts::gather(request.method, "/", head.fields);
        let tx = Transaction::new(facts, receiver.worker.now());
        let exchange =
            receiver.exchange(request, (tx, Plan::Member(message), Digest::default()), log);
        Some(InputResult::Exchange { consumed, exchange })
    }

    fn accept(
        &self,
        receiver: &Receiver<'_>,
        head: &RequestHead<'_, '_>,
    ) -> Result<&Rc<ListenerFacts>, Refusal> {
        let settings = receiver.settings;
        let facts = self.facts(settings, receiver.node)?;
        let method = Method::parse(head.method);
        let is_plain = matches!(method, Method::Get | Method::Head) && lacks_content(head);
        if !is_plain {
            let text =
                "members ask each other for what may be stored: by GET or HEAD, without content";
            return Err(Refusal::Refused(PeerRefusal::Method, refused(405, text)));
        }
        if !settings.modules.is_empty() && calls_module(settings, facts, head) {
            let text = "a module of this node is called for the target: the node whose client asks is to ask the origin";
            return Err(Refusal::Refused(PeerRefusal::Module, refused(421, text)));
        }
        Ok(facts)
    }

    fn facts(
        &self,
        settings: &Settings,
        node: Option<&NodeRequest<'_>>,
    ) -> Result<&Rc<ListenerFacts>, Refusal> {
        let refusal = |reason| Refusal::Refused(reason, stranger());
        let NodeRequest { asked, asker } = node.ok_or_else(|| refusal(PeerRefusal::NoField))?;
        match asker {
            Asker::Member => {}
            Asker::Unlisted => {
                let answer = unlisted(asked.node);
                return Err(Refusal::Refused(PeerRefusal::Unlisted, answer));
            }
            Asker::Namesake => {
                let is_own = settings.membership.own_url.receive(asked.nonce);
                return Err(match is_own {
                    true => Refusal::Own,
                    false => Refusal::Namesake(asked.node.to_owned()),
                });
            }
            Asker::Stranger => {
                let cluster = settings.membership.current();
                let own = cluster.as_ref().map(|cluster| cluster.own_name());
                let is_misnamed = own.zip(asked.to).is_some_and(|(own, to)| own != to);
                return Err(refusal(match is_misnamed {
                    true => PeerRefusal::OtherName,
                    false => PeerRefusal::NotProved,
                }));
            }
        }
        let mut facts = self.of_modes.iter();
        let facts = facts.find(|facts| facts.mode.as_str() == asked.mode);
        let facts = facts.filter(|facts| serves(settings, facts.mode));
        facts.ok_or_else(|| refusal(PeerRefusal::Mode))
    }
}

/// Answers a message that says how another node is with how this one is; `false` if the request
/// is none. It is no request of a client: it is in no log, and not counted as one.
#[cold]
fn answer_state(receiver: &Receiver<'_>, head: &RequestHead<'_, '_>, out: &mut Vec<u8>) -> bool {
    let asked = receiver.node.and_then(NodeRequest::of_member);
    let asked = asked.filter(|asked| asked.mode == STATE);
    let Some(asked) = asked.filter(|_| (head.method, head.target) == ("GET", STATE_TARGET)) else {
        return false;
    };
    let Some(cluster) = receiver.settings.cluster().filter(|_| lacks_content(head)) else {
        return false;
    };
    let worker = receiver.worker;
    if let Some((place, state)) = cluster.place_of(asked.node).zip(asked.state) {
        // a copy of an old message says so, too: it is asked, and its answer counts
        if cluster.state().is_news(worker.now(), place, state) {
            receiver.settings.membership.to_ask.hint(asked.node);
        }
    }
    let from = out.len();
    write::status_line(out, Version::Http11, 204, reason_phrase(204));
    write::field(out, "Date", &worker.date());
    let of = (Maker::Node, Asker::Member);
    let reads_waiting = worker.shared.reads_waiting();
    let process = &*worker.shared.cluster_purges.process.0;
    cluster.seal_response(asked, (reads_waiting, Some(process)), of, (out, from));
    write::end_of_head(out);
    true
}

/// Tells the operator of a program that says it is a node and is not taken for a member, and why.
fn tell_refusal(receiver: &Receiver<'_>, reason: PeerRefusal) {
    let Some(NodeRequest { asked, .. }) = receiver.node else {
        return;
    };
    let cluster = receiver.settings.cluster();
    let why = match reason {
        PeerRefusal::Unlisted => "it is none of the members that this node knows".to_owned(),
        PeerRefusal::OtherName => {
            let own = cluster.as_ref().map_or("another", |it| it.own_name());
            format!(
                "it calls this node {}, which is {own}",
                asked.to.unwrap_or("-")
            )
        }
        PeerRefusal::NotProved => "its proof is not made with the secret of this node".to_owned(),
        _ => return,
    };
    let (node, address) = (asked.node, receiver.client.peer.ip());
    let (log, now) = (&receiver.worker.shared.module_log, receiver.worker.now());
    let is_member = cluster.is_some_and(|it| it.place_of(node).is_some());
    let kind = match reason {
        PeerRefusal::NotProved if is_member => RefusalKind::MemberNotProved,
        _ => RefusalKind::Other,
    };
    log.write_refusal(now.tick, kind, || {
        format!("refused node {node} from {address}: {why}")
    });
}

/// Why a request is not served as one of a member.
enum Refusal {
    /// This process has sent it, to find out where its URL leads: it is answered, and that is all.
    Own,
    /// Another process has sent it in the name of this node.
    Namesake(String),
    Refused(PeerRefusal, Answer),
}

impl Refusal {
    /// Counts it, and makes the answer.
    fn answer(self, receiver: &Receiver<'_>) -> Answer {
        let counters = receiver.worker.counters();
        let (reason, answer) = match self {
            Self::Own => return refused(403, "this node has asked where its own url leads"),
            Self::Namesake(name) => {
                counters.inc(Metric::PeerNamesakes);
                say_namesake(receiver, &name);
                let text = format!("`{name}` is the name of the node that is asked");
                (PeerRefusal::Namesake, refused(403, &text))
            }
            Self::Refused(reason, answer) => {
                tell_refusal(receiver, reason);
                (reason, answer)
            }
        };
        counters.inc(Metric::PeersRefused(reason));
        answer
    }
}

/// Two nodes with one name are one for the others: what is purged at one of them stays at the
/// other.
fn say_namesake(receiver: &Receiver<'_>, name: &str) {
    if receiver
        .settings
        .membership
        .own_url
        .note_namesake(Instant::now())
    {
        let line = format!(
            "cluster: node {name}, asked by {}: {NAMESAKE_PROBLEM}",
            receiver.client.peer.ip()
        );
        receiver.worker.shared.module_log.write(line);
    }
}

/// The field of a member, which there is once.
fn peer_request<'h>(head: &RequestHead<'h, '_>) -> Option<PeerRequest<'h>> {
    let mut lines = lines_named(head.fields, PEER_FIELD);
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return None;
    };
    PeerRequest::read(line)
}

/// What a member wants with a message, and the length of its content.
fn message_of(
    receiver: &Receiver<'_>,
    head: &RequestHead<'_, '_>,
) -> Option<(MemberMessage, BodyLength)> {
    // what is for an origin is in absolute form
    let asked = receiver.node.and_then(NodeRequest::of_member);
    let asked = asked.filter(|_| head.target.starts_with('/'))?;
    let body = request_body(head.version, head.fields).ok()?;
    match (asked.mode, head.method, body) {
        (PURGES, "PUT", BodyLength::Exact(bytes)) => {
            let is_bounded = bytes <= PURGE_MESSAGE_BYTES_MAX as u64;
            (is_bounded && head.target == TARGET).then_some((MemberMessage::Purges, body))
        }
        (HAND_OFF, "POST", BodyLength::Exact(bytes)) => {
            let step = HandOffStep::of(head.target, bytes)?;
            Some((MemberMessage::HandOff(step), body))
        }
        (DIGESTS, "GET", BodyLength::None | BodyLength::Exact(0)) => {
            Some((MemberMessage::Digest(known_of(head.target)?), body))
        }
        _ => None,
    }
}

/// Whether a request has no content.
pub(crate) fn lacks_content(head: &RequestHead<'_, '_>) -> bool {
    let body = request_body(head.version, head.fields);
    matches!(body, Ok(BodyLength::None | BodyLength::Exact(0)))
}

/// Whether this node does for its own clients what a member asks for: it has a listener of that
/// mode, or routes.
fn serves(settings: &Settings, mode: Mode) -> bool {
    let config = &settings.config;
    let mut listeners = config.listeners.iter();
    let has_routes = mode == Mode::Gateway && !config.routes.is_empty();
    has_routes || listeners.any(|listener| listener.mode == mode.into())
}

/// What the responses to a request of another node end with: the field line of this node, which
/// proves the head before it.
pub(crate) struct PeerSeal {
    cluster: Arc<Cluster>,
    /// The value of the field that the other node has sent.
    asked: Box<[u8]>,
    maker: Maker,
}

impl PeerSeal {
    /// For responses to a request with these fields; `None` if it is of no node.
    pub(crate) fn new(settings: &Settings, fields: &[FieldLine<'_>], maker: Maker) -> Option<Self> {
        Some(Self {
            cluster: settings.cluster()?,
            asked: lines_named(fields, PEER_FIELD).next()?.into(),
            maker,
        })
    }

    /// Appends the field line to a head that begins at `from` and is whole but for its end.
    pub(crate) fn append(&self, worker: &Worker, out: &mut Vec<u8>, from: usize) {
        if let Some(asked) = PeerRequest::read(&self.asked) {
            let of = (self.maker, Asker::Member);
            let reads_waiting = worker.shared.reads_waiting();
            self.cluster
                .seal_response(&asked, (reads_waiting, None), of, (out, from));
        }
    }
}

/// The same for the answer to what is refused; nothing for a stranger and for a client.
pub(crate) fn seal_refusal(receiver: &Receiver<'_>, (out, from): (&mut Vec<u8>, usize)) {
    let Some(NodeRequest { asked, asker }) = receiver.node else {
        return;
    };
    if matches!(asker, Asker::Member | Asker::Unlisted) {
        let reads_waiting = receiver.worker.shared.reads_waiting();
        let membership = &receiver.settings.membership;
        membership.seal_own((asked, *asker), reads_waiting, (out, from));
    }
}

fn calls_module(settings: &Settings, facts: &ListenerFacts, head: &RequestHead<'_, '_>) -> bool {
    let mut host = HostName::EMPTY;
    let target = canonical_target(
        Method::parse(head.method),
        head.target,
        head.fields,
        head.version == Version::Http11,
        &facts.default,
        Scheme::Http,
        &mut host,
    );
    target.is_ok_and(|(target, _)| {
        let called = settings
            .modules
            .called(target.host.as_bytes(), target.path_and_query);
        !called.is_empty()
    })
}

/// What a node gets that this one does not know to be a member: it may ask another one meanwhile.
fn unlisted(node: &str) -> Answer {
    refused(
        403,
        &format!("`{node}` is no member that this node knows of"),
    )
}

fn stranger() -> Answer {
    refused(403, "this listener is for the members of a cluster")
}

fn refused(status: u16, text: &str) -> Answer {
    Answer::closing(
        status,
        AnswerReason::new(ProxyError::HttpRequestDenied, text),
    )
}
