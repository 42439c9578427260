//! Which requests wait for another's response, in what form they are answered by it, and who is
//! waited for.

use super::with_length;
use crate::support::{Head, Setup, pattern};
use weir_measure::Metric;

/// What the content of the response is.
const CONTENT: &str = "0123456789";

/// Its fields.
const TAG: &str = "ETag: \"a\"\r\nLast-Modified: Wed, 31 Dec 2025 00:00:00 GMT\r\n";

/// Requests that may follow: their fields, and the status and content of what answers them.
const FOLLOW: &[(&str, u16, &str)] = &[
    ("", 200, CONTENT),
    ("Authorization: Basic YTpi\r\n", 200, CONTENT),
    ("Cookie: a=b\r\n", 200, CONTENT),
    ("Cache-Control: no-store\r\n", 200, CONTENT),
    ("Cache-Control: max-age=10\r\n", 200, CONTENT),
    ("If-None-Match: \"a\"\r\n", 304, ""),
    ("If-None-Match: \"b\"\r\n", 200, CONTENT),
    ("If-Match: \"a\"\r\n", 200, CONTENT),
    // a cache does not evaluate these (RFC 9111 §4.3.2)
    ("If-Match: \"b\"\r\n", 200, CONTENT),
    (
        "If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT\r\n",
        304,
        "",
    ),
    (
        "If-Unmodified-Since: Tue, 30 Dec 2025 00:00:00 GMT\r\n",
        200,
        CONTENT,
    ),
    ("Range: bytes=2-4\r\n", 206, "234"),
    ("Range: bytes=-3\r\n", 206, "789"),
    ("Range: bytes=10-\r\n", 416, ""),
    ("Range: bytes=2-4\r\nIf-Range: \"a\"\r\n", 206, "234"),
    ("Range: bytes=2-4\r\nIf-Range: \"b\"\r\n", 200, CONTENT),
    ("Range: pages=2-4\r\n", 200, CONTENT),
];

fn expect_form(response: &crate::support::Response, status: u16, content: &str, fields: &str) {
    assert_eq!(
        (response.status(), response.text().as_str()),
        (status, content),
        "{fields}"
    );
    if status == 206 {
        let at = CONTENT.find(content).expect("a part");
        let range = format!("bytes {at}-{}/10", at + content.len() - 1);
        assert_eq!(response.head.field("content-range"), Some(range.as_str()));
    }
}

#[test]
fn follower_is_answered_in_the_same_form_as_a_hit() {
    Setup::each(|setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let ask = |fields: &str| setup.head("GET", "/", "1.1", fields);
        let followers: Vec<_> = FOLLOW
            .iter()
            .map(|(fields, ..)| setup.follow(1, &ask(fields)).remove(0))
            .collect();
        hop.send(with_length(TAG, CONTENT));
        assert_eq!(leader.read_response().text(), CONTENT);
        for (mut follower, (fields, status, content)) in followers.into_iter().zip(FOLLOW) {
            let response = follower.read_response();
            expect_form(&response, *status, content, fields);
            let words = response.head.cache_status();
            assert!(
                words.starts_with("fwd=uri-miss") && words.ends_with("collapsed"),
                "{words}"
            );
        }
        for (fields, status, content) in FOLLOW {
            let hit = setup.proxy.client().ask(ask(fields));
            assert!(hit.is_hit(), "{fields}");
            expect_form(&hit, *status, content, fields);
        }
        setup.origin.expect_untouched();
    });
}

#[test]
fn request_joining_an_in_flight_response_is_answered_like_a_hit() {
    Setup::each(|setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let answer = with_length(TAG, CONTENT);
        let split = answer.len() - 5;
        hop.send(&answer[..split]);
        leader.read_head();
        leader.expect(&CONTENT[..5]);
        let ask = |fields: &str| setup.head("GET", "/", "1.1", fields);
        let joiners: Vec<_> = FOLLOW
            .iter()
            .map(|(fields, ..)| setup.proxy.asking(1, &ask(fields)).remove(0))
            .collect();
        // an answer without content, or whose content is there, waits for nothing
        let (mut at_once, mut later) = (Vec::new(), Vec::new());
        for (joiner, case) in joiners.into_iter().zip(FOLLOW) {
            if CONTENT[..5].contains(case.2) {
                at_once.push((joiner, case))
            } else {
                later.push((joiner, case))
            }
        }
        let check = |cases: Vec<(crate::support::RawClient, &(&str, u16, &str))>| {
            for (mut joiner, (fields, status, content)) in cases {
                let response = joiner.read_response();
                expect_form(&response, *status, content, fields);
                assert_eq!(
                    response.head.cache_status(),
                    "hit;ttl=60;detail=delayed",
                    "{fields}"
                );
            }
        };
        assert_eq!(at_once.len(), 5);
        check(at_once);
        // the others have been judged before the content ends: later hits are plain ones
        let under_way = 1 + later.len() as u64;
        setup.proxy.wait_for(Metric::RequestsInFlight, under_way);
        setup.proxy.turn();
        hop.send(&answer[split..]);
        leader.expect(&CONTENT[5..]);
        check(later);
        setup.origin.expect_untouched();
    });
}

