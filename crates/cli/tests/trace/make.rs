//! `weir trace make`: its report, what `--check` prints, and what is refused.

use crate::snapshot::{compare, finish, folder, weir, whole};

#[test]
fn trace_make_output_matches_its_snapshot() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let snapshots = folder("commands");
    let mut differences = Vec::new();
    for (name, line) in COMMANDS {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let output = weir(place.path(), &arguments);
        let found = format!("$ weir {}\n{}", arguments.join(" "), whole(&output));
        let path = snapshots.join(format!("{name}.txt"));
        compare(&path, &found, &mut differences);
    }
    finish(&differences);
}

/// Name of the snapshot and the arguments.
const COMMANDS: &[(&str, &str)] = &[
    ("trace-make-help", "trace make --help"),
    (
        "trace-make-too-short",
        "trace make rice-1999 --requests 20000 --check --output short.parquet",
    ),
    (
        "trace-make-no-requests",
        "trace make rice-1999 --requests 0 --output none.parquet",
    ),
    (
        "trace-make-unknown",
        "trace make rice-1998 --output none.parquet",
    ),
];
