//! Runs that are ended, or that had nobody to ask.

use super::bench::{Bench, Running, number};
use super::support::{Config, Weir};
use std::process::Command;

#[test]
fn interrupted_run_leaves_no_record() {
    let weir = Weir::serve(&Config::forward());
    let bench = Bench::new();
    let address = weir.address().to_string();
    // an hour, if it were not interrupted
    let arguments = [
        "run",
        "wpb",
        "--set",
        "origin.latency=constant(20ms)",
        "--set",
        "workload.requests_per_client=100000",
        "--proxy",
        &address,
        "--out",
        "record.json",
    ];
    let running = Running::start(bench.command(&arguments));
    weir.until("asked", |metrics| metrics.requests("uri-miss") > 20);
    let status = Command::new("kill")
        .args(["-INT", &running.id().to_string()])
        .status();
    assert!(status.expect("kill is everywhere").success());
    let (code, said) = running.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("error: the run is not valid\n  caused by: It was interrupted after"),
        "{said}"
    );
    let record = bench.record("record.json");
    assert_eq!(record["is_valid"], false);
    assert!(number(&record, "/total/client/forwarded") > 0, "{said}");
}

#[test]
fn proxy_that_does_not_answer_ends_the_run_with_the_reason() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = nobody.local_addr().expect("it is bound").to_string();
    drop(nobody);
    let arguments = [
        "wpb",
        "--scale",
        "0.02",
        "--clients",
        "2",
        "--proxy",
        &address,
    ];
    let bench = Bench::new();
    let said = bench.refused(&arguments);
    assert!(
        said.contains(&format!(
            "the proxy at {address} does not answer: Connection refused"
        )),
        "{said}"
    );
}

#[test]
fn first_refusal_is_shown_with_its_status_and_proxy_status() {
    // it lets nobody reach loopback, as it is by default
    let weir = Weir::serve(&Config::guarded());
    let address = weir.address().to_string();
    let bench = Bench::new();
    let said = bench.refused(&[
        "wpb",
        "--scale",
        "0.02",
        "--clients",
        "2",
        "--proxy",
        &address,
    ]);
    assert!(
        said.contains(&format!(
            "the proxy at {address} refused the first request: 403 Forbidden, Proxy-Status: "
        )) && said.contains("destination_ip_prohibited"),
        "{said}"
    );
}

#[test]
fn proxy_that_is_killed_on_the_way_is_neither_praised_nor_given_hits_for_failures() {
    let weir = Weir::serve(&Config::forward());
    let address = weir.address().to_string();
    let bench = Bench::new();
    let arguments = [
        "run",
        "wpb",
        "--clients",
        "4",
        "--set",
        "origin.latency=constant(20ms)",
        "--set",
        "workload.requests_per_client=100",
        "--proxy",
        &address,
        "--out",
        "record.json",
    ];
    let running = Running::start(bench.command(&arguments));
    weir.until("asked", |metrics| metrics.requests("uri-miss") > 20);
    let status = Command::new("kill")
        .args(["-KILL", &weir.id().to_string()])
        .status();
    assert!(status.expect("kill is everywhere").success());
    let (code, said) = running.end();
    assert_eq!(code, Some(1), "{said}");
    let record = bench.record("record.json");
    let at = |name: &str| number(&record, &format!("/total/{name}"));
    let failed: u64 = record["total"]["client"]["errors"]
        .as_object()
        .expect("a map")
        .values()
        .filter_map(serde_json::Value::as_u64)
        .sum();
    assert!(failed > 400, "{said}");
    // as the report has it: what was answered and asked nothing of the origin
    let parsed: weir_measure::record::Record =
        serde_json::from_value(record.clone()).expect("a record");
    let ratio = parsed.total.hit_ratio().expect("some were answered");
    let (requests, hits) = (at("client/requests"), at("client/hits"));
    assert!(
        requests == 800 && ratio <= share(hits, requests) + 1e-9,
        "{ratio}: {said}"
    );
    let page = std::fs::read_to_string(bench.file("record.html")).expect("a report");
    assert!(
        !page.contains("class=\"lead\""),
        "a headline for a run that is not valid"
    );
    assert!(page.contains("1 of 1 runs is not valid"), "{said}");
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred requests")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}
