//! The numbers as OpenMetrics text, which Prometheus reads, or in its own older text format.
//!
//! Labels are the closed sets of `weir-measure`, names of modules and their numbers, and of members
//! of a cluster, which have a limit, and configured parents: the size of the answer does not depend
//! on what clients send.

mod format;
mod text;

use std::fmt;

pub(super) use format::Format;

use crate::cluster::report::{ClusterReport, MEMBER_STATES, MemberReport};
use crate::modules::report::ModuleReport;
use crate::server::control::certificates::CertificateRow;
use crate::settings::hierarchy::ParentReport;
use crate::settings::rule_counts::RuleReport;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use weir_measure::live::{LinkQuotaRow, LinkRow};
use weir_measure::{
    Family, HOLD_TIME_HELP, HistogramSnapshot, Kind, NamedFamily, OCTAVES, RESPONSE_TIME_HELP,
    Snapshot, octave_limit_us,
};

const RESPONSE_TIME: &str = "weir_response_time";
const HOLD_TIME: &str = "weir_hand_off_hold";

/// Reports of what the configuration names, whose families have a label with these names.
#[derive(Default)]
pub(super) struct Reports {
    pub(super) modules: Vec<ModuleReport>,
    pub(super) parents: Vec<ParentReport>,
    pub(super) rules: Vec<RuleReport>,
    pub(super) certificates: Vec<CertificateRow>,
    pub(super) links: Vec<LinkRow>,
    pub(super) cluster: Option<ClusterReport>,
}

/// The whole answer to `/metrics`.
pub(super) fn write(
    format: Format,
    snapshot: Snapshot,
    reports: Reports,
) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Numbers(snapshot)));
    registry.register_collector(Box::new(ModuleNumbers(reports.modules)));
    registry.register_collector(Box::new(ParentNumbers(reports.parents)));
    registry.register_collector(Box::new(RuleNumbers(reports.rules)));
    registry.register_collector(Box::new(CertificateNumbers(reports.certificates)));
    registry.register_collector(Box::new(LinkNumbers(reports.links)));
    registry.register_collector(Box::new(MemberNumbers(reports.cluster)));
    let mut text = String::with_capacity(32 << 10);
    encode(&mut text, &registry)?;
    Ok(match format {
        Format::OpenMetrics => text,
        Format::Text => text::of_open_metrics(&text),
    })
}

#[derive(Debug)]
struct Numbers(Snapshot);

impl Collector for Numbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (family, values) in self.0.families() {
            write_family(&mut encoder, family, values)?;
        }
        write_response_times(&mut encoder, &self.0)?;
        write_hold_times(&mut encoder, &self.0)
    }
}

/// What modules count by themselves.
#[derive(Debug)]
struct ModuleNumbers(Vec<ModuleReport>);

impl Collector for ModuleNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if self.0.iter().all(|module| module.metrics.is_empty()) {
            return Ok(());
        }
        let mut family = begin_named(&mut encoder, NamedFamily::MODULE_METRIC)?;
        for module in &self.0 {
            for (name, value) in &module.metrics {
                let labels = [("module", module.name.as_str()), ("metric", name.as_str())];
                write_value(&mut family.encode_family(&labels)?, Kind::Gauge, *value)?;
            }
        }
        Ok(())
    }
}

/// Requests to parents and siblings.
#[derive(Debug)]
struct ParentNumbers(Vec<ParentReport>);

impl Collector for ParentNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut family = begin_named(&mut encoder, NamedFamily::PARENT_REQUESTS)?;
        for parent in &self.0 {
            for (outcome, count) in parent.requests {
                let labels = [
                    ("parent", parent.url.as_str()),
                    ("kind", parent.kind),
                    ("outcome", outcome),
                ];
                write_value(&mut family.encode_family(&labels)?, Kind::Counter, count)?;
            }
        }
        Ok(())
    }
}

/// Requests that rules are for.
#[derive(Debug)]
struct RuleNumbers(Vec<RuleReport>);

impl Collector for RuleNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        if self.0.is_empty() {
            return Ok(());
        }
        let mut family = begin_named(&mut encoder, NamedFamily::RULE_MATCHED)?;
        for rule in &self.0 {
            let labels = [("rule", rule.name.as_str())];
            let mut one = family.encode_family(&labels)?;
            write_value(&mut one, Kind::Counter, rule.requests)?;
        }
        Ok(())
    }
}

/// Certificates of listeners.
#[derive(Debug)]
struct CertificateNumbers(Vec<CertificateRow>);

