//! Conditional requests and ranges.

use weir_bench::mark::ResponseMark;
use weir_semantics::Timestamp;

use crate::support::{Curl, Reply, TestOrigin, date, hits, now, target};

fn ask(served: &TestOrigin, fields: &[&str]) -> Reply {
    let line = format!("GET {} HTTP/1.1", served.path(target(1)));
    let lines: Vec<&str> = [line.as_str(), "Host: a", "Weir-Bench: 0-0-1"]
        .into_iter()
        .chain(fields.iter().copied())
        .collect();
    served.wire().ask(&lines)
}

fn modified(served: &TestOrigin) -> Timestamp {
    let described = served.site.describe(target(1), now());
    described.modified.expect("a Last-Modified")
}

#[test]
fn matching_validator_is_answered_with_304() {
    let served = TestOrigin::new(hits(&[]));
    let tag = served.tag(target(1));
    let at = date(modified(&served));
    let later = date(Timestamp(modified(&served).0 + 1));
    for condition in [
        format!("If-None-Match: {tag}"),
        format!("If-None-Match: \"x\", W/{tag}"),
        "If-None-Match: *".to_owned(),
        format!("If-Modified-Since: {at}"),
        format!("If-Modified-Since: {later}"),
    ] {
        let reply = ask(&served, &[&condition]);
        assert_eq!((reply.status, reply.content.len()), (304, 0), "{condition}");
        let answered = reply.field("weir-bench").expect("a mark");
        let answered = ResponseMark::parse(answered.as_bytes()).expect("ours");
        assert!(answered.is_validated, "{condition}");
        assert_eq!(reply.field("etag"), Some(tag.as_str()));
        assert_eq!(reply.field("last-modified"), Some(at.as_str()));
        assert!(reply.field("cache-control").is_some() && reply.field("date").is_some());
        assert_eq!(reply.field("content-type"), None);
    }
    assert_eq!(served.counts().phases[0].not_modified, 5);
    assert_eq!(served.counts().phases[0].content_bytes, 0);
}

#[test]
fn non_matching_validator_is_answered_with_full_content() {
    let served = TestOrigin::new(hits(&[]));
    let tag = served.tag(target(1));
    let other = served.tag(target(2));
    let at = date(modified(&served));
    let earlier = date(Timestamp(modified(&served).0 - 1));
    let check = |conditions: &[&str]| {
        let reply = ask(&served, conditions);
        assert_eq!(reply.status, 200, "{conditions:?}");
        assert_eq!(reply.content, served.content(target(1)), "{conditions:?}");
    };
    check(&[&format!("If-None-Match: {other}")]);
    check(&[&format!("If-Modified-Since: {earlier}")]);
    check(&["If-Modified-Since: yesterday"]);
    // the entity tag decides (RFC 9110 §13.2.2)
    check(&[
        &format!("If-None-Match: {other}"),
        &format!("If-Modified-Since: {at}"),
    ]);
    let post = format!("POST {} HTTP/1.1", served.path(target(1)));
    let reply = served
        .wire()
        .ask(&[&post, "Host: a", &format!("If-None-Match: {tag}")]);
    assert_eq!(reply.status, 200, "a condition of a POST is none of ours");
}

#[test]
fn origin_without_conditional_support_ignores_condition_and_range() {
    let served = TestOrigin::new(hits(&["origin.conditional=false"]));
    let at = date(modified(&served));
    let fields = [&*format!("If-Modified-Since: {at}"), "Range: bytes=0-1"];
    let reply = ask(&served, &fields);
    assert_eq!((reply.status, reply.content.len()), (200, 10_000));
    assert_eq!(reply.field("accept-ranges"), None);
}

#[test]
fn satisfiable_range_is_answered_with_206_and_its_bytes() {
    let served = TestOrigin::new(hits(&["workload.size=constant(200000B)"]));
    let whole = served.content(target(1));
    for (range, from, to) in [
        ("0-0", 0, 1),
        ("1-70000", 1, 70_001),
        ("65536-", 65_536, 200_000),
        ("-1", 199_999, 200_000),
        ("199990-300000", 199_990, 200_000),
        ("-300000", 0, 200_000),
    ] {
        let fetched = Curl::direct()
            .args(&["-r", range])
            .fetch(&[&served.url(target(1))]);
        assert!(fetched.content() == &whole[from..to], "{range}");
        assert_eq!(fetched.status(), 206, "{range}");
        let expected = format!("bytes {from}-{}/200000", to - 1);
        assert_eq!(fetched.field("content-range"), Some(expected.as_str()));
        assert_eq!(fetched.field("etag"), Some(served.tag(target(1)).as_str()));
    }
    assert_eq!(served.counts().phases[0].partial, 6);
}

#[test]
fn range_beyond_the_end_is_answered_with_416() {
    let served = TestOrigin::new(hits(&[]));
    let reply = ask(&served, &["Range: bytes=10000-"]);
    assert_eq!((reply.status, reply.content.len()), (416, 0));
    assert_eq!(reply.field("content-range"), Some("bytes */10000"));
    let empty = TestOrigin::new(hits(&["workload.size=constant(0B)"]));
    assert_eq!(ask(&empty, &["Range: bytes=0-0"]).status, 416);
}

#[test]
fn unsupported_range_or_failed_if_range_is_answered_with_200() {
    let served = TestOrigin::new(hits(&[]));
    let tag = served.tag(target(1));
    let other = served.tag(target(2));
    let at = date(modified(&served));
    let earlier = date(Timestamp(modified(&served).0 - 1));
    let check = |fields: &[&str], expected: u16| {
        assert_eq!(ask(&served, fields).status, expected, "{fields:?}");
    };
    check(&["Range: bytes=0-1,5-6"], 200);
    check(&["Range: lines=0-1"], 200);
    check(&["Range: bytes=5-1"], 200);
    let range = "Range: bytes=0-1";
    check(&[range, &format!("If-Range: {tag}")], 206);
    check(&[range, &format!("If-Range: {at}")], 206);
    check(&[range, &format!("If-Range: {other}")], 200);
    check(&[range, &format!("If-Range: W/{tag}")], 200);
    check(&[range, &format!("If-Range: {earlier}")], 200);
    // what was validated needs no part
    check(&[range, &format!("If-None-Match: {tag}")], 304);
}
