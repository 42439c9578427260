//! Connections of clients that a front end hands over to the node that answers: single hand-off
//! (Pai et al., ASPLOS'98), by `TCP_REPAIR` and nftables.
//!
//! A front end decides with the first request of a connection. The node gets the connection as it
//! was accepted: what the front end had read is read again. Three messages: the state, which is
//! answered with a *ticket*; the word to go on, proved for the ticket, so that a copy of an old
//! state is of no use; and, from the node, which connections have ended. `sessions` has what a
//! front end and a node tell each other before all of these.

mod ends;
mod front_end;
mod node;
mod sessions;
mod start;

pub(crate) use front_end::hand_over;
pub(crate) use node::{HandOffStep, run};
pub(crate) use sessions::begin_sessions;
pub(crate) use start::begin;

use self::ends::Ends;
use self::sessions::{FrontEnds, OwnSession, Sessions};
use crate::cluster::Cluster;
use crate::modules::own_work::OwnWork;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;
use weir_net::hand_off::repair::FrozenConnection;
use weir_net::hand_off::steering::{FLOWS_MAX, Steering};
use weir_policy::connections::hand_off::MOVES_MAX;
use weir_policy::route::Place;

/// Bytes that connections take which are being handed over, of a process: what clients have sent
/// and not received, and the messages with it.
const HELD_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Messages to other members under way, of a process: one of each connection that is handed over.
const MESSAGES_MAX: usize = MOVES_MAX;

/// Bytes of the answers to them: a ticket each, and few refusals.
const ANSWERS_BYTES_MAX: usize = 1024 * 1024;

/// A message to another member.
pub(crate) struct Message {
    /// The settings in force.
    pub(crate) settings: Arc<Settings>,
    /// The cluster.
    pub(crate) cluster: Arc<Cluster>,
    /// The member.
    pub(crate) place: Place,
    /// What it is about.
    pub(crate) target: &'static str,
    /// What its answer is proved for.
    pub(crate) nonce: String,
    /// Its content, with its proof.
    pub(crate) content: Vec<u8>,
}

/// The status and the content of an answer; `None` without one of the member.
pub(crate) type Answered = Pin<Box<dyn Future<Output = Option<(u16, Vec<u8>)>>>>;

/// Sends a message: given from outside, as what sends messages uses this module's users.
pub(crate) type SendMessage = fn(Rc<Worker>, &Arc<OwnWork>, Message) -> Answered;

/// What a process has of connections that are handed over.
#[derive(Debug, Default)]
pub(crate) struct HandOffs {
    /// None without hand-off.
    service: OnceLock<Service>,
    /// Of a front end.
    steering: OnceLock<Steering>,
    /// Connections that are being handed over.
    moves: AtomicUsize,
    /// Bytes that these take, and those that are adopted.
    held_bytes: Arc<AtomicUsize>,
    /// Connections that nodes have, with their tickets.
    steered: Mutex<HashMap<SocketAddrV4, String>>,
    /// With nodes, of a front end.
    sessions: Sessions,
    /// Notified once when all that it takes is ready.
    is_ready: Notify,
    /// Those that have sessions with this node.
    front_ends: FrontEnds,
    /// Those of a node that have ended, of which front ends are not told yet.
    ends: Ends,
    /// Connections that this node has adopted and does not go on with yet, by their tickets.
    adopted: Mutex<HashMap<String, Adopted>>,
}

/// The service whose connections are handed over.
#[derive(Debug)]
struct Service {
    address: SocketAddrV4,
    /// How messages are sent.
    send: SendMessage,
    /// What those under way take.
    messages: Arc<OwnWork>,
}

impl Service {
    fn new(address: SocketAddrV4, send: SendMessage) -> Self {
        Self {
            address,
            send,
            messages: Arc::new(OwnWork::of_messages(MESSAGES_MAX, ANSWERS_BYTES_MAX)),
        }
    }
}

#[derive(Debug)]
struct Adopted {
    connection: FrozenConnection,
    from: String,
    session: OwnSession,
    /// It is dropped then, if this node is not told to go on with it.
    until: Instant,
    _held: HeldBytes,
}

impl HandOffs {
    /// Whether connections are handed over from here.
    pub(crate) fn hands_over(&self) -> bool {
        self.steering.get().is_some()
    }

    /// The address of the service.
    fn service(&self) -> Option<SocketAddrV4> {
        self.service.get().map(|service| service.address)
    }

    /// Sends a message.
    async fn send(&self, worker: &Rc<Worker>, message: Message) -> Option<(u16, Vec<u8>)> {
        let service = self.service.get()?;
        (service.send)(Rc::clone(worker), &service.messages, message).await
    }

