//! Heavy hitters and misses over the admin interface, and who gets them.

use super::*;

/// Sends a request to an admin interface whose address other machines reach.
fn of_public(fake: Fake, request: &str) -> (u16, String) {
    let (admin, _fake) = start_at("0.0.0.0:0", fake);
    let port = tcp(&admin).port();
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("listens");
    let head = request.replace('\n', "\r\n");
    let rest = format!("Host: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    speak(stream, &format!("{head}\r\n{rest}"))
}

fn counting() -> Fake {
    Fake {
        counts: true,
        ..Fake::default()
    }
}

#[test]
fn heavy_hitters_are_a_table_or_json() {
    let (admin, _fake) = start(counting());
    let (status, text) = ask(&admin, "GET /top HTTP/1.1");
    assert!(status == 200 && text.contains("text/plain"), "{text}");
    assert!(
        text.contains("urls by to-clients: 100 bytes in all"),
        "{text}"
    );
    assert!(
        text.contains("\n1      60       60        60.0  http://example.org/<script>\n"),
        "{text}"
    );
    let request = "GET /top?of=hosts&by=misses&n=1&format=json HTTP/1.1";
    let (status, text) = ask(&admin, request);
    assert!(status == 200 && text.contains("application/json"), "{text}");
    let (_, body) = text.split_once("\r\n\r\n").expect("a body");
    let table: TopTable = serde_json::from_str(body).expect("as declared");
    assert_eq!(
        (table.of.as_str(), table.by.as_str(), table.rows.len()),
        ("hosts", "misses", 1)
    );
    let (status, text) = ask(&admin, "GET /top?of=secrets HTTP/1.1");
    assert!(
        status == 400 && text.contains("of: `secrets` is none of urls"),
        "{text}"
    );
    let (status, text) = ask(&admin, "GET /misses HTTP/1.1\nAccept: application/json");
    let (_, body) = text.split_once("\r\n\r\n").expect("a body");
    let misses: RecentMisses = serde_json::from_str(body).expect("as declared");
    assert!(status == 200 && misses.misses.is_empty(), "{text}");
}

#[test]
fn heavy_hitters_that_are_not_counted_are_not_found() {
    let (admin, _fake) = start(Fake::default());
    for path in ["/top", "/misses"] {
        let (status, text) = ask(&admin, &format!("GET {path} HTTP/1.1"));
        assert!(
            status == 404 && text.contains("`admin.top` is false"),
            "{text}"
        );
    }
}

#[test]
fn names_of_what_is_read_need_the_token_where_other_machines_reach_the_address() {
    for path in ["/top", "/misses", "/top?of=clients"] {
        let (_folder, token) = token();
        let request = format!("GET {path} HTTP/1.1");
        let with_token = || Fake {
            token: Some(Arc::clone(&token)),
            ..counting()
        };
        let (status, text) = of_public(with_token(), &request);
        assert_eq!(status, 401, "{text}");
        assert!(!text.contains("example.org"), "{text}");
        let head = format!("{request}\nAuthorization: Bearer 0123456789abcdef");
        assert_eq!(of_public(with_token(), &head).0, 200);
        // on this machine it is needed to change something only
        let (admin, _fake) = start(with_token());
        assert_eq!(ask(&admin, &request).0, 200);
    }
    let (_folder, token) = token();
    let fake = Fake {
        token: Some(token),
        ..counting()
    };
    let (status, text) = of_public(fake, "GET /metrics HTTP/1.1");
    assert_eq!(status, 200, "numbers name nobody: {text}");
}

#[test]
fn page_of_another_origin_is_not_told_what_is_read() {
    let (admin, _fake) = start(counting());
    for (site, expected) in [
        ("same-origin", 200),
        ("none", 200),
        ("same-site", 403),
        ("cross-site", 403),
    ] {
        let request = format!("GET /top HTTP/1.1\nSec-Fetch-Site: {site}");
        assert_eq!(ask(&admin, &request).0, expected, "{site}");
    }
    let rebound = format!(
        "GET /top HTTP/1.1\r\nHost: evil.example:{}\r\nConnection: close\r\n\r\n",
        tcp(&admin).port()
    );
    assert_eq!(exchange(&admin, &rebound).0, 403);
}

#[test]
fn explanation_needs_the_token_where_other_machines_reach_the_address() {
    let (_folder, token) = token();
    let with_token = || Fake {
        token: Some(Arc::clone(&token)),
        ..Fake::default()
    };
    let request = "GET /explain?url=http://a/ HTTP/1.1";
    assert_eq!(of_public(with_token(), request).0, 401);
    let head = format!("{request}\nAuthorization: Bearer 0123456789abcdef");
    let (status, text) = of_public(with_token(), &head);
    assert!(
        status == 400 && text.contains("there is no store"),
        "{text}"
    );
    let (admin, _fake) = start(with_token());
    assert_eq!(ask(&admin, request).0, 400);
    let page = format!("{request}\nSec-Fetch-Site: cross-site");
    assert_eq!(ask(&admin, &page).0, 403);
}
