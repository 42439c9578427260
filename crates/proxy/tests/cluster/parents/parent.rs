//! What a parent is sent, and what becomes of its response.

use crate::parents::child::{
    answering, child, child_with, get, lines, nothing, parent, parent_and,
};
use crate::support::ScriptedOrigin;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use weir_policy::route::policy::PolicyKind;
use weir_proxy::config::{Direct, Parent, TokenFile};

#[test]
fn parent_is_sent_requests_in_absolute_form_without_what_is_for_this_proxy() {
    let upper = answering("parent");
    let child = child(vec![parent(upper.address())]);
    let fields = "Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\n\
                  Cookie: a=b\r\n";
    let response = child.client().ask(get("http://a.example/x?y=z", fields));
    assert_eq!((response.status(), response.text()), (200, "parent".into()));
    let response = child.client().ask(get("http://b.example:8080/", ""));
    assert_eq!(response.status(), 200);
    let seen = upper.seen();
    assert_eq!(
        lines(&seen),
        [
            "GET http://a.example/x?y=z HTTP/1.1",
            "GET http://b.example:8080/ HTTP/1.1"
        ]
    );
    assert_eq!(seen[0].field("host"), Some("a.example"));
    assert_eq!(seen[0].field("cookie"), Some("a=b"));
    assert!(seen[0].has("via"));
    assert!(!seen[0].has("proxy-authorization") && !seen[0].has("proxy-connection"));
    assert_eq!(seen[1].field("host"), Some("b.example:8080"));
}

#[test]
fn options_of_a_whole_server_has_no_path_at_a_parent() {
    let upper = answering("parent");
    let child = child(vec![parent(upper.address())]);
    for target in ["http://a.example", "http://a.example/"] {
        let request = format!("OPTIONS {target} HTTP/1.1\r\nHost: a.example\r\n\r\n");
        assert_eq!(child.client().ask(request).status(), 200);
    }
    assert_eq!(
        lines(&upper.seen()),
        [
            "OPTIONS http://a.example HTTP/1.1",
            "OPTIONS http://a.example/ HTTP/1.1"
        ]
    );
}

/// A file that its owner alone can read.
fn private_file(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("login");
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&path);
    file.expect("a file")
        .write_all(text.as_bytes())
        .expect("room");
    path
}

#[test]
fn login_of_a_parent_is_sent_to_that_parent_alone() {
    let (upper, other, origin) = (answering("parent"), answering("other"), answering("origin"));
    let folder = tempfile::tempdir().expect("a folder");
    let login_file = TokenFile::At(private_file(folder.path(), "weir:open sesame\n"));
    let with_login = Parent {
        login_file,
        ..parent(upper.address())
    };
    let without = Parent {
        host: Some("b.example".parse().expect("a host")),
        ..parent(other.address())
    };
    let direct = Parent {
        url: None,
        host: Some("127.0.0.1".parse().expect("a host")),
        ..parent_and(nothing(), Direct::Always)
    };
    let child = child(vec![with_login, without, direct]);
    let fields = "Proxy-Authorization: Basic b3duOm93bg==\r\n";
    for _ in 0..2 {
        let own = format!("http://{}/", origin.address());
        for (url, expected) in [
            ("http://a.example/", "parent"),
            ("http://b.example/", "other"),
            (own.as_str(), "origin"),
        ] {
            let response = child.client().ask(get(url, fields));
            assert_eq!(response.text(), expected);
            assert!(!response.head.has("proxy-authorization"));
        }
        child.purge_all();
    }
    for head in upper.seen() {
        // the base64 of `weir:open sesame`
        let expected = ["Basic d2VpcjpvcGVuIHNlc2FtZQ=="];
        assert_eq!(head.all("proxy-authorization"), expected);
    }
    assert_eq!((upper.seen().len(), other.seen().len()), (2, 2));
    for head in other.seen().iter().chain(&origin.seen()) {
        assert!(!head.has("proxy-authorization"), "{head:?}");
    }
    assert_eq!(lines(&origin.seen()), ["GET / HTTP/1.1"; 2]);
}

