//! Responses that modules change before they are stored: which requests get them, and how they are
//! validated, purged and sent in parts.

#[path = "on_disk.rs"]
mod on_disk;

use crate::support::{
    Answering, Head, Response, Running, ScriptedOrigin, Setup, scripted, set_state,
};
use weir_measure::Metric;
use weir_proxy::config::{Config, FailurePolicy, Module};

/// What the next hop has, short enough to be received with the head, or not.
pub(super) fn content(path: &str) -> String {
    match path {
        "/long" => "the quick brown fox. ".repeat(20_000),
        path => format!("content of {path}"),
    }
}

fn path_of(head: &Head) -> String {
    let target = head.start_line().split(' ').nth(1).expect("a target");
    target.to_owned()
}

/// A next hop whose responses are fresh for a minute, and are validated by `validator`, a field
/// line.
fn origin(validator: &'static str) -> Answering {
    let tag = validator.strip_prefix("ETag: ");
    ScriptedOrigin::new().answering(move |head, _| {
        let content = content(&path_of(head));
        let fields = format!("{validator}\r\nCache-Control: max-age=60\r\n");
        let is_same = tag.is_some_and(|tag| head.field("if-none-match") == Some(tag))
            || tag.is_none() && head.field("if-modified-since").is_some();
        match head.start_line() {
            line if line.starts_with("POST ") => {
                b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()
            }
            _ if is_same => {
                format!("HTTP/1.1 304 Not Modified\r\n{fields}X-Update: yes\r\n\r\n").into()
            }
            line => {
                let length = content.len();
                let head = format!(
                    "HTTP/1.1 200 OK\r\n{fields}Content-MD5: x\r\nAccept-Ranges: bytes\r\n\
                     Content-Type: text/plain\r\nContent-Length: {length}\r\n\r\n"
                );
                let is_head = line.starts_with("HEAD ");
                let content = if is_head { "" } else { &content };
                format!("{head}{content}").into()
            }
        }
    })
}

const ETAG: &str = "ETag: \"v1\"";

/// A module that puts the tag of the variant, a request's X-Tag, before the content.
pub(super) const TAGGED: [(&str, &str); 2] = [
    ("request-received", "variant X-Tag"),
    ("response-received", "content tag"),
];

const UPPER: [(&str, &str); 1] = [("response-received", "content upper")];

pub(super) fn with(actions: &[(&str, &str)]) -> impl Fn(&mut Config) {
    let module = scripted("a", actions);
    move |config| config.modules = vec![module.clone()]
}

fn proxy(origin: &Answering, actions: &[(&str, &str)]) -> Running {
    Running::gateway_with(origin.address(), with(actions))
}

fn head(method: &str, path: &str, fields: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nHost: a.example\r\n{fields}\r\n")
}

fn get(proxy: &Running, path: &str, fields: &str) -> Response {
    proxy.client().ask(head("GET", path, fields))
}

/// Whether a GET is a hit, and what it gets.
fn ask(proxy: &Running, path: &str, fields: &str) -> (bool, String) {
    let response = get(proxy, path, fields);
    (response.is_hit(), response.text())
}

fn tag_of(response: &Response) -> String {
    response.head.field("etag").unwrap_or_default().to_owned()
}

#[test]
fn changed_response_is_stored_with_its_length_and_an_entity_tag_of_its_own() {
    for path in ["/short", "/long"] {
        let origin = origin(ETAG);
        let proxy = proxy(&origin, &[("response-received", "content twice")]);
        let twice: String = content(path).chars().flat_map(|one| [one; 2]).collect();
        let miss = get(&proxy, path, "");
        assert!(
            miss.text() == twice && miss.verdict().contains("stored"),
            "{:?}",
            miss.head
        );
        let hit = get(&proxy, path, "");
        assert!(hit.is_hit() && hit.text() == twice, "{:?}", hit.head);
        assert_eq!(hit.head.length(), Some(twice.len()));
        let tag = tag_of(&hit);
        assert!(tag.starts_with("W/\"v1-") && tag.len() == 23, "{tag}");
        assert_eq!(tag_of(&miss), tag);
        for response in [&miss, &hit] {
            assert_eq!(response.head.all("etag").len(), 1);
            for name in ["content-md5", "accept-ranges"] {
                assert_eq!(response.head.field(name), None, "{name}");
            }
        }
        let only_head = {
            let mut client = proxy.client();
            client.send(head("HEAD", path, ""));
            client.read_head()
        };
        assert_eq!(only_head.length(), Some(twice.len()));
        assert_eq!(only_head.field("etag"), Some(&*tag));
        assert_eq!(origin.seen().len(), 1);
    }
}

