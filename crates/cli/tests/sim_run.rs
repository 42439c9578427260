//! `weir sim run` and sweeps of it, on a trace that is made here.

mod snapshot;

use snapshot::{compare, finish, folder, weir, whole};
use std::path::Path;
use tempfile::TempDir;

/// A folder with a trace of 1997 in it.
fn made() -> TempDir {
    let place = tempfile::tempdir().expect("a temporary folder");
    let arguments = "trace make modem-1997 --requests 3000 --output modem.parquet";
    let output = weir(place.path(), &words(arguments));
    assert_eq!(output.status.code(), Some(0), "{}", whole(&output));
    std::fs::write(place.path().join("rules.toml"), RULES).expect("a file");
    std::fs::write(
        place.path().join("bypass.toml"),
        "[[rule]]\nbypass = true\n",
    )
    .expect("a file");
    let wrong = "[[rule]]\nbypas = true\n";
    std::fs::write(place.path().join("wrong-rules.toml"), wrong).expect("a file");
    place
}

/// Rules of which one cannot be told from a trace, and one not whole.
const RULES: &str = r#"
[[rule]]
name = "mirror"
host = ["deb.debian.org"]
lifetime.forced = "1h"

[[rule]]
name = "texts"
content_type = ["text/*"]
lifetime.forced = "1h"
response = ["remove X-Mirror"]
"#;

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn said(place: &Path, line: &str) -> String {
    whole(&weir(place, &words(line)))
}

/// Name of the snapshot and the arguments, in this order: a sweep goes on with the file of the one
/// before.
const COMMANDS: &[(&str, &str)] = &[
    ("sim-run-help", "sim run --help"),
    ("sim-run", "sim run modem.parquet --profile http-1998"),
    (
        "sim-run-research",
        "sim run modem.parquet --network research --profile http-1998 --caching ignoring-cookies --cache-size 1MiB --eviction lru \
         --read-ahead unlimited --abort finish --hit-overhead 5ms",
    ),
    (
        "sim-run-rows",
        "sim run modem.parquet --profile http-1998 --rows rows.parquet",
    ),
    ("sim-run-rules", "sim run modem.parquet --rules rules.toml"),
    (
        "sim-run-bypass",
        "sim run modem.parquet --rules bypass.toml",
    ),
    (
        "sim-run-wrong-rules",
        "sim run modem.parquet --rules wrong-rules.toml",
    ),
    (
        "sim-run-rows-small",
        "sim run modem.parquet --profile http-1998 --rows small.parquet --cache-size 1MiB --client-rtt 100ms --hit-overhead 5ms",
    ),
    (
        "sim-run-rows-into-trace",
        "sim run modem.parquet --rows modem.parquet",
    ),
    (
        "sim-run-rows-nowhere",
        "sim run modem.parquet --rows not-there/rows.parquet",
    ),
    ("trace-stats-rows", "trace stats rows.parquet"),
    ("trace-top", "trace top rows.parquet --sketches 2 --rows 5"),
    (
        "trace-compare",
        "trace compare rows.parquet small.parquet --examples 2",
    ),
    (
        "trace-compare-equal",
        "trace compare rows.parquet rows.parquet --equal verdicts,bytes,times",
    ),
    (
        "trace-compare-tolerance",
        "trace compare rows.parquet small.parquet --equal times --tolerance 1h --examples 0",
    ),
    (
        "trace-compare-unsaid",
        "trace compare modem.parquet rows.parquet --examples 0",
    ),
    ("sim-run-no-trace", "sim run not-there.parquet"),
    (
        "sim-run-bad-network",
        "sim run modem.parquet --network modm",
    ),
    (
        "sim-run-bad-window",
        "sim run modem.parquet --initial-window 0",
    ),
    ("sim-run-bad-rate", "sim run modem.parquet --client-rate 21"),
    (
        "sim-run-bad-overhead",
        "sim run modem.parquet --hit-overhead 5KB",
    ),
    (
        "sim-sweep-run",
        "sim sweep --of run modem.parquet --threads 1 --out s.parquet --axis profile=http-1998 --axis size=1%,unlimited --axis read-ahead=64KiB,unlimited",
    ),
    (
        "sim-sweep-run-goes-on",
        "sim sweep --of run modem.parquet --threads 1 --out s.parquet --axis profile=http-1998 --axis size=1%,10%,unlimited --axis read-ahead=64KiB,unlimited",
    ),
    (
        "sim-sweep-run-other-file",
        "sim sweep modem.parquet --out s.parquet --axis policy=lru",
    ),
    (
        "sim-sweep-run-bad-axis",
        "sim sweep --of run modem.parquet --axis client-conections=never",
    ),
    (
        "sim-sweep-run-bad-value",
        "sim sweep --of run modem.parquet --axis server-connections=sometimes",
    ),
    (
        "sim-sweep-run-bad-point",
        "sim sweep --of run modem.parquet --axis tcp=linux --axis initial-window=10,100000",
    ),
    (
        "sim-sweep-run-zipf",
        "sim sweep --of run --zipf 100 --axis policy=lru",
    ),
];

