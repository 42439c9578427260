//! `cargo xtask tables`: tables of documents, made from the newest record.
//!
//! A document marks the place:
//!
//! ```text
//! <!-- table peers-cpu: made by `cargo xtask tables` -->
//! ...
//! <!-- end of table -->
//! ```
//!
//! The command replaces what stands between the two lines. A test fails when a table differs from
//! what the command would write, so a figure in such a table is always that of the newest record
//! that has all of its rows.

mod bench_wpb;
pub(crate) mod modules;
mod peers_cpu;
mod scale;

use crate::cluster::{self, figure13};
use crate::extend;
use crate::instructions;
use crate::instructions::count;
use crate::peers;
use crate::record::{Benchmark, newest};
use crate::sim::scale::table;
use crate::uneven;
use xtask::command::git;
use xtask::failure::{During, Failure};
use xtask::root;

const BEGIN: &str = "<!-- table ";
const BEGIN_END: &str = ": made by `cargo xtask tables` -->";
const END: &str = "<!-- end of table -->";

type MakeTable = fn() -> Result<String, Failure>;

/// Names of tables, and how each is made.
const TABLES: &[(&str, MakeTable)] = &[
    ("bench-wpb", || {
        bench_wpb::newest().map(|set| bench_wpb::render(&set))
    }),
    ("bench-wpb-load", || {
        bench_wpb::newest().map(|set| bench_wpb::render_load(&set))
    }),
    ("peers-cpu", || {
        let (record, path) = newest::record(peers::record_is_whole)?;
        Ok(from(&path, &peers_cpu::render(&record)))
    }),
    ("peers-short", || {
        let (record, path) = newest::record(peers::record_is_whole)?;
        Ok(from(&path, &peers_cpu::render_short(&record)))
    }),
    ("peers", || {
        newest::record(peers::record_is_whole)
            .map(|(record, path)| from(&path, &peers::Figures::render(&record)))
    }),
    ("tls", || {
        newest::record(peers::tls::record_is_whole)
            .map(|(record, path)| from(&path, &peers::tls::Figures::render(&record)))
    }),
    ("count", || {
        newest::record(count::record_is_whole)
            .map(|(record, path)| from(&path, &count::Figures::render(&record)))
    }),
    ("attack", || {
        newest::record(peers::attack::record_is_whole)
            .map(|(record, path)| from(&path, &peers::attack::Figures::render(&record)))
    }),
    ("instructions", || {
        newest::record(instructions::record_is_whole)
            .map(|(record, path)| from(&path, &instructions::Figures::render(&record)))
    }),
    ("modules", || {
        let (record, path) = newest::record(modules::record_is_whole)?;
        Ok(from(&path, &modules::Figures::render(&record)))
    }),
    ("extend", || {
        newest::record(extend::record_is_whole)
            .map(|(record, path)| from(&path, &extend::Figures::render(&record)))
    }),
    ("cluster", || {
        let (record, path) = newest::record(cluster::record_is_whole)?;
        Ok(from(&path, &cluster::render_figures(&record)))
    }),
    ("cluster-record", || {
        newest::record(cluster::record_is_whole)
            .map(|(record, path)| from(&path, &cluster::Figures::render(&record)))
    }),
    ("figure13", || {
        let (record, path) = newest::record(figure13::record_is_whole)?;
        Ok(from(&path, &figure13::render_figures(&record)))
    }),
    ("scale", scale::run),
    ("scale-costs", scale::costs),
    ("scale-needs", || scale::of_both(table::needs_table)),
    ("scale-limits", || scale::of_both(table::limits_table)),
    ("hand-off", || {
        let (record, path) = newest::record(cluster::record_has_hand_off)?;
        Ok(from(&path, &cluster::render_hand_off(&record)))
    }),
    ("uneven", || {
        let (record, path) = newest::record(uneven::record_has_experiments)?;
        Ok(from(&path, &uneven::render_experiments(&record)))
    }),
    ("uneven-http2", || {
        newest::record(uneven::record_is_of_http2)
            .map(|(record, path)| from(&path, &uneven::Figures::render(&record)))
    }),
    ("uneven-record", || {
        newest::record(uneven::record_has_experiments)
            .map(|(record, path)| from(&path, &uneven::Figures::render(&record)))
    }),
];

