//! The table of a record, as Markdown.

use super::POLICIES;
use super::child::Took;
use super::files::Made;
use super::packets::Packets;
use super::record::{Hits, Measured, Record};

/// How far the hit ratio of a policy may be from the other's, in a whole of 1. FIFO and LRU are the
/// same algorithm everywhere; byte-capacity variants of the others differ in small things.
const RATIO_OFF_MAX: [(&str, f64); 2] = [("sieve", 0.005), ("s3-fifo", 0.02)];

/// What is wanted, and whether it is so.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) is_met: bool,
}

pub(crate) fn render(record: &Record) -> String {
    let mut out = format!(
        "## Simulation\n\n* {}, {} cores, load {}, {}\n* commit {}\n* {}\n\n",
        record.host.cpu,
        record.host.cores,
        record.host.load_average,
        record.begun,
        record.commit,
        record.command,
    );
    if let Some(hits) = &record.hits {
        out.push_str(&hits_table(hits));
    }
    if !record.packets.is_empty() {
        out.push_str(&packets_table(record));
    }
    if !record.memory.is_empty() {
        out.push_str(&memory_table(record));
    }
    if let Some(made) = &record.made {
        out.push_str(&made_table(made));
    }
    if !record.streamed.is_empty() {
        out.push_str(&streamed_table(record));
    }
    for target in targets(record) {
        let met = if target.is_met { "met" } else { "MISSED" };
        out.push_str(&format!("* {}: {met}\n", target.what));
    }
    out
}

