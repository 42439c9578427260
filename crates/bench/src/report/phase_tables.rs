//! What each proxy did phase by phase: what the clients saw, what the origin saw, and what became
//! of each kind of request.

use super::comparison::Comparison;
use super::table::written;
use weir_measure::record::{Histogram, KindSide, OriginSide, Phase, Record};
use weir_measure::{float, ratio};
use weir_report::{Html, Unit, count, digits};

/// Tables of the chosen run of each proxy, folded away.
pub(super) fn write(html: &mut Html, comparison: &Comparison<'_>) {
    html.element("h3", "", "Phase by phase");
    for (proxy, run) in comparison.chosen() {
        html.open("details", "");
        html.open_with("summary", &[("style", &proxy.style())]);
        html.element("span", "swatch", "");
        html.text(proxy.label);
        html.close();
        clients(html, &run.record);
        origin(html, &run.record);
        kinds(html, &run.record);
        html.close();
    }
}

fn clients(html: &mut Html, record: &Record) {
    let columns = [
        "clients",
        "length",
        "offered",
        "answered",
        "mean",
        "hits, median",
        "misses, median",
        "99 %",
        "hit ratio offered",
        "hit ratio",
        "byte hit ratio offered",
        "byte hit ratio",
        "collapsed",
        "content",
        "errors",
        "aborted",
        "connections",
        "requests each",
    ];
    table(html, &columns, record, client_cells);
}

fn client_cells(phase: &Phase) -> [String; 17] {
    let (times, client) = (&phase.response_time, &phase.client);
    let median = |times: &Histogram| written(Unit::Time, times.quantile_us(0.5).map(float));
    [
        written(Unit::Time, Some(phase.seconds * 1e6)),
        a_second(Unit::Count, phase, phase.offered_requests),
        a_second(Unit::Count, phase, client.answered()),
        written(Unit::Time, times.all.mean_us()),
        median(&times.hit),
        median(&times.miss),
        written(Unit::Time, times.all.quantile_us(0.99).map(float)),
        written(Unit::Share, phase.offered_hit_ratio()),
        written(Unit::Share, phase.hit_ratio()),
        written(Unit::Share, phase.offered_byte_hit_ratio()),
        written(Unit::Share, phase.byte_hit_ratio()),
        count(client.collapsed),
        a_second(Unit::BytesPerSecond, phase, client.content_bytes),
        count(client.error_count()),
        count(client.aborted),
        count(client.connections_opened),
        each(client.requests, client.connections_opened),
    ]
}

fn origin(html: &mut Html, record: &Record) {
    let columns = [
        "origin",
        "requests",
        "rate",
        "for the first time",
        "again",
        "without a mark",
        "304",
        "content",
        "not to the end",
        "connections",
        "requests each",
    ];
    table(html, &columns, record, origin_cells);
}

fn origin_cells(phase: &Phase) -> [String; 10] {
    let OriginSide {
        requests,
        distinct,
        repeated,
        without_id,
        content_bytes,
        not_modified,
        aborted,
        connections_opened,
    } = phase.origin;
    [
        count(requests),
        a_second(Unit::Count, phase, requests),
        count(distinct),
        count(repeated),
        count(without_id),
        count(not_modified),
        a_second(Unit::BytesPerSecond, phase, content_bytes),
        count(aborted),
        count(connections_opened),
        each(requests, connections_opened),
    ]
}

/// Of the measured phases together; nothing for records that do not say.
fn kinds(html: &mut Html, record: &Record) {
    let mut all = std::collections::BTreeMap::<&str, KindSide>::new();
    for (kind, side) in record.measured().flat_map(|phase| &phase.client.by_kind) {
        all.entry(kind).or_default().merge(side);
    }
    if all.is_empty() {
        return;
    }
    let requests: u64 = all.values().map(|side| side.requests).sum();
    let columns = [
        "kind of request, measured phases",
        "requests",
        "of all",
        "from the store",
        "validated",
        "forwarded",
        "304",
    ];
    html.table("", &columns, |html| {
        for (kind, side) in all {
            let share = |part: u64, whole: u64| written(Unit::Share, ratio(part, whole));
            html.open("tr", "");
            html.row_head(kind);
            html.cells([
                count(side.requests),
                share(side.requests, requests),
                share(side.hits, side.requests),
                share(side.validated, side.requests),
                share(side.forwarded, side.requests),
                share(side.not_modified, side.requests),
            ]);
            html.close();
        }
    });
}

/// A row for each phase, and one for all of them.
fn table<const CELLS: usize>(
    html: &mut Html,
    columns: &[&str],
    record: &Record,
    cells: fn(&Phase) -> [String; CELLS],
) {
    html.table("", columns, |html| {
        for phase in record.phases.iter().chain([&record.total]) {
            html.open("tr", if phase.is_measured { "" } else { "muted" });
            html.row_head(&phase.name);
            html.cells(cells(phase));
            html.close();
        }
    });
}

/// So many in the phase's time.
fn a_second(unit: Unit, phase: &Phase, sum: u64) -> String {
    let rate = (phase.seconds > 0.0).then(|| float(sum) / phase.seconds);
    match (unit, rate) {
        (Unit::Count, Some(rate)) => format!("{}/s", digits(rate)),
        _ => written(unit, rate),
    }
}

/// So many for each.
fn each(sum: u64, of: u64) -> String {
    ratio(sum, of).map_or_else(|| "–".to_owned(), digits)
}
