//! How much is in a trace: the table `lines, unparsed, clients, ...`, and for traces that are not
//! in it what their files say.

use super::import::{ImportedTrace, LoggedTime};
use super::{Comparison, number, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use xtask::failure::{During, Failure};

/// Compares the counts of one trace.
///
/// # Errors
/// A file cannot be read, or the table has no figures where they should be.
pub(crate) fn check(
    imported: &ImportedTrace<'_>,
    readme: &str,
    found: &mut Comparison,
) -> Result<(), Failure> {
    let name = imported.source.name();
    let rows = table::find(readme, &["trace", "lines", "unparsed"]);
    if rows.is_empty() {
        let what = "the README.md of the data has no table `trace | lines | unparsed | ...`";
        return Err(Failure::Usage(what.to_owned()));
    }
    let unparsed = number(&imported.summary, "/dropped_total");
    let trace = std::fs::metadata(&imported.trace);
    let trace = trace.during(format_args!("look at `{}`", imported.trace.display()))?;
    let (bytes, said) = (trace.len(), number(&imported.summary, "/bytes"));
    found.compare(
        &name,
        "bytes of the trace",
        &bytes.to_string(),
        &said.to_string(),
    );
    match rows.iter().find(|row| row["trace"] == name) {
        Some(row) => against_table(imported, row, found),
        None => {
            found.compare(&name, "unparsed", "0", &unparsed.to_string());
            if let Some(lines) = lines(imported)? {
                let all = all(imported).to_string();
                found.compare(&name, "lines", &lines.to_string(), &all);
            }
        }
    }
    Ok(())
}

/// All that was in it, read or not.
fn all(imported: &ImportedTrace<'_>) -> u64 {
    number(&imported.summary, "/rows") + number(&imported.summary, "/dropped_total")
}

fn against_table(imported: &ImportedTrace<'_>, row: &table::Row<'_>, found: &mut Comparison) {
    let name = imported.source.name();
    let summary = &imported.summary;
    let mut compare = |column: &str, here: String| {
        let expected = row.get(column).copied().unwrap_or("nothing");
        found.compare(&name, column, expected, &here);
    };
    compare("lines", all(imported).to_string());
    compare("unparsed", number(summary, "/dropped_total").to_string());
    compare("clients", number(summary, "/clients").to_string());
    let received = number(summary, "/received_bytes");
    compare("bytes (all records)", received.to_string());
    let span = match imported.source.logged {
        LoggedTime::Arrival => &summary["arrivals"],
        LoggedTime::End => &summary["ends"],
    };
    let length_us = number(span, "/last_us").saturating_sub(number(span, "/first_us"));
    compare("span s", (length_us / 1_000_000).to_string());
    // the archives were sorted before they were counted: the table says so of some that are not in
    // order
    if !imported.source.is_har() {
        let is_in_order = span["is_in_order"].as_bool().unwrap_or_default();
        let word = if is_in_order { "True" } else { "False" };
        compare("file in time order", word.to_owned());
    }
    for (column, member) in [("methods", "methods"), ("status", "statuses")] {
        let expected = counts(row.get(column).copied().unwrap_or_default());
        let here = members(&summary[member]);
        found.compare(&name, column, &shown(&expected), &shown(&here));
    }
}

/// `GET: 9952, HEAD: 42`.
fn counts(cell: &str) -> BTreeMap<String, u64> {
    let pairs = cell.split(',').filter_map(|pair| pair.split_once(':'));
    pairs
        .filter_map(|(name, count)| Some((name.trim().to_owned(), count.trim().parse().ok()?)))
        .collect()
}

/// The same of an object; what has no status is written 0 in the table.
fn members(object: &Value) -> BTreeMap<String, u64> {
    let members = object.as_object().into_iter().flatten();
    members
        .map(|(name, count)| {
            let name = if name == "none" { "0" } else { name };
            (name.to_owned(), count.as_u64().unwrap_or_default())
        })
        .collect()
}

fn shown(counts: &BTreeMap<String, u64>) -> String {
    let each: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{name}: {count}"))
        .collect();
    each.join(", ")
}

/// How many transactions the file has, counted without our importer; `None` where that would take
/// one.
fn lines(imported: &ImportedTrace<'_>) -> Result<Option<u64>, Failure> {
    let path = &imported.source.path;
    let during = format!("read `{}`", path.display());
    if imported.source.name().ends_with(".oracleGeneral.bin") {
        return Ok(listed_bytes(path)?.map(|bytes| bytes / ORACLE_GENERAL_BYTES));
    }
    if path.extension().is_some_and(|end| end == "gz") {
        return Ok(None);
    }
    let bytes = std::fs::read(path).during(&during)?;
    if !imported.source.is_har() {
        let ends = bytes.iter().filter(|&&byte| byte == b'\n').count();
        return Ok(Some(ends as u64));
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let archive: Value = serde_json::from_slice(text).during(&during)?;
    let entries = archive["log"]["entries"].as_array();
    Ok(entries.map(|entries| entries.len() as u64))
}

/// Bytes of a record.
const ORACLE_GENERAL_BYTES: u64 = 24;

/// Uncompressed bytes of a file, as the list beside the data has them: `folder/name`, tab, bytes.
fn listed_bytes(path: &Path) -> Result<Option<u64>, Failure> {
    let Some((data, file)) = path.parent().and_then(|folder| {
        let data = folder.parent()?;
        Some((data, path.strip_prefix(data).ok()?.to_str()?))
    }) else {
        return Ok(None);
    };
    let list = data.join("MANIFEST.tsv");
    let text = std::fs::read_to_string(&list).during(format_args!("read `{}`", list.display()))?;
    let lines = text.lines().map(|line| line.split('\t'));
    let listed = lines
        .filter_map(|mut cells| Some((cells.next()?, cells.next()?)))
        .find(|(name, _)| *name == file);
    Ok(listed.and_then(|(_, bytes)| bytes.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::super::import::Source;
    use super::*;
    use serde_json::json;

    const README: &str = "\
| trace | lines | unparsed | clients | span s | bytes (all records) | methods | status | file in time order |
|---|---|---|---|---|---|---|---|---|
| squid_gt_dev | 10 | 1 | 3 | 42 | 99 | GET: 7, HEAD: 2 | 200: 8, 0: 1 | False |
";

    fn imported() -> Value {
        json!({
            "bytes": 0, "rows": 9, "dropped_total": 1, "clients": 3, "received_bytes": 99,
            "arrivals": { "first_us": 0, "last_us": 1, "is_in_order": true },
            "ends": { "first_us": 1_000_000, "last_us": 43_999_999, "is_in_order": false },
            "methods": { "GET": 7, "HEAD": 2 }, "statuses": { "200": 8, "none": 1 },
        })
    }

    fn differences(summary: Value) -> Vec<String> {
        let source = Source {
            path: "squid_gt/dev.access.log.gz".into(),
            logged: LoggedTime::End,
        };
        let imported = ImportedTrace {
            source: &source,
            summary,
            // a file with as many bytes as the summary says
            trace: "/dev/null".into(),
        };
        let mut found = Comparison::default();
        check(&imported, README, &mut found).expect("there is a table");
        assert_eq!(found.compared, 9);
        found.differences
    }

    #[test]
    fn differing_figure_is_reported_by_name() {
        assert!(differences(imported()).is_empty());
        for (pointer, value, figures) in [
            ("/bytes", json!(1), &["bytes of the trace"][..]),
            ("/rows", json!(8), &["lines"]),
            ("/dropped_total", json!(2), &["lines", "unparsed"]),
            ("/clients", json!(4), &["clients"]),
            ("/received_bytes", json!(98), &["bytes (all records)"]),
            ("/ends/last_us", json!(44_000_000), &["span s"]),
            ("/ends/is_in_order", json!(true), &["file in time order"]),
            ("/methods/GET", json!(8), &["methods"]),
            ("/statuses/none", json!(2), &["status"]),
        ] {
            let mut changed = imported();
            *changed.pointer_mut(pointer).expect("it is there") = value;
            let found = differences(changed);
            assert_eq!(found.len(), figures.len(), "{pointer}: {found:?}");
            for (found, figure) in found.iter().zip(figures) {
                assert!(found.contains(&format!(" {figure}: ")), "{found}");
            }
        }
    }
}
