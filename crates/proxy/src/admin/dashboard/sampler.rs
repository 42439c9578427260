//! Reads the counters each second.

use super::{Dashboard, Latest, told};
use crate::admin::Control;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::{MissedTickBehavior, interval};
use weir_measure::history::series::{Reading, Series, SeriesKind, sample, totals};
use weir_measure::history::{History, Step};
use weir_measure::live::LiveSample;

/// Seconds that a late sample is spread over at most.
const LATE_MAX_S: u64 = 60;

/// Seconds by which the wall clock and the monotonic one may differ from one sample to the next, in
/// whole seconds of both. If they differ by more, the machine slept or its clock was set.
const DRIFT_MAX_S: u64 = 2;

/// Samples until it is cancelled.
pub(in crate::admin) async fn run(control: Arc<dyn Control>, dashboard: Arc<Dashboard>) {
    // the counters began at zero with the process: what came before this is of the first second
    let mut sampler = Sampler::new(dashboard.series.clone(), unix_s());
    let began = Instant::now();
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        seconds.tick().await;
        let now = Moment {
            wall_s: unix_s(),
            tick_s: began.elapsed().as_secs(),
        };
        let numbers = read(&*control, &dashboard.links);
        let totals = totals(&dashboard.series, &numbers);
        let mut history = dashboard.history();
        let values = sampler.take(&mut history, now, numbers);
        drop(history);
        // before the first second has ended there are totals alone
        if values.is_none() && dashboard.latest.borrow().sample.is_some() {
            continue;
        }
        let values = values.map(|values| values.into_iter().map(told).collect());
        if sampler.ended_minute.take().is_some() {
            let dashboard = Arc::clone(&dashboard);
            tokio::task::spawn_blocking(move || dashboard.save());
        }
        let sample = LiveSample {
            at_s: now.wall_s,
            values: values.unwrap_or_else(|| vec![None; dashboard.series.len()]),
            totals,
        };
        let written = serde_json::to_string(&sample).unwrap_or_default();
        dashboard.latest.send_replace(Latest {
            sample: Some(Arc::new(sample)),
            event: format!("data: {written}\n\n").into(),
        });
    }
}

/// The numbers of the proxy now, with those of `links`.
fn read(control: &dyn Control, links: &[String]) -> Reading {
    let rows = if links.is_empty() {
        Vec::new()
    } else {
        control.links()
    };
    let bytes = |name: &String| {
        let row = rows.iter().find(|row| row.name == *name);
        row.map_or(0, |row| row.received_bytes.saturating_add(row.sent_bytes))
    };
    Reading {
        numbers: control.metrics(),
        link_bytes: links.iter().map(bytes).collect(),
    }
}

/// When numbers were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    /// Seconds since 1970 UTC.
    wall_s: u64,
    /// Seconds of a clock that no one sets, since the first sample.
    tick_s: u64,
}

/// Makes rows of numbers that are read about each second.
#[derive(Debug)]
struct Sampler {
    series: Vec<Series>,
    /// The last numbers, and when they were read.
    before: (Reading, Moment),
    /// The numbers at the begin of the minute, and this.
    minute: (Reading, u64),
    /// The minute that has ended since this was taken.
    ended_minute: Option<u64>,
}

impl Sampler {
    /// Of a process that begins at `now_s`.
    fn new(series: Vec<Series>, now_s: u64) -> Self {
        let begin = Moment {
            wall_s: now_s,
            tick_s: 0,
        };
        Self {
            series,
            before: (Reading::default(), begin),
            minute: (Reading::default(), Step::Minute.begin_of(now_s)),
            ended_minute: None,
        }
    }

    /// Puts the rows that have ended by `now`, and returns the values of the last second. `None`
    /// if no second has ended.
    fn take(&mut self, history: &mut History, now: Moment, numbers: Reading) -> Option<Vec<f32>> {
        let (before, then) = &self.before;
        let (now_s, before_s) = (now.wall_s, then.wall_s);
        let passed_s = now.tick_s - then.tick_s;
        let missed_s = match now_s.checked_sub(before_s) {
            Some(0) if passed_s <= DRIFT_MAX_S => return None,
            Some(seconds) if seconds <= LATE_MAX_S && seconds.abs_diff(passed_s) <= DRIFT_MAX_S => {
                seconds
            }
            // the clock was set, or stood still: what was counted is of no known second
            _ => {
                self.begin(numbers, now);
                return None;
            }
        };
        let mut values = sample(&self.series, before, &numbers);
        let earlier = self.spread(&mut values, missed_s);
        for second in before_s..now_s - 1 {
            history.push(Step::Second, second, &earlier);
        }
        history.push(Step::Second, now_s - 1, &values);
        let minute_s = Step::Minute.begin_of(now_s);
        if minute_s != self.minute.1 {
            let minute = sample(&self.series, &self.minute.0, &numbers);
            history.push(Step::Minute, self.minute.1, &minute);
            self.ended_minute = Some(self.minute.1);
            self.minute = (numbers.clone(), minute_s);
        }
        self.before = (numbers, now);
        Some(values)
    }

