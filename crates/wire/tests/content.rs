//! Content taken out of its framing: chunk tricks, trailers, and content that is cut short.
//!
//! Every input is also fed byte by byte and cut in two, so each table entry is a check of the
//! invariants as well.

mod invariants;

use weir_wire::{
    BodyError, BodyEvent, BodyLength, BodyReader, BodyStep, EXTENSION_BYTES_MAX, HeadError,
    HeadLimits, Incomplete,
};

use BodyError::{
    ChunkDataEnd, ChunkExtension, ChunkLineEnd, ChunkSize, ChunkSizeTooLong, ExtensionsTooLarge,
    Trailer,
};
use invariants::{Ending, content};

/// `expected`: the content, the trailers kept, and the bytes that belong to the next message.
#[track_caller]
fn check_whole(text: impl AsRef<[u8]>, expected: (&str, &str, &str)) {
    let text = text.as_ref();
    let limits = HeadLimits::default();
    invariants::body(text, BodyLength::Chunked, limits);
    let got = content(&mut BodyReader::new(BodyLength::Chunked, limits), &[text]);
    let Ending::Whole { consumed, trailers } = got.ending else {
        panic!("{} is not whole: {:?}", text.escape_ascii(), got.ending);
    };
    let left = &text[consumed..];
    assert_eq!(
        (got.data.as_slice(), trailers.as_slice(), left),
        (
            expected.0.as_bytes(),
            expected.1.as_bytes(),
            expected.2.as_bytes()
        ),
        "{}",
        text.escape_ascii()
    );
}

#[track_caller]
fn check_refused(text: impl AsRef<[u8]>, expected: BodyError) {
    let text = text.as_ref();
    let limits = HeadLimits::default();
    invariants::body(text, BodyLength::Chunked, limits);
    let got = content(&mut BodyReader::new(BodyLength::Chunked, limits), &[text]);
    assert_eq!(
        got.ending,
        Ending::Refused(expected),
        "{}",
        text.escape_ascii()
    );
}

#[test]
fn well_formed_chunks_are_decoded() {
    check_whole("0\r\n\r\n", ("", "", ""));
    check_whole("5\r\nhello\r\n0\r\n\r\n", ("hello", "", ""));
    check_whole(
        "5\r\nhello\r\n7\r\n, world\r\n0\r\n\r\nGET",
        ("hello, world", "", "GET"),
    );
    check_whole(
        "A\r\n0123456789\r\na\r\n0123456789\r\n000\r\n\r\n",
        ("01234567890123456789", "", ""),
    );
    check_whole(
        "0000000000000001\r\nx\r\n0000000000000000\r\n\r\n",
        ("x", "", ""),
    );
    check_whole("2\r\n\r\n\r\n0\r\n\r\n\r\n", ("\r\n", "", "\r\n"));
    check_whole("5\r\n0\r\n\r\n\r\n0\r\n\r\n", ("0\r\n\r\n", "", ""));
}

#[test]
fn chunk_size_other_than_hex_digits_is_refused() {
    for line in [
        "", " 5", "5 ", "5\t", "\t5", "+5", "-5", "-0", "0x5", "0X5", "5_0", "_5", "g", "5h",
        "5,5", "5.0", "\"5\"", "\0", "5\0", "\u{ff15}", ";a", "5 ;a", "5 5",
    ] {
        check_refused(format!("{line}\r\nhello\r\n0\r\n\r\n"), ChunkSize);
    }
    check_refused("5\r\nhello\r\n\r\n0\r\n\r\n", ChunkSize);
    check_refused("5\r\nhello\r\n 0\r\n\r\n", ChunkSize);
}

#[test]
fn chunk_size_is_limited_to_16_digits() {
    let largest = "ffffffffffffffff\r\n";
    let mut reader = BodyReader::new(BodyLength::Chunked, HeadLimits::default());
    let input = format!("{largest}data");
    assert_eq!(
        reader.step(input.as_bytes()),
        Ok(BodyStep {
            consumed: 22,
            event: BodyEvent::Data(b"data")
        })
    );
    assert_eq!(reader.at_eof(), Err(Incomplete::Unterminated));
    for line in [
        "10000000000000000",
        "00000000000000005",
        "fffffffffffffffff",
        "00000000000000000",
    ] {
        check_refused(format!("{line}\r\n"), ChunkSizeTooLong);
    }
    check_whole("0000000000000005\r\nhello\r\n0\r\n\r\n", ("hello", "", ""));
}

