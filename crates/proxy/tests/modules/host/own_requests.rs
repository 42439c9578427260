//! Requests of modules' own: by the destination rules, bounded, and past modules and cache.

use crate::support::{
    Answering, PATIENCE, Response, Running, ScriptedOrigin, asking, localhost, pattern, scripted,
};
use std::time::Instant;
use weir_measure::{Metric, ModuleRequestEnd};
use weir_proxy::config::Config;

/// A forward proxy with such a module, that may go to loopback.
fn proxy() -> Running {
    proxy_with(|_| {})
}

fn proxy_with(change: impl FnOnce(&mut Config)) -> Running {
    Running::forward_with(|config| {
        config.access.allow_destinations = vec![localhost()];
        config.modules = vec![asking("asks", &[])];
        change(config);
    })
}

/// What the module does, as it answers; `fields` with their CRLF.
fn ask(proxy: &Running, what: &str, fields: &str) -> String {
    let mut client = proxy.client();
    client.send(format!(
        "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: 127.0.0.1:1\r\nX-Do: {what}\r\n{fields}\r\n"
    ));
    let response: Response = client.read_response();
    assert_eq!(response.status(), 200, "{what}");
    response.text()
}

fn origin() -> Answering {
    ScriptedOrigin::new().answering(|head, content| {
        let text = format!("{} {} {}", head.start_line(), head.all("via").join(""), content.len());
        format!(
            "HTTP/1.1 200 OK\r\nX-Answer: yes\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n{text}",
            text.len()
        )
        .into_bytes()
    })
}

#[test]
fn module_gets_the_response_of_the_origin_and_the_connection_is_used_again() {
    let (proxy, origin) = (proxy(), origin());
    let url = format!("fetch http://{}/x?y", origin.address());
    for _ in 0..3 {
        let said = ask(&proxy, &url, "");
        assert!(
            said.starts_with("200 yes GET /x?y HTTP/1.1 1.1 weir ("),
            "{said}"
        );
    }
    let said = ask(
        &proxy,
        &url,
        "X-Method: POST\r\nX-Content-Bytes: 300000\r\n",
    );
    assert!(
        said.starts_with("200 yes POST") && said.ends_with(") 300000"),
        "{said}"
    );
    assert_eq!(origin.connections(), 1);
    // neither stored nor found in the store
    assert_eq!(origin.seen().len(), 4);
    let answered = Metric::ModuleRequests(ModuleRequestEnd::Answered);
    assert_eq!(proxy.count(answered), 4);
    assert_eq!(proxy.count(Metric::StoreEntries), 0);
}

#[test]
fn request_of_a_module_passes_no_module() {
    let origin = origin();
    let proxy = proxy_with(|config| {
        let host = origin.address().ip().to_string();
        let mut other = scripted("sets", &[("request-sent", "set X-Set 1")]);
        other.host = Some(host.parse().expect("a host"));
        config.modules.push(other);
    });
    ask(&proxy, &format!("fetch http://{}/", origin.address()), "");
    assert!(origin.seen()[0].all("x-set").is_empty());
}

#[test]
fn destination_that_is_denied_to_clients_is_denied_to_modules() {
    let origin = ScriptedOrigin::new();
    let url = format!("fetch http://{}/", origin.address());
    let proxy = proxy_with(|config| config.access.allow_destinations = Vec::new());
    assert_eq!(ask(&proxy, &url, ""), "Forbidden");
    // a name is judged by its addresses
    let by_name = format!("fetch http://localhost:{}/", origin.address().port());
    assert_eq!(ask(&proxy, &by_name, ""), "Forbidden");
    origin.expect_untouched();
    assert_eq!(
        proxy.count(Metric::ModuleRequests(ModuleRequestEnd::Forbidden)),
        2
    );
}

#[test]
fn proxy_itself_is_denied_to_modules() {
    let proxy = proxy();
    let own = proxy.address();
    assert_eq!(
        ask(&proxy, &format!("fetch http://{own}/"), ""),
        "Forbidden"
    );
    let by_name = format!("fetch http://localhost:{}/", own.port());
    assert_eq!(ask(&proxy, &by_name, ""), "Forbidden");
}

