//! Fetches that are paused, and completed later.

use super::{linked, page, quota};
use crate::support::{Head, OriginConnection, PATIENCE, Representation, ScriptedOrigin, Setup};
use serde_json::json;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use weir_measure::{Aborted, Label, Metric, RouteChoice};
use weir_policy::fetch::{AbortKind, PAUSED_REST_MS, PLACE_TURN_MS, PROGRESS_EACH_MS};
use weir_proxy::config::{ByteSize, NextHopUrl, PathPrefix, Route};
use xtask::closed_port::ClosedPort;

const FIELDS: &str = "Cache-Control: max-age=999999\r\n";

/// Has a client that asks for `what` leave: nothing reads what its next hop sends.
fn leave(setup: &Setup, origin: &ScriptedOrigin, what: &Representation) -> JoinHandle<()> {
    let left = Metric::FetchesAbandoned(Aborted::GoOnAlways);
    let before_left = setup.proxy.count(left);
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let (mut hop, _) = origin.answer(what.head());
    client.read_head();
    client.into_peer().reset();
    setup.proxy.wait_for(left, before_left + 1);
    let content = what.bytes(0, what.length);
    std::thread::spawn(move || {
        // the proxy closes the connection before all of it is sent
        let _cut = hop.try_send(content);
    })
}

/// Has a fetch of `what` paused: its client leaves, and the quota of its link, 1 MiB, is spent.
fn pause(setup: &Setup, origin: &ScriptedOrigin, what: &Representation) {
    let before = setup.proxy.count(Metric::FetchesPaused);
    let sending = leave(setup, origin, what);
    setup.proxy.wait_for(Metric::FetchesPaused, before + 1);
    sending.join().expect("no panic");
}

/// Lets time pass until `origin` is asked for the rest of a part that rests.
fn wait_until_asked(setup: &Setup, origin: &ScriptedOrigin) {
    let began = Instant::now();
    while !origin.is_touched() {
        assert!(began.elapsed() < PATIENCE);
        // each is a rest, and time enough for a look
        setup.proxy.clock.advance_ms(PAUSED_REST_MS);
        let advanced = Instant::now();
        while !origin.is_touched() && advanced.elapsed() < Duration::from_secs(2) {
            std::thread::yield_now();
        }
    }
}

/// The first byte of the rest that is asked for.
fn first_of(asked: &Head) -> u64 {
    let range = asked.field("Range").expect("a range");
    let from = range.strip_prefix("bytes=").expect("bytes");
    let (from, _) = from.split_once('-').expect("a range");
    from.parse().expect("a number")
}

fn url(origin: &ScriptedOrigin) -> NextHopUrl {
    let address = origin.address();
    format!("http://{address}").parse().expect("a URL")
}

/// A gateway with a route and a link of its own for each of these origins, by its name; each link
/// has a quota of 1 MiB a day.
fn with_links(folder: &Path, origins: &[(&str, ScriptedOrigin)]) -> Setup {
    Setup::gateway_with(|config| {
        let mut links = Vec::new();
        for (name, origin) in origins {
            let path: PathPrefix = format!("/{name}").parse().expect("a path");
            let next_hops = vec![url(origin)];
            links.push(json!({
                "name": name, "quota": "1MiB", "period": "day", "overhead_percent": 0,
                "state_file": folder.join(name), "next_hops": next_hops,
            }));
            config.routes.push(Route {
                path,
                next_hops,
                ..Route::default()
            });
        }
        linked(&json!(links).to_string())(config);
        config.fetch.abort = AbortKind::Finish;
        config.fetch.background_rate = ByteSize::from_gib(1);
    })
}

fn choices(setup: &Setup) -> u64 {
    let reasons = RouteChoice::ALL.iter();
    let of = |reason: &RouteChoice| setup.proxy.count(Metric::RouteChoices(*reason));
    reasons.map(of).sum()
}