#[test]
fn chunk_line_or_data_without_crlf_is_refused() {
    check_refused("5\nhello\r\n0\r\n\r\n", ChunkLineEnd);
    check_refused("5\rhello\r\n0\r\n\r\n", ChunkLineEnd);
    check_refused("5\r\rhello\r\n0\r\n\r\n", ChunkLineEnd);
    check_refused("5;a\nhello\r\n0\r\n\r\n", ChunkLineEnd);
    check_refused("5;a=\"b\nhello\r\n0\r\n\r\n", ChunkLineEnd);
    check_refused("0\n\n", ChunkLineEnd);
    check_refused("\n", ChunkLineEnd);
    check_refused("5\r\nhello\n0\r\n\r\n", ChunkDataEnd);
    check_refused("5\r\nhello\r0\r\n\r\n", ChunkDataEnd);
    check_refused("5\r\nhello0\r\n\r\n", ChunkDataEnd);
    check_refused("5\r\nhello!\r\n0\r\n\r\n", ChunkDataEnd);
    check_refused("6\r\nhello\r\n0\r\n\r\n", ChunkDataEnd);
    check_refused("7\r\nhello\r\n0\r\n\r\n", ChunkDataEnd);
}

#[test]
fn only_well_formed_chunk_extensions_are_accepted() {
    for extension in [
        ";a",
        ";a=b",
        ";a;b",
        ";a=b;c=d",
        ";a=\"\"",
        ";a=\"b c;d\"",
        ";a=\"b\\\"c\"",
        ";a=\"\\\\\"",
        ";a=\"\t\u{e9}\"",
        ";a=\"\\ \"",
        ";a=\"b\";c",
    ] {
        check_whole(
            format!("5{extension}\r\nhello\r\n0{extension}\r\n\r\n"),
            ("hello", "", ""),
        );
    }
    for extension in [
        ";",
        ";;a",
        ";a;",
        ";a=",
        ";=b",
        ";a==b",
        "; a",
        ";a ",
        ";a =b",
        ";a= b",
        ";a=b ",
        ";a b",
        ";a=\"b\"c",
        ";a=\"b\"=c",
        ";a=b\"c\"",
        ";a=\"b\0\"",
        ";a=\"\\\0\"",
        ";\0",
        ";a=\0",
        ";a\x7f",
        ";a=\"b",
        ";a=\"b\\",
        ";a=\u{e9}",
        ";a,b",
        ";a\tb",
    ] {
        check_refused(
            format!("5{extension}\r\nhello\r\n0\r\n\r\n"),
            ChunkExtension,
        );
    }
}

#[test]
fn chunk_extension_bytes_are_limited_per_message() {
    let max = usize::try_from(EXTENSION_BYTES_MAX).unwrap();
    let text = |bytes: usize| format!("0;{}\r\n\r\n", "a".repeat(bytes - 1));
    let ending = |text: &str| {
        content(
            &mut BodyReader::new(BodyLength::Chunked, HeadLimits::default()),
            &[text.as_bytes()],
        )
        .ending
    };
    assert!(matches!(ending(&text(max)), Ending::Whole { .. }));
    assert_eq!(ending(&text(max + 1)), Ending::Refused(ExtensionsTooLarge));
    // many small ones are no better than one that is large
    let many = |chunks: usize| format!("{}0\r\n\r\n", "1;abc\r\nx\r\n".repeat(chunks));
    assert!(matches!(ending(&many(max / 4)), Ending::Whole { .. }));
    assert_eq!(
        ending(&many(max / 4 + 1)),
        Ending::Refused(ExtensionsTooLarge)
    );
}

