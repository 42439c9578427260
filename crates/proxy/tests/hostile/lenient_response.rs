//! Next hops whose responses are not as the grammar has them, and that the RFCs say how to read:
//! the client gets them in canonical form, and the connection is not used again.

use crate::support::Head;
use crate::support::{OriginConnection, Setup};
use weir_measure::Metric;

const OK: &str = "HTTP/1.1 200 OK\r\n";

/// What the next hop sends, and its fields (but those of the proxy) as the client gets them.
struct Case {
    answer: String,
    fields: &'static [(&'static str, &'static str)],
}

const SIZED: &[(&str, &str)] = &[("Content-Length", "2")];
const CHUNKED: &[(&str, &str)] = &[("Transfer-Encoding", "chunked")];
const NAMED: &[(&str, &str)] = &[("X", "y"), ("Content-Length", "2")];

/// Responses with the content `ok`; `control` is a Cache-Control line with its CRLF.
fn cases(control: &str) -> Vec<Case> {
    let with_lf = |text: &str| text.replace("\r\n", "\n");
    let case = |answer: String, fields| Case { answer, fields };
    let sized = "Content-Length: 2\r\n\r\nok";
    let mut cases = vec![
        case(format!("{OK}{control}Content-Length: 2\r\n{sized}"), SIZED),
        case(
            format!("{OK}{control}Content-Length: 2, 2\r\n\r\nok"),
            SIZED,
        ),
        case(format!("{OK}{control}Content-Length : 2\r\n\r\nok"), SIZED),
        case(format!("{OK}{control}X \t: y\r\n{sized}"), NAMED),
        case(with_lf(&format!("{OK}{control}X: y\r\n{sized}")), NAMED),
        case(format!("HTTP/1.2 200 OK\r\n{control}{sized}"), SIZED),
        case(format!("HTTP/1.9 200 OK\r\n{control}{sized}"), SIZED),
    ];
    for coding in [": chunked,", ": , chunked", " : chunked"] {
        let fields = format!("{control}Transfer-Encoding{coding}\r\n");
        let answer = format!("{OK}{fields}\r\n2\r\nok\r\n0\r\n\r\n");
        cases.push(case(answer, CHUNKED));
    }
    for line in ["2 ", "2 \t", "2 ; a", "2;a = \"b\"", "00000000000000002"] {
        let fields = format!("{control}Transfer-Encoding: chunked\r\n");
        let answer = format!("{OK}{fields}\r\n{line}\r\nok\r\n0\r\n\r\n");
        cases.push(case(answer, CHUNKED));
    }
    cases
}

/// The fields of a response as the next hop sent them, without what the proxy adds.
fn of_next_hop(head: &Head) -> Vec<(&str, &str)> {
    let added = ["date", "via", "cache-status", "age", "cache-control"];
    let is_added = |name: &str| added.contains(&name.to_ascii_lowercase().as_str());
    let mut fields = head.fields();
    fields.retain(|(name, _)| !is_added(name));
    fields
}

/// No byte of the head is what a strict recipient refuses.
fn assert_canonical(head: &Head, case: &str) {
    assert!(head.text.starts_with("HTTP/1.1 "), "{case:?}");
    assert!(
        !head.text.replace("\r\n", "").contains(['\r', '\n']),
        "{case:?}"
    );
    assert!(
        !head.text.contains(" :") && !head.text.contains("\t:"),
        "{case:?}"
    );
}

/// Sends the answer at once, or each byte for itself.
fn send(hop: &mut OriginConnection, answer: &str, by_byte: bool) {
    if by_byte {
        for byte in answer.bytes() {
            hop.send([byte]);
        }
    } else {
        hop.send(answer);
    }
}

#[test]
fn repaired_response_is_canonical_and_its_connection_is_not_reused() {
    Setup::each(|setup| {
        for by_byte in [false, true] {
            for Case { answer, fields } in cases("Cache-Control: no-store\r\n") {
                let mut client = setup.proxy.client();
                client.send(setup.get("/1"));
                let mut hop = setup.origin.accept();
                hop.read_head();
                send(&mut hop, &answer, by_byte);
                let response = client.read_response();
                assert_eq!(
                    (response.status(), response.text().as_str()),
                    (200, "ok"),
                    "{answer:?}"
                );
                assert_eq!(of_next_hop(&response.head), fields, "{answer:?}");
                assert_canonical(&response.head, &answer);
                hop.expect_end();
                // the client has done nothing wrong, and its next request goes over another
                // connection
                client.send(setup.get("/2"));
                let closing = format!("{OK}Connection: close\r\nContent-Length: 4\r\n\r\ngood");
                let (_hop, head) = setup.origin.answer(closing);
                assert_eq!(head.start_line().split('/').next_back(), Some("1.1"));
                assert_eq!(client.read_response().text(), "good", "{answer:?}");
            }
        }
        assert_eq!(setup.proxy.reuse().0, 0);
    });
}

