//! What is read from a record: one number each, and which way is better.

use super::comparison::{ProxyRuns, UNCACHED, clients, result, together};
use weir_measure::record::Record;
use weir_report::{Unit, float};

/// A number by which proxies are compared.
#[derive(Clone, Copy)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) better: Better,
    /// What the best of them did, for a sentence; empty where that is not worth one.
    pub(super) praise: &'static str,
    pub(super) of: fn(&ProxyRuns<'_>, &Record) -> Option<f64>,
}

/// RunKind way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Better {
    Less,
    More,
}

/// These two stand beside what was offered.
const HIT_RATIO: &str = "hit ratio";
const BYTE_HIT_RATIO: &str = "byte hit ratio";

/// This one is counted in ticks.
const CPU_TIME: &str = "CPU time a request";

/// All of them, in the order of the summary.
pub(super) const ALL: [Metric; 12] = [
    Metric {
        name: "mean response time",
        unit: Unit::Time,
        better: Better::Less,
        praise: "answered soonest",
        of: |_, record| result(record).response_time.all.mean_us(),
    },
    Metric {
        name: "99 % answered within",
        unit: Unit::Time,
        better: Better::Less,
        praise: "",
        of: |_, record| quantile(record, 0.99),
    },
    Metric {
        name: "median of hits",
        unit: Unit::Time,
        better: Better::Less,
        praise: "",
        of: |_, record| {
            let median = together(record).response_time.hit.quantile_us(0.5)?;
            Some(float(median))
        },
    },
    Metric {
        name: "time saved by caching",
        unit: Unit::Share,
        better: Better::More,
        praise: "",
        of: saved,
    },
    Metric {
        name: HIT_RATIO,
        unit: Unit::Share,
        better: Better::More,
        praise: "spared the origin the most requests",
        of: |_, record| caching(record, together(record).hit_ratio()),
    },
    Metric {
        name: BYTE_HIT_RATIO,
        unit: Unit::Share,
        better: Better::More,
        praise: "spared it the most bytes",
        of: |_, record| caching(record, together(record).byte_hit_ratio()),
    },
    Metric {
        name: "requests answered a second",
        unit: Unit::Count,
        better: Better::More,
        praise: "",
        of: |_, record| result(record).rate_per_s(),
    },
    Metric {
        name: "failed requests",
        unit: Unit::Share,
        better: Better::Less,
        praise: "",
        of: |_, record| {
            let all = together(record).client;
            (all.requests > 0).then(|| float(all.error_count()) / float(all.requests))
        },
    },
    Metric {
        name: "wrong responses",
        unit: Unit::Count,
        better: Better::Less,
        praise: "",
        of: |_, record| Some(float(record.total.client.wrong_count())),
    },
    Metric {
        name: CPU_TIME,
        unit: Unit::Time,
        better: Better::Less,
        praise: "used the least CPU time",
        of: |_, record| {
            let requests = record.total.client.requests;
            (!record.usage.is_empty() && requests > 0)
                .then(|| cpu_seconds(record) * 1e6 / float(requests))
        },
    },
    Metric {
        name: "memory, at most",
        unit: Unit::Bytes,
        better: Better::Less,
        praise: "",
        of: |_, record| {
            let most = record.usage.iter().map(|second| second.rss_bytes).max()?;
            Some(float(most))
        },
    },
    Metric {
        name: "written to disk",
        unit: Unit::Bytes,
        better: Better::Less,
        praise: "",
        of: |_, record| {
            let written = record.usage.iter().map(|second| second.written_bytes);
            (!record.usage.is_empty()).then(|| float(written.sum()))
        },
    },
];

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

/// A quantile of the result phase's response times, microseconds.
pub(super) fn quantile(record: &Record, quantile: f64) -> Option<f64> {
    let value = result(record).response_time.all.quantile_us(quantile)?;
    Some(float(value))
}

/// Whom caching was turned off for cannot be blamed for a hit ratio.
fn caching(record: &Record, ratio: Option<f64>) -> Option<f64> {
    ratio.filter(|_| record.subject.is_caching)
}

/// How much shorter the mean response time is than without caching, for as many clients.
fn saved(proxy: &ProxyRuns<'_>, record: &Record) -> Option<f64> {
    let mean = |record: &Record| result(record).response_time.all.mean_us();
    let plain = proxy.at(UNCACHED, clients(record))?;
    let with = caching(record, mean(record))?;
    Some(1.0 - with / mean(&plain.record)?)
}

/// CPU time of the proxy's process tree over the run, seconds.
pub(super) fn cpu_seconds(record: &Record) -> f64 {
    per_second(record)
        .map(|(seconds, used)| seconds * used.cpu_share)
        .sum()
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
