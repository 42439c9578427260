//! Messages about connections that are handed over, at the peer listener: of a front end or a node
//! to the node that is to go on with one, and of nodes to the front end.

use super::ends::{self, END_TARGET, Ended};
use super::later;
use super::moved_message::MovedMessage;
use super::node_connection::NodeConnection;
use super::sessions::{self, BEGIN_TARGET, SESSION_TARGET};
use super::steered_flows::{self, HOLD_TARGET, RELEASE_TARGET, STEER_TARGET};
use super::{Adopted, HandOffs};
use crate::client::connection::{self, AcceptedClient};
use crate::cluster::Cluster;
use crate::config::Mode;
use crate::exchange::respond::{Content, begin, log_own, respond, send};
use crate::exchange::state::RequestState;
use crate::log::client::{ForPeers, HttpVersions, ListenerFacts};
use crate::request::answer::{Answer, AnswerReason, reason_phrase};
use crate::worker::core::Worker;
use std::future::poll_fn;
use std::net::{SocketAddr, SocketAddrV4};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Instant;
use tokio::net::TcpStream;
use weir_measure::Metric;
use weir_net::client::ClientSocket;
use weir_net::hand_off::repair::{
    ConnectionState, FrozenConnection, UNACKNOWLEDGED_BYTES_MAX, UNREAD_BYTES_MAX,
};
use weir_net::hand_off::steering::HELD_FOR;
use weir_net::http::{ClientStream, ContentForm, ReceivedContent};
use weir_net::is_local;
use weir_net::workers::ClientPlace;
use weir_policy::RefuseReason;
use weir_policy::connections::hand_off::MoveCredit;
use weir_semantics::{Authority, PEER_FIELD, PeerRequest, Scheme, lines_named};
use weir_store::ChargedMemory;
use weir_wire::{Version, write};

/// Where messages with the state of a connection are sent.
pub(super) const ADOPT_TARGET: &str = "/weir/hand-off";
/// Where those of a node are sent that moves the connection on.
pub(super) const MOVED_TARGET: &str = "/weir/hand-off/moved";
/// Those with the word to go on with it.
pub(super) const GO_TARGET: &str = "/weir/hand-off/go";

/// Flows of connections that have ended, of one change of the steering.
const UNSTEERED_TOGETHER_MAX: usize = 64;

/// Bytes of a message, at most: the queues of a connection, and what else is known of it.
const MESSAGE_BYTES_MAX: usize = UNREAD_BYTES_MAX + UNACKNOWLEDGED_BYTES_MAX + 1024;

/// The status of the answer to the word to go on with a connection that is not here any more: it
/// was dropped, and nothing was sent.
pub(super) const HAS_NONE: u16 = 409;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOffStep {
    /// A connection of a front end is to be adopted.
    Adopt,
    /// One that another node moves on is.
    AdoptMoved,
    /// It is to be gone on with.
    Go,
    /// Some have ended.
    End,
    /// A front end asks for a session.
    Session,
    /// It begins it.
    Begin,
    /// A node moves one on: its packets are to be held.
    Hold,
    /// They are to be led to the other node.
    Steer,
    /// They are to go where they went.
    Release,
}

impl HandOffStep {
    /// Of a message to `target` with so many bytes of content.
    pub(crate) fn of(target: &str, bytes: u64) -> Option<Self> {
        let step = match target {
            ADOPT_TARGET => Self::Adopt,
            GO_TARGET => Self::Go,
            END_TARGET => Self::End,
            SESSION_TARGET => Self::Session,
            BEGIN_TARGET => Self::Begin,
            MOVED_TARGET => Self::AdoptMoved,
            HOLD_TARGET => Self::Hold,
            STEER_TARGET => Self::Steer,
            RELEASE_TARGET => Self::Release,
            _ => return None,
        };
        (bytes <= MESSAGE_BYTES_MAX as u64).then_some(step)
    }
}

