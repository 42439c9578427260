//! The table of a record, as Markdown.

use super::Record;
use super::files::MadeTrace;
use super::hits::{Hits, HitsRun, POLICIES};
use super::logs::LogHits;
use super::packets::Packets;
use crate::process::child::RunCost;
use crate::record::markdown::{Target, line, ratio, row, table};
use weir_measure::float;

/// How far the hit ratio of a policy may be from the other's, in a whole of 1. FIFO and LRU are the
/// same algorithm everywhere; byte-capacity variants of the others differ in small things.
const RATIO_OFF_MAX: [(&str, f64); 2] = [("sieve", 0.005), ("s3-fifo", 0.01)];

/// How far it may be below the other's on a log.
const BELOW_ON_LOGS_MAX: f64 = 0.01;

pub(super) fn render(record: &Record) -> String {
    let mut out = format!(
        "## Simulation\n\n* {}, {} cores, load {}, {}\n* commit {}\n* {}\n",
        record.host.cpu,
        record.host.cores,
        record.host.load_average,
        record.begun,
        record.commit,
        record.command,
    );
    let figures = &record.figures;
    if let Some(hits) = &figures.hits {
        hits_table(&mut out, hits);
    }
    logs_table(&mut out, &figures.logs);
    let mut rows: Vec<String> = SCENARIOS
        .iter()
        .filter_map(|scenario| fastest(&figures.packets, scenario))
        .map(packets_row)
        .collect();
    if let Some(all) = all_three(&figures.packets) {
        rows.push(format!("| all three, one after the other | {all:.0} | | |"));
    }
    let title =
        "### Packets and connections: `modem-1997`, one thread, its processor time, rows at hand";
    let columns = "| scenario | requests/s | packets each | hit ratio |";
    table(&mut out, title, columns, rows);
    let rows = figures.memory.iter().map(|run| {
        let (seconds, mib) = (run.took.seconds, run.took.peak_rss_kib / 1024);
        format!("| {} | {} | {seconds:.1} | {mib} |", run.requests, run.keys)
    });
    let title = "### Memory: the proxy alone, requests drawn as they are needed";
    let columns = "| requests | targets at most | seconds | peak, MiB |";
    table(&mut out, title, columns, rows);
    if let Some(made) = &figures.made {
        made_table(&mut out, made);
    }
    let rows = figures.streamed.iter().map(|run| {
        row([
            run.policy.clone(),
            run.requests.to_string(),
            run.keys.to_string(),
            (run.file_bytes / 1_000_000).to_string(),
            cost(run.requests, &run.took),
        ])
    });
    let title = "### Long traces in a file: `weir sim hits`";
    let columns = "| policy | requests | keys | file, MB | seconds | requests/s | peak, MiB |";
    table(&mut out, title, columns, rows);
    out.push('\n');
    targets(record)
        .iter()
        .for_each(|target| line(&mut out, format_args!("* {target}")));
    out
}

fn hits_table(out: &mut String, hits: &Hits) {
    let rows = POLICIES.iter().filter_map(|&policy| {
        let (ours, theirs) = (best(hits.weir.get(policy))?, best(hits.others.get(policy)));
        let of = |value: &dyn Fn(HitsRun) -> String| theirs.map_or("-".to_owned(), value);
        let speed = |run: HitsRun| format!("{:.2}", run.millions_a_second());
        let hit_ratio = |run: HitsRun| format!("{:.6}", ratio(run.hits, run.requests));
        let times = |other: HitsRun| {
            let times = ours.millions_a_second() / other.millions_a_second();
            format!("{times:.2}")
        };
        Some(row([
            policy.to_owned(),
            speed(ours),
            of(&speed),
            of(&times),
            hit_ratio(ours),
            of(&hit_ratio),
            ours.hits.to_string(),
            of(&|other| other.hits.to_string()),
        ]))
    });
    let title = format!(
        "### Hits alone\n\n* {} requests for {} responses of {} bytes; cache {} bytes\n* libCacheSim: {}\n* processor time: of weir of the whole process, of libCacheSim of the simulation alone",
        hits.trace.requests,
        hits.trace.keys,
        hits.trace.footprint_bytes,
        hits.capacity_bytes,
        hits.libcachesim.as_deref().unwrap_or("not installed"),
    );
    let columns = "| policy | weir, M/s | libCacheSim, M/s | weir / libCacheSim | hit ratio | libCacheSim's | hits | libCacheSim's |";
    table(out, &title, columns, rows);
}

fn logs_table(out: &mut String, logs: &[LogHits]) {
    let rows = logs.iter().map(|run| {
        row([
            run.log.clone(),
            run.policy.clone(),
            run.capacity_bytes.to_string(),
            format!("{:.4}", ratio(run.hits, run.requests)),
            format!("{:.4}", ratio(run.other_hits, run.requests)),
            format!("{:+.4}", above(run)),
        ])
    });
    let title = "### Hit ratios on public logs, caches of 1, 2, 3, 5, 7 and 10 % of the footprint";
    let columns = "| log | policy | cache, bytes | weir | libCacheSim | weir - libCacheSim |";
    table(out, title, columns, rows);
}

