//! `weir explain` and `GET /explain` beside a proxy that runs.

use super::{expect, quoted, token, weir};
use crate::support::{Config, Issued, KeyKind, Metrics, Nginx, RawClient, Weir};
use serde_json::Value;

const LOCATIONS: &str = "
location /aged { add_header Cache-Control max-age=3600; return 200 aged; }
location /shared { add_header Cache-Control s-maxage=3600; add_header Set-Cookie 'user=alice'; return 200 x; }
location /modified { add_header Last-Modified 'Sun, 06 Nov 1994 08:49:37 GMT'; return 200 x; }
location /strict { add_header Cache-Control 'max-age=3600, no-cache'; return 200 x; }
location /language { add_header Cache-Control max-age=3600; add_header Vary Accept-Language; return 200 x; }
location /ruled { return 200 x; }
location /expires { expires 1h; return 200 x; }
location /never { add_header Cache-Control no-store; return 200 x; }
location /moved { return 302 /aged; }
location /left { return 302 /aged; }
location /gone { return 404 x; }
location /stale { add_header Cache-Control 'public, max-age=0'; add_header ETag 'W/\"a\"'; return 200 x; }
";

fn explain(proxy: &Weir, words: &[&str]) -> Value {
    let output = weir(proxy.folder(), &[&["explain", "--json"], words].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error}: {said}{failed}"))
}

/// The same of the admin interface, for a GET with these field lines.
fn ask(proxy: &Weir, url: &str, lines: &[&str]) -> Value {
    let mut path = String::from("/explain?format=json&");
    for line in lines {
        path.push_str(&format!("field={}&", line.replace(' ', "%20")));
    }
    let said = proxy.ask("GET", &format!("{path}url={url}"));
    serde_json::from_str(&said.expect(200).text()).expect("JSON")
}

