//! Slow and fast clients in two threads, and what they have had.

use super::Options;
use crate::client::get::connect;
use crate::client::transfer::Transfer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_bench::origin::ResponseSpec;
use weir_workload::Chance;

/// Bodies that are requested at the same time, half of them with a length.
const BODIES: u64 = 8;

/// One client in so many reads as fast as it can.
const FAST_ONE_IN: u64 = 10;

/// A slow client reads so much a second at most.
const SLOW_BYTES_S_MAX: u64 = 1 << 20;
const SLOW_BYTES_S_MIN: u64 = 16 << 10;

const TURN: Duration = Duration::from_millis(20);

/// What the clients have had.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReceivedTotals {
    pub(crate) content_bytes: u64,
    /// Bodies that came whole.
    pub(crate) whole: u64,
    /// Bodies that did not, by length and by what was wrong.
    pub(crate) failed: BTreeMap<String, u64>,
}

impl ReceivedTotals {
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
    /// Bodies it has requested.
    asked: u64,
    /// `None` as fast as it can.
    bytes_s: Option<u64>,
    begins: Instant,
    /// And whether its response has a length.
    transfer: Option<(Transfer, bool)>,
    owed_bytes: u64,
    looked: Instant,
}

/// Reads until it is to stop; `is_fast` says which of the clients.
pub(crate) fn run(
    to: SocketAddr,
    options: &Options,
    is_fast: bool,
    stop: &AtomicBool,
) -> ReceivedTotals {
    let begun = Instant::now();
    let mut members: Vec<Member> = (0..options.clients)
        .map(|number| {
            let mut chance = Chance::new(options.seed, number);
            let rate = SLOW_BYTES_S_MIN + chance.below(SLOW_BYTES_S_MAX - SLOW_BYTES_S_MIN);
            let later = Duration::from_millis(chance.below(options.seconds * 1000 / 3));
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
    let mut received = ReceivedTotals::default();
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
        received: &mut ReceivedTotals,
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
        let Some((transfer, has_length)) = &mut self.transfer else {
            return false;
        };
        let (before, has_length) = (transfer.read_bytes(), *has_length);
        let read = transfer.read(&mut buffer[..most]);
        let came = transfer.read_bytes() - before;
        let is_whole = transfer.is_whole();
        received.content_bytes += came;
        self.owed_bytes = self.owed_bytes.saturating_sub(came);
        match read {
            Err(why) => self.fail(&why, has_length, received),
            Ok(_) if is_whole => {
                received.whole += 1;
                self.transfer = None;
            }
            Ok(_) => {}
        }
        came > 0
    }

    fn fail(&mut self, why: &str, has_length: bool, received: &mut ReceivedTotals) {
        let length = if has_length { "with" } else { "without" };
        *received
            .failed
            .entry(format!("{length} a length: {why}"))
            .or_default() += 1;
        self.transfer = None;
        // not at once again
        self.begins = Instant::now() + Duration::from_secs(1);
    }

    fn ask(&mut self, to: SocketAddr, body_bytes: u64) -> io::Result<(Transfer, bool)> {
        let body = (self.number / FAST_ONE_IN + self.number + self.asked) % BODIES;
        let path = format!("/memory/{body}/{}", self.asked);
        self.asked += 1;
        let has_length = body.is_multiple_of(2);
        let spec = ResponseSpec {
            has_length,
            ..ResponseSpec::new(&path, body_bytes)
        };
        let transfer = Transfer::ask(connect(to)?, &spec)?;
        transfer.stream().set_nonblocking(true)?;
        Ok((transfer, has_length))
    }
}
