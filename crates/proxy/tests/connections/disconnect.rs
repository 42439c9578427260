//! A client disconnect closes the next-hop connection of its request.

use crate::support::{
    OriginConnection, RawClient, Representation, Running, ScriptedOrigin, Setup, span,
};
use serde_json::Value;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use weir_measure::Metric;
use weir_policy::fetch::AbortKind;
use weir_proxy::config::{LogFormat, LogTarget};

/// Endless content, written until the proxy takes no more.
fn flood(mut hop: crate::support::OriginConnection) -> std::thread::JoinHandle<u64> {
    std::thread::spawn(move || {
        hop.send(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 1000000000000\r\n\r\n",
        );
        let mut sent = 0;
        while hop.stream.write_all(&[b'x'; 65_536]).is_ok() {
            sent += 65_536;
        }
        sent
    })
}

#[test]
fn fetch_is_aborted_when_its_only_client_disconnects() {
    Setup::each(|setup| {
        for by_reset in [false, true] {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let mut hop = setup.origin.accept();
            hop.read_head();
            let sent = flood(hop);
            client.read_exactly(1_000_000);
            if by_reset {
                client.into_peer().reset();
            } else {
                drop(client);
            }
            // ends because the proxy has closed its side
            let sent = sent.join().expect("no panic");
            assert!(sent < 100_000_000, "{sent} bytes were fetched for nobody");
        }
        setup.proxy.wait_for(Metric::ClientAborts, 2);
        setup.proxy.wait_for(Metric::NextHopsOpen, 0);
        assert_eq!(setup.proxy.count(Metric::StoreEntries), 0);
    });
}

#[test]
fn waiter_gets_the_connection_place_of_a_disconnected_client() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.limits.connections_per_next_hop_max = 1;
        config.limits.idle_per_next_hop_max = 1;
    });
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let (mut leaves, mut stays) = (proxy.client(), proxy.client());
    leaves.send(get);
    let mut hop = origin.accept();
    hop.read_head();
    stays.send(get);
    proxy.wait_for(Metric::RequestsInFlight, 2);
    let sent = flood(hop);
    leaves.read_exactly(100_000);
    drop(leaves);
    sent.join().expect("no panic");
    origin.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!(stays.read_response().text(), "ok");
}

#[test]
fn client_disconnect_during_a_request_closes_its_next_hop_connection() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("POST", "/", "1.1", "Content-Length: 100\r\n") + "begin");
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.expect("begin");
        drop(client);
        hop.expect_end();
        setup.proxy.wait_for(Metric::NextHopsOpen, 0);
    });
}

#[test]
fn client_reset_is_noticed_while_the_next_hop_takes_no_request_content() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let origin = ScriptedOrigin::new();
    let proxy = gateway_with_log(&origin, &path);
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n");
    let mut hop = origin.accept();
    hop.read_head();
    let mut peer = client.into_peer();
    // until the buffers of both connections are full: the next hop reads none of it
    let stuck = Duration::from_millis(200);
    peer.stream.set_write_timeout(Some(stuck)).expect("a limit");
    while peer.stream.write_all(&[b'x'; 65_536]).is_ok() {}
    peer.reset();
    proxy.wait_for(Metric::ClientAborts, 1);
    proxy.wait_for(Metric::NextHopsOpen, 0);
    let to_next_hops = proxy.count(Metric::BytesToNextHops);
    let line = first_log_line(proxy, &path);
    assert_eq!(line["error"], "client-left");
    assert!(to_next_hops > 65_536, "{to_next_hops}");
    assert_eq!(line["to_next_hop_bytes"], to_next_hops);
}

