//! The sum over workers at one moment.

use crate::counters::Counters;
use crate::histogram::HistogramSnapshot;
use crate::label::{Label, Source};
use crate::metric::{Family, Metric, SLOTS};

/// All numbers of the process, summed over its blocks.
///
/// The blocks are read one after the other while their owners go on counting, so two numbers of a
/// snapshot may be a few requests apart; each number alone never goes back.
#[derive(Clone, Debug)]
pub struct Snapshot {
    slots: [u64; SLOTS],
    response_time: [HistogramSnapshot; Source::COUNT],
    hold_time: HistogramSnapshot,
}

impl Snapshot {
    /// The sum of `blocks`.
    pub fn sum<'a>(blocks: impl IntoIterator<Item = &'a Counters>) -> Self {
        let mut sum = Self::default();
        for block in blocks {
            for (slot, value) in sum.slots.iter_mut().zip(block.slot_values()) {
                *slot = slot.wrapping_add(value);
            }
            for (time, histogram) in sum.response_time.iter_mut().zip(block.histograms()) {
                time.add(histogram);
            }
            sum.hold_time.add(block.hold_times());
        }
        sum
    }

    /// One number.
    #[must_use]
    pub fn get(&self, metric: Metric) -> u64 {
        self.slots[metric.slot()]
    }

    /// Sets a number that is read rather than counted, such as the store's gauges.
    pub fn set(&mut self, metric: Metric, value: u64) {
        self.slots[metric.slot()] = value;
    }

    /// Every family with its values, one for each word of its label, in the order of declaration.
    pub fn families(&self) -> impl Iterator<Item = (&'static Family, &[u64])> {
        Metric::FAMILIES.iter().map(|family| {
            (
                family,
                &self.slots[family.offset..family.offset + family.width],
            )
        })
    }

    /// The response times of one source.
    #[must_use]
    pub const fn response_time(&self, source: Source) -> &HistogramSnapshot {
        &self.response_time[source as usize]
    }

    /// How long packets of connections were dropped that were to be handed over.
    #[must_use]
    pub const fn hold_time(&self) -> &HistogramSnapshot {
        &self.hold_time
    }

    /// The response times of every source, with its word.
    pub fn response_times(&self) -> impl Iterator<Item = (&'static str, &HistogramSnapshot)> {
        Source::WORDS.iter().copied().zip(&self.response_time)
    }
}

impl Default for Snapshot {
    fn default() -> Self {
        Self {
            slots: [0; SLOTS],
            response_time: [HistogramSnapshot::default(); Source::COUNT],
            hold_time: HistogramSnapshot::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::Verdict;

    #[test]
    fn connection_moved_between_workers_is_counted_once() {
        let (opener, closer) = (Counters::new(), Counters::new());
        opener.inc(Metric::NextHopsOpen);
        opener.inc(Metric::NextHopsOpen);
        closer.dec(Metric::NextHopsOpen);
        assert_eq!(
            Snapshot::sum([&opener, &closer]).get(Metric::NextHopsOpen),
            1
        );
    }

    #[test]
    fn family_contains_only_its_own_values() {
        let (first, second) = (Counters::new(), Counters::new());
        first.inc(Metric::Requests(Verdict::Hit));
        second.add(Metric::Requests(Verdict::Local), 2);
        second.inc(Metric::RequestsInFlight);
        let snapshot = Snapshot::sum([&first, &second]);
        let values = snapshot
            .families()
            .find(|(family, _)| family.name == "weir_requests_total")
            .map(|(_, v)| v);
        let values = values.expect("declared");
        assert_eq!((values[0], values[values.len() - 1]), (1, 2));
        assert_eq!(values.iter().sum::<u64>(), 3);
    }

    #[test]
    fn response_time_is_recorded_under_its_source() {
        let counters = Counters::new();
        counters.record_response_time(Source::Store, 8);
        let snapshot = Snapshot::sum([&counters, &counters]);
        assert_eq!(snapshot.response_time(Source::Store).count(), 2);
        assert_eq!(snapshot.response_time(Source::NextHop).count(), 0);
        let named = snapshot.response_times().find(|(word, _)| *word == "store");
        assert_eq!(named.map(|(_, time)| time.sum_us), Some(16));
    }

    #[test]
    fn gauge_can_be_set_in_a_snapshot() {
        let mut snapshot = Snapshot::default();
        snapshot.set(Metric::StoreUsedBytes, 42);
        assert_eq!(snapshot.get(Metric::StoreUsedBytes), 42);
    }
}
