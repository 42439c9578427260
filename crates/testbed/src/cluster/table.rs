//! The tables of a record, as Markdown.

use super::Record;
use super::parts::hand_off;
use super::parts::hit_ratio::{HitRatioRun, ONE_NODE};
use super::parts::hot::HotRun;
use super::parts::lateral::WAYS;
use super::parts::purge::PurgeRun;
use super::parts::speed::SpeedRun;
use super::row::Row;
use super::system::SYSTEMS;
use super::targets::{
    self, hit_ratios, hots, joins, laterals, purges, rows, rows_without_root, speeds,
};
use crate::record::markdown::{self, COULD_NOT, TARGETS, list, row, table};
use weir_measure::float;
use weir_measure::quantile::Spread;

pub(super) fn render(record: &Record) -> String {
    let (settings, cores) = (&record.settings, &record.figures.cores);
    let mut out = format!(
        "{}\\\n{} rounds at scale {}, seed {}; nodes and HAProxy on core {}, clients and origin on core {}\n\n",
        markdown::origin(record, "\\\n"),
        settings.rounds,
        settings.scale,
        settings.seed,
        cores.server,
        cores.load
    );
    markdown::versions(&mut out, record);
    out += &table_of(rows(record));
    hit_ratio_table(&mut out, record);
    speed_table(&mut out, record);
    hot_table(&mut out, record);
    lateral_table(&mut out, record);
    purge_table(&mut out, record);
    choice_table(&mut out, record);
    hand_off::table::render(&mut out, &record.figures.hand_offs);
    list(&mut out, TARGETS, targets::judge(record));
    list(&mut out, COULD_NOT, troubles(record));
    out
}

/// What is to be reached beside what was reached.
pub(crate) fn figures(record: &Record) -> String {
    table_of(rows_without_root(record))
}

/// The same of hand-off, and its measurements.
pub(crate) fn hand_off(record: &Record) -> String {
    let runs = &record.figures.hand_offs;
    let mut out = table_of(hand_off::table::rows(runs));
    hand_off::table::render(&mut out, runs);
    out
}

fn table_of(rows: Vec<Row>) -> String {
    let lines = rows.into_iter().map(|it| {
        let verdict = if it.is_met { "met" } else { "missed" };
        row([it.figure, &it.to_reach, &it.reached, verdict])
    });
    let mut out = String::new();
    let columns = "| | to reach | reached | |";
    table(&mut out, "### Figures", columns, lines);
    // text columns, not numbers
    out.replacen("| --- | --: | --: | --: |", "| --- | --- | --- | --- |", 1)
}

fn hit_ratio_table(out: &mut String, record: &Record) {
    let names = [ONE_NODE]
        .into_iter()
        .chain(SYSTEMS.iter().map(|it| it.name));
    let lines = names.filter_map(|name| {
        let percent = hit_ratios(record, name, HitRatioRun::hit_percent)?;
        let full = hit_ratios(record, name, |run| float(run.origin_requests))?;
        let all = hit_ratios(record, name, |run| float(run.origin_requests_of_all))?;
        Some(row([
            name.to_owned(),
            format!("{:.2} %", percent.median),
            range(&percent, 2),
            format!("{:.0}", full.median),
            format!("{:.0}", all.median),
        ]))
    });
    let columns =
        "| | hit ratio | least - most | origin requests of full nodes | from empty nodes on |";
    let title = "### Three nodes with a third of the memory each, beside one node";
    table(out, title, columns, lines);
}

fn speed_table(out: &mut String, record: &Record) {
    let lines = SYSTEMS.iter().filter_map(|system| {
        let name = system.name;
        let cpu = speeds(record, name, SpeedRun::cpu_us_per_request)?;
        let rate = speeds(record, name, SpeedRun::requests_per_cpu_second)?;
        let here = speeds(record, name, SpeedRun::hits_here_percent)?;
        let origin = speeds(record, name, |run| float(run.origin_requests))?;
        Some(row([
            name.to_owned(),
            format!("{:.1}", cpu.median),
            range(&cpu, 1),
            format!("{:.0}", rate.median),
            format!("{:.0} %", here.median),
            format!("{:.0}", origin.median),
            joins(record, name).map_or_else(String::new, |it| format!("{:.0}", it.median)),
        ]))
    });
    let columns = "| | CPU, us | least - most | requests a second of CPU time | hits at the node that is asked | origin requests | when a node joins |";
    let title = "### Four nodes that have all responses, Zipf 0.8";
    table(out, title, columns, lines);
}

