//! What was recorded beside what is simulated of it.

use super::{Client, LOCATIONS, record_with, text, traces};
use crate::support::{Config, Nginx, content};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .output()
        .expect("the binary was built with this test")
}

/// Runs `weir`, which has to end so, and takes what it prints for JSON.
#[track_caller]
fn json(code: i32, arguments: &[&str]) -> Value {
    let output = weir(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Records what a client asks, one after the other: the trace, and how many requests that were.
fn recording(folder: &Path) -> (PathBuf, u64) {
    let nginx = Nginx::start(LOCATIONS);
    for number in 0..20 {
        nginx.file(&format!("{number}"), &content(number, 3000));
    }
    let mut weir = record_with(
        &Config::forward().set("cache.memory", "\"64MiB\""),
        folder,
        &[],
    );
    let mut client = Client::new(&weir, nginx.address);
    let mut asked = 0;
    for _ in 0..3 {
        for number in 0..20 {
            client.get(&format!("/hour/{number}"), "").expect(200);
            client.get(&format!("/validated/{number}"), "").expect(200);
            client.get(&format!("/private/{number}"), "").expect(200);
            asked += 3;
        }
        client
            .get("/hour/3", "Cache-Control: no-cache\r\n")
            .expect(200);
        client.get("/hour/4", "Range: bytes=10-99\r\n").expect(206);
        client.get("/hour/missing?a=b", "Cookie: c\r\n").expect(404);
        asked += 3;
    }
    weir.until("counted", |metrics| metrics.all_requests() == asked);
    assert_eq!(weir.stop().code(), Some(0));
    let [trace] = &traces(folder)[..] else {
        panic!("one trace");
    };
    (trace.clone(), asked)
}

/// A network that takes no time: what is left are the servers' times of the recording.
const NEAR: &[&str] = &[
    "--network",
    "research",
    "--client-rtt",
    "0s",
    "--internet-rate",
    "10Gbit/s",
    "--cache-size",
    "64MiB",
    "--json",
];

#[test]
fn simulation_of_a_recording_has_its_verdicts_and_bytes_row_by_row() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (trace, asked) = recording(folder.path());
    let rows = folder.path().join("rows");
    let run = [&["sim", "run", text(&trace), "--rows", text(&rows)], NEAR].concat();
    json(0, &run);
    let found = json(
        0,
        &["trace", "compare", text(&trace), text(&rows), "--json"],
    );
    assert_eq!(found["is_equal"], true, "{found}");
    assert_eq!(found["pairs_by_place"], asked, "{found}");
    assert_eq!(found["verdicts"]["equal"], asked, "{found}");
    assert_eq!(found["from_cache"]["equal"], asked, "{found}");
    assert!(found["from_cache"]["bytes"]["a"].as_u64() > Some(100_000));
    let verdicts = found["verdicts"]["pairs"].as_array().expect("a list");
    for word in ["hit", "uri-miss", "stale", "request"] {
        assert!(
            verdicts.iter().any(|pair| pair["a"] == word),
            "{word}: {found}"
        );
    }
    let stats = json(0, &["trace", "stats", text(&rows), "--json"]);
    assert_eq!(stats["requests"], asked);

    // a simulation of another proxy is told from the recording
    let other = folder.path().join("other");
    let run = ["sim", "run", text(&trace), "--rows", text(&other)];
    json(0, &[&run, NEAR, &["--caching", "off"]].concat());
    let found = json(
        1,
        &["trace", "compare", text(&trace), text(&other), "--json"],
    );
    assert_eq!(found["is_equal"], false);
    assert_eq!(found["from_cache"]["bytes"]["b"], 0);
    assert_eq!(
        found["examples"]["verdicts"].as_array().map(Vec::len),
        Some(5)
    );
}
