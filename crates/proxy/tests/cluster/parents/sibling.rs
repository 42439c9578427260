//! What siblings are asked, when, and how often.

use crate::parents::child::{
    answering, child, child_with, empty_sibling, fresh, get, lines, nothing, parent_and, sibling,
};
use crate::support::{Answering, PATIENCE, Running, ScriptedOrigin};
use std::time::Instant;
use weir_measure::{Label as _, Metric, Verdict};
use weir_proxy::config::{Direct, Parent};

fn url_of(origin: &Answering, path: &str) -> String {
    format!("http://{}{path}", origin.address())
}

#[test]
fn sibling_is_asked_for_what_it_has_stored_before_anything_else() {
    let (beside, origin) = (empty_sibling(), answering("origin"));
    let child = child(vec![sibling(beside.address())]);
    for number in 0..3 {
        let url = url_of(&origin, &format!("/{number}"));
        let response = child
            .client()
            .ask(get(&url, "Cache-Control: max-age=9\r\n"));
        assert_eq!(response.text(), "origin");
        let again = child.client().ask(get(&url, ""));
        assert!(again.is_hit(), "{:?}", again.head);
    }
    let seen = beside.seen();
    assert_eq!(
        lines(&seen)[0],
        format!("GET {} HTTP/1.1", url_of(&origin, "/0"))
    );
    assert_eq!((seen.len(), origin.seen().len()), (3, 3));
    for head in seen {
        assert_eq!(head.all("cache-control"), ["only-if-cached", "max-age=9"]);
    }
    for head in origin.seen() {
        assert_eq!(head.all("cache-control"), ["max-age=9"]);
    }
    // what it says of having nothing is read to its end
    assert_eq!(beside.connections(), 1);
}

#[test]
fn stored_response_of_a_sibling_is_used_as_one_of_an_origin() {
    let beside = ScriptedOrigin::new().answering(|_, _| {
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nAge: 50\r\nContent-Length: 2\r\n\r\nhi"
            .to_vec()
    });
    let child = child(vec![sibling(beside.address())]);
    for verdict in ["fwd=uri-miss;fwd-status=200;stored", "hit;ttl=10"] {
        let response = child.client().ask(get("http://a.example/", ""));
        assert_eq!(response.text(), "hi");
        let status = response.head.cache_status().to_owned();
        assert!(status.contains(verdict), "{status}");
        assert_eq!(response.head.field("age"), Some("50"));
    }
    let proxy_only = crate::parents::child::child(vec![Parent {
        keep: false,
        ..sibling(beside.address())
    }]);
    for _ in 0..2 {
        let response = proxy_only.client().ask(get("http://a.example/", ""));
        let status = response.head.cache_status().to_owned();
        assert!(status.ends_with("detail=on-sibling"), "{status}");
    }
}

#[test]
fn what_a_sibling_says_for_itself_is_no_response() {
    let origin = answering("origin");
    for status in [400, 401, 403, 407, 500, 502, 503, 504, 508] {
        let beside = ScriptedOrigin::new().answering(move |_, _| {
            format!(
                "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 {status} No\r\n\
                 Cache-Control: max-age=60\r\nProxy-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno"
            )
            .into_bytes()
        });
        let child = child(vec![sibling(beside.address())]);
        let mut client = child.client();
        let response = client.ask(get(&url_of(&origin, "/"), ""));
        assert_eq!(
            (response.status(), response.text()),
            (200, "origin".into()),
            "{status}"
        );
        assert_eq!(beside.seen().len(), 1);
    }
}

#[test]
fn two_of_many_siblings_are_asked_for_a_request() {
    let beside = [empty_sibling(), empty_sibling(), empty_sibling()];
    let upper = answering("parent");
    let mut tables: Vec<Parent> = beside.iter().map(|it| sibling(it.address())).collect();
    tables.push(parent_and(upper.address(), Direct::Never));
    let child = child(tables);
    for number in 0..6 {
        let response = child
            .client()
            .ask(get(&format!("http://a.example/{number}"), ""));
        assert_eq!(response.text(), "parent");
    }
    let asked = beside.each_ref().map(|it| it.seen().len());
    assert_eq!(asked.iter().sum::<usize>(), 12);
    assert!(asked.iter().all(|count| *count >= 3), "{asked:?}");
}

