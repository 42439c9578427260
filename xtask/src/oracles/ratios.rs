//! Hit ratios: the table `trace, key, requests, objects, ...`, two rows a trace.
//!
//! What never evicts, LRU and FIFO are the same in every correct program: equal to four digits
//! (FIFO is written with no more). SIEVE may be 0.005 off, S3-FIFO 0.02, where a cache holds enough
//! responses for that to mean something: in a cache of a few responses each decides points. Below
//! [`HELD_MIN`] responses of mean size only LRU and FIFO are compared.

use super::import::ImportedTrace;
use super::{Comparison, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use xtask::command::json;
use xtask::failure::{During, Failure};

/// Responses of mean size that fit into a cache whose SIEVE and S3-FIFO are compared.
const HELD_MIN: f64 = 50.0;

const EXACT: f64 = 1e-4;
const SIEVE: f64 = 0.005;
const S3_FIFO: f64 = 0.02;

/// Bytes of a record of oracleGeneral: time (4), id (8), size (4), next (8).
const RECORD_BYTES: usize = 24;

/// How the table writes a rule for keys, and how we do.
const RULES: [(&str, &str); 2] = [("K1", "first-size"), ("K2", "size-in-key")];

/// Places of columns: names come twice in this table.
const REQUESTS: usize = 2;
const OBJECTS: usize = 3;
const ONCE: usize = 4;
const FOOTPRINT: usize = 5;
const BYTES: usize = 6;
const INFINITE: usize = 7;
const SIZES: [usize; 2] = [9, 16];
const COLUMNS: usize = 23;

/// Compares the ratios of one trace, if the table has it.
///
/// # Errors
/// The simulation cannot be run, or the table has no figures where they should be.
pub(crate) fn check(
    weir: &Path,
    imported: &ImportedTrace<'_>,
    readme: &str,
    found: &mut Comparison,
) -> Result<(), Failure> {
    let name = imported.source.name();
    for (word, rule) in RULES {
        let Some(row) = row(readme, &name, word)? else {
            continue;
        };
        let requests = imported.trace.with_extension("requests");
        let policies = "lru,fifo,sieve,s3-fifo";
        let flags = ["--key", rule, "--policy", policies, "--size", "1%,10%"];
        let said = simulate(weir, &imported.trace, &requests, &flags)?;
        let mut compare = Compare {
            what: format!("{name} {word}"),
            row: &row,
            found,
        };
        compare.counts(&said)?;
        let all = std::fs::read(&requests).during(format_args!("read `{}`", requests.display()))?;
        compare.once(asked_once(&all, word == "K2"));
        for (index, place) in SIZES.into_iter().enumerate() {
            compare.size(&said, index, place)?;
        }
    }
    Ok(())
}

/// The cells of a row; `None` if there is none.
fn row<'t>(readme: &'t str, name: &str, word: &str) -> Result<Option<Vec<&'t str>>, Failure> {
    let mut rows = readme
        .lines()
        .map(table::cells)
        .filter(|cells| cells.first() == Some(&name) && cells.get(1) == Some(&word));
    match rows.next() {
        Some(cells) if cells.len() != COLUMNS => Err(Failure::Usage(format!(
            "the row `{name} {word}` of the README.md has {} columns, and not {COLUMNS}",
            cells.len()
        ))),
        other => Ok(other),
    }
}

fn simulate(weir: &Path, trace: &Path, requests: &Path, flags: &[&str]) -> Result<Value, Failure> {
    let mut command = Command::new(weir);
    command
        .args(["sim", "hits", "--json"])
        .args(flags)
        .arg("--write-oracle-general")
        .args([requests, trace])
        .stderr(Stdio::inherit());
    json(&mut command).map_err(|failure| {
        let path = trace.display();
        Failure::Refused(format!("`{path}` cannot be simulated: {failure}"))
    })
}

