//! Heads that are read, and heads that are refused: header and request line tricks, both sides of
//! each limit.
//!
//! Every input is also fed byte by byte, so each table entry is a check of the invariants as well.

mod invariants;

use weir_wire::{
    EMPTY_LINES_MAX, FIELDS_CAPACITY, HeadError, HeadLimits, LineBuffer, Progress,
    REQUEST_FIELDS_CAPACITY, Version, parse_fields, parse_request, parse_response,
};

/// What reading a head came to: the head in one line of text, or that it is not all there, or why
/// it is refused.
type Outcome = Result<Option<String>, HeadError>;

fn request(text: &[u8], limits: &HeadLimits) -> Outcome {
    invariants::request_head(text, limits);
    let mut lines = LineBuffer::new();
    Ok(match parse_request(text, limits, &mut lines)? {
        Progress::Partial => None,
        Progress::Complete { head, consumed } => {
            let mut shown = format!(
                "{consumed} {} {} {}",
                head.method,
                head.target,
                head.version.as_str()
            );
            for line in head.fields {
                shown += &format!("|{}={}", line.name, line.value.escape_ascii());
            }
            Some(shown)
        }
    })
}

fn response(text: &[u8], limits: &HeadLimits) -> Outcome {
    invariants::response_head(text, limits);
    let mut lines = LineBuffer::new();
    Ok(match parse_response(text, limits, &mut lines)? {
        Progress::Partial => None,
        Progress::Complete { head, consumed } => {
            let mut shown = format!(
                "{consumed} {} {} {}",
                head.version.as_str(),
                head.status,
                head.reason
            );
            for line in head.fields {
                shown += &format!("|{}={}", line.name, line.value.escape_ascii());
            }
            Some(shown)
        }
    })
}

#[track_caller]
fn check_request(text: impl AsRef<[u8]>, expected: Result<Option<&str>, HeadError>) {
    let text = text.as_ref();
    assert_eq!(
        request(text, &HeadLimits::default()),
        expected.map(|shown| shown.map(str::to_owned)),
        "{}",
        text.escape_ascii()
    );
}

#[track_caller]
fn check_response(text: impl AsRef<[u8]>, expected: Result<Option<&str>, HeadError>) {
    let text = text.as_ref();
    assert_eq!(
        response(text, &HeadLimits::default()),
        expected.map(|shown| shown.map(str::to_owned)),
        "{}",
        text.escape_ascii()
    );
}

#[test]
fn well_formed_request_is_parsed() {
    check_request("GET / HTTP/1.1\r\n\r\n", Ok(Some("18 GET / HTTP/1.1")));
    check_request("GET / HTTP/1.0\r\n\r\n", Ok(Some("18 GET / HTTP/1.0")));
    check_request(
        "GET /a?b=%20 HTTP/1.1\r\nHost: e\r\n\r\nbody",
        Ok(Some("34 GET /a?b=%20 HTTP/1.1|Host=e")),
    );
    check_request(
        "CONNECT e:443 HTTP/1.1\r\nHost: e\r\n\r\n",
        Ok(Some("35 CONNECT e:443 HTTP/1.1|Host=e")),
    );
    check_request(
        "OPTIONS * HTTP/1.1\r\n\r\n",
        Ok(Some("22 OPTIONS * HTTP/1.1")),
    );
    check_request(
        "get http://e/ HTTP/1.1\r\n\r\n",
        Ok(Some("26 get http://e/ HTTP/1.1")),
    );
    check_request(
        "!#$%&'*+-.^_`|~09azAZ / HTTP/1.1\r\n\r\n",
        Ok(Some("36 !#$%&'*+-.^_`|~09azAZ / HTTP/1.1")),
    );
    check_request(
        "GET / HTTP/1.1\r\nA:\r\nB: \t\r\nC: \t c d\t \r\nD:e:f\r\n\r\n",
        Ok(Some("47 GET / HTTP/1.1|A=|B=|C=c d|D=e:f")),
    );
}

#[test]
fn incomplete_request_is_partial() {
    for text in [
        "",
        "G",
        "GET",
        "GET ",
        "GET /",
        "GET / ",
        "GET / HTTP/1.",
        "GET / HTTP/1.1",
        "GET / HTTP/1.1\r\n",
    ] {
        check_request(text, Ok(None));
    }
    for text in [
        "\r",
        "\r\n",
        "\r\n\r",
        "GET / HTTP/1.1\r\nA",
        "GET / HTTP/1.1\r\nA: b\r",
        "GET / HTTP/1.1\r\nA: b\r\n\r",
    ] {
        check_request(text, Ok(None));
    }
}

