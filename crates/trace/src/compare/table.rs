//! [`Differences`] as tables for a terminal.

use super::super::stats::table::Table;
use super::super::stats::table::number::{count, whole_bytes, whole_time};
use super::{Bytes, Differences, Example, ExampleRow, Examples, Times, Verdicts};

/// What is said where not both traces say anything.
const ABSENT: &str = "not in both traces";

/// All tables. `a` and `b` are what the traces are called.
#[must_use]
pub fn text(a: &str, b: &str, found: &Differences) -> String {
    let mut table = Table::default();
    table.line(&format!("A: {a}, {} requests", count(found.rows.a)));
    table.line(&format!("B: {b}, {} requests", count(found.rows.b)));
    table.fact(
        "pairs",
        &format!(
            "{} at the same place, {} by the n-th request of a target",
            count(found.pairs_by_place),
            count(found.pairs_by_target)
        ),
    );
    table.fact(
        "no partner",
        &format!(
            "{} of A, {} of B",
            count(found.without_partner.a),
            count(found.without_partner.b)
        ),
    );
    verdicts(&mut table, &found.verdicts);
    table.title("bytes of content");
    let bytes = [
        ("received", found.received),
        ("from cache", found.from_cache),
    ];
    for (name, bytes) in bytes {
        table.fact(name, &bytes_line(bytes));
    }
    times(&mut table, &found.response_times);
    examples(&mut table, &found.examples);
    table.text
}

fn counts(equal: u64, different: u64, unsaid: u64) -> String {
    let mut text = format!("{} equal, {} different", count(equal), count(different));
    if unsaid > 0 {
        text.push_str(&format!(", {} {ABSENT}", count(unsaid)));
    }
    text
}

fn verdicts(table: &mut Table, found: &Verdicts) {
    let said = counts(found.equal, found.different, found.unsaid);
    table.title(&format!("verdicts: {said}"));
    if found.pairs.is_empty() {
        return;
    }
    let pairs = found.pairs.iter().map(|pair| {
        let mark = if pair.a == pair.b { "" } else { "different" };
        vec![
            pair.a.clone(),
            pair.b.clone(),
            count(pair.requests),
            mark.to_owned(),
        ]
    });
    table.rows_under(&["A", "B", "requests"], pairs);
}

fn bytes_line(found: Bytes) -> String {
    let said = counts(found.equal, found.different, found.unsaid);
    if found.equal + found.different == 0 {
        return said;
    }
    let (a, b) = (whole_bytes(found.bytes.a), whole_bytes(found.bytes.b));
    format!("{said}; {a} in A, {b} in B")
}

fn times(table: &mut Table, found: &Times) {
    let said = counts(found.equal, found.different, found.unsaid);
    let tolerance = whole_time(found.tolerance_us);
    table.title(&format!("response times, within {tolerance}: {said}"));
    for (name, one) in [("A", found.each.a), ("B", found.each.b)] {
        if let Some(one) = one {
            let (median, p90) = (whole_time(one.median_us), whole_time(one.p90_us));
            table.fact(name, &format!("median {median}, p90 {p90}"));
        }
    }
    if let Some((median, p90)) = found.median_difference_us.zip(found.p90_difference_us) {
        let sign = if median < 0 { "-" } else { "" };
        let (median, p90) = (whole_time(median.unsigned_abs()), whole_time(p90));
        table.fact(
            "B less A",
            &format!("median {sign}{median}, p90 of the distance {p90}"),
        );
    }
}

fn examples(table: &mut Table, found: &Examples) {
    let kinds = [
        ("verdicts", &found.verdicts),
        ("bytes", &found.bytes),
        ("response times", &found.times),
    ];
    for (name, examples) in kinds {
        if examples.is_empty() {
            continue;
        }
        table.title(&format!("first that differ in {name}"));
        let head = [
            "",
            "row",
            "target",
            "verdict",
            "received",
            "from cache",
            "response time",
        ];
        table.rows_under(&head, examples.iter().flat_map(example));
    }
}

fn example(example: &Example) -> [Vec<String>; 2] {
    let row = |name: &str, row: &ExampleRow| {
        let bytes = |bytes: Option<u64>| bytes.map_or_else(|| "-".to_owned(), count);
        let time = row.response_time_us.map(whole_time);
        vec![
            name.to_owned(),
            row.row.to_string(),
            example.target.to_string(),
            row.verdict.clone().unwrap_or_else(|| "-".to_owned()),
            bytes(row.received_bytes),
            bytes(row.from_cache_bytes),
            time.unwrap_or_else(|| "-".to_owned()),
        ]
    };
    [row("A", &example.rows.a), row("B", &example.rows.b)]
}
