//! `cargo xtask scale` at a small scale, with the weir that tests use.

#![expect(clippy::expect_used, reason = "a test")]

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use xtask::program;

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

#[test]
fn record_has_each_network_and_the_memory_that_they_took() {
    let name = format!("weir-scale-{}.json", std::process::id());
    let file = std::env::temp_dir().join(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-testbed"));
    command.args(["scale", "--requests", "5000", "--nodes", "1,4"]);
    command.arg("--weir").arg(weir()).arg("--out").arg(&file);
    let output = command.output().expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(&file).expect("a record");
    let _ = std::fs::remove_file(&file);

    let record: Value = serde_json::from_str(&text).expect("JSON");
    let networks = &record["output"]["policies"][0]["networks"];
    let sizes = [0, 1].map(|network| networks[network]["nodes"].as_u64());
    assert_eq!(sizes, [Some(1), Some(4)], "{record}");
    let took = &record["took"];
    assert!(took["peak_rss_kib"].as_u64() > Some(1024), "{took}");
    assert!(took["cpu_us"].as_u64() > Some(0), "{took}");

    let tables = String::from_utf8_lossy(&output.stdout);
    // hits; and what a join, a death and a flash crowd cost, of more than one node
    for (row, count) in [("\n| 1 |", 1), ("\n| 4 |", 2)] {
        assert_eq!(tables.matches(row).count(), count, "{row}: {tables}");
    }
    assert!(
        tables.contains("web-2026: 5000 requests, one target in 16"),
        "{tables}"
    );
}
