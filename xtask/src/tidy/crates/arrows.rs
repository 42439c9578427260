//! The table of allowed arrows in ARCHITECTURE.md says which crate may use which.
//!
//! Between `<!-- arrows:begin -->` and `<!-- arrows:end -->` stands a Markdown table with a row for
//! every room: `| room | may use | in tests also |`, the third column being optional. Rooms are
//! packages without the project's name. A dependency of a build script counts as one of the room.
//! An arrow that is allowed and not used is no mistake.

use crate::tidy::complaint::Complaint;
use crate::tidy::crates::metadata::{Metadata, Package};
use std::collections::{BTreeMap, BTreeSet};

const FILE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- arrows:begin -->";
const END: &str = "<!-- arrows:end -->";

#[derive(Debug)]
struct Row {
    line: usize,
    uses: BTreeSet<String>,
    uses_in_tests: BTreeSet<String>,
}

/// `text` is `None` when there is no such file.
pub(crate) fn check(text: Option<&str>, metadata: &Metadata) -> Vec<Complaint> {
    let Some(text) = text else {
        let instead =
            format!("write it, with the table of allowed arrows between `{BEGIN}` and `{END}`");
        return vec![Complaint::new(FILE, 1, "is missing", instead)];
    };
    let Some((first_line, rows)) = rows(text) else {
        let what = "there is no table of allowed arrows";
        let instead = format!("write `| room | may use |` rows between `{BEGIN}` and `{END}`");
        return vec![Complaint::new(FILE, 1, what, instead)];
    };
    let rooms = metadata.members().map(|package| room(&package.name));
    let rooms: BTreeSet<&str> = rooms.collect();
    let mut complaints = complaints_about_rooms(&rows, &rooms);
    for package in metadata.members() {
        match rows.get(room(&package.name)) {
            Some(row) => complaints.extend(complaints_about_package(package, row)),
            None => {
                let what = format!("the room `{}` has no row", room(&package.name));
                let instead = "add one with the rooms it may use";
                complaints.push(Complaint::new(FILE, first_line, what, instead));
            }
        }
    }
    complaints
}

fn complaints_about_rooms(rows: &BTreeMap<String, Row>, rooms: &BTreeSet<&str>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (name, row) in rows {
        let named = [name]
            .into_iter()
            .chain(&row.uses)
            .chain(&row.uses_in_tests);
        for name in named.filter(|name| !rooms.contains(name.as_str())) {
            let what = format!("there is no room `{name}`");
            let instead = "name a package of the workspace, without the project's name";
            complaints.push(Complaint::new(FILE, row.line, what, instead));
        }
    }
    complaints
}

fn complaints_about_package(package: &Package, row: &Row) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let dependencies = package.dependencies.iter();
    for dependency in dependencies.filter(|dependency| dependency.path.is_some()) {
        let (from, to) = (room(&package.name), room(&dependency.name));
        let in_tests = dependency.kind.as_deref() == Some("dev");
        // a crate may switch its own features on for its tests
        if in_tests && dependency.name == package.name {
            continue;
        }
        if row.uses.contains(to) || (in_tests && row.uses_in_tests.contains(to)) {
            continue;
        }
        let only = if in_tests { " in its tests" } else { "" };
        let what = format!("`{from}` uses `{to}`{only}, which the table does not allow");
        let instead =
            format!("remove the dependency from `{from}`, or argue for the arrow and add it here");
        complaints.push(Complaint::new(FILE, row.line, what, instead));
    }
    complaints
}

fn room(package: &str) -> &str {
    package.strip_prefix("weir-").unwrap_or(package)
}