/// Requests that want an answer of their own, or none: method, fields.
const OWN: &[(&str, &str)] = &[
    ("HEAD", ""),
    ("POST", ""),
    ("GET", "Cache-Control: no-cache\r\n"),
    ("GET", "Pragma: no-cache\r\n"),
    ("GET", "Range: bytes=0-1,3-4\r\n"),
    ("GET", "Content-Length: 0\r\nExpect: 100-continue\r\n"),
];

#[test]
fn request_that_requires_its_own_response_does_not_become_follower() {
    Setup::each(|setup| {
        let (_leader, _hop) = setup.lead(&setup.get("/"));
        for (method, fields) in OWN {
            let mut client = setup.proxy.client();
            client.send(setup.head(method, "/", "1.1", fields));
            let (_hop, head) = setup.origin.answer(
                "HTTP/1.1 204 No Content\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
            );
            assert!(head.start_line().starts_with(method), "{head:?}");
            assert_eq!(client.read_response().status(), 204);
        }
        // it does not want to wait
        let mut client = setup.proxy.client();
        let refused =
            client.ask(setup.head("GET", "/", "1.1", "Cache-Control: only-if-cached\r\n"));
        assert_eq!(refused.status(), 504);
        assert_eq!(setup.proxy.count(Metric::FollowersWaiting), 0);
    });
}

/// Requests whose response is probably not to be stored: others do not wait for it.
const NO_LEADER: &[&str] = &[
    "Authorization: Basic YTpi\r\n",
    "Cache-Control: no-store\r\n",
    "Cache-Control: no-cache\r\n",
    "If-None-Match: \"a\"\r\n",
    "If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT\r\n",
    "If-Match: \"a\"\r\n",
    "Range: bytes=0-1,3-4\r\n",
    "Range: bytes=0-1\r\nIf-Range: \"a\"\r\n",
];

#[test]
fn request_with_probably_unstorable_response_does_not_become_leader() {
    Setup::each(|setup| {
        for (at, fields) in NO_LEADER.iter().enumerate() {
            let path = format!("/{at}");
            let request = setup.head("GET", &path, "1.1", fields);
            let mut clients = setup.proxy.asking(2, &request);
            let mut hops: Vec<_> = clients.iter().map(|_| setup.origin.accept()).collect();
            // and a plain request asks for itself
            let (plain, plain_hop) = setup.lead(&setup.get(&path));
            for (client, hop) in clients.iter_mut().zip(&mut hops) {
                hop.answer("HTTP/1.1 204 No Content\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n");
                assert_eq!(client.read_response().status(), 204, "{fields}");
            }
            end(plain, plain_hop);
        }
    });
}

/// Answers and lets both go.
fn end(mut client: crate::support::RawClient, mut hop: crate::support::OriginConnection) {
    hop.send(with_length("Connection: close\r\n", "x"));
    assert_eq!(client.read_response().text(), "x");
}

#[test]
fn in_flight_public_response_to_authorization_is_joined_by_others() {
    Setup::each(|setup| {
        let request = setup.head("GET", "/", "1.1", "Authorization: Basic YTpi\r\n");
        let (mut own, mut hop) = setup.lead(&request);
        let body = pattern(150_000);
        let mut answer = with_length("X: y\r\n", &body);
        answer.splice(17..17, b"Cache-Control: public\r\n".iter().copied());
        hop.send(&answer[..answer.len() - 100_000]);
        own.read_head();
        own.read_exactly(50_000);
        let mut joiner = setup.proxy.asking(1, &setup.get("/")).remove(0);
        assert_eq!(
            joiner.read_head().cache_status(),
            "hit;ttl=60;detail=delayed"
        );
        hop.send(&body[50_000..]);
        assert!(joiner.read_exactly(150_000) == body);
        own.read_exactly(100_000);
        setup.origin.expect_untouched();
    });
}

#[test]
fn in_flight_response_to_authorization_is_not_joined_without_public() {
    Setup::each(|setup| {
        let request = setup.head("GET", "/", "1.1", "Authorization: Basic YTpi\r\n");
        let (mut own, mut hop) = setup.lead(&request);
        let answer = with_length("", pattern(150_000));
        hop.send(&answer[..50_000]);
        let head = own.read_head();
        assert!(head.cache_status().ends_with("detail=authorization"));
        let (plain, plain_hop) = setup.lead(&setup.get("/"));
        end(plain, plain_hop);
        drop(hop);
    });
}

