//! Which of the connections that a node was handed have ended: what it tells the front ends, each
//! by one task, in batches. What ends while a message is under way is in the next one.

use super::Message;
use crate::worker::core::Worker;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;
use std::net::{SocketAddr, SocketAddrV4};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_net::hand_off::steering::FLOWS_MAX;

/// Where messages about them are sent.
pub(super) const END_TARGET: &str = "/weir/hand-off/end";

/// Ends of which one front end is not told yet, at most: as many connections as it knows of. The
/// front end steers one of which it is not told until its time is over, a day.
const WAITING_MAX: usize = FLOWS_MAX as usize;

/// Ends in one message, at most.
const TOGETHER_MAX: usize = 512;

/// How often a message is sent to a front end that does not answer it.
const TRIES_MAX: usize = 3;

/// Between these.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A connection that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) client: SocketAddr,
    pub(super) ticket: String,
}

/// Ends that front ends are to be told, by the name of the front end. There is an entry while a
/// task tells it.
#[derive(Debug, Default)]
pub(super) struct Ends(Mutex<HashMap<String, VecDeque<Ended>>>);

impl Ends {
    fn waiting(&self) -> MutexGuard<'_, HashMap<String, VecDeque<Ended>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `front_end` is to be told; whether a task for that is to begin.
    fn add(&self, front_end: &str, ended: Ended) -> bool {
        let mut waiting = self.waiting();
        let begins = !waiting.contains_key(front_end);
        let queue = waiting.entry(front_end.to_owned()).or_default();
        if queue.len() == WAITING_MAX {
            queue.pop_front();
        }
        queue.push_back(ended);
        begins
    }

    /// The ends of the next message; without any the task ends.
    fn next(&self, front_end: &str) -> Option<Vec<Ended>> {
        let mut waiting = self.waiting();
        let queue = waiting.get_mut(front_end)?;
        let count = queue.len().min(TOGETHER_MAX);
        if count == 0 {
            waiting.remove(front_end);
            return None;
        }
        Some(queue.drain(..count).collect())
    }
}

/// Tells a front end that a connection has ended.
pub(super) fn tell(worker: &Rc<Worker>, front_end: &str, ended: Ended) {
    if worker.shared.hand_offs.ends.add(front_end, ended) {
        let (worker, front_end) = (Rc::clone(worker), front_end.to_owned());
        tokio::task::spawn_local(async move { tell_all(&worker, &front_end).await });
    }
}

async fn tell_all(worker: &Rc<Worker>, front_end: &str) {
    while let Some(batch) = worker.shared.hand_offs.ends.next(front_end) {
        for number in 1..=TRIES_MAX {
            if send(worker, front_end, &batch).await == Some(200) {
                break;
            }
            if number < TRIES_MAX {
                tokio::time::sleep(RETRY_PAUSE).await;
            }
        }
    }
}

/// The status of the answer.
async fn send(worker: &Rc<Worker>, front_end: &str, batch: &[Ended]) -> Option<u16> {
    let settings = worker.settings();
    let cluster = settings.cluster()?;
    let place = cluster.other(front_end)?;
    let nonce = cluster.nonce();
    let content = cluster.prove_hand_off(place, &nonce, write(batch).as_bytes())?;
    let message = Message {
        settings: Arc::clone(&settings),
        cluster,
        place,
        target: END_TARGET,
        nonce,
        content,
    };
    let hand_offs = &worker.shared.hand_offs;
    let (status, _) = hand_offs.send(worker, message).await?;
    Some(status)
}

/// The content of a message: a line for each.
fn write(batch: &[Ended]) -> String {
    let mut text = String::new();
    for Ended { client, ticket } in batch {
        // a string takes all
        let _ = writeln!(text, "{client} {ticket}");
    }
    text
}

/// Reads it: the flows, with their tickets; `None` if it is none.
pub(super) fn read(content: &[u8]) -> Option<Vec<(SocketAddrV4, &str)>> {
    let mut read = Vec::new();
    for line in std::str::from_utf8(content).ok()?.lines() {
        let (flow, ticket) = line.split_once(' ')?;
        if read.len() == TOGETHER_MAX {
            return None;
        }
        read.push((flow.parse().ok()?, ticket));
    }
    Some(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(number: usize) -> Ended {
        let [high, low] = u16::try_from(number % 60_000 + 1)
            .expect("a port")
            .to_be_bytes();
        let address = SocketAddrV4::new([192, 0, 2, 1].into(), u16::from_be_bytes([high, low]));
        Ended {
            client: address.into(),
            ticket: number.to_string(),
        }
    }

    #[test]
    fn one_task_tells_a_front_end_all_ends_in_their_order_in_bounded_messages() {
        let ends = Ends::default();
        let begun = (0..2 * TOGETHER_MAX + 1).filter(|number| ends.add("f", ended(*number)));
        assert_eq!(begun.count(), 1);
        assert!(ends.add("g", ended(0)), "another one has its own");
        let mut told = Vec::new();
        while let Some(batch) = ends.next("f") {
            assert!(batch.len() <= TOGETHER_MAX);
            let content = write(&batch);
            let read = read(content.as_bytes()).expect("a message");
            assert_eq!(read.len(), batch.len());
            told.extend(batch);
        }
        let expected: Vec<Ended> = (0..2 * TOGETHER_MAX + 1).map(ended).collect();
        assert_eq!(told, expected);
        assert!(ends.add("f", ended(0)), "the task has ended");
    }

    #[test]
    fn front_end_that_does_not_answer_has_bounded_ends_that_wait_the_oldest_are_dropped() {
        let ends = Ends::default();
        for number in 0..=WAITING_MAX {
            ends.add("f", ended(number));
        }
        assert_eq!(ends.waiting()["f"].len(), WAITING_MAX);
        assert_eq!(ends.next("f").expect("some")[0], ended(1));
    }

    #[test]
    fn message_about_ends_that_is_none_is_refused_whole() {
        let line = "192.0.2.1:80 ticket\n";
        let check = |content: &str, expected: Option<usize>| {
            let read = read(content.as_bytes());
            assert_eq!(read.map(|read| read.len()), expected, "{content}");
        };
        check("", Some(0));
        check(line, Some(1));
        check(&line.repeat(TOGETHER_MAX), Some(TOGETHER_MAX));
        check(&line.repeat(TOGETHER_MAX + 1), None);
        check("192.0.2.1:80", None);
        check(&format!("{line}[2001:db8::1]:80 ticket\n"), None);
        assert_eq!(read(b"192.0.2.1:80 \xff"), None);
    }
}
