//! What reads traces reads these.

use super::{Client, LOCATIONS, only, record, text, traces};
use crate::support::{Nginx, content};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Runs `weir`, and takes what it prints for JSON.
fn weir(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .output()
        .expect("the binary was built with this test");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Records hits, misses, an abort, a refusal and a tunnel that is not opened; how many requests
/// that were.
fn traffic(folder: &Path) -> u64 {
    let nginx = Nginx::start(LOCATIONS);
    nginx.file("large", &content(1, 2_000_000));
    for number in 0..20 {
        nginx.file(&format!("{number}"), &content(number, 3000));
    }
    let mut weir = record(folder, &[]);
    let mut asked = 0;
    for _ in 0..3 {
        let mut client = Client::new(&weir, nginx.address);
        for number in 0..20 {
            client.get(&format!("/hour/{number}"), "").expect(200);
            asked += 1;
        }
        client.get("/hour/missing?a=b", "Cookie: c\r\n").expect(404);
        client.send("GET", "/private/large", "");
        client.client.head();
        client.client.take(100_000);
        asked += 2;
    }
    Client::new(&weir, "10.0.0.1").get("/", "").expect(403);
    let mut tunnel = Client::new(&weir, nginx.address);
    tunnel
        .client
        .send("CONNECT 10.0.0.1:443 HTTP/1.1\r\nHost: 10.0.0.1:443\r\n\r\n");
    tunnel.client.reply().expect(403);
    asked += 2;
    weir.until("counted", |metrics| metrics.all_requests() == asked);
    assert_eq!(weir.stop().code(), Some(0));
    asked
}

#[test]
fn recorded_trace_is_readable_by_stats_and_both_simulators() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let asked = traffic(folder.path());
    assert_eq!(only(folder.path()).len() as u64, asked);
    let traces = traces(folder.path());
    let trace = text(&traces[0]);
    let stats = weir(&["trace", "stats", trace, "--json"]);
    assert_eq!(stats["requests"], asked);
    assert_eq!(stats["meta"]["source"], "weir serve --record");
    let run = weir(&["sim", "run", trace, "--network", "fixed-2024", "--json"]);
    for outcome in ["run", "no_proxy", "no_caches"] {
        assert_eq!(run[outcome]["requests"]["count"], asked, "{run}");
        // they are written in the order in which they arrived, although they ended in another
        assert_eq!(run[outcome]["out_of_order"], 0, "{run}");
    }
    let hits = weir(&["sim", "hits", trace, "--size", "1MiB", "--json"]);
    let ratio = hits["infinite_hit_ratio"].as_f64().unwrap_or_default();
    assert!(ratio > 0.5, "{hits}");
}