#[test]
fn result_of_another_configuration_is_a_miss_and_that_of_the_former_one_is_found_again() {
    for path in ["/short", "/long"] {
        let origin = origin(ETAG);
        let proxy = proxy(&origin, &UPPER);
        let upper = content(path).to_uppercase();
        let tagged = format!("[]{}", content(path));
        assert!(ask(&proxy, path, "") == (false, upper.clone()));
        let first = tag_of(&get(&proxy, path, ""));
        proxy.reload(with(&TAGGED));
        assert!(ask(&proxy, path, "") == (false, tagged.clone()));
        assert!(ask(&proxy, path, "") == (true, tagged));
        assert_ne!(tag_of(&get(&proxy, path, "")), first);
        proxy.reload(with(&UPPER));
        assert!(ask(&proxy, path, "") == (true, upper));
        assert_eq!(tag_of(&get(&proxy, path, "")), first);
        assert_eq!(origin.seen().len(), 2);
    }
}

#[test]
fn request_without_the_module_and_one_with_it_never_get_what_is_for_the_other() {
    let origin = origin(ETAG);
    let proxy = proxy(&origin, &UPPER);
    let (upper, plain) = (content("/").to_uppercase(), content("/"));
    let control = proxy.control();
    for _ in 0..2 {
        assert_eq!(ask(&proxy, "/", ""), (false, upper.clone()));
        assert_eq!(ask(&proxy, "/", ""), (true, upper.clone()));
        assert!(control.set_module_enabled("a", false));
        assert_eq!(ask(&proxy, "/", ""), (false, plain.clone()));
        assert_eq!(ask(&proxy, "/", ""), (true, plain.clone()));
        assert!(control.set_module_enabled("a", true));
    }
    proxy.reload(|config| config.modules.clear());
    assert_eq!(ask(&proxy, "/", ""), (true, plain.clone()));
    proxy.reload(with(&UPPER));
    assert_eq!(ask(&proxy, "/", ""), (false, upper));
    proxy.reload(|config| {
        with(&UPPER)(config);
        config.modules[0].path = "/other".parse().expect("a path");
    });
    assert_eq!(ask(&proxy, "/", ""), (false, plain));
}

#[test]
fn request_gets_what_was_stored_for_its_tag() {
    let origin = origin(ETAG);
    let proxy = proxy(&origin, &TAGGED);
    let tags = ["", "X-Tag: br\r\n", "X-Tag: webp-640\r\n"];
    let expected = ["[]", "[br]", "[webp-640]"].map(|tag| format!("{tag}{}", content("/")));
    for is_hit in [false, true] {
        for (fields, expected) in tags.iter().zip(&expected) {
            assert_eq!(ask(&proxy, "/", fields), (is_hit, expected.clone()));
        }
    }
    // on one connection too, whichever the request before had
    let mut client = proxy.client();
    for at in [0, 0, 1, 1, 0, 2, 2, 1, 0] {
        let response = client.ask(head("GET", "/", tags[at]));
        assert_eq!((response.is_hit(), &response.text()), (true, &expected[at]));
    }
    let mut seen = tags.map(|fields| tag_of(&get(&proxy, "/", fields)));
    seen.sort();
    assert!(seen.windows(2).all(|two| two[0] != two[1]), "{seen:?}");
}

#[test]
fn state_that_a_module_depends_on_decides_what_is_found() {
    let origin = origin(ETAG);
    let stateful = [("response-received", "content upper"), ("state", "list")];
    set_state("list", "1");
    let proxy = proxy(&origin, &stateful);
    let upper = content("/").to_uppercase();
    assert_eq!(ask(&proxy, "/", ""), (false, upper.clone()));
    set_state("list", "2");
    assert_eq!(ask(&proxy, "/", ""), (false, upper.clone()));
    for state in ["1", "2"] {
        set_state("list", state);
        assert_eq!(ask(&proxy, "/", ""), (true, upper.clone()));
    }
}

#[test]
fn response_in_whose_time_the_state_changed_is_not_stored() {
    let stateful = [("response-received", "content upper"), ("state", "turns")];
    Setup::each_with(with(&stateful), |setup| {
        set_state("turns", "1");
        let (mut client, mut hop) = setup.lead(&setup.get("/"));
        set_state("turns", "2");
        hop.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1\r\n\r\na");
        let response = client.read_response();
        assert_eq!(response.text(), "A");
        assert!(
            response.verdict().contains("detail=module"),
            "{:?}",
            response.head
        );
    });
}

