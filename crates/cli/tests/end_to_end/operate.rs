//! `weir purge`, `weir reload`, `weir drain` and `weir modules` beside a proxy that runs.

mod admin_address;
mod explain;
mod top;

use crate::support::{Config, Nginx, Signal, Weir};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const LOCATIONS: &str =
    "location /id { add_header Cache-Control max-age=3600; return 200 $request_id; }";

/// A command of the operator, by whom proxies are known that say in `runtime` that they run.
fn weir(runtime: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .env("XDG_RUNTIME_DIR", runtime)
        .output()
        .expect("the binary was built with this test")
}

/// Expects an exit code, and parts of what is said on stdout, or on stderr for a failure.
#[track_caller]
fn expect(output: &Output, exit: i32, parts: &[&str]) {
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert_eq!(output.status.code(), Some(exit), "{stdout}{stderr}");
    let (said, silent) = if exit == 0 {
        (&stdout, &stderr)
    } else {
        (&stderr, &stdout)
    };
    for part in parts {
        assert!(said.contains(part), "no `{part}` in: {said}");
    }
    assert!(silent.is_empty(), "{silent}");
}

/// A file with a token, which `mode` lets others read or not.
fn token(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("{text}\n")).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("ours");
    path
}

fn quoted(path: &Path) -> String {
    format!("{:?}", path.to_str().expect("text"))
}

#[test]
fn purge_and_reload_find_the_running_proxy() {
    let nginx = Nginx::start(LOCATIONS);
    let proxy = Weir::serve(&Config::forward());
    let (url, other) = (nginx.url("/id?a=1&b=%20"), nginx.url("/id"));
    for url in [&url, &other] {
        proxy.get(url).expect(200);
        assert!(proxy.get(url).is_hit());
    }
    let missing = nginx.url("/nothing");
    let purged = weir(proxy.folder(), &["purge", &url, &missing]);
    assert_eq!(purged.status.code(), Some(0));
    let said = String::from_utf8_lossy(&purged.stdout);
    assert_eq!(said, format!("purged 1 {url}\npurged 0 {missing}\n"));
    let hint = String::from_utf8_lossy(&purged.stderr);
    assert!(hint.starts_with("hint: nothing was stored"), "{hint}");
    assert!(hint.contains("scheme, host, port"), "{hint}");
    assert!(!proxy.get(&url).is_hit());
    assert!(proxy.get(&other).is_hit(), "the other URL was not meant");
    expect(
        &weir(proxy.folder(), &["purge", &nginx.url("/*")]),
        2,
        &["there are no wildcards", "hint: name each URL, or `--all`"],
    );
    expect(&weir(proxy.folder(), &["purge", "--all"]), 0, &["purged "]);
    assert!(!proxy.get(&other).is_hit());
    expect(
        &weir(proxy.folder(), &["reload"]),
        0,
        &["config reloaded\n"],
    );

    let config = proxy.file("weir.toml");
    let config = config.to_str().expect("text");
    // port 0 of the file is the port that the system chose
    expect(
        &weir(proxy.folder(), &["purge", "--all", "--config", config]),
        0,
        &[],
    );
    let admin = proxy.admin.to_string();
    let nowhere = Path::new("/nowhere");
    expect(
        &weir(nowhere, &["purge", "--all", "--admin", &admin]),
        0,
        &[],
    );
    expect(
        &weir(nowhere, &["purge", "--all", "--config", config]),
        3,
        &["error: cannot find the admin interface", "--admin"],
    );
    expect(
        &weir(proxy.folder(), &["purge", "/id"]),
        2,
        &["error: cannot purge `/id`\n  caused by: "],
    );
}

#[test]
fn reload_of_a_proxy_without_a_config_file_fails_and_says_that_nothing_was_read() {
    let flags = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];
    let others = ["--disk", "off", "--access-log", "off"];
    let mut proxy = Weir::serve_by_flags(&[flags, others].concat());
    let reloaded = weir(proxy.folder(), &["reload"]);
    let parts = ["error: cannot reload the config\n  caused by: there is no config file to read"];
    expect(&reloaded, 2, &parts);
    assert_eq!(String::from_utf8_lossy(&reloaded.stdout), "");
    proxy.wait_for("there is no config file to read");
    proxy.signal(Signal::HangUp);
    proxy.wait_for("there is no config file to read");
}

/// Adds a module with these lines of its table.
fn with_module(proxy: &Weir, name: &str, kind: &str, options: &str) {
    let path = proxy.file("weir.toml");
    let text = fs::read_to_string(&path).expect("a file");
    let table = format!("\n[[module]]\nname = \"{name}\"\nkind = \"{kind}\"\n{options}\n");
    fs::write(&path, text + &table).expect("a file");
}

