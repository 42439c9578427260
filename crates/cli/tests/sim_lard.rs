//! `weir sim paper lard` and `weir sim cluster` at a small scale, as a stranger runs them.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use weir_trace::{Meta, Row, Writer};

/// Runs the command in `folder`.
fn sim(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("sim")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the binary was built with this test")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}

/// A trace of clients that ask three times each, 1 s apart.
fn write(path: &Path, has_clients: bool) {
    let mut writer = Writer::create(path, Meta::default()).expect("the folder is there");
    for number in 0..300 {
        let row = Row {
            arrival_us: i64::try_from(number).expect("small") * 1_000_000,
            client: has_clients.then_some(number / 3),
            target: number % 40,
            received_bytes: Some(10_000),
            ..Row::default()
        };
        writer.push(&row).expect("the disk has room");
    }
    writer.finish().expect("the disk has room");
}

#[test]
fn lard_is_the_same_for_any_number_of_threads() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let with = |threads: &str, page: &str| {
        let arguments = [
            "paper",
            "lard",
            "--requests",
            "1200",
            "--only",
            "claims,figure-3",
            "--threads",
            threads,
            "--out",
            page,
        ];
        let output = sim(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        assert!(
            err(&output).contains(&format!("page: {page}")),
            "{}",
            err(&output)
        );
        let page = std::fs::read_to_string(folder.path().join(page)).expect("the page");
        (out(&output), page)
    };
    let (text, page) = with("1", "a.html");
    assert_eq!((text.clone(), page.clone()), with("2", "b.html"));
    for word in ["calibrated", "predicted", "Figure 3", "[claims]"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!page.contains("http:") && !page.contains("https:") && !page.contains("<script"));
}

#[test]
fn clusters_of_a_trace_with_clients_have_reconstructed_connections() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(&folder.path().join("a.parquet"), true);
    let arguments = ["cluster", "a.parquet", "--nodes", "2,3", "--json"];
    let output = sim(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let record = json(&output);
    let grouping = record["grouping"].as_str().expect("a text");
    assert!(
        grouping.contains("reconstructed (client, gaps below 15 s)"),
        "{grouping}"
    );
    let runs = record["runs"].as_array().expect("a list");
    assert_eq!(runs.len(), 2);
    for run in runs {
        assert_eq!(
            (&run["requests"], &run["connections"]),
            (&300.into(), &100.into())
        );
        let files_read = run["files_read"].as_u64().expect("a number");
        let nodes = run["node_count"].as_u64().expect("a number");
        // all fit into memory: a node reads a file once
        assert!((40..=40 * nodes).contains(&files_read), "{files_read}");
    }
}

#[test]
fn trace_without_clients_is_refused_and_http_1_0_needs_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(&folder.path().join("a.parquet"), false);
    let output = sim(folder.path(), &["cluster", "a.parquet"]);
    assert_eq!(output.status.code(), Some(2));
    let said = err(&output);
    assert!(
        said.contains("`connection`") && said.contains("`client`"),
        "{said}"
    );
    assert!(said.contains("HTTP/1.0"), "{said}");
    let output = sim(
        folder.path(),
        &["cluster", "a.parquet", "--http", "1.0", "--json"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert_eq!(json(&output)["runs"][0]["connections"], 300);
}

#[test]
fn costs_of_flags_slow_the_cluster_down() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(&folder.path().join("a.parquet"), true);
    let per_s = |flags: &[&str]| {
        let arguments = [&["cluster", "a.parquet", "--nodes", "1", "--json"], flags].concat();
        let output = sim(folder.path(), &arguments);
        json(&output)["runs"][0]["requests_per_s"]
            .as_f64()
            .expect("a number")
    };
    let published = per_s(&[]);
    assert!(per_s(&["--cost", "disk-first=56000"]) < published * 0.6);
    assert!(per_s(&["--server", "flash", "--cost", "disk-first=1"]) > published * 3.0);
}