#[test]
fn response_relayed_before_a_reset_during_the_request_is_in_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let origin = ScriptedOrigin::new();
    let proxy = gateway_with_log(&origin, &path);
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nbegin");
    let mut hop = origin.accept();
    hop.read_head();
    hop.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nfirst");
    client.read_head();
    client.expect("first");
    client.into_peer().reset();
    hop.expect("begin");
    hop.expect_end();
    proxy.wait_for(Metric::ClientAborts, 1);
    proxy.wait_for(Metric::NextHopsOpen, 0);
    assert_eq!(proxy.count(Metric::ClientAborts), 1);
    let line = first_log_line(proxy, &path);
    assert_eq!(line["error"], "client-left");
    assert_eq!(line["status"], 200);
    assert_eq!(line["body_bytes"], 5);
}

#[test]
fn response_that_began_before_invalid_request_content_is_completed_and_closes() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let chunked = "Transfer-Encoding: chunked\r\n";
        client.send(setup.head("POST", "/", "1.1", chunked) + "5\r\nbegin\r\n");
        let mut hop = setup.origin.accept();
        hop.read_head();
        hop.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfirst");
        client.read_head();
        client.expect("first");
        client.send("no size\r\nGET /smuggled HTTP/1.1\r\nHost: b\r\n\r\n");
        hop.expect("5\r\nbegin\r\n");
        hop.send("last");
        client.expect("last");
        client.expect_end();
        hop.expect_end();
        setup.origin.expect_untouched();
    });
}

fn gateway_with_log(origin: &ScriptedOrigin, path: &Path) -> Running {
    Running::gateway_with(origin.address(), |config| {
        config.log.access = LogTarget::File(path.to_owned());
        config.log.format = LogFormat::Json;
    })
}

/// The first line of the log; ends the proxy, as the last lines are written at its end.
fn first_log_line(proxy: Running, path: &Path) -> Value {
    drop(proxy);
    let text = std::fs::read_to_string(path).expect("a log");
    let line = text.lines().next().expect("a line");
    serde_json::from_str(line).expect("JSON")
}

/// Others wait for the response; it is not sent to this client.
#[test]
fn client_that_closed_before_an_interim_response_is_logged_as_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let origin = ScriptedOrigin::new();
    let proxy = gateway_with_log(&origin, &path);
    let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut client = proxy.client();
    client.send(get);
    let mut hop = origin.accept();
    hop.read_head();
    let mut follower = proxy.client();
    follower.send(get);
    proxy.wait_for(Metric::RequestsInFlight, 2);
    client.into_peer().reset();
    // until the next hop's bytes cannot be sent to it any more
    for _ in 0..3 {
        hop.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    }
    hop.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok");
    assert_eq!(follower.read_response().text(), "ok");
    proxy.wait_for(Metric::ClientAborts, 1);
    drop(proxy);
    let text = std::fs::read_to_string(path).expect("a log");
    let left = text.lines().filter(|line| line.contains("client-left"));
    assert_eq!(left.count(), 1, "{text}");
}

/// The client has broken the framing of its content: nothing more of it is read.
#[test]
fn disconnect_during_a_response_is_noticed_after_request_content_has_ended_early() {
    for by_reset in [true, false] {
        let origin = ScriptedOrigin::new();
        let proxy = Running::gateway_with(origin.address(), |config| {
            config.fetch.half_closed = span("1ms");
            config.limits.next_hop_silence = span("1h");
        });
        let mut client = proxy.client();
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        let mut hop = origin.accept();
        hop.read_head();
        hop.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfirst");
        client.read_head();
        client.expect("first");
        client.send("no size\r\n");
        proxy.turn();
        if by_reset {
            client.into_peer().reset();
        } else {
            client.finish();
        }
        hop.expect_end();
        proxy.wait_for(Metric::ClientAborts, 1);
    }
}

#[test]
fn half_close_is_noticed_after_the_next_hop_has_taken_no_more_content() {
    let origin = ScriptedOrigin::with_small_buffers();
    let proxy = Running::gateway_with(origin.address(), |config| {
        config.fetch.half_closed = span("1ms");
        config.limits.next_hop_silence = span("1s");
    });
    let mut client = proxy.client();
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n");
    let mut hop = origin.accept();
    hop.read_head();
    fill(&proxy, &mut client);
    client.finish();
    proxy.wait_for(Metric::ClientAborts, 1);
    assert_eq!(proxy.count(Metric::NextHopTimeouts), 0);
    client.expect_end();
}