/// `cargo xtask tables`: rewrites the documents whose tables are not those of the newest records.
pub(crate) fn run() -> Result<(), Failure> {
    let mut written = 0;
    for path in documents()? {
        let file = root::directory().join(&path);
        let text = std::fs::read_to_string(&file).during(format_args!("read `{path}`"))?;
        let new = replace(&text, &path, &make)?;
        if new != text {
            std::fs::write(&file, new).during(format_args!("write `{path}`"))?;
            println!("{path}");
            written += 1;
        }
    }
    println!("tables: {written} documents written");
    Ok(())
}

/// The paths of the documents in the repository.
fn documents() -> Result<Vec<String>, Failure> {
    let names = git(&["ls-files", "*.md"])?;
    Ok(names.lines().map(str::to_owned).collect())
}

fn make(name: &str) -> Result<String, Failure> {
    let Some((_, table)) = TABLES.iter().find(|(known, _)| *known == name) else {
        let names: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
        return Err(Failure::Usage(format!(
            "`{name}` is not a table; known tables: {}",
            names.join(", ")
        )));
    };
    table()
}

fn from(path: &str, table: &str) -> String {
    format!("{}\n\nFrom `{path}`.\n", table.trim_end())
}

fn replace(
    text: &str,
    path: &str,
    make: &dyn Fn(&str) -> Result<String, Failure>,
) -> Result<String, Failure> {
    let mut out = String::with_capacity(text.len());
    let mut lines = (1..).zip(text.lines());
    while let Some((number, line)) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let name = line.strip_prefix(BEGIN);
        let Some(name) = name.and_then(|rest| rest.strip_suffix(BEGIN_END)) else {
            continue;
        };
        let table = make(name).during(format_args!("make the table at {path}:{number}"))?;
        if lines.by_ref().all(|(_, line)| line != END) {
            return Err(Failure::Usage(format!(
                "{path}:{number}: the table does not end; write `{END}` below it"
            )));
        }
        out.push_str(&format!("\n{}\n\n{END}\n", table.trim()));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(name: &str) -> Result<String, Failure> {
        match name {
            "known" => Ok("| a |\n".to_owned()),
            _ => Err(Failure::Usage("no such table".to_owned())),
        }
    }

    #[test]
    fn table_of_a_document_is_that_of_the_newest_record() {
        for path in documents().expect("the documents") {
            let text = std::fs::read_to_string(root::directory().join(&path)).expect("a document");
            let new = replace(&text, &path, &make).expect("records of all tables");
            let mut lines = (1..).zip(text.lines().zip(new.lines()));
            let old = lines.find(|(_, (old, new))| old != new);
            assert!(new == text, "{path}: run `cargo xtask tables`: {old:?}");
        }
    }

    #[test]
    fn only_lines_between_the_markers_are_replaced() {
        let text = format!("one\n{BEGIN}known{BEGIN_END}\nold\nolder\n{END}\ntwo\n");
        let expected = format!("one\n{BEGIN}known{BEGIN_END}\n\n| a |\n\n{END}\ntwo\n");
        let once = replace(&text, "a.md", &table).expect("a document");
        assert_eq!(once, expected);
        assert_eq!(replace(&once, "a.md", &table).ok(), Some(expected));
    }

    #[test]
    fn table_without_end_marker_or_known_name_is_refused() {
        let endless = format!("{BEGIN}known{BEGIN_END}\nold\n");
        let refused = replace(&endless, "a.md", &table).map_err(|failure| failure.to_string());
        assert!(refused.is_err_and(|text| text.contains("a.md:1") && text.contains("end")));
        let unknown = format!("x\n{BEGIN}other{BEGIN_END}\n{END}\n");
        let refused = replace(&unknown, "a.md", &table).map_err(|failure| failure.to_string());
        assert!(refused.is_err_and(|text| text.contains("a.md:2")));
    }
}
