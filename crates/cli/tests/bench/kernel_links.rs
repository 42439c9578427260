//! Links that the kernel makes: clients in a network namespace.

use super::bench::{Bench, number};
use super::support::{Config, Weir};
use std::process::Output;

/// Two clients at 10 000 bytes a second, 20 KB a response, no time at the origin.
const SLOW: &[&str] = &[
    "run",
    "wpb",
    "--clients",
    "2",
    "--shape",
    "namespace",
    "--set",
    "clients.link={ down = \"80kbit/s\", up = \"80kbit/s\" }",
    "--set",
    "workload.requests_per_client=2",
    "--set",
    "workload.sizes=constant(20KB)",
    "--set",
    "origin.latency=constant(0s)",
    "--out",
    "record.json",
];

fn run(weir: &Weir, bench: &Bench, proxy: &str) -> Output {
    weir.beside(&bench.file(""), env!("CARGO_BIN_EXE_weir"))
        .arg("bench")
        .args(SLOW)
        .args(["--proxy", proxy])
        .output()
        .expect("nsenter is in Debian's package util-linux")
}

#[test]
fn kernel_shaped_link_is_no_faster_than_its_configured_rate() {
    let config = Config::forward()
        .without_listeners()
        .listener("0.0.0.0:0", "forward")
        .set("access.clients", r#"["127.0.0.0/8", "198.18.0.0/15"]"#);
    let weir = Weir::serve_in_own_network(&config);
    let bench = Bench::new();
    let port = weir.address().port();
    let output = run(&weir, &bench, &format!("127.0.0.1:{port}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    let record = bench.record("record.json");
    assert_eq!(record["is_valid"], true, "{said}");
    assert_eq!(record["link_shaping"], "namespace");
    assert_eq!(number(&record, "/total/client/requests"), 8, "{said}");
    // 20 KB less what a bucket lets through at once, at 10 000 bytes a second; a busy machine may
    // take longer, the link may not be faster
    let least = record["total"]["response_time"]["all"]["min"].as_u64();
    assert!(least.is_some_and(|us| us > 1_800_000), "{least:?} us");
    let names = weir.beside(&bench.file(""), "ip").args(["netns"]).output();
    let names = names.expect("ip is in Debian's package iproute2").stdout;
    assert_eq!(String::from_utf8_lossy(&names), "", "it was left behind");
}

#[test]
fn namespace_shaping_is_refused_for_a_proxy_on_loopback_only() {
    let weir = Weir::serve_in_own_network(&Config::forward());
    let bench = Bench::new();
    let output = run(&weir, &bench, &weir.address().to_string());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_ne!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("cannot shape by a namespace"), "{said}");
    assert!(said.contains("all addresses of this machine"), "{said}");
}
