//! Moving a connection on with a later request: the side of the node that has it.
//!
//! Four messages. To the front end: hold the packets, which it answers with a *permit* for the move
//! to that node; steer them. To the other node: the state, with the permit; the word to go on.

use super::ends::{self, Ended};
use super::front_end::{has_left, judge, record_hold};
use super::moved_message::MovedMessage;
use super::node::{GO_TARGET, HAS_NONE, MOVED_TARGET};
use super::node_connection::NodeConnection;
use super::other_member::OtherMember;
use super::steered_flows::{HOLD_TARGET, RELEASE_TARGET, STEER_TARGET};
use super::{HandOffs, HeldBytes};
use crate::exchange::next_hop::ChosenNode;
use crate::exchange::state::{Plan, RequestState};
use std::cell::OnceCell;
use std::net::SocketAddrV4;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use weir_net::hand_off::moving::{
    self, GoAnswer, HandedConnection, Held, Packets, Receiver, Steered,
};
use weir_net::hand_off::repair::ConnectionState;
use weir_policy::connections::hand_off::{HandOffKind, LaterRequest, MoveCredit, MoveEnd, Stay};
use weir_policy::route::Place;
use weir_semantics::Method;

/// How long an answer to one message may take: packets are held for two seconds.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Messages that are sent once more if there is no answer: the front end may have done it.
const TRIES: usize = 2;

/// A node drops a connection that another one has moved there, and that it is not told to go on
/// with, after this: longer than what the other one waits for, which is the answers to the state,
/// twice of the front end, once of the client, and twice to the word to go on.
pub(super) const GO_MAX: Duration = Duration::from_secs(8);

/// Moves a connection to the node that is chosen for a later request; `false` if it stays, and
/// nothing has happened to it. `read` is all that was read of it and not answered.
pub(crate) async fn move_on(
    exchange: &mut RequestState,
    connection: &NodeConnection,
    stream: &TcpStream,
    read: &[u8],
) -> bool {
    let Plan::Forward { stored, .. } = &exchange.plan else {
        return false;
    };
    let is_stored = stored.is_some();
    let end = attempt(exchange, connection, (stream, is_stored), read).await;
    let has_moved = has_left(exchange, end);
    if has_moved {
        connection.note_moved();
    }
    has_moved
}

async fn attempt(
    exchange: &RequestState,
    connection: &NodeConnection,
    (stream, is_stored): (&TcpStream, bool),
    read: &[u8],
) -> MoveEnd {
    let hand_offs = &exchange.worker.shared.hand_offs;
    let (_count, other_moves) = hand_offs.begin_move();
    let flow = match judge(HandOffKind::Multiple, exchange, stream, other_moves) {
        Ok(flow) => flow,
        Err(stay) => return MoveEnd::Stays(stay),
    };
    let (place, credit) = match choose(exchange, connection, is_stored) {
        Ok(chosen) => chosen,
        Err(stay) => return MoveEnd::Stays(stay),
    };
    let cluster = exchange.settings.cluster();
    let front_end = cluster.and_then(|cluster| {
        let place = cluster.other(&connection.front_end)?;
        Some(OtherMember {
            worker: &exchange.worker,
            settings: &exchange.settings,
            hand_offs,
            cluster,
            place,
        })
    });
    let Some(front_end) = front_end else {
        return MoveEnd::Stays(Stay::FrontEnd);
    };
    let moving = MovingOn {
        node: OtherMember {
            cluster: Arc::clone(&front_end.cluster),
            place,
            ..front_end
        },
        front_end,
        connection,
        flow,
        attempt: connection.begin_attempt(credit),
        credit,
        permit: OnceCell::new(),
        ticket: OnceCell::new(),
    };
    let handed = HandedConnection {
        socket: stream.as_fd(),
        read,
    };
    let mut packets = PacketMessages { moving: &moving };
    let mut receiver = NodeMessages {
        moving: &moving,
        hand_offs,
        held: None,
    };
    let outcome = moving::hand_over(&mut packets, handed, &mut receiver).await;
    record_hold(exchange, outcome)
}

/// The node that the connection moves to, and how often it may move after that.
fn choose(
    exchange: &RequestState,
    connection: &NodeConnection,
    is_stored: bool,
) -> Result<(Place, MoveCredit), Stay> {
    let chosen = ChosenNode::of(exchange);
    let node = chosen.for_move(exchange);
    // if the connection stays, the request is forwarded to the same one
    exchange.chosen_node.set(Some(Box::new(chosen)));
    let node = node.ok_or(Stay::Own)?;
    let request = LaterRequest {
        is_first_here: !exchange.client.facts().is_reused(),
        is_stored,
        is_copied: node.is_copied,
        holds: node.holds,
        is_mapped: node.is_mapped,
        // of what is not stored here no length is known
        response_bytes: (exchange.request.method == Method::Head).then_some(0),
    };
    let credit = request.judge(connection.credit())?;
    Ok((node.place, credit))
}

