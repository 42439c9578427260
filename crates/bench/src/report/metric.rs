//! The metrics of a run: one number each, and which way is better.

use super::comparison::{ProxyRuns, UNCACHED, clients, mean_us, result, together};
use weir_measure::float;
use weir_measure::record::Record;
use weir_report::Unit;

/// A number by which proxies are compared.
#[derive(Clone, Copy)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) better: Better,
    /// What the best proxy did, as part of a sentence; empty where that is not worth one.
    pub(super) praise: &'static str,
    pub(super) of: fn(&ProxyRuns<'_>, &Record) -> Option<f64>,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

impl Better {
    /// The best of these values.
    pub(super) fn of(self, values: impl Iterator<Item = f64>) -> Option<f64> {
        match self {
            Self::Less => values.min_by(f64::total_cmp),
            Self::More => values.max_by(f64::total_cmp),
        }
    }
}

/// These two stand beside what was offered.
const HIT_RATIO: &str = "hit ratio";
const BYTE_HIT_RATIO: &str = "byte hit ratio";

/// This one is counted in ticks.
const CPU_TIME: &str = "CPU time a request";

impl Metric {
    const fn new(
        name: &'static str,
        unit: Unit,
        better: Better,
        of: fn(&ProxyRuns<'_>, &Record) -> Option<f64>,
    ) -> Self {
        Self {
            name,
            unit,
            better,
            praise: "",
            of,
        }
    }

    const fn praised(self, praise: &'static str) -> Self {
        Self { praise, ..self }
    }
}

/// All of them, in the order of the summary.
pub(super) const ALL: [Metric; 12] = {
    use Better::{Less, More};
    [
        Metric::new("mean response time", Unit::Time, Less, |_, record| {
            mean_us(record)
        })
        .praised("answered soonest"),
        Metric::new("99 % answered within", Unit::Time, Less, |_, record| {
            result(record)
                .response_time
                .all
                .quantile_us(0.99)
                .map(float)
        }),
        Metric::new("median of hits", Unit::Time, Less, |_, record| {
            let hits = &together(record).response_time.hit;
            hits.quantile_us(0.5).map(float)
        }),
        Metric::new("time saved by caching", Unit::Share, More, saved),
        Metric::new(HIT_RATIO, Unit::Share, More, |_, record| {
            caching(record, together(record).hit_ratio())
        })
        .praised("spared the origin the most requests"),
        Metric::new(BYTE_HIT_RATIO, Unit::Share, More, |_, record| {
            caching(record, together(record).byte_hit_ratio())
        })
        .praised("spared it the most bytes"),
        Metric::new(
            "requests answered a second",
            Unit::Count,
            More,
            |_, record| result(record).rate_per_s(),
        ),
        Metric::new("failed requests", Unit::Share, Less, |_, record| {
            let all = together(record).client;
            (all.requests > 0).then(|| float(all.error_count()) / float(all.requests))
        }),
        Metric::new("wrong responses", Unit::Count, Less, |_, record| {
            Some(float(record.total.client.wrong_count()))
        }),
        Metric::new(CPU_TIME, Unit::Time, Less, |_, record| {
            cpu_us_a_request(record)
        })
        .praised("used the least CPU time"),
        Metric::new("memory, at most", Unit::Bytes, Less, |_, record| {
            let most = record.usage.iter().map(|second| second.rss_bytes).max();
            most.map(float)
        }),
        Metric::new("written to disk", Unit::Bytes, Less, |_, record| {
            let written = record.usage.iter().map(|second| second.written_bytes);
            (!record.usage.is_empty()).then(|| float(written.sum()))
        }),
    ]
};

/// What the workload offers of this number: the upper bound of a hit ratio.
pub(super) fn offered(metric: &Metric, record: &Record) -> Option<f64> {
    let all = together(record);
    match metric.name {
        HIT_RATIO => all.offered_hit_ratio(),
        BYTE_HIT_RATIO => all.offered_byte_hit_ratio(),
        _ => None,
    }
}

/// The smallest difference of this number that its measurement can show: CPU time is counted in
/// ticks of the kernel.
pub(super) fn resolution(metric: &Metric, record: &Record) -> f64 {
    let requests = record.total.client.requests;
    if metric.name != CPU_TIME || requests == 0 {
        return 0.0;
    }
    CPU_TICKS_MIN * CPU_TICK_US / float(requests)
}

/// One tick of the CPU times that Linux writes into `/proc`: `USER_HZ` is 100 on all its platforms.
const CPU_TICK_US: f64 = 10_000.0;

/// Fewer ticks than these are no difference: each reading is rounded, and so is its beginning.
const CPU_TICKS_MIN: f64 = 5.0;

/// A run without caching has no hit ratio of its own.
fn caching(record: &Record, ratio: Option<f64>) -> Option<f64> {
    ratio.filter(|_| record.subject.is_caching)
}

/// How much shorter the mean response time is than without caching, for as many clients.
fn saved(proxy: &ProxyRuns<'_>, record: &Record) -> Option<f64> {
    let plain = proxy.at(UNCACHED, clients(record))?;
    let with = caching(record, mean_us(record))?;
    Some(1.0 - with / mean_us(&plain.record)?)
}

/// CPU time of the proxy's process tree a request, over the whole run, microseconds.
pub(super) fn cpu_us_a_request(record: &Record) -> Option<f64> {
    let requests = record.total.client.requests;
    let seconds = per_second(record).map(|(seconds, used)| seconds * used.cpu_share);
    (!record.usage.is_empty() && requests > 0).then(|| seconds.sum::<f64>() * 1e6 / float(requests))
}

/// What was used, with how long that went on.
pub(super) fn per_second(
    record: &Record,
) -> impl Iterator<Item = (f64, &weir_measure::record::UsageSecond)> {
    let ends = record.usage.iter().map(|used| used.at_s);
    let begins = std::iter::once(0.0).chain(ends.clone());
    record
        .usage
        .iter()
        .zip(ends.zip(begins))
        .map(|(used, (end, begin))| ((end - begin).max(0.0), used))
}

/// The mean of something that is sampled each second, weighted by how long each second was.
pub(super) fn mean_used(
    record: &Record,
    of: impl Fn(&weir_measure::record::UsageSecond) -> f64,
) -> Option<f64> {
    let (time, sum) = per_second(record).fold((0.0, 0.0), |(time, sum), (seconds, used)| {
        (time + seconds, seconds.mul_add(of(used), sum))
    });
    (time > 0.0).then(|| sum / time)
}

/// Bytes a second over the run, of something that is counted in bytes each second.
pub(super) fn rate_used(
    record: &Record,
    of: impl Fn(&weir_measure::record::UsageSecond) -> u64,
) -> Option<f64> {
    let time: f64 = per_second(record).map(|(seconds, _)| seconds).sum();
    let bytes: u64 = record.usage.iter().map(of).sum();
    (time > 0.0).then(|| float(bytes) / time)
}