#[test]
fn purge_and_unsafe_request_reach_the_results_of_all_configurations_and_tags() {
    for is_purge in [true, false] {
        let origin = origin(ETAG);
        let proxy = proxy(&origin, &UPPER);
        let upper = content("/").to_uppercase();
        assert_eq!(ask(&proxy, "/", ""), (false, upper.clone()));
        proxy.reload(with(&TAGGED));
        for fields in ["", "X-Tag: br\r\n"] {
            assert!(!ask(&proxy, "/", fields).0);
            assert!(ask(&proxy, "/", fields).0);
        }
        if is_purge {
            assert_eq!(proxy.purge("http://a.example/"), 3);
        } else {
            let post = head("POST", "/", "Content-Length: 0\r\n");
            assert_eq!(proxy.client().ask(post).status(), 200);
        }
        for fields in ["", "X-Tag: br\r\n"] {
            assert!(!ask(&proxy, "/", fields).0, "{is_purge} {fields}");
        }
        proxy.reload(with(&UPPER));
        assert_eq!(ask(&proxy, "/", ""), (false, upper));
    }
}

#[test]
fn stored_response_is_validated_by_the_tag_of_the_next_hop() {
    for (validator, field, value) in [
        (ETAG, "if-none-match", "\"v1\""),
        (
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
            "if-modified-since",
            "Sun, 06 Nov 1994 08:49:37 GMT",
        ),
    ] {
        let origin = origin(validator);
        let proxy = proxy(&origin, &UPPER);
        let upper = content("/").to_uppercase();
        let tag = tag_of(&get(&proxy, "/", ""));
        assert!(tag.starts_with("W/\""), "{tag}");
        proxy.clock.advance_ms(61_000);
        let validated = get(&proxy, "/", "");
        let asked = origin.seen().pop().expect("a validation");
        assert_eq!(asked.field(field), Some(value));
        assert_eq!((validated.status(), validated.text()), (200, upper.clone()));
        assert!(
            validated.verdict().contains("fwd-status=304"),
            "{:?}",
            validated.head
        );
        let hit = get(&proxy, "/", "");
        assert!(hit.is_hit(), "{:?}", hit.head);
        assert_eq!(hit.text(), upper);
        assert_eq!(hit.head.field("x-update"), Some("yes"));
        for response in [&validated, &hit] {
            assert_eq!(response.head.all("etag"), [&*tag]);
            assert_eq!(response.head.all("content-length").len(), 1);
        }
        assert_eq!(origin.seen().len(), 2);
    }
}

#[test]
fn preconditions_of_clients_are_about_the_changed_content() {
    let origin = origin("ETag: \"v1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT");
    let proxy = proxy(&origin, &UPPER);
    let tag = tag_of(&get(&proxy, "/", ""));
    let since = "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for (fields, status) in [
        (format!("If-None-Match: {tag}\r\n"), 304),
        (format!("If-None-Match: {tag}\r\n{since}"), 304),
        ("If-None-Match: *\r\n".to_owned(), 304),
        ("If-None-Match: \"v1\"\r\n".to_owned(), 200),
        ("If-None-Match: W/\"v1\"\r\n".to_owned(), 200),
        (since.to_owned(), 200),
    ] {
        let mut client = proxy.client();
        client.send(head("GET", "/", &fields));
        let response = client.read_head();
        assert_eq!(response.status(), status, "{fields}");
        assert_eq!(response.field("etag"), Some(&*tag));
    }
    assert_eq!(origin.seen().len(), 1);
}

#[test]
fn miss_is_forwarded_for_the_whole_and_without_preconditions_and_led() {
    for fields in [
        "Range: bytes=1-2\r\n",
        "Range: bytes=1-2\r\nIf-Range: \"v1\"\r\n",
        "If-None-Match: \"v1\"\r\n",
        "If-Match: \"x\"\r\n",
        "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    ] {
        for path in ["/short", "/long"] {
            let origin = origin(ETAG);
            let proxy = proxy(&origin, &UPPER);
            let (_, text) = ask(&proxy, path, fields);
            assert!(text == content(path).to_uppercase(), "{fields}");
            let asked = &origin.seen()[0];
            for name in [
                "range",
                "if-range",
                "if-none-match",
                "if-match",
                "if-modified-since",
            ] {
                assert_eq!(asked.field(name), None, "{fields}");
            }
            assert!(ask(&proxy, path, "").0, "{fields}");
        }
    }
}