#[test]
fn malformed_request_line_is_refused() {
    for text in [
        " GET / HTTP/1.1\r\n\r\n",
        "\tGET / HTTP/1.1\r\n\r\n",
        "GET  / HTTP/1.1\r\n\r\n",
        "GET\t/ HTTP/1.1\r\n\r\n",
        "GET /\tHTTP/1.1\r\n\r\n",
        "GET /  HTTP/1.1\r\n\r\n",
        "GET / a HTTP/1.1\r\n\r\n",
        "GET / http/1.1\r\n\r\n",
        "GET / HTTP/1,1\r\n\r\n",
        "GET / HTTP/11\r\n\r\n",
        "GET / HTTP/1.32\r\n\r\n",
        "GET / HTTP/2.0x\r\n\r\n",
        "GET / HTTPS/1.1\r\n\r\n",
        "GET / HTTP/+1.1\r\n\r\n",
        "GET\r\n\r\n",
        "GET \r\n\r\n",
        " /\r\n",
        "G(T /\r\n",
        "/ HTTP/1.1\r\n\r\n",
        "G\0T / HTTP/1.1\r\n\r\n",
        "GET /\0 HTTP/1.1\r\n\r\n",
        "GET /\x7f HTTP/1.1\r\n\r\n",
        "GET /\u{e9} HTTP/1.1\r\n\r\n",
        "G(T / HTTP/1.1\r\n\r\n",
        "GET: / HTTP/1.1\r\n\r\n",
        "\x16\x03\x01\x02\0\x01",
    ] {
        check_request(text, Err(HeadError::RequestLine));
    }
    check_request(b"GET /\xff HTTP/1.1\r\n\r\n", Err(HeadError::RequestLine));
    check_request("GET / HTTP/1.1 \r\n\r\n", Err(HeadError::LineEnd));
    check_request("GET / HTTP/1.1\rHost: e\r\n\r\n", Err(HeadError::LineEnd));
}

#[test]
fn unsupported_http_version_is_refused() {
    for text in [
        "GET / HTTP/2.0\r\n\r\n",
        "GET / HTTP/1.2\r\n\r\n",
        "GET / HTTP/0.9\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM",
    ] {
        check_request(text, Err(HeadError::UnsupportedVersion));
    }
    check_request("GET /\r\n", Err(HeadError::Http09));
    check_request("GET http://e/\r\nHost: e\r\n\r\n", Err(HeadError::Http09));
    check_response(
        "HTTP/2.0 200 OK\r\n\r\n",
        Err(HeadError::UnsupportedVersion),
    );
    assert_eq!(HeadError::UnsupportedVersion.status(), 505);
    assert_eq!(HeadError::Http09.status(), 400);
}

#[test]
fn empty_lines_before_a_request_are_skipped_up_to_a_maximum() {
    let line = "GET / HTTP/1.1\r\n\r\n";
    check_request(["\r\n", line].concat(), Ok(Some("20 GET / HTTP/1.1")));
    check_request(
        ["\r\n".repeat(EMPTY_LINES_MAX).as_str(), line].concat(),
        Ok(Some("26 GET / HTTP/1.1")),
    );
    check_request(
        ["\r\n".repeat(EMPTY_LINES_MAX + 1).as_str(), line].concat(),
        Err(HeadError::EmptyLines),
    );
    check_request("\r\n".repeat(EMPTY_LINES_MAX), Ok(None));
    check_request(
        "\r\n".repeat(EMPTY_LINES_MAX + 1),
        Err(HeadError::EmptyLines),
    );
    check_request(["\n", line].concat(), Err(HeadError::BareLf));
    check_request(["\r\n\n", line].concat(), Err(HeadError::BareLf));
    check_request(["\r", line].concat(), Err(HeadError::LineEnd));
    check_response("\r\nHTTP/1.1 200 OK\r\n\r\n", Err(HeadError::StatusLine));
    check_response("\nHTTP/1.1 200 OK\r\n\r\n", Err(HeadError::StatusLine));
}

