//! Modules in processes of their own (`run = "process"`): what they do, and how they start and end.

use crate::support::{Config, Nginx, PATIENCE, RawClient, Reply, Weir};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// The machine of a test may have much else to do, and the program is not optimised.
const TIMES: &str = "deadline = \"1s\"\nwait = \"30s\"";

/// The origin says which field it was sent, and how long a request was. Pages are fresh for as long
/// as the test may take.
const LOCATIONS: &str = "
    location /pages/ { alias www/; expires 1h; }
    location /gzip/ { alias www/; expires 1h; gzip on; gzip_proxied any; }
    location /marked { default_type text/plain; return 200 \"$http_x_marked\"; }
    location /kept/ { add_header Cache-Control no-transform; alias www/; }
    location /form { default_type text/plain; return 200 \"$content_length\"; }
";

fn page() -> String {
    let text = "<p>The quick brown fox jumps over the lazy dog.</p>\n".repeat(10_000);
    format!("<html><head></head><body>{text}</body></html>")
}

/// Fields at all hooks, and content at the last one.
fn modules(config: Config, run: &str) -> Config {
    config
        .module(
            "mark",
            "headers",
            &format!(
                "{TIMES}\nrun = \"{run}\"
                 options.request_received = [\"set X-Early: yes\"]
                 options.request_sent = [\"set X-Marked: by-weir\"]
                 options.response_received = [\"set X-Stored: yes\"]
                 options.response_sent = [\"set X-Sent: yes\", \"remove Server\"]"
            ),
        )
        .module(
            "notice",
            "inject",
            &format!(
                "{TIMES}\nrun = \"{run}\"\noptions.html = \"<b>Hello</b>\"\noptions.place = \"start\"
                 options.decode = true"
            ),
        )
        .module(
            "smaller",
            "compress",
            &format!("{TIMES}\nrun = \"{run}\"\npath = \"/pages/big\""),
        )
}

/// What of a reply must not depend on where modules run, or on the second in which it was sent.
fn essence(reply: &Reply) -> (u16, Vec<String>, Vec<u8>) {
    let names = [
        "x-stored",
        "x-sent",
        "server",
        "etag",
        "content-type",
        "content-encoding",
        "content-length",
        "vary",
        "cache-status",
        "accept-ranges",
    ];
    let fields = names.map(|name| {
        let value = reply.field(name);
        let parts = value.split(';').filter(|part| !part.starts_with("ttl="));
        format!("{name}: {}", parts.collect::<Vec<_>>().join(";"))
    });
    (reply.status(), fields.to_vec(), reply.body.clone())
}

#[test]
fn modules_in_processes_do_to_messages_what_they_do_on_workers() {
    let nginx = Nginx::start(LOCATIONS);
    for name in ["page.html", "big.html", "plain.txt"] {
        nginx.file(name, page().as_bytes());
    }
    nginx.file("empty.html", b"");
    let own = Weir::serve(&modules(Config::forward(), "process"));
    let worker = Weir::serve(&modules(Config::forward(), "worker"));
    let lines = [
        "GET /marked",
        "GET /pages/page.html",
        "GET /pages/page.html",
        "HEAD /pages/page.html",
        "GET /gzip/page.html",
        "GET /gzip/page.html",
        "GET /pages/plain.txt",
        "GET /pages/plain.txt",
        "GET /pages/empty.html",
        "GET /kept/page.html",
        "GET /pages/nothing.html",
        "GET /pages/big.html",
        "GET /pages/big.html",
    ];
    for line in lines {
        let (method, path) = line.split_once(' ').expect("two words");
        for more in ["", "Accept-Encoding: gzip\r\n", "Accept-Encoding: br\r\n"] {
            let [own, worker] = [&own, &worker].map(|proxy| {
                let mut client = RawClient::connect(proxy.address());
                let url = nginx.url(path);
                let authority = url.trim_start_matches("http://");
                let authority = authority.split('/').next().expect("a part");
                client.send(format!(
                    "{method} {url} HTTP/1.1\r\nHost: {authority}\r\n{more}\r\n"
                ));
                let reply = if method == "HEAD" {
                    client.head()
                } else {
                    client.reply()
                };
                essence(&reply)
            });
            assert_eq!(own.0, worker.0, "{line} {more}");
            assert_eq!(own.1, worker.1, "{line} {more}");
            assert!(own.2 == worker.2, "{line} {more}: the content differs");
        }
    }
    let marked = own.get(&nginx.url("/marked")).expect(200);
    assert_eq!(marked.text(), "by-weir");
    let changed = page().replace("<body>", "<body><b>Hello</b>");
    assert!(own.get(&nginx.url("/pages/page.html")).expect(200).text() == changed);
}

#[test]
fn content_of_requests_reaches_the_origin_as_it_was_sent() {
    let nginx = Nginx::start(LOCATIONS);
    let proxy = Weir::serve(&modules(Config::forward(), "process"));
    for length in [0, 1, 100_000] {
        let mut client = RawClient::connect(proxy.address());
        let (url, content) = (nginx.url("/form"), "x".repeat(length));
        client.send(format!(
            "POST {url} HTTP/1.1\r\nHost: a.example\r\nContent-Length: {length}\r\n\r\n{content}"
        ));
        assert_eq!(client.reply().expect(200).text(), length.to_string());
    }
}

/// The processes of a proxy.
fn processes(proxy: u32) -> Vec<u32> {
    let children = std::fs::read_dir("/proc")
        .expect("the system's own")
        .flatten();
    let ids = children.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let rest = stat.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().nth(1) == Some(&proxy.to_string())
    })
    .collect()
}

/// The directories of the processes of a proxy.
fn directories(proxy: u32) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(std::env::temp_dir()).expect("temporary files");
    let paths = entries.flatten().map(|entry| entry.path());
    let prefix = format!("weir-module-{proxy}-");
    paths
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&prefix))
        })
        .collect()
}

