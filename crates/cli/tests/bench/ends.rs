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
fn proxy_that_is_not_there_is_measured() {
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
    let (record, said) = Bench::new().run(&arguments, 1);
    assert!(said.contains("No request was answered"), "{said}");
    assert_eq!(
        number(&record, "/total/client/errors/connect-refused"),
        16,
        "{said}"
    );
}
