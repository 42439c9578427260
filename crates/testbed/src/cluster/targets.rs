//! What was agreed that a cluster reaches, and whether it does: the rows of the table.

use super::Record;
use super::parts::hand_off;
use super::parts::hit_ratio::{HitRatioRun, ONE_NODE};
use super::parts::hot::HotRun;
use super::parts::join::JoinRun;
use super::parts::kill::KillRun;
use super::parts::lateral::{LateralRun, Way};
use super::parts::purge::PurgeRun;
use super::parts::speed::SpeedRun;
use super::row::Row;
use super::system::{DEFAULT_POLICY, HAPROXY};
use crate::record::markdown::{Target, bytes, median, ratio};
use weir_measure::float;
use weir_measure::quantile::Spread;

/// Points of a hit ratio that a cluster may have less than one node with all the memory.
const POINTS_MAX: f64 = 1.0;

/// Its origin requests beside those of one node.
const ORIGIN_RATIO_MAX: f64 = 1.02;

const SPEED_RATIO_MIN: f64 = 1.0;

/// Origin requests when a node joins, beside those with HAProxy.
const JOIN_RATIO_MAX: f64 = 0.5;

/// Requests of the busiest node beside the mean of all.
const BUSIEST_MAX: f64 = 1.25;

const REPLICATED_MS_MAX: f64 = 1000.0;

/// Read-ahead of two nodes beside that of one.
const READ_AHEAD_RATIO_MAX: f64 = 2.0;

const CHOICE_NS_MAX: u64 = 1000;

const LATERAL_US_MAX: f64 = 40.0;

/// How many rows there are where all was measured but hand-off.
pub(super) const ROWS: usize = 12;

type MakeRow = fn(&Record) -> Option<Row>;

const ALL: [MakeRow; ROWS] = [
    hit_ratio,
    hit_ratio_origin_requests,
    throughput,
    join,
    busiest,
    replicated,
    herd,
    read_ahead,
    failed_requests,
    origin_requests_of_death,
    choice,
    lateral,
];

/// The rows for which there are figures.
pub(super) fn rows(record: &Record) -> Vec<Row> {
    let mut rows = rows_without_root(record);
    rows.extend(hand_off::table::rows(&record.figures.hand_offs));
    rows
}

/// The same without those of hand-off.
pub(super) fn rows_without_root(record: &Record) -> Vec<Row> {
    ALL.iter().filter_map(|make| make(record)).collect()
}

/// The same as targets.
pub(super) fn judge(record: &Record) -> Vec<Target> {
    let rows = rows(record).into_iter();
    let target = |row: Row| {
        let what = format!(
            "{}: {}, to reach: {}",
            row.figure, row.reached, row.to_reach
        );
        Target::new(what, row.is_met)
    };
    rows.map(target).collect()
}

/// Numbers of the runs of a system.
pub(super) fn hit_ratios(
    record: &Record,
    system: &str,
    number: impl Fn(&HitRatioRun) -> f64,
) -> Option<Spread> {
    let runs = record.figures.hit_ratios.iter();
    Spread::of(runs.filter(|run| run.system == system).map(number))
}

/// The same.
pub(super) fn speeds(
    record: &Record,
    system: &str,
    number: impl Fn(&SpeedRun) -> f64,
) -> Option<Spread> {
    let runs = record.figures.speeds.iter();
    Spread::of(runs.filter(|run| run.system == system).map(number))
}

/// The same.
pub(super) fn joins(record: &Record, system: &str) -> Option<Spread> {
    let runs = record.figures.joins.iter();
    let runs = runs.filter(|run| run.system == system);
    Spread::of(runs.map(|run: &JoinRun| float(run.origin_requests)))
}

/// The same.
pub(super) fn hots(
    record: &Record,
    system: &str,
    number: impl Fn(&HotRun) -> f64,
) -> Option<Spread> {
    let runs = record.figures.hots.iter();
    Spread::of(runs.filter(|run| run.system == system).map(number))
}

/// CPU time of a hit.
pub(super) fn laterals(record: &Record, way: Way) -> Option<Spread> {
    let runs = record.figures.laterals.iter();
    let runs = runs.filter(|run| run.way == way);
    Spread::of(runs.map(LateralRun::cpu_us_per_request))
}

/// Numbers of the runs of a cluster of so many nodes.
pub(super) fn purges(
    record: &Record,
    nodes: u64,
    number: impl Fn(&PurgeRun) -> f64,
) -> Option<Spread> {
    let runs = record.figures.purges.iter();
    Spread::of(runs.filter(|run| run.nodes == nodes).map(number))
}

