//! `cargo xtask cluster` at a small scale, with the weir that tests use: counts hold there, times
//! do not. Not here are `hit-ratio`, `lateral` and `read-ahead`, which take minutes where the
//! machine has other work to do, and `choice`, which is a program of its own that is built to be
//! fast.

#![expect(clippy::expect_used, reason = "a test")]

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use xtask::namespace::is_permitted;
use xtask::program;

/// The record of a measurement of these parts.
fn measured(parts: &str) -> Value {
    record_of(parts, &["--scale", "0.02", "--parts", parts])
}

/// The record of a measurement with these arguments.
fn record_of(name: &str, arguments: &[&str]) -> Value {
    let name = format!("weir-cluster-{}-{name}.json", std::process::id());
    let file = std::env::temp_dir().join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-testbed"));
    command.args(["cluster", "--rounds", "1"]).args(arguments);
    command.arg("--weir").arg(weir()).arg("--out").arg(&file);
    let output = command.output().expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let text = std::fs::read_to_string(&file);
    let _ = std::fs::remove_file(&file);
    // 1 is a target that was missed: this weir is slow
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("###"), "{table}");
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

#[test]
fn clients_see_nothing_of_connections_that_a_front_end_hands_over() {
    if !is_permitted() {
        return;
    }
    let record = measured("hand-off");
    let runs = list(&record, "hand_offs");
    let kinds = runs.iter().map(|run| {
        let mechanism = run["mechanism"].as_str().expect("a word");
        (mechanism, count(run, "requests_a_connection"))
    });
    assert!(kinds.eq([
        ("forwarding", 20),
        ("hand-off", 20),
        ("forwarding", 1),
        ("hand-off", 1)
    ]));
    for run in runs {
        let of = |name: &str| count(run, name);
        assert_eq!(of("unbroken"), of("connections"), "{run}");
        assert_eq!(of("lost"), 0, "{run}");
        if run["mechanism"] == "hand-off" {
            let counted = of("handed_over") + of("stayed");
            assert_eq!(counted, of("connections"), "{run}");
            assert!(of("handed_over") > 0 && of("hold_p99_us") > 0, "{run}");
        }
    }
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

#[test]
fn nodes_of_figure_13_answer_from_their_disks_and_read_no_more_than_their_limit() {
    if !is_permitted() {
        return;
    }
    // so few that a request waits for the disk longer than by default
    const READS_PER_S: u64 = 40;
    let reads = READS_PER_S.to_string();
    let systems = "extended-lard,extended-lard-peers,extended-lard-hand-off,haproxy-uri";
    let mut arguments = vec!["--figure", "13", "--scale", "0.003", "--nodes", "2"];
    arguments.extend(["--fill", "2", "--seconds", "1"]);
    arguments.extend(["--reads", &reads, "--systems", systems]);
    let record = record_of("figure-13", &arguments);

    let runs = list(&record, "runs");
    // before nodes of weir three with both versions, and hand-off with one; nodes of nginx are no
    // peers
    assert_eq!(runs.len(), 3 * 2 + 1 + 2 * 2, "{record}");
    let mut all_reads = 0;
    for run in runs {
        assert!(count(run, "requests") > 0, "{run}");
        // a miss is a read and no fetch, but for the few that a store with a slow disk did not take
        let fetches = count(run, "origin_requests");
        assert!(fetches * 4 <= count(run, "requests"), "{run}");
        let hands_over = run["system"] == "extended-lard-hand-off";
        assert_eq!(count(run, "hand_offs") > 0, hands_over, "{run}");
        let reads = list(run, "reads").iter();
        let reads: Vec<u64> = reads.map(|it| it.as_u64().expect("a count")).collect();
        // as many again, since the kernel counts in slices of time
        let permitted = 2 * READS_PER_S * count(run, "duration_us") / 1_000_000;
        assert!(reads.iter().all(|reads| *reads <= permitted), "{run}");
        all_reads += reads.iter().sum::<u64>();
    }
    // nodes have a part of their content of megabytes in memory
    assert!(all_reads > 0, "{record}");
}

#[test]
fn purge_is_a_message_to_each_other_node() {
    let record = measured("purge");
    let purges = list(&record, "purges");
    let sizes = purges.iter().map(|run| count(run, "nodes"));
    assert!(sizes.eq([2, 4]), "{purges:?}");
    for run in purges {
        let others = count(run, "nodes") - 1;
        // that each other node answers for each purge is looked at by each run
        assert_eq!(
            count(run, "messages"),
            count(run, "purges") * others,
            "{run}"
        );
        let times = &run["everywhere_us"];
        assert!(count(times, "p50") <= count(times, "p99"), "{run}");
    }
}
