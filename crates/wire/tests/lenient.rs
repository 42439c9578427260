//! Responses that are read although they are not as the grammar has them, and their neighbours that
//! are refused.
//!
//! Every head is read whole and byte by byte, and every repaired one again as it is written: see
//! `invariants`.

mod invariants;

use weir_semantics::Method;
use weir_wire::{
    BodyError, BodyLength, BodyReader, CHUNK_PADDING_BYTES_MAX, FIELDS_CAPACITY, FramingError,
    HeadError, HeadLimits, LineBuffer, Progress, Repairs, parse_fields, parse_response,
    parse_response_leniently, response_body,
};

use invariants::{Ending, content};

/// What a response came to: its head in one line, its framing and what was repaired; or why it is
/// refused.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    Head(String, BodyLength, &'static str),
    BadHead(HeadError),
    BadFraming(FramingError),
    Unfinished,
}

fn word(repairs: Repairs) -> &'static str {
    match (repairs.lines, repairs.mixed_line_ends, repairs.framing) {
        (false, false, false) => "nothing",
        (true, false, false) => "lines",
        (true, true, false) => "mixed lines",
        (false, false, true) => "framing",
        (true, false, true) => "lines and framing",
        _ => "more than can be",
    }
}

fn read_with(text: &str, limits: &HeadLimits) -> Read {
    invariants::lenient_response_head(text.as_bytes(), limits);
    let mut lines = LineBuffer::new();
    match parse_response_leniently(text.as_bytes(), limits, &mut lines) {
        Err(error) => Read::BadHead(error),
        Ok(Progress::Partial) => Read::Unfinished,
        Ok(Progress::Complete {
            head: (head, repairs),
            ..
        }) => match response_body(head.version, Method::Get, head.status, head.fields) {
            Err(error) => Read::BadFraming(error),
            Ok(length) => {
                let mut shown = format!("{} {}", head.version.as_str(), head.status);
                for line in head.fields {
                    shown += &format!("|{}={}", line.name, line.value.escape_ascii());
                }
                Read::Head(shown, length, word(repairs))
            }
        },
    }
}

fn read(text: &str) -> Read {
    read_with(text, &HeadLimits::default())
}

#[track_caller]
fn reads(text: &str, shown: &str, length: BodyLength, repaired: &'static str) {
    assert_eq!(
        read(text),
        Read::Head(shown.into(), length, repaired),
        "{text:?}"
    );
}

#[track_caller]
fn refuses(text: &str, expected: HeadError) {
    assert_eq!(read(text), Read::BadHead(expected), "{text:?}");
}

/// A 200 in HTTP/1.1 with these fields.
#[track_caller]
fn reads_fields(fields: &str, shown: &str, length: BodyLength, repaired: &'static str) {
    let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
    reads(&text, &format!("HTTP/1.1 200{shown}"), length, repaired);
}

#[track_caller]
fn refuses_framing(start: &str, fields: &str, expected: FramingError) {
    let text = format!("{start}\r\n{fields}\r\n");
    assert_eq!(read(&text), Read::BadFraming(expected), "{text:?}");
}

use BodyLength::{Chunked, Exact, None as NoContent, UntilClose};

#[test]
fn well_formed_response_is_read_without_repair() {
    reads(
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200",
        UntilClose,
        "nothing",
    );
    reads(
        "HTTP/1.0 304\r\nA: b\r\n\r\n",
        "HTTP/1.0 304|A=b",
        NoContent,
        "nothing",
    );
    reads_fields(
        "Content-Length: 5\r\n",
        "|Content-Length=5",
        Exact(5),
        "nothing",
    );
    reads_fields(
        "Transfer-Encoding: Chunked\r\n",
        "|Transfer-Encoding=Chunked",
        Chunked,
        "nothing",
    );
    let zero = "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n";
    reads(zero, "HTTP/1.1 204|Content-Length=0", NoContent, "nothing");
}

