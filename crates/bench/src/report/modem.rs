//! Clients behind modems against the same clients unshaped: the columns of tables 5 and 6 of the
//! Wisconsin Proxy Benchmark's paper. Its own numbers of these tables are not known; what it says
//! of them is that response times more than doubled, that the gap between the phases shrank, and
//! that the proxies' disks and processors had less to do.

use super::comparison::{
    CACHING, Comparison, ProxyRuns, RunKind, clients, link_bits_per_s, together,
};
use super::metric;
use super::source::RecordFile;
use super::table::written;
use weir_measure::record::{Record, UsageSecond};
use weir_report::{Html, Unit, digits};

pub(super) const BEHIND_LINKS: RunKind = RunKind {
    is_caching: true,
    has_link: true,
};

/// The pair of runs of one proxy.
struct Pair<'a> {
    proxy: &'a ProxyRuns<'a>,
    unshaped: &'a RecordFile,
    shaped: &'a RecordFile,
}

/// Both tables, for the proxies that have both runs.
pub(super) fn write(html: &mut Html, comparison: &Comparison<'_>) {
    let pairs: Vec<Pair<'_>> = comparison.proxies.iter().filter_map(pair).collect();
    let Some(first) = pairs.first() else {
        return;
    };
    let bits = link_bits_per_s(&first.shaped.record).unwrap_or_default();
    let number = clients(&first.shaped.record).map_or_else(String::new, digits);
    html.element("h3", "", "Clients behind slow links");
    html.element(
        "p",
        "",
        &format!(
            "The same {number} clients, each with a link of {}\u{a0}kbit/s and without one (the paper's tables 5 and 6).",
            digits(bits / 1000.0)
        ),
    );
    let phases: Vec<&str> = first
        .shaped
        .record
        .measured()
        .map(|phase| phase.name.as_str())
        .collect();
    times(html, &pairs, &phases);
    usage(html, &pairs);
}

fn pair<'a>(proxy: &'a ProxyRuns<'a>) -> Option<Pair<'a>> {
    let shaped = proxy.at(BEHIND_LINKS, None)?;
    let number = clients(&shaped.record);
    Some(Pair {
        proxy,
        unshaped: proxy.at(CACHING, number)?,
        shaped,
    })
}

fn times(html: &mut Html, pairs: &[Pair<'_>], phases: &[&str]) {
    let mut columns: Vec<String> = vec![String::new(), "clients".to_owned()];
    for phase in phases {
        columns.push(format!("{phase}, mean time"));
        columns.push(format!("{phase}, errors"));
    }
    columns.extend(["hit ratio offered", "hit ratio", "byte hit ratio"].map(str::to_owned));
    let mean = |record: &Record, name: &str| record.phase(name)?.response_time.all.mean_us();
    table(html, &columns, pairs, |pair, record| {
        let mut cells = Vec::new();
        for name in phases {
            let phase = record.phase(name);
            let before = mean(&pair.unshaped.record, name);
            cells.push(times_as_long(mean(record, name), before));
            let errors = phase.map_or(0, |phase| phase.client.error_count());
            cells.push(weir_report::count(errors));
        }
        let all = together(record);
        cells.push(written(Unit::Share, all.offered_hit_ratio()));
        cells.push(written(Unit::Share, all.hit_ratio()));
        cells.push(written(Unit::Share, all.byte_hit_ratio()));
        cells
    });
}

fn usage(html: &mut Html, pairs: &[Pair<'_>]) {
    let has_usage = |pair: &Pair<'_>| !pair.shaped.record.usage.is_empty();
    if !pairs.iter().any(has_usage) {
        return;
    }
    let columns = [
        "",
        "clients",
        "CPU, of one core",
        "machine's CPU",
        "waiting for disk",
        "disk busy",
        "disk reads",
        "disk writes",
    ];
    table(html, &columns, pairs, |_, record| {
        let share =
            |of: fn(&UsageSecond) -> f64| written(Unit::Share, metric::mean_used(record, of));
        let rate = |of: fn(&UsageSecond) -> u64| {
            written(Unit::BytesPerSecond, metric::rate_used(record, of))
        };
        vec![
            share(|second| second.cpu_share),
            share(|second| second.machine_cpu_share),
            share(|second| second.machine_wait_share),
            share(|second| second.disk_busy_share.unwrap_or_default()),
            rate(|second| second.read_bytes),
            rate(|second| second.written_bytes),
        ]
    });
}

fn table<C: AsRef<str>>(
    html: &mut Html,
    columns: &[C],
    pairs: &[Pair<'_>],
    cells: impl Fn(&Pair<'_>, &Record) -> Vec<String>,
) {
    html.table("", columns, |html| {
        for pair in pairs {
            for (name, run) in [("unshaped", pair.unshaped), ("behind links", pair.shaped)] {
                pair.proxy.begin_row(html, "");
                html.element("td", "name", name);
                html.cells(cells(pair, &run.record));
                html.close();
            }
        }
    });
}

/// A mean, and how many times the one without a link it is.
fn times_as_long(mean: Option<f64>, unshaped: Option<f64>) -> String {
    let Some(mean) = mean else {
        return "–".to_owned();
    };
    let ratio = unshaped.map(|unshaped| mean / unshaped);
    let ratio = ratio.filter(|ratio| (ratio - 1.0).abs() > f64::EPSILON);
    let ratio = ratio.map_or_else(String::new, |ratio| format!(" ({} ×)", digits(ratio)));
    format!("{}{ratio}", Unit::Time.write(mean))
}