/// Receives the message, does what it says, and answers it.
pub(crate) async fn run(
    stream: &mut ClientStream<'_>,
    exchange: &mut RequestState,
    step: HandOffStep,
) {
    let Some(content) = receive(stream, exchange).await else {
        return stream.response.abort();
    };
    let outcome = carry_out(exchange, step, &content).await;
    let answer = match outcome {
        Ok(text) => text,
        Err((status, why)) => {
            let answer = Answer::closing(status, AnswerReason::denied(why));
            return respond(stream, exchange, answer).await;
        }
    };
    let _ = exchange.tx.refuse(RefuseReason::AnsweredHere);
    let mut head = Vec::with_capacity(256);
    write::status_line(&mut head, Version::Http11, 200, reason_phrase(200));
    write::field(&mut head, "Date", &exchange.worker.date());
    write::field(&mut head, "Cache-Control", b"no-store");
    write::number_field(&mut head, "Content-Length", answer.len() as u64);
    begin(
        &mut stream.response,
        exchange,
        200,
        head,
        ContentForm::Sized,
    );
    let (sent, end) = send(stream, exchange, Content::Bytes(answer.as_bytes())).await;
    log_own(exchange, sent, end);
}

/// The content; `None` if it does not come, or there is no memory for it.
async fn receive(stream: &mut ClientStream<'_>, exchange: &RequestState) -> Option<Vec<u8>> {
    let silence = exchange.settings.config.limits.client_silence;
    let worker = Rc::clone(&exchange.worker);
    let mut charged = ChargedMemory::new(&worker.shared.store);
    let mut content = Vec::new();
    let (received, deadline) = (&mut stream.content, &mut *stream.deadline);
    deadline.set(silence.as_duration());
    let is_whole = poll_fn(|cx| {
        while content.len() <= MESSAGE_BYTES_MAX {
            let mut scratch = worker.scratch();
            let polled = received.poll_receive(cx, &mut scratch, &mut content);
            if charged.hold(content.capacity() as u64).is_err() {
                return Poll::Ready(false);
            }
            match polled {
                Poll::Pending => {
                    ready!(deadline.poll_passed(cx));
                    return Poll::Ready(false);
                }
                Poll::Ready(Ok(ReceivedContent::More)) => {}
                Poll::Ready(Ok(ReceivedContent::Whole)) => return Poll::Ready(true),
                Poll::Ready(Err(_)) => return Poll::Ready(false),
            }
        }
        Poll::Ready(false)
    })
    .await;
    is_whole.then_some(content)
}

