//! What `Host` and `Origin` may say.

use super::{Fake, ask, exchange, start, token};

#[test]
fn foreign_host_or_origin_is_refused_with_403() {
    let (admin, fake) = start(Fake::default());
    let (status, text) = exchange(
        &admin,
        "GET /config HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    );
    assert!(
        status == 403 && text.contains("DNS rebinding") && !text.contains("budget"),
        "{text}"
    );
    let (status, _) = ask(
        &admin,
        "POST /purge?url=http://a/ HTTP/1.1\nOrigin: http://evil.example",
    );
    assert_eq!(status, 403);
    let (status, _) = ask(&admin, "GET http://evil.example/config HTTP/1.1");
    assert_eq!(status, 403);
    assert!(fake.purged.lock().expect("no panic").is_empty());
}

#[test]
fn foreign_host_is_refused_even_with_a_valid_token() {
    let (_folder, token) = token();
    let (admin, fake) = start(Fake {
        token: Some(token),
        ..Fake::default()
    });
    let (status, _) = exchange(
        &admin,
        "POST /purge-all HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer 0123456789abcdef\r\nConnection: close\r\n\r\n",
    );
    assert_eq!(status, 403);
    assert!(fake.purged.lock().expect("no panic").is_empty());
}

#[test]
fn healthz_answers_balancers_whatever_they_call_the_host() {
    let (admin, _fake) = start(Fake::default());
    for (method, head) in [
        (
            "GET",
            "HTTP/1.1\r\nHost: node-1.example:3129\r\nConnection: close",
        ),
        (
            "HEAD",
            "HTTP/1.1\r\nHost: node-1.example:3129\r\nConnection: close",
        ),
        ("GET", "HTTP/1.0"),
    ] {
        let (status, text) = exchange(&admin, &format!("{method} /healthz {head}\r\n\r\n"));
        assert_eq!(status, 200, "{text}");
    }
    let named = |request: &str| {
        let head = "HTTP/1.1\r\nHost: node-1.example\r\nConnection: close\r\n\r\n";
        exchange(&admin, &format!("{request} {head}")).0
    };
    assert_eq!(named("POST /healthz"), 403);
    assert_eq!(named("GET /metrics"), 403);
    assert_eq!(named("GET /healthz/../metrics"), 403);
}
