//! Starting where another process is.

use crate::support::{Config, Nginx, RawClient, Weir};
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn command(arguments: &[&str], config: &Config, folder: &Path) -> Output {
    let file = folder.join("weir.toml");
    std::fs::write(&file, config.text()).expect("a file");
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .arg(&file)
        .current_dir(folder)
        .output()
        .expect("the binary was built with this test")
}

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
    assert!(stderr.contains("\nhint: "), "{stderr}");
}

#[test]
fn address_in_use_is_reported_and_start_fails() {
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
fn next_hop_whose_name_does_not_resolve_is_warned_of_and_served_all_the_same() {
    let config = Config::gateway(&["http://127.0.0.1:1", "http://nowhere.invalid"])
        .set("dns.servers", "[\"127.0.0.1:9\"]")
        .set("limits.dns", "\"300ms\"");
    let mut weir = Weir::serve(&config);
    let started = weir.wait_for("does not resolve");
    let folder = tempfile::tempdir().expect("a folder");
    let checked = command(&["check"], &config, folder.path());
    assert_eq!(checked.status.code(), Some(0));
    let checked = String::from_utf8_lossy(&checked.stderr).into_owned();
    for said in [started, checked] {
        assert!(said.starts_with("warning: "), "{said}");
        for part in [
            "weir.toml:",
            "`route[0].next_hops[1]`",
            "`nowhere.invalid` does not resolve",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[test]
fn unusable_store_directory_or_log_is_reported_with_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("a file");
    check(
        &Config::guarded()
            .set("disk.enabled", "true")
            .set("disk.directories", &format!("[{{ path = {file:?} }}]")),
        "error: cannot use the directory `",
        "",
    );
    check(
        &Config::guarded().set("log.access", "\"/nowhere/access.log\""),
        "error: cannot open the access log /nowhere/access.log",
        "No such file or directory",
    );
}

#[test]
fn refused_token_file_gets_a_hint_that_fits_the_cause() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    let said = || {
        let config = Config::guarded().set("admin.token_file", &format!("{token:?}"));
        let output = command(&["check"], &config, folder.path());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said().contains("hint: make the token file: "), "{}", said());
    std::fs::write(&token, "short").expect("written");
    for (mode, part) in [(0o644, "run `chmod 600`"), (0o600, "has at least 16")] {
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(mode)).expect("set");
        let said = said();
        assert!(
            said.contains(part) && !said.contains("as the user"),
            "{said}"
        );
    }
}

#[test]
fn second_instance_on_the_same_address_is_refused() {
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
fn unopenable_log_and_unassigned_address_stop_the_start() {
    check(
        &Config::guarded().set("log.access", "\"/nowhere/access.log\""),
        "error: cannot open the access log /nowhere/access.log",
        "No such file or directory",
    );
    // RFC 5737: assigned to no host
    check(
        &Config::guarded().listener("192.0.2.1:3128", "forward"),
        "error: cannot listen on 192.0.2.1:3128",
        "Cannot assign requested address",
    );
}

#[test]
fn size_beyond_the_machine_is_refused_by_serve_and_check() {
    let folder = tempfile::tempdir().expect("a folder");
    let too_much = |key: &str, config: Config| {
        for arguments in [["serve", "--config"].as_slice(), &["check"]] {
            let output = command(arguments, &config, folder.path());
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{stderr}");
            assert!(
                stderr.contains(key) && stderr.contains("is more than the"),
                "{stderr}"
            );
            assert!(
                stderr.contains("weir.toml:"),
                "no place in the file: {stderr}"
            );
        }
    };
    too_much(
        "`cache.memory`",
        Config::guarded().set("cache.memory", "\"900TiB\""),
    );
    let directories = r#"[{ path = "/var/tmp/store", size = "900TiB" }]"#;
    too_much(
        "`disk.directories[0].size`",
        Config::guarded()
            .set("disk.enabled", "true")
            .set("disk.directories", directories),
    );
}

#[test]
fn check_reports_each_unusable_directory_and_log_and_creates_neither() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = |directory: &str, log: &str| {
        Config::guarded()
            .set("disk.enabled", "true")
            .set("disk.directories", &format!("[{{ path = {directory:?} }}]"))
            .set("log.access", &format!("{log:?}"))
    };
    let in_folder = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let good = command(
        &["check"],
        &config(&in_folder("a/store"), "access.log"),
        folder.path(),
    );
    let stderr = String::from_utf8_lossy(&good.stderr);
    assert_eq!(good.status.code(), Some(0), "{stderr}");
    assert!(!folder.path().join("a").exists() && !folder.path().join("access.log").exists());
    std::fs::write(folder.path().join("file"), "").expect("a file");
    let bad = config(&in_folder("file/store"), "missing/access.log");
    let bad = command(&["check"], &bad, folder.path());
    let stderr = String::from_utf8_lossy(&bad.stderr);
    assert_eq!(bad.status.code(), Some(3), "{stderr}");
    for part in [
        "error: cannot use what `",
        "file/store` for stored responses: Not a directory",
        "the access log `missing/access.log`: No such file or directory",
        "hint: a file is where a directory belongs",
        "\n      make the directory `missing` first",
    ] {
        assert!(stderr.contains(part), "no `{part}` in {stderr}");
    }
}

#[test]
fn check_reports_a_folder_for_certificates_that_cannot_be_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("acme");
    let config = |place: &str| {
        Config::gateway(&["http://127.0.0.1:1"])
            .without_listeners()
            .listener("127.0.0.1:0", "gateway")
            .of_listener("tls = { certificates = [{ acme = [\"a.test\"] }] }")
            .set("acme.terms_agreed", "true")
            .set("acme.challenge", "\"tls-alpn-01\"")
            .set("acme.folder", &format!("{place:?}"))
    };
    let good = config(place.to_str().expect("text"));
    let good = command(&["check"], &good, folder.path());
    let stderr = String::from_utf8_lossy(&good.stderr);
    assert_eq!(good.status.code(), Some(0), "{stderr}");
    assert!(!place.exists());
    let bad = command(&["check"], &config("/proc/nope/acme"), folder.path());
    let stderr = String::from_utf8_lossy(&bad.stderr);
    assert_eq!(bad.status.code(), Some(3), "{stderr}");
    for part in [
        "the folder `/proc/nope/acme/",
        "` for certificates: ",
        "`acme.folder`",
    ] {
        assert!(stderr.contains(part), "no `{part}` in {stderr}");
    }
}

