//! What is kept of each second and minute.

use crate::label::{Label, NotStored, Source, StatusClass, Verdict};
use crate::metric::Metric;
use crate::snapshot::Snapshot;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// One series of a history.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name, which a file of a history has too.
    pub name: String,
    /// How its values are made.
    pub kind: SeriesKind,
}

/// How the values of a series are made of the numbers of the process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SeriesKind {
    /// By how much a counter grew.
    Count(Metric),
    /// What a gauge shows.
    Gauge(Metric),
    /// A quantile of the response times of a source, or of all; microseconds.
    Time(Option<Source>, f64),
    /// Bytes in both directions over the link with this place in [`Reading::link_bytes`].
    Link(usize),
}

/// Most links of a configuration. Each has a series.
pub const LINKS_MAX: usize = 32;

/// What the names of the series of links begin with.
const LINK: &str = "link.";

/// The numbers of a process at a moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Its counters and gauges.
    pub numbers: Snapshot,
    /// Bytes over each link that has a series, in their order.
    pub link_bytes: Vec<u64>,
}

impl Reading {
    fn link(&self, place: usize) -> u64 {
        self.link_bytes.get(place).copied().unwrap_or_default()
    }
}

/// Counters that are kept without a label.
const COUNTS: [(&str, Metric); 21] = [
    ("bytes.to-clients", Metric::BytesToClients),
    ("bytes.from-clients", Metric::BytesFromClients),
    ("bytes.from-next-hops", Metric::BytesFromNextHops),
    ("bytes.to-next-hops", Metric::BytesToNextHops),
    ("bytes.content-to-clients", Metric::BodyBytesToClients),
    ("bytes.content-from-store", Metric::BytesFromStore),
    ("bytes.own-content", Metric::BodyBytesOfOurs),
    ("bytes.wasted", Metric::BytesWasted),
    ("stored", Metric::Stored),
    ("served-stale", Metric::ServedStale),
    ("evicted", Metric::Evicted),
    ("client-aborts", Metric::ClientAborts),
    ("next-hop.errors", Metric::NextHopErrors),
    ("next-hop.timeouts", Metric::NextHopTimeouts),
    ("disk.hits", Metric::DiskHits),
    ("disk.evicted", Metric::DiskEvicted),
    ("disk.written-bytes", Metric::DiskWrittenBytes),
    ("disk.read-bytes", Metric::DiskReadBytes),
    ("disk.errors", Metric::DiskErrors),
    ("log-lines-dropped", Metric::LogLinesDropped),
    ("panics", Metric::Panics),
];

/// Gauges that are kept.
const GAUGES: [(&str, Metric); 12] = [
    ("clients-open", Metric::ClientsOpen),
    ("next-hops-open", Metric::NextHopsOpen),
    ("next-hops-idle", Metric::ConnectionCacheIdle),
    ("in-flight", Metric::RequestsInFlight),
    ("tunnels-open", Metric::TunnelsOpen),
    ("fetches-under-way", Metric::FetchesUnderWay),
    ("store.used-bytes", Metric::StoreUsedBytes),
    ("store.budget-bytes", Metric::StoreBudgetBytes),
    ("store.entries", Metric::StoreEntries),
    ("disk.used-bytes", Metric::DiskUsedBytes),
    ("disk.budget-bytes", Metric::DiskBudgetBytes),
    ("read-ahead.max-bytes", Metric::ReadAheadMaxBytes),
];

/// Quantiles of response times that are kept.
const TIMES: [(&str, Option<Source>, f64); 6] = [
    ("time.hit.p50", Some(Source::Store), 0.5),
    ("time.hit.p99", Some(Source::Store), 0.99),
    ("time.miss.p50", Some(Source::NextHop), 0.5),
    ("time.miss.p99", Some(Source::NextHop), 0.99),
    ("time.all.p50", None, 0.5),
    ("time.all.p95", None, 0.95),
];

/// All series, in the order of the values of a row; of the first [`LINKS_MAX`] of `links`, by their
/// names.
#[must_use]
pub fn all(links: &[String]) -> Vec<Series> {
    let mut all = Vec::new();
    labelled(&mut all, "requests", Metric::Requests as fn(Verdict) -> _);
    labelled(
        &mut all,
        "responses",
        Metric::Responses as fn(StatusClass) -> _,
    );
    labelled(
        &mut all,
        "not-stored",
        Metric::ResponsesNotStored as fn(NotStored) -> _,
    );
    let mut push = |name: &str, kind| {
        all.push(Series {
            name: name.into(),
            kind,
        });
    };
    for (name, metric) in COUNTS {
        push(name, SeriesKind::Count(metric));
    }
    for (name, metric) in GAUGES {
        push(name, SeriesKind::Gauge(metric));
    }
    for (name, source, share) in TIMES {
        push(name, SeriesKind::Time(source, share));
    }
    for (place, link) in links.iter().take(LINKS_MAX).enumerate() {
        push(&format!("{LINK}{link}"), SeriesKind::Link(place));
    }
    all
}

/// A series for each value of a label.
fn labelled<L: Label>(all: &mut Vec<Series>, family: &str, metric: impl Fn(L) -> Metric) {
    all.extend(L::ALL.iter().map(|label| Series {
        name: format!("{family}.{}", label.word()),
        kind: SeriesKind::Count(metric(*label)),
    }));
}