#[test]
fn repaired_response_is_stored_in_canonical_form() {
    Setup::each(|setup| {
        for by_byte in [false, true] {
            for Case { answer, fields } in cases("Cache-Control: max-age=60\r\n") {
                let mut client = setup.proxy.client();
                client.send(setup.get("/"));
                let mut hop = setup.origin.accept();
                hop.read_head();
                send(&mut hop, &answer, by_byte);
                assert_eq!(client.read_response().text(), "ok", "{answer:?}");
                hop.expect_end();
                let hit = client.ask(setup.get("/"));
                assert_eq!(hit.head.verdict(), "hit", "{answer:?}");
                assert_eq!(hit.text(), "ok", "{answer:?}");
                assert_canonical(&hit.head, &answer);
                assert_eq!(hit.head.field("content-length"), Some("2"), "{answer:?}");
                assert!(!hit.head.has("transfer-encoding"), "{answer:?}");
                assert_eq!(hit.head.field("x").is_some(), fields.len() == 2);
                setup.proxy.purge_all();
            }
        }
        setup.origin.expect_untouched();
    });
}

#[test]
fn connection_is_not_reused_after_a_padded_chunk_size_line() {
    Setup::each(|setup| {
        for control in ["no-store", "max-age=60"] {
            let (mut client, mut hop) = setup.lead(&setup.get("/"));
            let fields = format!("Cache-Control: {control}\r\nTransfer-Encoding: chunked\r\n");
            hop.send(format!("{OK}{fields}\r\n"));
            assert!(client.read_head().is_chunked());
            hop.send("2 \r\nok\r\n0\r\n\r\n");
            assert_eq!(client.read_chunks().0, b"ok");
            hop.expect_end();
        }
        assert_eq!(setup.proxy.count(Metric::StoreEntries), 1);
        assert_eq!(setup.proxy.reuse().0, 0);
    });
}

#[test]
fn bytes_after_a_repaired_response_are_discarded() {
    Setup::each(|setup| {
        let evil = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil";
        for answer in cases("Cache-Control: no-store\r\n") {
            let mut client = setup.proxy.client();
            client.send(setup.get("/1"));
            let (mut hop, _) = setup.origin.answer(format!("{}{evil}", answer.answer));
            assert_eq!(client.read_response().text(), "ok");
            hop.expect_end();
            client.send(setup.get("/2"));
            let closing = format!("{OK}Connection: close\r\nContent-Length: 4\r\n\r\ngood");
            let (_hop, _) = setup.origin.answer(closing);
            assert_eq!(client.read_response().text(), "good", "{:?}", answer.answer);
        }
    });
}

#[test]
fn framing_fields_of_a_response_without_content_are_removed() {
    Setup::each(|setup| {
        for fields in [
            "Content-Length: 4\r\n\r\nevil",
            "Content-Length: 4\r\nContent-Length: 4\r\n\r\nevil",
            "Transfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n",
            "Content-Length: 4\r\n\r\n",
        ] {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let (mut hop, _) = setup
                .origin
                .answer(format!("HTTP/1.1 204 No Content\r\n{fields}"));
            let head = client.read_head();
            assert_eq!(head.status(), 204, "{fields:?}");
            assert_eq!(of_next_hop(&head), [], "{fields:?}");
            hop.expect_end();
            client.send(setup.get("/"));
            let interim = "HTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Length: 4\r\n\r\n";
            let last = format!("{OK}Cache-Control: no-store\r\nContent-Length: 4\r\n\r\ngood");
            let (mut hop, _) = setup.origin.answer(format!("{interim}{last}"));
            let head = client.read_head();
            assert_eq!(
                (head.status(), of_next_hop(&head)),
                (103, vec![("Link", "x")])
            );
            assert_eq!(client.read_response().text(), "good", "{fields:?}");
            // what was repaired in an interim response holds for the connection
            hop.expect_end();
        }
        assert_eq!(setup.proxy.reuse().0, 0);
    });
}

#[test]
fn response_with_mixed_line_ends_is_forwarded_but_not_stored() {
    Setup::each(|setup| {
        for answer in [
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\nContent-Length: 2\n\nok",
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nX: y\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\nCache-Control: max-age=60\nContent-Length: 2\r\n\r\nok",
        ] {
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let (mut hop, _) = setup.origin.answer(answer);
            let response = client.read_response();
            assert_eq!(
                (response.status(), response.text().as_str()),
                (200, "ok"),
                "{answer:?}"
            );
            assert_canonical(&response.head, answer);
            let verdict = response.head.verdict();
            assert_eq!(
                verdict, "fwd=uri-miss;fwd-status=200;detail=line-ends",
                "{answer:?}"
            );
            hop.expect_end();
            assert_eq!(setup.proxy.count(Metric::StoreEntries), 0, "{answer:?}");
        }
    });
}