fn hit_ratio(record: &Record) -> Option<Row> {
    let percent = |system| Some(hit_ratios(record, system, HitRatioRun::hit_percent)?.median);
    let (cluster, one) = (percent(DEFAULT_POLICY)?, percent(ONE_NODE)?);
    Some(Row {
        figure: "three nodes with a third of the memory each: hit ratio",
        to_reach: format!("that of one node with all of it, within {POINTS_MAX} point"),
        reached: format!("{cluster:.2} %, one node {one:.2} %"),
        is_met: cluster >= one - POINTS_MAX,
    })
}

fn hit_ratio_origin_requests(record: &Record) -> Option<Row> {
    let requests = |run: &HitRatioRun| float(run.origin_requests_of_all);
    let count = |system| Some(hit_ratios(record, system, requests)?.median);
    let (cluster, one) = (count(DEFAULT_POLICY)?, count(ONE_NODE)?);
    Some(Row {
        figure: "the same: origin requests, from empty nodes on",
        to_reach: format!("at most {ORIGIN_RATIO_MAX} × those of one node"),
        reached: format!("{:.3} × ({cluster:.0}, one node {one:.0})", cluster / one),
        is_met: cluster <= one * ORIGIN_RATIO_MAX,
    })
}

fn throughput(record: &Record) -> Option<Row> {
    let number = SpeedRun::requests_per_cpu_second;
    let of = |system| Some(speeds(record, system, number)?.median);
    let (cluster, haproxy) = (of(DEFAULT_POLICY)?, of(HAPROXY.name)?);
    Some(Row {
        figure: "beside HAProxy: requests a second of CPU time, of all processes",
        to_reach: "at least as many".to_owned(),
        reached: format!(
            "{:.2} × ({cluster:.0}, HAProxy {haproxy:.0})",
            cluster / haproxy
        ),
        is_met: cluster >= haproxy * SPEED_RATIO_MIN,
    })
}

fn join(record: &Record) -> Option<Row> {
    let of = |system| Some(joins(record, system)?.median);
    let (cluster, haproxy) = (of(DEFAULT_POLICY)?, of(HAPROXY.name)?);
    Some(Row {
        figure: "beside HAProxy: origin requests when a node joins",
        to_reach: format!("at most {JOIN_RATIO_MAX} × as many"),
        reached: format!("{cluster:.0}, HAProxy {haproxy:.0}"),
        is_met: cluster <= haproxy * JOIN_RATIO_MAX,
    })
}

fn busiest(record: &Record) -> Option<Row> {
    let of = |system| Some(hots(record, system, HotRun::busiest)?.median);
    let cluster = of(DEFAULT_POLICY)?;
    let haproxy = of(HAPROXY.name).map_or_else(String::new, |it| format!(", HAProxy {it:.2} ×"));
    Some(Row {
        figure: "30 % of requests for one URL: requests of the busiest node",
        to_reach: format!("at most {BUSIEST_MAX} × the mean"),
        reached: format!("{cluster:.2} ×{haproxy}"),
        is_met: cluster <= BUSIEST_MAX,
    })
}

fn replicated(record: &Record) -> Option<Row> {
    let runs = || {
        let runs = record.figures.hots.iter();
        runs.filter(|run| run.system == DEFAULT_POLICY)
    };
    let ms = |run: &HotRun| float(run.last_fetched_ms.unwrap_or_default());
    let replicated_ms = median(runs().map(ms))?;
    Some(Row {
        figure: "the same: all nodes have it, after",
        to_reach: format!("at most {REPLICATED_MS_MAX} ms"),
        reached: format!("{replicated_ms:.0} ms"),
        is_met: replicated_ms <= REPLICATED_MS_MAX && runs().all(HotRun::is_replicated),
    })
}

fn herd(record: &Record) -> Option<Row> {
    let herd = record.figures.herd.as_ref()?;
    let (clients, whole, fetches) = (herd.clients, herd.whole, herd.fetches);
    Some(Row {
        figure: "clients of four nodes that request one cold URL at once",
        to_reach: "one origin request".to_owned(),
        reached: format!("{fetches}, for {clients} clients, of which {whole} were served"),
        is_met: fetches == 1 && whole == clients,
    })
}

fn read_ahead(record: &Record) -> Option<Row> {
    let largest = |nodes| {
        let all = record.figures.read_aheads.iter();
        let these = all.filter(|it| it.nodes == nodes);
        these.map(|it| it.read_ahead.largest_bytes).max()
    };
    let (one, two) = (largest(1)?, largest(2)?);
    let beside = ratio(two, one);
    Some(Row {
        figure: "read-ahead over a client of 50 KB/s, through two nodes",
        to_reach: format!("at most {READ_AHEAD_RATIO_MAX} × that of one"),
        reached: format!("{beside:.2} × ({}, one node {})", bytes(two), bytes(one)),
        is_met: beside <= READ_AHEAD_RATIO_MAX,
    })
}

