//! A time limit that costs next to nothing unless it passes.
//!
//! A timer set and cancelled for every request would cost more than a cache look-up. Here moving
//! the limit later is one store. The timer is armed once; if it fires early, it is set again for
//! the rest.

use crate::workers::COARSE_FROM;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// The peer that must send or receive next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The client.
    Client,
    /// The next hop.
    NextHop,
}

/// A limit on one wait of one connection.
#[derive(Debug)]
pub struct Deadline {
    at: Instant,
    waits_for: Option<Party>,
    is_coarse: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Deadline {
    /// A limit `after` from now; no timer is armed until it is polled.
    #[must_use]
    pub fn new(after: Duration) -> Self {
        Self {
            at: Instant::now() + after,
            waits_for: None,
            is_coarse: false,
            timer: None,
        }
    }

    /// A limit `after` `now`, on a wait for what may come at any time.
    #[must_use]
    pub fn at_rest(now: Instant, after: Duration) -> Self {
        let mut deadline = Self {
            at: now,
            waits_for: None,
            is_coarse: false,
            timer: None,
        };
        deadline.rest(now, after);
        deadline
    }

    /// Sets the limit to `after` `now`, on such a wait: if it is long, its end may be noticed by
    /// the worker and needs no timer, see [`Self::coarse`].
    pub fn rest(&mut self, now: Instant, after: Duration) {
        self.set_at(now + after);
        self.is_coarse = after >= COARSE_FROM;
    }

    /// The limit, if it is one that the worker may notice
    /// ([`crate::workers::Worker::remember_sleeper`]). A timer from a wait before is given back
    /// once it has fired: it wakes the task that polled it, which asks here again.
    pub fn coarse(&mut self) -> Option<Instant> {
        if !self.is_coarse {
            return None;
        }
        // to poll it would register the task once more with each request
        if self.timer.as_ref().is_some_and(|timer| timer.is_elapsed()) {
            self.timer = None;
        }
        Some(self.at)
    }

    /// Sets the limit to `after` from now, earlier or later than it was.
    pub fn set(&mut self, after: Duration) {
        self.set_at(Instant::now() + after);
    }

    /// Sets the limit to `at`, earlier or later than it was.
    pub fn set_at(&mut self, at: Instant) {
        self.at = at;
        self.waits_for = None;
        self.is_coarse = false;
        if let Some(timer) = &mut self.timer
            && timer.deadline() > self.at
        {
            timer.as_mut().reset(self.at);
        }
    }

    /// Sets the limit to `limit` from now if a wait for `party` begins with this call. Further
    /// calls for the same party do not lengthen it until [`Self::moved`].
    pub fn wait_for(&mut self, party: Party, limit: Duration) {
        if self.waits_for != Some(party) {
            self.set(limit);
            self.waits_for = Some(party);
        }
    }

    /// Bytes were sent or received: the next wait is a new one.
    pub fn moved(&mut self) {
        self.waits_for = None;
    }

    /// Ready once the limit has passed. To be polled whenever the task is about to wait, so that it
    /// is woken in time.
    pub fn poll_passed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let at = self.at;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        while timer.as_mut().poll(cx).is_ready() {
            if Instant::now() >= at {
                return Poll::Ready(());
            }
            timer.as_mut().reset(at);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn deadline_moved_later_fires_at_the_later_time() {
        let mut deadline = Deadline::new(Duration::from_secs(1));
        let start = Instant::now();
        let mut moved = false;
        std::future::poll_fn(|cx| {
            if !moved {
                assert!(deadline.poll_passed(cx).is_pending());
                deadline.set(Duration::from_secs(5));
                moved = true;
            }
            deadline.poll_passed(cx)
        })
        .await;
        assert_eq!(start.elapsed(), Duration::from_secs(5));
    }

    #[tokio::test(start_paused = true)]
    async fn polling_a_wait_does_not_extend_its_time_limit() {
        let mut deadline = Deadline::new(Duration::from_secs(60));
        let start = Instant::now();
        let limit = Duration::from_secs(2);
        for _ in 0..2 {
            std::future::poll_fn(|cx| {
                deadline.wait_for(Party::NextHop, limit);
                deadline.poll_passed(cx)
            })
            .await;
            deadline.moved();
        }
        assert_eq!(start.elapsed(), 2 * limit);
    }

    #[tokio::test(start_paused = true)]
    async fn deadline_moved_earlier_fires_at_the_earlier_time() {
        let mut deadline = Deadline::new(Duration::from_secs(60));
        let start = Instant::now();
        let mut moved = false;
        std::future::poll_fn(|cx| {
            if !moved {
                assert!(deadline.poll_passed(cx).is_pending());
                deadline.set(Duration::from_secs(2));
                moved = true;
            }
            deadline.poll_passed(cx)
        })
        .await;
        assert_eq!(start.elapsed(), Duration::from_secs(2));
    }
}