/// The status of a refusal, and why.
pub(super) type Refusal = (u16, &'static str);

pub(super) const MALFORMED: Refusal = (400, "the content does not say of which connection it is");
const STRANGER: Refusal = (403, "the message is not of a member that may send it");
const NOT_OF_SERVICE: Refusal = (409, "the connection is not one of the service of this node");
const OF_THE_CLUSTER: Refusal = (409, "the client is a machine of the cluster");
const NO_ROOM: Refusal = (503, "this node has too many connections");

/// The text of the answer.
async fn carry_out(
    exchange: &RequestState,
    step: HandOffStep,
    message: &[u8],
) -> Result<String, Refusal> {
    let fields = exchange.request.fields();
    let line = lines_named(&fields, PEER_FIELD).next().unwrap_or_default();
    let asked = PeerRequest::read(line).ok_or(STRANGER)?;
    let cluster = exchange.settings.cluster().ok_or(STRANGER)?;
    let content = proved(&cluster, step, &asked, message).ok_or(STRANGER)?;
    let worker = &exchange.worker;
    let hand_offs = &worker.shared.hand_offs;
    let text = || std::str::from_utf8(content).map_err(|_| MALFORMED);
    match step {
        HandOffStep::Adopt => {
            let senders = (asked.node, asked.node);
            adopt(
                worker,
                &cluster,
                senders,
                (decode(content)?, MoveCredit::full()),
            )
        }
        HandOffStep::AdoptMoved => {
            let (message, state) = MovedMessage::read(content).ok_or(MALFORMED)?;
            let state = decode(state)?;
            if !message.is_permitted(&cluster, asked.node, &state) {
                return Err(STRANGER);
            }
            let senders = (asked.node, message.front_end);
            adopt(worker, &cluster, senders, (state, message.credit))
        }
        HandOffStep::Hold => steered_flows::hold(worker, (&cluster, asked.node), text()?).await,
        HandOffStep::Steer => steered_flows::steer(worker, (&cluster, asked.node), text()?).await,
        HandOffStep::Release => steered_flows::release(worker, asked.node, text()?).await,
        HandOffStep::Go => {
            let ticket = std::str::from_utf8(content).map_err(|_| STRANGER)?;
            let adopted = hand_offs.adopted().remove(ticket);
            let adopted = adopted.filter(|adopted| adopted.from == asked.node);
            let adopted = adopted.ok_or((HAS_NONE, "there is no such connection"))?;
            let gone_on = go_on(worker, adopted, ticket.to_owned());
            gone_on.map_err(|_| (500, "the connection is lost"))?;
            Ok(String::new())
        }
        HandOffStep::End => {
            let ended = ends::read(content);
            let ended = ended.ok_or((400, "the content does not say which have ended"))?;
            end(hand_offs, &ended);
            Ok(String::new())
        }
        HandOffStep::Session => {
            let of = (asked.node, exchange.client.facts().peer.ip());
            Ok(sessions::answer(
                &hand_offs.front_ends,
                of,
                &cluster.nonce(),
            ))
        }
        HandOffStep::Begin => {
            let ticket = std::str::from_utf8(content).map_err(|_| STRANGER)?;
            let is_begun = hand_offs.front_ends.begin(asked.node, ticket);
            is_begun
                .then(String::new)
                .ok_or((409, "there is no such session"))
        }
    }
}

/// The content of a message, without its proof; `None` if that is none of a member that may send
/// it.
fn proved<'m>(
    cluster: &Cluster,
    step: HandOffStep,
    asked: &PeerRequest<'_>,
    message: &'m [u8],
) -> Option<&'m [u8]> {
    let is_of_front_end = matches!(
        step,
        HandOffStep::Adopt | HandOffStep::Session | HandOffStep::Begin
    );
    if is_of_front_end && !cluster.is_listed_front_end(asked.node) {
        return None;
    }
    let nonce = match step {
        HandOffStep::Adopt
        | HandOffStep::AdoptMoved
        | HandOffStep::End
        | HandOffStep::Hold
        | HandOffStep::Steer
        | HandOffStep::Release
        | HandOffStep::Session => asked.nonce,
        HandOffStep::Go | HandOffStep::Begin => ticket_of(message)?,
    };
    cluster.proved_hand_off(asked.node, nonce, message)
}

/// The ticket in front of its proof.
fn ticket_of(message: &[u8]) -> Option<&str> {
    let end = message
        .len()
        .checked_sub(crate::cluster::HAND_OFF_PROOF_BYTES)?;
    std::str::from_utf8(&message[..end]).ok()
}

/// Whether a connection with this state may be adopted, with room for it or not.
fn check(hand_offs: &HandOffs, cluster: &Cluster, state: &ConnectionState) -> Result<(), Refusal> {
    let is_own = hand_offs.service().map(SocketAddr::V4) == Some(state.service);
    if !is_own || hand_offs.hands_over() {
        return Err(NOT_OF_SERVICE);
    }
    let client = state.client.ip();
    if is_local(client) || cluster.has_address(client) {
        return Err(OF_THE_CLUSTER);
    }
    Ok(())
}

fn decode(content: &[u8]) -> Result<ConnectionState, Refusal> {
    let state = ConnectionState::decode(content);
    state.map_err(|_| (400, "the content is not the state of a connection"))
}

