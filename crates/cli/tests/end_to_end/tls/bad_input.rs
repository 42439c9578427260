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
    let exchanged = Issued {
        chain: good.key.clone(),
        key: good.chain.clone(),
    };
    refused(
        &exchanged,
        &["certificates[1].chain", "`chain` and `key` are exchanged"],
    );

    // served all the same
    let (exit, said) = check(folder, &gateway(&[&good, &other]));
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("no route is for `b.test`"), "{said}");
    assert!(said.contains("weir.toml:"), "{said}");
}

#[test]
fn certificate_by_a_relative_path_is_missed_in_the_directory_of_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().canonicalize().expect("a folder");
    let relative = Issued::files(Path::new(""), "nowhere");
    let config = Config::gateway(&["http://127.0.0.1:1"]).tls(&[&relative]);
    let (exit, said) = check(&folder, &config);
    assert_eq!(exit, 2, "{said}");
    let started_in = folder.display().to_string();
    for part in [
        "`nowhere.pem`",
        "a relative path is taken from",
        &started_in,
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn check_warns_of_what_will_fail_later_and_refuses_a_folder_that_cannot_be_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let unnamed = Issued::files(folder, "unnamed");
    let [key, chain] = [&unnamed.key, &unnamed.chain].map(|it| it.to_string_lossy());
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
        ])
        .args(["-nodes", "-days", "2", "-subj", "/CN=a.test"])
        .args(["-keyout", &key, "-out", &chain])
        .output()
        .expect("openssl starts");
    assert!(made.status.success());
    let told = Config::gateway(&["http://127.0.0.1:1"]).tls(&[&unnamed]);
    let told = told
        .route_http2(true)
        .of_route("send_proxy_protocol = \"v2\"");
    let (exit, said) = check(folder, &told);
    assert_eq!(exit, 0, "{said}");
    for part in [
        "unnamed.pem`: the certificate is for no host by name",
        "subjectAltName=DNS:",
        "the certificate ends in 48 hours",
        "route[0].http2",
        "HTTP/1.1 is spoken all the same",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let good = Issued::new(folder, "good", &["a.test"], KeyKind::Ecdsa);
    let acme = Config::gateway(&["http://127.0.0.1:1"]).listener("127.0.0.1:0", "gateway");
    let acme = acme.of_listener("tls = { certificates = [{ acme = [\"a.test\"] }] }");
    let ca = format!("{:?}", good.chain);
    let acme = acme
        .set("acme.terms_agreed", "true")
        .set("acme.ca", &ca)
        .set("acme.folder", "\"/proc/nope/acme\"");
    let (exit, said) = check(folder, &acme);
    assert_eq!(exit, 3, "{said}");
    assert!(said.contains("the folder `/proc/nope/acme/"), "{said}");
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
}
