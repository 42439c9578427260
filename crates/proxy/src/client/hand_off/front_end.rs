//! The front end's side.

use super::HeldBytes;
use super::node::{ADOPT_TARGET, GO_TARGET, HAS_NONE};
use super::other_member::OtherMember;
use super::sessions;
use crate::cluster::Cluster;
use crate::exchange::next_hop::ChosenNode;
use crate::exchange::state::{Plan, RequestState};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::AsFd as _;
use tokio::net::TcpStream;
use weir_measure::{HandOffRefusal, Metric};
use weir_net::flow::unacknowledged_bytes;
use weir_net::hand_off::moving::{
    self, GoAnswer, HandedConnection, MoveOutcome, OwnPackets, Receiver,
};
use weir_net::hand_off::repair::{ConnectionState, UNACKNOWLEDGED_BYTES_MAX};
use weir_policy::connections::hand_off::{HandOffKind, HandOffRequest, MoveEnd, Stay};
use weir_policy::route::Place;
use weir_semantics::line_named;

/// Hands the connection over to the node that is chosen for its request; `false` if it stays, and
/// nothing has happened to it. `read` is all that was read of it.
pub(crate) async fn hand_over(
    exchange: &mut RequestState,
    stream: &TcpStream,
    read: &[u8],
) -> bool {
    if !matches!(exchange.plan, Plan::Forward { .. }) {
        return false;
    }
    let end = attempt(exchange, stream, read).await;
    has_left(exchange, end)
}

/// Counts what became of a connection that was to be handed over; whether it is here no more.
pub(super) fn has_left(exchange: &mut RequestState, end: MoveEnd) -> bool {
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
    let kind = exchange.settings.config.cluster.hand_off;
    let flow = match judge(kind, exchange, stream, other_moves) {
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
        node: OtherMember {
            worker: &exchange.worker,
            settings: &exchange.settings,
            hand_offs,
            cluster,
            place,
        },
        flow,
        held: None,
        ticket: String::new(),
    };
    let connection = HandedConnection {
        socket: stream.as_fd(),
        read,
    };
    // of an earlier connection from the same port, which has ended
    hand_offs.steered().forget(flow);
    let mut packets = OwnPackets {
        steering,
        flow,
        machine,
    };
    let outcome = moving::hand_over(&mut packets, connection, &mut node).await;
    let end = record_hold(exchange, outcome);
    if end != MoveEnd::HandedOver {
        hand_offs.steered().end(flow, &node.ticket);
    }
    end
}

/// Records how long packets were dropped; where the connection goes on.
pub(super) fn record_hold(exchange: &RequestState, outcome: MoveOutcome) -> MoveEnd {
    if let Some(held) = outcome.held {
        let us = u64::try_from(held.as_micros()).unwrap_or(u64::MAX);
        exchange.worker.counters().record_hold_time(us);
    }
    outcome.end
}

/// The flow of a connection that may be handed over; why it stays, if it may not.
pub(super) fn judge(
    kind: HandOffKind,
    exchange: &RequestState,
    stream: &TcpStream,
    other_moves: usize,
) -> Result<SocketAddrV4, Stay> {
    let (Ok(client), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else {
        return Err(Stay::State);
    };
    // behind a balancer, the address that the node would see is not the client's
    let SocketAddr::V4(flow) = client else {
        return Err(Stay::Address);
    };
    if exchange.client.facts().peer != client {
        return Err(Stay::Address);
    }
    let service = exchange.worker.shared.hand_offs.service();
    let request = &exchange.request;
    kind.judge(&HandOffRequest {
        is_to_service: service.map(SocketAddr::V4) == Some(local),
        is_tls: exchange.client.facts().listener.is_tls(),
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
    node: OtherMember<'m>,
    flow: SocketAddrV4,
    /// What its state and the message with that take.
    held: Option<HeldBytes>,
    /// By which the node knows it, once it has adopted it.
    ticket: String,
}

impl Receiver for NodeMessages<'_> {
    fn reserve(&mut self, state: &ConnectionState) -> bool {
        // the state, its encoding, and that with its proof
        self.held = self.node.hand_offs.hold(3 * state.queued_bytes());
        self.held.is_some()
    }

    async fn adopt(&mut self, state: &ConnectionState) -> bool {
        let mut content = Vec::new();
        state.encode(&mut content);
        let answer = self.node.tell(ADOPT_TARGET, &content).await;
        let ticket = answer.filter(|(status, _)| *status == 200);
        let Some(ticket) = ticket.and_then(|(_, ticket)| String::from_utf8(ticket).ok()) else {
            return false;
        };
        self.ticket = ticket;
        // before its packets are: the end of an earlier connection from the same port, which is
        // told now, must not end the steering of this one
        let name = self.node.cluster.name(self.node.place);
        let mut steered = self.node.hand_offs.steered();
        steered.insert(self.flow, name, &self.ticket);
        true
    }

    async fn go(&mut self) -> GoAnswer {
        self.held = None;
        match self.node.tell_ticket(GO_TARGET, &self.ticket).await {
            Some((200, _)) => GoAnswer::GoesOn,
            Some((HAS_NONE, _)) => GoAnswer::HasNone,
            _ => GoAnswer::None,
        }
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
        Stay::FrontEnd => HandOffRefusal::FrontEnd,
        Stay::Arrived => HandOffRefusal::Arrived,
        Stay::Kept => HandOffRefusal::Kept,
        Stay::NotHeld => HandOffRefusal::NotHeld,
        Stay::Small => HandOffRefusal::Small,
        Stay::Often => HandOffRefusal::Often,
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
