//! A relay: requests go to the origin and responses back, message by message, on connections that
//! stay open on both sides.
//!
//! It looks for the end of a head and for `Content-Length`, and at nothing else. Requests have no
//! content. A connection to the origin belongs to a client for one exchange, as in a proxy, so
//! clients share them.

use super::event_loop::{self, Handler, Poll};
use clap::Args;
use memchr::memmem;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use xtask::failure::{During, Failure};

/// The command that makes a process the relay.
pub(crate) const ROLE: &str = "bare-relay";

/// Bytes of a head that is not whole, and of requests that wait for the response before them.
const PARTIAL_BYTES_MAX: usize = 64 * 1024;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

const LENGTH_FIELD: &[u8] = b"content-length";

/// Options of the process that is the relay.
#[derive(Args, Debug)]
pub(crate) struct Options {
    port: u16,
    origin: SocketAddr,
}

/// Serves until the process is ended.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Options { port, origin } = *options;
    let listener = TcpListener::bind(("127.0.0.1", port));
    listener
        .and_then(|listener| event_loop::serve(&listener, &mut Relay::to(origin)))
        .during(format_args!("serve port {port}"))
}

/// A client's keys are even, those of connections to the origin odd.
struct Relay {
    origin: SocketAddr,
    clients: BTreeMap<u64, Client>,
    hops: BTreeMap<u64, Hop>,
    /// Connections to the origin without an exchange; the last one used is used first.
    idle: Vec<u64>,
    next_key: u64,
}

struct Client {
    stream: TcpStream,
    /// A request head that is not whole yet, and requests that wait for the response before them.
    partial: Vec<u8>,
    /// The connection to the origin that its request has gone to.
    hop: Option<u64>,
    /// Bytes of the response for which the socket had no room. Nothing is read from the origin
    /// until they are sent.
    unsent: Vec<u8>,
}

/// A connection to the origin.
struct Hop {
    stream: TcpStream,
    client: Option<u64>,
    response: Response,
}

/// What is known of the response that arrives.
enum Response {
    /// Its head is not whole yet.
    Head(Vec<u8>),
    /// Bytes of content that are missing.
    Content(u64),
}

impl Relay {
    fn to(origin: SocketAddr) -> Self {
        Self {
            origin,
            clients: BTreeMap::new(),
            hops: BTreeMap::new(),
            idle: Vec::new(),
            next_key: 0,
        }
    }

    fn client_ready(&mut self, poll: &Poll, key: u64, scratch: &mut [u8]) -> io::Result<()> {
        let Some(client) = self.clients.get_mut(&key) else {
            return Ok(());
        };
        if !client.unsent.is_empty() {
            let unsent = std::mem::take(&mut client.unsent);
            client.send(&unsent)?;
            // what arrived meanwhile is not reported again
            if let (true, Some(hop)) = (client.unsent.is_empty(), client.hop) {
                self.hop_ready(poll, hop, scratch)?;
            }
        }
        let Some(client) = self.clients.get_mut(&key) else {
            return Ok(());
        };
        while let Some(read) = event_loop::read(&client.stream, scratch)? {
            let bytes = &scratch[..read];
            let is_one = client.hop.is_none()
                && client.partial.is_empty()
                && memmem::find(bytes, END_OF_HEAD) == Some(read - END_OF_HEAD.len());
            if is_one {
                return self.forward(poll, key, bytes);
            }
            keep(&mut client.partial, bytes)?;
            if read < scratch.len() {
                break;
            }
        }
        self.forward_partial(poll, key)
    }

    /// Forwards the first whole request that has waited, if no exchange is running.
    fn forward_partial(&mut self, poll: &Poll, key: u64) -> io::Result<()> {
        let Some(client) = self.clients.get_mut(&key) else {
            return Ok(());
        };
        if client.hop.is_some() {
            return Ok(());
        }
        let Some(end) = memmem::find(&client.partial, END_OF_HEAD) else {
            return Ok(());
        };
        let request: Vec<u8> = client.partial.drain(..end + END_OF_HEAD.len()).collect();
        self.forward(poll, key, &request)
    }