/// Sends content until the next hop takes no more, and a piece that the proxy does not read.
fn fill(proxy: &Running, client: &mut RawClient) {
    let piece = [b'x'; 16_384];
    loop {
        let sent = proxy.count(Metric::BytesToNextHops) + piece.len() as u64;
        client.send(piece);
        let is_taken = (0..100).any(|_| {
            proxy.turn();
            proxy.count(Metric::BytesToNextHops) >= sent
        });
        if !is_taken {
            return client.send(piece);
        }
    }
}

/// Sends an interim response that cannot be sent to the client any more: it has reset.
fn closed_at_an_interim_response(
    proxy: &Running,
    origin: &ScriptedOrigin,
    what: &Representation,
    followers: usize,
) -> (OriginConnection, Vec<RawClient>) {
    let mut client = proxy.client();
    client.send(what.get(""));
    let mut hop = origin.accept();
    hop.read_head();
    let followers = proxy.asking(followers, &what.get(""));
    proxy.wait_for(Metric::FollowersWaiting, followers.len() as u64);
    client.into_peer().reset();
    proxy.turn();
    hop.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    (hop, followers)
}

#[test]
fn finish_policy_completes_a_request_whose_client_closed_before_an_interim_response() {
    for length in [2, 200_000] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("access.log");
        let origin = ScriptedOrigin::new();
        let proxy = gateway_with_log(&origin, &path);
        proxy.reload(|config| config.fetch.abort = AbortKind::Finish);
        let what = Representation::new("/", length);
        let (mut hop, _) = closed_at_an_interim_response(&proxy, &origin, &what, 0);
        hop.send(what.whole());
        proxy.wait_for(Metric::StoreEntries, 1);
        proxy.wait_for(Metric::ClientAborts, 1);
        assert_eq!(proxy.client().ask(what.get("")).verdict(), "hit");
        assert_eq!(proxy.count(Metric::ClientAborts), 1);
        let line = log_line(proxy, &path, "client-left");
        assert_eq!(line["body_bytes"], 0, "{line}");
    }
}

#[test]
fn follower_gets_a_response_whose_first_client_closed_before_an_interim_response() {
    for length in [2, 200_000] {
        let origin = ScriptedOrigin::new();
        let proxy = Running::gateway(&origin);
        let what = Representation::new("/", length);
        let (mut hop, mut followers) = closed_at_an_interim_response(&proxy, &origin, &what, 1);
        let response = hop.send_while(&what.whole(), || followers[0].read_response());
        what.check_whole(&response);
        proxy.wait_for(Metric::RequestsInFlight, 0);
        assert_eq!(proxy.count(Metric::ClientAborts), 1);
    }
}

#[test]
fn response_for_one_client_ends_with_that_client_at_an_interim_response() {
    let origin = ScriptedOrigin::new();
    let proxy = Running::gateway(&origin);
    let what = Representation::new("/", 2);
    let (mut hop, _) = closed_at_an_interim_response(&proxy, &origin, &what, 0);
    hop.expect_end();
    proxy.wait_for(Metric::ClientAborts, 1);
    let (mut hop, mut followers) = closed_at_an_interim_response(&proxy, &origin, &what, 1);
    hop.send("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 9\r\n\r\nfirst");
    hop.expect_end();
    proxy.wait_for(Metric::ClientAborts, 2);
    origin.answer(what.whole());
    what.check_whole(&followers[0].read_response());
}

/// The line of the log with this error; ends the proxy, as the last lines are written at its end.
fn log_line(proxy: Running, path: &Path, error: &str) -> Value {
    drop(proxy);
    let text = std::fs::read_to_string(path).expect("a log");
    let mut lines = text.lines().filter(|line| line.contains(error));
    let line = lines.next().expect("a line");
    assert_eq!(lines.next(), None, "{text}");
    serde_json::from_str(line).expect("JSON")
}
