//! What happens to fields on their way (RFC 9110 §7.6).

use crate::support::Setup;

/// The lines of a head, Via with the instance's own comment left out.
fn lines(head: &crate::support::Head) -> Vec<String> {
    let lines = head.text.trim_end_matches("\r\n").split("\r\n");
    lines
        .map(|line| match line.split_once(" (") {
            Some((via, _)) if line.starts_with("Via: ") => via.to_owned(),
            _ => line.to_owned(),
        })
        .collect()
}

#[test]
fn request_fields_keep_order_and_case_without_hop_by_hop_fields() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(format!(
            "GET {}/x?y HTTP/1.1\r\nX-First: 1\r\nhOsT: {}\r\nConnection: keep-alive, x-DROP\r\nx-TWO: \t 2 \t \r\n\
             X-Drop: no\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
             Upgrade: h2c\r\nHTTP2-Settings: AAMA\r\nProxy-Authorization: Basic eDp5\r\nconnection: X-Also\r\n\
             X-Also: no\r\nX-Empty:\r\nX-First: 3\r\nVia: 1.0 before\r\nX-Latin: caf\u{e9}\r\n\r\n",
            setup.base, setup.host
        ));
        let (_hop, head) = setup.origin.answer("HTTP/1.1 204 No Content\r\n\r\n");
        // canonical, also in how its name is written
        let host = format!("Host: {}", setup.host);
        let mut lines = lines(&head);
        // said by gateways alone
        lines.retain(|line| !line.starts_with("Forwarded") && !line.starts_with("X-Forwarded"));
        let expected = [
            "GET /x?y HTTP/1.1",
            "X-First: 1",
            &host,
            "x-TWO: 2",
            "X-Empty: ",
            "X-First: 3",
            "Via: 1.0 before",
            "X-Latin: caf\u{c3}\u{a9}",
            "Via: 1.1 weir",
        ];
        assert_eq!(lines, expected);
        assert_eq!(client.read_response().status(), 204);
    });
}

#[test]
fn response_fields_keep_order_and_case_without_hop_by_hop_fields() {
    Setup::each(|setup| {
        for stored in ["no-store", "max-age=60"] {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let (_hop, _) = setup.origin.answer(format!(
                "HTTP/1.1 200 Fine\r\ndAtE: Thu, 01 Jan 2026 00:00:00 GMT\r\nX-First: 1\r\n\
                 Connection: x-DROP\r\nCache-Control: {stored}\r\nX-Drop: no\r\nKeep-Alive: timeout=5\r\n\
                 Proxy-Connection: keep-alive\r\nUpgrade: h2c\r\nX-First: 2\r\nVia: 1.0 before\r\n\
                 content-LENGTH: 2\r\n\r\nok"
            ));
            let miss = client.read_response();
            let mut seen = vec![miss.head];
            if stored != "no-store" {
                let hit = client.ask(setup.get("/"));
                assert!(hit.is_hit());
                seen.push(hit.head);
            }
            for head in seen {
                let lines: Vec<_> = lines(&head)
                    .into_iter()
                    .filter(|line| !line.starts_with("Cache-Status: ") && line != "Age: 0")
                    .filter(|line| !line.eq_ignore_ascii_case("content-length: 2"))
                    .collect();
                let expected = [
                    "HTTP/1.1 200 Fine",
                    "dAtE: Thu, 01 Jan 2026 00:00:00 GMT",
                    "X-First: 1",
                    &format!("Cache-Control: {stored}"),
                    "X-First: 2",
                    "Via: 1.0 before",
                    "Via: 1.1 weir",
                ];
                assert_eq!(lines, expected);
                assert_eq!(head.length(), Some(2));
            }
        }
    });
}

#[test]
fn essential_field_named_in_connection_is_still_forwarded() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        let names = "Host, Authorization, Cookie, Content-Length, Cache-Control";
        let fields = format!(
            "Connection: {names}\r\nAuthorization: a\r\nCookie: b\r\nCache-Control: no-store\r\nContent-Length: 2\r\n"
        );
        client.send(setup.head("POST", "/", "1.1", &fields) + "ok");
        let (mut hop, head) = setup.origin.answer("HTTP/1.1 204 No Content\r\n\r\n");
        for name in names.split(", ") {
            assert!(head.has(name), "{name} is gone");
        }
        assert!(!head.has("connection"));
        hop.expect("ok");
        client.read_response();
    });
}

#[test]
fn response_without_date_is_forwarded_with_one() {
    Setup::each(|setup| {
        let (without, _) = setup.fetch("/", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(
            without.head.field("date"),
            Some("Thu, 01 Jan 2026 00:00:00 GMT")
        );
    });
}

#[test]
fn request_with_own_via_entry_is_refused_with_508() {
    Setup::each(|setup| {
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        let (mut hop, head) = setup.origin.answer("HTTP/1.1 204 No Content\r\n\r\n");
        client.read_response();
        let via = head.field("via").expect("ours").to_owned();
        for via in [
            via.clone(),
            format!("1.0 a, {via}, 1.1 b"),
            via.replace("weir", "WEIR"),
        ] {
            let mut client = setup.proxy.client();
            let response = client.ask(setup.head("GET", "/", "1.1", &format!("Via: {via}\r\n")));
            assert_eq!(response.status(), 508, "{via}");
            let status = response.head.field("proxy-status").expect("a reason");
            assert!(status.contains("error=proxy_loop_detected"), "{status}");
            client.expect_end();
        }
        // another proxy of the same name is no loop
        client.send(setup.head(
            "GET",
            "/",
            "1.1",
            "Via: 1.1 weir (somebody-else), 1.1 weir\r\n",
        ));
        hop.answer("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(client.read_response().status(), 204);
    });
}

#[test]
fn forward_proxy_refuses_itself_as_destination_with_403() {
    let setup = Setup::forward();
    let itself = setup.proxy.address();
    let mut client = setup.proxy.client();
    let response = client.ask(format!(
        "GET http://{itself}/ HTTP/1.1\r\nHost: {itself}\r\n\r\n"
    ));
    assert_eq!(response.status(), 403);
    setup.origin.expect_untouched();
}