/// The values of `series` from `before` to `after`.
#[must_use]
pub fn sample(series: &[Series], before: &Reading, after: &Reading) -> Vec<f32> {
    let grown = |place| after.link(place).saturating_sub(before.link(place));
    let (before, after) = (&before.numbers, &after.numbers);
    let value = |one: &Series| match one.kind {
        SeriesKind::Count(metric) => {
            // the blocks are read one after the other: a sum may seem to go back for a moment
            rounded(after.get(metric).saturating_sub(before.get(metric)))
        }
        SeriesKind::Gauge(metric) => rounded(gauge(after, metric)),
        SeriesKind::Time(source, share) => quantile(before, after, source, share),
        // a reload may have begun it anew
        SeriesKind::Link(place) => rounded(grown(place)),
    };
    series.iter().map(value).collect()
}

/// The counters of `series` since the start; of the others, what they show now.
#[must_use]
pub fn totals(series: &[Series], now: &Reading) -> Vec<Option<u64>> {
    let value = |one: &Series| match one.kind {
        SeriesKind::Count(metric) => Some(now.numbers.get(metric)),
        SeriesKind::Gauge(metric) => Some(gauge(&now.numbers, metric)),
        SeriesKind::Link(place) => Some(now.link(place)),
        SeriesKind::Time(..) => None,
    };
    series.iter().map(value).collect()
}

/// A gauge that was read while a connection moved between workers may be a little below zero.
fn gauge(now: &Snapshot, metric: Metric) -> u64 {
    let value = now.get(metric);
    if value > u64::MAX / 2 { 0 } else { value }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "times are below 2^27 microseconds"
)]
fn quantile(before: &Snapshot, after: &Snapshot, source: Option<Source>, share: f64) -> f32 {
    let sources = Source::ALL.iter();
    let mut times = crate::HistogramSnapshot::default();
    for one in sources.filter(|one| source.is_none_or(|source| source == **one)) {
        times.merge(&after.response_time(*one).since(before.response_time(*one)));
    }
    times.quantile_us(share).map_or(f32::NAN, |us| us as f32)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "seven digits are enough for a chart"
)]
const fn rounded(count: u64) -> f32 {
    count as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::Counters;

    fn reading(counters: &Counters) -> Reading {
        Reading {
            numbers: Snapshot::sum([counters]),
            link_bytes: Vec::new(),
        }
    }

    fn value_of(name: &str, values: &[f32]) -> f32 {
        let at = all(&[]).iter().position(|series| series.name == name);
        values[at.expect("declared")]
    }

    #[test]
    fn sample_has_what_counters_grew_by_and_what_gauges_show() {
        let counters = Counters::new();
        counters.add(Metric::Requests(Verdict::Hit), 5);
        counters.add(Metric::ClientsOpen, 3);
        let before = reading(&counters);
        counters.add(Metric::Requests(Verdict::Hit), 2);
        counters.dec(Metric::ClientsOpen);
        let after = reading(&counters);
        let values = sample(&all(&[]), &before, &after);
        assert_eq!(value_of("requests.hit", &values), 2.0);
        assert_eq!(value_of("requests.miss", &values), 0.0);
        assert_eq!(value_of("clients-open", &values), 2.0);
        let totals = totals(&all(&[]), &after);
        assert_eq!(totals[Verdict::Hit.index()], Some(7));
    }

    #[test]
    fn quantile_is_of_the_times_between_the_two_moments_alone() {
        let counters = Counters::new();
        counters.record_response_time(Source::Store, 60_000_000);
        let before = reading(&counters);
        for us in 900..1000 {
            counters.record_response_time(Source::Store, us);
        }
        let after = reading(&counters);
        let values = sample(&all(&[]), &before, &after);
        let near = |name, expected: f32| {
            let value = value_of(name, &values);
            assert!((value - expected).abs() < expected / 8.0, "{name}: {value}");
        };
        near("time.hit.p50", 950.0);
        near("time.hit.p99", 999.0);
        near("time.all.p50", 950.0);
        assert!(
            value_of("time.miss.p50", &values).is_nan(),
            "there was none"
        );
    }

    #[test]
    fn gauge_below_zero_is_shown_as_zero() {
        let counters = Counters::new();
        counters.dec(Metric::ClientsOpen);
        let now = reading(&counters);
        assert_eq!(
            value_of("clients-open", &sample(&all(&[]), &now, &now)),
            0.0
        );
    }

    #[test]
    fn link_has_the_bytes_that_it_has_moved_and_none_below_zero() {
        let series = all(&["a".into(), "b".into()]);
        let of = |link_bytes: [u64; 2]| Reading {
            numbers: Snapshot::default(),
            link_bytes: link_bytes.to_vec(),
        };
        let (before, after) = (of([10, 500]), of([25, 100]));
        let values = sample(&series, &before, &after);
        assert_eq!(values[series.len() - 2..], [15.0, 0.0]);
        assert_eq!(series[series.len() - 2].name, "link.a");
        assert_eq!(totals(&series, &after).last(), Some(&Some(100)));
        // a reading without links
        let none = sample(&series, &Reading::default(), &Reading::default());
        assert_eq!(none[series.len() - 2..], [0.0, 0.0]);
    }

    #[test]
    fn history_has_room_for_the_series_of_all_links() {
        let links: Vec<String> = (0..2 * LINKS_MAX).map(|link| format!("{link}")).collect();
        let series = all(&links);
        assert_eq!(series.len(), all(&[]).len() + LINKS_MAX);
        let bytes = crate::history::History::bytes(series.len());
        assert!(bytes <= crate::history::BYTES_MAX, "{bytes}");
    }

    #[test]
    fn no_two_series_have_the_same_name() {
        let mut names: Vec<String> = all(&[]).into_iter().map(|series| series.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(count <= 112, "{count} series");
    }
}