/// Starts a proxy that may have so many files open; its address if it comes up, and what it said.
fn with_open_files(limit: u32, folder: &Path, url: &str) -> Result<String, String> {
    let mut child = Command::new("sh")
        .args(["-c", "ulimit -n \"$0\"; exec \"$@\"", &limit.to_string()])
        .arg(env!("CARGO_BIN_EXE_weir"))
        .args(["serve", "--config", "weir.toml"])
        .current_dir(folder)
        .env("XDG_RUNTIME_DIR", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut said = String::new();
    let mut address: Option<SocketAddr> = None;
    let lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    for line in lines.map_while(Result::ok) {
        let forward = line.trim().strip_prefix("forward  http://");
        address = address.or(forward.and_then(|address| address.parse().ok()));
        said.push_str(&line);
        said.push('\n');
        if line.starts_with("  try ") {
            break;
        }
    }
    let Some(address) = address else {
        let status = child.wait().expect("it has ended");
        assert_eq!(status.code(), Some(3), "{said}");
        return Err(said);
    };
    let text = RawClient::connect(address).get(url).expect(200).text();
    child.kill().expect("it is ours");
    child.wait().expect("it was killed");
    Ok(text)
}

#[test]
fn proxy_starts_only_with_descriptors_enough_to_serve_a_request() {
    let nginx = Nginx::start("location /id { return 200 $request_id; }");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("weir.toml"), Config::forward().text()).expect("a file");
    let mut refused = Vec::new();
    let served = (8..100).find_map(|limit| {
        let started = with_open_files(limit, folder.path(), &nginx.url("/id"));
        started.map_err(|said| refused.push(said)).ok()
    });
    assert_eq!(served.expect("a hundred are enough").len(), 32);
    assert!(refused.len() > 4, "{refused:?}");
    for said in &refused {
        let named = said.contains("`ulimit -n`") || said.contains("is more than");
        assert!(said.contains("error: cannot") && named, "{said}");
    }
    let last = refused.last().expect("some");
    assert!(
        last.contains("error: cannot serve even one request"),
        "{last}"
    );
}

#[test]
fn limit_of_the_size_of_files_ends_no_process() {
    let nginx = Nginx::start("location /id { return 200 $request_id; }");
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("access.log");
    let config = Config::gateway(&[&nginx.origin()]).set("log.access", &format!("{log:?}"));
    // in blocks of 512 bytes; the file in memory is longer
    let weir = Weir::serve_with_limit(&config, ("-f", 16));
    let mut client = RawClient::connect(weir.address());
    for number in 0..200 {
        client.get(&weir.url(&format!("/id?{number}"))).expect(200);
    }
    let lost = "weir_access_log_dropped_total";
    let _ = weir.until(lost, |metrics| metrics.count(lost) > 0);
    assert!(std::fs::metadata(&log).expect("a file").len() <= 16 * 512);
}
