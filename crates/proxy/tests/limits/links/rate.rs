//! The rate of a link, and who goes first.

use super::{ask, linked, page, row};
use crate::support::{PATIENCE, Setup};
use std::time::Instant;
use weir_measure::{Aborted, Metric};
use weir_policy::fetch::AbortKind;
use weir_proxy::config::Span;

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
