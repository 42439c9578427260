//! Connections that wait for a request.
//!
//! Each would otherwise have a timer of the runtime, which takes more memory than its place here,
//! and more time to move with every request. The times here are whole seconds, and are looked
//! through once a second: for waits of many seconds that is as good.

use std::num::NonZeroU32;
use std::task::Waker;
use std::time::Duration;
use tokio::time::Instant;

/// Waits shorter than this have a timer of their own: a second more would be much of them.
pub const COARSE_FROM: Duration = Duration::from_secs(10);

/// The place of a connection among those that wait, once it has one.
#[derive(Debug, Default)]
pub struct SleeperPlace(Option<NonZeroU32>);

/// Those of one worker.
pub(super) struct Sleepers {
    began: Instant,
    /// Whole seconds since then, when they were last looked through.
    second: u32,
    all: Vec<Sleeper>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Sleeper {
    /// `None`: the place is free.
    waker: Option<Waker>,
    /// The second in which it is to be woken; [`u32::MAX`]: its time has a timer, or none is left
    /// to wait for.
    second: u32,
}

impl Sleepers {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            second: 0,
            all: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Has `waker` woken at a drain, and once `until` has passed. Says whether it has: up to a
    /// second late, and never before.
    pub(super) fn remember(
        &mut self,
        place: &mut SleeperPlace,
        waker: &Waker,
        until: Option<Instant>,
    ) -> bool {
        let second = until.map_or(u32::MAX, |until| self.second_after(until));
        if second <= self.second {
            return true;
        }
        let at = self.at(place);
        if let Some(sleeper) = self.all.get_mut(at) {
            sleeper.second = second;
            let known = sleeper.waker.as_ref();
            if !known.is_some_and(|known| known.will_wake(waker)) {
                sleeper.waker = Some(waker.clone());
            }
        }
        false
    }

    /// Where the place is, which is taken now if it was not.
    fn at(&mut self, place: &mut SleeperPlace) -> usize {
        let number = place.0.or_else(|| {
            let number = self.free.pop().or_else(|| {
                self.all.push(Sleeper::default());
                u32::try_from(self.all.len()).ok()
            });
            number.and_then(NonZeroU32::new)
        });
        place.0 = number;
        number.map_or(usize::MAX, |number| number.get() as usize - 1)
    }

    /// The first second that begins at `until` or later.
    fn second_after(&self, until: Instant) -> u32 {
        let left = until.saturating_duration_since(self.began);
        let whole = left.as_secs() + u64::from(left.subsec_nanos() > 0);
        u32::try_from(whole).unwrap_or(u32::MAX)
    }

    /// Gives back a place.
    pub(super) fn forget(&mut self, place: &mut SleeperPlace) {
        let Some(number) = place.0.take() else {
            return;
        };
        if let Some(sleeper) = self.all.get_mut(number.get() as usize - 1) {
            *sleeper = Sleeper::default();
            self.free.push(number.get());
        }
    }

    /// Wakes those whose time has passed by `now`.
    pub(super) fn tick(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.began).as_secs();
        self.second = u32::try_from(passed).unwrap_or(u32::MAX - 1);
        for sleeper in &mut self.all {
            if sleeper.second <= self.second
                && let Some(waker) = &sleeper.waker
            {
                waker.wake_by_ref();
                sleeper.second = u32::MAX;
            }
        }
    }

    /// Wakes all.
    pub(super) fn wake(&self) {
        let wakers = self.all.iter().filter_map(|sleeper| sleeper.waker.as_ref());
        wakers.for_each(Waker::wake_by_ref);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn connection_is_woken_in_the_second_after_its_time_and_once() {
        let mut sleepers = Sleepers::new();
        let began = sleepers.began;
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let woken = || count.0.load(Ordering::Relaxed);
        let mut place = SleeperPlace::default();
        let until = began + Duration::from_millis(20_500);
        assert!(!sleepers.remember(&mut place, &waker, Some(until)));
        for (passed_ms, expected) in [(19_900, 0), (20_400, 0), (20_600, 0), (21_000, 1)] {
            sleepers.tick(began + Duration::from_millis(passed_ms));
            assert_eq!(woken(), expected, "{passed_ms}");
        }
        assert!(sleepers.remember(&mut place, &waker, Some(until)));
        sleepers.tick(began + Duration::from_secs(22));
        assert_eq!(woken(), 1);
    }

    #[tokio::test]
    async fn later_time_takes_the_place_of_an_earlier_one() {
        let mut sleepers = Sleepers::new();
        let began = sleepers.began;
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut place = SleeperPlace::default();
        for seconds in [10, 30] {
            let until = Some(began + Duration::from_secs(seconds));
            assert!(!sleepers.remember(&mut place, &waker, until));
        }
        sleepers.tick(began + Duration::from_secs(29));
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
        sleepers.tick(began + Duration::from_secs(30));
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(sleepers.all.len(), 1);
    }

    #[tokio::test]
    async fn places_are_used_again_and_all_are_woken_by_a_drain() {
        let mut sleepers = Sleepers::new();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut places: Vec<SleeperPlace> = Vec::new();
        for _ in 0..3 {
            places.clear();
            places.resize_with(5, SleeperPlace::default);
            for place in &mut places {
                assert!(!sleepers.remember(place, &waker, None));
            }
            sleepers.wake();
            places.iter_mut().for_each(|it| sleepers.forget(it));
            sleepers.wake();
        }
        assert_eq!(count.0.load(Ordering::Relaxed), 15);
        assert_eq!(sleepers.all.len(), 5);
    }
}
