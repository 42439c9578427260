//! Sessions: what a process of a front end has with a node, and hands connections over in.
//!
//! A front end that is started again does not know which connections the process before it has
//! handed over: it steers none of them, and answers their clients' packets with a reset. The nodes
//! that have them must close them, or clients that are silent would wait for nothing. So a front
//! end begins a session with a node before it hands a connection over to it, and with all nodes at
//! its start, and the node closes what it has of earlier sessions.
//!
//! Two messages: the node answers the first one with a ticket, for which the second one is proved,
//! so that a copy of an old one ends no session.

use super::Message;
use crate::worker::core::Worker;
use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use weir_net::hand_off::mtu_toward;
use weir_net::workers::Stage;

/// Where the first message is sent.
pub(super) const SESSION_TARGET: &str = "/weir/hand-off/session";
/// Where the second one is.
pub(super) const BEGIN_TARGET: &str = "/weir/hand-off/session/begin";

/// How often a session is tried to be begun with a node that does not answer. It is tried again
/// when a connection is to be handed over to it.
const TRIES_MAX: usize = 10;

/// Between these.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Of a front end: the nodes that it has begun a session with, or is about to, by name.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<HashMap<String, Session>>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
    /// A task is to begin it.
    Beginning,
    Begun,
}

impl Sessions {
    fn by_node(&self) -> MutexGuard<'_, HashMap<String, Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session with a node, and whether a task for that is to begin.
    fn of(&self, node: &str) -> (Session, bool) {
        let mut by_node = self.by_node();
        if let Some(session) = by_node.get(node) {
            return (*session, false);
        }
        by_node.insert(node.to_owned(), Session::Beginning);
        (Session::Beginning, true)
    }

    /// A task has ended.
    fn ended(&self, node: &str, is_begun: bool) {
        let mut by_node = self.by_node();
        match is_begun {
            true => by_node.insert(node.to_owned(), Session::Begun),
            false => by_node.remove(node),
        };
    }
}

/// Whether connections may be handed over to a node; if not, that is prepared.
pub(super) fn is_begun(worker: &Rc<Worker>, node: &str) -> bool {
    let (session, is_new) = worker.shared.hand_offs.sessions.of(node);
    if is_new {
        let (worker, node) = (Rc::clone(worker), node.to_owned());
        tokio::task::spawn_local(async move { begin(&worker, &node).await });
    }
    session == Session::Begun
}

/// Begins sessions with all nodes, if this is a front end that hands connections over: on the first
/// worker, at once when all is ready for that. To be called once on each worker.
pub(crate) fn begin_sessions(worker: &Rc<Worker>) {
    if worker.net().index() != 0 {
        return;
    }
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        let mut stage = worker.network().stage();
        tokio::select! {
            _ = stage.wait_for(|stage| *stage >= Stage::Draining) => {}
            () = begin_all(&worker) => {}
        }
    });
}

async fn begin_all(worker: &Rc<Worker>) {
    let hand_offs = &worker.shared.hand_offs;
    hand_offs.is_ready.notified().await;
    let Some(cluster) = worker.settings().cluster() else {
        return;
    };
    for node in cluster.others() {
        if hand_offs.hands_over() && !cluster.is_listed_front_end(node) {
            is_begun(worker, node);
        }
    }
}

