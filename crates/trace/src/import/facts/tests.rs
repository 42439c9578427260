use weir_semantics::{FieldLine, TargetedFields, Timestamp};

use super::super::Hide as _;
use super::super::tests::Open;
use super::{RequestTarget, TargetForm, request_facts, response_facts};
use crate::{RequestBit, ResponseBit, Row, TraceMethod, TraceScheme};

fn hash(bytes: &[u8]) -> u64 {
    Open.value(bytes)
}

fn fields<'a>(lines: &'a [(&'a str, &'a str)]) -> Vec<FieldLine<'a>> {
    lines
        .iter()
        .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
        .collect()
}

fn request(method: &str, target: &str, lines: &[(&str, &str)]) -> Row {
    let asked = RequestTarget {
        method,
        target: TargetForm::Line(target),
        scheme: TraceScheme::Http,
        default_authority: "192.0.2.1:8080",
    };
    let mut row = Row::default();
    request_facts(&mut row, &asked, &fields(lines), &Open);
    row
}

fn response(status: u16, lines: &[(&str, &str)], request: &[(&str, &str)]) -> Row {
    seen_by(&[], status, lines, request)
}

/// As a cache saw it that reads these targeted fields.
fn seen_by(
    targeted: &[&str],
    status: u16,
    lines: &[(&str, &str)],
    request: &[(&str, &str)],
) -> Row {
    let mut row = Row::default();
    let now_s = 784_111_777;
    response_facts(
        &mut row,
        status,
        &fields(lines),
        &TargetedFields::new(targeted.iter().copied()),
        &fields(request),
        now_s,
        &Open,
    );
    row
}

fn check_target(method: &str, target: &str, host: Option<&str>, text: &str, origin: &str) {
    let lines: Vec<_> = host.into_iter().map(|host| ("Host", host)).collect();
    let row = request(method, target, &lines);
    assert_eq!(row.target_text.as_deref(), Some(text), "{method} {target}");
    assert_eq!(row.target, hash(text.as_bytes()), "{method} {target}");
    assert_eq!(
        row.server,
        Some(hash(origin.as_bytes())),
        "{method} {target}: not {origin}"
    );
}

#[test]
fn equivalent_request_targets_have_one_target_uri() {
    let (text, origin) = ("http://example.com/a?b", "http://example.com:80");
    check_target("GET", "/a?b", Some("example.com"), text, origin);
    check_target("GET", "/a?b", Some("EXAMPLE.com:80"), text, origin);
    check_target("GET", "/a?b#part", Some("example.com"), text, origin);
    check_target("GET", "http://Example.com/a?b", Some("other"), text, origin);
    check_target("GET", "http://example.com:80/a?b", None, text, origin);
}

#[test]
fn unusual_request_target_has_a_target_uri_and_an_origin() {
    check_target(
        "GET",
        "/a",
        None,
        "http://192.0.2.1:8080/a",
        "http://192.0.2.1:8080",
    );
    check_target(
        "GET",
        "/a",
        Some("under_score.example"),
        "http://under_score.example/a",
        "http://under_score.example:80",
    );
    check_target(
        "GET",
        "http://user@Host.example/a",
        None,
        "http://host.example/a",
        "http://host.example:80",
    );
    check_target(
        "GET",
        "http://host.example?q",
        None,
        "http://host.example/?q",
        "http://host.example:80",
    );
    check_target(
        "GET",
        "ftp://Host.example/a",
        None,
        "ftp://host.example/a",
        "ftp://host.example",
    );
    check_target(
        "OPTIONS",
        "*",
        Some("a.example"),
        "http://a.example",
        "http://a.example:80",
    );
    check_target(
        "CONNECT",
        "a.example:443",
        Some("a.example"),
        "a.example:443",
        "//a.example:443",
    );
}

#[test]
fn logged_target_uri_keeps_its_spelling_without_the_fragment() {
    let asked = RequestTarget {
        method: "GET",
        target: TargetForm::Uri("HTTP://Host.example:80/a?b#c"),
        scheme: TraceScheme::Http,
        default_authority: "",
    };
    let uri = asked.target_uri(&[]);
    assert_eq!(uri.text, "HTTP://Host.example:80/a?b");
    assert_eq!(uri.origin, "http://host.example:80");
    assert_eq!(uri.path_and_query(), "/a?b");
}

#[test]
fn request_columns_agree_with_the_request_fields() {
    let row = request(
        "GET",
        "/cgi-bin/x?y",
        &[
            ("Host", "a.example"),
            ("cookie", "a=b"),
            ("Cache-Control", "max-age=0, no-transform, odd"),
            ("Pragma", "no-cache"),
            ("If-None-Match", "\"1\""),
            ("Range", "bytes=5-"),
        ],
    );
    assert_eq!(row.method, Some(TraceMethod::Get));
    assert_eq!(row.scheme, Some(TraceScheme::Http));
    assert_eq!(
        (row.has_cookie, row.has_authorization),
        (Some(true), Some(false))
    );
    assert_eq!((row.has_query, row.has_cgi_bin), (Some(true), Some(true)));
    assert_eq!((row.range_first, row.range_last), (Some(5), None));
    assert_eq!(row.request_max_age_s, Some(0));
    let bits = [
        RequestBit::MaxAge,
        RequestBit::NoTransform,
        RequestBit::Extension,
        RequestBit::PragmaNoCache,
        RequestBit::IfNoneMatch,
    ];
    assert_eq!(
        row.request_directives,
        Some(bits.iter().fold(0, |set, bit| set | bit.bit()))
    );
    assert_eq!(request("BREW", "/", &[]).method, Some(TraceMethod::Other));
}