#[test]
fn trailers_are_kept_except_forbidden_fields() {
    check_whole("0\r\nA: b\r\n\r\n", ("", "A: b\r\n", ""));
    check_whole(
        "0\r\nA:b\r\nC:  d \r\n\r\nGET",
        ("", "A: b\r\nC: d\r\n", "GET"),
    );
    check_whole("1\r\nx\r\n0;e\r\nA:\r\n\r\n", ("x", "A: \r\n", ""));
    for name in [
        "Transfer-Encoding",
        "transfer-encoding",
        "Content-Length",
        "Content_Length",
        "Host",
        "Connection",
        "Trailer",
        "TE",
        "Upgrade",
        "Authorization",
        "Content-Encoding",
        "Content-Type",
        "Content-Range",
        "Set-Cookie",
        "Cache-Control",
        "Keep-Alive",
        "Proxy-Connection",
        "Age",
        "Vary",
        "Location",
        "If-None-Match",
        "Range",
        "X-Forwarded-For",
    ] {
        check_whole(
            format!("0\r\nA: b\r\n{name}: c\r\nD: e\r\n\r\n"),
            ("", "A: b\r\nD: e\r\n", ""),
        );
    }
}

#[test]
fn malformed_trailer_is_refused() {
    for (section, expected) in [
        ("A : b\r\n\r\n", HeadError::SpaceInName),
        (" A: b\r\n\r\n", HeadError::ObsFold),
        ("A: b\r\n c\r\n\r\n", HeadError::ObsFold),
        ("A: b\0\r\n\r\n", HeadError::FieldValue),
        (": b\r\n\r\n", HeadError::FieldName),
        ("A\r\n\r\n", HeadError::FieldName),
        ("GET / HTTP/1.1\r\n\r\n", HeadError::SpaceInName),
        ("A: b\n\r\n", HeadError::BareLf),
        ("A: b\r\n\n", HeadError::BareLf),
        ("\n", HeadError::BareLf),
        ("\rA", HeadError::LineEnd),
        ("A: b\r\n\r\r\n", HeadError::LineEnd),
        ("A: b\rC: d\r\n\r\n", HeadError::FieldValue),
    ] {
        check_refused(format!("0\r\n{section}"), Trailer(expected));
    }
}

#[test]
fn trailers_are_limited_in_bytes_and_number_of_fields() {
    let ending = |text: &str, bytes_max: usize, fields_max: usize| {
        let limits = HeadLimits {
            bytes_max,
            fields_max,
        };
        invariants::body(text.as_bytes(), BodyLength::Chunked, limits);
        content(
            &mut BodyReader::new(BodyLength::Chunked, limits),
            &[text.as_bytes()],
        )
        .ending
    };
    let text = "0\r\nA: b\r\nC: d\r\n\r\n";
    assert!(matches!(ending(text, 14, 128), Ending::Whole { .. }));
    assert_eq!(
        ending(text, 13, 128),
        Ending::Refused(Trailer(HeadError::TooLarge))
    );
    assert!(matches!(ending(text, 100, 2), Ending::Whole { .. }));
    assert_eq!(
        ending(text, 100, 1),
        Ending::Refused(Trailer(HeadError::TooManyFields))
    );
    assert!(matches!(ending("0\r\n\r\n", 2, 0), Ending::Whole { .. }));
    let many = |lines: usize| format!("0\r\n{}\r\n", "A: b\r\n".repeat(lines));
    assert!(matches!(
        ending(&many(1024), 65_536, usize::MAX),
        Ending::Whole { .. }
    ));
    assert_eq!(
        ending(&many(1025), 65_536, usize::MAX),
        Ending::Refused(Trailer(HeadError::TooManyFields))
    );
}

#[test]
fn truncated_content_is_reported_as_incomplete() {
    let text = b"5;a=\"b\"\r\nhello\r\n0\r\nA: b\r\n\r\n";
    for length in 0..text.len() {
        let mut reader = BodyReader::new(BodyLength::Chunked, HeadLimits::default());
        assert_eq!(
            content(&mut reader, &[&text[..length]]).ending,
            Ending::Unfinished
        );
        assert!(!reader.is_ended());
        assert_eq!(reader.trailers(), b"");
        assert_eq!(
            reader.at_eof(),
            Err(Incomplete::Unterminated),
            "cut at {length}"
        );
    }
    for length in 0..5_usize {
        let mut reader = BodyReader::new(BodyLength::Exact(5), HeadLimits::default());
        content(&mut reader, &[&b"hello"[..length]]);
        assert_eq!(
            reader.at_eof(),
            Err(Incomplete::Short {
                missing_bytes: 5 - length as u64
            })
        );
    }
}

