//! Links to next hops: what is moved over them is counted, waits for their rate, and ends with
//! their quota.

use crate::support::{PATIENCE, Representation, Response, ScriptedOrigin, Setup};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use tempfile::TempDir;
use weir_measure::live::LinkRow;
use weir_measure::{Aborted, Metric};
use weir_policy::fetch::AbortKind;
use weir_proxy::config::{ByteSize, Config, LogFormat, LogTarget, Span};

/// A quota for tests, bytes.
const QUOTA: usize = 1 << 20;

pub(super) fn linked(text: &str) -> impl Fn(&mut Config) + use<> {
    let links = serde_json::from_str(text).expect("links");
    let links: Vec<weir_proxy::config::Link> = links;
    move |config| config.links.clone_from(&links)
}

/// A link with a quota of 1 MiB a day, kept in `folder`.
pub(super) fn quota(folder: &Path, more: &str) -> String {
    let file = folder.join("link");
    format!(
        r#"[{{"name": "a", "quota": "1MiB", "period": "day", "overhead_percent": 0,
              "state_file": "{}"{more}}}]"#,
        file.display()
    )
}

pub(super) fn page(fields: &str, length: usize) -> String {
    let content = "a".repeat(length);
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{content}")
}

pub(super) fn row(setup: &Setup) -> LinkRow {
    setup.proxy.control().links().remove(0)
}

fn spent(setup: &Setup) -> u64 {
    row(setup).quota.expect("a quota").spent_bytes
}

/// Fetches content until the quota is spent.
fn spend(setup: &Setup) {
    let mut client = setup.proxy.client();
    client.send(setup.get("/large"));
    let mut hop = setup.origin.accept();
    hop.read_head();
    let sending = std::thread::spawn(move || {
        // the proxy closes the connection before all of it is sent
        let _cut = hop.try_send(page("Cache-Control: no-store\r\n", 3 * QUOTA));
    });
    client.read_to_end();
    sending.join().expect("no panic");
    let spent = spent(setup);
    let quota = QUOTA as u64;
    // that is no error of the next hop
    assert_eq!(setup.proxy.count(Metric::NextHopErrors), 0);
    // the next hop may have sent what a window holds
    assert!((quota - 1460..=quota + 65_536).contains(&spent), "{spent}");
}

fn ask(setup: &Setup, path: &str) -> Response {
    setup.proxy.client().ask(setup.get(path))
}

#[test]
fn bytes_of_both_directions_and_of_heads_are_counted_for_the_link_of_the_next_hop() {
    Setup::each_with(linked(r#"[{"name": "a"}]"#), |setup| {
        let answer = page("", 1000);
        setup.fetch("/", &answer);
        let row = row(setup);
        assert_eq!(row.received_bytes, answer.len() as u64);
        assert!((50..1000).contains(&row.sent_bytes), "{row:?}");
        assert_eq!(row.waited_ms, 0);
    });
}

