//! The table of a record, as Markdown.

use super::POLICIES;
use super::record::{Measured, Record};

/// How far the hit ratio of a policy may be from the other's, in a whole of 1. FIFO and LRU are the same algorithm everywhere;
/// byte-capacity variants of the others differ in small things.
const RATIO_OFF_MAX: [(&str, f64); 2] = [("sieve", 0.005), ("s3-fifo", 0.02)];

/// What is wanted, and whether it is so.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) is_met: bool,
}

pub(crate) fn render(record: &Record) -> String {
    let mut out = format!(
        "## Hits-only simulation\n\n* {}, {} cores, {}\n* commit {}, {}\n* {}\n* {} requests for {} responses of {} bytes; cache {} bytes\n* libCacheSim: {}\n\n",
        record.host.cpu,
        record.host.cores,
        record.begun,
        record.commit,
        record.command,
        record.libcachesim.as_ref().map_or("processor time of the process", |_| {
            "processor time; of weir of the whole process, of libCacheSim of the simulation alone"
        }),
        record.trace.requests,
        record.trace.keys,
        record.trace.footprint_bytes,
        record.capacity_bytes,
        record.libcachesim.as_deref().unwrap_or("not installed"),
    );
    out.push_str("| policy | weir, M/s | libCacheSim, M/s | weir / libCacheSim | hit ratio | libCacheSim's | hits | libCacheSim's |\n");
    out.push_str("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for policy in POLICIES {
        let (ours, theirs) = (
            best(record.weir.get(policy)),
            best(record.others.get(policy)),
        );
        let Some(ours) = ours else { continue };
        let speed = |run: Measured| format!("{:.2}", run.millions_a_second());
        let of = |value: fn(Measured) -> String| theirs.map_or_else(|| "-".to_owned(), value);
        let times = theirs.map_or_else(
            || "-".to_owned(),
            |other| {
                format!(
                    "{:.2}",
                    ours.millions_a_second() / other.millions_a_second()
                )
            },
        );
        out.push_str(&format!(
            "| {policy} | {} | {} | {times} | {:.6} | {} | {} | {} |\n",
            speed(ours),
            theirs.map_or_else(|| "-".to_owned(), speed),
            ratio(ours),
            of(|other| format!("{:.6}", ratio(other))),
            ours.hits,
            of(|other| other.hits.to_string()),
        ));
    }
    out.push('\n');
    for target in targets(record) {
        let met = if target.is_met { "met" } else { "MISSED" };
        out.push_str(&format!("* {}: {met}\n", target.what));
    }
    out
}

/// A line for each target of which there are figures.
pub(crate) fn targets(record: &Record) -> Vec<Target> {
    let mut targets = Vec::new();
    for policy in POLICIES {
        let (ours, theirs) = (
            best(record.weir.get(policy)),
            best(record.others.get(policy)),
        );
        let Some((ours, theirs)) = ours.zip(theirs) else {
            continue;
        };
        let times = ours.millions_a_second() / theirs.millions_a_second();
        targets.push(Target {
            what: format!("{policy}: {times:.2} x the rate of libCacheSim, at least 1"),
            is_met: times >= 1.0,
        });
        let off_max = RATIO_OFF_MAX.iter().find(|(name, _)| *name == policy);
        targets.push(match off_max {
            None => Target {
                what: format!("{policy}: hits and hit bytes equal"),
                is_met: (ours.hits, ours.hit_bytes) == (theirs.hits, theirs.hit_bytes),
            },
            Some((_, off_max)) => {
                let off = (ratio(ours) - ratio(theirs)).abs();
                Target {
                    what: format!("{policy}: hit ratios {off:.4} apart, at most {off_max}"),
                    // both sides of a difference are rounded
                    is_met: off <= *off_max + 1e-9,
                }
            }
        });
    }
    targets
}

/// The run that took the least: what disturbs a run only makes it longer.
fn best(runs: Option<&Vec<Measured>>) -> Option<Measured> {
    runs?.iter().copied().min_by_key(|run| run.cpu_us)
}

#[expect(clippy::cast_precision_loss, reason = "printed with six digits")]
fn ratio(run: Measured) -> f64 {
    run.hits as f64 / run.requests.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::options::Options;
    use super::super::record::Whole;
    use super::*;

    fn run(hits: u64, cpu_us: u64) -> Measured {
        Measured {
            requests: 1000,
            hits,
            hit_bytes: hits * 10,
            cpu_us,
        }
    }

    fn met(policy: &str, ours: &[Measured], theirs: &[Measured]) -> Vec<bool> {
        let mut record = Record::begin(&Options::default(), &[], &Whole::default(), 5, None);
        for run in ours {
            record.add_ours(policy, *run);
        }
        for run in theirs {
            record.add_theirs(policy, *run);
        }
        assert!(render(&record).contains(policy));
        targets(&record)
            .iter()
            .map(|target| target.is_met)
            .collect()
    }

    #[test]
    fn slower_or_other_counts_meet_a_target() {
        assert_eq!(
            met("lru", &[run(500, 10), run(500, 30)], &[run(500, 20)]),
            [true, true]
        );
        assert_eq!(met("lru", &[run(500, 21)], &[run(500, 20)]), [false, true]);
        assert_eq!(met("lru", &[run(501, 10)], &[run(500, 20)]), [true, false]);
        assert_eq!(met("sieve", &[run(505, 10)], &[run(500, 20)]), [true, true]);
        assert_eq!(
            met("sieve", &[run(506, 10)], &[run(500, 20)]),
            [true, false]
        );
        assert_eq!(
            met("s3-fifo", &[run(520, 10)], &[run(500, 20)]),
            [true, true]
        );
        assert_eq!(
            met("s3-fifo", &[run(479, 10)], &[run(500, 20)]),
            [true, false]
        );
        assert_eq!(met("lru", &[run(500, 10)], &[]), [false; 0]);
    }
}