#[test]
fn request_that_is_none_is_refused() {
    let proxy = proxy();
    for (what, fields) in [
        ("fetch https://127.0.0.1/", ""),
        ("fetch /x", ""),
        ("fetch http://127.0.0.1/", "X-Method: CONNECT\r\n"),
        ("fetch http://127.0.0.1/", "X-Method: TRACE\r\n"),
    ] {
        assert_eq!(ask(&proxy, what, fields), "BadRequest", "{what}");
    }
}

/// What the module says of a next hop that answers with these bytes, and then closes.
fn against(answer: impl AsRef<[u8]>, fields: &str) -> String {
    let (proxy, origin) = (proxy(), ScriptedOrigin::new());
    let url = format!("fetch http://{}/", origin.address());
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| ask(&proxy, &url, fields));
        let mut hop = origin.accept();
        hop.read_head();
        hop.try_send(answer);
        drop(hop);
        asked.join().expect("an answer")
    })
}

#[test]
fn hostile_response_fails_the_request_and_nothing_else() {
    let unreachable = [
        "",
        "nonsense\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-A",
    ];
    for answer in unreachable {
        assert_eq!(against(answer, ""), "Unreachable", "{answer:?}");
    }
    let endless_interim = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(40);
    assert_eq!(against(endless_interim, ""), "Unreachable");
    let endless_head = format!("HTTP/1.1 200 OK\r\n{}", "X-A: b\r\n".repeat(20_000));
    assert_eq!(against(endless_head, ""), "Unreachable");
    assert_eq!(
        against(
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            ""
        ),
        "204  "
    );
}

#[test]
fn response_that_is_longer_than_the_module_takes_fails() {
    let length = |bytes: usize| {
        let content = pattern(bytes);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n");
        [head.as_bytes(), &content].concat()
    };
    let fields = "X-Max: 100000\r\n";
    assert_eq!(against(length(100_000), fields), "200  100000 bytes");
    assert_eq!(against(length(100_001), fields), "TooLarge");
    // without a length it is noticed as it comes
    let endless = [&b"HTTP/1.1 200 OK\r\n\r\n"[..], &pattern(5_000_000)].concat();
    assert_eq!(against(endless, fields), "TooLarge");
}

#[test]
fn silent_next_hop_costs_a_module_its_own_time_limit() {
    let (proxy, origin) = (proxy(), ScriptedOrigin::new());
    let url = format!("fetch http://{}/", origin.address());
    let begun = Instant::now();
    assert_eq!(ask(&proxy, &url, "X-Timeout-Ms: 200\r\n"), "Timeout");
    assert!(begun.elapsed() < PATIENCE);
}

#[test]
fn request_that_is_given_up_closes_its_connection() {
    let (proxy, origin) = (proxy(), ScriptedOrigin::new());
    let url = format!("abandon http://{}/", origin.address());
    assert_eq!(ask(&proxy, &url, ""), "true");
    let mut hop = origin.accept();
    hop.read_head();
    hop.expect_end();
}

#[test]
fn module_has_no_more_requests_under_way_than_it_may() {
    let origin = ScriptedOrigin::new();
    let proxy = proxy_with(|config| config.modules[0].requests_max = 2);
    let url = format!("fetch http://{}/", origin.address());
    std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| ask(&proxy, &url, "X-Timeout-Ms: 20000\r\n")))
            .collect();
        let hops: Vec<_> = (0..2)
            .map(|_| {
                let mut hop = origin.accept();
                hop.read_head();
                hop
            })
            .collect();
        assert_eq!(ask(&proxy, &url, ""), "TooMany");
        for mut hop in hops {
            hop.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        }
        for asked in waiting {
            assert_eq!(asked.join().expect("an answer"), "200  ");
        }
    });
    let none = proxy_with(|config| config.modules[0].requests_max = 0);
    assert_eq!(ask(&none, &url, ""), "TooMany");
}

#[test]
fn request_of_a_module_ends_with_the_proxy() {
    let (proxy, origin) = (proxy(), ScriptedOrigin::new());
    let mut client = proxy.client();
    client.send(format!(
        "GET http://127.0.0.1:1/ HTTP/1.1\r\nHost: x\r\nX-Do: fetch http://{}/\r\nX-Timeout-Ms: 60000\r\n\r\n",
        origin.address()
    ));
    let mut hop = origin.accept();
    hop.read_head();
    drop(proxy);
    hop.expect_end();
}