#[test]
fn lines_of_a_response_head_may_end_in_line_feeds() {
    reads("HTTP/1.1 200 OK\n\n", "HTTP/1.1 200", UntilClose, "lines");
    reads("HTTP/1.1 200\n\n", "HTTP/1.1 200", UntilClose, "lines");
    reads(
        "HTTP/1.0 404 No\nA:b\nC: \n\nbody\n\n",
        "HTTP/1.0 404|A=b|C=",
        UntilClose,
        "lines",
    );
    reads(
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
        "HTTP/1.1 200|Content-Length=2",
        Exact(2),
        "lines",
    );
    for unfinished in [
        "HTTP/1.1 200 OK\n",
        "HTTP/1.1 200 OK\nA: b\n",
        "HTTP/1.1 200 OK\nA",
    ] {
        assert_eq!(read(unfinished), Read::Unfinished, "{unfinished:?}");
    }
}

#[test]
fn mixed_line_ends_are_reported() {
    for text in [
        "HTTP/1.1 200 OK\r\nA: b\n\n",
        "HTTP/1.1 200 OK\r\nA: b\n\r\n",
        "HTTP/1.1 200 OK\nA: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\r\n\n",
    ] {
        reads(text, "HTTP/1.1 200|A=b", UntilClose, "mixed lines");
    }
}

#[test]
fn carriage_return_that_ends_no_line_is_refused() {
    refuses("HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n", HeadError::FieldValue);
    refuses("HTTP/1.1 200 OK\nA: b\rc\n\n", HeadError::FieldValue);
    refuses("HTTP/1.1 200 OK\nA: b\r\r\n\n", HeadError::FieldValue);
    refuses("HTTP/1.1 200 OK\nA\r: b\n\n", HeadError::FieldName);
    refuses("HTTP/1.1 200 O\rK\nA: b\n\n", HeadError::StatusLine);
    refuses("\nHTTP/1.1 200 OK\n\n", HeadError::StatusLine);
    refuses("\r\nHTTP/1.1 200 OK\r\n\r\n", HeadError::StatusLine);
    refuses("HTTP/1.1 200 OK\nA: b\0c\n\n", HeadError::FieldValue);
}

