//! Clients that come, share and leave as chance has it: who stays has every byte, and nothing is
//! left behind.

use super::chunk;
use crate::support::{Head, RawClient, Running, ScriptedOrigin, pattern};
use std::net::SocketAddr;
use weir_measure::Metric;
use weir_policy::fetch::AbortKind;
use weir_proxy::config::Span;

/// Targets are few, so that clients meet.
const TARGETS: u64 = 6;

const CLIENTS: u64 = 6;

const REQUESTS: u64 = 60;

/// Numbers that differ with each seed and not with each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        let at = self.below(words.len() as u64);
        words[usize::try_from(at).expect("few")]
    }
}

fn length_of(target: u64) -> usize {
    [0, 100, 20_000, 70_000, 150_000, 300_000][usize::try_from(target).expect("few")]
}

/// What the next hop answers: how it is framed and whether it is shared changes from one time to
/// the next.
fn answer(head: &Head, time: u64) -> Vec<u8> {
    let target = head.start_line().split(' ').nth(1).expect("a target");
    let content = pattern(length_of(target[1..].parse().expect("a number")));
    let mut chance = Chance(time);
    let sharing = chance.of(&["max-age=1", "max-age=60", "no-cache", "private", "no-store"]);
    let tag = chance.of(&["", "ETag: \"a\"\r\n"]);
    let vary = chance.of(&["", "Vary: X\r\n"]);
    let begin = format!("HTTP/1.1 200 OK\r\nCache-Control: {sharing}\r\n{tag}{vary}");
    if chance.below(2) == 0 || content.is_empty() {
        let mut bytes = format!("{begin}Content-Length: {}\r\n\r\n", content.len()).into_bytes();
        bytes.extend(content);
        return bytes;
    }
    let mut bytes = format!("{begin}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
    content
        .chunks(30_000)
        .for_each(|piece| bytes.extend(chunk(piece)));
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// One client after the other, each with one request.
fn come_and_go(address: SocketAddr, seed: u64) {
    let mut chance = Chance(seed);
    for _ in 0..REQUESTS {
        let target = chance.below(TARGETS);
        let version = chance.of(&["1.0", "1.1"]);
        let mut client = RawClient::connect(address);
        client.send(format!(
            "GET /{target} HTTP/{version}\r\nHost: a\r\nX: {}\r\n\r\n",
            chance.below(2)
        ));
        match chance.below(4) {
            0 => client.into_peer().reset(),
            1 => {
                client.read_head();
                client.into_peer().reset();
            }
            _ => {
                let response = client.read_response();
                assert_eq!(response.status(), 200, "{target} seed {seed}");
                assert!(
                    response.body == pattern(length_of(target)),
                    "{target} seed {seed}"
                );
            }
        }
    }
}

#[test]
fn random_joins_and_disconnects_corrupt_nothing_and_leave_no_request() {
    let origin = ScriptedOrigin::new();
    let address = origin.address();
    let time = std::sync::atomic::AtomicU64::new(0);
    let _origin = origin.answering(move |head, _| {
        answer(
            head,
            time.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
        )
    });
    let proxy = Running::gateway_with(address, |config| {
        config.workers = 2;
        config.fetch.abort = AbortKind::Stop;
        config.fetch.half_closed = Span::ZERO;
        config.fetch.uncollapsible_for = Span::ZERO;
    });
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|seed| {
                let address = proxy.address();
                scope.spawn(move || come_and_go(address, seed))
            })
            .collect();
        let mut chance = Chance(CLIENTS);
        while clients.iter().any(|client| !client.is_finished()) {
            proxy.purge(&format!("http://a/{}", chance.below(TARGETS)));
            proxy.clock.advance_ms(chance.below(1000));
            proxy.turn();
        }
    });
    for metric in [
        Metric::RequestsInFlight,
        Metric::FollowersWaiting,
        Metric::FetchesUnderWay,
    ] {
        proxy.wait_for(metric, 0);
    }
}
