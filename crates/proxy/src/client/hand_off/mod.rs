//! Connections of clients that a front end hands over to the node that answers: single hand-off
//! (Pai et al., ASPLOS'98), by `TCP_REPAIR` and nftables.
//!
//! A front end decides with the first request of a connection. The node gets the connection as it
//! was accepted: what the front end had read is read again. Three messages: the state, which is
//! answered with a *ticket*; the word to go on, proved for the ticket, so that a copy of an old
//! state is of no use; and, from the node, that the connection has ended.

mod front_end;
mod node;
mod start;

pub(crate) use front_end::hand_over;
pub(crate) use node::{HandOffStep, run};
pub(crate) use start::begin;

use crate::cluster::Cluster;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::collections::HashMap;
use std::net::SocketAddrV4;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use weir_net::hand_off::repair::FrozenConnection;
use weir_net::hand_off::steering::{FLOWS_MAX, Steering};
use weir_policy::connections::hand_off::MOVES_MAX;
use weir_policy::route::Place;

/// A node drops a connection that it has adopted and is not told to go on with.
const GO_MAX: Duration = Duration::from_secs(1);

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
pub(crate) type Send = fn(Rc<Worker>, Message) -> Answered;

/// What a process has of connections that are handed over.
#[derive(Debug, Default)]
pub(crate) struct HandOffs {
    /// The address of the service, and how messages are sent; none without hand-off.
    service: OnceLock<(SocketAddrV4, Send)>,
    /// Of a front end.
    steering: OnceLock<Steering>,
    /// Connections that are being handed over.
    moves: AtomicUsize,
    /// Connections that nodes have, with their tickets.
    steered: Mutex<HashMap<SocketAddrV4, String>>,
    /// Connections that this node has adopted and does not go on with yet, by their tickets.
    adopted: Mutex<HashMap<String, Adopted>>,
}

#[derive(Debug)]
struct Adopted {
    connection: FrozenConnection,
    from: String,
    since: Instant,
}

impl HandOffs {
    /// Whether connections are handed over from here.
    pub(crate) fn is_front_end(&self) -> bool {
        self.steering.get().is_some()
    }

    /// The address of the service.
    fn service(&self) -> Option<SocketAddrV4> {
        self.service.get().map(|(service, _)| *service)
    }

    /// Sends a message.
    async fn send(&self, worker: &Rc<Worker>, message: Message) -> Option<(u16, Vec<u8>)> {
        let (_, send) = self.service.get()?;
        send(Rc::clone(worker), message).await
    }

    fn steered(&self) -> MutexGuard<'_, HashMap<SocketAddrV4, String>> {
        self.steered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection with this ticket is at a node from now on.
    fn note_steered(&self, flow: SocketAddrV4, ticket: &str) {
        let mut steered = self.steered();
        // nodes that failed have not said what ended with them; the kernel forgets it by itself
        if steered.len() >= FLOWS_MAX as usize {
            steered.clear();
        }
        steered.insert(flow, ticket.to_owned());
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
        self.adopted()
            .retain(|_, adopted| adopted.since.elapsed() < GO_MAX);
    }

    fn begin_move(&self) -> MoveCount<'_> {
        self.moves.fetch_add(1, Ordering::Relaxed);
        MoveCount(self)
    }
}

/// A connection that is being handed over, until it is dropped.
struct MoveCount<'h>(&'h HandOffs);

impl Drop for MoveCount<'_> {
    fn drop(&mut self) {
        self.0.moves.fetch_sub(1, Ordering::Relaxed);
    }
}
