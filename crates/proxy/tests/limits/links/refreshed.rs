//! Popular responses that are validated in time windows.

use super::{linked, page};
use crate::support::{ScriptedOrigin, Setup};
use weir_measure::Metric;
use weir_proxy::config::{PathPrefix, Route};

#[test]
fn popular_response_is_validated_in_a_time_window_without_any_field_of_a_client() {
    let window = r#"{"time": "00:00-24:00", "refresh": 10}"#;
    let link = format!(r#"[{{"name": "a", "windows": [{window}]}}]"#);
    let setup = Setup::gateway_with(linked(&link));
    let store = |path: &str, fields: &str| {
        let asked = setup.head("GET", path, "1.1", "Cookie: user=1\r\nX-Private: a\r\n");
        let (mut client, mut hop) = setup.lead(&asked);
        hop.send(page(fields, 1000));
        assert_eq!(client.read_response().status(), 200);
    };
    // what is not for all, or fresh for long, or cannot be validated, is left alone
    store(
        "/private",
        "Cache-Control: private, max-age=60\r\nETag: \"a\"\r\n",
    );
    store("/long", "Cache-Control: max-age=9999\r\nETag: \"a\"\r\n");
    store("/without", "Cache-Control: max-age=60\r\n");
    let varies = "Cache-Control: max-age=60\r\nETag: \"a\"\r\nVary: X-Private\r\n";
    store("/varies", varies);
    store("/page", "Cache-Control: max-age=60\r\nETag: \"page\"\r\n");
    let mut hop = setup.origin.accept();
    let asked = hop.read_head();
    assert_eq!(asked.field("If-None-Match"), Some("\"page\""));
    for name in ["Cookie", "X-Private"] {
        assert_eq!(asked.field(name), None, "{name}");
    }
    hop.send("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"page\"\r\n\r\n");
    setup.proxy.wait_for(Metric::WindowRefreshes, 1);
    setup.origin.expect_untouched();
}

#[test]
fn next_hop_that_does_not_answer_keeps_no_other_from_validation() {
    // the clock of tests begins at midnight
    let window = r#"{"time": "12:00-13:00", "refresh": 10}"#;
    let link = format!(r#"[{{"name": "a", "windows": [{window}]}}]"#);
    let silent = ScriptedOrigin::new();
    let setup = Setup::gateway_with(|config| {
        linked(&link)(config);
        let path: PathPrefix = "/silent".parse().expect("a path");
        let next_hop = format!("http://{}", silent.address());
        config.routes.push(Route {
            path,
            next_hops: vec![next_hop.parse().expect("a URL")],
            ..Route::default()
        });
    });
    let stored = page("Cache-Control: max-age=43260\r\nETag: \"a\"\r\n", 1000);
    for path in ["/silent/1", "/silent/2"] {
        let mut client = setup.proxy.client();
        client.send(setup.get(path));
        silent.answer(&stored);
        assert_eq!(client.read_response().status(), 200);
    }
    setup.fetch("/page", &stored);
    setup.proxy.clock.advance_ms(12 * 3_600_000);
    let (unanswered, asked) = silent.answer("");
    assert_eq!(asked.field("If-None-Match"), Some("\"a\""));
    let fresh = "HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\r\n";
    let (_hop, asked) = setup.origin.answer(fresh);
    assert_eq!(asked.field("If-None-Match"), Some("\"a\""));
    setup.proxy.wait_for(Metric::WindowRefreshes, 1);
    // nor is it asked for more, once it has failed
    drop(unanswered);
    setup.proxy.wait_for(Metric::NextHopErrors, 1);
    setup.proxy.turn();
    silent.expect_untouched();
}

#[test]
fn error_that_answers_a_validation_for_no_client_replaces_no_response() {
    let window = r#"{"time": "00:00-24:00", "refresh": 10}"#;
    let link = format!(r#"[{{"name": "a", "windows": [{window}]}}]"#);
    let setup = Setup::gateway_with(linked(&link));
    let stored = "Cache-Control: max-age=60\r\nETag: \"page\"\r\n";
    setup.fetch("/page", &page(stored, 1000));
    let missing = "HTTP/1.1 404 X\r\nCache-Control: max-age=60\r\nContent-Length: 0\r\n\r\n";
    let (_hop, asked) = setup.origin.answer(missing);
    assert_eq!(asked.field("If-None-Match"), Some("\"page\""));
    setup.proxy.wait_for(Metric::WindowRefreshes, 1);
    let hit = setup.proxy.client().ask(setup.get("/page"));
    assert_eq!((hit.status(), hit.body.len()), (200, 1000));
    setup.origin.expect_untouched();
}