/// Sends a GET with these field lines; the value of its `Cache-Status`.
fn cache_status(proxy: &Weir, url: &str, lines: &[&str]) -> String {
    let mut client = RawClient::connect(proxy.address());
    let host = url.trim_start_matches("http://");
    let host = &host[..host.find('/').expect("a path")];
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    client.send(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n"));
    client.reply().field("cache-status").to_owned()
}

/// What of a `Cache-Status` is known before the response: not what came of a forwarded request.
fn known(status: &str) -> String {
    let is_known = |part: &&str| {
        !["ttl=", "fwd-status=", "stored", "detail="]
            .iter()
            .any(|later| part.starts_with(later))
    };
    let parts: Vec<&str> = status.split(';').filter(is_known).collect();
    parts.join(";")
}

#[test]
fn explained_request_fares_as_it_was_explained_whatever_it_says() {
    let nginx = Nginx::start(LOCATIONS);
    let rules = r#"[{ path = ["/ruled"], lifetime.forced = "1h", ignore = ["request no-cache"] }, { path = ["/aged/past"], bypass = true }]"#;
    let proxy = Weir::serve(&Config::forward().set("rule", rules));
    let paths = [
        "/aged",
        "/shared",
        "/modified",
        "/strict",
        "/language",
        "/ruled",
        "/expires",
        "/aged/past",
    ];
    let requests: [&[&str]; 7] = [
        &[],
        &["Cache-Control: no-cache"],
        &["Cache-Control: max-age=0"],
        &["Cache-Control: only-if-cached"],
        &["Cache-Control: min-fresh=9999999"],
        &["Accept-Language: fr"],
        &["Authorization: Basic eDp5"],
    ];
    // first nothing is stored, then something is
    for turn in 0..2 {
        for path in paths {
            for lines in requests {
                let url = nginx.url(&format!("{path}?{}", lines.join("").len()));
                let explained = ask(&proxy, &url, lines);
                let again = ask(&proxy, &url, lines);
                assert_eq!(explained["outcome"]["word"], again["outcome"]["word"]);
                let expected = explained["outcome"]["cache_status"].as_str();
                let found = cache_status(&proxy, &url, lines);
                let said = format!("{turn} {url} {lines:?}: {explained:#}, {found}");
                assert_eq!(known(&found), known(expected.expect("text")), "{said}");
                let stored = &explained["storing"]["word"];
                if found.contains(";stored") {
                    assert_ne!(stored, "no", "{said}");
                }
            }
        }
    }
}

/// A link with a quota of 1 MiB, with this value of `when_spent`.
fn link(when_spent: &str, state_file: &std::path::Path) -> String {
    let slow_rate = if when_spent == "slow" {
        r#", slow_rate = "1MiB/s""#
    } else {
        ""
    };
    format!(
        r#"[{{ name = "a", quota = "1MiB", period = "month", when_spent = "{when_spent}"{slow_rate}, state_file = {} }}]"#,
        quoted(state_file)
    )
}

#[test]
fn explained_request_fares_as_it_was_explained_when_a_link_has_spent_its_quota() {
    let large = format!(
        "location /large {{ add_header Cache-Control no-store; return 200 {}; }}",
        "x".repeat(3000)
    );
    let nginx = Nginx::start(&format!("{LOCATIONS}{large}"));
    let folder = tempfile::tempdir().expect("a folder");
    for when_spent in ["slow", "stored-only", "stale", "refuse"] {
        let link = link(when_spent, &folder.path().join(when_spent));
        let proxy = Weir::serve(&Config::forward().set("link", &link));
        let stored = ["/aged", "/stale", "/strict", "/language"];
        for path in stored {
            proxy.get(&nginx.url(path)).expect(200);
        }
        let before = explain(&proxy, &[&nginx.url("/new")]);
        assert!(input(&before, "quota").0, "{before:#}");
        assert!(input(&before, "when_spent").1.is_empty(), "{before:#}");
        let is_spent = || input(&explain(&proxy, &[&nginx.url("/new")]), "when_spent").0;
        // 50 of them are a tenth of the quota at least
        for _ in 0..10 {
            for _ in 0..50 {
                // the last one may be cut
                let _cut = RawClient::connect(proxy.address()).try_get(&nginx.url("/large"));
            }
            if is_spent() {
                break;
            }
        }
        let explained = explain(&proxy, &[&nginx.url("/new")]);
        let (is_there, said) = input(&explained, "when_spent");
        assert!(is_there && said.contains(when_spent), "{explained:#}");
        assert!(input(&explained, "spent").1.contains("nothing is left"));
        for path in ["/aged", "/stale", "/strict", "/language", "/new"] {
            let requests: [&[&str]; 3] = [
                &[],
                &["Cache-Control: max-age=0"],
                &["Cache-Control: only-if-cached"],
            ];
            for lines in requests {
                let url = nginx.url(path);
                let explained = ask(&proxy, &url, lines);
                let expected = explained["outcome"]["cache_status"].as_str();
                let expected = expected.expect("text");
                let found = cache_status(&proxy, &url, lines);
                let said = format!("{when_spent} {url} {lines:?}: {explained:#}, {found}");
                assert_eq!(known(&found), known(expected), "{said}");
                let is_of_link = |status: &str| status.contains("detail=link-spent");
                assert_eq!(is_of_link(&found), is_of_link(expected), "{said}");
                let stale_for = input(&explained, "stale_for").1;
                match (when_spent, path, lines) {
                    ("stale", "/stale", []) => {
                        assert!(stale_for.contains("it may be served until"), "{said}");
                    }
                    ("stale", "/strict", []) => {
                        assert!(stale_for.contains("the response forbids it"), "{said}");
                    }
                    ("stale", _, _) => {}
                    _ => assert_eq!(stale_for, "", "{said}"),
                }
                if is_of_link(&found) {
                    assert_eq!(explained["storing"], Value::Null, "{said}");
                    assert_ne!(when_spent, "slow", "{said}");
                }
            }
        }
    }
}

/// Whether an input of this name is there, and its value.
fn input(explained: &Value, name: &str) -> (bool, String) {
    let inputs = explained["inputs"].as_array().expect("inputs");
    let found = inputs.iter().find(|it| it["name"] == name);
    let value = found
        .and_then(|it| it["value"].as_str())
        .unwrap_or_default();
    (found.is_some(), value.to_owned())
}

#[test]
fn url_that_is_always_a_miss_has_the_reason_and_fetching_it_has_the_status() {
    let nginx = Nginx::start(LOCATIONS);
    let proxy = Weir::serve(&Config::forward());
    let url = nginx.url("/never");
    for _ in 0..3 {
        proxy.get(&url).expect(200);
    }
    let explained = explain(&proxy, &[&url]);
    let expected = serde_json::json!({"reason": "response-no-store", "requests": 3, "status": 200});
    for key in ["reason", "requests", "status"] {
        assert_eq!(
            explained["not_stored"][0][key], expected[key],
            "{explained:#}"
        );
    }
    let text = weir(proxy.folder(), &["explain", &url]);
    let parts = ["3 recent requests were not stored", "response-no-store"];
    expect(&text, 0, &parts);
    for (path, status) in [("/never", "status 200"), ("/gone", "status 404")] {
        let output = weir(proxy.folder(), &["explain", "--fetch", &nginx.url(path)]);
        expect(
            &output,
            0,
            &["=> fetched", "fetched: the response, with ", status],
        );
    }
}

#[test]
fn destination_that_is_denied_is_neither_fetched_nor_stored() {
    let denied = r#"["127.0.0.0/8"]"#;
    let proxy = Weir::serve(&Config::guarded().set("access.deny_destinations", denied));
    let url = "http://127.0.0.9/";
    let explained = explain(&proxy, &[url]);
    let status = explained["outcome"]["cache_status"].as_str().expect("text");
    assert_eq!(known(&cache_status(&proxy, url, &[])), known(status));
    assert!(status.contains("detail=denied"), "{explained:#}");
    assert_eq!(explained["storing"], Value::Null);
    assert_eq!(explained["next_hop"], Value::Null);
}

#[test]
fn gateway_without_a_route_is_explained_with_the_answer_that_its_client_gets() {
    let nginx = Nginx::start(LOCATIONS);
    let rule = "lifetime.forced = \"1h\"\nbypass = false\nignore = [\"request no-cache\"]";
    let config = Config::gateway(&[])
        .without_routes()
        .route("host = \"a.test\"\npath = \"/aged\"", &[&nginx.origin()]);
    let proxy = Weir::serve(&config.rule(rule));
    for host in ["b.test", "a.test"] {
        let explained = explain(&proxy, &[&format!("http://{host}/new")]);
        let mut client = RawClient::connect(proxy.address());
        client.send(format!("GET /new HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let reply = client.reply().expect(404);
        let outcome = &explained["outcome"];
        let expected = outcome["cache_status"].as_str().expect("text");
        assert_eq!(known(&reply.field("cache-status")), known(expected));
        assert_eq!(
            (&outcome["word"], &outcome["status"]),
            (&"error".into(), &404.into())
        );
        assert!(
            input(&explained, "route").1.contains("no route"),
            "{explained:#}"
        );
        assert_eq!(explained["storing"], Value::Null);
        assert_eq!(explained["rules"][0]["decides"], serde_json::json!([]));
    }
    let text = weir(proxy.folder(), &["explain", "http://b.test/new"]);
    expect(
        &text,
        0,
        &[
            "=> error: the proxy answers it itself with 404",
            "*   route: no route",
        ],
    );
    let explained = explain(&proxy, &["http://a.test/aged"]);
    let decided = serde_json::json!(["bypass", "lifetime"]);
    assert_eq!(explained["outcome"]["word"], "fetched", "{explained:#}");
    assert_eq!(explained["rules"][0]["decides"], decided, "{explained:#}");
}

#[test]
fn lifetime_says_where_it_comes_from_and_the_rule_that_forces_it() {
    let nginx = Nginx::start(LOCATIONS);
    let rules = r#"[{ path = ["/none"], bypass = true }, { name = "mirror", path = ["/ruled"], lifetime.forced = "2h" }, { status = ["302"], path = ["/moved"], lifetime.default = "1h" }, { status = ["302"], path = ["/left"], lifetime.forced = "3h" }]"#;
    let proxy = Weir::serve(&Config::forward().set("rule", rules));
    for (path, by, seconds) in [
        ("/aged", "max-age", 3600),
        ("/shared", "s-maxage", 3600),
        ("/modified", "heuristic", 86_400),
        ("/ruled", "rule", 7200),
    ] {
        let url = nginx.url(path);
        proxy.get(&url).expect(200);
        let explained = explain(&proxy, &[&url]);
        let stored = &explained["stored"][0];
        assert_eq!(stored["lifetime_by"], by, "{explained:#}");
        assert_eq!(stored["lifetime_s"], seconds, "{explained:#}");
        assert_eq!(stored["selected"], true);
        assert_eq!(stored["place"], "memory");
        let last = explained["inputs"].as_array().and_then(|all| all.last());
        let last = last.expect("inputs");
        assert_eq!(last["decides"], true);
        assert_eq!(last["name"], "freshness", "{explained:#}");
        assert_eq!(last["section"], "RFC 9111 section 4.2");
    }
    for (path, by, seconds, rule) in [
        ("/moved", "assigned", 3600, 2),
        ("/left", "rule", 10_800, 3),
    ] {
        let url = nginx.url(path);
        proxy.get(&url).expect(302);
        let stored = &explain(&proxy, &[&url])["stored"][0];
        assert_eq!(stored["lifetime_by"], by, "{stored:#}");
        assert_eq!(stored["lifetime_s"], seconds, "{stored:#}");
        assert_eq!(stored["lifetime_rule"], rule, "{stored:#}");
    }
    let explained = explain(&proxy, &[&nginx.url("/ruled")]);
    let text = std::fs::read_to_string(proxy.file("weir.toml")).expect("a file");
    let line = text
        .lines()
        .position(|line| line.starts_with("rule ="))
        .expect("rules")
        + 1;
    let rule = &explained["rules"][0];
    assert_eq!(rule["number"], 1, "{explained:#}");
    assert_eq!(rule["name"], "mirror");
    assert_eq!(rule["line"], line);
    assert_eq!(rule["decides"], serde_json::json!(["lifetime"]));
    assert_eq!(explained["stored"][0]["lifetime_rule"], 1);
    let marks = &explain(&proxy, &[&nginx.url("/shared")])["stored"][0]["marks"];
    assert_eq!(*marks, serde_json::json!(["set-cookie"]));
}

#[test]
fn variants_and_what_a_rule_denies_are_shown_in_80_columns() {
    let nginx = Nginx::start(LOCATIONS);
    let denied = format!(
        "[{{ path = [\"/no\"], client = [\"192.0.2.0/24\"], deny = \"{}\" }}]",
        "Not from there. ".repeat(9)
    );
    let proxy = Weir::serve(&Config::forward().set("rule", &denied));
    let url = nginx.url("/language");
    for language in ["fr", "de"] {
        let line = format!("Accept-Language: {language}");
        assert!(cache_status(&proxy, &url, &[&line]).contains("stored"));
    }
    let explained = explain(&proxy, &["--field", "accept-language: de", &url]);
    let stored = explained["stored"].as_array().expect("variants");
    assert_eq!(stored.len(), 2, "{explained:#}");
    let selected: Vec<_> = stored.iter().map(|it| it["selected"] == true).collect();
    assert_eq!(selected, [false, true]);
    assert_eq!(stored[0]["vary"], serde_json::json!(["accept-language"]));
    assert_ne!(stored[0]["vary_hash"], stored[1]["vary_hash"]);
    let miss = weir(proxy.folder(), &["explain", &url]);
    expect(
        &miss,
        0,
        &[
            "=> fetched",
            "*   Vary:",
            "section 4.1)",
            "next hop: the host",
        ],
    );
    let long = nginx.url(&format!("/no/{}", "x".repeat(300)));
    let words = ["explain", "--client", "192.0.2.7", &long];
    let refused = weir(proxy.folder(), &words);
    expect(&refused, 0, &["=> denied", "access.clients"]);
    let clients = Config::forward()
        .set("rule", &denied)
        .set("access.clients", "[\"0.0.0.0/0\"]");
    proxy.rewrite(&clients.text());
    expect(&weir(proxy.folder(), &["reload"]), 0, &["config reloaded"]);
    let refused = weir(proxy.folder(), &words);
    let parts = [
        "=> denied: the proxy answers it itself with 403",
        "`rule[0]`, line ",
    ];
    expect(&refused, 0, &parts);
    for output in [miss, refused] {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(80), "{text}");
    }
}

#[test]
fn explaining_changes_nothing_and_fetches_only_when_asked() {
    let nginx = Nginx::start(LOCATIONS);
    let proxy = Weir::serve(&Config::forward());
    let url = nginx.url("/aged");
    let before = proxy.metrics();
    let explained = explain(&proxy, &[&url]);
    assert_eq!(explained["outcome"]["word"], "fetched", "{explained:#}");
    assert_eq!(explained["storing"]["word"], "yes");
    let secret = explain(&proxy, &["--field", "Authorization: Basic eDp5", &url]);
    assert_eq!(secret["storing"]["word"], "if-shared");
    assert_eq!(secret["storing"]["section"], "RFC 9111 section 3.5");
    let after = proxy.metrics();
    let counts = |it: &Metrics| (it.all_requests(), it.count("weir_store_entries"));
    assert_eq!(counts(&before), counts(&after));
    let top = proxy
        .ask("GET", "/top?of=urls&by=requests")
        .expect(200)
        .text();
    assert!(!top.contains("/aged"), "{top}");
    let fetched = explain(&proxy, &["--fetch", &url]);
    assert_eq!(fetched["outcome"]["word"], "hit", "{fetched:#}");
}

/// The keys of a value, and of what is in it but for where the request is sent.
fn keys(value: &Value, all: &mut std::collections::BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                all.insert(key.clone());
                if key != "next_hop" {
                    keys(value, all);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, all)),
        _ => {}
    }
}