/// Targets that are requested once, counted in the requests as the simulation takes them: records
/// of oracleGeneral.
fn asked_once(requests: &[u8], has_size_in_key: bool) -> usize {
    let mut counts: BTreeMap<(&[u8], &[u8]), u64> = BTreeMap::new();
    for record in requests.chunks_exact(RECORD_BYTES) {
        let size = if has_size_in_key { 12..16 } else { 12..12 };
        *counts.entry((&record[4..12], &record[size])).or_default() += 1;
    }
    counts.values().filter(|&&count| count == 1).count()
}

struct Compare<'a> {
    what: String,
    row: &'a [&'a str],
    found: &'a mut Comparison,
}

impl Compare<'_> {
    fn counts(&mut self, said: &Value) -> Result<(), Failure> {
        for (figure, place, member) in [
            ("requests", REQUESTS, "requests"),
            ("objects", OBJECTS, "keys"),
            ("footprint B", FOOTPRINT, "footprint_bytes"),
            ("requested B", BYTES, "bytes"),
        ] {
            let here = said[member].to_string();
            self.found
                .compare(&self.what, figure, self.row[place], &here);
        }
        for (figure, place, member) in [
            ("inf HR", INFINITE, "infinite_hit_ratio"),
            ("inf BHR", INFINITE + 1, "infinite_byte_hit_ratio"),
        ] {
            self.close(figure, self.row[place], &said[member], EXACT)?;
        }
        Ok(())
    }

    fn once(&mut self, once: usize) {
        let here = once.to_string();
        self.found
            .compare(&self.what, "one-hit objs", self.row[ONCE], &here);
    }

    /// The caches of one size; its columns begin at `place`.
    fn size(&mut self, said: &Value, index: usize, place: usize) -> Result<(), Failure> {
        // the policies of one size lie together
        let caches: Vec<&Value> = said["caches"].as_array().into_iter().flatten().collect();
        let Some([lru, fifo, sieve, s3_fifo]) = caches.get(index * 4..index * 4 + 4) else {
            let what = "`weir sim hits` gives fewer caches than it was asked for".to_owned();
            return Err(Failure::Outside(what));
        };
        let capacity = lru["capacity_bytes"].to_string();
        let size = ["1 %", "10 %"][index];
        let figure = format!("cap {size}");
        self.found
            .compare(&self.what, &figure, self.row[place], &capacity);
        let (requests, bytes) = self.row[place + 1].split_once(" / ").unwrap_or_default();
        for (name, cell, here) in [
            ("LRU HR", requests, &lru["hit_ratio"]),
            ("LRU BHR", bytes, &lru["byte_hit_ratio"]),
            ("FIFO", self.row[place + 2], &fifo["hit_ratio"]),
        ] {
            self.close(&format!("{name} {size}"), cell, here, EXACT)?;
        }
        if self.holds_enough(place)? {
            for (name, place, here, off) in [
                ("SIEVE", place + 3, &sieve["hit_ratio"], SIEVE),
                ("S3-FIFO", place + 4, &s3_fifo["hit_ratio"], S3_FIFO),
            ] {
                self.close(&format!("{name} {size}"), self.row[place], here, off)?;
            }
        }
        Ok(())
    }

    /// Whether the cache has room for enough responses of mean size.
    fn holds_enough(&self, place: usize) -> Result<bool, Failure> {
        let mean = parsed(self.row[FOOTPRINT])? / parsed(self.row[OBJECTS])?.max(1.0);
        Ok(parsed(self.row[place])? >= HELD_MIN * mean)
    }

    /// Two that are near enough are compared as equal.
    fn close(&mut self, figure: &str, cell: &str, here: &Value, off: f64) -> Result<(), Failure> {
        let expected = parsed(cell)?;
        let value = here.as_f64().unwrap_or(f64::NAN);
        let shown = if (value - expected).abs() <= off {
            cell.to_owned()
        } else {
            format!("{value:.6}")
        };
        self.found.compare(&self.what, figure, cell, &shown);
        Ok(())
    }
}

