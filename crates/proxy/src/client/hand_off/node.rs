//! Messages about connections that are handed over, at the peer listener: of a front end to a node,
//! and, when a connection has ended, of the node to the front end.

use super::{Adopted, HandOffs, Message};
use crate::client::connection;
use crate::cluster::Cluster;
use crate::config::Mode;
use crate::exchange::respond::{Content, begin, log_own, respond, send};
use crate::exchange::state::RequestState;
use crate::log::client::{ForPeers, ListenerFacts};
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
use weir_net::hand_off::repair::{
    ConnectionState, FrozenConnection, UNACKNOWLEDGED_BYTES_MAX, UNREAD_BYTES_MAX,
};
use weir_net::http::{ClientStream, ContentForm, ReceivedContent};
use weir_net::is_local;
use weir_net::workers::{Accepted, ClientPlace};
use weir_policy::RefuseReason;
use weir_semantics::{Authority, PEER_FIELD, PeerRequest, lines_named};
use weir_store::ChargedMemory;
use weir_wire::{Version, write};

/// Where messages with the state of a connection are sent.
pub(super) const ADOPT_TARGET: &str = "/weir/hand-off";
/// Those with the word to go on with it.
pub(super) const GO_TARGET: &str = "/weir/hand-off/go";
/// Those of a node that it has ended.
const END_TARGET: &str = "/weir/hand-off/end";

/// Bytes of a message, at most: the queues of a connection, and what else is known of it.
const MESSAGE_BYTES_MAX: usize = UNREAD_BYTES_MAX + UNACKNOWLEDGED_BYTES_MAX + 1024;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOffStep {
    /// A connection is to be adopted.
    Adopt,
    /// It is to be gone on with.
    Go,
    /// It has ended.
    End,
}

