//! Starting where somebody else is.

use crate::support::{Config, Nginx, Weir};
use std::net::TcpListener;
use std::process::{Command, Output};

fn serve(config: &Config) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("weir.toml");
    std::fs::write(&file, config.text()).expect("a file");
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["serve", "--config"])
        .arg(&file)
        .output()
        .expect("the binary was built with this test")
}

#[track_caller]
fn check(config: &Config, error: &str, cause: &str) {
    let output = serve(config);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(output.stdout.is_empty());
    assert!(stderr.starts_with(error), "{stderr}");
    assert!(stderr.contains(&format!("caused by: {cause}")), "{stderr}");
}

#[test]
fn address_in_use_is_not_told_or_shared() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it is bound").to_string();
    check(
        &Config::guarded().listener(&address, "forward"),
        &format!("error: cannot listen on {address}"),
        "Address already in use",
    );
    check(
        &Config::guarded().set("admin.address", &format!("\"{address}\"")),
        &format!("error: cannot listen on {address} for the admin interface"),
        "Address already in use",
    );
}

#[test]
fn second_instance_takes_half_of_the_connections() {
    let nginx = Nginx::start("");
    let weir = Weir::serve(&Config::forward());
    let address = weir.address().to_string();
    let second = Config::guarded().listener(&address, "forward");
    check(
        &second,
        &format!("error: cannot listen on {address}"),
        "Address already in use",
    );
    for _ in 0..10 {
        weir.get(&nginx.url("/connection")).expect(200);
    }
}

#[test]
fn log_that_cannot_be_opened_or_address_that_is_not_ours_is_passed_over() {
    check(
        &Config::guarded().set("log.access", "\"/nowhere/access.log\""),
        "error: cannot open the access log /nowhere/access.log",
        "No such file or directory",
    );
    // RFC 5737: nobody's
    check(
        &Config::guarded().listener("192.0.2.1:3128", "forward"),
        "error: cannot listen on 192.0.2.1:3128",
        "Cannot assign requested address",
    );
}