/// Adopts a connection that the member `from` sends, whose packets `front_end` leads: its ticket.
fn adopt(
    worker: &Rc<Worker>,
    cluster: &Cluster,
    (from, front_end): (&str, &str),
    (state, credit): (ConnectionState, MoveCredit),
) -> Result<String, Refusal> {
    let hand_offs = &worker.shared.hand_offs;
    check(hand_offs, cluster, &state)?;
    if !hand_offs.has_room() || !worker.network().has_room_for_client() {
        return Err(NO_ROOM);
    }
    let held = hand_offs.hold(state.queued_bytes()).ok_or(NO_ROOM)?;
    let connection = FrozenConnection::adopt(state);
    let connection = connection.map_err(|_| (409, "the connection cannot be adopted"))?;
    let ticket = cluster.nonce();
    let go_max = match from == front_end {
        // it says that this node is to go on while packets are held, or never
        true => HELD_FOR + worker.settings().config.cluster.peer_timeout.as_duration(),
        false => later::GO_MAX,
    };
    let adopted = Adopted {
        connection,
        from: from.to_owned(),
        front_end: front_end.to_owned(),
        session: hand_offs.front_ends.session_of(front_end),
        until: Instant::now() + go_max,
        credit,
        _held: held,
    };
    hand_offs.adopted().insert(ticket.clone(), adopted);
    Ok(ticket)
}

/// Serves an adopted connection as one that was accepted.
fn go_on(worker: &Rc<Worker>, adopted: Adopted, ticket: String) -> std::io::Result<()> {
    let Adopted {
        connection,
        front_end,
        session,
        credit,
        ..
    } = adopted;
    let state = connection.state();
    let (peer, service) = (state.client, state.service);
    let stream = TcpStream::from_std(connection.thaw()?)?;
    stream.set_nodelay(true)?;
    let default = Authority::parse(&service.to_string()).map_err(std::io::Error::other)?;
    let accepted = AcceptedClient {
        stream: ClientSocket::Clear(stream),
        peer,
        listener: Rc::new(ListenerFacts {
            versions: HttpVersions::Http1,
            scheme: Scheme::Http,
            tls: None,
            balancers: Arc::default(),
            tls_address: None,
            mode: Mode::Gateway,
            default: Arc::new(default),
            peers: ForPeers::No,
            is_handed_over: true,
            address: Some(service),
            name: Some(service.to_string().into()),
            is_named: false,
            closed: Arc::default(),
        }),
        place: ClientPlace::take(worker.net()),
        unread: Vec::new(),
    };
    worker.counters().inc(Metric::ConnectionsAdopted);
    let worker = Rc::clone(worker);
    let handed = Rc::new(NodeConnection::new(front_end, ticket, credit));
    tokio::task::spawn_local(async move {
        tokio::select! {
            () = connection::serve(accepted, Rc::clone(&worker), Some(Rc::clone(&handed))) => {
                if !handed.has_moved() {
                    let (client, ticket) = (peer, handed.ticket.clone());
                    ends::tell(&worker, &handed.front_end, Ended { client, ticket });
                }
            }
            // its packets come no more: it is closed
            () = session.ended() => {}
        }
    });
    Ok(())
}