#[test]
fn range_of_a_stored_changed_response_is_served() {
    for path in ["/short", "/long"] {
        let origin = origin(ETAG);
        let proxy = proxy(&origin, &UPPER);
        let upper = content(path).to_uppercase();
        get(&proxy, path, "");
        let part = get(&proxy, path, "Range: bytes=1-5\r\n");
        assert_eq!((part.status(), part.is_hit()), (206, true));
        assert_eq!(part.text(), upper[1..6]);
        let all = format!("bytes 1-5/{}", upper.len());
        assert_eq!(part.head.field("content-range"), Some(&*all));
        let beyond = get(&proxy, path, "Range: bytes=9999999-\r\n");
        assert_eq!(beyond.status(), 416);
        // a weak tag does not show that the bytes are the same
        let tag = tag_of(&part);
        for tag in [&*tag, "\"v1\"", &tag[2..]] {
            let whole = get(
                &proxy,
                path,
                &format!("Range: bytes=1-5\r\nIf-Range: {tag}\r\n"),
            );
            assert_eq!(whole.status(), 200, "{tag}");
        }
        assert_eq!(origin.seen().len(), 1);
    }
}

#[test]
fn part_of_a_changed_response_is_not_kept_and_not_completed() {
    for (actions, is_kept) in [
        (&UPPER[..], false),
        (&[("response-received", "set X-A b")], true),
    ] {
        let mut change = Vec::new();
        change.extend_from_slice(actions);
        Setup::each_with(with(&change), |setup| {
            setup.proxy.reload(|config| {
                config.fetch.abort = weir_policy::fetch::AbortKind::Stop;
                config.fetch.half_closed = crate::support::span("1ms");
            });
            let (mut client, mut hop) = setup.lead(&setup.get("/"));
            let length = 4_000_000;
            hop.send(format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\n\
                 Content-Length: {length}\r\n\r\n{}",
                "a".repeat(100_000)
            ));
            client.read_head();
            client.read_exactly(50_000);
            client.into_peer().reset();
            setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
            let kept = setup.proxy.count(Metric::PartsStored);
            assert_eq!(kept, u64::from(is_kept), "{actions:?}");
            let (_client, hop) = {
                let mut client = setup.proxy.client();
                client.send(setup.get("/"));
                (
                    client,
                    setup
                        .origin
                        .answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
                )
            };
            assert_eq!(hop.1.has("range"), is_kept);
        });
    }
}

#[test]
fn requests_collapse_only_with_those_of_their_tag() {
    let fresh = |content: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\n\
             Content-Length: {}\r\n\r\n{content}",
            content.len()
        )
    };
    for is_long in [false, true] {
        Setup::each_with(with(&TAGGED), |setup| {
            let content = content(if is_long { "/long" } else { "/" });
            let tagged = |tag: &str| setup.head("GET", "/", "1.1", &format!("X-Tag: {tag}\r\n"));
            let (first, first_hop) = setup.lead(&tagged("a"));
            let followers = setup.follow(2, &tagged("a"));
            // another tag does not wait for the first
            let (second, second_hop) = setup.lead(&tagged("b"));
            let others = setup.follow(2, &tagged("b"));
            let sent = [first_hop, second_hop].map(|hop| hop.sending(fresh(&content)));
            let clients = [("a", first, followers), ("b", second, others)];
            let reading: Vec<_> = clients
                .into_iter()
                .flat_map(|(tag, leader, followers)| {
                    let all = std::iter::once(leader).chain(followers);
                    all.map(move |client| (tag, client)).collect::<Vec<_>>()
                })
                .map(|(tag, mut client)| {
                    std::thread::spawn(move || (tag, client.read_response().text()))
                })
                .collect();
            for reader in reading {
                let (tag, text) = reader.join().expect("a response");
                assert!(text == format!("[{tag}]{content}"), "{tag}");
            }
            drop(sent);
        });
    }
}

