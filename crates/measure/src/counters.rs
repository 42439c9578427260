//! A block of numbers with one writer.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::histogram::Histogram;
use crate::label::{Label, Source};
use crate::metric::{Metric, SLOTS};

/// The numbers of one worker.
///
/// One thread writes ([`Counters::add`] and friends), any thread may read. For what many threads
/// write (resolver, access log, reloads) the process keeps one more block and uses
/// [`Counters::add_shared`].
///
/// Aligned to 128 bytes, so that two workers' blocks never share a cache line, nor the pair of
/// lines that the prefetcher fetches together.
#[derive(Debug)]
#[repr(align(128))]
pub struct Counters {
    slots: [AtomicU64; SLOTS],
    response_time: [Histogram; Source::COUNT],
    hold_time: Histogram,
}

impl Counters {
    /// All zero.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: [const { AtomicU64::new(0) }; SLOTS],
            response_time: [const { Histogram::new() }; Source::COUNT],
            hold_time: Histogram::new(),
        }
    }

    /// Adds one. Only the block's owner may call this.
    #[inline]
    pub fn inc(&self, metric: Metric) {
        self.add(metric, 1);
    }

    /// Adds `amount`. Only the block's owner may call this: a second writer would lose counts, no
    /// more.
    #[inline]
    pub fn add(&self, metric: Metric, amount: u64) {
        bump(&self.slots[metric.slot()], amount);
    }

    /// Takes `amount` from a gauge. Only the block's owner may call this.
    ///
    /// The block may go below zero when another worker did the adding; the sum over workers is
    /// right.
    #[inline]
    pub fn sub(&self, metric: Metric, amount: u64) {
        self.add(metric, amount.wrapping_neg());
    }

    /// Takes one from a gauge. Only the block's owner may call this.
    #[inline]
    pub fn dec(&self, metric: Metric) {
        self.sub(metric, 1);
    }

    /// Adds `amount` to a block that several threads write: one locked instruction.
    pub fn add_shared(&self, metric: Metric, amount: u64) {
        self.slots[metric.slot()].fetch_add(amount, Relaxed);
    }

    /// Takes `amount` from a gauge of a block that several threads write.
    pub fn sub_shared(&self, metric: Metric, amount: u64) {
        self.slots[metric.slot()].fetch_sub(amount, Relaxed);
    }

    /// Sets a gauge.
    pub fn set(&self, metric: Metric, value: u64) {
        self.slots[metric.slot()].store(value, Relaxed);
    }

    /// This block's own value; for a gauge only the sum over workers has a meaning.
    #[must_use]
    pub fn get(&self, metric: Metric) -> u64 {
        self.slots[metric.slot()].load(Relaxed)
    }

    /// Records a response's time, in microseconds from the first byte of the request to the last of
    /// the response.
    #[inline]
    pub fn record_response_time(&self, source: Source, us: u64) {
        self.response_time[source.index()].record(us);
    }

    /// Records how long packets of a connection were dropped that was to be handed over,
    /// microseconds.
    pub fn record_hold_time(&self, us: u64) {
        self.hold_time.record(us);
    }

    pub(crate) fn slot_values(&self) -> impl Iterator<Item = u64> + '_ {
        self.slots.iter().map(|slot| slot.load(Relaxed))
    }

    pub(crate) fn histograms(&self) -> &[Histogram; Source::COUNT] {
        &self.response_time
    }

    pub(crate) const fn hold_times(&self) -> &Histogram {
        &self.hold_time
    }
}

impl Default for Counters {
    fn default() -> Self {
        Self::new()
    }
}

/// Load, add, store: with one writer this loses nothing, and it is no locked instruction.
#[inline]
pub(crate) fn bump(slot: &AtomicU64, amount: u64) {
    slot.store(slot.load(Relaxed).wrapping_add(amount), Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::Verdict;

    #[test]
    fn counting_one_verdict_changes_no_other_counter() {
        let counters = Counters::new();
        counters.inc(Metric::Requests(Verdict::Hit));
        counters.add(Metric::Requests(Verdict::Hit), 2);
        assert_eq!(counters.get(Metric::Requests(Verdict::Hit)), 3);
        assert_eq!(
            counters.slot_values().sum::<u64>(),
            3,
            "something else was counted too"
        );
    }

    #[test]
    fn gauge_returns_to_zero_after_increment_and_decrement() {
        let counters = Counters::new();
        counters.inc(Metric::ClientsOpen);
        counters.dec(Metric::ClientsOpen);
        assert_eq!(counters.get(Metric::ClientsOpen), 0);
        counters.set(Metric::StoreEntries, 7);
        assert_eq!(counters.get(Metric::StoreEntries), 7);
    }

    #[test]
    fn shared_counter_loses_no_count_across_threads() {
        let counters = Counters::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        counters.add_shared(Metric::LogLinesDropped, 1);
                    }
                });
            }
        });
        assert_eq!(counters.get(Metric::LogLinesDropped), 4000);
        counters.sub_shared(Metric::LogLinesDropped, 1);
        assert_eq!(counters.get(Metric::LogLinesDropped), 3999);
    }

    #[test]
    fn counter_blocks_of_two_workers_share_no_cache_line() {
        assert_eq!(align_of::<Counters>(), 128);
        assert_eq!(size_of::<Counters>() % 128, 0);
    }
}
