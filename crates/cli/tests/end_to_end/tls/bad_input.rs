//! Certificates that cannot be used are refused before anything is opened.

use crate::support::{Config, Issued, KeyKind};
use std::path::Path;
use std::process::Command;

/// What `weir check` says of a config, and its exit code.
pub(super) fn check(folder: &Path, config: &Config) -> (i32, String) {
    std::fs::write(folder.join("weir.toml"), config.text()).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["check", "weir.toml"])
        .current_dir(folder)
        .output()
        .expect("the binary was built with this test");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap_or(-1), said)
}

#[test]
fn check_says_file_line_and_reason_of_a_certificate_that_cannot_be_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let good = Issued::new(folder, "good", &["a.test"], KeyKind::Ecdsa);
    let other = Issued::new(folder, "other", &["b.test"], KeyKind::Ecdsa);
    let route = |config: Config| {
        config
            .without_routes()
            .route("host = \"a.test\"", &["http://127.0.0.1:1"])
    };
    let gateway = |issued: &[&Issued]| route(Config::gateway(&[]).tls(issued));
    let refused = |issued: &Issued, parts: &[&str]| {
        let config = gateway(&[&good, issued]);
        let text = config.text();
        let line = text
            .lines()
            .position(|line| line.starts_with("tls"))
            .expect("set")
            + 1;
        let (exit, said) = check(folder, &config);
        assert_eq!(exit, 2, "{said}");
        assert!(said.contains(&format!("weir.toml:{line}:")), "{said}");
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
    };
    let (exit, said) = check(folder, &gateway(&[&good]));
    assert_eq!((exit, said.as_str()), (0, ""));
    let swapped = Issued {
        key: other.key.clone(),
        ..good.clone()
    };
    refused(
        &swapped,
        &[
            "certificates[1].key",
            "other.key",
            "key of another certificate",
        ],
    );
    let missing = Issued::files(folder, "missing");
    refused(
        &missing,
        &["certificates[1].chain", "missing.pem", "No such file"],
    );
    let expired = Issued::expired(folder, "a.test");
    refused(
        &expired,
        &["certificates[1].chain", "expired.pem", "has expired"],
    );
    set_mode(&good.chain, 0o600);
    let text = Issued {
        key: good.chain.clone(),
        ..good.clone()
    };
    refused(&text, &["certificates[1].key", "no private key"]);
    let open = Issued::new(folder, "open", &["a.test"], KeyKind::Ecdsa);
    set_mode(&open.key, 0o644);
    refused(
        &open,
        &["certificates[1].key", "every user can read", "chmod 600"],
    );

    // served all the same
    let (exit, said) = check(folder, &gateway(&[&good, &other]));
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("no route is for `b.test`"), "{said}");
    assert!(said.contains("weir.toml:"), "{said}");
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
}
