//! Stored responses on the admin interface of a proxy.

use crate::support::{
    PATIENCE, RawClient, Response, Running, ScriptedOrigin, asking, localhost, scripted,
};
use std::time::Instant;
use weir_proxy::config::{AdminAddress, Config};

fn proxy(change: impl FnOnce(&mut Config)) -> Running {
    Running::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.admin.address = AdminAddress::At(([127, 0, 0, 1], 0).into());
        change(config);
    })
}

/// What the admin interface answers to `POST /stored/` and `path`.
fn post(proxy: &Running, path: &str, body: &[u8]) -> Response {
    let address = proxy.admin_address();
    let mut admin = RawClient::connect(address);
    let length = body.len();
    admin.send(format!(
        "POST /stored/{path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n"
    ));
    admin.send(body);
    admin.read_response()
}

#[track_caller]
fn check(proxy: &Running, path: &str, status: u16, expected: &str) {
    let response = post(proxy, path, b"");
    assert_eq!(response.status(), status, "{path}: {}", response.text());
    assert!(
        response.text().contains(expected),
        "{path}: {}",
        response.text()
    );
}

#[test]
fn operator_injects_finds_reads_expires_and_deletes_a_response() {
    let proxy = proxy(|_| {});
    let url = "url=http://a.example/x";
    check(&proxy, &format!("query?{url}"), 404, "no such response");
    let message = b"HTTP/1.1 200 OK\r\nCache-Control: private, max-age=60\r\nX-A: b\r\n\r\ncontent";
    let injected = post(&proxy, &format!("inject?{url}"), message);
    assert_eq!(injected.status(), 200, "{}", injected.text());
    let info = "stored 7 of 7 bytes\nage 0 s\nfresh for 60 s\n";
    check(&proxy, &format!("query?{url}"), 200, info);
    check(&proxy, &format!("query?mode=gateway&{url}"), 404, "");
    check(&proxy, &format!("read?{url}"), 200, "content");
    let get = "GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let hit = proxy.client().ask(get);
    assert!(hit.is_hit());
    assert_eq!(
        (hit.text().as_str(), hit.head.field("x-a")),
        ("content", Some("b"))
    );
    check(&proxy, &format!("expire?{url}"), 400, "for how long?");
    check(
        &proxy,
        &format!("expire?fresh_for=1h&{url}"),
        200,
        "fresh for 3600 s",
    );
    check(&proxy, &format!("query?{url}"), 200, "fresh for 3600 s");
    check(&proxy, &format!("delete?{url}"), 200, "deleted 1");
    check(&proxy, &format!("query?{url}"), 404, "");
}

#[test]
fn operator_has_responses_fetched_and_validated_by_the_destination_rules() {
    let proxy = proxy(|_| {});
    let origin = ScriptedOrigin::new();
    let url = format!("url=http://{}/", origin.address());
    let answer = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: 2\r\n\r\nok";
    let with = |path: String, answer: &str| {
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| post(&proxy, &path, b"").text());
            let (hop, _) = origin.answer(answer);
            let said = asked.join().expect("a response");
            drop(hop);
            said
        })
    };
    let fetched = with(format!("fetch?{url}"), answer);
    assert!(
        fetched.starts_with("status 200\nstored 2 of 2 bytes\n"),
        "{fetched}"
    );
    let valid = "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n";
    assert_eq!(with(format!("validate?{url}"), valid), "valid\n");
    check(
        &proxy,
        "fetch?url=http://127.0.0.1:1/",
        502,
        "no whole response",
    );
    let strict = self::proxy(|config| config.access.allow_destinations = Vec::new());
    check(&strict, &format!("fetch?{url}"), 403, "forbidden");
    let own = proxy.address();
    check(
        &proxy,
        &format!("fetch?url=http://{own}/"),
        403,
        "forbidden",
    );
}

#[test]
fn operator_has_nothing_fetched_that_rules_keep_from_the_store() {
    let proxy = proxy(|config| {
        let rules = r#"[{"path": ["/denied"], "deny": "closed"},
            {"path": ["/bypassed"], "bypass": true},
            {"client": ["127.0.0.0/8"], "deny": "no client at all"}]"#;
        config.rules = serde_json::from_str(rules).expect("rules");
    });
    let origin = ScriptedOrigin::new();
    for call in ["fetch", "validate"] {
        let url = |path: &str| format!("{call}?url=http://{}{path}", origin.address());
        check(&proxy, &url("/denied"), 403, "forbidden");
        check(&proxy, &url("/bypassed"), 422, "not stored (rule)");
    }
    origin.expect_untouched();
    // what is stored there from before can still be deleted
    let url = format!("delete?url=http://{}/denied", origin.address());
    check(&proxy, &url, 200, "deleted 0");
}

#[test]
fn call_that_is_not_understood_changes_nothing() {
    let proxy = proxy(|_| {});
    let inject = |message: &[u8]| {
        let injected = post(&proxy, "inject?url=http://a.example/", message);
        (injected.status(), injected.text())
    };
    assert_eq!(inject(b"content").0, 400);
    let refused = inject(b"HTTP/1.1 200 OK\r\n\r\ncontent");
    assert_eq!(
        refused,
        (422, "the response is not stored (no-lifetime)\n".into())
    );
    let part = inject(b"HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=9\r\n\r\nx");
    assert_eq!(part.0, 400);
    check(&proxy, "query?url=http://a.example/", 404, "");
    check(
        &proxy,
        "forget?url=http://a.example/",
        404,
        "after /stored/ comes",
    );
    check(&proxy, "delete?url=http://a.example/&x=y", 400, "`&x=y`");
    check(
        &proxy,
        "delete?url=https://a.example/",
        400,
        "not permitted",
    );
}

