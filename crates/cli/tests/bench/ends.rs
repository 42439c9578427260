//! Runs that are ended, or that reached no proxy.

use super::bench::{Bench, Running, number};
use super::support::{Config, Weir};
use std::process::Command;
use xtask::closed_port::ClosedPort;

#[test]
fn interrupted_run_writes_a_record_marked_invalid() {
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
fn unreachable_proxy_ends_the_run_with_the_connection_error() {
    let closed = ClosedPort::hold().expect("a port");
    let address = closed.address().to_string();
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
fn unreachable_proxy_among_several_is_named_before_the_first_run() {
    let closed = ClosedPort::hold().expect("a port");
    let dead = closed.address().to_string();
    let weir = Weir::serve(&Config::forward());
    let bench = Bench::new();
    let proxies = [format!("alive={}", weir.address()), format!("dead={dead}")];
    let said = bench.refused(&[
        "wpb",
        "--scale",
        "0.02",
        "--clients",
        "2",
        "--proxy",
        &proxies[0],
        "--proxy",
        &proxies[1],
    ]);
    let cause = format!("`dead` at {dead} does not answer: Connection refused");
    assert!(said.contains(&cause), "{said}");
    assert_eq!(weir.metrics().requests("uri-miss"), 0, "{said}");
}

#[test]
fn unwritable_output_file_is_refused_before_the_run() {
    let weir = Weir::serve(&Config::forward());
    let address = weir.address().to_string();
    let bench = Bench::new();
    std::fs::create_dir(bench.file("directory")).expect("made");
    std::fs::write(bench.file("file"), "kept").expect("written");
    let one = ["--proxy", address.as_str()];
    let (first, second) = (format!("a={address}"), format!("b={address}"));
    let two = ["--proxy", first.as_str(), "--proxy", second.as_str()];
    for (proxies, out, cause) in [
        (&one[..], &["--out", "directory"][..], "it is a directory"),
        (&one, &["--out", "file/x.json"], "`file` is not a directory"),
        (&two, &["--out", "file"], "`file` is not a directory"),
        (&one, &["--out", "x.html"], "would have the same name"),
        (
            &one,
            &["--out", "x.json", "--samples", "directory"],
            "it is a directory",
        ),
    ] {
        let arguments = [&["run", "wpb", "--scale", "0.02"][..], proxies, out].concat();
        let output = bench.output(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{said}");
        assert!(said.contains(cause) && said.contains("\nhint: "), "{said}");
        assert_eq!(said.lines().count(), 3, "it ran: {said}");
    }
    assert_eq!(weir.metrics().requests("uri-miss"), 0);
    let names = std::fs::read_dir(bench.file("")).expect("a folder");
    let mut names: Vec<_> = names
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["directory", "file"], "something is left behind");
}

#[test]
fn output_to_a_fifo_is_refused_and_the_fifo_remains() {
    use std::os::unix::fs::FileTypeExt as _;
    let bench = Bench::new();
    let made = Command::new("mkfifo").arg(bench.file("fifo")).status();
    assert!(made.expect("mkfifo").success());
    let output = bench.output(&["run", "wpb", "--direct", "--scale", "0.02", "--out", "fifo"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("it is a device or a fifo"), "{said}");
    let kind = std::fs::symlink_metadata(bench.file("fifo")).expect("it is there");
    assert!(kind.file_type().is_fifo());
}

#[test]
fn first_refusal_is_shown_with_its_status_and_proxy_status() {
    // it lets no client reach loopback, as it is by default
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
            "the proxy at {address} refused the first request: 403 Destination not allowed, see access.allow_destinations, Proxy-Status: "
        )) && said.contains("destination_ip_prohibited"),
        "{said}"
    );
}

#[test]
fn run_with_a_killed_proxy_is_invalid_and_failures_are_not_hits() {
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