#[test]
fn markup_is_put_into_stored_documents_as_they_are_sent() {
    let nginx =
        Nginx::start("location /aged/ { add_header Cache-Control max-age=3600; alias www/; }");
    let text = "<p>The quick brown fox jumps over the lazy dog.</p>\n".repeat(10_000);
    let page = format!("<html><head></head><body>{text}</body></html>");
    nginx.file("page.html", page.as_bytes());
    nginx.file("page.txt", page.as_bytes());
    let proxy = Weir::serve(&Config::forward());
    let (url, plain) = (nginx.url("/aged/page.html"), nginx.url("/aged/page.txt"));
    assert!(proxy.get(&url).expect(200).text() == page);
    let options = "options.html = \"<b>Hello</b>\"\noptions.place = \"start\"";
    with_module(&proxy, "hello", "inject", options);
    expect(&weir(proxy.folder(), &["reload"]), 0, &["config reloaded"]);
    let hit = proxy.get(&url).expect(200);
    assert!(hit.is_hit());
    assert!(hit.text() == page.replace("<body>", "<body><b>Hello</b>"));
    assert_eq!(hit.field("content-length"), "");
    assert!(hit.field("etag").starts_with("W/"), "{}", hit.head);
    assert!(proxy.get(&plain).expect(200).text() == page);
    let disabled = weir(proxy.folder(), &["modules", "disable", "hello"]);
    expect(&disabled, 0, &["disabled hello\n"]);
    let hit = proxy.get(&url).expect(200);
    assert!(hit.is_hit() && hit.text() == page);
}

#[test]
fn stored_response_is_found_changed_injected_and_read_by_commands() {
    let nginx =
        Nginx::start("location /aged/ { add_header Cache-Control max-age=3600; alias www/; }");
    nginx.file("page.html", b"<p>A page</p>");
    let proxy = Weir::serve(&Config::forward());
    let url = nginx.url("/aged/page.html");
    let stored = |words: &[&str]| weir(proxy.folder(), &[&["stored"], words].concat());
    let missing = stored(&["query", &url]);
    expect(&missing, 2, &["cannot query", "no such response is stored"]);
    expect(&stored(&["fetch", &url]), 0, &["status 200\n"]);
    let page = proxy.get(&url).expect(200);
    assert!(page.is_hit());
    expect(
        &stored(&["query", &url]),
        0,
        &["status 200\n", "Content-Type: text/html"],
    );
    expect(&stored(&["validate", &url]), 0, &["valid\n"]);
    expect(&stored(&["expire", &url]), 0, &["fresh for 0 s\n"]);
    assert!(!proxy.get(&url).expect(200).is_hit());
    expect(&stored(&["read", &url]), 0, &[&page.text()]);
    expect(
        &stored(&["delete", "--mode", "forward", &url]),
        0,
        &["deleted 1\n"],
    );
    // content need not be text, and an `&` is a part of the URL
    let (other, content) = (format!("{url}?a&b"), b"\x00\xff\r\n\r\n".as_slice());
    let head = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\n".as_slice();
    let message = proxy.folder().join("message.http");
    std::fs::write(&message, [head, content].concat()).expect("a file");
    let message = message.to_str().expect("a name");
    expect(
        &stored(&["inject", &other, message]),
        0,
        &["stored 6 of 6 bytes"],
    );
    assert_eq!(stored(&["read", &other]).stdout, content);
    assert!(proxy.get(&other).expect(200).is_hit());
    assert_eq!(stored(&["query", &url]).status.code(), Some(2));
}

#[test]
fn refused_stored_command_says_what_to_do_in_words_of_the_command_line() {
    let nginx = Nginx::start(LOCATIONS);
    let next_hop = nginx.url("");
    let config =
        Config::gateway(&[next_hop.trim_end_matches('/')]).listener("127.0.0.1:0", "forward");
    let proxy = Weir::serve(&config);
    let stored = |words: &[&str]| weir(proxy.folder(), &[&["stored"], words].concat());
    let url = "http://a.example/";
    let refused = stored(&["query", url]);
    expect(
        &refused,
        2,
        &[
            "there are forward and gateway listeners",
            "`--mode forward`",
        ],
    );
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!said.contains("mode=forward"), "{said}");
    let chosen = stored(&["query", "--mode", "forward", url]);
    expect(&chosen, 2, &["no such response is stored"]);
    let fragment = stored(&["query", "--mode", "forward", "http://a.example/b#c"]);
    expect(
        &fragment,
        2,
        &["leave out `#c`, so that it is `http://a.example/b`"],
    );
    let message = proxy.folder().join("message.http");
    std::fs::write(&message, "HTTP/1.1 200 OK\nCache-Control: max-age=60\n\nok").expect("a file");
    let message = message.to_str().expect("a name");
    let lines = stored(&["inject", "--mode", "forward", url, message]);
    expect(&lines, 2, &["end with CR LF"]);
}

