//! The tables of a record, as Markdown, and what is to be reached.

use super::Record;
use super::node_kind::NodeKind;
use super::responses::Http;
use super::run::{Run, RunKind};
use super::systems::{SYSTEMS, System};
use crate::record::markdown::{self, COULD_NOT, TARGETS, Target, list, median, ratio, row, table};

/// Rows of the table of a whole record.
pub(super) const ROWS: usize = 4;

const OVER_WRR_MIN: f64 = 3.5;
const LOSS_PERCENT_MIN: f64 = 20.0;

/// Nodes of the figures that are to be reached.
const NODES: usize = 6;

/// What is to be reached beside what was reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) figure: &'static str,
    to_reach: String,
    reached: String,
    /// `None`: it is reported alone.
    is_met: Option<bool>,
}

pub(super) fn render(record: &Record) -> String {
    let (settings, figures) = (&record.settings, &record.figures);
    let (cores, trace, memory) = (&figures.cores, &figures.trace, &figures.memory);
    let mut out = format!(
        "{}\\\n{} rounds of {} s, seed {}; nodes and front end on core {}, clients and origin on \
         core {}\\\n{}: {} requests on {} connections for {} targets of {:.0} MB; each node with \
         {} MiB for content, in a group of {} MiB (nginx: {} MiB), and {} reads a second\n\n",
        markdown::origin(record, "\\\n"),
        settings.rounds,
        settings.seconds,
        settings.seed,
        cores.server,
        cores.load,
        trace.name,
        trace.requests,
        trace.connections,
        trace.targets,
        ratio(trace.content_bytes, 1_000_000),
        memory.cache_mib,
        memory.group_mib(NodeKind::Weir),
        memory.group_mib(NodeKind::Nginx),
        settings.reads,
    );
    markdown::versions(&mut out, record);
    out += &figures_table(record);
    out += &throughput(record);
    details(&mut out, record);
    list(&mut out, TARGETS, judge(record));
    list(&mut out, COULD_NOT, markdown::left_out(record));
    out
}

/// What is to be reached, and the figure.
pub(crate) fn figures(record: &Record) -> String {
    figures_table(record) + &throughput(record)
}

fn figures_table(record: &Record) -> String {
    let lines = rows(record).into_iter().map(|it| {
        let verdict = match it.is_met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "",
        };
        row([it.figure, &it.to_reach, &it.reached, verdict])
    });
    let mut out = String::new();
    let columns = "| | to reach | reached | |";
    table(&mut out, "### Figures", columns, lines);
    // text columns, not numbers
    out.replacen("| --- | --: | --: | --: |", "| --- | --- | --- | --- |", 1)
}

