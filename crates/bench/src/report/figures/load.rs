//! The load is raised until proxies fail: how far each gets.
//!
//! Clients of a closed loop send requests only as fast as they are answered, so a proxy fails in
//! one of two ways: requests fail (the run is not valid then, as more than a share of its requests
//! failed), or it is a multiple slower than with few clients.

use super::sweep::across;
use crate::record::verdict::is_of_generator;
use crate::report::comparison::{CACHING, Comparison, ProxyRuns, clients, mean_us};
use crate::report::source::RecordFile;
use crate::report::table::written;
use weir_measure::float;
use weir_measure::record::Record;
use weir_report::{Axis, Figure, Html, Line, Stroke, Unit, digits, ys};

/// The scenario that is for this.
const SCENARIO: &str = "wpb-load";

/// A proxy has failed when a phase takes so many times as long as with the fewest clients.
const SLOWER_MAX: f64 = 3.0;

/// Are these runs for this?
pub(super) fn is_load(comparison: &Comparison<'_>) -> bool {
    comparison.scenario == SCENARIO && comparison.is_sweep()
}

/// Requests answered a second, and how long they took, against the number of clients.
pub(in crate::report) fn figures(comparison: &Comparison<'_>) -> Vec<Figure> {
    if !is_load(comparison) {
        return Vec::new();
    }
    let rate = across(comparison, CACHING, Stroke::Solid, rate_per_s);
    let time = across(comparison, CACHING, Stroke::Solid, mean_us);
    let rate_axis = Axis::logarithmic("requests answered a second", Unit::Count, ys(&rate));
    let time_axis = Axis::logarithmic("mean response time", Unit::Time, ys(&time));
    let note = "Hollow: the run is not valid, as requests failed or the generator was at its limit; the line ends there.";
    vec![
        figure(
            comparison,
            "load",
            "Load until proxies fail",
            note,
            rate_axis,
            rate,
        ),
        figure(
            comparison,
            "load-time",
            "Mean response time until proxies fail",
            "Of the last phase; both axes are logarithmic.",
            time_axis,
            time,
        ),
    ]
}

fn figure(
    comparison: &Comparison<'_>,
    name: &str,
    title: &str,
    note: &str,
    y: Axis,
    lines: Vec<Line>,
) -> Figure {
    let x = Axis::logarithmic("clients", Unit::Count, comparison.places().into_iter());
    Figure::new(name, title, note, x, y, lines)
}

/// How far each proxy got, and why no further.
pub(in crate::report) fn write(html: &mut Html, comparison: &Comparison<'_>) {
    if !is_load(comparison) {
        return;
    }
    html.element("h3", "", "How far each proxy got");
    let columns = ["", "clients", "answered a second", "mean", "then"];
    html.table("", &columns, |html| {
        for proxy in &comparison.proxies {
            let limit = Limit::of(proxy);
            let last = limit.last_good.map(|run| &run.record);
            let cell =
                |unit: Unit, of: fn(&Record) -> Option<f64>| written(unit, last.and_then(of));
            proxy.begin_row(html, "");
            html.cells([
                cell(Unit::Count, clients),
                cell(Unit::Count, rate_per_s),
                cell(Unit::Time, mean_us),
            ]);
            html.element("td", "why", &limit.then);
            html.close();
        }
    });
    let text = format!(
        "The most clients with which no more requests failed than a valid run may have, and the last phase took less than {} times as long as with \
         the fewest clients.",
        digits(SLOWER_MAX)
    );
    html.element("p", "note", &text);
}

/// How far a proxy got.
struct Limit<'a> {
    last_good: Option<&'a RecordFile>,
    /// What happened with more clients.
    then: String,
}

impl<'a> Limit<'a> {
    fn of(proxy: &ProxyRuns<'a>) -> Self {
        let mut runs: Vec<&RecordFile> = proxy.of(CACHING).collect();
        runs.sort_by(|one, two| {
            let place = |run: &RecordFile| clients(&run.record).unwrap_or_default();
            place(one).total_cmp(&place(two))
        });
        let least = runs.first().and_then(|run| mean_us(&run.record));
        let mut last_good = None;
        for run in runs {
            let Some(why) = failure(&run.record, least) else {
                last_good = Some(run);
                continue;
            };
            let number = clients(&run.record).map_or_else(String::new, digits);
            let then = format!("with {number} clients: {why}");
            return Self { last_good, then };
        }
        let then = "more clients were not tried".to_owned();
        Self { last_good, then }
    }
}

/// Why a run is beyond a proxy's limit; `None` if it is not.
fn failure(record: &Record, least_us: Option<f64>) -> Option<String> {
    let all = &record.total.client;
    if !record.is_valid {
        let mut reasons = record.reasons.iter();
        if let Some(reason) = reasons.find(|reason| is_of_generator(reason)) {
            return Some(format!(
                "not known, as the generator was at its limit. {reason}"
            ));
        }
        if all.error_count() == 0 {
            return Some(record.reasons.join(" "));
        }
        let share = float(all.error_count()) / float(all.requests.max(1));
        let kinds: Vec<&str> = all.errors.keys().map(String::as_str).collect();
        return Some(format!(
            "{} of the requests failed ({})",
            Unit::Share.write(share),
            kinds.join(", ")
        ));
    }
    let (now, before) = (mean_us(record)?, least_us?);
    (now > before * SLOWER_MAX).then(|| format!("{} times as long", digits(now / before)))
}

/// Answers of the whole run, a second.
fn rate_per_s(record: &Record) -> Option<f64> {
    (record.seconds > 0.0).then(|| float(record.total.client.answered()) / record.seconds)
}