#[test]
fn space_before_a_colon_is_removed_and_elsewhere_in_a_name_refused() {
    reads_fields("A : b\r\nC\t \t:d\r\n", "|A=b|C=d", UntilClose, "lines");
    reads_fields(
        "Transfer-Encoding : chunked\r\n",
        "|Transfer-Encoding=chunked",
        Chunked,
        "lines",
    );
    reads_fields(
        "Content-Length : 5\r\n",
        "|Content-Length=5",
        Exact(5),
        "lines",
    );
    for (fields, expected) in [
        ("A b: c\r\n", HeadError::SpaceInName),
        ("A b : c\r\n", HeadError::SpaceInName),
        ("A : b\r\nC d: e\r\n", HeadError::SpaceInName),
        (" A: b\r\n", HeadError::ObsFold),
        ("A : b\r\n c\r\n", HeadError::ObsFold),
        ("A: b\r\n c\r\n", HeadError::ObsFold),
        ("A : b\r\n\t\r\n", HeadError::ObsFold),
        ("A : b\r\nC\r\n", HeadError::FieldName),
        ("A : b\r\n: c\r\n", HeadError::FieldName),
        (" : c\r\n", HeadError::ObsFold),
    ] {
        refuses(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"), expected);
    }
    // a length beside a coding contradicts it, however either is written
    refuses_framing(
        "HTTP/1.1 200 OK",
        "Content-Length: 5\r\nTransfer-Encoding : chunked\r\n",
        FramingError::BothLengths,
    );
}

#[test]
fn higher_minor_version_is_read_as_http11() {
    for minor in 2..=9 {
        let text = format!("HTTP/1.{minor} 200 OK\r\nA: b\r\n\r\n");
        reads(&text, "HTTP/1.1 200|A=b", UntilClose, "lines");
    }
    for text in [
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/0.9 200 OK\r\n\r\n",
        "HTTP/3.1 200 OK\n\n",
    ] {
        refuses(text, HeadError::UnsupportedVersion);
    }
    for text in [
        "HTTP/1.10 200 OK\r\n\r\n",
        "HTTP/1.x 200 OK\r\n\r\n",
        "http/1.2 200 OK\r\n\r\n",
        "HTTP/1.2  200 OK\r\n\r\n",
        "HTTP/1.2 20 OK\r\n\r\n",
        "HTTP/1.2 2000 OK\r\n\r\n",
        "HTTP/1.2 099 OK\r\n\r\n",
        "HTTP/1.2\t200 OK\r\n\r\n",
        "HTTP/1.2 200\tOK\n\n",
    ] {
        refuses(text, HeadError::StatusLine);
    }
}

#[test]
fn equal_content_lengths_are_merged_into_one() {
    for fields in [
        "Content-Length: 5\r\ncontent-length: 5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: 5,5 ,\t5\r\n",
        "Content-Length: 5, 5\r\nContent-Length: 5\r\n",
    ] {
        reads_fields(fields, "|Content-Length=5", Exact(5), "framing");
    }
    reads_fields(
        "A: b\r\nContent-Length: 5\r\nC: d\r\nContent-Length: 5\r\nE: f\r\n",
        "|A=b|Content-Length=5|C=d|E=f",
        Exact(5),
        "framing",
    );
    let both = "HTTP/1.1 200 OK\nContent-Length: 5\nContent-Length: 5\n\n";
    reads(
        both,
        "HTTP/1.1 200|Content-Length=5",
        Exact(5),
        "lines and framing",
    );
}

#[test]
fn differing_or_malformed_content_lengths_are_refused() {
    use FramingError::{BothLengths, ContentLength, ContentLengthTooLarge, Lookalike};
    let repeated = FramingError::RepeatedContentLength;
    for (fields, expected) in [
        ("Content-Length: 5\r\nContent-Length: 6\r\n", repeated),
        ("Content-Length: 5\r\nContent-Length: 05\r\n", repeated),
        ("Content-Length: 5\r\nContent-Length: \r\n", repeated),
        ("Content-Length: 5, 5\r\nContent-Length: 6\r\n", repeated),
        ("Content-Length: 5, 6\r\n", ContentLength),
        ("Content-Length: 5, 05\r\n", ContentLength),
        ("Content-Length: 5,\r\n", ContentLength),
        ("Content-Length: ,5\r\n", ContentLength),
        ("Content-Length: 5 5\r\n", ContentLength),
        ("Content-Length: +5, +5\r\n", ContentLength),
        ("Content-Length: 5; 5\r\n", ContentLength),
        ("Content-Length: \r\n", ContentLength),
        (
            "Content-Length: 9223372036854775808\r\n",
            ContentLengthTooLarge,
        ),
        (
            "Content-Length: 9223372036854775808, 9223372036854775808\r\n",
            ContentLengthTooLarge,
        ),
        (
            "Content-Length: 00000000000000000005, 00000000000000000005\r\n",
            ContentLength,
        ),
        (
            "Content-Length: 5\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            repeated,
        ),
        (
            "Content-Length: 5, 5\r\nTransfer-Encoding: chunked\r\n",
            BothLengths,
        ),
        ("Content-Length: 5, 5\r\nContent_Length: 6\r\n", Lookalike),
    ] {
        refuses_framing("HTTP/1.1 200 OK", fields, expected);
    }
}

#[test]
fn empty_elements_beside_chunked_are_ignored() {
    for value in ["chunked,", ",chunked", ", ,chunked ,\t,", ",,,,,,,,chunked"] {
        reads_fields(
            &format!("Transfer-Encoding: {value}\r\n"),
            "|Transfer-Encoding=chunked",
            Chunked,
            "framing",
        );
    }
    let odd = FramingError::TransferEncoding;
    for (fields, expected) in [
        ("Transfer-Encoding: ,,,,,,,,,chunked\r\n", odd),
        ("Transfer-Encoding: ,\r\n", odd),
        ("Transfer-Encoding:\r\n", odd),
        ("Transfer-Encoding: chunked, chunked\r\n", odd),
        ("Transfer-Encoding: chunked, identity\r\n", odd),
        ("Transfer-Encoding: chunked;q=1,\r\n", odd),
        ("Transfer-Encoding: \"chunked\",\r\n", odd),
        ("Transfer-Encoding: xchunked,\r\n", odd),
        (
            "Transfer-Encoding: gzip, chunked\r\n",
            FramingError::UnknownCoding,
        ),
        (
            "Transfer-Encoding: chunked,\r\nTransfer-Encoding: chunked\r\n",
            FramingError::RepeatedTransferEncoding,
        ),
        (
            "Transfer-Encoding: chunked,\r\nContent-Length: 5\r\n",
            FramingError::BothLengths,
        ),
    ] {
        refuses_framing("HTTP/1.1 200 OK", fields, expected);
    }
    refuses_framing(
        "HTTP/1.0 200 OK",
        "Transfer-Encoding: chunked,\r\n",
        FramingError::TransferEncodingInHttp10,
    );
}

#[test]
fn framing_fields_of_1xx_and_204_responses_are_dropped() {
    for status in [100, 103, 199, 204] {
        for fields in [
            "Content-Length: 5\r\n",
            "Content-Length: 0\r\nContent-Length: 0\r\n",
            "Content-Length: 0, 0\r\n",
            "Transfer-Encoding: chunked\r\n",
            "Transfer-Encoding: chunked,\r\n",
        ] {
            let text = format!("HTTP/1.1 {status} X\r\nA: b\r\n{fields}\r\nbytes");
            reads(
                &text,
                &format!("HTTP/1.1 {status}|A=b"),
                NoContent,
                "framing",
            );
        }
        let start = format!("HTTP/1.1 {status} X");
        for (fields, expected) in [
            (
                "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                FramingError::BothLengths,
            ),
            (
                "Content-Length: 5\r\nContent-Length: 6\r\n",
                FramingError::RepeatedContentLength,
            ),
            ("Content-Length: x\r\n", FramingError::ContentLength),
            (
                "Transfer-Encoding: gzip, chunked\r\n",
                FramingError::UnknownCoding,
            ),
        ] {
            refuses_framing(&start, fields, expected);
        }
    }
    let interim = "HTTP/1.1 100 Continue\r\nContent-Length: 0\r\n\r\n";
    reads(interim, "HTTP/1.1 100", NoContent, "framing");
}

#[test]
fn number_of_response_fields_is_limited() {
    let read = |count: usize, fields_max: usize, end: &str| {
        let text = format!(
            "HTTP/1.1 200 OK{end}{}{end}",
            format!("A: b{end}").repeat(count)
        );
        let limits = HeadLimits {
            fields_max,
            ..HeadLimits::default()
        };
        let mut lines = LineBuffer::new();
        let strict = parse_response(text.as_bytes(), &limits, &mut lines)
            .map(|progress| matches!(progress, Progress::Complete { head, .. } if head.fields.len() == count));
        let mut lines = LineBuffer::new();
        let lenient = parse_response_leniently(text.as_bytes(), &limits, &mut lines)
            .map(|progress| matches!(progress, Progress::Complete { head, .. } if head.0.fields.len() == count));
        assert!(end == "\n" || strict == lenient, "{count} of {fields_max}");
        lenient
    };
    for end in ["\r\n", "\n"] {
        for fields_max in [0, 3, 127, 128, 129, 512] {
            assert_eq!(read(fields_max, fields_max, end), Ok(true));
            assert_eq!(
                read(fields_max + 1, fields_max, end),
                Err(HeadError::TooManyFields)
            );
        }
        assert_eq!(read(FIELDS_CAPACITY, usize::MAX, end), Ok(true));
        let beyond = read(FIELDS_CAPACITY + 1, usize::MAX, end);
        assert_eq!(beyond, Err(HeadError::TooManyFields));
    }
    let section = "A: b\r\n".repeat(FIELDS_CAPACITY);
    let count = parse_fields(section.as_bytes(), &mut LineBuffer::new()).map(<[_]>::len);
    assert_eq!(count, Ok(FIELDS_CAPACITY));
}

#[test]
fn size_of_a_repaired_head_is_limited() {
    let text = "HTTP/1.1 200 OK\nA : b\n\n";
    let limit = |bytes_max| HeadLimits {
        bytes_max,
        ..HeadLimits::default()
    };
    let shown = "HTTP/1.1 200|A=b".to_owned();
    let whole = Read::Head(shown, UntilClose, "lines");
    assert_eq!(read_with(text, &limit(text.len())), whole);
    let beyond = read_with(text, &limit(text.len() - 1));
    assert_eq!(beyond, Read::BadHead(HeadError::TooLarge));
}

/// Content in chunks, read leniently: the data and whether a line was padded, or why it is refused.
fn chunks(text: &str) -> Result<(String, bool), BodyError> {
    invariants::body(text.as_bytes(), Chunked, HeadLimits::default());
    let mut reader = BodyReader::lenient(Chunked, HeadLimits::default());
    let content = content(&mut reader, &[text.as_bytes()]);
    match content.ending {
        Ending::Refused(error) => Err(error),
        Ending::Unfinished => panic!("not whole: {text:?}"),
        Ending::Whole { .. } => {
            let data = String::from_utf8(content.data).expect("text");
            Ok((data, reader.is_repaired()))
        }
    }
}

fn one_chunk(line: &str) -> Result<(String, bool), BodyError> {
    chunks(&format!("{line}\r\nhello\r\n0\r\n\r\n"))
}

#[test]
fn padding_in_a_chunk_line_is_accepted_and_reported() {
    let hello = |is_repaired| Ok(("hello".to_owned(), is_repaired));
    for line in [
        "5",
        "05",
        "0000000000000005",
        "5;a",
        "5;a=b;c=\"d \"",
        "5;a=\" ; \"",
    ] {
        assert_eq!(one_chunk(line), hello(false), "{line:?}");
    }
    for line in [
        "5 ",
        "5\t ",
        "5      ",
        "00000000000000005",
        "5 ;a",
        "5; a",
        "5;a ",
        "5;a = b",
        "5;a =\tb ; c=\"d\" ",
        "5 ; a ; b ",
    ] {
        assert_eq!(one_chunk(line), hello(true), "{line:?}");
    }
    // the last chunk as well
    assert_eq!(chunks("5\r\nhello\r\n0 \r\n\r\n"), hello(true));
    assert_eq!(
        chunks("5\r\nhello\r\n00000000000000000\r\n\r\n"),
        hello(true)
    );
}

#[test]
fn ambiguous_or_overlong_chunk_line_is_refused() {
    use BodyError::{ChunkExtension, ChunkLineEnd, ChunkPadding, ChunkSize, ChunkSizeTooLong};
    for (line, expected) in [
        (" 5", ChunkSize),
        ("\t5", ChunkSize),
        ("", ChunkSize),
        (" ", ChunkSize),
        ("5 5", ChunkExtension),
        ("0 5", ChunkExtension),
        ("0x5", ChunkSize),
        ("+5", ChunkSize),
        ("5\n", ChunkLineEnd),
        ("5 \n", ChunkLineEnd),
        ("5\r \n", ChunkLineEnd),
        ("5 \r \n", ChunkLineEnd),
        ("5;", ChunkExtension),
        ("5; ", ChunkExtension),
        ("5;a=", ChunkExtension),
        ("5;a= ", ChunkExtension),
        ("5;a b", ChunkExtension),
        ("5;a=b c", ChunkExtension),
        ("5;a=b =c", ChunkExtension),
        ("5 =a", ChunkExtension),
        ("5 \u{b}", ChunkExtension),
        ("10000000000000005", ChunkSizeTooLong),
        ("010000000000000005", ChunkSizeTooLong),
        ("ffffffffffffffff0", ChunkSizeTooLong),
    ] {
        assert_eq!(one_chunk(line), Err(expected), "{line:?}");
    }
    let padding = usize::from(CHUNK_PADDING_BYTES_MAX);
    let zeros = |count: usize| format!("{}5", "0".repeat(count));
    let spaces = |count: usize| format!("5{}", " ".repeat(count));
    assert!(one_chunk(&zeros(15 + padding)).is_ok());
    assert_eq!(one_chunk(&zeros(16 + padding)), Err(ChunkPadding));
    assert!(one_chunk(&spaces(padding)).is_ok());
    assert_eq!(one_chunk(&spaces(padding + 1)), Err(ChunkPadding));
    // each line has its own
    let many = format!("{}\r\na\r\n", "1".to_owned() + &" ".repeat(padding)).repeat(100);
    let whole = chunks(&format!("{many}0\r\n\r\n"));
    assert_eq!(whole, Ok(("a".repeat(100), true)));
}

#[test]
fn strict_reader_refuses_padded_chunk_lines() {
    for line in ["5 ", "00000000000000005", "5 ;a", "5; a", "5;a = b"] {
        let text = format!("{line}\r\nhello\r\n0\r\n\r\n");
        let mut reader = BodyReader::new(Chunked, HeadLimits::default());
        let ending = content(&mut reader, &[text.as_bytes()]).ending;
        assert!(matches!(ending, Ending::Refused(_)), "{line:?}");
        assert!(!reader.is_repaired());
    }
}