/// The line of the first row, and the rows by room; `None` when the marks or the rows are not
/// there.
fn rows(text: &str) -> Option<(usize, BTreeMap<String, Row>)> {
    let numbered = (1..).zip(text.lines());
    let inside = numbered
        .skip_while(|(_, line)| line.trim() != BEGIN)
        .skip(1)
        .take_while(|(_, line)| line.trim() != END);
    // the first two lines of a table are its head and the rule below it
    let body = inside
        .filter(|(_, line)| line.trim_start().starts_with('|'))
        .skip(2);
    let rows: BTreeMap<String, Row> = body
        .filter_map(|(number, line)| row(number, line))
        .collect();
    let first_line = rows.values().map(|row| row.line).min()?;
    Some((first_line, rows))
}

fn row(line: usize, text: &str) -> Option<(String, Row)> {
    let mut cells = text.trim().trim_matches('|').split('|');
    let name = cells.next()?.trim().trim_matches('`').to_owned();
    let mut names = || -> BTreeSet<String> {
        let cell = cells.next().unwrap_or_default();
        let names = cell.split(',').map(|name| name.trim().trim_matches('`'));
        names
            .filter(|name| !matches!(*name, "" | "-" | "nothing"))
            .map(str::to_owned)
            .collect()
    };
    let row = Row {
        line,
        uses: names(),
        uses_in_tests: names(),
    };
    Some((name, row))
}

#[cfg(test)]
mod tests {
    use super::super::metadata::example;
    use super::*;
    use crate::tidy::complaint::expect;

    const TABLE: &str = "# Title\n<!-- arrows:begin -->\n| room | may use | in tests also |\n| --- | --- | --- |\n\
        | wire | semantics | |\n| semantics | - | vectors |\n| `vectors` | | |\n<!-- arrows:end -->\n";

    fn check_edges(
        text: Option<&str>,
        of_wire: &[(&str, Option<&str>)],
        expected: &[(usize, &str)],
    ) {
        let metadata = example(&[
            ("weir-wire", None, None, of_wire),
            (
                "weir-semantics",
                None,
                None,
                &[("weir-vectors", Some("dev"))],
            ),
            ("weir-vectors", None, None, &[("outside", None)]),
            ("outside", None, Some("registry"), &[]),
        ]);
        expect(&check(text, &metadata), expected);
    }

    #[test]
    fn allowed_dependency_passes_used_or_unused() {
        check_edges(
            Some(TABLE),
            &[("weir-semantics", None), ("outside", None)],
            &[],
        );
        check_edges(Some(TABLE), &[], &[]);
        check_edges(Some(TABLE), &[("weir-semantics", Some("dev"))], &[]);
    }

    #[test]
    fn dependency_missing_from_the_table_is_refused() {
        check_edges(
            Some(TABLE),
            &[("weir-vectors", None)],
            &[(5, "`wire` uses `vectors`, which")],
        );
        let expected = [(5, "`wire` uses `vectors` in its tests")];
        check_edges(Some(TABLE), &[("weir-vectors", Some("dev"))], &expected);
    }

    #[test]
    fn dependency_allowed_for_tests_is_refused_in_normal_code() {
        let table = TABLE.replace("| wire | semantics | |", "| wire | - | semantics |");
        check_edges(Some(&table), &[("weir-semantics", Some("dev"))], &[]);
        check_edges(
            Some(&table),
            &[("weir-semantics", None)],
            &[(5, "uses `semantics`")],
        );
    }

    #[test]
    fn unknown_crate_in_the_table_is_refused() {
        let table = TABLE.replace("| wire | semantics | |", "| wire | semantics, cellar | |");
        check_edges(Some(&table), &[], &[(5, "no room `cellar`")]);
    }

    #[test]
    fn crate_without_a_table_row_is_refused() {
        let table = TABLE.replace("| `vectors` | | |\n", "");
        check_edges(Some(&table), &[], &[(5, "the room `vectors` has no row")]);
    }

    #[test]
    fn missing_file_or_table_is_reported() {
        check_edges(None, &[], &[(1, "is missing")]);
        check_edges(Some("# Title\n"), &[], &[(1, "no table")]);
    }
}