#[test]
fn node_drains_by_a_command_until_another_one_ends_that() {
    let config = Config::gateway(&["http://127.0.0.1:9"]);
    let alone = Weir::serve(&config);
    expect(
        &weir(alone.folder(), &["drain"]),
        2,
        &[
            "error: cannot drain",
            "this proxy is no member of a cluster",
        ],
    );
    alone.ask("GET", "/healthz").expect(200);
    let members = r#"[{ name = "a", url = "http://127.0.0.1:9" }]"#;
    let config = config
        .listener("127.0.0.1:0", "peer")
        .set("cluster.node", "\"a\"")
        .set("cluster.member", members);
    let node = Weir::serve(&config);
    for _ in 0..2 {
        let drained = weir(node.folder(), &["drain"]);
        expect(&drained, 0, &["draining: other nodes ask this one"]);
        node.ask("GET", "/healthz").expect(503);
    }
    let ended = weir(node.folder(), &["drain", "--end"]);
    expect(&ended, 0, &["in: this node takes targets again"]);
    node.ask("GET", "/healthz").expect(200);
}

#[test]
fn module_is_added_by_a_reload_and_disabled_and_enabled_by_its_name() {
    let nginx = Nginx::start(LOCATIONS);
    let proxy = Weir::serve(&Config::forward());
    let url = nginx.url("/id");
    let sent = || proxy.get(&url).field("x-module");
    expect(&weir(proxy.folder(), &["modules"]), 0, &["no modules\n"]);
    expect(
        &weir(proxy.folder(), &["modules", "disable", "mark"]),
        2,
        &["no module `mark`; the configuration has none"],
    );
    assert_eq!(sent(), "");
    let options = "options.response_sent = [\"set X-Module: mark\"]";
    with_module(&proxy, "mark", "headers", options);
    expect(&weir(proxy.folder(), &["reload"]), 0, &["config reloaded"]);
    assert_eq!(sent(), "mark");
    let listed = ["mark  headers  */   worker  enabled  refuse      0         response-sent\n"];
    expect(&weir(proxy.folder(), &["modules"]), 0, &listed);
    expect(
        &weir(proxy.folder(), &["modules", "disable", "mark"]),
        0,
        &["disabled mark\n"],
    );
    assert_eq!(sent(), "");
    expect(
        &weir(proxy.folder(), &["modules", "--json"]),
        0,
        &["\"state\": \"disabled\""],
    );
    expect(
        &weir(proxy.folder(), &["modules", "enable", "mark"]),
        0,
        &["enabled mark\n"],
    );
    assert_eq!(sent(), "mark");
}

#[test]
fn admin_token_is_found_for_a_running_proxy_and_a_wrong_one_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = token(folder.path(), "first", "first-0123456789", 0o600);
    let second = token(folder.path(), "second", "second-0123456789", 0o600);
    let socket = folder.path().join("admin.sock");
    let address = format!("unix:{}", socket.display());
    let config = |token: &Path| {
        Config::guarded()
            .set("admin.address", &format!("{address:?}"))
            .set("admin.token_file", &quoted(token))
    };
    let mut proxy = Weir::serve(&config(&first));
    let (here, nowhere) = (proxy.folder().to_owned(), Path::new("/nowhere"));
    let file = proxy.file("weir.toml");
    let file = file.to_str().expect("text");
    let (first, other) = (
        first.to_str().expect("text"),
        second.to_str().expect("text"),
    );
    expect(&weir(&here, &["purge", "--all"]), 0, &["purged 0\n"]);
    let with_address = ["purge", "--all", "--admin", &address];
    expect(&weir(&here, &with_address), 0, &[]);
    expect(
        &weir(nowhere, &["purge", "--all", "--config", file]),
        0,
        &[],
    );
    let with_token = ["purge", "--all", "--admin", &address, "--token-file", first];
    expect(&weir(nowhere, &with_token), 0, &[]);

    expect(
        &weir(nowhere, &with_address),
        2,
        &[
            "error: cannot purge everything",
            "asks for a token",
            "--token-file",
        ],
    );
    let wrong = ["purge", "--all", "--token-file", other];
    expect(&weir(&here, &wrong), 2, &["has another token"]);

    // the next one is asked for from the reload on, and found
    proxy.rewrite(&config(&second).text());
    expect(&weir(&here, &["reload"]), 0, &["config reloaded"]);
    expect(&weir(&here, &["purge", "--all"]), 0, &[]);
    expect(&weir(nowhere, &with_token), 2, &["has another token"]);

    // a file that others can read is no token: all stays as it was
    fs::set_permissions(&second, fs::Permissions::from_mode(0o644)).expect("ours");
    let parts = ["error: cannot use the admin token", "its mode is 0644"];
    expect(&weir(&here, &["reload"]), 2, &parts);
    fs::set_permissions(&second, fs::Permissions::from_mode(0o600)).expect("ours");
    expect(&weir(&here, &["purge", "--all"]), 0, &[]);

    assert!(proxy.stop().success());
    assert!(!socket.exists(), "the socket stays behind");
    let parts = [
        "error: cannot find a proxy",
        "no proxy with an admin interface runs",
    ];
    expect(&weir(&here, &["reload"]), 3, &parts);
}

