//! Messages of a node that moves a connection on: the front end's side.

use super::node::{MALFORMED, Refusal};
use super::sessions;
use crate::cluster::Cluster;
use crate::worker::core::Worker;
use std::net::Ipv4Addr;
use std::rc::Rc;
use weir_measure::Metric;
use weir_policy::connections::hand_off::{FlowMessage, FlowRefusal, Steer};

/// Where a node sends the message that asks to have packets held.
pub(super) const HOLD_TARGET: &str = "/weir/hand-off/hold";
/// That which has them steered.
pub(super) const STEER_TARGET: &str = "/weir/hand-off/steer";
/// That which has them go where they went.
pub(super) const RELEASE_TARGET: &str = "/weir/hand-off/release";

const NO_FRONT_END: Refusal = (409, "this member hands no connections over more than once");
const NO_NODE: Refusal = (409, "there is no such node to lead packets to");
const REFUSED: Refusal = (409, "the connection is not one that the node may move now");
const NOT_CHANGED: Refusal = (409, "the packets are not held, or the connection has ended");
const UNDER_WAY: Refusal = (503, "the same message is being carried out");
const NO_ROOM: Refusal = (503, "too many flows are being changed");

/// Bytes of a ticket, at most.
const TICKET_BYTES_MAX: usize = 64;

/// A message of `node`: of which connection, and one word more.
fn read<'m>(node: &'m str, content: &'m str) -> Option<(FlowMessage<'m>, &'m str)> {
    let mut words = content.split(' ');
    let message = FlowMessage {
        flow: words.next()?.parse().ok()?,
        node,
        ticket: words.next().and_then(ticket)?,
        attempt: words.next()?.parse().ok()?,
    };
    let more = words.next()?;
    let is_whole = words.next().is_none();
    is_whole.then_some((message, more))
}

fn ticket(word: &str) -> Option<&str> {
    (word.len() <= TICKET_BYTES_MAX).then_some(word)
}

/// The address of a node by its name.
fn machine_of(cluster: &Cluster, name: &str) -> Option<Ipv4Addr> {
    let place = cluster.other(name)?;
    let host = cluster.hop(place).host.parse().ok()?;
    (!cluster.is_listed_front_end(name)).then_some(host)
}

/// Holds the packets of a connection: the permit to move it.
pub(super) async fn hold(
    worker: &Rc<Worker>,
    (cluster, node): (&Cluster, &str),
    content: &str,
) -> Result<String, Refusal> {
    let (message, to) = read(node, content).ok_or(MALFORMED)?;
    let hand_offs = &worker.shared.hand_offs;
    let steering = hand_offs
        .steering_of_moves(&worker.settings())
        .ok_or(NO_FRONT_END)?;
    machine_of(cluster, to)
        .filter(|_| to != node)
        .ok_or(NO_NODE)?;
    // it would be closed there when the session begins
    if !sessions::is_begun(worker, to) {
        return Err(NO_NODE);
    }
    let now = worker.now().tick;
    let held = hand_offs.steered().hold(now, &message, to);
    held.map_err(|_| REFUSED)?;
    if steering.hold(message.flow).await.is_err() {
        let _ = hand_offs.steered().release(&message);
        return Err(NO_ROOM);
    }
    let (flow, attempt) = (message.flow.to_string(), message.attempt.to_string());
    let words = [node, to, &flow, message.ticket, &attempt];
    Ok(cluster.move_permit(words).as_str().to_owned())
}

/// Leads the packets of a held connection to the node that has adopted it.
pub(super) async fn steer(
    worker: &Worker,
    (cluster, node): (&Cluster, &str),
    content: &str,
) -> Result<String, Refusal> {
    let (message, word) = read(node, content).ok_or(MALFORMED)?;
    let ticket = ticket(word).ok_or(MALFORMED)?;
    let hand_offs = &worker.shared.hand_offs;
    let steering = hand_offs
        .steering_of_moves(&worker.settings())
        .ok_or(NO_FRONT_END)?;
    let steer = hand_offs.steered().steer(worker.now().tick, &message);
    let to = match steer {
        Ok(Steer::Done) => return Ok(String::new()),
        Ok(Steer::To(to)) => to,
        Err(FlowRefusal::Moving) => return Err(UNDER_WAY),
        Err(_) => return Err(REFUSED),
    };
    let is_steered = match machine_of(cluster, &to) {
        Some(machine) => steering.steer_on(message.flow, machine).await.is_ok(),
        None => false,
    };
    if !is_steered {
        let _ = hand_offs.steered().release(&message);
        let _ = steering.release(message.flow).await;
        return Err(NOT_CHANGED);
    }
    let has_moved = hand_offs.steered().moved(&message, ticket);
    if !has_moved {
        // it has ended; if another connection has the flow by now, that is steered anew
        let is_free = !hand_offs.steered().contains(&message.flow);
        if is_free {
            let _ = steering.unsteer(vec![message.flow]).await;
        }
        return Err(NOT_CHANGED);
    }
    worker.counters().inc(Metric::FlowsMoved);
    Ok(String::new())
}

/// Holds the packets of a connection no longer: it stays.
pub(super) async fn release(worker: &Worker, node: &str, content: &str) -> Result<String, Refusal> {
    let (message, _) = read(node, content).ok_or(MALFORMED)?;
    let hand_offs = &worker.shared.hand_offs;
    let steering = hand_offs
        .steering_of_moves(&worker.settings())
        .ok_or(NO_FRONT_END)?;
    let released = hand_offs.steered().release(&message);
    released.map_err(|_| REFUSED)?;
    let _ = steering.release(message.flow).await;
    Ok(String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_that_does_not_say_of_which_connection_it_is_is_refused() {
        let (message, more) = read("a", "192.0.2.1:80 AAAA 7 b").expect("a message");
        assert_eq!((message.node, message.ticket), ("a", "AAAA"));
        assert_eq!((message.attempt, more), (7, "b"));
        for content in [
            "",
            "192.0.2.1 AAAA 7 b",
            "[2001:db8::1]:80 AAAA 7 b",
            "192.0.2.1:80 AAAA b",
            "192.0.2.1:80 AAAA 7",
            "192.0.2.1:80 AAAA -7 b",
            "192.0.2.1:80 AAAA 7 b c",
        ] {
            assert!(read("a", content).is_none(), "{content}");
        }
        let of = |bytes: usize| format!("192.0.2.1:80 {} 7 b", "A".repeat(bytes));
        assert!(read("a", &of(TICKET_BYTES_MAX)).is_some());
        assert!(read("a", &of(TICKET_BYTES_MAX + 1)).is_none());
    }
}