#[test]
fn sibling_that_is_silent_or_gone_or_breaks_off_is_left_for_what_comes_next() {
    let origin = answering("origin");
    let url = url_of(&origin, "/");
    let silent = ScriptedOrigin::new();
    let cut = ScriptedOrigin::new().answering(|_, _| b"HTTP/1.1 200 OK\r\nCont".to_vec());
    for address in [silent.address(), nothing(), cut.address()] {
        let child = child(vec![Parent {
            timeout: Some("50ms".parse().expect("a span")),
            ..sibling(address)
        }]);
        let response = child.client().ask(get(&url, ""));
        assert_eq!((response.status(), response.text()), (200, "origin".into()));
    }
}

#[test]
fn request_that_no_cache_answers_is_not_for_siblings() {
    let (beside, origin) = (empty_sibling(), answering("origin"));
    let child = child_with(vec![sibling(beside.address())], |config| {
        config.access.connect_ports.push(origin.address().port());
    });
    let url = url_of(&origin, "/");
    for fields in [
        "Authorization: Basic YTpi\r\n",
        "Cache-Control: no-cache\r\n",
        "Cache-Control: no-store\r\n",
        "Pragma: no-cache\r\n",
    ] {
        child.purge_all();
        assert_eq!(
            child.client().ask(get(&url, fields)).text(),
            "origin",
            "{fields}"
        );
    }
    let post = get(&url, "Content-Length: 2\r\n").replacen("GET", "POST", 1) + "hi";
    assert_eq!(child.client().ask(post).text(), "origin");
    let address = origin.address();
    let tunnel = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    child.client().send(tunnel);
    // a stale response is validated with the origin
    child.purge_all();
    let _stored = child
        .client()
        .ask(get(&url, "Authorization: Basic YTpi\r\n"));
    assert_eq!(beside.seen().len(), 0);
}

#[test]
fn stale_response_is_validated_with_the_origin_and_not_with_a_sibling() {
    let (beside, origin) = (empty_sibling(), answering("origin"));
    let child = child(vec![sibling(beside.address())]);
    let url = url_of(&origin, "/");
    assert_eq!(child.client().ask(get(&url, "")).text(), "origin");
    child.clock.advance_ms(61_000);
    assert_eq!(child.client().ask(get(&url, "")).text(), "origin");
    assert_eq!((beside.seen().len(), origin.seen().len()), (1, 2));
}

#[test]
fn only_if_cached_asks_no_sibling_no_parent_and_no_origin() {
    let (beside, upper) = (empty_sibling(), answering("parent"));
    let child = child(vec![
        sibling(beside.address()),
        parent_and(upper.address(), Direct::Never),
    ]);
    for method in ["GET", "HEAD", "POST"] {
        let request = get("http://a.example/", "Cache-Control: only-if-cached\r\n");
        child.client().send(request.replacen("GET", method, 1));
        let mut client = child.client();
        client.send(request.replacen("GET", method, 1));
        assert_eq!(client.read_head().status(), 504, "{method}");
    }
    assert_eq!((beside.seen().len(), upper.seen().len()), (0, 0));
    let url = "http://a.example/";
    assert_eq!(child.client().ask(get(url, "")).text(), "parent");
    let stored = child
        .client()
        .ask(get(url, "Cache-Control: only-if-cached\r\n"));
    assert!(stored.is_hit());
}