fn kills(record: &Record) -> Option<&[KillRun]> {
    let kills = record.figures.kills.as_slice();
    (!kills.is_empty()).then_some(kills)
}

fn failed_requests(record: &Record) -> Option<Row> {
    let kills = kills(record)?;
    let there = kills.iter().map(|run| run.failed_there).sum::<u64>();
    let elsewhere = kills.iter().map(|run| run.failed_elsewhere).sum::<u64>();
    let requests = kills.iter().map(|run| run.requests).sum::<u64>();
    Some(Row {
        figure: "a node is killed under load: failed requests",
        to_reach: "those it was answering".to_owned(),
        reached: format!("{there}, and {elsewhere} others, of {requests}"),
        is_met: elsewhere == 0 && kills.iter().all(KillRun::fails_what_was_there),
    })
}

fn origin_requests_of_death(record: &Record) -> Option<Row> {
    let kills = kills(record)?;
    let of = |number: fn(&KillRun) -> u64| median(kills.iter().map(|run| float(number(run))));
    let first = of(|run| run.origin_requests[0])?;
    let second = of(|run| run.origin_requests[1])?;
    let stored = of(|run| run.stored_there)?;
    Some(Row {
        figure: "the same: origin requests after it",
        to_reach: "what the node had stored, once".to_owned(),
        reached: format!("{first:.0}, then {second:.0}; {stored:.0} were stored there"),
        is_met: kills.iter().all(KillRun::asks_once),
    })
}

impl KillRun {
    /// Each client may have had one request at the node, and one more on a connection that the
    /// kernel still accepted for it.
    fn fails_what_was_there(&self) -> bool {
        self.failed_there <= 2 * self.connections_there
    }

    fn asks_once(&self) -> bool {
        self.origin_requests.iter().sum::<u64>() <= self.stored_there
    }
}

fn choice(record: &Record) -> Option<Row> {
    let choices = &record.figures.choices;
    let default = choices.iter().find(|it| it.policy == DEFAULT_POLICY)?;
    let slowest = choices.iter().max_by_key(|it| it.ns_of_64_nodes)?;
    let (ns, most) = (default.ns_of_64_nodes, slowest.ns_of_64_nodes);
    let slowest = &slowest.policy;
    Some(Row {
        figure: "a choice among 64 nodes",
        to_reach: format!("below {CHOICE_NS_MAX} ns, without an allocation"),
        reached: format!("{ns} ns; of all policies at most {most} ns ({slowest})"),
        is_met: most < CHOICE_NS_MAX,
    })
}

