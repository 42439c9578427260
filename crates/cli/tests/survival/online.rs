//! `weir store` asks the proxy that uses a store, and says what the files say.

use super::{Parts, request, wait_for_entries, wait_until_loaded};
use crate::support::{Config, Nginx, RawClient, Weir};
use serde_json::Value;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// What `weir store` says, by whom proxies are known that say in `runtime` that they run.
fn store(runtime: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("store")
        .args(words)
        .current_dir(runtime)
        .env("XDG_RUNTIME_DIR", runtime)
        .output()
        .expect("the binary was built with this test")
}

/// Exit code and standard output, with `PLACE` for a directory.
fn said(output: &Output, place: &Path) -> (Option<i32>, String) {
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.replace(&place.display().to_string(), "PLACE");
    (output.status.code(), text)
}

/// A copy of the files of a store, which no process uses.
fn copy(from: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a temporary folder");
    for file in std::fs::read_dir(from).expect("a directory") {
        let file = file.expect("an entry").path();
        let name = file.file_name().expect("a name");
        std::fs::copy(&file, copy.path().join(name)).expect("a copy");
    }
    copy
}

/// Expects that a command gives the same of the proxy and of a copy of its files.
#[track_caller]
fn check_same(proxy: &Weir, place: &Path, words: &[&str]) -> (Option<i32>, String) {
    let copy = copy(place);
    let admin = proxy.admin.to_string();
    let asked = store(proxy.folder(), &[words, &["--admin", &admin]].concat());
    let directory = copy.path().to_str().expect("text");
    let read = store(proxy.folder(), &[words, &["--dir", directory]].concat());
    let asked_said = said(&asked, place);
    assert_eq!(asked_said, said(&read, copy.path()), "{words:?} {asked:?}");
    asked_said
}

#[test]
fn store_of_a_running_proxy_shows_what_its_files_show() {
    let parts = Parts::new();
    let proxy = parts.serve();
    wait_until_loaded(&proxy);
    for number in 0..40 {
        parts.get(&proxy, &format!("/{number}?size={}", 100 * number));
    }
    // one that lies outside of its record, and one that is replaced
    let large = "/large?size=3000000";
    parts.get(&proxy, large);
    wait_for_entries(&proxy, 41);
    let url = format!("http://{}/7?size=700", super::HOST);
    proxy.ask("POST", &format!("/purge?url={url}")).expect(200);
    wait_for_entries(&proxy, 40);

    let (exit, listed) = check_same(&proxy, parts.path(), &["ls"]);
    assert_eq!((exit, listed.lines().count()), (Some(0), 40), "{listed}");
    assert!(listed.contains("/8?size=800\n"), "{listed}");
    assert!(!listed.contains("/7?size=700\n"), "{listed}");
    let (_, listed) = check_same(&proxy, parts.path(), &["ls", "--all"]);
    assert!(listed.contains("/7?size=700  purged\n"), "{listed}");
    let (_, listed) = check_same(&proxy, parts.path(), &["ls", "--json"]);
    let first: Value = listed
        .lines()
        .next()
        .expect("a line")
        .parse()
        .expect("JSON");
    assert_eq!(
        (&first["state"], &first["kind"]),
        (&"live".into(), &"response".into())
    );
    let (exit, stats) = check_same(&proxy, parts.path(), &["stats"]);
    assert_eq!(exit, Some(0));
    assert!(stats.contains("  live         40 records, "), "{stats}");
    check_same(&proxy, parts.path(), &["stats", "--json"]);
    let (exit, verified) = check_same(&proxy, parts.path(), &["verify"]);
    assert_eq!(exit, Some(0));
    assert!(verified.contains("(40 live), "), "{verified}");

    let url = |target: &str| format!("http://{}{target}", super::HOST);
    let (exit, message) = check_same(&proxy, parts.path(), &["export", &url(large)]);
    assert_eq!(exit, Some(0));
    assert!(message.starts_with("HTTP/1.1 200 OK\r\n"));
    let key = listed.lines().next().expect("a line");
    let key: Value = key.parse().expect("JSON");
    let key = key["key"].as_str().expect("text");
    check_same(&proxy, parts.path(), &["export", "--key", key]);
    for (words, expected) in [
        (["export", "http://other.example/"], 1),
        (["export", "other.example"], 2),
        (["export", &url("/7?size=700")], 1),
    ] {
        let (exit, _) = check_same(&proxy, parts.path(), &words);
        assert_eq!(exit, Some(expected), "{words:?}");
    }
}

