//! A name server that knows one address for every name.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Answers every question for an address (RFC 1035 §4.1) with the one it was told, to be believed
/// for 0 s.
pub(crate) struct NameServer {
    address: SocketAddr,
    answer: Arc<Mutex<Ipv4Addr>>,
    asked: Arc<AtomicUsize>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    pub(crate) fn new(answer: Ipv4Addr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let address = socket.local_addr().expect("bound");
        let answer = Arc::new(Mutex::new(answer));
        let asked: Arc<AtomicUsize> = Arc::default();
        let stopping: Arc<AtomicBool> = Arc::default();
        let (told, count, stop) = (
            Arc::clone(&answer),
            Arc::clone(&asked),
            Arc::clone(&stopping),
        );
        let thread = std::thread::spawn(move || {
            let mut question = [0; 1500];
            loop {
                let (length, from) = socket.recv_from(&mut question).expect("a question");
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                count.fetch_add(1, Ordering::SeqCst);
                let ip = *told.lock().expect("no panic");
                if let Some(reply) = reply(&question[..length], ip) {
                    socket.send_to(&reply, from).expect("sent");
                }
            }
        });
        Self {
            address,
            answer,
            asked,
            stopping,
            thread: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on every name has this address.
    pub(crate) fn rebind(&self, answer: Ipv4Addr) {
        *self.answer.lock().expect("no panic") = answer;
    }

    /// Answers nothing until what is returned is dropped; what is written into it is the answer
    /// then.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Ipv4Addr> {
        self.answer.lock().expect("no panic")
    }

    /// Questions so far.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let waker = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        waker.send_to(&[0], self.address).expect("sent");
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

/// The reply to one question: an address for type A, nothing for any other.
fn reply(question: &[u8], ip: Ipv4Addr) -> Option<Vec<u8>> {
    const HEADER: usize = 12;
    let mut end = HEADER;
    while *question.get(end)? != 0 {
        end += usize::from(question[end]) + 1;
    }
    let kind = question.get(end + 1..end + 3)?;
    let is_a = kind == [0, 1];
    let mut reply = question[..2].to_vec();
    // a response, recursion desired and available, no error; one question, no or one answer,
    // nothing more
    reply.extend_from_slice(&[0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    reply.extend_from_slice(question.get(HEADER..end + 5)?);
    if is_a {
        // the name as in the question, type A, class IN, time to live 0 s, four bytes
        reply.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        reply.extend_from_slice(&ip.octets());
    }
    Some(reply)
}