#[test]
fn follower_forwards_when_its_own_directives_forbid_the_response() {
    Setup::each(|setup| {
        // as old as nine seconds when it comes
        let fields = [
            "Cache-Control: max-age=8\r\n",
            "Cache-Control: min-fresh=52\r\n",
        ];
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let followers: Vec<_> = fields
            .iter()
            .map(|fields| {
                setup
                    .follow(1, &setup.head("GET", "/", "1.1", fields))
                    .remove(0)
            })
            .collect();
        let mut may = setup
            .follow(
                1,
                &setup.head(
                    "GET",
                    "/",
                    "1.1",
                    "Cache-Control: max-age=9, min-fresh=51\r\n",
                ),
            )
            .remove(0);
        hop.send(with_length("Connection: close\r\nAge: 9\r\n", "old"));
        assert_eq!(leader.read_response().text(), "old");
        assert_eq!(
            may.read_response().head.cache_status(),
            "fwd=uri-miss;ttl=51;collapsed"
        );
        let mut own: Vec<_> = followers.iter().map(|_| setup.origin.accept()).collect();
        for hop in &mut own {
            hop.answer(with_length("Connection: close\r\n", "new"));
        }
        for mut follower in followers {
            let response = follower.read_response();
            assert_eq!(response.text(), "new");
            assert!(
                response
                    .head
                    .cache_status()
                    .starts_with("fwd=request;fwd-status=200"),
                "{:?}",
                response.head
            );
        }
    });
}

#[test]
fn stale_response_is_not_shared_with_followers() {
    Setup::each(|setup| {
        let (mut leader, mut hop) = setup.lead(&setup.get("/"));
        let mut follower = setup.follow(1, &setup.get("/")).remove(0);
        hop.send(with_length(
            "Connection: close\r\nETag: \"a\"\r\nAge: 60\r\n",
            "stale",
        ));
        assert_eq!(leader.read_response().text(), "stale");
        let (mut own, head): (_, Head) = setup
            .origin
            .answer(with_length("Connection: close\r\n", "fresh"));
        assert!(
            !head.has("if-none-match"),
            "it is not the client's to validate"
        );
        assert_eq!(follower.read_response().text(), "fresh");
        own.expect_end();
    });
}

#[test]
fn follower_of_a_range_request_fetches_only_the_missing_ranges() {
    Setup::each(|setup| {
        let part =
            "HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nConnection: close\r\n";
        let ask = |fields: &str| setup.head("GET", "/", "1.1", fields);
        let (mut leader, mut hop) = setup.lead(&ask("Range: bytes=2-4\r\n"));
        let mut same = setup.follow(1, &ask("Range: bytes=2-4\r\n")).remove(0);
        let mut inside = setup.follow(1, &ask("Range: bytes=3-3\r\n")).remove(0);
        let mut whole = setup.follow(1, &setup.get("/")).remove(0);
        hop.send(format!(
            "{part}{TAG}Content-Range: bytes 2-4/10\r\nContent-Length: 3\r\n\r\n234"
        ));
        for (client, content) in [(&mut leader, "234"), (&mut same, "234"), (&mut inside, "3")] {
            expect_form(&client.read_response(), 206, content, "a part");
        }
        // what is missing is asked for, before and behind, and nothing twice
        for (range, content) in [("0-1", "01"), ("5-9", "56789")] {
            let length = content.len();
            let (mut hop, head) = setup.origin.answer(format!(
                "{part}{TAG}Content-Range: bytes {range}/10\r\nContent-Length: {length}\r\n\r\n{content}"
            ));
            assert_eq!(head.field("range"), Some(format!("bytes={range}").as_str()));
            assert_eq!(head.field("if-range"), Some("\"a\""));
            hop.expect_end();
        }
        assert_eq!(whole.read_response().text(), CONTENT);
        setup.origin.expect_untouched();
        assert_eq!(
            setup.proxy.client().ask(setup.get("/")).head.cache_status(),
            "hit;ttl=60"
        );
    });
}

#[test]
fn follower_does_not_wait_for_a_part_that_cannot_be_stored() {
    Setup::each(|setup| {
        let (mut leader, mut hop) =
            setup.lead(&setup.head("GET", "/", "1.1", "Range: bytes=2-4\r\n"));
        let follower = setup.follow(1, &setup.get("/")).remove(0);
        // without a strong entity tag
        hop.send("HTTP/1.1 206 Partial Content\r\nCache-Control: max-age=60\r\nConnection: close\r\nContent-Range: bytes 2-4/10\r\nContent-Length: 3\r\n\r\n");
        let mut own = setup.origin.accept();
        hop.send("234");
        assert_eq!(leader.read_response().text(), "234");
        assert!(!own.read_head().has("range"));
        end(follower, own);
    });
}
