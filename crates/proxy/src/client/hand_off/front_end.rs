//! The front end's side.

use super::node::{ADOPT_TARGET, GO_TARGET, HAS_NONE};
use super::{HandOffs, HeldBytes, Message, sessions};
use crate::cluster::Cluster;
use crate::exchange::next_hop::ChosenNode;
use crate::exchange::state::{Plan, RequestState};
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::sync::Arc;
use tokio::net::TcpStream;
use weir_measure::{HandOffRefusal, Metric};
use weir_net::flow::unacknowledged_bytes;
use weir_net::hand_off::moving::{self, GoAnswer, HandedConnection, MoveOutcome, Receiver};
use weir_net::hand_off::repair::{ConnectionState, UNACKNOWLEDGED_BYTES_MAX};
use weir_policy::connections::hand_off::{HandOffKind, HandOffRequest, MoveEnd, Stay};
use weir_policy::route::Place;
use weir_semantics::line_named;

/// Hands the connection over to the node that is chosen for its first request; `false` if it stays,
/// and nothing has happened to it. `read` is all that was read of it.
pub(crate) async fn hand_over(
    exchange: &mut RequestState,
    stream: &TcpStream,
    read: &[u8],
) -> bool {
    if !matches!(exchange.plan, Plan::Forward { .. }) {
        return false;
    }
    let end = attempt(exchange, stream, read).await;
    exchange.worker.counters().inc(match end {
        MoveEnd::HandedOver => Metric::HandOffs,
        MoveEnd::Lost => Metric::HandOffsLost,
        MoveEnd::Stays(stay) => Metric::HandOffsRefused(label(stay)),
    });
    if let MoveEnd::Stays(stay) = end {
        exchange.log.stays(stay);
        return false;
    }
    true
}

async fn attempt(exchange: &RequestState, stream: &TcpStream, read: &[u8]) -> MoveEnd {
    let hand_offs = &exchange.worker.shared.hand_offs;
    let (_count, other_moves) = hand_offs.begin_move();
    let flow = match judge(exchange, stream, other_moves) {
        Ok(flow) => flow,
        Err(stay) => return MoveEnd::Stays(stay),
    };
    let (Some(steering), Some(cluster)) = (hand_offs.steering.get(), exchange.settings.cluster())
    else {
        return MoveEnd::Stays(Stay::Own);
    };
    let Some((place, machine)) = choose(exchange, &cluster) else {
        return MoveEnd::Stays(Stay::Own);
    };
    if !sessions::is_begun(&exchange.worker, cluster.name(place)) {
        return MoveEnd::Stays(Stay::Node);
    }
    let mut node = NodeMessages {
        worker: &exchange.worker,
        settings: &exchange.settings,
        hand_offs,
        cluster,
        place,
        flow,
        held: None,
        ticket: String::new(),
    };
    let connection = HandedConnection {
        flow,
        socket: stream.as_fd(),
        read,
    };
    let MoveOutcome { end, held } =
        moving::hand_over(steering, connection, machine, &mut node).await;
    if let Some(held) = held {
        let us = u64::try_from(held.as_micros()).unwrap_or(u64::MAX);
        exchange.worker.counters().record_hold_time(us);
    }
    if end != MoveEnd::HandedOver {
        hand_offs.forget_steered(flow, &node.ticket);
    }
    end
}