#[test]
fn reference_has_every_key_of_the_json_form() {
    let nginx = Nginx::start(LOCATIONS);
    let rules = r#"[{ path = ["/ruled"], lifetime.forced = "1h" }]"#;
    let proxy = Weir::serve(&Config::forward().set("rule", rules));
    let url = nginx.url("/ruled");
    proxy.get(&url).expect(200);
    let mut all = std::collections::BTreeSet::new();
    keys(&explain(&proxy, &["--field", "Accept: x", &url]), &mut all);
    keys(&explain(&proxy, &[&nginx.url("/aged")]), &mut all);
    let page = include_str!("../../../../../docs/reference/explain.md");
    for key in all {
        assert!(page.contains(&format!("`{key}`")), "no `{key}`");
    }
}

#[test]
fn values_that_may_be_of_a_user_need_the_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = token(folder.path(), "token", "first-0123456789", 0o600);
    let nginx = Nginx::start(LOCATIONS);
    let proxy = Weir::serve(&Config::forward().set("admin.token_file", &quoted(&first)));
    let url = nginx.url("/shared");
    proxy.get(&url).expect(200);
    let path = format!("/explain?format=json&url={url}");
    let without = proxy.ask("GET", &path).expect(200).text();
    assert!(
        without.contains("Set-Cookie") && without.contains("hash:"),
        "{without}"
    );
    assert!(!without.contains("alice"), "{without}");
    assert!(without.contains("s-maxage=3600"), "{without}");
    // the command has the token of the proxy that runs
    let with = explain(&proxy, &[&url]);
    assert_eq!(with["values_shown"], true);
    assert!(with.to_string().contains("user=alice"), "{with:#}");
}

