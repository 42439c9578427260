//! A link between two network interfaces in user space: packets go through at a rate, after a
//! delay, and are dropped when too many wait. The kernels at both ends see a long path and do
//! everything else themselves.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the link is like in one direction.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Rules {
    pub(crate) delay_ms: u64,
    pub(crate) rate_bytes_s: u64,
    /// Bytes that may wait for their turn.
    pub(crate) queue_bytes: u64,
}

/// What went through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) dropped: u64,
    /// The longest that a packet was late, since this is a program among others.
    pub(crate) late_us_max: u64,
}

/// When packets leave the far end.
#[derive(Debug)]
struct Schedule {
    rules: Rules,
    /// When the last one accepted has been put on the wire.
    free_at: Instant,
}

impl Schedule {
    fn new(rules: Rules, now: Instant) -> Self {
        Self {
            rules,
            free_at: now,
        }
    }

    fn time_for(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes * 1_000_000_000 / self.rules.rate_bytes_s)
    }

    /// When a packet that arrives now comes out; `None` when the queue is full.
    fn accept(&mut self, now: Instant, bytes: u64) -> Option<Instant> {
        let begins = self.free_at.max(now);
        if begins - now > self.time_for(self.rules.queue_bytes) {
            return None;
        }
        self.free_at = begins + self.time_for(bytes);
        Some(self.free_at + Duration::from_millis(self.rules.delay_ms))
    }
}

/// Looked at this often when nothing moves, to see whether it is over.
const IDLE: Duration = Duration::from_millis(50);

/// As large as an interface may hand over.
const PACKET_BYTES_MAX: usize = 65_536;

/// Carries packets until `is_over`. Both interfaces are non-blocking.
///
/// # Errors
/// An interface cannot be read any more. One that does not take a packet loses it, as links do.
pub(crate) fn carry(
    mut from: &File,
    mut to: &File,
    rules: Rules,
    is_over: &Arc<AtomicBool>,
) -> io::Result<Traffic> {
    let mut traffic = Traffic::default();
    let mut schedule = Schedule::new(rules, Instant::now());
    let mut waiting: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let mut buffer = vec![0; PACKET_BYTES_MAX];
    while !is_over.load(Ordering::Relaxed) {
        let now = Instant::now();
        let pause = waiting.front().map_or(IDLE, |(due, _)| {
            due.saturating_duration_since(now).min(IDLE)
        });
        let timeout = Timespec::try_from(pause).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        loop {
            let length = match from.read(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            match schedule.accept(Instant::now(), length as u64) {
                Some(due) => waiting.push_back((due, buffer[..length].to_vec())),
                None => traffic.dropped += 1,
            }
        }
        let now = Instant::now();
        while let Some((due, packet)) = waiting.pop_front_if(|(due, _)| *due <= now) {
            let late = u64::try_from((now - due).as_micros()).unwrap_or(u64::MAX);
            traffic.late_us_max = traffic.late_us_max.max(late);
            traffic.packets += 1;
            traffic.bytes += packet.len() as u64;
            if to.write(&packet).is_err() {
                traffic.dropped += 1;
            }
        }
    }
    Ok(traffic)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        delay_ms: 50,
        rate_bytes_s: 1_000_000,
        queue_bytes: 3000,
    };

    /// Packets of 1000 bytes, one millisecond on the wire each.
    fn check(arrive_ms: &[u64], expected_ms: &[Option<u64>]) {
        let start = Instant::now();
        let mut schedule = Schedule::new(RULES, start);
        let leave: Vec<Option<u64>> = arrive_ms
            .iter()
            .map(|&ms| {
                let due = schedule.accept(start + Duration::from_millis(ms), 1000)?;
                u64::try_from((due - start).as_millis()).ok()
            })
            .collect();
        assert_eq!(leave, expected_ms);
    }

    #[test]
    fn packet_leaves_after_queueing_transmission_and_delay() {
        check(&[0, 0, 10], &[Some(51), Some(52), Some(61)]);
    }

    #[test]
    fn packet_that_finds_the_queue_full_is_dropped() {
        check(
            &[0, 0, 0, 0, 0, 2],
            &[Some(51), Some(52), Some(53), Some(54), None, Some(55)],
        );
    }
}