    fn forward(&mut self, poll: &Poll, key: u64, request: &[u8]) -> io::Result<()> {
        let hop_key = match self.idle.pop() {
            Some(idle) => idle,
            None => self.connect(poll)?,
        };
        let (client, hop) = (self.clients.get_mut(&key), self.hops.get_mut(&hop_key));
        if let (Some(client), Some(hop)) = (client, hop) {
            client.hop = Some(hop_key);
            hop.client = Some(key);
            // a request is far smaller than what an idle socket takes at once
            hop.stream.write_all(request)?;
        }
        Ok(())
    }

    fn connect(&mut self, poll: &Poll) -> io::Result<u64> {
        let stream = TcpStream::connect(self.origin)?;
        let key = self.key() + 1;
        poll.add(&stream, key)?;
        let hop = Hop {
            stream,
            client: None,
            response: Response::Head(Vec::new()),
        };
        self.hops.insert(key, hop);
        Ok(key)
    }

    fn key(&mut self) -> u64 {
        self.next_key += 2;
        self.next_key
    }

    fn hop_ready(&mut self, poll: &Poll, key: u64, scratch: &mut [u8]) -> io::Result<()> {
        loop {
            let Some(hop) = self.hops.get_mut(&key) else {
                return Ok(());
            };
            let mut client = hop.client.and_then(|client| self.clients.get_mut(&client));
            if client.as_ref().is_some_and(|it| !it.unsent.is_empty()) {
                return Ok(());
            }
            let Some(read) = event_loop::read(&hop.stream, scratch)? else {
                return Ok(());
            };
            let bytes = &scratch[..read];
            let is_whole = hop.response.take(bytes)?;
            let Some(client) = client.as_mut() else {
                // nothing was asked for
                return Err(io::ErrorKind::InvalidData.into());
            };
            client.send(bytes)?;
            if is_whole {
                client.hop = None;
                let of = hop.client.take();
                hop.response = Response::Head(Vec::new());
                self.idle.push(key);
                return of.map_or(Ok(()), |client| self.forward_partial(poll, client));
            }
            if read < scratch.len() {
                return Ok(());
            }
        }
    }

    /// Closes a connection, and the one of the other side that has an exchange with it.
    fn close(&mut self, key: u64) {
        let hop = match self.clients.remove(&key) {
            Some(client) => client.hop,
            None => Some(key),
        };
        let Some(hop) = hop else { return };
        self.idle.retain(|&idle| idle != hop);
        if let Some(client) = self.hops.remove(&hop).and_then(|hop| hop.client) {
            self.clients.remove(&client);
        }
    }
}

impl Handler for Relay {
    fn accept(&mut self, poll: &Poll, stream: TcpStream) -> io::Result<()> {
        let key = self.key();
        poll.add(&stream, key)?;
        let client = Client {
            stream,
            partial: Vec::new(),
            hop: None,
            unsent: Vec::new(),
        };
        self.clients.insert(key, client);
        Ok(())
    }

    fn ready(&mut self, poll: &Poll, key: u64, scratch: &mut [u8]) {
        let done = if key.is_multiple_of(2) {
            self.client_ready(poll, key, scratch)
        } else {
            self.hop_ready(poll, key, scratch)
        };
        if done.is_err() {
            self.close(key);
        }
    }
}