impl HandOffStep {
    /// Of a message to `target` with so many bytes of content.
    pub(crate) fn of(target: &str, bytes: u64) -> Option<Self> {
        let step = match target {
            ADOPT_TARGET => Self::Adopt,
            GO_TARGET => Self::Go,
            END_TARGET => Self::End,
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
    let outcome = carry_out(exchange, step, &content);
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

/// The text of the answer; or the status of a refusal, and why.
fn carry_out(
    exchange: &RequestState,
    step: HandOffStep,
    message: &[u8],
) -> Result<String, (u16, &'static str)> {
    const STRANGER: (u16, &str) = (403, "the message is not of a member that may send it");
    let fields = exchange.request.fields();
    let line = lines_named(&fields, PEER_FIELD).next().unwrap_or_default();
    let asked = PeerRequest::read(line).ok_or(STRANGER)?;
    let cluster = exchange.settings.cluster().ok_or(STRANGER)?;
    let hand_offs = &exchange.worker.shared.hand_offs;
    let worker = &exchange.worker;
    match step {
        HandOffStep::Adopt => {
            let content = cluster.proved_hand_off(asked.node, asked.nonce, message);
            let content = content.filter(|_| cluster.is_listed_front_end(asked.node));
            let content = content.ok_or(STRANGER)?;
            adopt(worker, (&cluster, asked.node), content)
        }
        HandOffStep::Go => {
            let ticket = ticket_of(message).ok_or(STRANGER)?;
            let proved = cluster.proved_hand_off(asked.node, &ticket, message);
            proved.ok_or(STRANGER)?;
            let adopted = hand_offs.adopted().remove(&ticket);
            let adopted = adopted.filter(|adopted| adopted.from == asked.node);
            let adopted = adopted.ok_or((409, "there is no such connection"))?;
            go_on(worker, adopted, ticket).map_err(|_| (409, "the connection is lost"))?;
            Ok(String::new())
        }
        HandOffStep::End => {
            let content = cluster.proved_hand_off(asked.node, asked.nonce, message);
            let content = content.and_then(|content| std::str::from_utf8(content).ok());
            end(hand_offs, content.ok_or(STRANGER)?);
            Ok(String::new())
        }
    }
}

/// The ticket in front of its proof.
fn ticket_of(message: &[u8]) -> Option<String> {
    let end = message
        .len()
        .checked_sub(crate::cluster::HAND_OFF_PROOF_BYTES)?;
    String::from_utf8(message[..end].to_vec()).ok()
}

/// Adopts a connection: its ticket.
fn adopt(
    worker: &Rc<Worker>,
    (cluster, from): (&Cluster, &str),
    content: &[u8],
) -> Result<String, (u16, &'static str)> {
    const NO_ROOM: (u16, &str) = (503, "this node has too many connections");
    let hand_offs = &worker.shared.hand_offs;
    let state = ConnectionState::decode(content);
    let state = state.map_err(|_| (400, "the content is not the state of a connection"))?;
    let is_own = hand_offs.service().map(SocketAddr::V4) == Some(state.service);
    if !is_own || hand_offs.hands_over() {
        return Err((409, "the connection is not one of the service of this node"));
    }
    let client = state.client.ip();
    if is_local(client) || cluster.has_address(client) {
        return Err((409, "the client is a machine of the cluster"));
    }
    if !hand_offs.has_room() || !worker.network().has_room_for_client() {
        return Err(NO_ROOM);
    }
    let held = hand_offs.hold(state.queued_bytes()).ok_or(NO_ROOM)?;
    let connection = FrozenConnection::adopt(state);
    let connection = connection.map_err(|_| (409, "the connection cannot be adopted"))?;
    let ticket = cluster.nonce();
    let adopted = Adopted {
        connection,
        from: from.to_owned(),
        since: Instant::now(),
        _held: held,
    };
    hand_offs.adopted().insert(ticket.clone(), adopted);
    Ok(ticket)
}

/// Serves an adopted connection as one that was accepted.
fn go_on(worker: &Rc<Worker>, adopted: Adopted, ticket: String) -> std::io::Result<()> {
    let Adopted {
        connection, from, ..
    } = adopted;
    let state = connection.state();
    let (peer, service) = (state.client, state.service);
    let stream = TcpStream::from_std(connection.thaw()?)?;
    stream.set_nodelay(true)?;
    let default = Authority::parse(&service.to_string()).map_err(std::io::Error::other)?;
    let accepted = Accepted {
        stream,
        peer,
        listener: Rc::new(ListenerFacts {
            mode: Mode::Gateway,
            default,
            peers: ForPeers::No,
            is_handed_over: true,
        }),
        place: ClientPlace::take(worker.net()),
    };
    worker.counters().inc(Metric::ConnectionsAdopted);
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        connection::serve(accepted, Rc::clone(&worker)).await;
        tell_end(&worker, &from, peer, &ticket).await;
    });
    Ok(())
}

/// Tells the front end that a connection has ended.
async fn tell_end(worker: &Rc<Worker>, from: &str, client: SocketAddr, ticket: &str) -> Option<()> {
    let settings = worker.settings();
    let cluster = settings.cluster()?;
    let place = cluster.other(from)?;
    let nonce = cluster.nonce();
    let content = format!("{client} {ticket}");
    let content = cluster.prove_hand_off(place, &nonce, content.as_bytes())?;
    let hand_offs = Arc::clone(&worker.shared.hand_offs);
    let message = Message {
        settings: Arc::clone(&settings),
        cluster,
        place,
        target: END_TARGET,
        nonce,
        content,
    };
    hand_offs.send(worker, message).await.map(drop)
}

/// A connection that a node had has ended: its packets are received here again. The ticket is that
/// of the connection, and not of an earlier one from the same port.
fn end(hand_offs: &Arc<HandOffs>, content: &str) -> Option<()> {
    let (flow, ticket) = content.split_once(' ')?;
    let flow: SocketAddrV4 = flow.parse().ok()?;
    if !hand_offs.forget_steered(flow, ticket) {
        return None;
    }
    let hand_offs = Arc::clone(hand_offs);
    tokio::task::spawn_local(async move {
        if let Some(steering) = hand_offs.steering.get() {
            let _ = steering.unsteer(flow).await;
        }
    });
    Some(())
}
