//! h2spec: RFC 9113 and RFC 7541, sentence by sentence.

use super::super::Gateway;
use super::{Clear, LOCATIONS};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

/// How long it waits for the end of a stream or a connection, seconds: a loaded machine is slow.
const PATIENCE_S: &str = "15";

/// Built once for all tests.
static PROGRAM: LazyLock<PathBuf> =
    LazyLock::new(|| xtask::program::h2spec::build().expect("h2spec is built"));

/// What h2spec says of the server at `to`.
fn h2spec(to: SocketAddr, more: &[&str]) -> String {
    let output = Command::new(&*PROGRAM)
        .args(["--host", &to.ip().to_string()])
        .args(["--port", &to.port().to_string()])
        .args(["--path", "/cached", "--timeout", PATIENCE_S])
        .args(more)
        .output()
        .expect("h2spec starts");
    String::from_utf8(output.stdout).expect("text")
}

/// One of its tests begins a request without an end, and then opens the window of its stream too
/// far. Where the response was sent before that came, the stream has ended with `NO_ERROR`, as it
/// may (RFC 9113 §8.1), which the test takes for a failure: that is one of 15 runs.
const RACE: &str = "increasing the flow control window to above 2^31-1 on a stream";

/// What h2spec says of a run without that.
fn h2spec_without_race(address: SocketAddr, more: &[&str]) -> String {
    const RUNS: usize = 8;
    let has_race = |said: &str| {
        let failures = said.split_once("Failures:").map(|(_, failures)| failures);
        failures.is_some_and(|failures| failures.contains(RACE))
    };
    let mut runs = (0..RUNS).map(|_| h2spec(address, more));
    runs.find(|said| !has_race(said))
        .unwrap_or_else(|| panic!("{RUNS} of {RUNS} runs fail: {RACE}"))
}

#[test]
fn every_test_of_h2spec_passes_by_tls() {
    let gateway = Gateway::with(LOCATIONS, |config, _| config);
    let said = h2spec_without_race(gateway.weir.address(), &["--tls", "--insecure"]);
    let expected = "145 tests, 145 passed, 0 skipped, 0 failed";
    assert!(said.contains(expected), "{said}");
    assert_eq!(gateway.weir.metrics().count("weir_panics_total"), 0);
}

/// What does not begin with the preface is HTTP/1.1 there, and answered so; h2spec expects GOAWAY
/// or the end of the connection (RFC 9113 §3.4).
#[test]
fn in_clear_an_invalid_preface_alone_is_taken_for_another_protocol() {
    let clear = Clear::start();
    let said = h2spec_without_race(clear.weir.address(), &[]);
    let expected = "145 tests, 144 passed, 0 skipped, 1 failed";
    assert!(said.contains(expected), "{said}");
    let (_, failures) = said.split_once("Failures:").expect("one");
    assert!(
        failures.contains("Sends invalid connection preface"),
        "{said}"
    );
    clear.expect_others_are_served();
}
