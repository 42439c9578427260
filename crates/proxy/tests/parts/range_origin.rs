//! An origin that answers by itself, ranges too, and sends no further than it is let.

use crate::support::{Head, PATIENCE, Peer, Representation};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// Bytes sent at once.
const STEP_BYTES: u64 = 32 * 1024;

/// How far the origin may send.
#[derive(Default)]
struct Gate {
    open_to: Mutex<u64>,
    moved: Condvar,
}

impl Gate {
    fn open(&self, to: u64) {
        *self.open_to.lock().expect("no panic") = to;
        self.moved.notify_all();
    }

    /// Waits until it is open to `to`.
    fn pass(&self, to: u64) {
        let open_to = self.open_to.lock().expect("no panic");
        let waited = self
            .moved
            .wait_timeout_while(open_to, PATIENCE, |open_to| *open_to < to);
        assert!(
            !waited.expect("no panic").1.timed_out(),
            "never let to {to}"
        );
    }
}

/// The origin.
pub(super) struct PacedOrigin {
    address: SocketAddr,
    what: Representation,
    gate: Arc<Gate>,
    asked: Arc<Mutex<Vec<Head>>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl PacedOrigin {
    /// One that has `what`, and does not send of it yet.
    pub(super) fn new(what: &Representation) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let mut origin = Self {
            address,
            what: what.clone(),
            gate: Arc::default(),
            asked: Arc::default(),
            stopping: Arc::default(),
            thread: None,
        };
        let (what, gate, asked, stopping) = (
            what.clone(),
            Arc::clone(&origin.gate),
            Arc::clone(&origin.asked),
            Arc::clone(&origin.stopping),
        );
        origin.thread = Some(std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                let peer = Peer::new(stream.expect("a connection"));
                let (what, gate, asked) = (what.clone(), Arc::clone(&gate), Arc::clone(&asked));
                // ends with its connection
                std::thread::spawn(move || answer(peer, &what, &gate, &asked));
            }
        }));
        origin
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets it send up to this offset.
    pub(super) fn let_to(&self, to: u64) {
        self.gate.open(to);
    }

    /// What it was asked so far.
    pub(super) fn asked(&self) -> Vec<Head> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Drop for PacedOrigin {
    fn drop(&mut self) {
        self.gate.open(self.what.length);
        self.stopping.store(true, Ordering::SeqCst);
        // wakes the thread
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

fn answer(mut peer: Peer, what: &Representation, gate: &Gate, asked: &Mutex<Vec<Head>>) {
    let head = peer.read_head();
    let range = head.field("range").map(|range| span_of(range, what.length));
    asked.lock().expect("no panic").push(head);
    let (from, to) = range.unwrap_or((0, what.length));
    let head = match range {
        Some(_) => what.part_head(from, to),
        None => what.head(),
    };
    peer.try_send(head);
    let mut at = from;
    while at < to {
        let end = to.min(at + STEP_BYTES);
        gate.pass(end);
        if !peer.try_send(what.bytes(at, end)) {
            return;
        }
        at = end;
    }
}

/// The bytes that `range` asks for, of `length`.
fn span_of(range: &str, length: u64) -> (u64, u64) {
    let range = range.strip_prefix("bytes=").expect("bytes");
    let (first, last) = range.split_once('-').expect("one range");
    let number = |text: &str| text.parse::<u64>().expect("a number");
    match (first, last) {
        ("", last) => (length - number(last), length),
        (first, "") => (number(first), length),
        (first, last) => (number(first), number(last) + 1),
    }
}
