//! Responses: status and content.

use weir_bench::mark::{Id, ResponseMark};
use weir_wire::Version;

use crate::support::{Curl, TestOrigin, hits, target, wpb};

#[test]
fn content_equals_the_content_function_of_its_target() {
    for size in ["0B", "1B", "1KB", "64KB", "300KB"] {
        let served = TestOrigin::new(hits(&[&format!("workload.size=constant({size})")]));
        for number in [0, 999] {
            let fetched = Curl::direct().fetch(&[&served.url(target(number))]);
            assert_eq!(fetched.status(), 200);
            assert!(
                fetched.content() == served.content(target(number)),
                "{size}"
            );
        }
    }
}

#[test]
fn content_larger_than_any_buffer_is_sent_unchanged() {
    let served = TestOrigin::new(hits(&["workload.size=constant(40MB)"]));
    let fetched = Curl::direct().fetch(&[&served.url(target(3))]);
    let content = fetched.content();
    assert_eq!(content.len(), 40 << 20);
    assert_eq!(
        served.site.content(target(3), 0).differs_at(0, content),
        None
    );
    let phase = &served.counts().phases[0];
    assert_eq!((phase.content_bytes, phase.left), (40 << 20, 0));
}

#[test]
fn range_of_content_larger_than_memory_is_served() {
    let served = TestOrigin::new(hits(&["workload.size=constant(1000GB)"]));
    let fetched = Curl::direct()
        .args(&["-r", "1073741000000-1073741000999"])
        .fetch(&[&served.url(target(3))]);
    let content = fetched.content();
    assert_eq!((fetched.status(), content.len()), (206, 1000));
    let expected = served.site.content(target(3), 0);
    assert_eq!(expected.differs_at(1_073_741_000_000, content), None);
}

#[test]
fn origin_mark_names_the_id_of_the_request_it_answers() {
    let served = TestOrigin::new(hits(&[]));
    let mut wire = served.wire();
    let mut check = |mark: &str, id: Option<Id>| {
        let path = served.path(target(1));
        let reply = wire.ask(&[&format!("GET {path} HTTP/1.1"), "Host: a", mark]);
        let answered = reply.field("weir-bench").expect("a mark");
        let answered = ResponseMark::parse(answered.as_bytes()).expect("a mark");
        let expected = ResponseMark {
            id,
            version: 0,
            is_validated: false,
            ..answered
        };
        assert_eq!(answered, expected);
    };
    let id = Id {
        phase: 1,
        share: 0,
        number: 255,
    };
    check("Weir-Bench: 1-0-ff", Some(id));
    check("Weir-Bench: 1-0-FF", None);
    check("Accept: */*", None);
}

#[test]
fn head_gets_the_fields_of_get_without_content() {
    let served = TestOrigin::new(hits(&[]));
    let mut wire = served.wire();
    let path = served.path(target(1));
    let get = wire.ask(&[&format!("GET {path} HTTP/1.1"), "Host: a"]);
    let head = wire.ask(&[&format!("HEAD {path} HTTP/1.1"), "Host: a"]);
    assert_eq!((head.status, head.content.len()), (200, 0));
    let without_date = |fields: &[(String, String)]| {
        let mut fields = fields.to_vec();
        fields.retain(|(name, _)| name != "Date");
        fields
    };
    assert_eq!(without_date(&head.fields), without_date(&get.fields));
    assert_eq!(head.field("content-length"), Some("10000"));
    // the next response is where it should be
    assert_eq!(wire.ask(&[&format!("GET {path} HTTP/1.1"), "Host: a"]), get);
}

#[test]
fn unknown_path_is_answered_with_404_that_names_it() {
    let served = TestOrigin::new(wpb(&[]));
    for path in [
        "/",
        "/dummy.html",
        "/dummy01.html",
        "/hit1.bin",
        "/dummy1.html?a",
    ] {
        let fetched = Curl::direct().fetch(&[&format!("http://{}{path}", served.address())]);
        assert_eq!(fetched.status(), 404, "{path}");
        let text = String::from_utf8_lossy(&fetched.body).into_owned();
        assert!(text.contains(path), "{text}");
    }
    assert_eq!(served.counts().phases[0].not_found, 5);
}

#[test]
fn absolute_form_request_is_answered() {
    let served = TestOrigin::new(hits(&[]));
    let url = served.url(target(1));
    let reply = served
        .wire()
        .ask(&[&format!("GET {url} HTTP/1.1"), "Host: a"]);
    assert_eq!(reply.status, 200);
    assert_eq!(reply.content, served.content(target(1)));
}