/// A connection that is being moved on.
struct MovingOn<'m> {
    front_end: OtherMember<'m>,
    node: OtherMember<'m>,
    connection: &'m NodeConnection,
    flow: SocketAddrV4,
    attempt: u32,
    /// What it has left at the other node.
    credit: MoveCredit,
    /// Of the front end.
    permit: OnceCell<String>,
    /// Of the other node.
    ticket: OnceCell<String>,
}

impl MovingOn<'_> {
    /// Which connection, and what of it, for the front end.
    fn words(&self, more: &str) -> String {
        let (flow, ticket, attempt) = (self.flow, &self.connection.ticket, self.attempt);
        format!("{flow} {ticket} {attempt} {more}")
    }

    async fn tell_front_end(&self, target: &'static str, more: &str) -> Option<(u16, Vec<u8>)> {
        let words = self.words(more);
        let answer = self.front_end.tell(target, words.as_bytes());
        timeout(ANSWER_MAX, answer).await.ok()?
    }

    fn other_ticket(&self) -> &str {
        self.ticket.get().map_or("-", String::as_str)
    }
}

/// Packets that the front end leads.
struct PacketMessages<'m> {
    moving: &'m MovingOn<'m>,
}

impl Packets for PacketMessages<'_> {
    async fn hold(&mut self) -> Held {
        let node = &self.moving.node;
        let to = node.cluster.name(node.place);
        let answer = self.moving.tell_front_end(HOLD_TARGET, to).await;
        let permit = answer.filter(|(status, _)| *status == 200);
        let permit = permit.and_then(|(_, permit)| String::from_utf8(permit).ok());
        match permit.map(|permit| self.moving.permit.set(permit)) {
            Some(Ok(())) => Held::Yes,
            _ => Held::NotPermitted,
        }
    }

    async fn steer(&mut self) -> Steered {
        for _ in 0..TRIES {
            let ticket = self.moving.other_ticket();
            match self.moving.tell_front_end(STEER_TARGET, ticket).await {
                Some((200, _)) => return Steered::Yes,
                Some((409, _)) => return Steered::No,
                _ => {}
            }
        }
        Steered::Perhaps
    }

    async fn release(&mut self) {
        // without an answer they come here again when the hold has ended by itself
        let _ = self.moving.tell_front_end(RELEASE_TARGET, "-").await;
    }

    async fn unsteer(&mut self) {
        let moving = self.moving;
        // the one that it has there: it may be at either node
        for ticket in [moving.other_ticket(), &moving.connection.ticket] {
            let ended = Ended {
                client: moving.flow.into(),
                ticket: ticket.to_owned(),
            };
            ends::tell(moving.front_end.worker, &moving.connection.front_end, ended);
        }
    }
}

/// The node that the connection moves to.
struct NodeMessages<'m> {
    moving: &'m MovingOn<'m>,
    hand_offs: &'m HandOffs,
    /// What the state and the message with that take.
    held: Option<HeldBytes>,
}

impl Receiver for NodeMessages<'_> {
    fn reserve(&mut self, state: &ConnectionState) -> bool {
        // the state, its encoding, and that with its proof
        self.held = self.hand_offs.hold(3 * state.queued_bytes());
        self.held.is_some()
    }

    async fn adopt(&mut self, state: &ConnectionState) -> bool {
        let moving = self.moving;
        let message = MovedMessage {
            front_end: &moving.connection.front_end,
            ticket: &moving.connection.ticket,
            attempt: moving.attempt,
            credit: moving.credit,
            permit: moving.permit.get().map_or("", String::as_str),
        };
        let mut content = Vec::new();
        message.write(&mut content);
        state.encode(&mut content);
        let answer = self.moving.node.tell(MOVED_TARGET, &content);
        let answer = timeout(ANSWER_MAX, answer).await.ok().flatten();
        let ticket = answer.filter(|(status, _)| *status == 200);
        let ticket = ticket.and_then(|(_, ticket)| String::from_utf8(ticket).ok());
        ticket.is_some_and(|ticket| self.moving.ticket.set(ticket).is_ok())
    }

    async fn go(&mut self) -> GoAnswer {
        self.held = None;
        match self.tell_to_go().await {
            Some(200) => GoAnswer::GoesOn,
            // the front end leads no packets here again
            Some(_) => GoAnswer::None,
            None => match self.tell_to_go().await {
                // it has gone on when it was told first, and does not know the ticket any more
                Some(200 | HAS_NONE) => GoAnswer::GoesOn,
                _ => GoAnswer::None,
            },
        }
    }
}

impl NodeMessages<'_> {
    /// The status of the answer.
    async fn tell_to_go(&self) -> Option<u16> {
        let ticket = self.moving.other_ticket();
        let answer = self.moving.node.tell_ticket(GO_TARGET, ticket);
        let (status, _) = timeout(ANSWER_MAX, answer).await.ok()??;
        Some(status)
    }
}