#[test]
fn command_output_matches_its_snapshot() {
    let place = made();
    let snapshots = folder("commands");
    let mut differences = Vec::new();
    for (name, line) in COMMANDS {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = format!("$ weir {line}\n{}", said(place.path(), &line));
        compare(
            &snapshots.join(format!("{name}.txt")),
            &found,
            &mut differences,
        );
    }
    finish(&differences);
}

#[test]
fn json_comparison_counts_equal_and_different_verdicts_of_all_rows() {
    let place = made();
    said(place.path(), "sim run modem.parquet --rows a.parquet");
    said(
        place.path(),
        "sim run modem.parquet --rows b.parquet --caching off",
    );
    let output = weir(
        place.path(),
        &words("trace compare a.parquet b.parquet --json --examples 3"),
    );
    assert_eq!(output.status.code(), Some(1), "{}", whole(&output));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(found["is_equal"], false);
    assert_eq!(found["pairs_by_place"], 3000);
    assert_eq!(found["from_cache"]["bytes"]["b"], 0);
    assert!(found["from_cache"]["bytes"]["a"].as_u64() > Some(0));
    let pairs = found["verdicts"]["pairs"].as_array().expect("a list");
    assert!(pairs.iter().any(|pair| pair["a"] == "hit"), "{pairs:?}");
    assert!(pairs.iter().all(|pair| pair["b"] != "hit"), "{pairs:?}");
    let count = |name: &str| found["verdicts"][name].as_u64().unwrap_or(0);
    assert!(count("different") > 0);
    assert_eq!(count("equal") + count("different"), 3000);
    let examples = found["examples"]["verdicts"].as_array().map(Vec::len);
    assert_eq!(examples, Some(3));
}

#[test]
fn same_seed_gives_the_same_output_twice() {
    let place = made();
    let line =
        "sim run modem.parquet --profile http-1998 --miss-overhead exp(30ms) --seed 7 --json";
    let once = said(place.path(), line);
    assert!(once.starts_with("exit 0") && once.contains("\"no_caches\""));
    assert_eq!(once, said(place.path(), line));
}

#[test]
fn resumed_sweep_writes_the_same_bytes_as_an_uninterrupted_one() {
    let place = made();
    let sweep = |out: &str, axes: &str, threads: u8| {
        let line =
            format!("sim sweep --of run modem.parquet --threads {threads} --out {out} {axes}");
        let said = said(place.path(), &line);
        assert!(said.starts_with("exit 0"), "{said}");
        said
    };
    let all = "--axis abort=stop,finish --axis client-connections=never,as-in-trace,always --axis path=proxy,direct";
    sweep("whole.parquet", all, 1);
    sweep(
        "pieces.parquet",
        "--axis abort=finish --axis client-connections=always --axis path=direct",
        1,
    );
    let said = sweep("pieces.parquet", all, 2);
    assert!(
        said.contains("12 of 12 runs, 11 of them made now"),
        "{said}"
    );
    let bytes = |name: &str| std::fs::read(place.path().join(name)).expect("it was written");
    assert_eq!(bytes("whole.parquet"), bytes("pieces.parquet"));
}