/// A page has at most 1,000 records, and four calls at once are served.
#[test]
fn four_readers_at_once_have_all_pages_of_a_store() {
    const RESPONSES: usize = 1_100;
    let parts = Parts::new();
    let proxy = parts.serve();
    wait_until_loaded(&proxy);
    let address = proxy.address();
    std::thread::scope(|scope| {
        for first in 0..4 {
            scope.spawn(move || {
                let mut client = RawClient::connect(address);
                for number in (first..RESPONSES).step_by(4) {
                    client.send(request("GET", &format!("/{number}?size=10")));
                    assert_eq!(client.reply().status(), 200, "{number}");
                }
            });
        }
    });
    wait_for_entries(&proxy, RESPONSES as u64);
    let first = proxy.ask("POST", "/store/ls").expect(200).text();
    let first: Value = first.parse().expect("JSON");
    assert!(first["next"].is_string(), "{}", first["next"]);
    let admin = proxy.admin.to_string();
    let folder = proxy.folder();
    let listed: Vec<Output> = std::thread::scope(|scope| {
        let each = || scope.spawn(|| store(folder, &["ls", "--admin", &admin]));
        let all: Vec<_> = (0..4).map(|_| each()).collect();
        let all = all.into_iter().map(|one| one.join().expect("no panic"));
        all.collect()
    });
    let (exit, expected) = check_same(&proxy, parts.path(), &["ls"]);
    assert_eq!((exit, expected.lines().count()), (Some(0), RESPONSES));
    for output in listed {
        assert_eq!(said(&output, parts.path()), (Some(0), expected.clone()));
    }
}

#[test]
fn store_that_the_file_does_not_name_any_more_is_named_in_a_note() {
    let parts = Parts::new();
    let proxy = parts.serve();
    parts.get(&proxy, "/a?size=100");
    wait_for_entries(&proxy, 1);
    wait_until_loaded(&proxy);
    let other = copy(parts.path());
    let text = std::fs::read_to_string(proxy.file("weir.toml")).expect("a file");
    let used = format!("{:?}", parts.path());
    assert!(text.contains(&used), "{text}");
    proxy.rewrite(&text.replace(&used, &format!("{:?}", other.path())));
    let config = proxy.file("weir.toml");
    let config = config.to_str().expect("text");
    let listed = store(proxy.folder(), &["ls", "--config", config]);
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    let note = format!(
        "note: process {}, which was started with this file, has its store in `{}`, and the file says `{}`: a restart changes that; `--dir` names the one that you mean\n",
        proxy.id(),
        parts.path().display(),
        other.path().display()
    );
    assert_eq!(String::from_utf8_lossy(&listed.stderr), note);
}

#[test]
fn damage_is_named_by_a_running_proxy_as_by_its_files() {
    let parts = Parts::new();
    let proxy = parts.serve();
    wait_until_loaded(&proxy);
    for number in 0..3 {
        parts.get(&proxy, &format!("/{number}?size=5000"));
    }
    wait_for_entries(&proxy, 3);
    let files = std::fs::read_dir(parts.path()).expect("a directory");
    let mut segments = files.map(|file| file.expect("an entry").path());
    let segment = segments
        .find(|path| path.extension().is_some_and(|it| it == "seg"))
        .expect("a segment");
    let bytes = std::fs::read(&segment).expect("a file");
    let written = bytes.iter().rposition(|byte| *byte != 0).expect("content");
    let file = std::fs::OpenOptions::new().write(true).open(&segment);
    let at = written as u64 - 100;
    let flipped = [!bytes[written - 100]];
    file.and_then(|file| file.write_all_at(&flipped, at))
        .expect("it is ours");
    let (exit, verified) = check_same(&proxy, parts.path(), &["verify"]);
    assert_eq!(exit, Some(1));
    assert!(verified.contains("checksum"), "{verified}");
    let url = format!("http://{}/2?size=5000", super::HOST);
    let admin = proxy.admin.to_string();
    let refused = store(proxy.folder(), &["export", &url, "--admin", &admin]);
    let failed = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{failed}");
    assert!(failed.contains("the checksum does not fit"), "{failed}");
    assert!(refused.stdout.is_empty(), "nothing of it was verified");
}