#[test]
fn two_siblings_of_each_other_ask_each_other_once_and_never_again() {
    let origin = ScriptedOrigin::new().answering(|_, _| {
        let control = "max-age=60, stale-while-revalidate=600";
        format!("HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nContent-Length: 2\r\n\r\nhi")
            .into_bytes()
    });
    let [one, other] = [child(Vec::new()), child(Vec::new())];
    for (of, to) in [(&one, &other), (&other, &one)] {
        of.reload(|config| config.parents = vec![sibling(to.address())]);
    }
    let url = url_of(&origin, "/");
    let both = [&one, &other];
    assert_eq!(one.client().ask(get(&url, "")).text(), "hi");
    wait_for_requests(both, [1, 1]);
    // the other one gets it from its sibling
    assert_eq!(other.client().ask(get(&url, "")).text(), "hi");
    wait_for_requests(both, [2, 2]);
    assert_eq!(origin.seen().len(), 1);
    for it in both {
        it.clock.advance_ms(70_000);
    }
    // stale: each is validated with the origin, in the background
    for it in both {
        let response = it.client().ask(get(&url, ""));
        assert!(response.is_hit(), "{:?}", response.head);
    }
    let until = Instant::now() + PATIENCE;
    while origin.seen().len() < 3 {
        assert!(Instant::now() < until, "no validation");
        std::thread::yield_now();
    }
    // each has the two of its client or its sibling, the last one, and one that is refused
    both.iter().for_each(|it| it.turn());
    wait_for_requests(both, [4, 4]);
}

/// Waits until two proxies have answered so many requests each, and no more.
fn wait_for_requests(proxies: [&Running; 2], expected: [u64; 2]) {
    let until = Instant::now() + PATIENCE;
    loop {
        let found = proxies.map(requests_of);
        if found == expected {
            return;
        }
        assert!(
            Instant::now() < until && found.iter().zip(expected).all(|(is, be)| *is <= be),
            "{found:?} and not {expected:?}"
        );
        std::thread::yield_now();
    }
}

/// Requests that a proxy has answered, whatever the verdict.
fn requests_of(proxy: &Running) -> u64 {
    let snapshot = proxy.snapshot();
    let verdicts = Verdict::ALL.iter();
    let counts = verdicts.map(|verdict| snapshot.get(Metric::Requests(*verdict)));
    counts.sum()
}

#[test]
fn private_response_of_a_sibling_is_for_its_client_alone() {
    let echo = || {
        ScriptedOrigin::new().answering(|head, _| {
            let who = head.field("cookie").unwrap_or("-").to_owned();
            let response = String::from_utf8(fresh(&who)).expect("text");
            response.replace("max-age", "private, max-age").into_bytes()
        })
    };
    let (beside, upper) = (echo(), echo());
    let child = child(vec![
        sibling(beside.address()),
        parent_and(upper.address(), Direct::Never),
    ]);
    for who in ["one", "other", "third"] {
        let request = get("http://a.example/", &format!("Cookie: {who}\r\n"));
        assert_eq!(child.client().ask(request).text(), who);
    }
    // from then on it is known that no cache has it for others
    assert_eq!((beside.seen().len(), upper.seen().len()), (1, 2));
}

#[test]
fn sibling_that_accepts_connections_and_does_not_answer_is_ejected_and_probed_by_one_request() {
    let origin = answering("origin");
    // its system accepts connections
    let beside = ScriptedOrigin::new();
    let child = child(vec![Parent {
        timeout: Some("50ms".parse().expect("a span")),
        ..sibling(beside.address())
    }]);
    let mut number = 0;
    let mut ask = |count: u32| {
        for _ in 0..count {
            number += 1;
            let url = url_of(&origin, &format!("/{number}"));
            assert_eq!(child.client().ask(get(&url, "")).text(), "origin");
        }
    };
    // the first request waits for it; after its time, one more does, and the time is doubled
    for ejected_ms in [10_000, 20_000, 40_000] {
        ask(3);
        drop(beside.accept());
        beside.expect_untouched();
        child.clock.advance_ms(ejected_ms - 1);
        ask(1);
        beside.expect_untouched();
        child.clock.advance_ms(1);
    }
    let beside = beside.answering(|_, _| {
        b"HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 5\r\n\r\nempty".to_vec()
    });
    child.reload(|config| config.parents[0].timeout = Some("1min".parse().expect("a span")));
    ask(3);
    assert_eq!(beside.seen().len(), 3, "it answers, and is asked for each");
}