    fn steered(&self) -> MutexGuard<'_, HashMap<SocketAddrV4, String>> {
        self.steered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection with this ticket is at a node from now on.
    fn note_steered(&self, flow: SocketAddrV4, ticket: &str) {
        let mut steered = self.steered();
        // nodes that failed have not said what ended with them; the kernel forgets it by itself
        if steered.len() >= FLOWS_MAX as usize
            && let Some(any) = steered.keys().next().copied()
        {
            steered.remove(&any);
        }
        steered.insert(flow, ticket.to_owned());
    }

    /// The connection with this ticket is at no node any more; whether it was.
    fn forget_steered(&self, flow: SocketAddrV4, ticket: &str) -> bool {
        let mut steered = self.steered();
        let is_known = steered.get(&flow).is_some_and(|known| known == ticket);
        if is_known {
            steered.remove(&flow);
        }
        is_known
    }

    fn adopted(&self) -> MutexGuard<'_, HashMap<String, Adopted>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether another connection may be adopted.
    fn has_room(&self) -> bool {
        self.adopted().len() < MOVES_MAX
    }

    /// Drops connections that this node was not told to go on with. Called each second.
    pub(crate) fn expire(&self) {
        let now = Instant::now();
        self.adopted().retain(|_, adopted| adopted.until > now);
    }

    /// Holds so many bytes more; `None` if there is no room for them.
    fn hold(&self, bytes: usize) -> Option<HeldBytes> {
        let more = |held: usize| held.checked_add(bytes).filter(|it| *it <= HELD_BYTES_MAX);
        let all = &self.held_bytes;
        all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        let all = Arc::clone(all);
        Some(HeldBytes { all, bytes })
    }

    /// Counts a connection that may be handed over; how many others there are.
    fn begin_move(&self) -> (MoveCount<'_>, usize) {
        let others = self.moves.fetch_add(1, Ordering::Relaxed);
        (MoveCount(self), others)
    }
}

/// A connection that is being handed over, until it is dropped.
struct MoveCount<'h>(&'h HandOffs);

impl Drop for MoveCount<'_> {
    fn drop(&mut self) {
        self.0.moves.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bytes that a connection takes while it is being handed over, until this is dropped.
#[derive(Debug)]
struct HeldBytes {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_are_handed_over_hold_no_more_bytes_than_their_limit() {
        let hand_offs = HandOffs::default();
        let most = hand_offs.hold(HELD_BYTES_MAX - 1).expect("room");
        assert!(hand_offs.hold(2).is_none() && hand_offs.hold(usize::MAX).is_none());
        let last = hand_offs.hold(1).expect("room for one");
        assert!(hand_offs.hold(1).is_none());
        drop((most, last));
        assert!(
            hand_offs.hold(HELD_BYTES_MAX).is_some(),
            "all is given back"
        );
    }

    #[test]
    fn as_many_connections_are_handed_over_at_once_as_the_limit_says() {
        let hand_offs = HandOffs::default();
        let moves: Vec<_> = (0..=MOVES_MAX).map(|_| hand_offs.begin_move()).collect();
        let others: Vec<usize> = moves.iter().map(|(_, others)| *others).collect();
        assert_eq!(others, (0..=MOVES_MAX).collect::<Vec<_>>());
        drop(moves);
        assert_eq!(hand_offs.begin_move().1, 0);
    }

    #[test]
    fn ticket_of_an_earlier_connection_from_the_same_port_ends_no_steering() {
        let hand_offs = HandOffs::default();
        let flow = SocketAddrV4::new([192, 0, 2, 1].into(), 1);
        hand_offs.note_steered(flow, "old");
        hand_offs.note_steered(flow, "new");
        assert!(!hand_offs.forget_steered(flow, "old"));
        assert!(hand_offs.forget_steered(flow, "new"));
        assert!(!hand_offs.forget_steered(flow, "new"));
    }

    #[test]
    fn connection_beyond_those_that_are_known_costs_one_of_them_its_ticket() {
        let hand_offs = HandOffs::default();
        let flow = |number: u32| {
            let port = u16::try_from(number % 60_000 + 1).expect("a port");
            SocketAddrV4::new((0x0a00_0000 + number / 60_000).into(), port)
        };
        for number in 0..=FLOWS_MAX {
            hand_offs.note_steered(flow(number), "t");
        }
        let steered = hand_offs.steered();
        assert_eq!(steered.len(), FLOWS_MAX as usize);
        assert!(steered.contains_key(&flow(FLOWS_MAX)));
    }
}