#[test]
fn bare_line_feed_is_refused() {
    for text in [
        "GET / HTTP/1.1\n\n",
        "GET / HTTP/1.1\nHost: e\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: e\n\r\n",
        "GET / HTTP/1.1\r\nHost: e\r\n\n",
        "GET / HTTP/1.1\r\n\n",
        "GET / HTTP/1.1\r\nHost:\n\r\n",
        "GET / HTTP/1.1\r\nHost: e\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\n",
        "GET /\n",
        "GET / HTTP/2.0\n",
    ] {
        check_request(text, Err(HeadError::BareLf));
    }
    for text in [
        "HTTP/1.1 200 OK\n\r\n",
        "HTTP/1.1 200\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\n\r\n",
        "HTTP/1.1 200 OK\r\n\n",
    ] {
        check_response(text, Err(HeadError::BareLf));
    }
    // what follows the head is not its concern, and an earlier fault is the one to name
    check_request("GET / HTTP/1.1\r\n\r\n\n", Ok(Some("18 GET / HTTP/1.1")));
    check_request(
        "GET / HTTP/1.1\r\nA : b\r\nC: d\n\r\n",
        Err(HeadError::SpaceInName),
    );
    check_request(
        "GET / HTTP/1.1\r\nC: d\nA : b\r\n\r\n",
        Err(HeadError::BareLf),
    );
}

#[test]
fn malformed_field_is_refused_with_its_reason() {
    use HeadError::{FieldName, FieldValue, LineEnd, ObsFold, SpaceInName};
    for (section, expected) in [
        ("A : b\r\n", SpaceInName),
        ("A\t: b\r\n", SpaceInName),
        ("A b: c\r\n", SpaceInName),
        ("Content-Length : 5\r\n", SpaceInName),
        (" A: b\r\n", ObsFold),
        ("\tA: b\r\n", ObsFold),
        ("A: b\r\n c\r\n", ObsFold),
        ("A: b\r\n\tc: d\r\n", ObsFold),
        ("A: b\r\n \r\n", ObsFold),
        (": b\r\n", FieldName),
        ("A: b\r\n: c\r\n", FieldName),
        ("A\r\n", FieldName),
        ("A\0: b\r\n", FieldName),
        ("A\x01: b\r\n", FieldName),
        ("A\x7f: b\r\n", FieldName),
        ("A\u{e9}: b\r\n", FieldName),
        ("A\r: b\r\n", FieldName),
        ("A(: b\r\n", FieldName),
        ("\"A\": b\r\n", FieldName),
        ("A/B: c\r\n", FieldName),
        ("A: b\0\r\n", FieldValue),
        ("A: \0\r\n", FieldValue),
        ("A: b\x01c\r\n", FieldValue),
        ("A: b\x0bc\r\n", FieldValue),
        ("A: b\x7f\r\n", FieldValue),
        ("A: b\rc\r\n", FieldValue),
        ("A: b\r\r\n", FieldValue),
        ("A:\rb\r\n", FieldValue),
        ("A: b\r\n\rC: d\r\n", LineEnd),
    ] {
        check_request(format!("GET / HTTP/1.1\r\n{section}\r\n"), Err(expected));
        check_response(format!("HTTP/1.1 200 OK\r\n{section}\r\n"), Err(expected));
        let block = format!("{section}\r\n");
        assert_eq!(
            parse_fields(block.as_bytes(), &mut LineBuffer::new()),
            Err(expected),
            "{section:?}"
        );
        assert_eq!(expected.status(), 400);
    }
}

#[test]
fn every_allowed_octet_is_accepted_in_a_field() {
    for byte in (0x20..=0x7e).chain(0x80..=0xff).chain([b'\t']) {
        let mut text = b"GET / HTTP/1.1\r\nA: b".to_vec();
        text.push(byte);
        text.extend_from_slice(b"c\r\n\r\n");
        assert!(
            matches!(request(&text, &HeadLimits::default()), Ok(Some(_))),
            "{byte:#x} in a value"
        );
    }
    check_request(
        "GET / HTTP/1.1\r\nA_b!#$%&'*+-.^`|~1: c\r\n\r\n",
        Ok(Some("41 GET / HTTP/1.1|A_b!#$%&'*+-.^`|~1=c")),
    );
}