#[test]
fn response_columns_agree_with_the_response_fields() {
    let row = response(
        200,
        &[
            (
                "Cache-Control",
                "private=\"x\", s-maxage=9, public=1, stale-if-error=7",
            ),
            ("Expires", "0"),
            ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("ETag", "W/\"a\""),
            ("Content-Type", "Text/HTML; charset=utf-8"),
            ("Content-Length", "12, 12"),
            ("Set-Cookie", "a"),
            ("Age", "3"),
        ],
        &[],
    );
    let bits = [
        ResponseBit::PrivateFields,
        ResponseBit::SMaxAge,
        ResponseBit::StaleIfError,
        ResponseBit::ExpiresInvalid,
    ];
    assert_eq!(
        row.response_directives,
        Some(bits.iter().fold(0, |set, bit| set | bit.bit()))
    );
    assert_eq!(
        (row.s_maxage_s, row.max_age_s, row.stale_if_error_s),
        (Some(9), None, Some(7))
    );
    assert_eq!(
        (row.date_s, row.expires_s, row.age_s),
        (Some(784_111_777), None, Some(3))
    );
    assert_eq!((row.etag, row.etag_is_weak), (Some(hash(b"a")), Some(true)));
    assert_eq!(row.content_type.as_deref(), Some("text/html"));
    assert_eq!(
        (row.declared_bytes, row.has_set_cookie),
        (Some(12), Some(true))
    );
    assert_eq!((row.vary, row.variant), (Some(Row::VARY_NONE), None));
    assert_eq!(
        response(200, &[("Content-Length", "1, 2")], &[]).declared_bytes,
        None
    );
}

#[test]
fn variant_depends_only_on_normalised_values_of_the_fields_in_vary() {
    let vary = [
        ("Vary", "Accept-Encoding, user-agent"),
        ("vary", "User-Agent"),
    ];
    let turned = [("Vary", "User-Agent,accept-encoding")];
    let one = response(
        200,
        &vary,
        &[("Accept-Encoding", "gzip, br"), ("User-Agent", "x")],
    );
    let two = response(
        200,
        &turned,
        &[("user-agent", "x"), ("accept-encoding", "GZIP,br")],
    );
    let three = response(
        200,
        &turned,
        &[("user-agent", "y"), ("accept-encoding", "GZIP,br")],
    );
    assert_eq!((one.vary, one.variant), (two.vary, two.variant));
    assert_eq!(two.vary, three.vary);
    assert_ne!(two.variant, three.variant);
    assert_eq!(
        response(200, &[("Vary", "*")], &[]).vary,
        Some(Row::VARY_ALL)
    );
}

#[test]
fn directives_come_from_a_valid_targeted_field_else_from_cache_control() {
    let lines = [
        ("Cache-Control", "no-store, max-age=1"),
        ("Expires", "0"),
        ("CDN-Cache-Control", "private, max-age=60, stale-if-error=9"),
    ];
    // without targeted fields, Cache-Control and Expires decide
    let plain = response(200, &lines, &[]);
    let bits = ResponseBit::NoStore.bit() | ResponseBit::MaxAge.bit();
    assert_eq!(
        plain.response_directives,
        Some(bits | ResponseBit::ExpiresInvalid.bit())
    );
    assert_eq!((plain.max_age_s, plain.stale_if_error_s), (Some(1), None));

    let gateway = seen_by(&["CDN-Cache-Control"], 200, &lines, &[]);
    let bits = ResponseBit::Private.bit() | ResponseBit::MaxAge.bit() | ResponseBit::Targeted.bit();
    assert_eq!(
        gateway.response_directives,
        Some(bits | ResponseBit::StaleIfError.bit())
    );
    assert_eq!(
        (gateway.max_age_s, gateway.stale_if_error_s),
        (Some(60), Some(9))
    );
    // and so does a replay of the row
    let said = gateway.response_facts().expect("a status").directives;
    assert!(said.private && !said.no_store && said.any);
    // also after a 304 that says something in Cache-Control alone
    let update = seen_by(
        &["CDN-Cache-Control"],
        304,
        &[("Cache-Control", "max-age=1")],
        &[],
    );
    let facts = |row: &Row| row.response_facts().expect("a status");
    let updated = facts(&gateway).updated_by(&facts(&update), Timestamp(784_111_777));
    assert_eq!(updated.directives, said);

    // an invalid field decides nothing
    let lines = [lines[0], ("CDN-Cache-Control", "Private")];
    let invalid = seen_by(&["CDN-Cache-Control"], 200, &lines, &[]);
    assert_eq!(invalid.max_age_s, Some(1));
    let nothing_known = [("CDN-Cache-Control", "x=1")];
    let row = seen_by(&["CDN-Cache-Control"], 200, &nothing_known, &[]);
    assert_eq!(row.response_directives, Some(ResponseBit::Targeted.bit()));
}