impl Client {
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match event_loop::sent(self.stream.write(bytes))? {
                Some(sent) => bytes = &bytes[sent..],
                None => {
                    self.unsent.extend_from_slice(bytes);
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Response {
    /// Takes what has arrived; whether the response is whole.
    ///
    /// # Errors
    /// The head is too long or has no length, or more arrived than the response has.
    fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let (missing, arrived) = match self {
            Self::Content(missing) => (*missing, bytes.len()),
            Self::Head(partial) if partial.is_empty() => {
                let Some(end) = memmem::find(bytes, END_OF_HEAD) else {
                    keep(partial, bytes)?;
                    return Ok(false);
                };
                (
                    length(&bytes[..end])?,
                    bytes.len() - end - END_OF_HEAD.len(),
                )
            }
            Self::Head(partial) => {
                keep(partial, bytes)?;
                let Some(end) = memmem::find(partial, END_OF_HEAD) else {
                    return Ok(false);
                };
                let arrived = partial.len() - end - END_OF_HEAD.len();
                (length(&partial[..end])?, arrived)
            }
        };
        let arrived = u64::try_from(arrived).unwrap_or(u64::MAX);
        let missing = missing
            .checked_sub(arrived)
            .ok_or(io::ErrorKind::InvalidData)?;
        *self = Self::Content(missing);
        Ok(missing == 0)
    }
}

fn keep(partial: &mut Vec<u8>, bytes: &[u8]) -> io::Result<()> {
    if partial.len() + bytes.len() > PARTIAL_BYTES_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    partial.extend_from_slice(bytes);
    Ok(())
}

/// The `Content-Length` of a head.
fn length(head: &[u8]) -> io::Result<u64> {
    let mut begin = 0;
    while let Some(end) = memchr::memchr(b'\n', &head[begin..]) {
        begin += end + 1;
        let line = &head[begin..];
        let name = line.get(..LENGTH_FIELD.len());
        if name.is_some_and(|name| name.eq_ignore_ascii_case(LENGTH_FIELD)) {
            let value = line[LENGTH_FIELD.len()..].iter();
            let mut value = value
                .skip_while(|byte| matches!(byte, b':' | b' '))
                .peekable();
            if value.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                let digits = value.take_while(|byte| byte.is_ascii_digit());
                return Ok(digits.fold(0, |number: u64, digit| {
                    number
                        .saturating_mul(10)
                        .saturating_add(u64::from(digit - b'0'))
                }));
            }
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::get;
    use crate::origin;
    use std::io::Read;
    use weir_bench::origin::{ResponseSpec, content_of};

    fn start(origin: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        std::thread::spawn(move || event_loop::serve(&listener, &mut Relay::to(origin)));
        address
    }

    #[test]
    fn responses_of_all_sizes_arrive_as_the_origin_sends_them() {
        let (_origin, at) = origin::in_threads();
        let relay = start(at);
        for client in 0..3 {
            let mut stream = get::connect(relay).expect("the relay");
            for size in [0, 1, 1024, 70_000, 5_000_000] {
                let target = ResponseSpec::new(&format!("/{client}"), size).to_string();
                let answer = get::get(&mut stream, &target).expect("an answer");
                assert_eq!((answer.status, answer.body.len() as u64), (200, size));
                assert_eq!(content_of(&target).differs_at(0, &answer.body), None);
            }
        }
    }

    #[test]
    fn request_in_parts_and_the_one_behind_it_are_both_answered() {
        let (_origin, at) = origin::in_threads();
        let mut stream = get::connect(start(at)).expect("the relay");
        let request = "GET /a?size=1 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2);
        for part in request.as_bytes().chunks(7) {
            stream.write_all(part).expect("the relay");
        }
        let mut received = Vec::new();
        let mut part = [0; 4096];
        while memmem::find_iter(&received, b"HTTP/1.1 200").count() < 2
            || memmem::rfind(&received, END_OF_HEAD).is_none_or(|end| end + 5 != received.len())
        {
            let read = stream.read(&mut part).expect("the relay");
            assert!(read > 0, "closed");
            received.extend_from_slice(&part[..read]);
        }
    }

    #[test]
    fn length_is_read_whatever_its_case_and_is_required() {
        let of = |head: &str| length(head.as_bytes()).ok();
        assert_eq!(
            of("HTTP/1.1 200 OK\r\ncontent-LENGTH: 17\r\nA: b"),
            Some(17)
        );
        assert_eq!(of("HTTP/1.1 200 OK\r\nA: content-length: 3"), None);
        assert_eq!(of("HTTP/1.1 200 OK\r\nContent-Length: x"), None);
    }

    #[test]
    fn more_than_a_response_has_is_refused() {
        let mut response = Response::Head(Vec::new());
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
        assert_eq!(response.take(&head[..10]).ok(), Some(false));
        assert_eq!(response.take(&head[10..]).ok(), Some(false));
        assert_eq!(response.take(b"a").ok(), Some(false));
        assert!(response.take(b"bc").is_err());
    }
}