async fn begin(worker: &Rc<Worker>, node: &str) {
    let mut is_begun = false;
    for number in 1..=TRIES_MAX {
        is_begun = try_to_begin(worker, node).await.is_some();
        if is_begun || number == TRIES_MAX {
            break;
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
    worker.shared.hand_offs.sessions.ended(node, is_begun);
}

async fn try_to_begin(worker: &Rc<Worker>, node: &str) -> Option<()> {
    let settings = worker.settings();
    let cluster = settings.cluster()?;
    let place = cluster.other(node)?;
    let send = async |target, content: &str, proved_for: Option<&str>| {
        let nonce = cluster.nonce();
        let proved_for = proved_for.unwrap_or(&nonce);
        let content = cluster.prove_hand_off(place, proved_for, content.as_bytes())?;
        let message = Message {
            settings: Arc::clone(&settings),
            cluster: Arc::clone(&cluster),
            place,
            target,
            nonce,
            content,
        };
        let hand_offs = &worker.shared.hand_offs;
        let (status, content) = hand_offs.send(worker, message).await?;
        (status == 200).then_some(content)
    };
    let answer = String::from_utf8(send(SESSION_TARGET, "", None).await?).ok()?;
    let (ticket, mtu) = answer.split_once(' ')?;
    send(BEGIN_TARGET, ticket, Some(ticket)).await?;
    let own = mtu_toward(cluster.hop(place).host.parse().ok()?).ok();
    if let (Some(own), Ok(mtu)) = (own, mtu.parse())
        && let Some(line) = mtu_problem(node, own, mtu)
    {
        worker.shared.module_log.write(line);
    }
    Some(())
}

/// What an operator is to be told if a node takes other packets than the front end, which agrees
/// with clients on their size.
fn mtu_problem(node: &str, own_bytes: u32, node_bytes: u32) -> Option<String> {
    (own_bytes != node_bytes).then(|| {
        format!(
            "cluster: packets to this front end have up to {own_bytes} bytes (MTU), and those to node {node} {node_bytes}: \
             connections that are handed over to it may stall; set the same MTU on the devices of all members"
        )
    })
}

/// Of a node: the front ends that have begun a session with it, by name.
#[derive(Debug, Default)]
pub(super) struct FrontEnds(Mutex<HashMap<String, FrontEnd>>);

#[derive(Debug, Default)]
struct FrontEnd {
    /// Of a session that it may begin.
    ticket: Option<String>,
    /// The number of its session, which its connections look at.
    session: watch::Sender<u64>,
}

/// The session that a connection is of.
#[derive(Debug)]
pub(super) struct OwnSession {
    number: u64,
    current: watch::Receiver<u64>,
}

impl OwnSession {
    /// Ready when the front end has begun another one.
    pub(super) async fn ended(mut self) {
        let number = self.number;
        if self
            .current
            .wait_for(|current| *current != number)
            .await
            .is_err()
        {
            // nothing tells any more: with the process all connections end
            std::future::pending().await
        }
    }
}

impl FrontEnds {
    fn by_name(&self) -> MutexGuard<'_, HashMap<String, FrontEnd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A front end asks for a session: with this ticket.
    fn offer(&self, front_end: &str, ticket: &str) {
        let mut by_name = self.by_name();
        by_name.entry(front_end.to_owned()).or_default().ticket = Some(ticket.to_owned());
    }

    /// It begins the session, and connections of the one before are closed; `false` if the ticket
    /// is not the last one that it was given, or was used.
    pub(super) fn begin(&self, front_end: &str, ticket: &str) -> bool {
        let mut by_name = self.by_name();
        let Some(front_end) = by_name.get_mut(front_end) else {
            return false;
        };
        if front_end.ticket.take_if(|it| it == ticket).is_none() {
            return false;
        }
        front_end.session.send_modify(|number| *number += 1);
        true
    }

    /// The session of a front end that a connection is of which it hands over now.
    pub(super) fn session_of(&self, front_end: &str) -> OwnSession {
        let mut by_name = self.by_name();
        let front_end = by_name.entry(front_end.to_owned()).or_default();
        OwnSession {
            number: *front_end.session.borrow(),
            current: front_end.session.subscribe(),
        }
    }
}

/// The answer of a node to a front end that asks for a session: its ticket, and how large packets
/// to the node may be.
pub(super) fn answer(
    front_ends: &FrontEnds,
    (name, address): (&str, IpAddr),
    ticket: &str,
) -> String {
    front_ends.offer(name, ticket);
    // 0 is the MTU of no device
    let mtu = mtu_toward(address).unwrap_or_default();
    format!("{ticket} {mtu}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn session_is_begun_once_with_the_last_ticket_and_ends_the_one_before() {
        let front_ends = FrontEnds::default();
        assert!(!front_ends.begin("f", "t"), "it has asked for none");
        front_ends.offer("f", "old");
        front_ends.offer("f", "t");
        let (mut f, mut g) = (
            pin!(front_ends.session_of("f").ended()),
            pin!(front_ends.session_of("g").ended()),
        );
        assert!(!front_ends.begin("f", "old") && !front_ends.begin("g", "t"));
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(f.as_mut().poll(cx).is_pending());
        // adopted in that session, and gone on with later
        let late = front_ends.session_of("f");
        assert!(front_ends.begin("f", "t"));
        assert!(f.as_mut().poll(cx).is_ready());
        assert!(pin!(late.ended()).poll(cx).is_ready());
        assert!(g.as_mut().poll(cx).is_pending(), "of another front end");
        assert!(!front_ends.begin("f", "t"), "a copy of the message");
        let new = front_ends.session_of("f");
        assert!(pin!(new.ended()).poll(cx).is_pending());
    }

    #[test]
    fn session_with_a_node_is_begun_by_one_task_and_again_if_that_fails() {
        let sessions = Sessions::default();
        assert_eq!(sessions.of("a"), (Session::Beginning, true));
        assert_eq!(sessions.of("a"), (Session::Beginning, false));
        assert_eq!(sessions.of("b"), (Session::Beginning, true));
        sessions.ended("a", false);
        assert_eq!(sessions.of("a"), (Session::Beginning, true));
        sessions.ended("a", true);
        assert_eq!(sessions.of("a"), (Session::Begun, false));
    }

    #[test]
    fn operator_is_told_of_a_node_with_another_mtu() {
        assert_eq!(mtu_problem("a", 1500, 1500), None);
        let line = mtu_problem("a", 1500, 9000).expect("a line");
        assert!(
            line.contains("1500 bytes (MTU), and those to node a 9000"),
            "{line}"
        );
    }
}
