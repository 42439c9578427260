//! nginx is gone: what is stored is served as far as it says that it may be.

use crate::support::{Config, Nginx, Weir};

const LOCATIONS: &str = "
    location /forgiving/ { add_header Cache-Control \"max-age=0, stale-if-error=3600\"; alias www/; }
    location /plain/ { add_header Cache-Control \"max-age=0\"; alias www/; }
    location /strict/ { add_header Cache-Control \"max-age=0, must-revalidate\"; alias www/; }
    location /later/ { add_header Cache-Control \"max-age=0, stale-while-revalidate=3600\"; add_header X-Request $request_id; alias www/; }
";

#[test]
fn stale_response_is_served_on_origin_failure_unless_must_revalidate() {
    let (mut nginx, weir) = (Nginx::start(LOCATIONS), Weir::serve(&Config::forward()));
    nginx.file("file", b"content");
    for path in ["/forgiving/file", "/plain/file", "/strict/file"] {
        weir.get(&nginx.url(path)).expect(200);
    }
    nginx.stop();
    for path in ["/forgiving/file", "/plain/file"] {
        let reply = weir.get(&nginx.url(path)).expect(200);
        assert_eq!(reply.body, b"content", "{path}");
        assert!(
            reply.cache_status().contains("fwd=stale"),
            "{path}: {}",
            reply.head
        );
    }
    // RFC 9111 §5.2.2.2: must not be reused without validation
    let strict = weir.get(&nginx.url("/strict/file"));
    assert!(matches!(strict.status(), 502 | 504), "{}", strict.head);
    assert!(
        strict.field("proxy-status").contains("connection_refused"),
        "{}",
        strict.head
    );
    let metrics = weir.until("counted", |metrics| metrics.all_requests() == 6);
    assert_eq!(metrics.count("weir_served_stale_total"), 2);

    nginx.start_again();
    let back = weir.get(&nginx.url("/strict/file")).expect(200);
    let status = back.cache_status();
    assert!(
        status.starts_with("weir;fwd=stale;fwd-status=304"),
        "{status}"
    );
}

#[test]
fn stale_while_revalidate_serves_stale_and_validates_in_background() {
    let (nginx, weir) = (Nginx::start(LOCATIONS), Weir::serve(&Config::forward()));
    nginx.file("file", b"content");
    let first = weir.get(&nginx.url("/later/file")).expect(200);
    let second = weir.get(&nginx.url("/later/file")).expect(200);
    assert!(second.is_hit(), "{}", second.head);
    assert_eq!(first.field("x-request"), second.field("x-request"));
    weir.until("freshened", |metrics| {
        metrics.count("weir_freshened_total") == 1
    });
    let third = weir.get(&nginx.url("/later/file")).expect(200);
    assert_ne!(second.field("x-request"), third.field("x-request"));
}

#[test]
fn unreachable_origin_gives_502_connection_refused() {
    let (mut nginx, weir) = (Nginx::start(LOCATIONS), Weir::serve(&Config::forward()));
    nginx.stop();
    let reply = weir.get(&nginx.url("/file")).expect(502);
    let status = reply.field("proxy-status");
    assert!(status.contains("error=connection_refused"), "{status}");
    assert!(
        reply.text().contains("cannot connect to 127.0.0.1:"),
        "{}",
        reply.text()
    );
}

#[test]
fn request_on_a_connection_the_origin_closed_is_retried() {
    let (mut nginx, weir) = (Nginx::start(LOCATIONS), Weir::serve(&Config::forward()));
    nginx.file("file", b"content");
    let mut client = crate::support::RawClient::connect(weir.address());
    for _ in 0..5 {
        client.get(&nginx.url("/file")).expect(200);
        nginx.stop();
        nginx.start_again();
    }
    client.get(&nginx.url("/file")).expect(200);
}
