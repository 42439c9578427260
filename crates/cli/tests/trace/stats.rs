//! `weir trace stats` on traces that are written here.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;
use weir_trace::{Anonymiser, Row, TraceMethod, Writer};

/// Three requests of which the trace knows method, status and size.
fn trace(folder: &Path) {
    let anonymiser = Anonymiser::keyed([7; 16]);
    let path = folder.join("week.parquet");
    let mut writer = Writer::create(&path, anonymiser.meta("a test")).expect("a writer");
    let dropped = &mut writer.meta_mut().dropped;
    dropped.insert("no target".to_owned(), 1);
    for (index, name) in ["a", "b", "a"].iter().enumerate() {
        let row = Row {
            arrival_us: i64::try_from(index).expect("a small number") * 1_000_000,
            target: anonymiser.target(name),
            method: Some(TraceMethod::Get),
            status: Some(200),
            received_bytes: Some(1000),
            ..Row::default()
        };
        writer.push(row).expect("it can be written");
    }
    writer.finish().expect("it can be finished");
}

/// Runs `weir trace stats` in `folder`.
fn stats(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["trace", "stats", "week.parquet"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the binary was built with this test")
}

/// Exit code, stdout and stderr as one text.
fn whole(output: &Output) -> String {
    let code = output.status.code().expect("not killed by a signal");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("exit {code}\n--- stdout\n{out}--- stderr\n{err}")
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    trace(folder.path());
    folder
}

#[test]
fn absent_columns_are_shown_as_not_in_this_trace() {
    let folder = folder();
    let output = stats(folder.path(), &[]);
    let said = whole(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for line in [
        "week.parquet: 3 requests\n",
        "  not here      1: no target\n",
        "  methods       GET 3\n",
        "  clients       not in this trace\n",
        "  cookie present        not in this trace\n",
    ] {
        assert!(said.contains(line), "{line:?} in {said}");
    }
}

#[test]
fn json_gives_counts_hits_and_meta_and_null_for_absent_columns() {
    let folder = folder();
    let output = stats(folder.path(), &["--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["requests"], 3);
    assert_eq!(found["infinite"]["k1"]["hits"], 1);
    assert_eq!(found["infinite"]["k1"]["hit_bytes"], 1000);
    assert_eq!(found["meta"]["anonymisation"], "keyed");
    assert_eq!(found["meta"]["dropped"]["no target"], 1);
    assert_eq!(found["population"]["targets"], 2);
    assert_eq!(found["population"]["clients"], Value::Null);
    assert_eq!(found["causes"]["each"][0]["cause"], "cookie");
    assert_eq!(found["causes"]["each"][0]["requests"], Value::Null);
    assert_eq!(found["causes"]["each"][4]["requests"]["said"], 3);
}

#[test]
fn damaged_or_foreign_file_is_refused_with_a_hint() {
    let folder = folder();
    let path = folder.path().join("week.parquet");
    let mut bytes = std::fs::read(&path).expect("it is there");
    bytes[30] ^= 1;
    std::fs::write(&path, bytes).expect("it can be written");
    let output = stats(folder.path(), &[]);
    let expected = "exit 3\n--- stdout\n--- stderr\nerror: cannot read trace `week.parquet`\n  \
        caused by: it is damaged: column `arrival_us`, rows 0 to 3, is not what was written\nhint: make it again";
    let said = whole(&output);
    assert!(said.starts_with(expected), "{said}");
    std::fs::write(&path, "GET / HTTP/1.1\r\n\r\n").expect("it can be written");
    let output = stats(folder.path(), &[]);
    let said = whole(&output);
    assert!(said.starts_with("exit 2\n"), "{said}");
    assert!(said.contains("hint: `weir trace import` makes"), "{said}");
}