/// A next hop whose responses vary on a field, and modules by another one.
#[test]
fn operator_finds_a_variant_by_its_fields_and_sees_all_of_them() {
    let origin = ScriptedOrigin::new().answering(|head, _| {
        let language = head.field("accept-language").unwrap_or("none");
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: Accept-Language\r\n\
             Content-Language: {language}\r\nContent-Length: {}\r\n\r\n{language}",
            language.len()
        )
        .into()
    });
    let tagged = [
        ("request-received", "variant X-Tag"),
        ("response-received", "content tag"),
    ];
    for actions in [&tagged[..], &[]] {
        let proxy = proxy(|config| {
            if !actions.is_empty() {
                config.modules = vec![scripted("a", actions)];
            }
        });
        let url = format!("url=http://{}/", origin.address());
        check(&proxy, &format!("list?{url}"), 404, "no such response");
        for language in ["de", "en"] {
            let fields = format!("field=X-Tag:%20a&field=Accept-Language:%20{language}&");
            check(&proxy, &format!("fetch?{fields}{url}"), 200, "status 200");
        }
        let tag = if actions.is_empty() { "" } else { "[a]" };
        for language in ["de", "en"] {
            let fields = format!("field=X-Tag:a&field=accept-language:{language}&");
            let read = post(&proxy, &format!("read?{fields}{url}"), b"");
            assert_eq!(read.text(), format!("{tag}{language}"));
            let listed = post(&proxy, &format!("list?{fields}{url}"), b"").text();
            let rows: Vec<Vec<&str>> = listed
                .lines()
                .map(|line| line.split_whitespace().collect())
                .collect();
            assert_eq!(rows.len(), 3, "{listed}");
            for row in &rows[1..] {
                let is_it = row.last() == Some(&language);
                assert_eq!(row[0] == "*", is_it, "{listed}");
                assert!(row.contains(&"accept-language"), "{listed}");
                assert_eq!(row.contains(&"modules,"), !actions.is_empty(), "{listed}");
                assert!(row.contains(&"200") && row.contains(&"60"), "{listed}");
            }
        }
        // without these fields nothing is selected, and all are listed
        check(&proxy, &format!("query?{url}"), 404, "no such response");
        let listed = post(&proxy, &format!("list?{url}"), b"").text();
        assert!(
            listed.lines().count() == 3 && !listed.contains('*'),
            "{listed}"
        );
        check(
            &proxy,
            &format!("delete?field=A:b&{url}"),
            400,
            "all variants",
        );
        check(&proxy, &format!("delete?{url}"), 200, "deleted 2");
        check(&proxy, &format!("list?{url}"), 404, "no such response");
        let secret = format!("query?field=Cookie:%20a=b&{url}");
        check(&proxy, &secret, 400, "`Cookie` selects no stored response");
    }
}

#[test]
fn call_about_one_of_two_modes_says_which() {
    let proxy = proxy(|config| {
        let mut gateway = config.listeners[0].clone();
        gateway.mode = weir_proxy::config::ListenerKind::Gateway;
        config.listeners.push(gateway);
        config.routes = vec![weir_proxy::config::Route {
            next_hops: vec!["http://127.0.0.1:1".parse().expect("a URL")],
            ..weir_proxy::config::Route::default()
        }];
    });
    check(
        &proxy,
        "query?url=http://a.example/",
        400,
        "there are forward and gateway listeners, and each mode has its own stored responses: put \
         mode=forward& or mode=gateway& before url=",
    );
    let message = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\ncontent";
    let injected = post(&proxy, "inject?mode=gateway&url=http://a.example/", message);
    assert_eq!(injected.status(), 200);
    check(&proxy, "query?mode=gateway&url=http://a.example/", 200, "");
    check(&proxy, "query?mode=forward&url=http://a.example/", 404, "");
}

#[test]
fn module_that_has_all_under_way_that_it_may_keeps_neither_operator_nor_other_modules_out() {
    const REQUESTS: usize = 128;
    let proxy = proxy(|config| {
        config.modules = ["greedy", "modest"].map(|name| asking(name, &[])).into();
        config.modules[0].host = Some("greedy.example".parse().expect("a host"));
        config.modules[0].requests_max = 128;
        config.modules[1].host = Some("modest.example".parse().expect("a host"));
    });
    // it answers nothing
    let origin = ScriptedOrigin::new();
    let get = |host: &str, fields: &str| {
        let origin = origin.address();
        format!(
            "GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nX-Do: fetch http://{origin}/\r\n{fields}\r\n"
        )
    };
    let brief = "X-Timeout-Ms: 100\r\n";
    let greedy = proxy.asking(REQUESTS, &get("greedy.example", ""));
    let until = Instant::now() + PATIENCE;
    while proxy.client().ask(get("greedy.example", brief)).text() != "TooMany" {
        assert!(Instant::now() < until, "not all are under way");
    }
    let modest = proxy.client().ask(get("modest.example", brief));
    assert_eq!(modest.text(), "Timeout");
    let url = "url=http://a.example/x";
    let message = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\ncontent";
    assert_eq!(
        post(&proxy, &format!("inject?{url}"), message).status(),
        200
    );
    check(&proxy, &format!("read?{url}"), 200, "content");
    drop(greedy);
}
