//! nghttp, of the makers of nghttp2, as a client.

use super::super::Gateway;
use super::{Clear, LOCATIONS};
use crate::support::content;
use std::process::Command;

const LENGTH: usize = 5 << 20;

/// What it writes when called with these arguments.
#[track_caller]
fn nghttp(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new("nghttp").args(arguments).output();
    let output = output.expect("nghttp starts: it is in Debian's package `nghttp2-client`");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{arguments:?}: {said}"
    );
    output.stdout
}

#[test]
fn nghttp_takes_and_sends_content_through_windows_of_each_size() {
    let gateway = Gateway::with(LOCATIONS, |config, _| config);
    let large = content(7, LENGTH);
    let file = gateway.nginx.file("large", &large);
    std::fs::create_dir(gateway.nginx.path("put")).expect("a folder");
    let url = |path: &str| format!("https://{}{path}", gateway.weir.address());
    let host = ["--no-verify-peer", "-H", ":authority: a.test"];
    for bits in ["10", "16", "25"] {
        let windows = ["-w", bits, "-W", bits];
        let got = nghttp(&[&host[..], &windows, &[&url("/large")]].concat());
        assert!(
            got == large,
            "windows of 2^{bits} bytes: {} bytes",
            got.len()
        );
    }
    let file = file.to_string_lossy();
    let put = [
        "-n",
        "-H",
        ":method: PUT",
        "-d",
        &file,
        "--trailer",
        "x-t: 1",
    ];
    nghttp(&[&host[..], &put, &[&url("/put/large")]].concat());
    assert!(std::fs::read(gateway.nginx.path("put/large")).expect("stored") == large);
    assert_eq!(gateway.weir.metrics().count("weir_panics_total"), 0);
}

#[test]
fn nghttp_has_fifty_requests_on_one_connection_in_clear() {
    let clear = Clear::start();
    let url = clear.weir.url("/cached");
    let first = nghttp(&[&url]);
    let all = nghttp(&["-m", "50", "-H", "x-a: b", &url]);
    assert_eq!(all, first.repeat(50));
    let metrics = clear
        .weir
        .until("counted", |metrics| metrics.all_requests() == 51);
    assert_eq!(metrics.requests("hit"), 50);
    clear.expect_ends("client", 2);
}