impl Collector for CertificateNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut each = |family: NamedFamily, value: fn(&CertificateRow) -> Option<u64>| {
            let values = self.0.iter().filter_map(|row| Some((row, value(row)?)));
            let mut values = values.peekable();
            if values.peek().is_none() {
                return Ok(());
            }
            let mut encoder = begin_named(&mut encoder, family)?;
            for (row, value) in values {
                let labels = [("name", row.name.as_str())];
                write_value(&mut encoder.encode_family(&labels)?, family.kind, value)?;
            }
            Ok(())
        };
        each(NamedFamily::CERTIFICATE_EXPIRY, |row| row.expires_unix_s)?;
        each(NamedFamily::ACME_FAILURES, |row| {
            row.failures.map(u64::from)
        })
    }
}

/// What is moved over links to next hops.
#[derive(Debug)]
struct LinkNumbers(Vec<LinkRow>);

impl Collector for LinkNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut each = |family: NamedFamily, value: &dyn Fn(&LinkRow) -> Option<u64>| {
            let values = self.0.iter().filter_map(|link| Some((link, value(link)?)));
            let mut values = values.peekable();
            if values.peek().is_none() {
                return Ok(());
            }
            let mut encoder = begin_named(&mut encoder, family)?;
            for (link, value) in values {
                let labels = [("link", link.name.as_str())];
                write_value(&mut encoder.encode_family(&labels)?, family.kind, value)?;
            }
            Ok(())
        };
        each(NamedFamily::LINK_RECEIVED, &|link| {
            Some(link.received_bytes)
        })?;
        each(NamedFamily::LINK_SENT, &|link| Some(link.sent_bytes))?;
        each(NamedFamily::LINK_WAITED, &|link| {
            Some(link.waited_ms / 1000)
        })?;
        each(NamedFamily::LINK_RATE, &|link| link.rate_bytes_s)?;
        let mut of_quota = |family, value: fn(&LinkRow, &LinkQuotaRow) -> u64| {
            each(family, &|link| {
                link.quota.as_ref().map(|quota| value(link, quota))
            })
        };
        of_quota(NamedFamily::LINK_QUOTA, |_, quota| quota.bytes)?;
        of_quota(NamedFamily::LINK_SPENT, |_, quota| quota.spent_bytes)?;
        of_quota(NamedFamily::LINK_PERIOD_END, |_, quota| {
            u64::try_from(quota.end_unix_s).unwrap_or(0)
        })?;
        of_quota(NamedFamily::LINK_REFUSED, |link, _| link.refused)
    }
}

/// The members of a cluster as this node knows them.
#[derive(Debug)]
struct MemberNumbers(Option<ClusterReport>);

impl Collector for MemberNumbers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(cluster) = &self.0 else {
            return Ok(());
        };
        let mut gauge = |family, value: &dyn Fn(&MemberReport) -> u64| {
            let mut family = begin_named(&mut encoder, family)?;
            cluster.members.iter().try_for_each(|member| {
                let labels = [("node", member.name.as_str())];
                let mut one = family.encode_family(&labels)?;
                write_value(&mut one, Kind::Gauge, value(member))
            })
        };
        gauge(NamedFamily::MEMBER_OUTSTANDING, &|member| {
            u64::from(member.outstanding)
        })?;
        gauge(NamedFamily::MEMBER_PURGES_OVERDUE, &|member| {
            member.purges_overdue
        })?;
        gauge(NamedFamily::MEMBER_PLACEMENT_DIFFERS, &|member| {
            u64::from(member.placement_differs)
        })?;
        let mut family = begin_named(&mut encoder, NamedFamily::MEMBER_STATE)?;
        for member in &cluster.members {
            for state in MEMBER_STATES {
                let labels = [("node", member.name.as_str()), ("state", state)];
                let value = u64::from(member.state == state);
                write_value(&mut family.encode_family(&labels)?, Kind::Gauge, value)?;
            }
        }
        Ok(())
    }
}

fn begin_named<'e>(
    encoder: &'e mut DescriptorEncoder<'_>,
    family: NamedFamily,
) -> Result<MetricEncoder<'e>, fmt::Error> {
    let (name, kind) = encoded(family.name, family.kind);
    encoder.encode_descriptor(name, family.help, None, kind)
}

/// Name and kind for the encoder, which appends `_total` itself.
fn encoded(name: &str, kind: Kind) -> (&str, MetricType) {
    let kind = match kind {
        Kind::Counter => MetricType::Counter,
        Kind::Gauge => MetricType::Gauge,
    };
    (name.trim_end_matches("_total"), kind)
}