    /// Spreads what was counted over so many seconds: returns the values of each of them but the
    /// last, which keeps what is left, so that counts stay whole and their sum is true.
    fn spread(&self, values: &mut [f32], seconds: u64) -> Vec<f32> {
        let is_count =
            |one: &Series| matches!(one.kind, SeriesKind::Count(_) | SeriesKind::Link(_));
        let pairs = self.series.iter().zip(values);
        let earlier = pairs.map(|(one, value)| {
            if !is_count(one) {
                return *value;
            }
            let each = (*value / ratio(seconds)).floor();
            *value -= each * ratio(seconds - 1);
            each
        });
        earlier.collect()
    }

    fn begin(&mut self, numbers: Reading, now: Moment) {
        self.minute = (numbers.clone(), Step::Minute.begin_of(now.wall_s));
        self.before = (numbers, now);
    }
}

#[expect(clippy::cast_precision_loss, reason = "at most LATE_MAX_S")]
const fn ratio(seconds: u64) -> f32 {
    seconds as f32
}

/// Milliseconds since 1970 UTC.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// Seconds since 1970 UTC.
pub(super) fn unix_s() -> u64 {
    unix_ms() / 1000
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::history::series;
    use weir_measure::{Counters, Label as _, Metric, Snapshot, Verdict};

    /// A full minute.
    const MINUTE: u64 = 1_764_230_400;

    struct Run {
        counters: Counters,
        history: History,
        sampler: Sampler,
        begin_s: u64,
    }

    impl Run {
        fn begin(now_s: u64) -> Self {
            let series = series::all(&[]);
            Self {
                history: History::new(series.len()),
                sampler: Sampler::new(series, now_s),
                counters: Counters::new(),
                begin_s: now_s,
            }
        }

        /// So many hits, and a sample at `now_s`, by a clock that was not set.
        fn hits(&mut self, count: u64, now_s: u64) -> bool {
            self.hits_at(count, now_s, now_s - self.begin_s)
        }

        /// The same, so many seconds after the begin.
        fn hits_at(&mut self, count: u64, wall_s: u64, tick_s: u64) -> bool {
            self.counters.add(Metric::Requests(Verdict::Hit), count);
            let numbers = Reading {
                numbers: Snapshot::sum([&self.counters]),
                link_bytes: Vec::new(),
            };
            let now = Moment { wall_s, tick_s };
            let taken = self.sampler.take(&mut self.history, now, numbers);
            taken.is_some()
        }

        /// Hits in the row that begins at `at_s`.
        fn row(&self, step: Step, at_s: u64) -> Option<f32> {
            let row = self.history.row(step, at_s)?;
            Some(row[Verdict::Hit.index()])
        }
    }

    #[test]
    fn each_second_has_what_was_counted_in_it() {
        let mut run = Run::begin(MINUTE);
        assert!(run.hits(3, MINUTE + 1));
        assert!(run.hits(5, MINUTE + 2));
        // too early: the second has not ended
        assert!(!run.hits(1, MINUTE + 2));
        assert!(run.hits(1, MINUTE + 3));
        let rows = (0..4).map(|second| run.row(Step::Second, MINUTE + second));
        assert_eq!(
            rows.collect::<Vec<_>>(),
            [Some(3.0), Some(5.0), Some(2.0), None]
        );
    }

    #[test]
    fn late_sample_is_spread_over_the_seconds_that_were_missed() {
        let mut run = Run::begin(MINUTE);
        assert!(run.hits(14, MINUTE + 4));
        let rows = (0..5).map(|second| run.row(Step::Second, MINUTE + second));
        let expected = [Some(3.0), Some(3.0), Some(3.0), Some(5.0), None];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn machine_that_slept_leaves_a_gap_though_its_clock_was_not_set() {
        let mut run = Run::begin(MINUTE);
        assert!(run.hits(1, MINUTE + 1));
        assert!(!run.hits_at(9, MINUTE + 31, 2));
        assert_eq!(run.row(Step::Second, MINUTE + 1), None);
        assert!(run.hits_at(2, MINUTE + 32, 3));
        assert_eq!(run.row(Step::Second, MINUTE + 31), Some(2.0));
    }

    #[test]
    fn minute_has_the_sum_of_its_seconds_once_it_has_ended() {
        let mut run = Run::begin(MINUTE - 30);
        for second in 1..=95 {
            run.hits(2, MINUTE - 30 + second);
        }
        // its first half is not known
        assert_eq!(run.row(Step::Minute, MINUTE - 60), Some(60.0));
        assert_eq!(run.row(Step::Minute, MINUTE), Some(120.0));
        assert_eq!(run.row(Step::Minute, MINUTE + 60), None);
        assert_eq!(run.sampler.ended_minute, Some(MINUTE));
    }

    #[test]
    fn clock_that_is_set_leaves_a_gap_and_no_row_of_a_wrong_time() {
        for set in [MINUTE + 10_000, MINUTE - 10_000] {
            let mut run = Run::begin(MINUTE);
            assert!(run.hits(1, MINUTE + 1));
            assert!(!run.hits_at(1_000, set, 2));
            assert!(run.hits_at(4, set + 1, 3));
            assert_eq!(run.row(Step::Second, set), Some(4.0));
            assert_eq!(run.row(Step::Second, set - 1), None);
            assert_eq!(run.row(Step::Second, MINUTE + 1), None);
        }
    }
}
