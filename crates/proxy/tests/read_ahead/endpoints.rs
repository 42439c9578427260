//! A next hop that sends as fast as it is let, and a client that reads as much as it is told: both
//! without waiting, so that one thread holds both ends.

use crate::support::{OriginConnection, PATIENCE, RawClient, Running, ScriptedOrigin, pattern};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// Memory of the client's receive buffer in the kernel, bytes: 64 KiB.
pub(crate) const CLIENT_KERNEL_BYTES: usize = 64 * 1024;

/// Looks without any progress after which there will be none. Before each the proxy has answered a
/// request, so that it has been at work.
const QUIET_LOOKS: u32 = 5;

/// One response on its way through the proxy.
pub(crate) struct Flow<'a> {
    proxy: &'a Running,
    hop: OriginConnection,
    client: TcpStream,
    /// What the next hop sends again and again.
    piece: Vec<u8>,
    length: usize,
    sent: usize,
    read: usize,
}

impl<'a> Flow<'a> {
    /// Asks for `length` bytes of content that may not be stored, and reads the head. The proxy may
    /// ask on `before`, a connection it has used, or on a new one if it has closed that.
    pub(crate) fn begin(
        proxy: &'a Running,
        origin: &ScriptedOrigin,
        before: Option<OriginConnection>,
        length: usize,
        framing: &str,
    ) -> Self {
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n{framing}\r\n");
        Self::begin_with("HTTP/1.1", proxy, origin, before, length, &head)
    }

    /// The same for a client of `version`, and a response that begins with `head`.
    pub(crate) fn begin_with(
        version: &str,
        proxy: &'a Running,
        origin: &ScriptedOrigin,
        before: Option<OriginConnection>,
        length: usize,
        head: &str,
    ) -> Self {
        let mut client = RawClient::connect_with_buffer(proxy.address(), CLIENT_KERNEL_BYTES / 2);
        client.send(format!("GET / {version}\r\nHost: a\r\n\r\n"));
        let again = before.filter(|hop| hop.stream.peek(&mut [0]).is_ok_and(|count| count > 0));
        let mut hop = again.unwrap_or_else(|| origin.accept());
        hop.read_head();
        hop.send(head);
        client.read_head();
        let client = client.into_peer().stream;
        client.set_nonblocking(true).expect("a socket");
        hop.stream.set_nonblocking(true).expect("a socket");
        Self {
            proxy,
            hop,
            client,
            piece: pattern(1 << 20),
            length,
            sent: 0,
            read: 0,
        }
    }

    /// Sends until no more is taken, now; whether any was.
    pub(crate) fn send(&mut self) -> bool {
        let before = self.sent;
        while self.sent < self.length {
            let from = self.sent % self.piece.len();
            let to = self.piece.len().min(from + self.length - self.sent);
            match self.hop.stream.write(&self.piece[from..to]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the next hop cannot send: {error}"),
            }
        }
        self.sent > before
    }

    /// Reads at most `max` bytes that are there, and compares them; how many.
    pub(crate) fn read(&mut self, max: usize) -> usize {
        let mut buffer = vec![0; max];
        match self.client.read(&mut buffer) {
            Ok(0) => panic!("cut after {} bytes of {}", self.read, self.length),
            Ok(count) => {
                let mut at = 0;
                while at < count {
                    let from = (self.read + at) % self.piece.len();
                    let run = (count - at).min(self.piece.len() - from);
                    assert!(
                        buffer[at..at + run] == self.piece[from..from + run],
                        "another byte than was sent, behind {}",
                        self.read + at
                    );
                    at += run;
                }
                self.read += count;
                count
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
            Err(error) => panic!("the client cannot read: {error}"),
        }
    }

    /// Reads exactly so many bytes, while the next hop sends.
    pub(crate) fn read_exactly(&mut self, bytes: usize) {
        let until = Instant::now() + PATIENCE;
        let end = self.read + bytes;
        while self.read < end {
            self.send();
            if self.read((end - self.read).min(64 * 1024)) == 0 {
                assert!(Instant::now() < until, "nothing more after {}", self.read);
                std::thread::yield_now();
            }
        }
    }

    /// Lets the next hop send until nothing moves any more; how far the peer of its socket is ahead
    /// of what the client has read, bytes of the whole response.
    pub(crate) fn read_ahead(&mut self) -> usize {
        let mut quiet = 0;
        let mut before = 0;
        while quiet < QUIET_LOOKS {
            self.send();
            let read_ahead = self.acknowledged() - self.read;
            quiet = if read_ahead == before { quiet + 1 } else { 0 };
            before = read_ahead;
            let refused = self
                .proxy
                .client()
                .ask("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(refused.status(), 405);
        }
        before
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.read == self.length
    }

    pub(crate) fn left(&self) -> usize {
        self.length - self.read
    }

    /// The next hop's connection, for another response.
    pub(crate) fn into_hop(self) -> OriginConnection {
        self.hop.stream.set_nonblocking(false).expect("a socket");
        self.hop
    }

    /// Bytes of content that the proxy's kernel has acknowledged.
    fn acknowledged(&self) -> usize {
        self.sent - send_queue(&self.hop.stream).min(self.sent)
    }
}

/// Bytes in a socket's send queue: written and not acknowledged. As Linux tells it to everybody.
pub(crate) fn send_queue(stream: &TcpStream) -> usize {
    let ours = hexadecimal(stream.local_addr().expect("open"));
    let theirs = hexadecimal(stream.peer_addr().expect("open"));
    let table = std::fs::read_to_string("/proc/net/tcp").expect("Linux");
    let line = table
        .lines()
        .find(|line| {
            let mut words = line.split_whitespace().skip(1);
            words.next() == Some(ours.as_str()) && words.next() == Some(theirs.as_str())
        })
        .expect("the connection is in the table");
    let queues = line.split_whitespace().nth(4).expect("two queues");
    let send = queues.split(':').next().expect("the first");
    usize::from_str_radix(send, 16).expect("a hexadecimal number")
}

/// An address as it stands in the table.
fn hexadecimal(address: SocketAddr) -> String {
    let SocketAddr::V4(address) = address else {
        panic!("{address} is not of IPv4");
    };
    format!(
        "{:08X}:{:04X}",
        u32::from_ne_bytes(address.ip().octets()),
        address.port()
    )
}
