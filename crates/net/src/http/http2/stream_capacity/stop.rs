//! The limit of a stream whose windows permit nothing.

use super::Turn;
use crate::deadline::Deadline;
use crate::http::http2::shared::WindowTurns;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Instant;

/// The windows of a stream permit nothing, or did so lately.
pub(in crate::http::http2) struct Stop {
    since: Instant,
    /// Bytes that were sent since.
    bytes: usize,
    /// What the client had opened the window of the connection by.
    opened: u64,
    /// Wakes a stream that is behind others: the limits of its caller do not run then.
    deadline: Option<Deadline>,
}

impl Stop {
    /// Of a client that opens the window of a stream, it does so by as many bytes within each
    /// limit: one that opens it byte by byte holds a response as one that does not open it.
    const BYTES_MIN: usize = 1024;

    fn begin(turns: &WindowTurns) -> Box<Self> {
        Box::new(Self {
            since: Instant::now(),
            bytes: 0,
            opened: turns.opened_bytes(),
            deadline: None,
        })
    }

    /// Ready once a stream has been stopped for `limit`. What the client opens of the connection's
    /// window may be for others: one that waits for that goes on if it is enough for all.
    pub(in crate::http::http2) fn poll_passed(
        stop: &mut Option<Box<Self>>,
        cx: &mut Context<'_>,
        turn: Turn<'_>,
        limit: Duration,
    ) -> Poll<()> {
        let turns = turn.turns;
        loop {
            let begun = stop.get_or_insert_with(|| Self::begin(turns));
            let left = limit.saturating_sub(begun.since.elapsed());
            if !left.is_zero() {
                if !turns.is_behind(turn.urgency) {
                    return Poll::Pending;
                }
                let deadline = begun.deadline.get_or_insert_with(|| Deadline::new(left));
                ready!(deadline.poll_passed(cx));
            }
            let for_all = Self::BYTES_MIN.saturating_mul(turns.count()) as u64;
            let opened = turns.opened_bytes() - begun.opened;
            if !turns.is_waiting(turn.stream) || opened < for_all {
                return Poll::Ready(());
            }
            *stop = None;
        }
    }

    /// How long it has lasted.
    pub(in crate::http::http2) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// So many bytes of those `offered` are sent: whether it is over.
    pub(in crate::http::http2) fn is_over(&mut self, count: usize, offered: usize) -> bool {
        self.bytes += count;
        self.bytes >= Self::BYTES_MIN || count == offered
    }
}