#[test]
fn content_of_known_length_does_not_consume_the_next_message() {
    let mut reader = BodyReader::new(BodyLength::Exact(5), HeadLimits::default());
    assert_eq!(reader.remaining_exact(), Some(5));
    assert_eq!(
        reader.step(b"hel"),
        Ok(BodyStep {
            consumed: 3,
            event: BodyEvent::Data(b"hel")
        })
    );
    assert_eq!(
        (reader.remaining_exact(), reader.is_ended()),
        (Some(2), false)
    );
    assert_eq!(
        reader.step(b""),
        Ok(BodyStep {
            consumed: 0,
            event: BodyEvent::NeedMore
        })
    );
    assert_eq!(
        reader.step(b"loGET"),
        Ok(BodyStep {
            consumed: 2,
            event: BodyEvent::Data(b"lo")
        })
    );
    assert_eq!(
        (reader.remaining_exact(), reader.is_ended()),
        (Some(0), true)
    );
    assert_eq!(
        reader.step(b"GET"),
        Ok(BodyStep {
            consumed: 0,
            event: BodyEvent::End
        })
    );
    assert_eq!(reader.at_eof(), Ok(()));
}

#[test]
fn absent_content_does_not_consume_the_next_message() {
    for length in [BodyLength::None, BodyLength::Exact(0)] {
        let mut reader = BodyReader::new(length, HeadLimits::default());
        assert!(reader.is_ended());
        assert_eq!(reader.remaining_exact(), Some(0));
        assert_eq!(
            reader.step(b"GET"),
            Ok(BodyStep {
                consumed: 0,
                event: BodyEvent::End
            })
        );
        assert_eq!(reader.at_eof(), Ok(()));
    }
}

#[test]
fn content_until_close_ends_only_at_the_close() {
    let mut reader = BodyReader::new(BodyLength::UntilClose, HeadLimits::default());
    assert_eq!(
        reader.step(b"0\r\n\r\n"),
        Ok(BodyStep {
            consumed: 5,
            event: BodyEvent::Data(b"0\r\n\r\n")
        })
    );
    assert_eq!((reader.remaining_exact(), reader.is_ended()), (None, false));
    assert_eq!(reader.at_eof(), Ok(()));
    assert!(reader.is_ended());
    assert_eq!(
        reader.step(b""),
        Ok(BodyStep {
            consumed: 0,
            event: BodyEvent::End
        })
    );
}

#[test]
fn reader_repeats_its_first_error() {
    let mut reader = BodyReader::new(BodyLength::Chunked, HeadLimits::default());
    assert_eq!(reader.step(b"x"), Err(ChunkSize));
    assert_eq!(reader.step(b"0\r\n\r\n"), Err(ChunkSize));
    assert!(!reader.is_ended());
    assert_eq!(reader.at_eof(), Err(Incomplete::Unterminated));
}

#[test]
fn only_remaining_content_can_be_skipped() {
    let limits = HeadLimits::default();
    let mut exact = BodyReader::new(BodyLength::Exact(10), limits);
    assert_eq!(exact.content_ahead(), 10);
    assert!(
        !exact.skip_content(11),
        "the next message begins among them"
    );
    assert!(exact.skip_content(4) && exact.skip_content(0));
    assert_eq!(exact.remaining_exact(), Some(6));
    assert!(exact.skip_content(6) && exact.is_ended());
    assert!(!exact.skip_content(1));

    let mut chunked = BodyReader::new(BodyLength::Chunked, limits);
    assert!(!chunked.skip_content(1), "a chunk line comes first");
    assert_eq!(chunked.step(b"a\r\n").map(|step| step.consumed), Ok(3));
    assert_eq!(chunked.content_ahead(), 10);
    assert!(!chunked.skip_content(11));
    assert!(chunked.skip_content(10));
    assert_eq!(chunked.content_ahead(), 0);
    let rest = b"\r\n1\r\nx\r\n0\r\n\r\nnext";
    let got = content(&mut chunked, &[rest]);
    assert_eq!(got.data, b"x");
    assert!(matches!(got.ending, Ending::Whole { consumed, .. } if consumed == rest.len() - 4));

    let mut to_close = BodyReader::new(BodyLength::UntilClose, limits);
    assert!(to_close.skip_content(u64::MAX) && !to_close.is_ended());
    assert!(!BodyReader::new(BodyLength::None, limits).skip_content(1));
}