/// Waits until `holds`.
#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "never {what}");
        std::thread::yield_now();
    }
}

fn kill(id: u32) {
    let killed = Command::new("kill").args(["-9", &id.to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
}

fn is_running(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// The process of the one module of a proxy. One that tried the configuration may still be ending.
#[track_caller]
fn only_process(proxy: &Weir) -> u32 {
    until("one process", || processes(proxy.id()).len() == 1);
    processes(proxy.id())[0]
}

/// A module that marks requests, with a rule for its failure.
fn marking(on_failure: &str) -> Config {
    Config::forward().module(
        "mark",
        "headers",
        &format!(
            "{TIMES}\nrun = \"process\"\non_failure = \"{on_failure}\"
             options.request_sent = [\"set X-Marked: by-weir\"]"
        ),
    )
}

#[test]
fn request_fails_by_rule_while_the_process_is_gone_and_works_once_it_is_back() {
    let nginx = Nginx::start(LOCATIONS);
    for (on_failure, status) in [("refuse", 502), ("pass", 200)] {
        let mut proxy = Weir::serve(&marking(on_failure));
        assert_eq!(
            proxy.get(&nginx.url("/marked")).expect(200).text(),
            "by-weir"
        );
        let process = only_process(&proxy);
        kill(process);
        until("gone", || !is_running(process));
        let reply = proxy.get(&nginx.url("/marked?gone")).expect(status);
        assert_ne!(reply.text(), "by-weir");
        proxy.wait_for("started again");
        let reply = proxy.get(&nginx.url("/marked?back")).expect(200);
        assert_eq!(reply.text(), "by-weir");
        let table = proxy.ask("GET", "/modules").expect(200).text();
        assert!(table.contains("starts: 2"), "{table}");
    }
}

/// The nice value of a process.
fn nice(process: u32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("it runs");
    let mut fields = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    fields
        .nth(16)
        .and_then(|nice| nice.parse().ok())
        .expect("a nice value")
}

#[test]
fn process_ends_with_its_configuration_and_leaves_nothing() {
    let nginx = Nginx::start(LOCATIONS);
    let proxy = Weir::serve(&marking("refuse"));
    let process = only_process(&proxy);
    until("one directory", || directories(proxy.id()).len() == 1);
    assert_eq!(nice(process), (nice(proxy.id()) + 10).min(19));
    assert_eq!(
        proxy.get(&nginx.url("/marked")).expect(200).text(),
        "by-weir"
    );
    proxy.rewrite(&Config::forward().text());
    proxy.ask("POST", "/reload").expect(200);
    assert_eq!(proxy.get(&nginx.url("/marked?no")).expect(200).text(), "");
    until("ended", || processes(proxy.id()).is_empty());
    until("removed", || directories(proxy.id()).is_empty());
}

#[test]
fn process_ends_with_a_proxy_that_is_killed_or_told_to_end() {
    for is_killed in [true, false] {
        let mut proxy = Weir::serve(&marking("refuse"));
        let process = only_process(&proxy);
        if is_killed {
            kill(proxy.id());
            proxy.wait_for_end();
        } else {
            assert!(proxy.stop().success());
        }
        until("ended", || !is_running(process));
        until("removed", || directories(proxy.id()).is_empty());
    }
}

#[test]
fn module_that_does_not_start_in_its_process_refuses_the_configuration_with_the_reason() {
    let proxy = Weir::serve(&Config::forward());
    let refused = |kind: &str, options: &str| {
        let options = format!("{TIMES}\nrun = \"process\"\n{options}");
        let config = Config::forward().module("own", kind, &options);
        proxy.rewrite(&config.text());
        proxy.ask("POST", "/reload").expect(422).text()
    };
    let reason = refused("headers", "options.request_sent = [\"hide Referer\"]");
    assert!(reason.contains("options.request_sent"), "{reason}");
    let reason = refused("inject", "options.html = \"x\"\noptions.plac = \"start\"");
    assert!(reason.contains("there is no such option"), "{reason}");
    let reason = refused("feed", "options.file = \"/etc/hostname\"");
    assert!(reason.contains("no hook"), "{reason}");
    until("ended", || processes(proxy.id()).is_empty());
    until("removed", || directories(proxy.id()).is_empty());
}
