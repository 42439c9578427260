//! Upgrade, as WebSocket uses it (R50).

use crate::support::{End, Setup};
use weir_measure::Metric;

const ASK: &str =
    "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: b\r\n\r\n";

#[test]
fn bytes_behind_an_upgrade_request_are_relayed_only_after_the_101() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let early = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
        client.send(setup.head("GET", "/chat", "1.1", ASK) + early);
        let mut hop = setup.origin.accept();
        let head = hop.read_head();
        assert_eq!(head.field("upgrade"), Some("websocket"));
        assert_eq!(head.field("connection"), Some("Upgrade"));
        assert_eq!(head.field("sec-websocket-key"), Some("a"));
        client.send("more of it");
        setup.proxy.wait_for(Metric::RequestsInFlight, 1);
        hop.expect_nothing_more();
        hop.send(SWITCH.to_owned() + "first words");
        let head = client.read_head();
        assert_eq!(head.start_line(), "HTTP/1.1 101 Switching Protocols");
        assert_eq!(head.field("upgrade"), Some("websocket"));
        assert_eq!(head.field("connection"), Some("Upgrade"));
        assert_eq!(head.field("sec-websocket-accept"), Some("b"));
        client.expect("first words");
        hop.expect(early.to_owned() + "more of it");
        // half-close, each on its own
        client.finish();
        assert_eq!(hop.expect_end(), End::Closed);
        hop.send("last words");
        drop(hop);
        assert_eq!(client.read_to_end(), (b"last words".to_vec(), End::Closed));
        setup.proxy.wait_for(Metric::TunnelsOpen, 0);
    });
}

#[test]
fn refused_upgrade_leaves_an_ordinary_persistent_connection() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/chat", "1.1", ASK) + &setup.get("/next"));
        let (mut hop, _) = setup
            .origin
            .answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
        assert_eq!(client.read_response().text(), "no");
        // it is an ordinary request on an ordinary connection
        let head = hop.answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext");
        assert_eq!(head.start_line(), "GET /next HTTP/1.1");
        assert!(!head.has("upgrade") && !head.has("connection"));
        assert_eq!(client.read_response().text(), "next");
        assert_eq!(setup.proxy.count(Metric::TunnelsOpened), 0);
    });
}

#[test]
fn response_to_an_upgrade_request_is_neither_stored_nor_a_hit() {
    Setup::each(|setup| {
        let fresh = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/", "1.1", ASK));
        let (mut hop, _) = setup.origin.answer(fresh);
        client.read_response();
        client.send(setup.get("/"));
        hop.answer(fresh);
        assert!(!client.read_response().is_hit());
        client.send(setup.head("GET", "/", "1.1", ASK));
        assert!(hop.answer(fresh).has("upgrade"));
        assert!(!client.read_response().is_hit());
    });
}

#[test]
fn unacceptable_upgrade_is_not_forwarded_and_a_101_becomes_502() {
    Setup::each(|setup| {
        for (version, fields) in [
            ("1.1", "Upgrade: websocket\r\n"),
            ("1.1", "Connection: Upgrade\r\n"),
            ("1.0", ASK),
            ("1.1", "Connection: Upgrade\r\nUpgrade:\r\n"),
            // further requests in it would pass by routes and rules
            (
                "1.1",
                "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n",
            ),
            ("1.1", "Connection: Upgrade\r\nUpgrade: websocket, H2C\r\n"),
            // it could switch in the middle of its own content
            (
                "1.1",
                "Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 2\r\n",
            ),
        ] {
            let mut client = setup.proxy.client();
            let content = if fields.contains("Length") { "ok" } else { "" };
            client.send(setup.head("GET", "/", version, fields) + content);
            let (mut hop, head) = setup.origin.answer("");
            assert!(!head.has("upgrade") && !head.has("connection"), "{head:?}");
            hop.expect(content);
            hop.send(SWITCH);
            let response = client.read_response();
            assert_eq!(response.status(), 502, "{fields:?}");
            hop.expect_end();
        }
        assert_eq!(setup.proxy.count(Metric::TunnelsOpened), 0);
    });
}

#[test]
fn client_reset_resets_the_next_hop_side_of_its_tunnel() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/chat", "1.1", ASK));
        let (mut hop, _) = setup.origin.answer(SWITCH);
        client.read_head();
        client.into_peer().reset();
        assert_eq!(hop.expect_end(), End::Reset);
        setup.proxy.wait_for(Metric::NextHopsOpen, 0);
    });
}

#[test]
fn response_101_is_sent_without_framing_fields() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.head("GET", "/chat", "1.1", ASK));
        let (_hop, _) = setup.origin.answer(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n\r\nhi",
        );
        let head = client.read_head();
        assert_eq!(head.status(), 101);
        assert!(!head.has("content-length") && !head.has("transfer-encoding"));
        client.expect("hi");
    });
}

#[test]
fn switch_to_a_protocol_that_was_not_offered_becomes_502() {
    Setup::each(|setup| {
        for answer in [
            "Upgrade: h2c\r\n",
            "Upgrade: websocket, h2c\r\n",
            "Upgrade: websocket\r\nUpgrade: tls/1.3\r\n",
            "Upgrade: websocket/13\r\n",
            "Upgrade:\r\n",
            "",
        ] {
            let mut client = setup.proxy.client();
            client.send(setup.head("GET", "/chat", "1.1", ASK));
            let head = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n";
            let (mut hop, _) = setup
                .origin
                .answer(format!("{head}{answer}\r\nfirst words"));
            let response = client.read_response();
            assert_eq!(response.status(), 502, "{answer:?}");
            let why = response.head.field("proxy-status").unwrap_or_default();
            assert!(why.contains("error=http_protocol_error"), "{why}");
            hop.expect_end();
            // the client's connection is one of HTTP still, and not a tunnel
            client.send(setup.get("/next"));
            let text = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext";
            setup.origin.answer(text);
            assert_eq!(client.read_response().text(), "next");
        }
        assert_eq!(setup.proxy.count(Metric::TunnelsOpened), 0);
    });
}