#[test]
fn part_that_waits_for_room_chooses_no_next_hop_and_probes_none() {
    let folder = TempDir::new().unwrap();
    let other = ScriptedOrigin::new();
    let closed = ClosedPort::hold().expect("a port");
    let setup = Setup::gateway_with(|config| {
        let behind = &mut config.routes[0].next_hops;
        let closed = format!("http://{}", closed.address());
        behind.push(closed.parse().expect("a URL"));
        let behind = serde_json::to_string(behind).expect("names");
        let path: PathPrefix = "/other".parse().expect("a path");
        config.routes.push(Route {
            path,
            next_hops: vec![url(&other)],
            ..Route::default()
        });
        // the clock of tests begins at midnight
        let window = r#"{"time": "12:00-13:00", "complete": true}"#;
        let link = |name: &str, more: &str| {
            let file = folder.path().join(name);
            format!(
                r#"{{"name": "{name}", "quota": "1MiB", "period": "day", "overhead_percent": 0,
                     "state_file": "{}"{more}}}"#,
                file.display()
            )
        };
        let waits = link(
            "a",
            &format!(r#", "next_hops": {behind}, "windows": [{window}]"#),
        );
        linked(&format!("[{waits}, {}]", link("b", "")))(config);
        config.fetch.abort = AbortKind::Finish;
        config.fetch.background_rate = ByteSize::from_gib(1);
    });
    // one of them is sent to the closed port first, which is ejected
    for number in 0..2 {
        setup.fetch(&format!("/{number}"), &page("Connection: close\r\n", 10));
    }
    let waiting = Representation::new("/large", 1_500_000).with_fields(FIELDS);
    pause(&setup, &setup.origin, &waiting);
    let with_room = Representation::new("/other", 1_500_000).with_fields(FIELDS);
    pause(&setup, &other, &with_room);
    let before = choices(&setup);
    setup.proxy.clock.advance_ms(86_400_000);
    // the part that was paused first is looked at first
    let missing = "HTTP/1.1 404 X\r\nCache-Control: max-age=99\r\nContent-Length: 0\r\n\r\n";
    let (_hop, asked) = other.answer(missing);
    assert!(asked.field("Range").is_some());
    assert_eq!(choices(&setup), before + 1, "that of the part with room");
    assert_eq!(setup.proxy.count(Metric::PausedParts), 2);
    // what is not the rest leaves the part as it is, and it is asked for again
    wait_until_asked(&setup, &other);
    let (mut hop, asked) = other.answer("");
    hop.send(with_room.part(first_of(&asked), with_room.length));
    setup.proxy.wait_for(Metric::FetchesResumed, 1);
    setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
    assert_eq!(setup.proxy.count(Metric::PausedParts), 1);
}

/// Four next hops that send the rest of a part byte by byte, and one that waits for a place.
struct Trickling {
    setup: Setup,
    slow: Vec<Slow>,
    /// What waits, and its next hop.
    good: (Representation, ScriptedOrigin),
    _folder: TempDir,
}

struct Slow {
    what: Representation,
    origin: ScriptedOrigin,
    hop: OriginConnection,
    /// The first byte of the rest, which is sent.
    from: u64,
}

fn trickle() -> Trickling {
    let folder = TempDir::new().expect("a folder");
    let names = ["a", "b", "c", "d", "good"];
    let origins = names.map(|name| (name, ScriptedOrigin::new()));
    let setup = with_links(folder.path(), &origins);
    let mut parts = Vec::new();
    for (name, origin) in origins {
        let what = Representation::new(&format!("/{name}"), 1_500_000).with_fields(FIELDS);
        pause(&setup, &origin, &what);
        parts.push((what, origin));
    }
    setup.proxy.clock.advance_ms(86_400_000);
    let good = parts.pop().expect("parts");
    let begin = |(what, origin): (Representation, ScriptedOrigin)| {
        let (mut hop, asked) = origin.answer("");
        let from = first_of(&asked);
        hop.send(what.part_head(from, what.length));
        hop.send(what.bytes(from, from + 1));
        Slow {
            what,
            origin,
            hop,
            from,
        }
    };
    let slow = parts.into_iter().map(begin).collect();
    setup.proxy.wait_for(Metric::FetchesResumed, 4);
    good.1.expect_untouched();
    Trickling {
        setup,
        slow,
        good,
        _folder: folder,
    }
}

impl Trickling {
    /// What waited is asked for, and completed.
    fn expect_completed(&self) {
        let (what, origin) = &self.good;
        let (mut hop, asked) = origin.answer("");
        hop.send(what.part(first_of(&asked), what.length));
        let ask = || self.setup.proxy.client().ask(what.get(""));
        what.check_whole(&ask());
        self.setup.proxy.wait_for(Metric::FetchesResumed, 5);
    }
}

#[test]
fn next_hops_that_trickle_leave_the_places_of_completion_to_others() {
    let mut trickling = trickle();
    trickling.setup.proxy.clock.advance_ms(PROGRESS_EACH_MS);
    for Slow {
        what, hop, from, ..
    } in &mut trickling.slow
    {
        hop.send(what.bytes(*from + 1, *from + 2));
        hop.expect_end();
    }
    trickling.expect_completed();
    let Trickling { setup, slow, .. } = trickling;
    setup.proxy.wait_for(Metric::FetchesUnderWay, 0);
    assert_eq!(setup.proxy.count(Metric::PausedParts), 4);
    // what has come is kept, and the rest is asked for again later
    slow[0].origin.expect_untouched();
    setup.proxy.clock.advance_ms(PAUSED_REST_MS);
    let (_hop, asked) = slow[0].origin.answer("");
    assert_eq!(first_of(&asked), slow[0].from + 2);
}