#[test]
fn proxy_refuses_to_start_with_a_group_readable_token_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = token(folder.path(), "open", "open-0123456789abc", 0o640);
    let text = Config::guarded()
        .set("admin.token_file", &quoted(&open))
        .text();
    let file = folder.path().join("weir.toml");
    fs::write(&file, text).expect("a file");
    let file = file.to_str().expect("text");
    let output = weir(folder.path(), &["serve", "--config", file]);
    let parts = [
        "error: cannot use the admin token in",
        "its mode is 0640",
        "chmod 600",
    ];
    expect(&output, 3, &parts);
}

#[test]
fn reload_command_explains_why_a_config_is_refused() {
    let proxy = Weir::serve(&Config::guarded());
    proxy.rewrite("[cache]\nmemroy = \"1GiB\"\n");
    expect(
        &weir(proxy.folder(), &["reload"]),
        2,
        &[
            "error: cannot reload the config\n",
            "unknown key `memroy`",
            "did you mean `memory`?",
        ],
    );
}

#[test]
fn reload_with_an_address_in_use_is_a_failure_of_the_outside() {
    let proxy = Weir::serve(&Config::guarded());
    let other = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = other.local_addr().expect("bound").to_string();
    let config = Config::guarded().listener(&address, "forward");
    proxy.rewrite(&config.text());
    let parts = [
        "error: cannot reload the config\n  caused by: cannot listen on ",
        &address,
    ];
    expect(&weir(proxy.folder(), &["reload"]), 3, &parts);
}

#[test]
fn command_with_two_running_proxies_requires_an_admin_address() {
    let runtime = tempfile::tempdir().expect("a folder");
    let config = Config::guarded();
    let proxies = [(); 2].map(|()| Weir::serve_known_in(&config, runtime.path()));
    let [one, other] = proxies.each_ref().map(|proxy| proxy.admin.to_string());
    let both = ["cannot tell which proxy is meant", &one, &other, "--admin"];
    expect(&weir(runtime.path(), &["reload"]), 2, &both);
    let named = ["reload", "--admin", &other];
    expect(&weir(runtime.path(), &named), 0, &["config reloaded"]);
}

#[test]
fn runtime_file_of_a_killed_proxy_is_ignored_and_unlinked() {
    let runtime = tempfile::tempdir().expect("a folder");
    let proxy = Weir::serve_known_in(&Config::guarded(), runtime.path());
    let left = runtime.path().join(format!("weir/{}.toml", proxy.id()));
    let mode = fs::metadata(&left)
        .expect("it says that it runs")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(proxy);
    assert!(left.exists(), "it was killed and could not remove it");
    expect(
        &weir(runtime.path(), &["reload"]),
        3,
        &["cannot find a proxy"],
    );
    assert!(!left.exists());
    // and the next one is found
    let _next = Weir::serve_known_in(&Config::guarded(), runtime.path());
    expect(&weir(runtime.path(), &["reload"]), 0, &[]);
}

#[test]
fn world_writable_runtime_directory_is_not_trusted() {
    let runtime = tempfile::tempdir().expect("a folder");
    let folder = runtime.path().join("weir");
    fs::create_dir(&folder).expect("a folder");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("ours");
    let parts = ["cannot find a proxy", "nobody else can write to"];
    expect(&weir(runtime.path(), &["purge", "--all"]), 3, &parts);
}
