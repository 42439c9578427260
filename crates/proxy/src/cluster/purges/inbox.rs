//! Which messages of other members this process has received, and receives.
//!
//! The head of a message names the session of the process that it is for, and has a greater number
//! than all that have begun to come of its sender in this session; the content says the same. So a
//! copy of a message, or of its head, read between two nodes and sent again, is refused, and ends
//! nothing that is under way. Numbers are of no clock: a sender that does not know the session or
//! the number learns both by the refusal.

use crate::cluster::Nonces;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use weir_policy::route::NODES_MAX;
use weir_semantics::PurgeSequence;

/// Which messages have been received, and are.
#[derive(Debug, Default)]
pub(crate) struct Inbox(Mutex<Received>);

#[derive(Debug)]
struct Received {
    /// What this process calls itself.
    session: String,
    senders: BTreeMap<Box<str>, Sender>,
}

/// The greatest numbers of its messages, and its last one.
#[derive(Debug, Default)]
struct Sender {
    /// Of those of which the content has begun to come.
    begun: u64,
    /// Of those that were carried out.
    taken: u64,
    /// What ends the receiving of the last one when it is dropped.
    end: Option<oneshot::Sender<()>>,
}

impl Default for Received {
    fn default() -> Self {
        Self {
            session: Nonces::default().next(),
            senders: BTreeMap::new(),
        }
    }
}

/// Senders that are known at once: those that have left are among them. With one more, a new
/// session begins.
const SENDERS_MAX: usize = 2 * NODES_MAX;

impl Inbox {
    /// The content of a message of member `node` at this place of the sequence begins to come: one
    /// of each member is received at a time. What is returned is ready when the next one has begun.
    /// `None` if this is not the next one, and nothing has changed.
    pub(crate) fn begin(
        &self,
        node: &str,
        sequence: &PurgeSequence<'_>,
    ) -> Option<oneshot::Receiver<()>> {
        let mut received = self.received();
        if sequence.session != received.session {
            return None;
        }
        if !received.senders.contains_key(node) && received.senders.len() >= SENDERS_MAX {
            *received = Received::default();
            return None;
        }
        let begun = received.senders.get(node).map_or(0, |it| it.begun);
        if sequence.number <= begun {
            return None;
        }
        let (end, ended) = oneshot::channel();
        let sender = received.senders.entry(node.into()).or_default();
        sender.begun = sequence.number;
        drop(sender.end.replace(end));
        Some(ended)
    }

    /// Takes the message of member `node` at this place of the sequence, which is whole; whether it
    /// is to be carried out: none that came later was.
    pub(crate) fn take(&self, node: &str, sequence: &PurgeSequence<'_>) -> bool {
        let mut received = self.received();
        if sequence.session != received.session {
            return false;
        }
        let sender = received.senders.get_mut(node);
        let sender = sender.filter(|sender| sequence.number > sender.taken);
        let is_next = sender.is_some();
        if let Some(sender) = sender {
            sender.taken = sequence.number;
        }
        is_next
    }

    /// The session, and the greatest number of a message that has begun to come of `node`: the next
    /// one is to have the session and a greater number.
    pub(crate) fn last(&self, node: &str) -> (String, u64) {
        let received = self.received();
        let last = received.senders.get(node).map_or(0, |it| it.begun);
        (received.session.clone(), last)
    }

    fn received(&self) -> MutexGuard<'_, Received> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_begun_and_taken_once_in_its_session_and_never_behind_a_later_one() {
        let inbox = Inbox::default();
        let begin = |node: &str, session: &str, number| {
            inbox.begin(node, &PurgeSequence { session, number })
        };
        let take = |node: &str, session: &str, number| {
            inbox.take(node, &PurgeSequence { session, number })
        };
        let (session, last) = inbox.last("a");
        let (other, _) = Inbox::default().last("a");
        assert_eq!(last, 0);
        for (session, number) in [("-", 1), (&*other, 1), (&*session, 0)] {
            assert!(begin("a", session, number).is_none());
            assert!(!take("a", session, number), "it has not begun");
        }
        let _first = begin("a", &session, 2).expect("the next one");
        let _second = begin("a", &session, 3).expect("the next one");
        assert_eq!(inbox.last("a"), (session.clone(), 3));
        assert!(take("a", &session, 2), "it is whole before the later one");
        assert!(take("a", &session, 3));
        for number in 0..=3 {
            assert!(begin("a", &session, number).is_none());
            assert!(!take("a", &session, number));
        }
        assert!(begin("b", &session, 1).is_some() && take("b", &session, 1));
        assert!(begin("a", &session, 4).is_some());
    }

    #[test]
    fn receiving_ends_with_the_next_message_of_the_member_and_with_no_old_one() {
        let inbox = Inbox::default();
        let (session, _) = inbox.last("a");
        let begin = |node: &str, session: &str, number| {
            inbox.begin(node, &PurgeSequence { session, number })
        };
        let mut first = begin("a", &session, 7).expect("the next one");
        let is_under_way = |ended: &mut oneshot::Receiver<()>| {
            ended.try_recv() == Err(oneshot::error::TryRecvError::Empty)
        };
        for (node, session, number) in [("a", &*session, 7), ("a", &*session, 6), ("a", "-", 8)] {
            assert!(begin(node, session, number).is_none());
            assert!(is_under_way(&mut first), "{session} {number}");
        }
        let _other = begin("b", &session, 8).expect("the first one");
        assert!(is_under_way(&mut first));
        let mut next = begin("a", &session, 8).expect("the next one");
        assert!(!is_under_way(&mut first) && is_under_way(&mut next));
    }

    #[test]
    fn session_ends_when_there_are_more_senders_than_it_knows() {
        let inbox = Inbox::default();
        let begins = |node: &str, session: &str| {
            let sequence = PurgeSequence { session, number: 1 };
            inbox.begin(node, &sequence).is_some()
        };
        let (session, _) = inbox.last("x");
        for number in 0..SENDERS_MAX {
            assert!(begins(&format!("n{number}"), &session));
        }
        assert!(!begins("x", &session));
        let (next, last) = inbox.last("x");
        assert!(next != session && last == 0);
        assert!(begins("x", &next));
    }
}
