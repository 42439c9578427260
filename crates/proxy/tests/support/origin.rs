//! A next hop that says exactly what it is told to.

use super::PATIENCE;
use super::message::Head;
use super::peer::Peer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A listening socket whose connections the test accepts and answers by hand.
pub(crate) struct ScriptedOrigin {
    listener: TcpListener,
}

impl ScriptedOrigin {
    pub(crate) fn new() -> Self {
        Self {
            listener: TcpListener::bind("127.0.0.1:0").expect("loopback"),
        }
    }

    /// A next hop whose connections take little while nothing is read: its kernel holds a few KiB,
    /// and that of the proxy some hundred, as the segments are small.
    pub(crate) fn with_small_buffers() -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)
            .expect("a socket");
        socket.set_recv_buffer_size(4096).expect("a socket");
        socket.set_tcp_mss(536).expect("a socket");
        let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        socket.bind(&any_port.into()).expect("loopback");
        socket.listen(16).expect("a socket");
        Self {
            listener: socket.into(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("bound")
    }

    /// The next connection.
    pub(crate) fn accept(&self) -> OriginConnection {
        assert!(self.is_called(PATIENCE), "nobody connects to the next hop");
        let (stream, _) = self.listener.accept().expect("a connection");
        OriginConnection {
            peer: Peer::new(stream),
        }
    }

    /// Accepts, reads a request's head, sends `answer`: the connection, and what was asked.
    pub(crate) fn answer(&self, answer: impl AsRef<[u8]>) -> (OriginConnection, Head) {
        let mut hop = self.accept();
        let head = hop.read_head();
        hop.send(answer);
        (hop, head)
    }

    /// There is no connection that was not accepted.
    pub(crate) fn expect_untouched(&self) {
        assert!(!self.is_touched(), "somebody connects to the next hop");
    }

    /// Whether there is a connection that was not accepted.
    pub(crate) fn is_touched(&self) -> bool {
        self.is_called(Duration::ZERO)
    }

    fn is_called(&self, within: Duration) -> bool {
        let mut events = [PollFd::new(&self.listener, PollFlags::IN)];
        poll(&mut events, Some(&limit(within))).expect("a socket") == 1
    }

    /// From now on answers every request by itself; `answer` gets the head and the content.
    pub(crate) fn answering(
        self,
        answer: impl Fn(&Head, &[u8]) -> Vec<u8> + Send + Sync + 'static,
    ) -> Answering {
        Answering::start(self.listener, Arc::new(answer))
    }
}

fn limit(within: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(within.as_secs()).expect("short"),
        tv_nsec: 0,
    }
}

/// A connection from the proxy.
pub(crate) struct OriginConnection {
    peer: Peer,
}

impl OriginConnection {
    /// Reads a request's head and answers it.
    pub(crate) fn answer(&mut self, answer: impl AsRef<[u8]>) -> Head {
        let head = self.read_head();
        self.send(answer);
        head
    }

    /// Takes out of `hops` the next one on which something comes.
    pub(crate) fn asked(hops: &mut Vec<Self>) -> Self {
        let mut events = Vec::from_iter(
            hops.iter()
                .map(|hop| PollFd::new(&hop.stream, PollFlags::IN)),
        );
        poll(&mut events, Some(&limit(PATIENCE))).expect("sockets");
        let asked = events.iter().position(|event| !event.revents().is_empty());
        hops.remove(asked.expect("nobody asks the next hop"))
    }

    /// Sends `bytes` from a thread of its own, as fast as the proxy takes them.
    pub(crate) fn sending(mut self, bytes: impl Into<Vec<u8>>) -> JoinHandle<Self> {
        let bytes = bytes.into();
        std::thread::spawn(move || {
            self.send(bytes);
            self
        })
    }

    /// The connection alone.
    pub(crate) fn into_peer(self) -> Peer {
        self.peer
    }
}

impl Deref for OriginConnection {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl DerefMut for OriginConnection {
    fn deref_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}

type Answer = Arc<dyn Fn(&Head, &[u8]) -> Vec<u8> + Send + Sync>;

/// A next hop that answers by itself, and remembers what it was asked.
pub(crate) struct Answering {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Head>>>,
    connections: Arc<Mutex<usize>>,
    thread: Option<JoinHandle<()>>,
    stopping: Arc<Mutex<bool>>,
}

impl Answering {
    fn start(listener: TcpListener, answer: Answer) -> Self {
        let address = listener.local_addr().expect("bound");
        let seen: Arc<Mutex<Vec<Head>>> = Arc::default();
        let connections: Arc<Mutex<usize>> = Arc::default();
        let stopping: Arc<Mutex<bool>> = Arc::default();
        let (heads, count, stop) = (
            Arc::clone(&seen),
            Arc::clone(&connections),
            Arc::clone(&stopping),
        );
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if *stop.lock().expect("no panic") {
                    return;
                }
                *count.lock().expect("no panic") += 1;
                let (heads, answer) = (Arc::clone(&heads), Arc::clone(&answer));
                let stream = stream.expect("a connection");
                // ends with its connection, which the proxy closes when it stops
                std::thread::spawn(move || serve(Peer::new(stream), &heads, &answer));
            }
        });
        Self {
            address,
            seen,
            connections,
            thread: Some(thread),
            stopping,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The heads of all requests so far.
    pub(crate) fn seen(&self) -> Vec<Head> {
        self.seen.lock().expect("no panic").clone()
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().expect("no panic")
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        *self.stopping.lock().expect("no panic") = true;
        // wakes the thread
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

fn serve(mut peer: Peer, seen: &Mutex<Vec<Head>>, answer: &Answer) {
    let mut byte = [0];
    while matches!(peer.stream.peek(&mut byte), Ok(1..)) {
        let head = peer.read_head();
        let body = if head.is_chunked() {
            peer.read_chunks().0
        } else {
            peer.read_exactly(head.length().unwrap_or(0))
        };
        let bytes = answer(&head, &body);
        seen.lock().expect("no panic").push(head);
        peer.try_send(bytes);
    }
}