fn hits_table(hits: &Hits) -> String {
    let mut out = format!(
        "### Hits alone\n\n* {} requests for {} responses of {} bytes; cache {} bytes\n* libCacheSim: {}\n* processor time: of weir of the whole process, of libCacheSim of the simulation alone\n\n",
        hits.trace.requests,
        hits.trace.keys,
        hits.trace.footprint_bytes,
        hits.capacity_bytes,
        hits.libcachesim.as_deref().unwrap_or("not installed"),
    );
    out.push_str("| policy | weir, M/s | libCacheSim, M/s | weir / libCacheSim | hit ratio | libCacheSim's | hits | libCacheSim's |\n");
    out.push_str("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for policy in POLICIES {
        let (ours, theirs) = (best(hits.weir.get(policy)), best(hits.others.get(policy)));
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
    out
}

fn packets_table(record: &Record) -> String {
    let mut out = "### Packets and connections: `modem-1997`, one thread, its processor time, rows at hand\n\n| scenario | requests/s | packets each | hit ratio |\n| --- | ---: | ---: | ---: |\n".to_owned();
    for scenario in SCENARIOS {
        if let Some(run) = fastest(&record.packets, scenario) {
            out.push_str(&format!(
                "| {scenario} | {:.0} | {:.1} | {:.3} |\n",
                run.requests_s(),
                run.packets_each,
                run.hit_ratio
            ));
        }
    }
    if let Some(all) = all_three(&record.packets) {
        out.push_str(&format!(
            "| all three, one after the other | {all:.0} | | |\n"
        ));
    }
    out.push('\n');
    out
}

fn memory_table(record: &Record) -> String {
    let mut out = "### Memory: the proxy alone, requests drawn as they are needed\n\n| requests | targets at most | seconds | peak, MiB |\n| ---: | ---: | ---: | ---: |\n".to_owned();
    for run in &record.memory {
        out.push_str(&format!(
            "| {} | {} | {:.1} | {} |\n",
            run.requests,
            run.keys,
            run.took.seconds,
            run.took.peak_rss_kib / 1024
        ));
    }
    out.push('\n');
    out
}

fn made_table(made: &Made) -> String {
    let mut out = format!(
        "### A trace of {} requests, `{}`, {} bytes\n\n| | seconds | requests/s | peak, MiB |\n| --- | ---: | ---: | ---: |\n",
        made.requests, made.profile, made.file_bytes
    );
    for (what, took) in [
        ("`weir trace make`", &made.took),
        ("`weir trace stats`", &made.stats),
        ("`weir sim run`", &made.run),
    ] {
        out.push_str(&format!(
            "| {what} | {:.1} | {:.0} | {} |\n",
            took.seconds,
            rate(made.requests, took),
            took.peak_rss_kib / 1024
        ));
    }
    out.push('\n');
    out
}

fn streamed_table(record: &Record) -> String {
    let mut out = "### Long traces in a file: `weir sim hits`\n\n| policy | requests | keys | file, MB | seconds | requests/s | peak, MiB |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n".to_owned();
    for run in &record.streamed {
        out.push_str(&format!(
            "| {} | {} | {} | {} | {:.1} | {:.0} | {} |\n",
            run.policy,
            run.requests,
            run.keys,
            run.file_bytes / 1_000_000,
            run.took.seconds,
            rate(run.requests, &run.took),
            run.took.peak_rss_kib / 1024
        ));
    }
    out.push('\n');
    out
}

/// The scenarios of the example, in its order.
const SCENARIOS: [&str; 3] = ["proxy", "proxy without caches", "no proxy"];

/// Requests a second, the proxy alone, on one core.
const PACKETS_MIN: f64 = 300_000.0;
/// So much more memory is no growth: what is under way, and tables that double.
const GROWTH_MAX: f64 = 1.25;
/// For a million requests made and written.
const MADE_MAX_S: f64 = 20.0;

/// A line for each target of which there are figures.
pub(crate) fn targets(record: &Record) -> Vec<Target> {
    let mut targets = record.hits.as_ref().map_or_else(Vec::new, hits_targets);
    if let Some(run) = fastest(&record.packets, SCENARIOS[0]) {
        let rate = run.requests_s();
        targets.push(Target {
            what: format!("packets: {rate:.0} requests a second, at least {PACKETS_MIN:.0}"),
            is_met: rate >= PACKETS_MIN,
        });
        let others = |other: &&Packets| other.scenario == run.scenario;
        let mut same = record.packets.iter().filter(others);
        targets.push(Target {
            what: "packets: every round has the same outcome".to_owned(),
            is_met: same.all(|other| other.outcome == run.outcome),
        });
    }
    if let (Some(first), Some(last)) = (record.memory.first(), record.memory.last()) {
        // the first may not have met every target yet
        let second = record.memory.get(1).unwrap_or(first);
        let growth = times(last.took.peak_rss_kib, second.took.peak_rss_kib);
        targets.push(Target {
            what: format!(
                "memory: {growth:.2} x for {} x the requests of the same targets, at most {GROWTH_MAX}",
                last.requests / second.requests.max(1)
            ),
            is_met: growth <= GROWTH_MAX,
        });
    }
    if let Some(made) = record
        .made
        .as_ref()
        .filter(|made| made.requests == 1_000_000)
    {
        targets.push(Target {
            what: format!(
                "trace make: {:.1} s, at most {MADE_MAX_S}",
                made.took.seconds
            ),
            is_met: made.took.seconds <= MADE_MAX_S,
        });
    }
    for (place, long) in record.streamed.iter().enumerate() {
        let before = record.streamed[..place].iter();
        let Some(short) = before.rev().find(|run| run.policy == long.policy) else {
            continue;
        };
        let growth = times(long.took.peak_rss_kib, short.took.peak_rss_kib);
        targets.push(Target {
            what: format!(
                "streamed, {}: {growth:.2} x the memory for {} x the requests, at most {GROWTH_MAX}",
                long.policy,
                long.requests / short.requests.max(1)
            ),
            is_met: growth <= GROWTH_MAX,
        });
    }
    targets
}

fn hits_targets(hits: &Hits) -> Vec<Target> {
    let mut targets = Vec::new();
    for policy in POLICIES {
        let (ours, theirs) = (best(hits.weir.get(policy)), best(hits.others.get(policy)));
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

/// The run of a scenario that took the least.
fn fastest<'r>(runs: &'r [Packets], scenario: &str) -> Option<&'r Packets> {
    let of = runs.iter().filter(|run| run.scenario == scenario);
    of.min_by(|one, other| one.cpu_seconds.total_cmp(&other.cpu_seconds))
}

/// Requests of the trace a second, if one thread makes all three runs.
#[expect(clippy::cast_precision_loss, reason = "printed in thousands")]
fn all_three(runs: &[Packets]) -> Option<f64> {
    let all = SCENARIOS.map(|scenario| fastest(runs, scenario));
    let seconds = all.iter().map(|run| run.map(|run| run.cpu_seconds));
    let seconds: f64 = seconds.sum::<Option<f64>>()?;
    Some(all[0]?.requests as f64 / seconds.max(1e-9))
}

#[expect(clippy::cast_precision_loss, reason = "printed in thousands")]
fn rate(requests: u64, took: &Took) -> f64 {
    requests as f64 / took.seconds.max(1e-9)
}

#[expect(clippy::cast_precision_loss, reason = "printed with three digits")]
fn times(whole: u64, of: u64) -> f64 {
    whole as f64 / of.max(1) as f64
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
    use super::super::packets::Memory;
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
        let mut hits = Hits::default();
        for run in ours {
            hits.add_ours(policy, *run);
        }
        for run in theirs {
            hits.add_theirs(policy, *run);
        }
        let mut record = Record::begin(&Options::default(), &[]);
        record.hits = Some(hits);
        assert!(render(&record).contains(policy));
        targets(&record)
            .iter()
            .map(|target| target.is_met)
            .collect()
    }

    #[test]
    fn policy_meets_targets_only_when_as_fast_and_within_hit_tolerance() {
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

    #[test]
    fn simulation_meets_targets_only_when_fast_repeatable_and_bounded() {
        let met = |seconds: [f64; 2], peaks: [u64; 3]| {
            let mut record = Record::begin(&Options::default(), &[]);
            for (round, seconds) in seconds.into_iter().enumerate() {
                record.packets.push(Packets {
                    scenario: "proxy".to_owned(),
                    requests: 300_000,
                    seconds: 2.0 * seconds,
                    cpu_seconds: seconds,
                    packets_each: 8.0,
                    hit_ratio: 0.3,
                    stored: 1,
                    outcome: if round == 1 && seconds > 5.0 {
                        "b"
                    } else {
                        "a"
                    }
                    .to_owned(),
                });
            }
            for (place, peak_rss_kib) in peaks.into_iter().enumerate() {
                let took = Took {
                    peak_rss_kib,
                    ..Took::default()
                };
                record.memory.push(Memory {
                    requests: 1000 << (2 * place),
                    keys: 10,
                    took,
                });
            }
            assert!(render(&record).contains("requests/s"));
            let met = targets(&record).into_iter().map(|target| target.is_met);
            met.collect::<Vec<bool>>()
        };
        assert_eq!(met([1.0, 2.0], [50, 100, 125]), [true, true, true]);
        assert_eq!(met([1.1, 2.0], [50, 100, 126]), [false, true, false]);
        assert_eq!(met([1.0, 9.0], [100, 100, 100]), [true, false, true]);
    }
}