#[test]
fn completion_that_takes_long_gives_way_to_one_that_waits_and_goes_on_after_it() {
    let trickling = trickle();
    let paused = trickling.setup.proxy.count(Metric::FetchesPaused);
    trickling.setup.proxy.clock.advance_ms(PLACE_TURN_MS - 1);
    trickling.setup.proxy.turn();
    assert_eq!(trickling.setup.proxy.count(Metric::FetchesPaused), paused);
    trickling.setup.proxy.clock.advance_ms(1);
    trickling
        .setup
        .proxy
        .wait_for(Metric::FetchesPaused, paused + 1);
    trickling.expect_completed();
    let began = Instant::now();
    let again = loop {
        let asked = trickling.slow.iter().find(|it| it.origin.is_touched());
        if let Some(slow) = asked {
            break slow;
        }
        assert!(began.elapsed() < PATIENCE);
        std::thread::yield_now();
    };
    let (_hop, asked) = again.origin.answer("");
    assert_eq!(first_of(&asked), again.from + 1);
}

#[test]
fn answer_that_is_not_the_rest_leaves_the_part_as_it_is() {
    let folder = TempDir::new().unwrap();
    let origins = [("a", ScriptedOrigin::new())];
    let setup = with_links(folder.path(), &origins);
    let origin = &origins[0].1;
    let what = Representation::new("/a", 1_500_000).with_fields(FIELDS);
    pause(&setup, origin, &what);
    setup.proxy.clock.advance_ms(86_400_000);
    let range = |from: u64, fields: &str| {
        let last = what.length - 1;
        let (length, all) = (what.length - from, what.length);
        format!(
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes {from}-{last}/{all}\r\n\
             Content-Length: {length}\r\n{fields}\r\n"
        )
    };
    let tag = what.tag.clone().expect("a tag");
    let answers: [&dyn Fn(u64) -> String; 5] = [
        &|from| range(from, &format!("ETag: \"other\"\r\n{FIELDS}")),
        &|from| range(from, &format!("ETag: {tag}\r\nCache-Control: private\r\n")),
        &|_| "HTTP/1.1 302 X\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n".into(),
        &|_| format!("HTTP/1.1 404 X\r\n{FIELDS}Content-Length: 0\r\n\r\n"),
        &|_| "HTTP/1.1 410 X\r\nContent-Length: 0\r\n\r\n".into(),
    ];
    let mut first = None;
    for (attempt, answer) in answers.iter().enumerate() {
        let (mut hop, asked) = origin.answer("");
        let from = first_of(&asked);
        assert_eq!(*first.get_or_insert(from), from);
        hop.send(answer(from));
        hop.expect_end();
        setup.proxy.turn();
        setup.proxy.clock.advance_ms(PAUSED_REST_MS << attempt);
    }
    // it is gone, says the last one: the rest is not requested again, unless a client asks for it
    setup.proxy.wait_for(Metric::PausedParts, 0);
    let mut client = setup.proxy.client();
    client.send(what.get(""));
    let (mut hop, asked) = origin.answer("");
    assert_eq!(Some(first_of(&asked)), first);
    let from = first_of(&asked);
    let sending = std::thread::spawn({
        let rest = what.part(from, what.length);
        move || hop.send(rest)
    });
    what.check_whole(&client.read_response());
    sending.join().expect("no panic");
}

#[test]
fn part_rests_for_as_long_as_its_next_hop_asks_for() {
    let folder = TempDir::new().unwrap();
    let origins = ["busy", "other"].map(|name| (name, ScriptedOrigin::new()));
    let setup = with_links(folder.path(), &origins);
    for (name, origin) in &origins {
        let what = Representation::new(&format!("/{name}"), 1_500_000).with_fields(FIELDS);
        pause(&setup, origin, &what);
    }
    setup.proxy.clock.advance_ms(86_400_000);
    let [(_, busy), (_, other)] = &origins;
    let later = "HTTP/1.1 503 X\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n";
    let missing = "HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n";
    let (mut hop, _) = busy.answer(later);
    let (mut other_hop, _) = other.answer(missing);
    hop.expect_end();
    other_hop.expect_end();
    setup.proxy.turn();
    setup.proxy.clock.advance_ms(PAUSED_REST_MS);
    let _hop = other.answer(missing);
    busy.expect_untouched();
    setup.proxy.clock.advance_ms(3_600_000 - PAUSED_REST_MS);
    let (_hop, asked) = busy.answer(missing);
    assert!(asked.field("If-Range").is_some());
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
        let what = what.with_fields(FIELDS);
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
        let from = first_of(&asked);
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
    let what = what.with_fields(FIELDS);
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
