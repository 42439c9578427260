//! Connections of clients that a front end hands over to the node that answers: single hand-off
//! (Pai et al., ASPLOS'98), by `TCP_REPAIR` and nftables.
//!
//! A front end decides with the first request of a connection. The node gets the connection as it
//! was accepted: what the front end had read is read again. Three messages: the state, which is
//! answered with a *ticket*; the word to go on, proved for the ticket, so that a copy of an old
//! state is of no use; and, from the node, which connections have ended. `sessions` has what a
//! front end and a node tell each other before all of these.
//!
//! With multiple hand-off (Aron, Druschel, Zwaenepoel, USENIX 1999) a node moves a connection on to
//! another one with a later request ([`later`]). The front end, which has no part in that but to
//! lead the packets, is asked to hold them and then to lead them elsewhere ([`steered_flows`]).

mod ends;
mod front_end;
mod later;
mod moved_message;
mod node;
mod node_connection;
mod other_member;
mod sessions;
mod start;
mod steered_flows;

pub(crate) use node::{HandOffStep, run};
pub(crate) use node_connection::NodeConnection;
pub(crate) use sessions::begin_sessions;
pub(crate) use start::begin;

use self::ends::Ends;
use self::sessions::{FrontEnds, OwnSession, Sessions};
use crate::cluster::Cluster;
use crate::exchange::state::RequestState;
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
use tokio::net::TcpStream;
use tokio::sync::Notify;
use weir_net::hand_off::repair::FrozenConnection;
use weir_net::hand_off::steering::{FLOWS_MAX, Steering};
use weir_policy::connections::hand_off::{HandOffKind, MOVES_MAX, MoveCredit, SteeredFlows};
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
#[derive(Debug)]
pub(crate) struct HandOffs {
    /// None without hand-off.
    service: OnceLock<Service>,
    /// Of a front end.
    steering: OnceLock<Steering>,
    /// Connections that are being handed over.
    moves: AtomicUsize,
    /// Bytes that these take, and those that are adopted.
    held_bytes: Arc<AtomicUsize>,
    /// Of a front end: the connections that nodes have.
    steered: Mutex<SteeredFlows>,
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
    /// The member that has sent it, and says when to go on with it.
    from: String,
    /// The front end that leads its packets.
    front_end: String,
    /// That of the front end in which it was adopted.
    session: OwnSession,
    /// It is dropped then, if this node is not told to go on with it.
    until: Instant,
    /// How often it may move on.
    credit: MoveCredit,
    _held: HeldBytes,
}

impl Default for HandOffs {
    fn default() -> Self {
        Self {
            service: OnceLock::new(),
            steering: OnceLock::new(),
            moves: AtomicUsize::new(0),
            held_bytes: Arc::default(),
            steered: Mutex::new(SteeredFlows::new(FLOWS_MAX as usize)),
            sessions: Sessions::default(),
            is_ready: Notify::new(),
            front_ends: FrontEnds::default(),
            ends: Ends::default(),
            adopted: Mutex::default(),
        }
    }
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

    /// The steering of a front end that has nodes move connections on.
    fn steering_of_moves(&self, settings: &Settings) -> Option<&Steering> {
        let kind = settings.config.cluster.hand_off;
        let steering = self.steering.get();
        steering.filter(|_| kind == HandOffKind::Multiple)
    }

    fn steered(&self) -> MutexGuard<'_, SteeredFlows> {
        self.steered.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Whether it is tried to hand a connection over with the request that is taken. `handed` is what
/// is known of one that was handed over to this node.
pub(crate) fn is_tried(
    hand_offs: &HandOffs,
    settings: &Settings,
    (handed, is_first): (Option<&NodeConnection>, bool),
) -> bool {
    let kind = settings.config.cluster.hand_off;
    let was_handed_over = handed.is_some();
    (was_handed_over || hand_offs.hands_over()) && kind.tries(is_first, was_handed_over)
}

/// Hands the connection over to the node that is chosen for the request; `false` if it stays, and
/// nothing has happened to it. `read` is all that was read of it and not answered.
pub(crate) async fn hand_over(
    exchange: &mut RequestState,
    handed: Option<&NodeConnection>,
    stream: &TcpStream,
    read: &[u8],
) -> bool {
    match handed {
        Some(connection) => later::move_on(exchange, connection, stream, read).await,
        None => front_end::hand_over(exchange, stream, read).await,
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
}
