//! What follows when a quota is spent.

use super::{QUOTA, ask, linked, page, quota, row, spend};
use crate::support::{ScriptedOrigin, Setup};
use serde_json::{Value, json};
use tempfile::TempDir;
use weir_measure::Metric;
use weir_measure::live::LinkRow;
use weir_proxy::config::{LogFormat, LogTarget};

#[test]
fn spent_quota_is_answered_with_429_and_when_there_is_another_one() {
    let folder = TempDir::new().unwrap();
    let setup = Setup::gateway_with(linked(&quota(folder.path(), "")));
    setup.fetch("/page", &page("Cache-Control: max-age=99999\r\n", 1000));
    spend(&setup);
    let refused = ask(&setup, "/other");
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.head.field("Retry-After"), Some("86400"));
    let sentence = "the link `a` to the next hop has spent its quota; there is another one from Fri, 02 Jan 2026 00:00:00 GMT on\n";
    assert_eq!(refused.text(), sentence);
    let line = "HTTP/1.1 429 Link quota spent, see link.quota";
    assert_eq!(refused.head.start_line(), line);
    let said = "the link `a` has spent its quota of 1048576 bytes: until Fri, 02 Jan 2026 00:00:00 GMT nothing is fetched, and what is not stored is answered with 429";
    setup.proxy.wait_until_said(said, 1);
    assert_eq!(refused.verdict(), "detail=link-spent");
    // what is stored is served
    let hit = ask(&setup, "/page");
    assert_eq!((hit.status(), hit.body.len()), (200, 1000));
    setup.origin.expect_untouched();
    assert_eq!(row(&setup).refused, 1);
    setup.proxy.clock.advance_ms(86_400_000);
    setup.fetch("/other", &page("", 10));
}

#[test]
fn quota_that_is_spent_while_a_response_is_awaited_is_no_failure_of_the_next_hop() {
    let folder = TempDir::new().unwrap();
    let setup = Setup::gateway_with(linked(&quota(folder.path(), "")));
    let fields = "Cache-Control: max-age=60, stale-if-error=9999\r\nETag: \"a\"\r\n";
    setup.fetch("/page", &page(fields, 1000));
    setup.proxy.clock.advance_ms(61_000);
    let upload = setup.head("POST", "/upload", "1.1", "Content-Length: 100000\r\n");
    let (mut new, mut new_hop) = setup.lead(&setup.get("/other"));
    let (mut stale, mut stale_hop) = setup.lead(&setup.get("/page"));
    let (mut sending, _upload_hop) = setup.lead(&upload);
    spend(&setup);
    new_hop.send(page("", 10));
    stale_hop.send("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n");
    sending.send("a".repeat(1000));
    for client in [&mut new, &mut stale, &mut sending] {
        let refused = client.read_response();
        assert_eq!(refused.status(), 429);
        assert_eq!(refused.verdict(), "detail=link-spent");
    }
    assert_eq!(setup.proxy.count(Metric::NextHopErrors), 0);
    assert_eq!(row(&setup).refused, 3);
}

#[test]
fn fetch_that_the_spent_quota_cuts_is_no_error_of_the_next_hop() {
    let folder = TempDir::new().unwrap();
    let setup = Setup::gateway_with(linked(&quota(folder.path(), "")));
    let (mut client, mut hop) = setup.lead(&setup.get("/large"));
    let answer = page("Cache-Control: max-age=60\r\nETag: \"a\"\r\n", 3 * QUOTA);
    let sending = std::thread::spawn(move || {
        let _cut = hop.try_send(answer);
    });
    let head = client.read_head();
    client.read_cut(&head);
    sending.join().expect("no panic");
    assert_eq!(setup.proxy.count(Metric::NextHopErrors), 0);
}

