//! Who comes while content is arriving: gets at once what is there, then the rest as it comes.

use super::{FRESH, chunk};
use crate::support::{Setup, pattern};
use weir_measure::{Joined, Metric, Verdict};

/// Content, and the first half of it.
fn halves() -> (Vec<u8>, usize) {
    (pattern(200_000), 100_000)
}

#[test]
fn request_joining_an_in_flight_response_gets_received_content_at_once() {
    Setup::each(|setup| {
        let (body, half) = halves();
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        hop.send(format!("{FRESH}Content-Length: {}\r\n\r\n", body.len()));
        hop.send(&body[..half]);
        leader.read_head();
        assert!(leader.read_exactly(half) == body[..half]);
        // the next hop says nothing more before both joiners have all there is
        let mut joiners = setup.proxy.asking(2, &setup.get("/"));
        for joiner in &mut joiners {
            let head = joiner.read_head();
            assert_eq!(head.cache_status(), "hit;ttl=60;detail=delayed");
            assert_eq!(head.length(), Some(body.len()));
            assert!(joiner.read_exactly(half) == body[..half]);
        }
        hop.send(&body[half..]);
        for client in joiners.iter_mut().chain([&mut leader]) {
            assert!(client.read_exactly(body.len() - half) == body[half..]);
            client.expect_nothing_more();
        }
        setup.origin.expect_untouched();
        setup.proxy.wait_for(Metric::Joined(Joined::Delayed), 2);
        assert_eq!(setup.proxy.count(Metric::Requests(Verdict::Hit)), 2);
    });
}

#[test]
fn request_joining_a_chunked_response_gets_received_content_at_once() {
    Setup::each(|setup| {
        let (body, half) = halves();
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        hop.send(format!("{FRESH}Transfer-Encoding: chunked\r\n\r\n"));
        hop.send(chunk(&body[..half]));
        leader.read_head();
        assert!(leader.read_chunks_of(half) == body[..half]);
        let mut newer = setup.proxy.asking(1, &setup.get("/")).remove(0);
        let head = newer.read_head();
        assert_eq!(head.cache_status(), "hit;ttl=60;detail=delayed");
        assert!(head.is_chunked() && !head.has("content-length"));
        assert!(newer.read_chunks_of(half) == body[..half]);
        let mut older = setup
            .proxy
            .asking(1, &setup.head("GET", "/", "1.0", ""))
            .remove(0);
        let head = older.read_head();
        assert!(!head.is_chunked() && !head.has("content-length"));
        assert!(older.read_exactly(half) == body[..half]);
        hop.send(chunk(&body[half..]));
        hop.send("0\r\nX-Sum: right\r\n\r\n");
        for client in [&mut leader, &mut newer] {
            let (rest, trailers) = client.read_chunks();
            assert!(rest == body[half..]);
            assert_eq!(trailers, "X-Sum: right\r\n");
        }
        let (rest, _) = older.read_to_end();
        assert!(rest == body[half..]);
        setup.origin.expect_untouched();
        // it is stored with its length
        let stored = setup.proxy.client().ask(setup.get("/"));
        assert!(stored.is_hit());
        assert_eq!(stored.head.length(), Some(body.len()));
        assert!(stored.body == body);
    });
}

#[test]
fn close_delimited_response_ends_as_complete_for_joined_requests() {
    Setup::each(|setup| {
        let (body, half) = halves();
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        hop.send(format!("{FRESH}\r\n"));
        hop.send(&body[..half]);
        leader.read_head();
        assert!(leader.read_chunks_of(half) == body[..half]);
        let mut joiners = setup.proxy.asking(2, &setup.get("/"));
        for joiner in &mut joiners {
            joiner.read_head();
            assert!(joiner.read_chunks_of(half) == body[..half]);
        }
        hop.send(&body[half..]);
        drop(hop);
        for client in joiners.iter_mut().chain([&mut leader]) {
            assert!(client.read_chunks().0 == body[half..]);
        }
        assert!(setup.proxy.client().ask(setup.get("/")).is_hit());
    });
}
