//! Next hops that fall silent, at every place where one can (R28, R30).

use crate::support::{RawClient, Running, ScriptedOrigin, span};
use weir_measure::{Metric, StatusClass};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A gateway that waits 300 ms for a next hop.
fn impatient(origin: &ScriptedOrigin) -> Running {
    Running::gateway_with(origin.address(), |config| {
        config.limits.next_hop_silence = span("300ms");
    })
}

#[test]
fn next_hop_silent_before_the_final_response_head_yields_504() {
    let origin = ScriptedOrigin::new();
    let proxy = impatient(&origin);
    for begin in [
        "",
        "HTTP/1.1 200 OK\r\nX: ",
        "HTTP/1.1 103 Early Hints\r\n\r\n",
    ] {
        let mut client = proxy.client();
        client.send(GET);
        let (mut hop, _) = origin.answer(begin);
        if begin.contains("103") {
            assert_eq!(client.read_head().status(), 103);
        }
        let response = client.read_response();
        assert_eq!(response.status(), 504, "{begin:?}");
        let status = response.head.field("proxy-status").expect("a reason");
        assert!(status.contains("error=connection_read_timeout"), "{status}");
        hop.expect_end();
    }
    assert_eq!(proxy.count(Metric::NextHopTimeouts), 3);
}

#[test]
fn next_hop_silent_within_the_content_truncates_the_response() {
    let origin = ScriptedOrigin::new();
    let proxy = impatient(&origin);
    for framing in [
        "Content-Length: 99\r\n",
        "Transfer-Encoding: chunked\r\n",
        "",
    ] {
        let mut client = proxy.client();
        client.send(GET);
        let fresh = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n";
        let (mut hop, _) = origin.answer(format!("{fresh}{framing}\r\n4\r\nabcd\r\n"));
        client.read_until("abcd");
        let (rest, _) = client.read_to_end();
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{framing:?} looks whole");
        hop.expect_end();
        assert_eq!(proxy.count(Metric::StoreEntries), 0);
    }
}

#[test]
fn next_hop_that_reads_no_request_content_times_out() {
    let origin = ScriptedOrigin::new();
    let proxy = impatient(&origin);
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    let mut hop = origin.accept();
    hop.read_head();
    let mut sender = RawClient::from_stream(client.stream.try_clone().expect("a socket"));
    let sending = std::thread::spawn(move || {
        for _ in 0..1000 {
            sender.try_send(vec![b'x'; 100_000]);
        }
    });
    let (answer, _) = client.read_to_end();
    // the answer may be lost to the reset that unread bytes cause: then the proxy has counted it
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 504 "));
    proxy.wait_for(Metric::Responses(StatusClass::ServerError), 1);
    proxy.wait_for(Metric::NextHopTimeouts, 1);
    drop(client);
    sending.join().expect("no panic");
    assert!(proxy.count(Metric::BytesToNextHops) < 50_000_000);
}

#[test]
fn next_hop_that_never_sends_100_continue_yields_504() {
    let origin = ScriptedOrigin::new();
    let proxy = impatient(&origin);
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    let mut hop = origin.accept();
    hop.read_head();
    let response = client.read_response();
    assert_eq!(response.status(), 504);
    assert_eq!(response.head.field("connection"), Some("close"));
    client.expect_end();
    hop.expect_end();
}
