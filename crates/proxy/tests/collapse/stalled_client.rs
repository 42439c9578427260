//! A client that reads slowly, or not at all, is alone in it.

use super::{FRESH, chunk, with_length};
use crate::support::{RawClient, Setup, pattern};
use weir_measure::Metric;

/// A client that has asked, and reads nothing.
fn stopped(setup: &Setup, request: &str) -> RawClient {
    let mut client = RawClient::connect_small(setup.proxy.address());
    client.send(request);
    client
}

#[test]
fn client_that_reads_nothing_does_not_delay_other_readers() {
    Setup::each(|setup| {
        for framing in [
            "Content-Length: 4000000\r\n",
            "Transfer-Encoding: chunked\r\n",
        ] {
            let body = pattern(4_000_000);
            let path = if framing.starts_with('C') {
                "/length"
            } else {
                "/chunked"
            };
            let mut first = stopped(setup, &setup.get(path));
            let mut hop = setup.origin.accept();
            hop.read_head();
            let mut answer = format!("{FRESH}{framing}\r\n").into_bytes();
            if framing.starts_with('C') {
                answer.extend(&body);
            } else {
                for piece in body.chunks(50_000) {
                    answer.extend(chunk(piece));
                }
                answer.extend(b"0\r\n\r\n");
            }
            let sending = hop.sending(answer);
            setup.proxy.wait_for(Metric::FetchesUnderWay, 1);
            let joiner = setup.proxy.client().ask(setup.get(path));
            assert!(joiner.body == body);
            assert!(joiner.head.cache_status().starts_with("hit"));
            sending.join().expect("sent");
            // a third one has it from the store, while the first has not read a byte
            let third = setup.proxy.client().ask(setup.get(path));
            assert_eq!(third.head.cache_status(), "hit;ttl=60");
            assert!(third.body == body);
            assert!(first.read_response().body == body);
        }
        setup.origin.expect_untouched();
    });
}

/// Whether the next request of a client that was ahead of its answers reaches the next hop; if not
/// in so many turns, the client has stopped everything behind them.
fn goes_on(setup: &Setup) -> bool {
    const TURNS: usize = 20;
    (0..TURNS).any(|_| {
        setup.proxy.turn();
        setup.origin.is_touched()
    })
}

#[test]
fn client_that_reads_nothing_does_not_delay_its_followers() {
    Setup::each(|setup| {
        const RESPONSES_MAX: usize = 400;
        let body = pattern(40_000);
        // each response is whole with its head, until there is no room for one more toward its
        // client
        let mut requests = String::new();
        for at in 0..RESPONSES_MAX {
            requests += &setup.get(&format!("/{at}"));
        }
        let stopped = stopped(setup, &requests);
        let mut at = 0;
        while goes_on(setup) {
            let mut hop = setup.origin.accept();
            hop.read_head();
            let mut follower = setup.follow(1, &setup.get(&format!("/{at}"))).remove(0);
            hop.send(with_length("Connection: close\r\n", &body));
            assert!(follower.read_response().body == body, "response {at}");
            at += 1;
        }
        assert!(at < RESPONSES_MAX, "all of them found room");
        drop(stopped);
    });
}