#[test]
fn unsupported_method_is_refused_with_405_and_allow() {
    let served = TestOrigin::new(hits(&[]));
    let path = served.path(target(1));
    let mut wire = served.wire();
    for method in ["DELETE", "PUT", "OPTIONS", "BREW"] {
        let reply = wire.ask(&[&format!("{method} {path} HTTP/1.1"), "Host: a"]);
        assert_eq!(reply.status, 405, "{method}");
        assert_eq!(reply.field("allow"), Some("GET, HEAD, POST"));
    }
    assert_eq!(served.counts().phases[0].other, 4);
}

#[test]
fn malformed_request_is_answered_with_400_and_not_counted() {
    let served = TestOrigin::new(hits(&[]));
    let nonsense = [
        "GET /hit1.bin\r\n\r\n",
        "GET /hit1.bin HTTP/1.1\nHost: a\n\n",
        "GET /hit1.bin HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ];
    for text in nonsense {
        let mut wire = served.wire();
        wire.send(text.as_bytes()).expect("sent");
        let reply = wire.reply("GET").expect("an answer");
        assert_eq!(reply.status, 400, "{text:?}");
        assert!(reply.content.starts_with(b"cannot "), "{text:?}");
        assert_eq!(wire.rest().expect("the end"), b"");
    }
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(40_000));
    let mut wire = served.wire();
    wire.send(long.as_bytes()).expect("sent");
    assert_eq!(wire.reply("GET").expect("an answer").status, 400);
    assert_eq!(served.counts().total().requests, 0, "none was read whole");
}

#[test]
fn request_content_is_consumed_before_the_next_request() {
    let served = TestOrigin::new(hits(&[]));
    let path = served.path(target(1));
    let mut wire = served.wire();
    let content = "GET / HTTP/1.1\r\n\r\n".repeat(10_000);
    let post = format!("POST {path} HTTP/1.1\r\nHost: a\r\n");
    let length = content.len();
    let whole = format!("{post}Content-Length: {length}\r\n\r\n{content}");
    let chunked =
        format!("{post}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{content}\r\n0\r\n\r\n");
    for request in [whole, chunked] {
        wire.send(request.as_bytes()).expect("sent");
        let reply = wire.reply("POST").expect("an answer");
        assert_eq!(reply.content, served.content(target(1)));
    }
    let phase = &served.counts().phases[0];
    assert_eq!((phase.requests, phase.post_requests), (2, 2));
    assert_eq!(phase.received_content_bytes, 2 * length as u64);
}

#[test]
fn expect_100_continue_is_answered_with_an_interim_response() {
    let served = TestOrigin::new(hits(&[]));
    let path = served.path(target(1));
    let mut wire = served.wire();
    let post = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    );
    wire.send(post.as_bytes()).expect("sent");
    assert_eq!(wire.reply("POST").expect("an interim response").status, 100);
    wire.send(b"hello").expect("sent");
    assert_eq!(wire.reply("POST").expect("an answer").status, 200);
}

#[test]
fn pipelined_and_bytewise_requests_are_answered_in_order() {
    let served = TestOrigin::new(hits(&[]));
    let requests: String = (0..20)
        .map(|number| {
            format!(
                "GET {} HTTP/1.1\r\nHost: a\r\n\r\n",
                served.path(target(number))
            )
        })
        .collect();
    let check = |wire: &mut crate::support::Wire| {
        for number in 0..20 {
            let reply = wire.reply("GET").expect("an answer");
            assert_eq!(reply.content, served.content(target(number)), "{number}");
        }
    };
    let mut wire = served.wire();
    wire.send(requests.as_bytes()).expect("sent");
    check(&mut wire);
    for byte in requests.bytes() {
        wire.send(&[byte]).expect("sent");
    }
    check(&mut wire);
}

#[test]
fn http_1_0_origin_answers_in_version_1_0_and_closes() {
    let served = TestOrigin::new(hits(&["origin.http=\"1.0\"", "origin.keep_alive=false"]));
    let path = served.path(target(1));
    let mut wire = served.wire();
    let reply = wire.ask(&[&format!("GET {path} HTTP/1.0")]);
    assert_eq!((reply.version, reply.status), (Version::Http10, 200));
    assert_eq!(reply.field("connection"), Some("close"));
    assert_eq!(reply.content, served.content(target(1)));
    assert_eq!(wire.rest().expect("the end"), b"");
}