#[test]
fn parents_for_a_host_share_its_requests_by_their_policy() {
    let uppers = [answering("0"), answering("1"), answering("2")];
    let tables = |policy| {
        let mut tables: Vec<Parent> = uppers.iter().map(|it| parent(it.address())).collect();
        tables[1].policy = Some(policy);
        tables
    };
    let child = child(tables(PolicyKind::InTurn));
    let ask = |path: &str| {
        child.purge_all();
        child
            .client()
            .ask(get(&format!("http://a.example/{path}"), ""))
            .text()
    };
    let turns: Vec<String> = (0..6).map(|_| ask("same")).collect();
    assert_eq!(turns, ["0", "1", "2", "0", "1", "2"]);
    child.reload(|config| config.parents = tables(PolicyKind::Hash));
    let mut used = std::collections::BTreeSet::new();
    for number in 0..20 {
        let path = number.to_string();
        let first = ask(&path);
        assert_eq!(ask(&path), first, "another parent for the same target");
        used.insert(first);
    }
    assert_eq!(used.len(), 3);
}

#[test]
fn parent_that_cannot_be_reached_is_left_for_another_one() {
    let upper = answering("parent");
    let child = child(vec![
        parent_and(nothing(), Direct::Never),
        parent(nothing()),
        parent(upper.address()),
    ]);
    for number in 0..4 {
        let post = format!(
            "POST http://a.example/{number} HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi"
        );
        assert_eq!(child.client().ask(post).text(), "parent");
    }
    assert_eq!(upper.seen().len(), 4);
}

#[test]
fn safe_request_that_a_parent_leaves_without_response_is_sent_to_another_one_and_no_other() {
    let closing = ScriptedOrigin::new();
    let upper = answering("parent");
    let child = child(vec![
        Parent {
            weight: 1000,
            ..parent(closing.address())
        },
        parent(upper.address()),
    ]);
    std::thread::scope(|scope| {
        let closed = scope.spawn(|| (0..4).for_each(|_| drop(closing.accept().read_head())));
        for number in 0..3 {
            let url = format!("http://a.example/{number}");
            assert_eq!(child.client().ask(get(&url, "")).text(), "parent");
        }
        let post =
            "POST http://a.example/ HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(child.client().ask(post).status(), 502);
        closed.join().expect("four requests");
    });
}

#[test]
fn response_of_a_parent_is_stored_under_the_rules_for_an_origins() {
    let upper = ScriptedOrigin::new().answering(|head, _| {
        let target = head.start_line().to_owned();
        let control = if target.contains("/private") {
            "private, max-age=60"
        } else {
            "max-age=60"
        };
        format!("HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nContent-Length: 1\r\n\r\na")
            .into_bytes()
    });
    let child = child(vec![parent(upper.address())]);
    for (path, verdicts) in [("/shared", "hit"), ("/private", "fwd=uri-miss")] {
        let url = format!("http://a.example{path}");
        let _stored = child.client().ask(get(&url, "Cookie: one=1\r\n"));
        let second = child.client().ask(get(&url, "Cookie: two=2\r\n"));
        assert!(
            second.head.cache_status().contains(verdicts),
            "{:?}",
            second.head
        );
    }
}

#[test]
fn response_of_a_parent_that_is_not_to_be_kept_is_not_stored() {
    let upper = answering("parent");
    let child = child(vec![Parent {
        keep: false,
        ..parent(upper.address())
    }]);
    for _ in 0..2 {
        let response = child.client().ask(get("http://a.example/", ""));
        let status = response.head.cache_status().to_owned();
        assert!(
            status.ends_with("fwd=uri-miss;fwd-status=200;detail=on-parent"),
            "{status}"
        );
    }
    assert_eq!(upper.seen().len(), 2);
}

#[test]
fn password_that_a_parent_wants_is_not_asked_of_clients() {
    let upper = ScriptedOrigin::new().answering(|_, _| {
        b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\
          Content-Length: 0\r\n\r\n"
            .to_vec()
    });
    let child = child(vec![parent(upper.address())]);
    let response = child.client().ask(get("http://a.example/", ""));
    assert_eq!(response.status(), 500);
    assert!(
        !response.head.has("proxy-authenticate"),
        "{:?}",
        response.head
    );
    let status = response.head.field("proxy-status").expect("a reason");
    assert!(status.contains("proxy_configuration_error"), "{status}");
    let tunnel = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n";
    assert_eq!(child.client().ask(tunnel).status(), 500);
}

