//! A connection of the origin: one request after the other, each response as fast as the socket and
//! its pace allow.

use super::answer::{Answer, answer};
use super::asked::Asked;
use super::ledger::{End, Ledger};
use super::pace::Pace;
use crate::client::content::Content;
use crate::client::get as client;
use crate::ioctl;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Instant, SystemTime};

const REQUEST_HEAD_MAX: usize = 64 * 1024;

/// Small beside the send buffer: a segment that fills a small buffer alone (loopback takes 64 KiB)
/// is acknowledged late, since it is less than a full one and no second one follows, and 40 ms are
/// lost each time.
const WRITE_BYTES: u64 = 8 * 1024;

/// What one connection may write before the others have their turn.
const TURN_BYTES: u64 = 256 * 1024;

/// What the connection waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    Request,
    /// Room in the socket.
    Room,
    /// Its pace allows more then.
    Time(Instant),
    /// The tally of this prefix, to be given to [`Connection::say`]: it concerns other connections
    /// too.
    Tally(String),
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    received: Vec<u8>,
    sending: Option<Sending>,
    /// The last one entered, whose bytes may be on their way still.
    fetch: Option<usize>,
}

#[derive(Debug)]
struct Sending {
    head: Vec<u8>,
    head_sent: usize,
    content: Content,
    at: u64,
    to: u64,
    pace: Option<Pace>,
    not_before: Instant,
    /// The connection ends behind it.
    is_until_close: bool,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            received: Vec::new(),
            sending: None,
            fetch: None,
        }
    }

    pub(crate) fn fetch(&self) -> Option<usize> {
        self.fetch
    }

    /// Does what can be done now.
    ///
    /// # Errors
    /// The connection is over, in whatever way.
    pub(crate) fn advance(&mut self, ledger: &mut Ledger, now: Instant) -> io::Result<Wants> {
        loop {
            if self.sending.is_some() {
                if let Some(wants) = self.send(ledger, now)? {
                    return Ok(wants);
                }
                let sent = self.sending.take();
                if sent.is_some_and(|sent| sent.is_until_close) {
                    self.fetch = None;
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
            }
            let Some(head) = self.next_head()? else {
                return Ok(Wants::Request);
            };
            if let Some(prefix) = self.begin(&head, ledger, now)? {
                return Ok(Wants::Tally(prefix));
            }
        }
    }

    /// Answers a request about the origin itself; to be followed by [`Self::advance`].
    pub(crate) fn say(&mut self, text: &str, now: Instant) {
        self.sending = Some(Sending::text(200, text, now));
    }

    /// Enters how much the peer's kernel has acknowledged by now.
    pub(crate) fn account(&self, ledger: &mut Ledger) {
        if let Some(fetch) = self.fetch
            && let Ok(bytes) = ioctl::bytes_not_acknowledged(&self.stream)
        {
            ledger.acknowledged(fetch, bytes);
        }
    }

    /// Enters what is known when the connection is over.
    pub(crate) fn close(&self, ledger: &mut Ledger) {
        self.account(ledger);
        if let Some(fetch) = self.fetch {
            ledger.end(fetch, End::Cut);
        }
    }

    /// `None` when there is no more to send, else what it waits for.
    fn send(&mut self, ledger: &mut Ledger, now: Instant) -> io::Result<Option<Wants>> {
        let Some(sending) = &mut self.sending else {
            return Ok(None);
        };
        if now < sending.not_before {
            return Ok(Some(Wants::Time(sending.not_before)));
        }
        while sending.head_sent < sending.head.len() {
            match write(&mut self.stream, &sending.head[sending.head_sent..])? {
                Some(length) => sending.head_sent += length,
                None => return Ok(Some(Wants::Room)),
            }
        }
        let mut turn_bytes = TURN_BYTES;
        let mut buffer = [0; 8 * 1024];
        while sending.at < sending.to {
            let allowed = match &mut sending.pace {
                Some(pace) => pace.allowed(now),
                None => u64::MAX,
            };
            if let (0, Some(pace)) = (allowed, &sending.pace) {
                return Ok(Some(Wants::Time(pace.next_turn())));
            }
            if turn_bytes == 0 {
                return Ok(Some(Wants::Room));
            }
            let wanted = (sending.to - sending.at)
                .min(allowed)
                .min(turn_bytes)
                .min(WRITE_BYTES);
            let part = &mut buffer[..usize::try_from(wanted).unwrap_or_default()];
            sending.content.fill(sending.at, part);
            let Some(length) = write(&mut self.stream, part)? else {
                return Ok(Some(Wants::Room));
            };
            let written = length as u64;
            sending.at += written;
            turn_bytes -= written;
            if let Some(pace) = &mut sending.pace {
                pace.sent(written);
            }
            if let Some(fetch) = self.fetch {
                ledger.handed(fetch, written);
            }
        }
        if let Some(fetch) = self.fetch {
            ledger.end(fetch, End::Whole);
        }
        Ok(None)
    }

    /// The next request's head when it is whole.
    fn next_head(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(at) = self
                .received
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
            {
                let head = self.received.drain(..at + 4).collect();
                return String::from_utf8(head).map(Some).map_err(|_| invalid());
            }
            if self.received.len() > REQUEST_HEAD_MAX {
                return Err(invalid());
            }
            let mut part = [0; 4096];
            match self.stream.read(&mut part) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(length) => self.received.extend_from_slice(&part[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Begins a response, or names the prefix of which a tally is wanted.
    fn begin(
        &mut self,
        head: &str,
        ledger: &mut Ledger,
        now: Instant,
    ) -> io::Result<Option<String>> {
        let mut words = head.split(' ');
        let (Some("GET"), Some(target)) = (words.next(), words.next()) else {
            return Err(invalid());
        };
        self.account(ledger);
        self.fetch = None;
        if let Some(prefix) = target.strip_prefix(super::TALLY) {
            return Ok(Some(prefix.to_owned()));
        }
        let Some(asked) = Asked::parse(target) else {
            self.sending = Some(Sending::text(404, "there is no such content\n", now));
            return Ok(None);
        };
        let answer = answer(&asked, head, SystemTime::now());
        let range = client::field(head, "range");
        self.fetch = Some(ledger.begin(&asked.path, range, answer.status));
        let begins = now + asked.think;
        let pace = asked.rate_bytes_s.map(|rate| Pace::new(rate, begins));
        let is_until_close = asked.is_until_close && answer.status == 200;
        self.sending = Some(Sending {
            is_until_close,
            ..Sending::new(answer, pace, begins)
        });
        Ok(None)
    }
}

impl Sending {
    fn new(answer: Answer, pace: Option<Pace>, not_before: Instant) -> Self {
        Self {
            head: answer.head.into_bytes(),
            head_sent: 0,
            content: answer.content,
            at: answer.from,
            to: answer.to,
            pace,
            not_before,
            is_until_close: false,
        }
    }

    /// A short answer about the origin itself.
    fn text(status: u16, text: &str, now: Instant) -> Self {
        let length = text.len();
        let head = format!(
            "HTTP/1.1 {status} Own\r\nContent-Length: {length}\r\nCache-Control: no-store\r\n\r\n{text}"
        );
        Self {
            head: head.into_bytes(),
            head_sent: 0,
            content: Content::of(""),
            at: 0,
            to: 0,
            pace: None,
            not_before: now,
            is_until_close: false,
        }
    }
}

/// `None` when there is no room.
fn write(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<Option<usize>> {
    match stream.write(bytes) {
        Ok(length) => Ok(Some(length)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

fn invalid() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "not a request of ours")
}