fn lateral(record: &Record) -> Option<Row> {
    let us = laterals(record, Way::Lateral)?.median;
    let of = |way: Way| {
        let us = laterals(record, way)?.median;
        Some(format!(", {} {us:.1} us", way.name()))
    };
    let others = [Way::LateralWithoutSecret, Way::Own, Way::HaProxy];
    let others: String = others.into_iter().filter_map(of).collect();
    Some(Row {
        figure: "CPU time of a hit of 1 KiB at another node, of both",
        to_reach: format!("at most {LATERAL_US_MAX} us"),
        reached: format!("{us:.1} us{others}"),
        is_met: us <= LATERAL_US_MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::super::parts::choice::ChoiceTime;
    use super::*;

    fn record() -> Record {
        serde_json::from_str(
            r#"{"schema":1,"command":"cargo xtask cluster","seed":"1","commit":"none","begun":"now",
            "host":{"cpu":"c","cores":2,"kernel":"6","load_average":"0","memory_kib":"1"},
            "settings":{"parts":["choice"],"rounds":1,"scale":1.0,"seed":1,"weir":null},
            "cores":{"server":0,"load":1},"hit_ratios":[],"speeds":[],"joins":[],"hots":[],
            "herd":null,"read_aheads":[],"kills":[],"laterals":[],"choices":[]}"#,
        )
        .expect("a record")
    }

    fn check(record: &Record, figure: &str, is_met: bool) {
        let rows = rows(record);
        let row = rows.iter().find(|row| row.figure.contains(figure));
        let row = row.unwrap_or_else(|| panic!("no row of {figure} in {rows:?}"));
        assert_eq!(row.is_met, is_met, "{row:?}");
    }

    fn ratio_run(system: &str, origin_requests: u64) -> HitRatioRun {
        HitRatioRun {
            round: 1,
            system: system.to_owned(),
            targets: 100,
            requests: 10_000,
            origin_requests,
            origin_requests_of_all: origin_requests,
        }
    }

    #[test]
    fn row_is_there_only_if_it_was_measured() {
        assert_eq!(rows(&record()), []);
    }

    #[test]
    fn hit_ratio_is_met_to_one_point_and_origin_requests_to_two_percent() {
        for (origin_requests, is_ratio_met, is_count_met) in [
            (1000, true, true),
            (1020, true, true),
            (1100, true, false),
            (1101, false, false),
        ] {
            let mut record = record();
            record.figures.hit_ratios = vec![
                ratio_run(ONE_NODE, 1000),
                ratio_run(DEFAULT_POLICY, origin_requests),
            ];
            check(&record, "hit ratio", is_ratio_met);
            check(&record, "origin requests, from empty", is_count_met);
        }
    }

    #[test]
    fn speed_is_met_at_that_of_the_front_end() {
        let run = |system: &str, cpu_us| SpeedRun {
            round: 1,
            system: system.to_owned(),
            requests: 1000,
            duration_us: 1,
            cpu_us,
            hits_here: 0,
            origin_requests: 0,
        };
        for (cpu_us, is_met) in [(30_000, true), (30_100, false)] {
            let mut record = record();
            record.figures.speeds = vec![run(HAPROXY.name, 30_000), run(DEFAULT_POLICY, cpu_us)];
            check(&record, "CPU time, of all processes", is_met);
        }
    }

    #[test]
    fn join_is_met_at_half_of_the_origin_requests() {
        let run = |system: &str, origin_requests| JoinRun {
            round: 1,
            system: system.to_owned(),
            targets: 2000,
            requests: 12_000,
            origin_requests,
        };
        for (origin_requests, is_met) in [(250, true), (251, false)] {
            let mut record = record();
            record.figures.joins =
                vec![run(HAPROXY.name, 500), run(DEFAULT_POLICY, origin_requests)];
            check(&record, "when a node joins", is_met);
        }
    }

    #[test]
    fn hot_target_is_judged_by_the_busiest_node_and_by_its_last_fetch() {
        for (busiest_served, last_ms, is_busiest_met, is_replicated_met) in [
            (125, 1000, true, true),
            (126, 1001, false, false),
            // it is fetched to the end
            (100, 4900, true, false),
        ] {
            let rest = (400 - busiest_served) / 3;
            let last = 400 - busiest_served - 2 * rest;
            let mut record = record();
            record.figures.hots = vec![HotRun {
                round: 1,
                system: DEFAULT_POLICY.to_owned(),
                requests: 400,
                hot_requests: 120,
                lasts_ms: 5000,
                served: vec![busiest_served, rest, rest, last],
                cpu_us: vec![1; 4],
                last_fetched_ms: Some(last_ms),
            }];
            check(&record, "busiest", is_busiest_met);
            check(&record, "all nodes have it", is_replicated_met);
        }
    }

    #[test]
    fn killed_node_may_fail_what_it_was_answering_and_nothing_else() {
        let run = KillRun {
            round: 1,
            targets: 2000,
            stored_there: 600,
            requests: 10_000,
            connections_there: 6,
            failed_there: 12,
            failed_elsewhere: 0,
            origin_requests: [599, 1],
        };
        let check = |change: fn(&mut KillRun), is_failed_met, is_origin_met| {
            let mut record = record();
            let mut run = run.clone();
            change(&mut run);
            record.figures.kills = vec![run];
            check(&record, "failed requests", is_failed_met);
            check(&record, "origin requests after it", is_origin_met);
        };
        check(|_| (), true, true);
        check(|run| run.failed_elsewhere = 1, false, true);
        check(|run| run.failed_there = 13, false, true);
        check(|run| run.origin_requests = [600, 1], true, false);
    }

    #[test]
    fn choice_is_met_below_a_microsecond_for_every_policy() {
        let time = |policy: &str, ns_of_64_nodes| ChoiceTime {
            policy: policy.to_owned(),
            ns_of_16_nodes: 1,
            ns_of_64_nodes,
        };
        for (ns, is_met) in [(999, true), (1000, false)] {
            let mut record = record();
            record.figures.choices = vec![time(DEFAULT_POLICY, 200), time("lard", ns)];
            check(&record, "a choice", is_met);
        }
    }

    #[test]
    fn lateral_hit_is_met_at_40_us() {
        for (cpu_us, is_met) in [(40_000, true), (40_100, false)] {
            let mut record = record();
            record.figures.laterals = vec![LateralRun {
                round: 1,
                way: Way::Lateral,
                requests: 1000,
                cpu_us,
            }];
            check(&record, "at another node", is_met);
        }
    }
}