/// Connections that a node had have ended: their packets are received here again. The tickets are
/// those of the connections, and not of earlier ones from the same ports.
fn end(hand_offs: &Arc<HandOffs>, ended: &[(SocketAddrV4, &str)]) {
    let mut steered = hand_offs.steered();
    let known = ended
        .iter()
        .filter(|(flow, ticket)| steered.end(*flow, ticket));
    let flows: Vec<SocketAddrV4> = known.map(|(flow, _)| *flow).collect();
    drop(steered);
    let hand_offs = Arc::clone(hand_offs);
    tokio::task::spawn_local(async move {
        let Some(steering) = hand_offs.steering.get() else {
            return;
        };
        for flows in flows.chunks(UNSTEERED_TOGETHER_MAX) {
            // another connection from the port may be at a node by now
            let is_free = |flow: &&SocketAddrV4| !hand_offs.steered().contains(flow);
            let flows = flows.iter().filter(is_free).copied().collect();
            let _ = steering.unsteer(flows).await;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::hand_off::{Answered, Message, Service};
    use crate::cluster::{ClusterSecret, HAND_OFF, Membership};
    use crate::config::{Config, Member};
    use crate::modules::own_work::OwnWork;
    use weir_net::hand_off::repair::{AgreedOptions, Windows};

    /// The cluster as the node `own` has it: the front end `f`, and two nodes.
    fn cluster(own: &str) -> Arc<Cluster> {
        let mut config = Config::default();
        config.cluster.node = Some(own.to_owned());
        let member = |(number, name): (u8, &str)| Member {
            name: name.to_owned(),
            url: format!("http://192.0.2.{number}:4000")
                .parse()
                .expect("a URL"),
            weight: 100,
            front_end: name == "f",
        };
        let members = (1..).zip(["f", "a", "b"]).map(member);
        config.cluster.members = members.collect();
        let membership = Arc::new(Membership::default());
        let secret = ClusterSecret::new(Some("an-agreed-secret-of-nodes"));
        membership.configure(&config, &secret);
        membership.current().expect("a member")
    }

    fn asked(node: &'static str, nonce: &'static str) -> PeerRequest<'static> {
        PeerRequest {
            node,
            mode: HAND_OFF,
            proof: "",
            nonce,
            to: None,
            state: None,
            sequence: None,
        }
    }

    /// What the node `a` takes as the content of a message of `from` to `to`, sent with nonce `n`.
    fn received(
        step: HandOffStep,
        (from, to): (&'static str, &str),
        content: &str,
    ) -> Option<String> {
        let sender = cluster(from);
        let place = sender.other(to).expect("a member");
        let is_for_ticket = matches!(step, HandOffStep::Go | HandOffStep::Begin);
        let nonce = if is_for_ticket { content } else { "n" };
        let message = sender.prove_hand_off(place, nonce, content.as_bytes());
        let message = message.expect("a secret");
        let content = proved(&cluster("a"), step, &asked(from, "n"), &message)?;
        Some(String::from_utf8(content.to_vec()).expect("text"))
    }

    #[test]
    fn state_and_session_are_taken_from_a_front_end_alone_and_other_messages_from_members() {
        let of_members = [
            HandOffStep::AdoptMoved,
            HandOffStep::Go,
            HandOffStep::End,
            HandOffStep::Hold,
            HandOffStep::Steer,
            HandOffStep::Release,
        ];
        let of_front_ends = [HandOffStep::Adopt, HandOffStep::Session, HandOffStep::Begin];
        for step in of_members.into_iter().chain(of_front_ends) {
            let from_front_end = received(step, ("f", "a"), "content");
            assert_eq!(from_front_end.as_deref(), Some("content"), "{step:?}");
            let from_node = received(step, ("b", "a"), "content");
            assert_eq!(from_node.is_some(), of_members.contains(&step), "{step:?}");
            let for_another = received(step, ("f", "b"), "content");
            assert_eq!(for_another, None, "{step:?}");
        }
    }

    #[test]
    fn message_with_another_nonce_or_changed_content_is_refused() {
        let (sender, own) = (cluster("f"), cluster("a"));
        let place = sender.other("a").expect("a member");
        let message = sender
            .prove_hand_off(place, "n", b"ticket")
            .expect("a secret");
        let take =
            |step, nonce, message: &[u8]| proved(&own, step, &asked("f", nonce), message).is_some();
        assert!(take(HandOffStep::Adopt, "n", &message));
        assert!(!take(HandOffStep::Adopt, "m", &message));
        // proved for a nonce, and not for the ticket that it has
        assert!(!take(HandOffStep::Go, "n", &message));
        for place in 0..message.len() {
            let mut changed = message.clone();
            changed[place] ^= 1;
            assert!(!take(HandOffStep::Adopt, "n", &changed), "byte {place}");
            assert!(!take(HandOffStep::Adopt, "n", &message[..place]), "cut");
        }
    }

    fn state(client: &str, service: &str) -> ConnectionState {
        ConnectionState {
            client: client.parse().expect("an address"),
            service: service.parse().expect("an address"),
            received_to: 1,
            written_to: 1,
            agreed: AgreedOptions {
                segment_max: 1460,
                window_scales: [7, 7],
                selective_acknowledgements: true,
                timestamp: None,
            },
            windows: Windows {
                send_changed_at: 1,
                send: 1,
                send_max: 1,
                receive: 1,
                receive_from: 1,
            },
            unread: Vec::new(),
            unacknowledged: Vec::new(),
            unsent: Vec::new(),
        }
    }

    #[test]
    fn connection_moves_between_the_nodes_that_its_front_end_permits_alone() {
        let own = cluster("a");
        let state = state("198.51.100.1:40000", "192.0.2.100:80");
        // `f` permits `b` to move that flow here
        let words = ["b", "a", "198.51.100.1:40000", "AAAA", "1"];
        let permitted = |by: &str, words, change: fn(&mut MovedMessage<'_>), from: &str| {
            let permit = cluster(by).move_permit(words);
            let mut message = MovedMessage {
                front_end: "f",
                ticket: "AAAA",
                attempt: 1,
                credit: MoveCredit::full(),
                permit: permit.as_str(),
            };
            change(&mut message);
            message.is_permitted(&own, from, &state)
        };
        assert!(permitted("f", words, |_| {}, "b"));
        let changed = |place: usize, word: &'static str| {
            let mut words = words;
            words[place] = word;
            words
        };
        for words in [
            changed(0, "c"),
            changed(1, "b"),
            changed(2, "198.51.100.1:40001"),
            changed(3, "AAAB"),
            changed(4, "2"),
        ] {
            assert!(!permitted("f", words, |_| {}, "b"), "{words:?}");
        }
        // of a member that is no front end, whatever it says
        assert!(!permitted("b", words, |_| {}, "b"));
        assert!(!permitted("b", words, |it| it.front_end = "b", "b"));
        // used by another node than the one that has it, or for another attempt; or none
        assert!(!permitted("f", words, |_| {}, "f"));
        assert!(!permitted("f", words, |it| it.attempt = 2, "b"));
        assert!(!permitted("f", words, |it| it.permit = "", "b"));
    }

    #[test]
    fn connection_is_adopted_of_the_service_and_of_a_client_that_is_no_machine_of_the_cluster() {
        fn send(_: Rc<Worker>, _: &Arc<OwnWork>, _: Message) -> Answered {
            Box::pin(async { None })
        }
        let (hand_offs, cluster) = (HandOffs::default(), cluster("a"));
        let (client, service) = ("198.51.100.1:40000", "192.0.2.100:80");
        let of = |client, service| check(&hand_offs, &cluster, &state(client, service));
        assert_eq!(of(client, service), Err(NOT_OF_SERVICE), "without hand-off");
        let address = service.parse().expect("an address");
        assert!(hand_offs.service.set(Service::new(address, send)).is_ok());
        assert_eq!(of(client, service), Ok(()));
        for other in ["192.0.2.100:81", "192.0.2.101:80", "[2001:db8::1]:80"] {
            assert_eq!(of(client, other), Err(NOT_OF_SERVICE), "{other}");
        }
        for machine in ["127.0.0.1:40000", "192.0.2.1:40000", "192.0.2.3:4000"] {
            assert_eq!(of(machine, service), Err(OF_THE_CLUSTER), "{machine}");
        }
    }

    #[test]
    fn message_is_a_known_one_and_no_larger_than_the_state_of_a_connection() {
        let most = MESSAGE_BYTES_MAX as u64;
        let check = |target, bytes, expected| assert_eq!(HandOffStep::of(target, bytes), expected);
        check(ADOPT_TARGET, most, Some(HandOffStep::Adopt));
        check(GO_TARGET, 0, Some(HandOffStep::Go));
        check(END_TARGET, most, Some(HandOffStep::End));
        check(SESSION_TARGET, 0, Some(HandOffStep::Session));
        check(BEGIN_TARGET, 0, Some(HandOffStep::Begin));
        check(MOVED_TARGET, most, Some(HandOffStep::AdoptMoved));
        check(HOLD_TARGET, most, Some(HandOffStep::Hold));
        check(STEER_TARGET, most, Some(HandOffStep::Steer));
        check(RELEASE_TARGET, most, Some(HandOffStep::Release));
        check(ADOPT_TARGET, most + 1, None);
        check("/weir/hand-off/other", 0, None);
    }
}