#[test]
fn two_parents_of_each_other_detect_the_loop() {
    let [one, other] = [child(Vec::new()), child(Vec::new())];
    for (of, to) in [(&one, &other), (&other, &one)] {
        of.reload(|config| config.parents = vec![parent_and(to.address(), Direct::Never)]);
    }
    let response = one.client().ask(get("http://a.example/", ""));
    assert_eq!(response.status(), 508);
}

#[test]
fn what_an_operator_sees_of_parents_and_siblings_counts_their_outcomes() {
    let upper = answering("parent");
    let gone = nothing();
    let child = child_with(
        vec![
            parent_and(upper.address(), Direct::Never),
            crate::parents::child::sibling(gone),
        ],
        |config| config.admin.address = "127.0.0.1:0".parse().expect("an address"),
    );
    let before = child
        .control()
        .route(None, "http://a.example/")
        .expect("a route");
    let kinds: Vec<&str> = before
        .candidates
        .iter()
        .map(|it| it.kind.as_str())
        .collect();
    assert_eq!(
        (kinds, before.direct),
        (vec!["sibling", "parent"], Some("never"))
    );
    let chosen: Vec<bool> = before
        .candidates
        .iter()
        .map(|it| it.chosen.is_some())
        .collect();
    assert_eq!(chosen, [true, false]);
    assert_eq!(
        child.client().ask(get("http://a.example/", "")).text(),
        "parent"
    );
    let metrics = child.admin("/metrics");
    for (url, kind, outcome, count) in [
        (upper.address(), "parent", "answered", 1),
        (upper.address(), "parent", "failed", 0),
        (gone, "sibling", "failed", 1),
        (gone, "sibling", "missed", 0),
    ] {
        let line = format!(
            "weir_parent_requests_total{{parent=\"http://{url}\",kind=\"{kind}\",outcome=\"{outcome}\"}} {count}\n"
        );
        assert!(metrics.contains(&line), "{line} is not in {metrics}");
    }
    let after = child
        .control()
        .route(None, "http://a.example/")
        .expect("a route");
    let states: Vec<&str> = after.candidates.iter().map(|it| it.state).collect();
    assert_eq!(states, ["gone", "in"]);
}

#[test]
fn reload_keeps_which_parents_are_ejected_and_what_was_counted() {
    let upper = answering("parent");
    let gone = nothing();
    let tables = || vec![parent(gone), parent(upper.address())];
    let child = child(tables());
    assert_eq!(
        child.client().ask(get("http://a.example/", "")).text(),
        "parent"
    );
    child.reload(|config| {
        config.parents = tables();
        config
            .parents
            .insert(0, crate::parents::child::sibling(nothing()));
    });
    let route = child
        .control()
        .route(None, "http://a.example/")
        .expect("a route");
    let states: Vec<&str> = route.candidates.iter().map(|it| it.state).collect();
    assert_eq!(states, ["in", "gone", "in"]);
}

#[test]
fn cookie_that_a_validation_brings_a_parent_is_for_the_client_of_its_request_alone() {
    let origin = ScriptedOrigin::new().answering(|head, _| {
        let user = head.field("cookie").unwrap_or_default();
        match head.has("if-none-match") {
            true => {
                format!("HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nSet-Cookie: {user}\r\n\r\n")
            }
            false => "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\nETag: \"1\"\r\n\
                      Content-Length: 4\r\n\r\npage"
                .to_owned(),
        }
        .into_bytes()
    });
    let upper = child(vec![parent(origin.address())]);
    let lower = child(vec![parent(upper.address())]);
    let get_as = |user: &str| get("http://a.example/", &format!("Cookie: {user}\r\n"));
    assert_eq!(upper.client().ask(get_as("none=1")).text(), "page");
    // the parent validates what it has stored for the request of the first user
    upper.clock.advance_ms(61_000);
    let own = lower.client().ask(get_as("user=a"));
    assert_eq!(own.head.field("set-cookie"), Some("user=a"));
    assert_eq!(own.text(), "page");
    let other = lower.client().ask(get_as("user=b"));
    assert_eq!(other.head.field("set-cookie"), None, "{}", other.head.text);
    assert_eq!(other.text(), "page");
    assert_eq!(origin.seen().len(), 2);
}