#[test]
fn request_goes_to_the_next_hop_whose_link_has_something_left() {
    let folder = TempDir::new().unwrap();
    let setup = Setup::gateway_with(linked(&quota(folder.path(), "")));
    spend(&setup);
    let free = ScriptedOrigin::new();
    // more than a request is tried at when connections fail; they are not connected to
    let mut behind = vec![format!("http://{}", setup.origin.address())];
    behind.extend((1..5).map(|port| format!("http://127.0.0.1:{port}")));
    setup.proxy.reload(|config| {
        let others = behind[1..].iter().map(|url| url.parse().expect("a URL"));
        config.routes[0].next_hops.extend(others);
        let free = format!("http://{}", free.address());
        config.routes[0]
            .next_hops
            .push(free.parse().expect("a URL"));
        let named = serde_json::to_string(&behind).expect("names");
        linked(&quota(folder.path(), &format!(r#", "next_hops": {named}"#)))(config);
    });
    for number in 0..6 {
        let mut client = setup.proxy.client();
        client.send(setup.get(&format!("/{number}")));
        free.answer(page("", 10));
        assert_eq!(client.read_response().status(), 200);
    }
    assert_eq!(row(&setup).refused, 0);
    assert_eq!(setup.proxy.count(Metric::NextHopErrors), 0);
}

#[test]
fn spent_quota_with_stored_only_is_answered_with_504() {
    let folder = TempDir::new().unwrap();
    let more = r#", "when_spent": "stored-only""#;
    let setup = Setup::gateway_with(linked(&quota(folder.path(), more)));
    setup.fetch("/page", &page("Cache-Control: max-age=60\r\n", 1000));
    spend(&setup);
    assert_eq!(ask(&setup, "/page").status(), 200);
    assert_eq!(ask(&setup, "/other").status(), 504);
    setup.proxy.clock.advance_ms(61_000);
    assert_eq!(ask(&setup, "/page").status(), 504);
}

#[test]
fn spent_quota_with_stale_serves_what_is_stale_within_its_limit() {
    let folder = TempDir::new().unwrap();
    let more = r#", "when_spent": "stale", "stale_for": "1h""#;
    let setup = Setup::gateway_with(linked(&quota(folder.path(), more)));
    setup.fetch("/page", &page("Cache-Control: max-age=60\r\n", 1000));
    let strict = page("Cache-Control: max-age=60, must-revalidate\r\n", 10);
    setup.fetch("/strict", &strict);
    spend(&setup);
    setup.proxy.clock.advance_ms(60_000 + 3_600_000);
    let stale = ask(&setup, "/page");
    assert_eq!((stale.status(), stale.body.len()), (200, 1000));
    assert_eq!(stale.verdict(), "hit;detail=link-spent");
    assert_eq!(ask(&setup, "/strict").status(), 429);
    assert_eq!(ask(&setup, "/other").status(), 429);
    setup.proxy.clock.advance_ms(1000);
    assert_eq!(ask(&setup, "/page").status(), 429);
    setup.origin.expect_untouched();
}

#[test]
fn request_that_a_spent_quota_refuses_is_a_miss_and_a_stale_response_in_its_place_is_none() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("access.log");
    let more = r#", "when_spent": "stale", "stale_for": "1h""#;
    let setup = Setup::gateway_with(|config| {
        linked(&quota(folder.path(), more))(config);
        config.log.access = LogTarget::File(log.clone());
        config.log.format = LogFormat::Json;
    });
    setup.fetch("/page", &page("Cache-Control: max-age=60\r\n", 1000));
    spend(&setup);
    setup.proxy.clock.advance_ms(61_000);
    assert_eq!(ask(&setup, "/page").status(), 200);
    assert_eq!(ask(&setup, "/other").status(), 429);
    setup.proxy.turn();
    let misses = setup
        .proxy
        .control()
        .misses()
        .expect("they are kept")
        .misses;
    let miss = |url: &str| {
        let mut of_url = misses.iter().filter(|miss| miss.url.ends_with(url));
        let first = of_url.next().map(|miss| (miss.why.as_str(), miss.status));
        (first, of_url.count())
    };
    assert_eq!(miss("/other"), (Some(("refused", 429)), 0));
    let refused = misses.iter().find(|miss| miss.status == 429);
    assert_eq!(refused.and_then(|miss| miss.reason()), Some("link-spent"));
    // it was one when it was fetched
    assert_eq!(miss("/page"), (Some(("uri-miss", 200)), 0));
    drop(setup);
    let text = std::fs::read_to_string(log).expect("a log");
    let lines = text.lines().map(|line| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        ["verdict", "detail", "status", "link", "error"].map(|name| line[name].clone())
    });
    let is_of_link = |line: &[Value; 5]| line[0] == "hit" || line[2] == 429;
    let lines: Vec<_> = lines.filter(is_of_link).collect();
    let expected = [
        json!(["hit", "link-spent", 200, "a", null]),
        json!(["refused", "link-spent", 429, "a", "http_request_denied"]),
    ];
    assert_eq!(json!(lines), json!(expected));
}

#[test]
fn spent_quota_with_slow_fetches_on() {
    let folder = TempDir::new().unwrap();
    let more = r#", "when_spent": "slow", "slow_rate": "1MiB/s""#;
    let setup = Setup::gateway_with(linked(&quota(folder.path(), more)));
    let answer = page("Cache-Control: no-store\r\n", QUOTA - 300);
    setup.fetch("/large", &answer);
    setup.fetch("/other", &page("", 100));
    let quota = row(&setup).quota.expect("a quota");
    assert!(quota.is_spent, "{quota:?}");
}

#[test]
fn hits_over_a_kept_connection_are_untouched_by_a_spent_quota() {
    let folder = TempDir::new().unwrap();
    let setup = Setup::gateway_with(linked(&quota(folder.path(), "")));
    setup.fetch("/page", &page("Cache-Control: max-age=99999\r\n", 30_000));
    let mut client = setup.proxy.client();
    let first = client.ask(setup.get("/page"));
    assert_eq!((first.status(), first.body.len()), (200, 30_000));
    spend(&setup);
    setup.proxy.turn();
    let before = row(&setup);
    for number in 0..100 {
        if number == 50 {
            assert_eq!(client.ask(setup.get("/other")).status(), 429);
        }
        let hit = client.ask(setup.get("/page"));
        assert_eq!((hit.status(), hit.verdict()), (200, first.verdict()));
        assert_eq!(hit.body, first.body);
    }
    setup.origin.expect_untouched();
    let after = row(&setup);
    assert_eq!(after.refused, before.refused + 1);
    let moved = |row: &LinkRow| (row.received_bytes, row.sent_bytes, row.waited_ms);
    assert_eq!(moved(&after), moved(&before));
}