#[test]
fn variants_of_a_target_are_exported_by_their_keys() {
    let nginx = Nginx::start(
        "location / { add_header Cache-Control max-age=3600; add_header Vary Accept-Language; return 200 $http_accept_language; }",
    );
    let place = tempfile::tempdir().expect("a temporary folder");
    let directories = format!("[{{ path = {:?}, size = \"64MiB\" }}]", place.path());
    let config = Config::gateway(&[&nginx.url("")])
        .set("disk.enabled", "true")
        .set("disk.directories", &directories);
    let proxy = Weir::serve(&config);
    wait_until_loaded(&proxy);
    let get = |language: &str, entries: u64| {
        let mut client = RawClient::connect(proxy.address());
        let head = request("GET", "/a");
        let head = head.trim_end();
        client.send(format!("{head}\r\nAccept-Language: {language}\r\n\r\n"));
        assert_eq!(client.reply().text(), language);
        wait_for_entries(&proxy, entries);
    };
    let url = format!("http://{}/a", super::HOST);
    get("fr", 2);
    let (exit, message) = check_same(&proxy, place.path(), &["export", &url]);
    assert_eq!(exit, Some(0));
    assert!(message.ends_with("\r\n\r\nfr"), "{message}");
    get("de", 3);
    let admin = proxy.admin.to_string();
    let refused = store(proxy.folder(), &["export", &url, "--admin", &admin]);
    let failed = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{failed}");
    assert!(failed.contains("2 are stored for it: "), "{failed}");
}

#[test]
fn store_in_use_is_asked_for_where_the_proxy_is_known_and_names_the_command_elsewhere() {
    let parts = Parts::new();
    let proxy = parts.serve();
    parts.get(&proxy, "/a?size=100");
    wait_for_entries(&proxy, 1);
    wait_until_loaded(&proxy);
    let config = proxy.file("weir.toml");
    let config = config.to_str().expect("text");
    let listed = store(proxy.folder(), &["ls", "--config", config]);
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    let stdout = String::from_utf8_lossy(&listed.stdout);
    assert!(stdout.ends_with("/a?size=100\n"), "{listed:?}");
    let note = format!(
        "note: process {} uses the store: it is asked at {}\n",
        proxy.id(),
        proxy.admin
    );
    assert_eq!(String::from_utf8_lossy(&listed.stderr), note);

    let directory = parts.path().to_str().expect("text");
    let nowhere = tempfile::tempdir().expect("a temporary folder");
    for (runtime, words, expected) in [
        (
            proxy.folder(),
            ["stats", directory],
            format!("`weir store stats --admin {}`;", proxy.admin),
        ),
        (
            nowhere.path(),
            ["verify", directory],
            "`weir store verify --admin ADDR`, the address of its admin interface;".to_owned(),
        ),
    ] {
        let refused = store(runtime, &words);
        let failed = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(3), "{failed}");
        assert!(failed.contains(&expected), "{failed}");
        assert!(failed.contains(&format!("in use by process {}", proxy.id())));
    }
    parts.get(&proxy, "/a?size=100");
}

#[test]
fn what_is_stored_is_shown_for_the_token_alone() {
    let parts = Parts::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "0123456789abcdef\n").expect("a file");
    let own = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(&token, own).expect("ours");
    let config = parts
        .config()
        .set("admin.token_file", &format!("{token:?}"));
    let proxy = Weir::serve(&config);
    parts.get(&proxy, "/a?size=100");
    wait_for_entries(&proxy, 1);
    wait_until_loaded(&proxy);
    for word in [
        "ls",
        "stats",
        "verify?run=1",
        "find?url=http://a.example/a",
        "read",
    ] {
        let path = format!("/store/{word}");
        proxy.ask("POST", &path).expect(401);
        proxy.ask("GET", &path).expect(405);
    }
    let admin = proxy.admin.to_string();
    let file = token.to_str().expect("text");
    let listed = store(
        folder.path(),
        &["ls", "--admin", &admin, "--token-file", file],
    );
    assert_eq!(listed.status.code(), Some(0), "{listed:?}");
    let refused = store(folder.path(), &["ls", "--admin", &admin]);
    let failed = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{failed}");
    assert!(failed.contains("asks for a token"), "{failed}");
    // of a token that cannot be read the file is named
    let gone = folder.path().join("gone");
    std::fs::rename(&token, &gone).expect("ours");
    let config = proxy.file("weir.toml");
    let config = config.to_str().expect("text");
    let refused = store(proxy.folder(), &["ls", "--config", config]);
    let failed = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{failed}");
    let named = format!("cannot use the admin token in `{file}`");
    assert!(failed.contains(&named), "{failed}");
    assert!(failed.contains("`--token-file`"), "{failed}");
}