/// The leader was forwarded under a former configuration.
#[test]
fn request_with_a_module_is_not_answered_by_a_fetch_without_it_and_the_other_way_round() {
    for is_module_first in [false, true] {
        let setup = Setup::gateway();
        if is_module_first {
            setup.proxy.reload(with(&UPPER));
        }
        let response = |content: &str, length: usize| {
            format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {length}\r\n\r\n\
                 {content}"
            )
        };
        let (mut first, mut hop) = setup.lead(&setup.get("/"));
        // the content is in flight
        hop.send(response("ab", 4));
        first.read_head();
        if is_module_first {
            setup.proxy.reload(|config| config.modules.clear());
        } else {
            setup.proxy.reload(with(&UPPER));
        }
        let (mut second, mut other) = setup.lead(&setup.get("/"));
        other.send(response("xy", 2));
        let expected = if is_module_first { "xy" } else { "XY" };
        assert_eq!(second.read_response().text(), expected);
        hop.send("cd");
        let expected = if is_module_first { b"AB" } else { b"ab" };
        let received = if is_module_first {
            first.read_chunks_of(4)
        } else {
            first.read_exactly(4)
        };
        assert_eq!(received[..2], expected[..]);
    }
}

#[test]
fn response_that_passed_a_failed_module_is_not_stored() {
    for hook in ["request-sent", "response-received"] {
        for action in ["fail", "panic"] {
            let origin = origin(ETAG);
            let failing = if hook == "response-received" {
                vec![(hook, action)]
            } else {
                vec![(hook, action), ("response-received", "content upper")]
            };
            let proxy = Running::gateway_with(origin.address(), |config| {
                with(&failing)(config);
                config.modules[0].on_failure = FailurePolicy::Pass;
            });
            for _ in 0..7 {
                // also once the breaker is open
                let response = get(&proxy, "/", "");
                assert_eq!(response.text(), content("/"));
                assert!(
                    response.verdict().contains("detail=module"),
                    "{:?}",
                    response.head
                );
            }
        }
    }
}

#[test]
fn response_for_which_a_module_failed_before_the_look_up_is_for_such_requests_alone() {
    let origin = origin(ETAG);
    let stored = [
        ("request-received", "set X-A b"),
        ("response-received", "content upper"),
    ];
    let failing = [
        ("request-received", "fail"),
        ("response-received", "content upper"),
    ];
    let passing = |actions: &[(&str, &str)]| {
        let module = scripted("a", actions);
        move |config: &mut Config| {
            config.modules = vec![module.clone()];
            config.modules[0].on_failure = FailurePolicy::Pass;
        }
    };
    let proxy = Running::gateway_with(origin.address(), passing(&failing));
    let plain = content("/");
    assert_eq!(ask(&proxy, "/", ""), (false, plain.clone()));
    assert_eq!(ask(&proxy, "/", ""), (true, plain.clone()));
    proxy.reload(|config| config.modules.clear());
    assert_eq!(ask(&proxy, "/", ""), (false, plain));
    proxy.reload(passing(&stored));
    assert_eq!(ask(&proxy, "/", ""), (false, content("/").to_uppercase()));
}

#[test]
fn client_that_forbids_transformation_never_gets_changed_content() {
    let origin = origin(ETAG);
    let proxy = proxy(&origin, &UPPER);
    let forbids = "Cache-Control: no-transform\r\n";
    for is_hit in [false, true] {
        assert_eq!(ask(&proxy, "/", ""), (is_hit, content("/").to_uppercase()));
        let kept = get(&proxy, "/", forbids);
        assert_eq!((kept.is_hit(), kept.text()), (is_hit, content("/")));
        assert_eq!(tag_of(&kept), "\"v1\"");
    }
}

/// A next hop whose n-th response, from 0, is `cn`, and may be used while it is validated.
fn numbered_origin() -> Answering {
    let served = std::sync::atomic::AtomicU64::new(0);
    ScriptedOrigin::new().answering(move |_, _| {
        let number = served.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60, stale-while-revalidate=600\r\n\
             ETag: \"v{number}\"\r\nContent-Length: 2\r\n\r\nc{number}"
        )
        .into()
    })
}

#[test]
fn stale_response_is_validated_in_the_background_for_its_own_tag() {
    let origin = numbered_origin();
    let proxy = proxy(&origin, &TAGGED);
    assert_eq!(
        ask(&proxy, "/", "X-Tag: a\r\n"),
        (false, "[a]c0".to_owned())
    );
    assert_eq!(
        ask(&proxy, "/", "X-Tag: b\r\n"),
        (false, "[b]c1".to_owned())
    );
    proxy.clock.advance_ms(61_000);
    proxy.wait_for(Metric::Stored, 2);
    assert_eq!(ask(&proxy, "/", "X-Tag: a\r\n"), (true, "[a]c0".to_owned()));
    proxy.wait_for(Metric::Stored, 3);
    assert_eq!(ask(&proxy, "/", "X-Tag: a\r\n"), (true, "[a]c2".to_owned()));
    proxy.clock.advance_ms(61_000);
    let asked = origin.seen().len();
    assert_eq!(ask(&proxy, "/", "X-Tag: b\r\n"), (true, "[b]c1".to_owned()));
    proxy.wait_for(Metric::Stored, 4);
    assert_eq!(origin.seen().len(), asked + 1);
    assert_eq!(ask(&proxy, "/", "X-Tag: b\r\n"), (true, "[b]c3".to_owned()));
}

