//! Tunnels through parents.

use crate::parents::child::{child, child_with, nothing, parent, parent_and, sibling};
use crate::support::ScriptedOrigin;
use weir_proxy::config::Direct;

const CONNECT: &str = "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\nProxy-Authorization: Basic eA==\r\n\
     User-Agent: me\r\n\r\n";

#[test]
fn tunnel_through_a_parent_passes_every_byte_both_ways() {
    let upper = ScriptedOrigin::new();
    let child = child(vec![parent_and(upper.address(), Direct::Never)]);
    let mut client = child.client();
    // the client's first bytes come with its request
    client.send(format!("{CONNECT}client first"));
    let mut hop = upper.accept();
    let head = hop.read_head();
    assert_eq!(head.start_line(), "CONNECT a.example:443 HTTP/1.1");
    assert_eq!(head.all("host"), ["a.example:443"]);
    assert_eq!(head.field("user-agent"), Some("me"));
    assert!(head.has("via") && !head.has("proxy-authorization"));
    hop.send(
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nserver first",
    );
    let opened = client.read_head();
    assert_eq!(opened.status(), 200);
    client.expect("server first");
    hop.expect("client first");
    let content: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| client.send(&content));
        assert!(hop.read_exactly(content.len()) == content);
    });
    std::thread::scope(|scope| {
        scope.spawn(|| hop.send(&content));
        assert!(client.read_exactly(content.len()) == content);
    });
    hop.finish();
    client.expect_end();
}

#[test]
fn refusal_of_a_parent_reaches_the_client_as_one_of_the_proxy() {
    for (status, expected) in [
        (403, 403),
        (503, 503),
        (504, 504),
        (404, 502),
        (302, 502),
        (500, 502),
    ] {
        let upper = ScriptedOrigin::new();
        let child = child(vec![parent(upper.address())]);
        let mut client = child.client();
        client.send(CONNECT);
        let mut hop = upper.accept();
        let _head = hop.read_head();
        hop.send(format!(
            "HTTP/1.1 {status} No\r\nSet-Cookie: a=b\r\nContent-Length: 2\r\n\r\nno"
        ));
        let response = client.read_response();
        assert_eq!(response.status(), expected, "{status}");
        assert!(!response.head.has("set-cookie"));
        assert!(response.head.has("proxy-status"));
    }
}

#[test]
fn tunnel_is_opened_by_another_parent_or_directly_where_one_cannot_be_reached() {
    let origin = ScriptedOrigin::new();
    let address = origin.address();
    let connect = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let open = |direct, through: Option<&ScriptedOrigin>| {
        let mut parents = vec![parent_and(nothing(), direct), parent(nothing())];
        parents.extend(through.map(|it| parent(it.address())));
        let child = child_with(parents, |config| {
            config.access.connect_ports = vec![address.port()];
        });
        let mut client = child.client();
        client.send(&connect);
        if let Some(through) = through {
            let mut hop = through.accept();
            assert_eq!(
                hop.read_head().start_line(),
                connect.lines().next().expect("a line")
            );
            hop.send("HTTP/1.1 200 OK\r\n\r\n");
            assert_eq!(client.read_head().status(), 200);
            hop.send("hello");
        } else if direct == Direct::Fallback {
            let mut hop = origin.accept();
            assert_eq!(client.read_head().status(), 200);
            hop.send("hello");
        } else {
            assert_eq!(client.read_head().status(), 502);
            return;
        }
        client.expect("hello");
    };
    open(Direct::Never, Some(&ScriptedOrigin::new()));
    open(Direct::Fallback, None);
    open(Direct::Never, None);
    // one that closes without an answer has opened nothing
    let closing = ScriptedOrigin::new();
    let child = child_with(vec![parent(closing.address())], |config| {
        config.access.connect_ports = vec![address.port()];
    });
    let mut client = child.client();
    client.send(&connect);
    drop(closing.accept().read_head());
    let mut hop = origin.accept();
    assert_eq!(client.read_head().status(), 200);
    hop.send("hello");
    client.expect("hello");
}

#[test]
fn port_that_connect_may_not_reach_is_refused_before_a_parent_is_asked() {
    let upper = ScriptedOrigin::new();
    let beside = ScriptedOrigin::new();
    let child = child(vec![parent(upper.address()), sibling(beside.address())]);
    let tunnel = "CONNECT a.example:25 HTTP/1.1\r\nHost: a.example:25\r\n\r\n";
    assert_eq!(child.client().ask(tunnel).status(), 403);
    upper.expect_untouched();
    let mut client = child.client();
    client.send(CONNECT);
    let mut hop = upper.accept();
    hop.read_head();
    hop.send("HTTP/1.1 200 OK\r\n\r\n");
    assert_eq!(client.read_head().status(), 200);
    beside.expect_untouched();
}