/// The flow of a connection that may be handed over; why it stays, if it may not.
fn judge(
    exchange: &RequestState,
    stream: &TcpStream,
    other_moves: usize,
) -> Result<SocketAddrV4, Stay> {
    let (Ok(client), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else {
        return Err(Stay::State);
    };
    let SocketAddr::V4(flow) = client else {
        return Err(Stay::Address);
    };
    let service = exchange.worker.shared.hand_offs.service();
    let request = &exchange.request;
    HandOffKind::Single.judge(&HandOffRequest {
        is_to_service: service.map(SocketAddr::V4) == Some(local),
        is_tls: false,
        method: request.method,
        has_content: request.has_content(),
        has_expectation: line_named(&request.fields(), "expect").is_some(),
        is_upgrade: request.upgrade,
        is_later: exchange.client.facts().is_reused(),
        unacknowledged_bytes: unacknowledged_bytes(stream).ok_or(Stay::State)? as usize,
        unacknowledged_bytes_max: UNACKNOWLEDGED_BYTES_MAX,
        other_moves,
    })?;
    Ok(flow)
}

/// The node that is chosen for the request, and its address; `None` if there is none. If the
/// connection stays, the request is forwarded to the same one.
fn choose(exchange: &RequestState, cluster: &Cluster) -> Option<(Place, Ipv4Addr)> {
    let chosen = ChosenNode::of(exchange);
    let place = chosen.place();
    exchange.chosen_node.set(Some(Box::new(chosen)));
    let place = place?;
    Some((place, cluster.hop(place).host.parse().ok()?))
}

/// What the node is told of one connection.
struct NodeMessages<'m> {
    worker: &'m Rc<Worker>,
    settings: &'m Arc<Settings>,
    hand_offs: &'m HandOffs,
    cluster: Arc<Cluster>,
    place: Place,
    flow: SocketAddrV4,
    /// What its state and the message with that take.
    held: Option<HeldBytes>,
    /// By which the node knows it, once it has adopted it.
    ticket: String,
}

impl Receiver for NodeMessages<'_> {
    fn reserve(&mut self, state: &ConnectionState) -> bool {
        // the state, its encoding, and that with its proof
        self.held = self.hand_offs.hold(3 * state.queued_bytes());
        self.held.is_some()
    }

    async fn adopt(&mut self, state: &ConnectionState) -> bool {
        let Some(ticket) = self.send_state(state).await else {
            return false;
        };
        self.ticket = ticket;
        // before its packets are: the end of an earlier connection from the same port, which is
        // told now, must not end the steering of this one
        self.hand_offs.note_steered(self.flow, &self.ticket);
        true
    }

    async fn go(&mut self) -> GoAnswer {
        self.held = None;
        let ticket = &self.ticket;
        let content = self
            .cluster
            .prove_hand_off(self.place, ticket, ticket.as_bytes());
        let Some(content) = content else {
            return GoAnswer::HasNone;
        };
        let nonce = self.cluster.nonce();
        match self.post(&nonce, GO_TARGET, content).await {
            Some((200, _)) => GoAnswer::GoesOn,
            Some((HAS_NONE, _)) => GoAnswer::HasNone,
            _ => GoAnswer::None,
        }
    }
}

impl NodeMessages<'_> {
    /// The ticket that the node gives it.
    async fn send_state(&self, state: &ConnectionState) -> Option<String> {
        let mut bytes = Vec::new();
        state.encode(&mut bytes);
        let nonce = self.cluster.nonce();
        let content = self.cluster.prove_hand_off(self.place, &nonce, &bytes)?;
        let (status, ticket) = self.post(&nonce, ADOPT_TARGET, content).await?;
        let ticket = (status == 200).then_some(ticket)?;
        String::from_utf8(ticket).ok()
    }

    async fn post(
        &self,
        nonce: &str,
        target: &'static str,
        content: Vec<u8>,
    ) -> Option<(u16, Vec<u8>)> {
        let message = Message {
            settings: Arc::clone(self.settings),
            cluster: Arc::clone(&self.cluster),
            place: self.place,
            target,
            nonce: nonce.to_owned(),
            content,
        };
        self.hand_offs.send(self.worker, message).await
    }
}

/// The reason's place among the counters.
const fn label(stay: Stay) -> HandOffRefusal {
    match stay {
        Stay::Own => HandOffRefusal::Own,
        Stay::Address => HandOffRefusal::Address,
        Stay::Tls => HandOffRefusal::Tls,
        Stay::Content => HandOffRefusal::Content,
        Stay::Later => HandOffRefusal::Later,
        Stay::Unacknowledged => HandOffRefusal::Unacknowledged,
        Stay::TooMany => HandOffRefusal::TooMany,
        Stay::State => HandOffRefusal::State,
        Stay::Node => HandOffRefusal::Node,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::Label as _;

    #[test]
    fn refusals_are_counted_under_the_words_and_meanings_of_the_policy() {
        for (stay, (word, about)) in Stay::ALL.into_iter().zip(Stay::WORDS) {
            let label = label(stay);
            assert_eq!(label.word(), *word);
            assert_eq!(HandOffRefusal::ABOUT[label.index()], *about);
        }
        assert_eq!(Stay::ALL.len(), HandOffRefusal::COUNT);
    }
}
