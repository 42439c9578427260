//! Which messages of other members this process has received, and receives.
//!
//! A message names the session of the process that it is for, and has a greater number than all
//! that were received of its sender in this session. So a copy of a message, read between two nodes
//! and sent again, is refused. Numbers are of no clock: a sender that does not know the session or
//! the number learns both by the refusal.

use crate::cluster::Nonces;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;
use weir_policy::route::NODES_MAX;
use weir_semantics::PurgeSequence;

/// Which messages have been received, and are.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    received: Mutex<Received>,
    /// By sender: what ends the receiving of its last message when it is dropped.
    receiving: Mutex<BTreeMap<Box<str>, oneshot::Sender<()>>>,
}

#[derive(Debug)]
struct Received {
    /// What this process calls itself.
    session: String,
    /// The greatest number, by sender.
    numbers: BTreeMap<Box<str>, u64>,
}

impl Default for Received {
    fn default() -> Self {
        Self {
            session: Nonces::default().next(),
            numbers: BTreeMap::new(),
        }
    }
}

/// Senders that are known at once: those that have left are among them. With one more, a new
/// session begins.
const SENDERS_MAX: usize = 2 * NODES_MAX;

impl Inbox {
    /// The content of a message in the name of member `node` begins to come: one of each member is
    /// received at a time. What is returned is ready when another one has begun.
    pub(crate) fn begin(&self, node: &str) -> oneshot::Receiver<()> {
        let (end, ended) = oneshot::channel();
        let receiving = self.receiving.lock();
        let mut receiving = receiving.unwrap_or_else(PoisonError::into_inner);
        if receiving.len() >= SENDERS_MAX {
            receiving.clear();
        }
        receiving.insert(node.into(), end);
        ended
    }

    /// Takes the message of member `node` at this place of the sequence; returns the session and
    /// the greatest number that was received of the sender, and whether the message is to be
    /// carried out: it is the next one.
    pub(crate) fn take(&self, node: &str, sequence: &PurgeSequence<'_>) -> (String, u64, bool) {
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let last = received.numbers.get(node).copied();
        if last.is_none() && received.numbers.len() >= SENDERS_MAX {
            *received = Received::default();
        }
        let last = last.unwrap_or(0);
        let is_next = sequence.session == received.session && sequence.number > last;
        if is_next {
            received.numbers.insert(node.into(), sequence.number);
        }
        let last = if is_next { sequence.number } else { last };
        (received.session.clone(), last, is_next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_taken_once_in_its_session_and_never_behind_a_later_one() {
        let inbox = Inbox::default();
        let take = |node: &str, session: &str, number| {
            let (_, last, is_next) = inbox.take(node, &PurgeSequence { session, number });
            (last, is_next)
        };
        let unknown = PurgeSequence {
            session: "-",
            number: 1,
        };
        let (session, ..) = inbox.take("a", &unknown);
        let (other, ..) = Inbox::default().take("a", &unknown);
        assert_eq!(take("a", "-", 1), (0, false));
        assert_eq!(take("a", &other, 1), (0, false));
        assert_eq!(take("a", &session, 0), (0, false));
        assert_eq!(take("a", &session, 3), (3, true));
        for number in 0..=3 {
            assert_eq!(take("a", &session, number), (3, false));
        }
        assert_eq!(take("b", &session, 1), (1, true));
        assert_eq!(take("a", &session, 4), (4, true));
    }

    #[test]
    fn session_ends_when_there_are_more_senders_than_it_knows() {
        let inbox = Inbox::default();
        let ask =
            |node: &str, session: &str| inbox.take(node, &PurgeSequence { session, number: 1 });
        let (session, ..) = ask("x", "-");
        for number in 0..SENDERS_MAX {
            assert!(ask(&format!("n{number}"), &session).2);
        }
        let (next, last, is_next) = ask("x", &session);
        assert!(next != session && last == 0 && !is_next);
        assert!(ask("x", &next).2);
    }
}
