use super::*;
use std::collections::BTreeMap;
use std::io::Read as _;
use weir_extend::{Fields, ListenerMode, OptionValue, Piece, Progress};

fn load(options: &[(&str, OptionValue)]) -> Result<Arc<dyn Module>, LoadError> {
    let options = options
        .iter()
        .map(|(name, value)| ((*name).to_owned(), value.clone()));
    Compress.load(Options::new(options.collect::<BTreeMap<_, _>>()))
}

fn list(texts: &[&str]) -> OptionValue {
    let texts = texts
        .iter()
        .map(|text| OptionValue::Text((*text).to_owned()));
    OptionValue::List(texts.collect())
}

const CALL: Call = Call {
    client: std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
    mode: ListenerMode::Forward,
    now_ms: 0,
};

type Lines<'a> = &'a [(&'a str, &'a str)];

fn fields(lines: Lines<'_>) -> Fields {
    Fields::received(lines.iter().map(|(name, value)| (*name, value.as_bytes())))
}

fn begin(module: &Arc<dyn Module>) -> Box<dyn Exchange> {
    module.begin(&weir_extend::Detached::host())
}

/// The exchange after a request, and the variant that this was given.
fn request(method: &str, path: &str, lines: Lines<'_>) -> (Box<dyn Exchange>, Option<String>) {
    let mut exchange = begin(&load(&[]).expect("a module"));
    let mut head = RequestHead::new(method, "a.example", path, fields(lines));
    let answer = exchange.request_received(&mut head, &CALL);
    assert_eq!(answer, Answer::Continue);
    (exchange, head.take_variant())
}

const PAGE: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");
const ACCEPT: (&str, &str) = ("Accept-Encoding", "gzip, br");

