//! The tables of a record, as Markdown.

use super::case::Case;
use super::{Build, Quantity, Record};
use crate::record::markdown::{self, TARGETS, Target, list, row, table};

/// The most instructions of a small hit, in a release.
const HIT_INSTRUCTIONS_MAX: f64 = 4000.0;

pub(super) fn render(record: &Record) -> String {
    let mut out = format!("{}.\n\n", markdown::origin(record, "; "));
    markdown::versions(&mut out, record);
    for build in Build::ALL {
        let rows = Case::ALL
            .into_iter()
            .filter_map(|case| cells(record, build, case));
        let title = format!("### A request, {} build", build.name());
        let quantities = Quantity::ALL.map(Quantity::name).join(" | ");
        let columns = format!("| | {quantities} | most instructions, to the least |");
        table(&mut out, &title, &columns, rows);
    }
    list(&mut out, TARGETS, targets(record));
    out
}

fn cells(record: &Record, build: Build, case: Case) -> Option<String> {
    let of = (build, case);
    let (least, most) = record.figures.range(of, Quantity::Instructions)?;
    let numbers = Quantity::ALL.iter().filter_map(|quantity| {
        let least = record.figures.least(of, *quantity)?;
        let digits = if *quantity == Quantity::Instructions {
            0
        } else {
            2
        };
        Some(format!("{least:.digits$}"))
    });
    let name = [case.name().to_owned()].into_iter();
    let spread = format!("{:.4}", most / least.max(1.0));
    Some(row(name.chain(numbers).chain([spread])))
}

/// What is agreed of a release.
pub(super) fn targets(record: &Record) -> Vec<Target> {
    let hit = (Build::Release, Case::Hit);
    let least = record.figures.least(hit, Quantity::Instructions);
    let target = least.map(|least| {
        let what = format!(
            "{}, release: {least:.0} instructions, at most {HIT_INSTRUCTIONS_MAX:.0}",
            Case::Hit.name()
        );
        Target::new(what, least <= HIT_INSTRUCTIONS_MAX)
    });
    target.into_iter().collect()
}
