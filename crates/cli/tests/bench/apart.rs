//! Master, origin and clients as processes of their own.

use super::bench::{Bench, Running, SMALL, number};
use super::support::{Config, Weir};
use serde_json::Value;
use xtask::closed_port::ClosedPort;

/// What a run must not depend on: how its roles are spread.
fn counts(record: &Value) -> Vec<u64> {
    let phases = ["/phases/0", "/phases/1", "/total"];
    let fields = [
        "/client/requests",
        "/client/hits",
        "/client/forwarded",
        "/client/content_bytes",
        "/origin/requests",
        "/origin/content_bytes",
    ];
    let pointers = phases
        .iter()
        .flat_map(|phase| fields.iter().map(move |field| format!("{phase}{field}")));
    pointers.map(|pointer| number(record, &pointer)).collect()
}

#[test]
fn separate_processes_count_the_same_as_a_single_process() {
    let bench = Bench::new();
    let together = {
        let weir = Weir::serve(&Config::forward());
        let address = weir.address().to_string();
        let mut arguments = SMALL.to_vec();
        arguments.extend(["--proxy", &address]);
        bench.run(&arguments, 0).0
    };
    let weir = Weir::serve(&Config::forward());
    let address = weir.address().to_string();
    let mut arguments = vec!["master"];
    arguments.extend(SMALL);
    arguments.extend([
        "--proxy",
        &address,
        "--listen",
        "127.0.0.1:0",
        "--client-hosts",
        "2",
    ]);
    arguments.extend(["--out", "apart.json"]);
    let master = Running::start(bench.command(&arguments));
    let waiting = master.wait_for("waiting for 1 origin and 2 clients at ");
    let at = waiting.rsplit(' ').next().expect("an address");
    let join = |role: &str, more: &[&str]| {
        let mut arguments = vec![role, "--master", at];
        arguments.extend(more);
        Running::start(bench.command(&arguments))
    };
    let others = [
        join("origin", &[]),
        join("clients", &["--name", "one"]),
        join("clients", &["--name", "two", "--threads", "2"]),
    ];
    let (code, said) = master.end();
    assert_eq!(code, Some(0), "{said}");
    for other in others {
        let (code, said) = other.end();
        assert_eq!(code, Some(0), "{said}");
    }
    let apart = bench.record("apart.json");
    assert_eq!(apart["is_valid"], true, "{:#?}", apart["reasons"]);
    assert_eq!(counts(&apart), counts(&together));
}

#[test]
fn origin_without_a_master_exits_with_an_error_and_a_hint() {
    let closed = ClosedPort::hold().expect("a port");
    let address = closed.address().to_string();
    let output = Bench::new().output(&["origin", "--master", &address, "--wait", "0"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains(&format!("error: cannot join the master at {address}")),
        "{said}"
    );
    assert!(
        said.contains("hint: start it with `weir bench master"),
        "{said}"
    );
}

#[test]
fn master_reports_how_many_origins_and_clients_are_missing() {
    let bench = Bench::new();
    let arguments = [
        "master",
        "wpb",
        "--direct",
        "--listen",
        "127.0.0.1:0",
        "--wait",
        "0",
    ];
    let output = bench.output(&arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("1 of 1 origins and 1 of 1 clients are missing; no participant joined"),
        "{said}"
    );
}
