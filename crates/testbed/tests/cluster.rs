//! `cargo xtask cluster` at a small scale, with the weir that tests use: counts hold there, times
//! do not. Not here are `hit-ratio`, `lateral` and `read-ahead`, which take minutes where the
//! machine has other work to do, and `choice`, which is a program of its own that is built to be
//! fast.

#![expect(clippy::expect_used, reason = "a test")]

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use xtask::program;

/// The record of a measurement of these parts.
fn measured(parts: &str) -> Value {
    let name = format!("weir-cluster-{}-{parts}.json", std::process::id());
    let file = std::env::temp_dir().join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-testbed"));
    command.args([
        "cluster", "--rounds", "1", "--scale", "0.02", "--parts", parts,
    ]);
    command.arg("--weir").arg(weir()).arg("--out").arg(&file);
    let output = command.output().expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let text = std::fs::read_to_string(&file);
    let _ = std::fs::remove_file(&file);
    // 1 is a target that was missed: this weir is slow
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("| to reach | reached |"), "{table}");
    let record: Value = serde_json::from_str(&text.expect("a record")).expect("JSON");
    let left_out = record["left_out"].as_object();
    assert!(left_out.is_some_and(serde_json::Map::is_empty), "{said}");
    record
}

/// The program that the tests of the command line use, which `cargo test` has built; it is built if
/// only tests of this package are.
fn weir() -> PathBuf {
    let own = PathBuf::from(env!("CARGO_BIN_EXE_weir-testbed"));
    let beside = own.with_file_name("weir");
    if beside.is_file() {
        return beside;
    }
    let what = ["-p", "weir-cli", "--bin", "weir"];
    PathBuf::from(program::build_for_tests(&what, "weir").expect("weir"))
}

/// The elements of a list of figures.
fn list<'a>(record: &'a Value, name: &str) -> &'a [Value] {
    record[name].as_array().map_or(&[], Vec::as_slice)
}

#[test]
fn counts_of_a_small_cluster_are_those_of_a_large_one() {
    let record = measured("join,kill,herd");

    // one node more takes its share of the targets
    let joins = list(&record, "joins");
    let systems = joins.iter().map(|run| &run["system"]);
    assert!(systems.eq(["replicated-hash", "HAProxy before nodes"]));
    let requests = joins[0]["origin_requests"].as_u64().expect("a count");
    let targets = joins[0]["targets"].as_u64().expect("a count");
    assert!(requests * 2 <= targets, "{joins:?}");

    // one node less fails what it was answering, and its targets are fetched once: twice at most
    // those that others awaited of it, as the node that is asked in its place may await them too
    let [run] = list(&record, "kills") else {
        panic!("{record}")
    };
    assert_eq!(run["failed_elsewhere"], 0, "{run}");
    let of = |name: &str| run[name].as_u64();
    let connections = of("connections_there").expect("a count");
    assert!(of("failed_there") <= Some(2 * connections), "{run}");
    let spans = [0, 1].map(|span| run["origin_requests"][span].as_u64().expect("a count"));
    let stored = of("stored_there").expect("a count");
    let awaited = 2 * connections;
    assert!(spans[0] + spans[1] <= stored + awaited, "{run}");

    let herd = &record["herd"];
    assert_eq!(herd["fetches"], 1, "{herd}");
    assert_eq!(herd["whole"], herd["clients"], "{herd}");
}

/// The systems that are compared.
const SYSTEMS: [&str; 6] = [
    "replicated-hash",
    "bounded-hash",
    "hash",
    "lard-r",
    "extended-lard",
    "HAProxy before nodes",
];

/// The figures of each system, in this order.
fn by_system(figures: &[Value]) -> Vec<&Value> {
    let systems = figures.iter().map(|run| run["system"].as_str());
    assert!(systems.eq(SYSTEMS.map(Some)), "{figures:?}");
    figures.iter().collect()
}

/// A count of a figure.
fn count(figure: &Value, name: &str) -> u64 {
    let count = figure[name].as_u64();
    count.unwrap_or_else(|| panic!("no `{name}` in {figure}"))
}

#[test]
fn small_cluster_answers_from_its_stores_and_each_node_serves_a_hot_target() {
    let record = measured("speed,hot");

    // that no request of a cluster reached the origin is looked at by each run
    let speeds = by_system(list(&record, "speeds"));
    for run in &speeds[..5] {
        assert_eq!(count(run, "origin_requests"), 0, "{run}");
    }
    // of four nodes one keeps a target, and no other one has a copy
    let hash = speeds[2];
    let here = count(hash, "hits_here") * 100 / count(hash, "requests");
    assert!((15..=35).contains(&here), "{here} %: {hash}");

    for run in by_system(list(&record, "hots")) {
        let hot = count(run, "hot_requests") * 100 / count(run, "requests");
        assert!((15..=45).contains(&hot), "{hot} %: {run}");
        let served = list(run, "served");
        let all_serve = served.iter().all(|requests| requests.as_u64() > Some(0));
        assert!(served.len() == 4 && all_serve, "{run}");
    }
}