#[test]
fn response_of_a_rule_that_is_gone_is_named_and_read_only_when_that_is_said() {
    let nginx = Nginx::start(
        "location /mine { add_header Cache-Control 'private, max-age=3600'; return 200 mine; }",
    );
    let rule = r#"[{ path = ["/mine"], ignore = ["response private"], share = "unsafe" }]"#;
    let config = Config::forward();
    let proxy = Weir::serve(&config.clone().set("rule", rule));
    let url = nginx.url("/mine");
    proxy.get(&url).expect(200);
    assert!(proxy.get(&url).is_hit());
    let stored = |words: &[&str]| weir(proxy.folder(), &[&["stored"], words].concat());
    expect(&stored(&["read", &url]), 0, &["mine"]);
    assert_eq!(explain(&proxy, &[&url])["stored"][0]["marks"][0], "by-rule");
    proxy.rewrite(&config.text());
    expect(&weir(proxy.folder(), &["reload"]), 0, &["config reloaded"]);
    let explained = explain(&proxy, &[&url]);
    assert_eq!(explained["outcome"]["word"], "fetched", "{explained:#}");
    let marks = explained["stored"][0]["marks"].to_string();
    assert!(marks.contains("lacks-rule"), "{marks}");
    let gone = "no rule permits any more what it was stored by";
    expect(&stored(&["query", &url]), 0, &[gone]);
    expect(
        &stored(&["list", &url]),
        0,
        &["*!", "a rule that is gone had it stored"],
    );
    expect(
        &stored(&["read", &url]),
        2,
        &[gone, "hint: `--lacking-rule` reads it"],
    );
    expect(&stored(&["read", "--lacking-rule", &url]), 0, &["mine"]);
    assert!(!proxy.get(&url).is_hit());
}