fn parsed(cell: &str) -> Result<f64, Failure> {
    let number = cell.parse();
    number.map_err(|_| Failure::Usage(format!("`{cell}` in the README.md is no number")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const README: &str = "| trace | key | more |\n|---|---|---|\n\
        | a | K1 | 100 | 50 | 9 | 5000 | 9000 | 0.5 | 0.4 | 50 | 0.1 / 0.05 | 0.1 | 0.2 | 0.3 | 0 | 0 | 5000 | 0.5 / 0.4 | 0.49 | 0.5 | 0.5 | 0 | 0 |\n";

    fn said() -> Value {
        let cache = |capacity: u64, hit_ratio: f64, byte_hit_ratio: f64| json!({"capacity_bytes": capacity, "hit_ratio": hit_ratio, "byte_hit_ratio": byte_hit_ratio});
        json!({
            "requests": 100, "keys": 50, "footprint_bytes": 5000, "bytes": 9000,
            "infinite_hit_ratio": 0.50004, "infinite_byte_hit_ratio": 0.4,
            "caches": [
                // too small for SIEVE and S3-FIFO to be compared
                cache(50, 0.1, 0.05), cache(50, 0.1, 0.0), cache(50, 0.9, 0.0), cache(50, 0.9, 0.0),
                cache(5000, 0.5, 0.4), cache(5000, 0.49, 0.0), cache(5000, 0.504, 0.0), cache(5000, 0.519, 0.0),
            ],
        })
    }

    fn compare(said: &Value) -> Vec<String> {
        let mut found = Comparison::default();
        let row = row(README, "a", "K1").unwrap().unwrap();
        let mut compare = Compare {
            what: "a K1".to_owned(),
            row: &row,
            found: &mut found,
        };
        compare.counts(said).unwrap();
        compare.once(9);
        for (index, place) in SIZES.into_iter().enumerate() {
            compare.size(said, index, place).unwrap();
        }
        found.differences
    }

    #[test]
    fn only_figures_outside_their_tolerance_are_reported() {
        assert_eq!(compare(&said()), [""; 0]);
        for (pointer, value, figure) in [
            ("/keys", json!(51), "objects"),
            ("/infinite_hit_ratio", json!(0.5002), "inf HR"),
            ("/caches/0/byte_hit_ratio", json!(0.0502), "LRU BHR 1 %"),
            ("/caches/5/hit_ratio", json!(0.4902), "FIFO 10 %"),
            ("/caches/6/hit_ratio", json!(0.506), "SIEVE 10 %"),
            ("/caches/7/hit_ratio", json!(0.521), "S3-FIFO 10 %"),
            ("/caches/4/capacity_bytes", json!(5001), "cap 10 %"),
        ] {
            let mut said = said();
            *said.pointer_mut(pointer).unwrap() = value;
            let differences = compare(&said);
            assert_eq!(differences.len(), 1, "{differences:?}");
            assert!(differences[0].contains(figure), "{differences:?}");
        }
    }

    #[test]
    fn size_is_part_of_the_key_only_when_requested() {
        let record = |id: u8, size: u8| {
            let mut record = [0; RECORD_BYTES];
            (record[4], record[12]) = (id, size);
            record
        };
        let requests = [record(1, 7), record(2, 7), record(1, 7), record(1, 8)].concat();
        assert_eq!(asked_once(&requests, false), 1);
        assert_eq!(asked_once(&requests, true), 2);
    }

    #[test]
    fn row_is_found_by_trace_and_key_and_must_have_all_columns() {
        assert_eq!(row(README, "a", "K2").unwrap(), None);
        assert_eq!(row(README, "b", "K1").unwrap(), None);
        assert!(row("| a | K1 | 3 |", "a", "K1").is_err());
    }
}
