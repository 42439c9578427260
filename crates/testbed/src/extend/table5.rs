//! Table 5 of the paper beside ours: for each figure a row of the paper, and one for each way to
//! run a module.

use super::Record;
use super::cases::{AGAINST, CASES, Way, Work};
use super::polymix::PolyMixRun;
use crate::record::markdown::{row, table};

/// A figure of the table.
struct Figure {
    name: &'static str,
    /// The paper's, by [`Work::COLUMNS`], as it prints them.
    paper: [&'static str; 5],
    of: fn(&PolyMixRun) -> String,
}

/// iMimic's proxy on a 1.4 GHz Athlon, at 1450 requests a second.
const FIGURES: [Figure; 5] = [
    Figure {
        name: "throughput, requests/s",
        paper: ["1452.87", "1452.75", "1452.89", "1452.62", "1452.84"],
        of: |run| format!("{:.2}", run.rate_per_s),
    },
    Figure {
        name: "response, ms",
        paper: ["1248.99", "1248.95", "1251.25", "1251.98", "1250.14"],
        of: |run| millis(run.response_us),
    },
    Figure {
        name: "miss, ms",
        paper: ["2742.53", "2743.18", "2744.33", "2745.07", "2746.98"],
        of: |run| millis(run.miss_us),
    },
    Figure {
        name: "hit, ms",
        paper: ["19.82", "19.86", "20.87", "20.85", "22.10"],
        of: |run| millis(run.hit_us),
    },
    Figure {
        name: "hit ratio, %",
        paper: ["57.81", "57.81", "57.76", "57.74", "57.85"],
        of: |run| format!("{:.2}", 100.0 * run.hit_ratio),
    },
];

fn millis(us: f64) -> String {
    format!("{:.2}", us / 1000.0)
}

/// Appends the table, if there is a run.
pub(super) fn render(out: &mut String, record: &Record) {
    if record.figures.polymix.is_empty() {
        return;
    }
    let mut rows = Vec::new();
    for figure in &FIGURES {
        rows.push(labelled(figure, "paper", figure.paper.map(str::to_owned)));
        for way in Way::OF_WEIR {
            let cells = Work::COLUMNS.map(|work| {
                let run = run(record, way, work);
                run.map_or_else(String::new, |run| (figure.of)(run))
            });
            if cells.iter().any(|cell| !cell.is_empty()) {
                rows.push(labelled(figure, way.name(), cells));
            }
        }
    }
    let names = Work::COLUMNS.map(Work::name).join(" | ");
    let title = format!(
        "### Table 5: PolyMix-3 mini at {} of its length, 100 requests a second",
        record.settings.scale
    );
    table(out, &title, &format!("| | {names} |"), rows);
}

fn labelled(figure: &Figure, of: &str, cells: [String; 5]) -> String {
    row([format!("{}: {of}", figure.name)].into_iter().chain(cells))
}

/// The valid run of a cell.
fn run(record: &Record, way: Way, work: Work) -> Option<&PolyMixRun> {
    let case = CASES
        .iter()
        .find(|case| case.way == way && case.work == work && case.name() != AGAINST)?;
    let mut runs = record.figures.polymix.iter();
    runs.find(|run| run.case == case.name() && run.reasons.is_empty())
}