#[test]
fn request_that_cannot_be_explained_is_refused_with_the_reason() {
    let proxy = Weir::serve(&Config::forward());
    let check = |words: &[&str], parts: &[&str]| {
        let output = weir(proxy.folder(), &[&["explain"], words].concat());
        expect(&output, 2, parts);
    };
    check(&["/x"], &["error: cannot explain `/x`"]);
    check(
        &["127.0.0.1:8080/x"],
        &["did you mean `http://127.0.0.1:8080/x`?"],
    );
    check(
        &["https://example.com/"],
        &[
            "https goes through tunnels (CONNECT)",
            "nothing of them is cached",
        ],
    );
    check(
        &["--method", "CONNECT", "http://a/"],
        &["a tunnel is not explained"],
    );
    check(
        &["--field", "Host: b", "http://a/"],
        &["no field that can be named"],
    );
    check(
        &["--listener", "127.0.0.1:1", "http://a/"],
        &["there is no listener"],
    );
}

#[test]
fn url_is_explained_for_the_listener_that_answers_for_its_scheme() {
    let folder = tempfile::tempdir().expect("a folder");
    let issued = Issued::new(folder.path(), "a", &["a.test"], KeyKind::Ecdsa);
    let nginx = Nginx::start(LOCATIONS);
    let config = Config::gateway(&[&nginx.origin()]).of_listener("name = \"clear\"");
    let config = config.listener("127.0.0.1:0", "gateway").tls(&[&issued]);
    let config = config.of_listener("name = \"tls\"");
    let both = Weir::serve(&config);
    for (url, listener) in [
        ("http://a.test/aged", "clear"),
        ("https://a.test/aged", "tls"),
    ] {
        let explained = explain(&both, &[url]);
        assert_eq!(explained["request"]["listener"], listener, "{explained:#}");
        let explained = explain(&both, &["--listener", listener, url]);
        assert_eq!(explained["outcome"]["word"], "fetched", "{explained:#}");
    }
    let check = |proxy: &Weir, words: &[&str], parts: &[&str]| {
        let output = weir(proxy.folder(), &[&["explain"], words].concat());
        expect(&output, 2, parts);
    };
    let https = "https://a.test/aged";
    check(
        &both,
        &["--listener", "clear", https],
        &["the listener `clear` has no TLS"],
    );
    let clear = Weir::serve(&Config::gateway(&[&nginx.origin()]));
    check(&clear, &[https], &["each gateway listener has no TLS"]);
}

#[test]
fn mode_that_no_listener_has_is_refused_by_explain_and_route() {
    let nginx = Nginx::start(LOCATIONS);
    let gateway = Weir::serve(&Config::gateway(&[&nginx.origin()]));
    let forward = Weir::serve(&Config::forward());
    for command in ["explain", "route"] {
        let run = |proxy: &Weir, mode| {
            weir(
                proxy.folder(),
                &[command, "--mode", mode, "http://a.test/aged"],
            )
        };
        expect(&run(&gateway, "gateway"), 0, &[]);
        expect(&run(&forward, "forward"), 0, &[]);
        for (proxy, mode) in [(&gateway, "forward"), (&forward, "gateway")] {
            let refusal = format!("no listener has mode {mode}");
            expect(&run(proxy, mode), 2, &[&refusal]);
        }
    }
}