/// What becomes of a response to a request that may have any coding.
fn response(method: &str, status: u16, lines: Lines<'_>) -> ResponseHead<'static> {
    let (mut exchange, _) = request(method, "/", &[ACCEPT]);
    let mut head = ResponseHead::new(status, fields(lines));
    let answer = exchange.response_received(&mut head, &CALL);
    assert_eq!(answer, Answer::Continue);
    head
}

#[test]
fn variant_is_the_coding_that_the_client_prefers() {
    for (method, path, lines, expected) in [
        ("GET", "/", &[ACCEPT][..], Some("br")),
        ("HEAD", "/", &[ACCEPT], Some("br")),
        (
            "GET",
            "/",
            &[("Accept-Encoding", "deflate, GZIP")],
            Some("gzip"),
        ),
        ("GET", "/", &[], None),
        ("POST", "/", &[ACCEPT], None),
        ("CONNECT", "", &[ACCEPT], None),
        ("GET", "/a.png", &[ACCEPT], None),
        (
            "GET",
            "/",
            &[ACCEPT, ("Cache-Control", "no-transform")],
            None,
        ),
    ] {
        let (_, variant) = request(method, path, lines);
        assert_eq!(variant.as_deref(), expected, "{method} {path} {lines:?}");
    }
}

#[test]
fn page_is_stored_coded_with_the_fields_that_say_so() {
    let mut head = response(
        "GET",
        200,
        &[
            PAGE,
            ("Content-Length", "5000"),
            ("ETag", "\"x\""),
            ("Vary", "Cookie"),
        ],
    );
    assert_eq!(head.fields.get("content-encoding"), Some(&b"br"[..]));
    assert_eq!(head.fields.get("content-length"), None);
    assert_eq!(head.fields.get("etag"), Some(&b"\"x\""[..]));
    assert_eq!(head.fields.get("vary"), Some(&b"Cookie"[..]));
    let (codings, mut transform) = head.take_transform().expect("a transform");
    assert!(codings.is_empty());
    let page = b"<p>The quick brown fox jumps over the lazy dog.</p>\n".repeat(100);
    let (mut rest, mut out) = (&*page, Vec::new());
    let mut done = false;
    while !done {
        let count = rest.len().min(1000);
        let mut piece = Piece::new(&rest[..count], count == rest.len(), &mut out, 100);
        let progress = transform.transform(&mut piece);
        let taken = piece.taken();
        rest = &rest[taken..];
        done = progress == Progress::Done;
        assert!(done || progress == Progress::Continue);
    }
    let mut back = Vec::new();
    let mut decoder = brotli::Decompressor::new(&*out, 4096);
    decoder.read_to_end(&mut back).expect("brotli");
    assert!(back == page && out.len() < page.len() / 20);
}

#[test]
fn response_that_must_not_or_need_not_be_coded_is_left_as_it_is() {
    for (method, status, lines) in [
        ("HEAD", 200, &[PAGE][..]),
        ("GET", 204, &[PAGE]),
        ("GET", 206, &[PAGE, ("Content-Range", "bytes 0-9/10000")]),
        ("GET", 304, &[PAGE]),
        ("GET", 200, &[]),
        ("GET", 200, &[("Content-Type", "image/png")]),
        ("GET", 200, &[("Content-Type", "text/event-stream")]),
        ("GET", 200, &[PAGE, ("Content-Encoding", "gzip")]),
        ("GET", 200, &[PAGE, ("Content-Encoding", "unknown")]),
        ("GET", 200, &[PAGE, ("Content-Length", "1023")]),
        ("GET", 200, &[PAGE, ("Cache-Control", "no-transform")]),
    ] {
        let mut head = response(method, status, lines);
        assert!(!head.fields.is_changed(), "{method} {status} {lines:?}");
        assert!(head.take_transform().is_none());
    }
    for (status, lines) in [
        (200, &[PAGE][..]),
        (404, &[PAGE]),
        (200, &[PAGE, ("Content-Encoding", "identity")]),
        (200, &[PAGE, ("Content-Length", "1024")]),
    ] {
        let mut head = response("GET", status, lines);
        assert!(head.take_transform().is_some(), "{status} {lines:?}");
    }
}

#[test]
fn caches_behind_are_told_by_which_field_the_response_varies() {
    for (lines, expected) in [
        (&[PAGE][..], &["Accept-Encoding"][..]),
        (
            &[PAGE, ("Content-Encoding", "br"), ("Content-Length", "9")],
            &["Accept-Encoding"],
        ),
        (&[PAGE, ("Vary", "Cookie")], &["Cookie", "Accept-Encoding"]),
        (
            &[PAGE, ("Vary", "Cookie, accept-encoding")],
            &["Cookie, accept-encoding"],
        ),
        (&[PAGE, ("Vary", "*")], &["*"]),
        (&[PAGE, ("Content-Length", "9")], &[]),
        (&[("Content-Type", "image/png")], &[]),
    ] {
        // also for a client that accepts no coding: what it gets is one of the variants
        for accepted in [&[ACCEPT][..], &[]] {
            let (mut exchange, _) = request("GET", "/", accepted);
            let mut head = ResponseHead::new(200, fields(lines));
            let answer = exchange.response_sent(&mut head, &CALL);
            assert_eq!(answer, Answer::Continue);
            let vary: Vec<_> = head.fields.all("vary").collect();
            let expected: Vec<_> = expected.iter().map(|it| it.as_bytes()).collect();
            assert_eq!(vary, expected, "{lines:?}");
        }
    }
    // a part has the Vary of the whole (RFC 9110 §15.3.7); some answers do not show what they are
    // about
    let part = |range| [PAGE, ("Content-Length", "10"), ("Content-Range", range)];
    for (status, lines, is_named) in [
        (206, &part("bytes 0-9/10000")[..], true),
        (206, &part("bytes 0-9/*"), true),
        (206, &part("bytes 0-9/1023"), false),
        (206, &[("Content-Type", "image/png")], false),
        (416, &[("Content-Range", "bytes */10000")], true),
        (416, &[("Content-Range", "bytes */1023")], false),
        (412, &[], true),
        (304, &[], true),
    ] {
        let (mut exchange, _) = request("GET", "/", &[]);
        let mut head = ResponseHead::new(status, fields(lines));
        assert_eq!(exchange.response_sent(&mut head, &CALL), Answer::Continue);
        let vary = head.fields.get("vary");
        assert_eq!(vary.is_some(), is_named, "{status} {lines:?}");
    }
    let (mut exchange, _) = request("GET", "/a.zip", &[ACCEPT]);
    let mut head = ResponseHead::new(200, fields(&[PAGE]));
    exchange.response_sent(&mut head, &CALL);
    assert!(!head.fields.is_changed(), "there is one variant of it");
}

#[test]
fn response_beyond_the_streams_is_left_as_it_is() {
    let module = load(&[("streams_max", OptionValue::Number(1))]).expect("a module");
    let begin = || {
        let mut exchange = begin(&module);
        let mut head = RequestHead::new("GET", "a.example", "/", fields(&[ACCEPT]));
        exchange.request_received(&mut head, &CALL);
        let mut head = ResponseHead::new(200, fields(&[PAGE]));
        exchange.response_received(&mut head, &CALL);
        head
    };
    let first = begin();
    assert!(first.is_transformed());
    assert!(!begin().fields.is_changed());
    drop(first);
    assert!(begin().is_transformed());
}

#[test]
fn operator_chooses_codings_and_their_order() {
    let module = load(&[("codings", list(&["gzip", "br"]))]).expect("a module");
    for (accepted, expected) in [("br, gzip, zstd", Some("gzip")), ("zstd", None)] {
        let lines = [("Accept-Encoding", accepted)];
        let mut head = RequestHead::new("GET", "a.example", "/", fields(&lines));
        begin(&module).request_received(&mut head, &CALL);
        assert_eq!(head.take_variant().as_deref(), expected);
    }
}

#[test]
fn options_that_no_encoder_takes_are_refused() {
    let number = OptionValue::Number;
    for (name, value, option) in [
        ("codings", list(&["deflate"]), "codings[0]"),
        ("codings", list(&["br", "br"]), "codings[1]"),
        ("level_br", number(7), "level_br"),
        ("level_br", number(-1), "level_br"),
        ("level_gzip", number(0), "level_gzip"),
        ("level_zstd", number(13), "level_zstd"),
        ("bytes_min", number(-1), "bytes_min"),
        ("streams_max", number(0), "streams_max"),
        ("types", list(&["text/html", "text"]), "types[1]"),
        ("level", number(1), "level"),
    ] {
        let refused = load(&[(name, value)]).err().expect("refused");
        assert_eq!(refused.option, option);
    }
}