#[test]
fn response_with_mixed_line_ends_is_not_shared_with_followers() {
    Setup::each(|setup| {
        let (mut client, mut hop) = setup.lead(&setup.get("/"));
        let mut followers = setup.follow(1, &setup.get("/"));
        hop.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\nContent-Length: 4\n\nevil");
        assert_eq!(client.read_response().text(), "evil");
        let good = format!("{OK}Cache-Control: max-age=60\r\nContent-Length: 4\r\n\r\ngood");
        let (_hop, _) = setup.origin.answer(good);
        assert_eq!(followers[0].read_response().text().as_str(), "good");
    });
}

#[test]
fn update_with_mixed_line_ends_is_not_stored() {
    Setup::each(|setup| {
        let stored = "Cache-Control: no-cache\r\nETag: \"a\"\r\nContent-Length: 2\r\n\r\nok";
        let (first, mut hop) = setup.fetch("/", &format!("{OK}{stored}"));
        assert_eq!(first.text(), "ok");
        let mut client = setup.proxy.client();
        client.send(setup.get("/"));
        hop.answer("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\nX: evil\r\n\r\n");
        let merged = client.read_response();
        assert_eq!(
            (merged.text().as_str(), merged.head.field("x")),
            ("ok", Some("evil"))
        );
        hop.expect_end();
        setup.proxy.wait_for(Metric::StoreEntries, 0);
    });
}

/// So many lines of fields of different names.
fn fields(prefix: &str, count: usize) -> String {
    (0..count)
        .map(|at| format!("{prefix}{at}: v\r\n"))
        .collect()
}

/// The lines among those of `head` whose names begin so.
fn named(head: &Head, prefix: &str) -> usize {
    let fields = head.fields();
    fields
        .iter()
        .filter(|(name, _)| name.starts_with(prefix))
        .count()
}

#[test]
fn response_of_512_fields_is_forwarded_stored_and_updated() {
    Setup::each(|setup| {
        let own = "Cache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Length: 2\r\n";
        let (first, mut hop) = setup.fetch("/", &format!("{OK}{own}{}\r\nok", fields("K", 509)));
        assert_eq!(
            (first.text().as_str(), named(&first.head, "K")),
            ("ok", 509)
        );
        let mut client = setup.proxy.client();
        let hit = client.ask(setup.get("/"));
        assert_eq!(
            (hit.head.verdict().as_str(), named(&hit.head, "K")),
            ("hit", 509)
        );
        assert!(hit.head.has("date") && hit.head.has("via"));
        // the fields of the stored head are read again
        let conditional = setup.head("GET", "/", "1.1", "If-None-Match: \"a\"\r\n");
        client.send(conditional);
        let head = client.read_head();
        assert_eq!((head.status(), named(&head, "K")), (304, 509));
        let part = setup.head("GET", "/", "1.1", "Range: bytes=1-1\r\n");
        let part = client.ask(part);
        assert_eq!(
            (part.status(), part.text().as_str(), named(&part.head, "K")),
            (206, "k", 509)
        );
        // an update with as many other fields, and then no more
        let validate = setup.head("GET", "/", "1.1", "Cache-Control: no-cache\r\n");
        let update = format!(
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n{}\r\n",
            fields("L", 500)
        );
        client.send(&validate);
        assert!(hop.answer(&update).has("if-none-match"));
        let merged = client.read_response();
        assert_eq!(
            (named(&merged.head, "K"), named(&merged.head, "L")),
            (509, 500)
        );
        client.send(&validate);
        let update = update.replace('L', "M");
        assert!(hop.answer(&update).has("if-none-match"));
        let (_again, again) = setup.origin.answer(format!("{OK}{own}\r\nnu"));
        assert!(
            !again.has("if-none-match"),
            "asked again without a condition"
        );
        let replaced = client.read_response();
        assert_eq!(
            (replaced.text().as_str(), named(&replaced.head, "K")),
            ("nu", 0)
        );
    });
}

#[test]
fn response_beyond_its_field_limit_is_refused_with_502() {
    let limited = |count: u32| {
        move |config: &mut weir_proxy::config::Config| {
            config.limits.response_fields_max = count;
        }
    };
    for (limit, count, status) in [
        (512, 512, 200),
        (512, 513, 502),
        (130, 130, 200),
        (130, 131, 502),
    ] {
        Setup::each_with(limited(limit), |setup| {
            let lines = fields("K", count - 1);
            let (response, _) = setup.fetch("/", &format!("{OK}Content-Length: 0\r\n{lines}\r\n"));
            assert_eq!(response.status(), status, "{count} of {limit}");
        });
    }
}