/// By how much the hit ratio is above the other's.
fn above(run: &LogHits) -> f64 {
    ratio(run.hits, run.requests) - ratio(run.other_hits, run.requests)
}

fn packets_row(run: &Packets) -> String {
    let (rate, packets, ratio) = (run.requests_s(), run.packets_each, run.hit_ratio);
    format!(
        "| {} | {rate:.0} | {packets:.1} | {ratio:.3} |",
        run.scenario
    )
}

fn made_table(out: &mut String, made: &MadeTrace) {
    let rows = [
        ("`weir trace make`", &made.took),
        ("`weir trace stats`", &made.stats),
        ("`weir sim run`", &made.run),
    ]
    .map(|(what, took)| row([what, &cost(made.requests, took)]));
    let title = format!(
        "### A trace of {} requests, `{}`, {} bytes",
        made.requests, made.profile, made.file_bytes
    );
    table(out, &title, "| | seconds | requests/s | peak, MiB |", rows);
}

/// Three cells: seconds, requests a second, MiB at most.
fn cost(requests: u64, took: &RunCost) -> String {
    let rate = float(requests) / took.seconds.max(1e-9);
    let mib = took.peak_rss_kib / 1024;
    format!("{:.1} | {rate:.0} | {mib}", took.seconds)
}

/// The scenarios of the example, in its order.
const SCENARIOS: [&str; 3] = ["proxy", "proxy without caches", "no proxy"];

/// Requests a second, the proxy alone, on one core.
const PACKETS_MIN: f64 = 300_000.0;
/// So much more memory is no growth: what is under way, and tables that double.
const GROWTH_MAX: f64 = 1.25;
/// For a million requests made and written.
const MADE_MAX_S: f64 = 20.0;

/// A target for each of which there are figures.
pub(super) fn targets(record: &Record) -> Vec<Target> {
    let figures = &record.figures;
    let mut targets = figures.hits.as_ref().map_or_else(Vec::new, hits_targets);
    targets.extend(logs_targets(&figures.logs));
    if let Some(run) = fastest(&figures.packets, SCENARIOS[0]) {
        let rate = run.requests_s();
        let what = format!("packets: {rate:.0} requests a second, at least {PACKETS_MIN:.0}");
        targets.push(Target::new(what, rate >= PACKETS_MIN));
        let is_other = |other: &&Packets| other.scenario == run.scenario;
        let mut same = figures.packets.iter().filter(is_other);
        let what = "packets: every round has the same outcome".to_owned();
        let is_met = same.all(|other| other.outcome == run.outcome);
        targets.push(Target::new(what, is_met));
    }
    if let (Some(first), Some(last)) = (figures.memory.first(), figures.memory.last()) {
        // the first may not have met every target yet
        let second = figures.memory.get(1).unwrap_or(first);
        let growth = ratio(last.took.peak_rss_kib, second.took.peak_rss_kib);
        let times = last.requests / second.requests.max(1);
        let what = format!(
            "memory: {growth:.2} x for {times} x the requests of the same targets, at most {GROWTH_MAX}"
        );
        targets.push(Target::new(what, growth <= GROWTH_MAX));
    }
    if let Some(made) = figures.made.iter().find(|made| made.requests == 1_000_000) {
        let seconds = made.took.seconds;
        let what = format!("trace make: {seconds:.1} s, at most {MADE_MAX_S}");
        targets.push(Target::new(what, seconds <= MADE_MAX_S));
    }
    for (place, long) in figures.streamed.iter().enumerate() {
        let before = figures.streamed[..place].iter();
        let Some(short) = before.rev().find(|run| run.policy == long.policy) else {
            continue;
        };
        let growth = ratio(long.took.peak_rss_kib, short.took.peak_rss_kib);
        let times = long.requests / short.requests.max(1);
        let what = format!(
            "streamed, {}: {growth:.2} x the memory for {times} x the requests, at most {GROWTH_MAX}",
            long.policy
        );
        targets.push(Target::new(what, growth <= GROWTH_MAX));
    }
    targets
}

fn logs_targets(logs: &[LogHits]) -> Vec<Target> {
    let mut targets = Vec::new();
    for policy in ["s3-fifo", "sieve"] {
        let runs = logs.iter().filter(|run| run.policy == policy);
        let Some(least) = runs.min_by(|one, other| above(one).total_cmp(&above(other))) else {
            continue;
        };
        let below = -above(least);
        let what = format!(
            "logs, {policy}: hit ratio at most {below:.4} below that of libCacheSim ({}, {} bytes), at most {BELOW_ON_LOGS_MAX}",
            least.log, least.capacity_bytes
        );
        targets.push(Target::new(what, below <= BELOW_ON_LOGS_MAX));
    }
    targets
}