#[test]
fn stale_response_is_validated_for_the_request_as_its_client_sent_it() {
    for change in ["remove X-Tag", "set X-Other yes", "add X-Other yes"] {
        let origin = numbered_origin();
        let behind = scripted("b", &[("request-received", change)]);
        let proxy = Running::gateway_with(origin.address(), |config| {
            config.modules = vec![scripted("a", &TAGGED), behind.clone()];
        });
        let ask = || ask(&proxy, "/", "X-Tag: a\r\n");
        assert_eq!(ask(), (false, "[a]c0".to_owned()), "{change}");
        proxy.wait_for(Metric::Stored, 1);
        proxy.clock.advance_ms(61_000);
        assert_eq!(ask(), (true, "[a]c0".to_owned()), "{change}");
        proxy.wait_for(Metric::Stored, 2);
        assert_eq!(ask(), (true, "[a]c1".to_owned()), "{change}");
    }
}

#[test]
fn tag_counts_that_a_module_gives_for_the_target_which_another_has_chosen() {
    let origin = origin(ETAG);
    let proxy = Running::gateway_with(origin.address(), |config| {
        let moved = scripted("moved", &[("request-received", "path /new")]);
        config.modules = vec![
            Module {
                path: "/old".parse().expect("a path"),
                ..moved
            },
            Module {
                path: "/new".parse().expect("a path"),
                ..scripted("a", &TAGGED)
            },
        ];
    });
    let content = content("/new");
    for (path, tag, is_hit) in [
        ("/old", "a", false),
        ("/old", "b", false),
        ("/new", "a", true),
        ("/old", "a", true),
        ("/new", "b", true),
        ("/new", "", false),
    ] {
        let fields = match tag {
            "" => String::new(),
            tag => format!("X-Tag: {tag}\r\n"),
        };
        let expected = (is_hit, format!("[{tag}]{content}"));
        assert_eq!(ask(&proxy, path, &fields), expected, "{path} {tag}");
    }
}

#[test]
fn trial_of_a_module_that_a_request_in_the_background_takes_ends_with_it() {
    let origin = ScriptedOrigin::new().answering(|_, _| {
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60, stale-while-revalidate=600\r\n\
          Content-Length: 2\r\n\r\nok"
            .to_vec()
    });
    let proxy = proxy(&origin, &[("request-sent", "unavailable-if X-Bad")]);
    assert_eq!(ask(&proxy, "/", ""), (false, "ok".to_owned()));
    for _ in 0..5 {
        assert_eq!(get(&proxy, "/bad", "X-Bad: yes\r\n").status(), 502);
    }
    assert_eq!(get(&proxy, "/open", "").status(), 502);
    proxy.clock.advance_ms(61_000);
    proxy.wait_for(Metric::Stored, 1);
    // its validation is the first call of the module since the breaker has opened
    assert_eq!(ask(&proxy, "/", ""), (true, "ok".to_owned()));
    proxy.wait_for(Metric::Stored, 2);
    // on another worker it may end a moment later
    let mut clients = 0..1000;
    assert!(clients.any(|_| get(&proxy, "/closed", "").status() == 200));
}

#[test]
fn variants_of_a_module_and_of_vary_are_told_apart_together() {
    let origin = ScriptedOrigin::new().answering(|head, _| {
        let language = head.field("accept-language").unwrap_or("none");
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: Accept-Language\r\n\
             Content-Length: {}\r\n\r\n{language}",
            language.len()
        )
        .into()
    });
    let proxy = proxy(&origin, &TAGGED);
    for is_hit in [false, true] {
        for tag in ["a", "b"] {
            for language in ["de", "en"] {
                let fields = format!("X-Tag: {tag}\r\nAccept-Language: {language}\r\n");
                let expected = (is_hit, format!("[{tag}]{language}"));
                assert_eq!(ask(&proxy, "/", &fields), expected);
            }
        }
    }
    proxy.reload(|config| config.modules.clear());
    assert_eq!(
        ask(&proxy, "/", "Accept-Language: de\r\n"),
        (false, "de".to_owned())
    );
}