fn write_family(
    encoder: &mut DescriptorEncoder<'_>,
    family: &Family,
    values: &[u64],
) -> Result<(), fmt::Error> {
    let (name, kind) = encoded(family.name, family.kind);
    // the encoder appends the unit itself
    let (name, unit) = match name.strip_suffix("_bytes") {
        Some(stem) => (stem, Some(Unit::Bytes)),
        None => (name, None),
    };
    let mut encoder = encoder.encode_descriptor(name, family.help.trim(), unit.as_ref(), kind)?;
    match family.label {
        None => values
            .iter()
            .try_for_each(|value| write_value(&mut encoder, family.kind, *value)),
        Some(label) => label
            .words
            .iter()
            .zip(values)
            .try_for_each(|(word, value)| {
                let labels = [(label.name, *word)];
                write_value(&mut encoder.encode_family(&labels)?, family.kind, *value)
            }),
    }
}

fn write_value(encoder: &mut MetricEncoder<'_>, kind: Kind, value: u64) -> Result<(), fmt::Error> {
    match kind {
        Kind::Counter => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
        // the blocks are read one after the other: a gauge may be a little below zero for a moment
        Kind::Gauge => encoder.encode_gauge(&i64::try_from(value).unwrap_or(0)),
    }
}

fn write_response_times(
    encoder: &mut DescriptorEncoder<'_>,
    snapshot: &Snapshot,
) -> Result<(), fmt::Error> {
    let mut encoder = encoder.encode_descriptor(
        RESPONSE_TIME,
        RESPONSE_TIME_HELP,
        Some(&Unit::Seconds),
        MetricType::Histogram,
    )?;
    for (source, times) in snapshot.response_times() {
        let labels = [("source", source)];
        Times(times).encode(encoder.encode_family(&labels)?)?;
    }
    Ok(())
}

fn write_hold_times(
    encoder: &mut DescriptorEncoder<'_>,
    snapshot: &Snapshot,
) -> Result<(), fmt::Error> {
    let encoder = encoder.encode_descriptor(
        HOLD_TIME,
        HOLD_TIME_HELP,
        Some(&Unit::Seconds),
        MetricType::Histogram,
    )?;
    Times(snapshot.hold_time()).encode(encoder)
}

struct Times<'s>(&'s HistogramSnapshot);

impl EncodeMetric for Times<'_> {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        let octaves = self.0.octaves();
        let buckets: [(f64, u64); OCTAVES] = std::array::from_fn(|index| {
            (
                octave_limit_us(index).map_or(f64::INFINITY, seconds),
                octaves[index],
            )
        });
        encoder.encode_histogram::<NoLabelSet>(
            seconds(self.0.sum_us),
            self.0.count(),
            &buckets,
            None,
        )
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 285 years")]
fn seconds(us: u64) -> f64 {
    us as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_measure::{Counters, Metric, Source, Verdict};

    fn text() -> String {
        let counters = Counters::new();
        counters.add(Metric::Requests(Verdict::Hit), 7);
        counters.add(Metric::BytesToClients, 99);
        counters.dec(Metric::ClientsOpen);
        counters.set(Metric::StoreUsedBytes, 4096);
        counters.record_response_time(Source::Store, 3);
        counters.record_response_time(Source::Store, 1_000_000_000);
        counters.record_hold_time(3);
        let snapshot = Snapshot::sum([&counters]);
        write(Format::OpenMetrics, snapshot, Reports::default()).expect("written")
    }

    #[test]
    fn metrics_text_shows_every_family_under_its_declared_name() {
        let text = text();
        let lines = [
            "# TYPE weir_requests counter",
            "weir_requests_total{verdict=\"hit\"} 7",
            "weir_requests_total{verdict=\"uri-miss\"} 0",
            "# UNIT weir_client_sent_bytes bytes",
            "weir_client_sent_bytes_total 99",
            "weir_store_used_bytes 4096",
            "weir_client_connections_open 0",
            "# TYPE weir_response_time_seconds histogram",
            "weir_response_time_seconds_count{source=\"store\"} 2",
            "weir_response_time_seconds_bucket{le=\"0.000002\",source=\"store\"} 0",
            "weir_response_time_seconds_bucket{le=\"0.000004\",source=\"store\"} 1",
            "weir_response_time_seconds_bucket{le=\"+Inf\",source=\"store\"} 2",
            "weir_hand_off_hold_seconds_bucket{le=\"0.000002\"} 0",
            "weir_hand_off_hold_seconds_bucket{le=\"0.000004\"} 1",
            "weir_hand_off_hold_seconds_count 1",
            "# EOF",
        ];
        for line in lines {
            assert!(
                text.lines().any(|found| found == line),
                "no `{line}` in\n{text}"
            );
        }
        for family in Metric::FAMILIES {
            assert!(
                text.contains(&format!("\n{}", family.name)),
                "{} is not shown",
                family.name
            );
        }
    }

    #[test]
    fn metrics_text_is_smaller_than_64_kib() {
        assert!(text().len() < 64 << 10);
    }
}
