//! Metrics that modules define, shared between the instances of a module.
//!
//! The specification's section *Metrics*. Our reading where the text is silent: `record` on a
//! counter adds to it, as in Envoy, so that several instances do not overwrite each other's count.

use crate::abi::{MetricKind, Status};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// A handle to a table of metrics: its clones are the same table.
#[derive(Clone, Debug)]
pub struct Metrics {
    count_max: usize,
    table: Arc<RwLock<Vec<Slot>>>,
}

#[derive(Debug)]
struct Slot {
    name: Box<[u8]>,
    kind: MetricKind,
    /// The value, or the sum of a histogram.
    value: AtomicU64,
    /// How many values a histogram has.
    recorded: AtomicU64,
}

/// A metric as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metric {
    /// As the module gave it: any octets.
    pub name: Box<[u8]>,
    /// Its value by its kind.
    pub value: MetricValue,
}

/// The value of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricValue {
    /// Of a counter.
    Counter(u64),
    /// Of a gauge.
    Gauge(u64),
    /// Of a histogram.
    Histogram {
        /// The sum of the values.
        sum: u64,
        /// How many there are.
        count: u64,
    },
}

impl Default for Metrics {
    /// At most 128 metrics.
    fn default() -> Self {
        Self::new(128)
    }
}

impl Metrics {
    /// An empty table for at most `count_max` metrics.
    #[must_use]
    pub fn new(count_max: usize) -> Self {
        Self {
            count_max,
            table: Arc::default(),
        }
    }

    /// All metrics in the order in which they were defined.
    #[must_use]
    pub fn read(&self) -> Vec<Metric> {
        self.slots().iter().map(Slot::read).collect()
    }

    /// The number of a metric, which exists afterwards.
    ///
    /// # Errors
    /// `BadArgument` if the name is one of another kind; `InternalFailure` if the table is full.
    pub fn define(&self, kind: MetricKind, name: &[u8]) -> Result<u32, Status> {
        let mut slots = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let position = slots.iter().position(|slot| *slot.name == *name);
        let position = match position {
            Some(position) if slots[position].kind != kind => return Err(Status::BadArgument),
            Some(position) => position,
            None if slots.len() >= self.count_max => return Err(Status::InternalFailure),
            None => {
                slots.push(Slot {
                    name: name.into(),
                    kind,
                    value: AtomicU64::new(0),
                    recorded: AtomicU64::new(0),
                });
                slots.len() - 1
            }
        };
        u32::try_from(position).map_err(|_| Status::InternalFailure)
    }

    /// Changes a counter or a gauge. A gauge does not go below zero, none goes beyond 64 bits.
    ///
    /// # Errors
    /// `NotFound`; `BadArgument` for a counter that would shrink, and for a histogram.
    pub fn increment(&self, id: u32, delta: i64) -> Result<(), Status> {
        self.with(id, |slot| {
            let shrinks_counter = slot.kind == MetricKind::Counter && delta < 0;
            if shrinks_counter || slot.kind == MetricKind::Histogram {
                return Err(Status::BadArgument);
            }
            change(&slot.value, |value| value.saturating_add_signed(delta));
            Ok(())
        })
    }

    /// Adds a value to a histogram or a counter, or sets a gauge.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn record(&self, id: u32, value: u64) -> Result<(), Status> {
        self.with(id, |slot| {
            match slot.kind {
                MetricKind::Gauge => slot.value.store(value, Ordering::Relaxed),
                MetricKind::Counter | MetricKind::Histogram => {
                    change(&slot.value, |sum| sum.saturating_add(value));
                    slot.recorded.fetch_add(1, Ordering::Relaxed);
                }
            }
            Ok(())
        })
    }

    /// The value of a counter or a gauge.
    ///
    /// # Errors
    /// `NotFound`; `BadArgument` for a histogram, which has no single value.
    pub fn get(&self, id: u32) -> Result<u64, Status> {
        self.with(id, |slot| match slot.kind {
            MetricKind::Counter | MetricKind::Gauge => Ok(slot.value.load(Ordering::Relaxed)),
            MetricKind::Histogram => Err(Status::BadArgument),
        })
    }

    fn with<R>(
        &self,
        id: u32,
        action: impl FnOnce(&Slot) -> Result<R, Status>,
    ) -> Result<R, Status> {
        let slots = self.slots();
        let position = usize::try_from(id).map_err(|_| Status::NotFound)?;
        action(slots.get(position).ok_or(Status::NotFound)?)
    }

    fn slots(&self) -> RwLockReadGuard<'_, Vec<Slot>> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn read(&self) -> Metric {
        let value = self.value.load(Ordering::Relaxed);
        let value = match self.kind {
            MetricKind::Counter => MetricValue::Counter(value),
            MetricKind::Gauge => MetricValue::Gauge(value),
            MetricKind::Histogram => MetricValue::Histogram {
                sum: value,
                count: self.recorded.load(Ordering::Relaxed),
            },
        };
        Metric {
            name: self.name.clone(),
            value,
        }
    }
}

fn change(value: &AtomicU64, new: impl Fn(u64) -> u64) {
    // the closure always gives a value, so that the update cannot fail
    let _ = value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(new(old)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use MetricKind::{Counter, Gauge, Histogram};

    #[test]
    fn metric_of_a_name_is_shared_and_has_one_kind() {
        let metrics = Metrics::default();
        let id = metrics.define(Counter, b"a").unwrap();
        assert_eq!(metrics.clone().define(Counter, b"a"), Ok(id));
        assert_eq!(metrics.define(Gauge, b"a"), Err(Status::BadArgument));
        metrics.increment(id, 2).unwrap();
        metrics.record(id, 3).unwrap();
        assert_eq!(metrics.increment(id, -1), Err(Status::BadArgument));
        assert_eq!(metrics.get(id), Ok(5));
        assert_eq!(metrics.get(id + 1), Err(Status::NotFound));
    }

    #[test]
    fn gauge_stays_in_its_range() {
        let metrics = Metrics::default();
        let id = metrics.define(Gauge, b"g").unwrap();
        metrics.record(id, 2).unwrap();
        metrics.increment(id, i64::MIN).unwrap();
        assert_eq!(metrics.get(id), Ok(0));
        metrics.record(id, u64::MAX).unwrap();
        metrics.increment(id, 1).unwrap();
        assert_eq!(metrics.get(id), Ok(u64::MAX));
    }

    #[test]
    fn histogram_has_a_sum_and_a_count_and_the_table_a_limit() {
        let metrics = Metrics::new(1);
        let id = metrics.define(Histogram, b"h").unwrap();
        metrics.record(id, 4).unwrap();
        metrics.record(id, 5).unwrap();
        assert_eq!(metrics.get(id), Err(Status::BadArgument));
        assert_eq!(metrics.increment(id, 1), Err(Status::BadArgument));
        let value = MetricValue::Histogram { sum: 9, count: 2 };
        assert_eq!(metrics.read()[0].value, value);
        assert_eq!(metrics.define(Counter, b"x"), Err(Status::InternalFailure));
    }
}
