//! All runs in a table.

use super::comparison::{Comparison, clients, distinct, link_bits_per_s, together};
use super::metric;
use super::source::RecordFile;
use weir_measure::float;
use weir_measure::record::Record;
use weir_report::{Html, Unit, count, digits};

/// So many measured phases have columns here; all of them are in tables of their own.
const PHASES_IN_ROW: usize = 2;

/// A row for each run: the report of the Wisconsin Proxy Benchmark, for any scenario.
pub(super) fn runs(html: &mut Html, comparison: &Comparison<'_>) {
    let phases = comparison.runs().flat_map(|run| run.record.measured());
    let mut phases = distinct(phases.map(|phase| phase.name.as_str()));
    phases.truncate(PHASES_IN_ROW);
    let mut columns = vec!["".to_owned(), "clients".to_owned(), "cache".to_owned()];
    for name in &phases {
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
    html.table("", &columns, |html| {
        for proxy in &comparison.proxies {
            for run in sorted(&proxy.runs) {
                proxy.begin_row(html, &run.file);
                run_cells(html, &run.record, &phases);
                html.close();
            }
        }
    });
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
    for name in phases {
        let times = record.phase(name).map(|phase| &phase.response_time.all);
        let mean = times.and_then(weir_measure::record::Histogram::mean_us);
        let slow = times.and_then(|times| times.quantile_us(0.99)).map(float);
        html.cells([written(Unit::Time, mean), written(Unit::Time, slow)]);
    }
    let all = together(record);
    let errors = all.client.error_count();
    let wrong = record.total.client.wrong_count();
    html.cells([
        written(Unit::Share, all.offered_hit_ratio()),
        written(Unit::Share, all.hit_ratio()),
        count(all.client.collapsed),
        written(Unit::Share, all.byte_hit_ratio()),
        count(all.client.requests),
    ]);
    html.element("td", alarm(errors), &count(errors));
    html.element("td", alarm(wrong), &count(wrong));
    html.cells([written(Unit::Time, metric::cpu_us_a_request(record))]);
    let (class, word) = if record.is_valid {
        ("name", "yes")
    } else {
        ("name bad", "no")
    };
    html.element("td", class, word);
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

const fn alarm(count: u64) -> &'static str {
    if count > 0 { "bad" } else { "" }
}

/// The number with its unit, or a dash.
pub(super) fn written(unit: Unit, value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| unit.write(value))
}