#[test]
fn next_hop_that_no_link_names_is_behind_none() {
    let setup = Setup::gateway_with(|config| {
        let hop = config.routes[0].next_hops[0].clone();
        let other = "http://127.0.0.1:9".parse().expect("a URL");
        config.routes[0].next_hops.push(other);
        config.routes[0].next_hops.swap(0, 1);
        linked(r#"[{"name": "a", "next_hops": ["http://127.0.0.1:9"]}]"#)(config);
        assert_ne!(config.links[0].next_hops[0], hop);
    });
    setup.fetch("/", &page("", 10));
    assert_eq!(row(&setup).received_bytes, 0);
}

#[test]
fn fetch_waits_for_the_rate_of_its_link_and_stored_responses_do_not() {
    Setup::each_with(linked(r#"[{"name": "a", "rate": "100KiB/s"}]"#), |setup| {
        setup.fetch("/page", &page("Cache-Control: max-age=60\r\n", 30_000));
        let mut client = setup.proxy.client();
        client.send(setup.get("/large"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let sending = hop.sending(page("Cache-Control: max-age=60\r\n", 1_000_000));
        client.read_head();
        let reading = std::thread::spawn(move || client.read_exactly(1_000_000));
        for _ in 0..100 {
            let hit = ask(setup, "/page");
            assert_eq!(hit.body.len(), 30_000);
        }
        // the clock stands: what the bucket holds has come, and what small transfers may overdraw
        // it by
        let came = row(setup).received_bytes;
        assert!(came <= 4 * 65_536, "{came}");
        let began = Instant::now();
        while !reading.is_finished() {
            setup.proxy.clock.advance_ms(100);
            std::thread::yield_now();
            assert!(began.elapsed() < PATIENCE, "{:?}", row(setup));
        }
        reading.join().expect("no panic");
        sending.join().expect("no panic");
        assert!(row(setup).waited_ms > 0);
    });
}

#[test]
fn fetch_that_loses_its_last_reader_lets_those_with_readers_go_first() {
    let link = r#"[{"name": "a", "rate": "1MiB/s", "bulk_above": "16KiB"}]"#;
    let setup = Setup::gateway_with(|config| {
        linked(link)(config);
        config.fetch.abort = AbortKind::Finish;
    });
    let begin = |path: &str, fields: &str, length: usize| {
        let (mut client, hop) = setup.lead(&setup.get(path));
        let sending = hop.sending(page(fields, length));
        client.read_head();
        (client, sending)
    };
    let (left, _sending) = begin("/left", "Cache-Control: max-age=60\r\n", 5_000_000);
    left.into_peer().reset();
    let goes_on = Metric::FetchesAbandoned(Aborted::GoOnAlways);
    setup.proxy.wait_for(goes_on, 1);
    let length = 1_000_000;
    let before = row(&setup).received_bytes;
    let (mut client, sending) = begin("/read", "Cache-Control: no-store\r\n", length);
    let reading = std::thread::spawn(move || client.read_exactly(length));
    let began = Instant::now();
    let mut passed_ms = 0;
    while !reading.is_finished() {
        // as time goes by: who waits for the link looks again by the time of the machine
        let elapsed_ms = u64::try_from(began.elapsed().as_millis()).expect("short");
        setup.proxy.clock.advance_ms(elapsed_ms - passed_ms);
        passed_ms = elapsed_ms;
        std::thread::yield_now();
        assert!(began.elapsed() < PATIENCE, "{:?}", row(&setup));
    }
    let moved = row(&setup).received_bytes - before;
    reading.join().expect("no panic");
    sending.join().expect("no panic");
    // a hundredth, and not a half
    let of_left = moved - length as u64;
    assert!(of_left <= length as u64 / 4, "{of_left}");
}

#[test]
fn ranges_of_a_large_response_leave_pages_what_large_fetches_leave() {
    let link = r#"[{"name": "a", "rate": "100KiB/s", "bulk_above": "16KiB"}]"#;
    let setup = Setup::gateway_with(linked(link));
    let request = |number: usize, part: usize| {
        let (first, last) = (number * part, (number + 1) * part - 1);
        let fields = format!("Range: bytes={first}-{last}\r\n");
        // each query is another target to the cache, and to an origin that ignores it none
        setup.head("GET", &format!("/large?{number}"), "1.1", &fields)
    };
    let answer = |number: usize, part: usize| {
        let (first, last) = (number * part, (number + 1) * part - 1);
        let content = "a".repeat(part);
        format!(
            "HTTP/1.1 206 Partial Content\r\nCache-Control: no-store\r\n\
             Content-Range: bytes {first}-{last}/1000000\r\n\
             Content-Length: {part}\r\n\r\n{content}"
        )
    };
    let small = 10_000;
    let (mut client, mut hop) = setup.lead(&request(0, small));
    for number in 0..4 {
        hop.send(answer(number, small));
        assert_eq!(client.read_response().status(), 206);
        client.send(request(number + 1, small));
        hop.read_head();
    }
    hop.send(answer(4, small));
    assert_eq!(client.read_response().status(), 206);
    client.send(request(2, 50_000));
    hop.read_head();
    let sending = hop.sending(answer(2, 50_000));
    // the clock stands: small transfers may overdraw what a link holds, large ones may not
    setup.fetch("/page", &page("", 10_000));
    let moved = row(&setup);
    let of_ranges = moved.received_bytes + moved.sent_bytes - 10_000;
    assert!(of_ranges <= 65_536 + 4096, "{moved:?}");
    drop(client);
    drop(sending);
}

#[test]
fn fetch_that_no_client_reads_is_paused_as_its_quota_is_spent_and_completed_in_the_next_period() {
    for then in ["slow", "refuse"] {
        let folder = TempDir::new().unwrap();
        let text = quota(folder.path(), &format!(r#", "when_spent": "{then}""#));
        let setup = Setup::gateway_with(|config| {
            linked(&text)(config);
            config.fetch.abort = AbortKind::Finish;
            config.fetch.background_rate = ByteSize::from_gib(1);
        });
        let what = Representation::new("/large", 1_500_000);
        let what = what.with_fields("Cache-Control: max-age=999999\r\n");
        let mut client = setup.proxy.client();
        client.send(what.get("Cookie: user=1\r\nX-Private: a\r\nUser-Agent: a\r\n"));
        let (mut hop, _) = setup.origin.answer(what.head());
        client.read_head();
        client.into_peer().reset();
        let goes_on = Metric::FetchesAbandoned(Aborted::GoOnAlways);
        setup.proxy.wait_for(goes_on, 1);
        let content = what.bytes(0, what.length);
        let sending = std::thread::spawn(move || {
            // the proxy closes the connection before all of it is sent
            let _cut = hop.try_send(content);
        });
        setup.proxy.wait_for(Metric::FetchesPaused, 1);
        sending.join().expect("no panic");
        setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
        assert_eq!(setup.proxy.count(Metric::PausedParts), 1);
        assert_eq!(setup.proxy.count(Metric::NextHopErrors), 0);
        setup.origin.expect_untouched();
        setup.proxy.clock.advance_ms(86_400_000);
        let mut hop = setup.origin.accept();
        let asked = hop.read_head();
        let range = asked.field("Range").expect("a range");
        let from = range.strip_prefix("bytes=").expect("bytes");
        let (from, _) = from.split_once('-').expect("a range");
        let from: u64 = from.parse().expect("a number");
        assert!((900_000..1_300_000).contains(&from), "{from}");
        assert!(asked.field("If-Range").is_some());
        // nothing of the client whose request was paused
        for name in ["Cookie", "X-Private", "User-Agent"] {
            assert_eq!(asked.field(name), None, "{name}");
        }
        hop.send(what.part(from, what.length));
        setup.proxy.wait_for(Metric::FetchesResumed, 1);
        setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
        assert_eq!(setup.proxy.count(Metric::PausedParts), 0);
        let response = setup.proxy.client().ask(what.get(""));
        assert_eq!(response.verdict(), "hit");
        what.check_whole(&response);
        setup.origin.expect_untouched();
    }
}

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
fn paused_fetch_is_completed_in_the_time_windows_that_say_so_alone() {
    let folder = TempDir::new().unwrap();
    // the clock of tests begins at midnight
    let window = r#""windows": [{"time": "12:00-13:00", "complete": true}]"#;
    let setup = Setup::gateway_with(|config| {
        linked(&quota(folder.path(), &format!(", {window}")))(config);
        config.fetch.abort = AbortKind::Finish;
        config.fetch.background_rate = ByteSize::from_gib(1);
    });
    let what = Representation::new("/large", 1_500_000);
    let what = what.with_fields("Cache-Control: max-age=999999\r\n");
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let (mut hop, _) = setup.origin.answer(what.head());
    client.read_head();
    client.into_peer().reset();
    let content = what.bytes(0, what.length);
    let sending = std::thread::spawn(move || {
        let _cut = hop.try_send(content);
    });
    setup.proxy.wait_for(Metric::FetchesPaused, 1);
    sending.join().expect("no panic");
    setup.proxy.clock.advance_ms(86_400_000);
    // the link has room: a request over it is answered
    setup.fetch("/page", &page("", 10));
    assert_eq!(setup.proxy.count(Metric::PausedParts), 1);
    setup.proxy.clock.advance_ms(12 * 3_600_000);
    let mut hop = setup.origin.accept();
    assert!(hop.read_head().field("Range").is_some());
}

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
fn quota_is_kept_over_restart_and_reload() {
    let folder = TempDir::new().unwrap();
    let change = linked(&quota(folder.path(), ""));
    let setup = Setup::gateway_with(&change);
    setup.fetch("/a", &page("Cache-Control: no-store\r\n", 100_000));
    let before = spent(&setup);
    assert!((100_000..110_000).contains(&before), "{before}");
    setup
        .proxy
        .reload(|config| config.links[0].rate = Some("10MiB/s".parse().unwrap()));
    assert_eq!(spent(&setup), before);
    drop(setup);
    let setup = Setup::gateway_with(change);
    assert_eq!(spent(&setup), before);
    spend(&setup);
    assert_eq!(ask(&setup, "/other").status(), 429);
}

#[test]
fn tunnel_is_counted_and_ends_with_the_quota() {
    let folder = TempDir::new().unwrap();
    let text = quota(folder.path(), "");
    let setup = Setup::forward_with(|config| {
        linked(&text)(config);
        config.access.connect_ports = vec![];
    });
    let port = setup.origin.address().port();
    setup
        .proxy
        .reload(|config| config.access.connect_ports = vec![port]);
    let connect = format!("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n\r\n", setup.host);
    let mut client = setup.proxy.client();
    client.send(&connect);
    let mut hop = setup.origin.accept();
    client.read_head();
    client.send("x".repeat(1000));
    hop.read_exactly(1000);
    hop.send("y".repeat(2000));
    client.read_exactly(2000);
    let counted = row(&setup);
    assert_eq!((counted.received_bytes, counted.sent_bytes), (2000, 1000));
    assert_eq!(spent(&setup), 3000);
    let sending = std::thread::spawn(move || {
        let _cut = hop.try_send("z".repeat(3 * QUOTA));
    });
    let received = client.read_to_end().0.len();
    sending.join().expect("no panic");
    assert!(received <= QUOTA, "{received}");
    let refused = setup.proxy.client().ask(&connect);
    assert_eq!(refused.status(), 429);
}

#[test]
fn transfer_goes_on_when_a_reload_drops_its_link_or_gives_it_another_file() {
    let folder = TempDir::new().unwrap();
    let change = linked(&quota(folder.path(), ""));
    let moved = quota(folder.path(), "").replace("/link\"", "/other\"");
    for next in [String::from("[]"), moved] {
        let setup = Setup::gateway_with(&change);
        let mut client = setup.proxy.client();
        client.send(setup.get("/large"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let answer = page("Cache-Control: no-store\r\n", QUOTA / 2);
        hop.send(&answer[..1000]);
        client.read_head();
        setup.proxy.reload(linked(&next));
        // more than a step of the booking
        let rest = hop.sending(&answer[1000..]);
        client.read_exactly(QUOTA / 2);
        rest.join().expect("no panic");
    }
}

#[test]
fn upload_that_waits_for_its_link_is_not_taken_for_a_silent_next_hop() {
    let link = r#"[{"name": "a", "rate": "100KiB/s", "bulk_above": "16KiB"}]"#;
    Setup::each_with(
        |config| {
            linked(link)(config);
            config.limits.next_hop_silence = Span::from_millis(50);
        },
        |setup| {
            let mut client = setup.proxy.client();
            let length = 500_000;
            let fields = format!("Content-Length: {length}\r\n");
            client.send(setup.head("POST", "/large", "1.1", &fields));
            let mut hop = setup.origin.accept();
            hop.read_head();
            let content = "a".repeat(length);
            let sending = std::thread::spawn(move || {
                client.send(content);
                client
            });
            hop.read_exactly(40_000);
            // what is asked meanwhile is silent for longer than the limit
            for _ in 0..2 {
                let mut other = setup.proxy.client();
                other.send(setup.get("/other"));
                let mut silent = setup.origin.accept();
                silent.read_head();
                assert_eq!(other.read_response().status(), 504);
            }
            let reading = std::thread::spawn(move || {
                hop.read_exactly(length - 40_000);
                hop.send("HTTP/1.1 204 No Content\r\n\r\n");
            });
            let began = Instant::now();
            while !reading.is_finished() {
                setup.proxy.clock.advance_ms(100);
                std::thread::yield_now();
                assert!(began.elapsed() < PATIENCE, "{:?}", row(setup));
            }
            reading.join().expect("no panic");
            let mut client = sending.join().expect("no panic");
            assert_eq!(client.read_response().status(), 204);
        },
    );
}

#[test]
fn quota_without_a_place_to_keep_it_is_refused_at_the_start() {
    let refused = std::panic::catch_unwind(|| {
        Setup::gateway_with(linked(
            r#"[{"name": "a", "quota": "1MiB", "period": "day"}]"#,
        ))
    });
    let why = refused.err().and_then(|why| why.downcast::<String>().ok());
    let why = why.expect("it is refused");
    for part in [
        "no store on disk, and no directory of a service",
        "name a file with `link[0].state_file`",
    ] {
        assert!(why.contains(part), "{why}");
    }
}

#[test]
fn file_of_another_link_is_left_as_it_is_and_one_in_use_is_said_to_be() {
    let folder = TempDir::new().unwrap();
    let text = quota(folder.path(), "");
    let setup = Setup::gateway_with(linked(&text));
    setup.fetch("/a", &page("", 1000));
    let other = text.replace("\"name\": \"a\"", "\"name\": \"b\"");
    let refused = setup.proxy.try_reload(linked(&other)).unwrap_err();
    for part in [
        "another process uses it, or another link of this one",
        "name another file with `link[0].state_file`",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    drop(setup);
    let before = std::fs::read(folder.path().join("link")).unwrap();
    let refused = std::panic::catch_unwind(|| Setup::gateway_with(linked(&other)));
    let why = refused.err().and_then(|why| why.downcast::<String>().ok());
    let why = why.expect("it is refused");
    assert!(why.contains("a link with another name"), "{why}");
    assert_eq!(std::fs::read(folder.path().join("link")).unwrap(), before);
}
