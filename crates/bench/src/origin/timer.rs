//! One timer of a connection, for whatever it waits for: setting and cancelling one for every
//! request would cost more than the request. It fires early at most, and is then set again.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::{Instant, Sleep, sleep_until};

/// Not armed until it is waited for.
#[derive(Debug, Default)]
pub(super) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Ready at `at`. To be called whenever the task is about to wait.
    pub(super) fn poll_at(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let timer = self.0.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if timer.deadline() > at {
            timer.as_mut().reset(at);
        }
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
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn timer_reset_to_another_deadline_fires_in_time() {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let start = Instant::now();
            let at = |ms| start + Duration::from_millis(ms);
            let mut timer = Timer::default();
            let first = poll_fn(|cx| Poll::Ready(timer.poll_at(at(60_000), cx))).await;
            assert!(first.is_pending());
            for ms in [1, 5, 20] {
                poll_fn(|cx| timer.poll_at(at(ms), cx)).await;
                let now = Instant::now();
                assert!(now >= at(ms), "{ms}: {:?} early", at(ms) - now);
                let late = now - at(ms);
                assert!(late < Duration::from_secs(30), "{late:?}");
            }
        });
    }

    #[test]
    fn timer_moved_to_a_later_deadline_does_not_fire_at_the_earlier_one() {
        let runtime = Builder::new_current_thread().enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let start = Instant::now();
            let mut timer = Timer::default();
            let soon = start + Duration::from_millis(5);
            let first = poll_fn(|cx| Poll::Ready(timer.poll_at(soon, cx))).await;
            assert!(first.is_pending() || Instant::now() >= soon);
            let later = start + Duration::from_millis(40);
            poll_fn(|cx| timer.poll_at(later, cx)).await;
            assert!(Instant::now() >= later);
        });
    }
}