/// The figure: requests a second by nodes.
fn throughput(record: &Record) -> String {
    let mut out = String::new();
    for (node_kind, http) in lines() {
        let runs = record.figures.runs.iter().map(|run| &run.kind);
        let these = runs.filter(|kind| kind.node_kind == node_kind && kind.http == http);
        let mut sizes: Vec<usize> = these.map(|kind| kind.nodes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let lines = SYSTEMS.iter().filter_map(|system| {
            let mut cells = vec![system.name().to_owned()];
            let of = |nodes| {
                let kind = RunKind {
                    system: *system,
                    node_kind,
                    http,
                    nodes,
                };
                requests_per_s(record, kind)
            };
            let found: Vec<Option<f64>> = sizes.iter().map(|nodes| of(*nodes)).collect();
            found.iter().any(Option::is_some).then(|| {
                let numbers = found.iter();
                cells
                    .extend(numbers.map(|it| it.map_or_else(String::new, |it| format!("{it:.0}"))));
                row(cells)
            })
        });
        let title = format!(
            "### Requests a second: nodes of {}, {}",
            node_kind.name(),
            http.name()
        );
        let heads = sizes.iter().map(|nodes| format!(" {nodes} |"));
        let columns = format!("| nodes |{}", heads.collect::<String>());
        table(&mut out, &title, &columns, lines);
    }
    out
}

const fn lines() -> [(NodeKind, Http); 4] {
    [
        (NodeKind::Weir, Http::Persistent),
        (NodeKind::Weir, Http::V1_0),
        (NodeKind::Nginx, Http::Persistent),
        (NodeKind::Nginx, Http::V1_0),
    ]
}

/// What limited the runs.
fn details(out: &mut String, record: &Record) {
    let reads_per_s = record.settings.reads;
    let lines = record.figures.runs.iter().map(|run| {
        row([
            run.kind.name(),
            format!("{:.0}", run.requests_per_s()),
            format!("{:.1}", run.reads_percent()),
            format!("{:.0} %", run.disks_busy_percent(reads_per_s)),
            format!("{:.0} %", run.core_percent()),
            format!("{:.0}", ratio(run.front_end_cpu_us, run.requests)),
            run.lateral.to_string(),
            run.hand_offs.to_string(),
            run.origin_requests.to_string(),
        ])
    });
    let columns = "| run | requests a second | reads for 100 requests | disks busy | core busy | CPU of the front end, us a request | to other nodes | connections handed over | to the origin |";
    table(out, "### All runs", columns, lines);
}

/// The median over rounds.
fn requests_per_s(record: &Record, kind: RunKind) -> Option<f64> {
    let runs = record.figures.runs.iter();
    median(runs.filter(|run| run.kind == kind).map(Run::requests_per_s))
}

/// At six nodes.
fn of(record: &Record, system: System, node_kind: NodeKind, http: Http) -> Option<f64> {
    let kind = RunKind {
        system,
        node_kind,
        http,
        nodes: NODES,
    };
    requests_per_s(record, kind)
}

/// The rows that were measured.
pub(super) fn rows(record: &Record) -> Vec<Row> {
    let all = [
        over_wrr(record),
        loss_by_connection(record),
        gain_of_persistent(record),
        beside_haproxy(record),
    ];
    all.into_iter().flatten().collect()
}

/// Extended LARD by the fastest mechanism.
fn extended(record: &Record, node_kind: NodeKind) -> Option<(System, f64)> {
    let mechanisms = [
        System::ExtendedLard,
        System::ExtendedLardPeers,
        System::ExtendedLardHandOff,
    ];
    let found = mechanisms.into_iter();
    let found = found.filter_map(|it| Some((it, of(record, it, node_kind, Http::Persistent)?)));
    found.max_by(|one, other| one.1.total_cmp(&other.1))
}

fn over_wrr(record: &Record) -> Option<Row> {
    let (mechanism, extended) = extended(record, NodeKind::Weir)?;
    let wrr = of(record, System::Wrr, NodeKind::Weir, Http::Persistent)?;
    let over = extended / wrr;
    let name = mechanism.name();
    let mut reached = format!("{over:.2} × ({extended:.0}/s, {name}; WRR {wrr:.0}/s)");
    // beside them, files in the page cache
    let of_nginx = |system| of(record, system, NodeKind::Nginx, Http::Persistent);
    if let (Some(ours), Some(wrr)) = (of_nginx(System::ExtendedLard), of_nginx(System::Wrr)) {
        reached += &format!("; nodes of nginx {:.2} ×", ours / wrr);
    }
    Some(Row {
        figure: "six nodes, disk-bound: extended LARD over WRR, persistent connections",
        to_reach: format!("at least {OVER_WRR_MIN} ×"),
        reached,
        is_met: Some(over >= OVER_WRR_MIN),
    })
}

fn loss_by_connection(record: &Record) -> Option<Row> {
    let by_connection = of(
        record,
        System::LardByConnection,
        NodeKind::Weir,
        Http::Persistent,
    )?;
    let by_request = of(record, System::Lard, NodeKind::Weir, Http::Persistent)?;
    let percent = 100.0 - 100.0 * (by_connection / by_request);
    Some(Row {
        figure: "LARD by connection: loss against LARD by request, persistent connections",
        to_reach: format!("{LOSS_PERCENT_MIN:.0} % or more"),
        reached: format!("{percent:.0} % ({by_connection:.0}/s, by request {by_request:.0}/s)"),
        is_met: Some(percent >= LOSS_PERCENT_MIN),
    })
}

fn gain_of_persistent(record: &Record) -> Option<Row> {
    let (_, persistent) = extended(record, NodeKind::Weir)?;
    let single = of(record, System::Lard, NodeKind::Weir, Http::V1_0)?;
    let percent = 100.0 * (persistent / single - 1.0);
    Some(Row {
        figure: "extended LARD with persistent connections, over LARD with HTTP/1.0",
        to_reach: "reported".to_owned(),
        reached: format!("{percent:+.0} % ({persistent:.0}/s, {single:.0}/s)"),
        is_met: None,
    })
}

/// Before the same nodes, of each kind that was measured.
fn beside_haproxy(record: &Record) -> Option<Row> {
    let each = [NodeKind::Weir, NodeKind::Nginx].into_iter();
    let each = each.filter_map(|kind| {
        let ours = of(record, System::ExtendedLard, kind, Http::Persistent)?;
        let theirs = of(record, System::HaproxyUri, kind, Http::Persistent)?;
        Some((kind, ours, theirs))
    });
    let each: Vec<_> = each.collect();
    if each.is_empty() {
        return None;
    }
    let reached = each.iter().map(|(kind, ours, theirs)| {
        let (name, over) = (kind.name(), ours / theirs);
        format!("{name}: {over:.2} × ({ours:.0}/s, HAProxy {theirs:.0}/s)")
    });
    Some(Row {
        figure: "a front end with extended-lard beside HAProxy `balance uri`, the same nodes",
        to_reach: "at least as many requests a second".to_owned(),
        reached: reached.collect::<Vec<_>>().join("; "),
        is_met: Some(each.iter().all(|(_, ours, theirs)| ours >= theirs)),
    })
}

/// The targets that the record has figures for.
pub(super) fn judge(record: &Record) -> Vec<Target> {
    let rows = rows(record).into_iter();
    let targets = rows.filter_map(|row| {
        let what = format!("{}: {}, reached {}", row.figure, row.to_reach, row.reached);
        Some(Target::new(what, row.is_met?))
    });
    targets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(runs: &[(System, NodeKind, Http, u64)]) -> Record {
        let mut record: Record = serde_json::from_str(
            r#"{"schema":1,"command":"cargo xtask cluster --figure 13","commit":"none","begun":"now",
            "host":{"cpu":"c","cores":2,"kernel":"6","load_average":"0","memory_kib":"1"},
            "settings":{"figure":13,"nodes":[6],"systems":[],"kinds":["weir"],"http":["1.0","persistent"],
            "rounds":1,"scale":1.0,"fill":1,"seconds":1,"reads":40,"seed":1,"weir":null},
            "cores":{"server":0,"load":1},"memory":{"cache_mib":64},"runs":[],
            "trace":{"name":"t","requests":1,"connections":1,"targets":1,"content_bytes":1}}"#,
        )
        .expect("a record");
        let run = |(system, node_kind, http, requests): &(System, NodeKind, Http, u64)| Run {
            round: 1,
            kind: RunKind {
                system: *system,
                node_kind: *node_kind,
                http: *http,
                nodes: NODES,
            },
            fill_requests: 0,
            duration_us: 1_000_000,
            requests: *requests,
            content_bytes: 0,
            reads: vec![20; NODES],
            node_cpu_us: vec![10_000; NODES],
            front_end_cpu_us: 40_000,
            lateral: 0,
            hand_offs: 0,
            origin_requests: 0,
        };
        record.figures.runs = runs.iter().map(run).collect();
        record
    }

    fn check(record: &Record, figure: &str, is_met: Option<bool>) {
        let rows = rows(record);
        let row = rows.iter().find(|row| row.figure.contains(figure));
        let row = row.unwrap_or_else(|| panic!("no row of {figure} in {rows:?}"));
        assert_eq!(row.is_met, is_met, "{row:?}");
    }

    const WEIR: NodeKind = NodeKind::Weir;

    #[test]
    fn row_is_there_only_if_it_was_measured() {
        assert_eq!(rows(&record(&[])), []);
        assert_eq!(judge(&record(&[])), []);
    }

    #[test]
    fn extended_lard_is_met_at_three_and_a_half_times_wrr_by_its_faster_mechanism() {
        for (relay, peers, is_met) in [(3500, 1, true), (1, 3500, true), (3499, 3499, false)] {
            let record = record(&[
                (System::Wrr, WEIR, Http::Persistent, 1000),
                (System::ExtendedLard, WEIR, Http::Persistent, relay),
                (System::ExtendedLardPeers, WEIR, Http::Persistent, peers),
            ]);
            check(&record, "over WRR", Some(is_met));
        }
    }

    #[test]
    fn lard_by_connection_is_to_lose_a_fifth() {
        for (by_connection, is_met) in [(800, true), (801, false)] {
            let record = record(&[
                (System::Lard, WEIR, Http::Persistent, 1000),
                (
                    System::LardByConnection,
                    WEIR,
                    Http::Persistent,
                    by_connection,
                ),
            ]);
            check(&record, "loss", Some(is_met));
        }
    }

    #[test]
    fn haproxy_is_met_before_the_same_nodes_of_each_kind() {
        for (of_nginx, is_met) in [(500, true), (499, false)] {
            let record = record(&[
                (System::ExtendedLard, WEIR, Http::Persistent, 400),
                (System::HaproxyUri, WEIR, Http::Persistent, 400),
                (
                    System::ExtendedLard,
                    NodeKind::Nginx,
                    Http::Persistent,
                    of_nginx,
                ),
                (System::HaproxyUri, NodeKind::Nginx, Http::Persistent, 500),
            ]);
            check(&record, "HAProxy", Some(is_met));
        }
    }

    #[test]
    fn tables_have_a_row_a_system_and_what_limited_each_run() {
        let record = record(&[
            (System::Wrr, WEIR, Http::Persistent, 1000),
            (System::Lard, WEIR, Http::V1_0, 2000),
            (System::ExtendedLard, WEIR, Http::Persistent, 4000),
        ]);
        let text = render(&record);
        for part in [
            "| extended LARD with persistent connections, over LARD with HTTP/1.0 | reported | +100 %",
            "### Requests a second: nodes of Weir, persistent connections",
            "| WRR | 1000 |",
            "| lard by request | 2000 |",
            // 120 of 240 reads, 100 ms of a second
            "| WRR, 6 nodes of Weir, persistent connections | 1000 | 12.0 | 50 % | 10 % | 40 | 0 | 0 | 0 |",
        ] {
            assert!(text.contains(part), "no `{part}` in {text}");
        }
    }
}