fn hot_table(out: &mut String, record: &Record) {
    let lines = SYSTEMS.iter().filter_map(|system| {
        let name = system.name;
        let busiest = hots(record, name, HotRun::busiest)?;
        let by_cpu = hots(record, name, HotRun::busiest_by_cpu)?;
        let last = hots(record, name, |run| {
            float(run.last_fetched_ms.unwrap_or_default())
        })?;
        Some(row([
            name.to_owned(),
            format!("{:.2}", busiest.median),
            range(&busiest, 2),
            format!("{:.2}", by_cpu.median),
            format!("{:.0} ms", last.median),
        ]))
    });
    let columns = "| | busiest node × mean, by requests | least - most | by CPU time | last fetch of the target |";
    let title = "### Four nodes, 30 % of requests for one URL";
    table(out, title, columns, lines);
}

fn lateral_table(out: &mut String, record: &Record) {
    let lines = WAYS.iter().filter_map(|way| {
        let cpu = laterals(record, *way)?;
        Some(row([
            way.name().to_owned(),
            format!("{:.1}", cpu.median),
            range(&cpu, 1),
        ]))
    });
    let title = "### A hit of 1 KiB, CPU time of all processes";
    table(out, title, "| | us | least - most |", lines);
}

fn purge_table(out: &mut String, record: &Record) {
    let mut sizes: Vec<u64> = record.figures.purges.iter().map(|run| run.nodes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let lines = sizes.into_iter().filter_map(|nodes| {
        let of = |number: fn(&PurgeRun) -> f64| purges(record, nodes, number);
        let (sender, receiver) = (of(PurgeRun::sender_us)?, of(PurgeRun::receiver_us)?);
        let ms = |number: fn(&PurgeRun) -> u64| {
            let spread = purges(record, nodes, |run| float(number(run)) / 1000.0)?;
            Some(format!("{:.2} ms", spread.median))
        };
        Some(row([
            nodes.to_string(),
            format!("{:.1}", sender.median),
            range(&sender, 1),
            format!("{:.1}", receiver.median),
            range(&receiver, 1),
            ms(|run| run.everywhere_us.p50)?,
            ms(|run| run.everywhere_us.p99)?,
            ms(|run| run.alone_us.p50)?,
        ]))
    });
    let columns = "| nodes | a message, CPU of its sender, us | least - most | of its receiver, us | least - most | until all have it, median | 99 % | at one node alone |";
    let title = "### A purge at all nodes, each a message of its own to each other node";
    table(out, title, columns, lines);
}

fn choice_table(out: &mut String, record: &Record) {
    let choices = record.figures.choices.iter();
    let lines = choices.map(|it| {
        row([
            it.policy.clone(),
            it.ns_of_16_nodes.to_string(),
            it.ns_of_64_nodes.to_string(),
        ])
    });
    let title = "### A choice, nanoseconds";
    table(out, title, "| | 16 nodes | 64 nodes |", lines);
}

fn range(spread: &Spread, digits: usize) -> String {
    format!("{:.digits$} - {:.digits$}", spread.min, spread.max)
}

/// What could not be measured, with the reason.
pub(super) fn troubles(record: &Record) -> Vec<String> {
    let mut troubles = markdown::left_out(record);
    let herd = record.figures.herd.iter();
    troubles.extend(herd.flat_map(|herd| {
        let failed = herd.failed.iter();
        failed.map(|(why, count)| format!("{count} clients of the herd: {why}"))
    }));
    troubles
}