fn hits_targets(hits: &Hits) -> Vec<Target> {
    let of_policy = |policy: &str| {
        let (ours, theirs) = (best(hits.weir.get(policy))?, best(hits.others.get(policy))?);
        let times = ours.millions_a_second() / theirs.millions_a_second();
        let what = format!("{policy}: {times:.2} x the rate of libCacheSim, at least 1");
        let rate = Target::new(what, times >= 1.0);
        let off_max = RATIO_OFF_MAX.iter().find(|(name, _)| *name == policy);
        let Some((_, off_max)) = off_max else {
            let what = format!("{policy}: hits and hit bytes equal");
            let is_met = (ours.hits, ours.hit_bytes) == (theirs.hits, theirs.hit_bytes);
            return Some([rate, Target::new(what, is_met)]);
        };
        let hit_ratio = |run: HitsRun| ratio(run.hits, run.requests);
        let off = (hit_ratio(ours) - hit_ratio(theirs)).abs();
        let what = format!("{policy}: hit ratios {off:.4} apart, at most {off_max}");
        // both sides of a difference are rounded
        Some([rate, Target::new(what, off <= *off_max + 1e-9)])
    };
    POLICIES
        .into_iter()
        .filter_map(of_policy)
        .flatten()
        .collect()
}

/// The run of a scenario that took the least.
fn fastest<'r>(runs: &'r [Packets], scenario: &str) -> Option<&'r Packets> {
    let of = runs.iter().filter(|run| run.scenario == scenario);
    of.min_by(|one, other| one.cpu_seconds.total_cmp(&other.cpu_seconds))
}

/// Requests of the trace a second, if one thread makes all three runs.
fn all_three(runs: &[Packets]) -> Option<f64> {
    let all = SCENARIOS.map(|scenario| fastest(runs, scenario));
    let seconds = all.iter().map(|run| run.map(|run| run.cpu_seconds));
    let seconds: f64 = seconds.sum::<Option<f64>>()?;
    Some(float(all[0]?.requests) / seconds.max(1e-9))
}

/// The run that took the least: what disturbs a run only makes it longer.
fn best(runs: Option<&Vec<HitsRun>>) -> Option<HitsRun> {
    runs?.iter().copied().min_by_key(|run| run.cpu_us)
}

#[cfg(test)]
mod tests {
    use super::super::packets::Memory;
    use super::*;
    use crate::sim::record_of_defaults;

    fn run(hits: u64, cpu_us: u64) -> HitsRun {
        HitsRun {
            requests: 1000,
            hits,
            hit_bytes: hits * 10,
            cpu_us,
        }
    }

    fn met(policy: &str, ours: &[HitsRun], theirs: &[HitsRun]) -> Vec<bool> {
        let mut hits = Hits::default();
        for run in ours {
            hits.weir.entry(policy.to_owned()).or_default().push(*run);
        }
        for run in theirs {
            hits.others.entry(policy.to_owned()).or_default().push(*run);
        }
        let mut record = record_of_defaults();
        record.figures.hits = Some(hits);
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
            met("s3-fifo", &[run(510, 10)], &[run(500, 20)]),
            [true, true]
        );
        assert_eq!(
            met("s3-fifo", &[run(489, 10)], &[run(500, 20)]),
            [true, false]
        );
        assert_eq!(met("lru", &[run(500, 10)], &[]), [false; 0]);
    }

    #[test]
    fn policy_meets_its_target_on_logs_only_if_it_is_near_at_every_size() {
        let met = |others: [u64; 2]| {
            let mut record = record_of_defaults();
            record.figures.logs = others
                .iter()
                .map(|other_hits| LogHits {
                    log: "a log".to_owned(),
                    policy: "s3-fifo".to_owned(),
                    capacity_bytes: 1 << 20,
                    requests: 1000,
                    hits: 500,
                    other_hits: *other_hits,
                })
                .collect();
            assert!(render(&record).contains("a log"));
            let met = targets(&record).into_iter().map(|target| target.is_met);
            met.collect::<Vec<bool>>()
        };
        assert_eq!(met([400, 509]), [true]);
        assert_eq!(met([511, 500]), [false]);
    }

    #[test]
    fn simulation_meets_targets_only_when_fast_repeatable_and_bounded() {
        let met = |seconds: [f64; 2], peaks: [u64; 3]| {
            let mut record = record_of_defaults();
            for (round, seconds) in seconds.into_iter().enumerate() {
                record.figures.packets.push(Packets {
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
                let took = RunCost {
                    peak_rss_kib,
                    ..RunCost::default()
                };
                record.figures.memory.push(Memory {
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
