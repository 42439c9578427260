//! Slow and fast clients in two threads, and what they have had.

use super::options::Options;
use crate::client::content::Content;
use crate::origin::{target, without_length};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Bodies that are asked for at the same time, half of them with a length.
const BODIES: u64 = 8;

/// One client in so many reads as fast as it can.
const FAST_ONE_IN: u64 = 10;

/// A slow client reads so much a second at most.
const SLOW_BYTES_S_MAX: u64 = 1 << 20;
const SLOW_BYTES_S_MIN: u64 = 16 << 10;

const TURN: Duration = Duration::from_millis(20);

const HEAD_BYTES_MAX: usize = 64 * 1024;

/// What the clients have had.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Received {
    pub(crate) content_bytes: u64,
    /// Bodies that came whole.
    pub(crate) whole: u64,
    /// Bodies that did not, by length and by what was wrong.
    pub(crate) failed: BTreeMap<String, u64>,
}

impl Received {
    pub(crate) fn add(&mut self, other: Self) {
        self.content_bytes += other.content_bytes;
        self.whole += other.whole;
        for (why, count) in other.failed {
            *self.failed.entry(why).or_default() += count;
        }
    }
}

#[derive(Debug)]
struct Member {
    number: u64,
    /// Bodies it has asked for.
    asked: u64,
    /// `None` as fast as it can.
    bytes_s: Option<u64>,
    begins: Instant,
    transfer: Option<Transfer>,
    owed_bytes: u64,
    looked: Instant,
}

#[derive(Debug)]
struct Transfer {
    stream: TcpStream,
    content: Content,
    has_length: bool,
    head: Vec<u8>,
    has_head: bool,
    at: u64,
}

/// Reads until it is to stop; `is_fast` says which of the clients.
pub(crate) fn run(to: SocketAddr, options: &Options, is_fast: bool, stop: &AtomicBool) -> Received {
    let begun = Instant::now();
    let mut dice = options.seed;
    let mut members: Vec<Member> = (0..options.clients)
        .map(|number| {
            dice = mixed(dice);
            let rate = SLOW_BYTES_S_MIN + dice % (SLOW_BYTES_S_MAX - SLOW_BYTES_S_MIN);
            let within_ms = options.seconds * 1000 / 3;
            let later = Duration::from_millis(mixed(dice) % within_ms.max(1));
            let is_fast = number % FAST_ONE_IN == 0;
            Member {
                number,
                asked: 0,
                bytes_s: (!is_fast).then_some(rate),
                begins: if is_fast { begun } else { begun + later },
                transfer: None,
                owed_bytes: 0,
                looked: begun,
            }
        })
        .filter(|member| member.bytes_s.is_none() == is_fast)
        .collect();
    let mut received = Received::default();
    let mut buffer = vec![0; 256 * 1024];
    let body_bytes = options.body_mb * 1_000_000;
    while !stop.load(Ordering::Relaxed) {
        let mut has_moved = false;
        for member in &mut members {
            has_moved |= member.turn(to, body_bytes, &mut buffer, &mut received);
        }
        if !is_fast || !has_moved {
            std::thread::sleep(TURN);
        }
    }
    received
}

impl Member {
    /// Reads once, as much as its rate allows; whether anything came.
    fn turn(
        &mut self,
        to: SocketAddr,
        body_bytes: u64,
        buffer: &mut [u8],
        received: &mut Received,
    ) -> bool {
        let now = Instant::now();
        if now < self.begins {
            return false;
        }
        let most = match self.bytes_s {
            None => buffer.len(),
            Some(bytes_s) => {
                let passed = now.saturating_duration_since(self.looked.max(self.begins));
                let passed_us = u64::try_from(passed.as_micros()).unwrap_or(u64::MAX);
                self.owed_bytes += bytes_s.saturating_mul(passed_us) / 1_000_000;
                usize::try_from(self.owed_bytes).map_or(buffer.len(), |owed| owed.min(buffer.len()))
            }
        };
        self.looked = now;
        if most == 0 {
            return false;
        }
        if self.transfer.is_none() {
            match self.ask(to, body_bytes) {
                Ok(transfer) => self.transfer = Some(transfer),
                Err(error) => {
                    self.fail(&format!("cannot ask: {}", error.kind()), true, received);
                    return false;
                }
            }
        }
        let Some(transfer) = &mut self.transfer else {
            return false;
        };
        let (before, has_length) = (transfer.at, transfer.has_length);
        let read = transfer.read(&mut buffer[..most], body_bytes);
        let came = transfer.at - before;
        received.content_bytes += came;
        self.owed_bytes = self.owed_bytes.saturating_sub(came);
        match read {
            Ok(false) => {}
            Ok(true) => {
                received.whole += 1;
                self.transfer = None;
            }
            Err(why) => self.fail(&why, has_length, received),
        }
        came > 0
    }

    fn fail(&mut self, why: &str, has_length: bool, received: &mut Received) {
        let length = if has_length { "with" } else { "without" };
        *received
            .failed
            .entry(format!("{length} a length: {why}"))
            .or_default() += 1;
        self.transfer = None;
        // not at once again
        self.begins = Instant::now() + Duration::from_secs(1);
    }

    fn ask(&mut self, to: SocketAddr, body_bytes: u64) -> io::Result<Transfer> {
        let body = (self.number / FAST_ONE_IN + self.number + self.asked) % BODIES;
        let path = format!("/memory/{body}/{}", self.asked);
        self.asked += 1;
        let has_length = body.is_multiple_of(2);
        let target = target(&path, body_bytes, None, true);
        let (target, version) = if has_length {
            (target, "1.1")
        } else {
            // without chunks between its bytes
            (without_length(&target), "1.0")
        };
        let mut stream = TcpStream::connect(to)?;
        let request = format!("GET {target} HTTP/{version}\r\nHost: origin.example\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        stream.set_nonblocking(true)?;
        Ok(Transfer {
            stream,
            content: Content::of(&target),
            has_length,
            head: Vec::new(),
            has_head: false,
            at: 0,
        })
    }
}

impl Transfer {
    /// Reads once; whether it is whole by now.
    fn read(&mut self, buffer: &mut [u8], body_bytes: u64) -> Result<bool, String> {
        let length = match self.stream.read(buffer) {
            Ok(0) if self.has_head && self.at == body_bytes => return Ok(true),
            Ok(0) => return Err("cut".to_owned()),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                return Err("cut".to_owned());
            }
            Err(error) => return Err(error.kind().to_string()),
        };
        let mut bytes = &buffer[..length];
        let rest;
        if !self.has_head {
            self.head.extend_from_slice(bytes);
            let end = self.head.windows(4).position(|four| four == b"\r\n\r\n");
            let Some(end) = end else {
                return if self.head.len() > HEAD_BYTES_MAX {
                    Err("a head without an end".to_owned())
                } else {
                    Ok(false)
                };
            };
            rest = self.head.split_off(end + 4);
            let head = String::from_utf8_lossy(&self.head);
            let status = head.split(' ').nth(1).unwrap_or_default();
            if status != "200" {
                return Err(format!("status {status}"));
            }
            self.has_head = true;
            bytes = &rest;
        }
        if !self.content.is_at(self.at, bytes) {
            return Err("content mismatch".to_owned());
        }
        self.at += bytes.len() as u64;
        Ok(self.has_length && self.at == body_bytes)
    }
}

/// `SplitMix64` (Steele, Lea, Flood 2014).
fn mixed(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