#[test]
fn number_of_fields_in_a_head_is_limited() {
    let head = |fields: usize| format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(fields));
    let count = |fields: usize, fields_max: usize| {
        let text = head(fields);
        let limits = HeadLimits {
            fields_max,
            ..HeadLimits::default()
        };
        invariants::request_head(text.as_bytes(), &limits);
        let mut lines = LineBuffer::new();
        match parse_request(text.as_bytes(), &limits, &mut lines) {
            Ok(Progress::Complete { head, .. }) => Ok(head.fields.len()),
            Ok(Progress::Partial) => unreachable!("the head is whole"),
            Err(error) => Err(error),
        }
    };
    assert_eq!(count(127, 128), Ok(127));
    assert_eq!(count(128, 128), Ok(128));
    assert_eq!(count(129, 128), Err(HeadError::TooManyFields));
    assert_eq!(
        count(REQUEST_FIELDS_CAPACITY, usize::MAX),
        Ok(REQUEST_FIELDS_CAPACITY)
    );
    assert_eq!(
        count(REQUEST_FIELDS_CAPACITY + 1, usize::MAX),
        Err(HeadError::TooManyFields)
    );
    assert_eq!(count(3, 3), Ok(3));
    assert_eq!(count(4, 3), Err(HeadError::TooManyFields));
    assert_eq!(count(0, 0), Ok(0));
    assert_eq!(count(1, 0), Err(HeadError::TooManyFields));
    assert_eq!(HeadError::TooManyFields.status(), 431);
}

/// A request head of exactly so many bytes.
fn head_of(bytes: usize) -> Vec<u8> {
    let mut text = b"GET / HTTP/1.1\r\nA: ".to_vec();
    text.resize(bytes - 4, b'a');
    text.extend_from_slice(b"\r\n\r\n");
    text
}

#[test]
fn head_is_limited_to_64_kib_by_default() {
    let limits = HeadLimits::default();
    let read = |text: &[u8]| {
        let mut lines = LineBuffer::new();
        parse_request(text, &limits, &mut lines).map(|progress| match progress {
            Progress::Complete { consumed, .. } => Some(consumed),
            Progress::Partial => None,
        })
    };
    assert_eq!(read(&head_of(65_535)), Ok(Some(65_535)));
    assert_eq!(read(&head_of(65_536)), Ok(Some(65_536)));
    assert_eq!(read(&head_of(65_537)), Err(HeadError::TooLarge));
    // a head that cannot end in time is refused before it ends
    assert_eq!(read(&head_of(65_537)[..65_535]), Ok(None));
    assert_eq!(read(&head_of(65_537)[..65_536]), Err(HeadError::TooLarge));
    // content does not count
    let mut with_content = head_of(65_536);
    with_content.resize(100_000, b'x');
    assert_eq!(read(&with_content), Ok(Some(65_536)));
    assert_eq!(HeadError::TooLarge.status(), 431);
}

#[test]
fn small_head_limits_are_enforced() {
    for bytes in 30..40 {
        for bytes_max in 30..40 {
            let limits = HeadLimits {
                bytes_max,
                ..HeadLimits::default()
            };
            let outcome = request(&head_of(bytes), &limits);
            if bytes <= bytes_max {
                assert!(matches!(outcome, Ok(Some(_))));
            } else {
                assert_eq!(outcome, Err(HeadError::TooLarge));
            }
        }
    }
    // empty lines before the request count
    let limits = HeadLimits {
        bytes_max: 20,
        ..HeadLimits::default()
    };
    assert!(matches!(
        request(b"\r\nGET / HTTP/1.1\r\n\r\n", &limits),
        Ok(Some(_))
    ));
    assert_eq!(
        request(b"\r\nGET /a HTTP/1.1\r\n\r\n", &limits),
        Err(HeadError::TooLarge)
    );
}

#[test]
fn overlong_request_line_is_refused_with_414() {
    let limits = HeadLimits {
        bytes_max: 64,
        ..HeadLimits::default()
    };
    let text = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100));
    assert_eq!(
        request(text.as_bytes(), &limits),
        Err(HeadError::RequestLineTooLong)
    );
    assert_eq!(HeadError::RequestLineTooLong.status(), 414);
    let text = format!("HTTP/1.1 200 {}\r\n\r\n", "a".repeat(100));
    assert_eq!(response(text.as_bytes(), &limits), Err(HeadError::TooLarge));
}

