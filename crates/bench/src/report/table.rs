//! All runs in a table.

use super::comparison::{Comparison, clients, link_bits_per_s, together};
use super::metric;
use super::source::RecordFile;
use super::summary::colour;
use weir_measure::record::Record;
use weir_report::{Html, Unit, count, digits, float};

/// So many measured phases have columns here; all of them are in tables of their own.
const PHASES_IN_ROW: usize = 2;

/// A row for each run: the report of the Wisconsin Proxy Benchmark, for any scenario.
pub(super) fn runs(html: &mut Html, comparison: &Comparison<'_>) {
    let phases = phase_names(comparison);
    let mut columns = vec!["".to_owned(), "clients".to_owned(), "cache".to_owned()];
    for name in phases.iter().take(PHASES_IN_ROW) {
        columns.push(format!("{name}, mean"));
        columns.push(format!("{name}, 99 %"));
    }
    columns.extend(
        [
            "hit ratio offered",
            "hit ratio",
            "collapsed",
            "byte hit ratio",
            "requests",
            "errors",
            "wrong",
            "CPU a request",
            "valid",
        ]
        .map(str::to_owned),
    );
    begin(html, &columns);
    for proxy in &comparison.proxies {
        for run in sorted(&proxy.runs) {
            html.open_with("tr", &[("style", &colour(proxy))]);
            html.open_with("th", &[("scope", "row"), ("title", &run.file)]);
            html.element("span", "swatch", "");
            html.text(proxy.label);
            html.close();
            run_cells(html, &run.record, &phases);
            html.close();
        }
    }
    end(html);
}

fn run_cells(html: &mut Html, record: &Record, phases: &[&str]) {
    let number = clients(record).map_or_else(|| "–".to_owned(), digits);
    let link = link_bits_per_s(record).map_or_else(String::new, |bits| {
        format!(" at {}\u{a0}kbit/s", digits(bits / 1000.0))
    });
    html.element("td", "", &format!("{number}{link}"));
    html.element(
        "td",
        "name",
        if record.subject.is_caching {
            "on"
        } else {
            "off"
        },
    );
    for name in phases.iter().take(PHASES_IN_ROW) {
        let times = record.phase(name).map(|phase| &phase.response_time.all);
        let mean = times.and_then(weir_measure::record::Histogram::mean_us);
        let slow = times.and_then(|times| times.quantile_us(0.99)).map(float);
        html.element("td", "", &written(Unit::Time, mean));
        html.element("td", "", &written(Unit::Time, slow));
    }
    let all = together(record);
    let errors = all.client.error_count();
    let wrong = record.total.client.wrong_count();
    html.element("td", "", &written(Unit::Share, all.offered_hit_ratio()));
    html.element("td", "", &written(Unit::Share, all.hit_ratio()));
    html.element("td", "", &count(all.client.collapsed));
    html.element("td", "", &written(Unit::Share, all.byte_hit_ratio()));
    html.element("td", "", &count(all.client.requests));
    html.element("td", alarm(errors), &count(errors));
    html.element("td", alarm(wrong), &count(wrong));
    let requests = record.total.client.requests;
    let cpu = (!record.usage.is_empty() && requests > 0)
        .then(|| metric::cpu_seconds(record) * 1e6 / float(requests));
    html.element("td", "", &written(Unit::Time, cpu));
    let (class, word) = if record.is_valid {
        ("name", "yes")
    } else {
        ("name bad", "no")
    };
    html.element("td", class, word);
}

/// Names of measured phases, in the order in which they are met.
fn phase_names<'a>(comparison: &Comparison<'a>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for phase in comparison.runs().flat_map(|run| run.record.measured()) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    names
}

fn sorted<'a>(runs: &[&'a RecordFile]) -> Vec<&'a RecordFile> {
    let mut runs = runs.to_vec();
    runs.sort_by(|one, two| {
        let (one, two) = (&one.record, &two.record);
        let caching = two.subject.is_caching.cmp(&one.subject.is_caching);
        let place = |record: &Record| clients(record).unwrap_or_default();
        caching.then(place(one).total_cmp(&place(two)))
    });
    runs
}

/// Begins a table with these columns.
pub(super) fn begin(html: &mut Html, columns: &[String]) {
    html.open("div", "wide");
    html.open("table", "");
    html.open("thead", "");
    html.open("tr", "");
    for column in columns {
        html.element("th", "", column);
    }
    html.close();
    html.close();
    html.open("tbody", "");
}

/// Ends it.
pub(super) fn end(html: &mut Html) {
    for _ in 0..3 {
        html.close();
    }
}

const fn alarm(count: u64) -> &'static str {
    if count > 0 { "bad" } else { "" }
}

/// The number with its unit, or a dash.
pub(super) fn written(unit: Unit, value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| unit.write(value))
}