#[test]
fn well_formed_response_is_parsed() {
    check_response("HTTP/1.1 200 OK\r\n\r\n", Ok(Some("19 HTTP/1.1 200 OK")));
    check_response(
        "HTTP/1.0 404 Not Found\r\nA: b\r\n\r\nx",
        Ok(Some("32 HTTP/1.0 404 Not Found|A=b")),
    );
    check_response("HTTP/1.1 200 \r\n\r\n", Ok(Some("17 HTTP/1.1 200 ")));
    check_response("HTTP/1.1 200\r\n\r\n", Ok(Some("16 HTTP/1.1 200 ")));
    check_response(
        "HTTP/1.1 100 Continue\r\n\r\n",
        Ok(Some("25 HTTP/1.1 100 Continue")),
    );
    check_response("HTTP/1.1 999 \t!\r\n\r\n", Ok(Some("19 HTTP/1.1 999 \t!")));
    check_response("HTTP/1.1 200 \u{e9}\r\n\r\n", Ok(Some("19 HTTP/1.1 200 ")));
    for text in [
        "",
        "HTTP",
        "HTTP/1.1 ",
        "HTTP/1.1 20",
        "HTTP/1.1 200 O",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\nA: b",
    ] {
        check_response(text, Ok(None));
    }
}

#[test]
fn malformed_status_line_is_refused() {
    for text in [
        "ICY 200 OK\r\n\r\n",
        "<html>",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1\t200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 +20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 000 OK\r\n\r\n",
        "HTTP/1.1 200\tOK\r\n\r\n",
        "HTTP/1.1 200 O\0K\r\n\r\n",
        "HTTP/1.1 200 O\rK\r\n\r\n",
        "HTTP/1.1 200\rX: y\r\n\r\n",
        " HTTP/1.1 200 OK\r\n\r\n",
        "http/1.1 200 OK\r\n\r\n",
        "HTTP/1.32 200 OK\r\n\r\n",
    ] {
        check_response(text, Err(HeadError::StatusLine));
    }
}

#[test]
fn standalone_field_section_ends_with_or_without_an_empty_line() {
    let check = |block: &str, expected: Result<&[(&str, &str)], HeadError>| {
        let mut lines = LineBuffer::new();
        let fields = parse_fields(block.as_bytes(), &mut lines).map(|fields| {
            fields
                .iter()
                .map(|line| (line.name, core::str::from_utf8(line.value).unwrap()))
                .collect::<Vec<_>>()
        });
        assert_eq!(fields, expected.map(<[_]>::to_vec), "{block:?}");
    };
    check("", Ok(&[]));
    check("\r\n", Ok(&[]));
    check("A: b\r\n", Ok(&[("A", "b")]));
    check("A: b\r\n\r\n", Ok(&[("A", "b")]));
    check("A: b\r\nC:\r\n", Ok(&[("A", "b"), ("C", "")]));
    check("A: b\r\n\r\nC: d\r\n", Err(HeadError::AfterEnd));
    check("\r\n\r\n", Err(HeadError::AfterEnd));
    check("A: b", Err(HeadError::LineEnd));
    check("A: b\r", Err(HeadError::LineEnd));
    check("A: b\r\n\r", Err(HeadError::LineEnd));
    check("A", Err(HeadError::LineEnd));
    check("\r", Err(HeadError::LineEnd));
    check("A: b\n", Err(HeadError::BareLf));
    check("A: b\r\n\n", Err(HeadError::BareLf));
    check("\n", Err(HeadError::BareLf));
}

#[test]
fn field_section_keeps_every_line_up_to_its_capacity() {
    for count in [0, 1, 23, 24, 25, 127, 128, 129, FIELDS_CAPACITY] {
        for end in ["", "\r\n"] {
            let block = format!("{}{end}", "A: b\r\n".repeat(count));
            assert_eq!(
                parse_fields(block.as_bytes(), &mut LineBuffer::new()).map(<[_]>::len),
                Ok(count)
            );
        }
    }
    let block = "A: b\r\n".repeat(FIELDS_CAPACITY + 1);
    assert_eq!(
        parse_fields(block.as_bytes(), &mut LineBuffer::new()),
        Err(HeadError::TooManyFields)
    );
}

#[test]
fn line_buffer_is_reusable_for_successive_heads() {
    let mut lines = LineBuffer::new();
    let limits = HeadLimits::default();
    for text in [
        "GET / HTTP/1.1\r\nA: b\r\nC: d\r\n\r\n",
        "GET / HTTP/1.0\r\nE: f\r\n\r\n",
    ] {
        let Ok(Progress::Complete { head, .. }) =
            parse_request(text.as_bytes(), &limits, &mut lines)
        else {
            panic!("{text:?} is not read");
        };
        assert_eq!(
            head.fields.len(),
            if head.version == Version::Http11 {
                2
            } else {
                1
            }
        );
    }
}
