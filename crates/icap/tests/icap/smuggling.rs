//! Bytes that two readers may read differently, on both sides: all are refused by name.

use weir_icap::{EncapsulatedError, MessageError, ServerError};
use weir_wire::{BodyError, HeadError};

use crate::events::Stop;
use crate::script::{REQMOD, RESPMOD, RESPONSE, Shape, message, modified, receive, serve, server};

/// The last word of both sides is `expected`, if this is the content of a request or an answer.
fn check_content(content: &str, expected: MessageError) {
    let head = format!("{RESPONSE}{content}");
    let answer = modified("res-hdr=0, res-body=25", &head);
    let words = receive(&mut RESPMOD.sent(b""), &answer);
    let error = format!("error Message({expected:?})");
    assert_eq!(words.last(), Some(&error), "answer with {content:?}");
    let lines = "Host: e\r\nEncapsulated: res-hdr=0, res-body=25\r\n";
    let request = message("RESPMOD icap://e/s ICAP/1.0", lines, &head);
    let (words, stop) = serve(&mut server(), &request);
    assert_eq!(
        (words.last(), stop),
        (Some(&error), Stop::Failed),
        "request with {content:?}"
    );
}

/// The only word of both sides is `expected`, if this is in the ICAP head.
fn check_lines(lines: &str, expected: MessageError) {
    let shape = Shape {
        allow_204: true,
        ..REQMOD
    };
    let answer = message("ICAP/1.0 204 No", lines, "");
    let words = receive(&mut shape.sent(b""), &answer);
    let error = vec![format!("error Message({expected:?})")];
    assert_eq!(words, error, "answer with {lines:?}");
    let request = message(
        "OPTIONS icap://e/s ICAP/1.0",
        &format!("Host: e\r\n{lines}"),
        "",
    );
    let (words, stop) = serve(&mut server(), &request);
    assert_eq!(
        (words, stop),
        (error, Stop::Failed),
        "request with {lines:?}"
    );
}

#[test]
fn ambiguous_icap_head_is_refused() {
    use MessageError as E;
    for (lines, expected) in [
        ("A: b\n", E::Head(HeadError::BareLf)),
        ("A: b\n\r\n", E::Head(HeadError::BareLf)),
        ("A : b\r\n", E::Head(HeadError::SpaceInName)),
        (
            "Encapsulated : null-body=0\r\n",
            E::Head(HeadError::SpaceInName),
        ),
        ("Allow: b\r\n c: d\r\n", E::Head(HeadError::ObsFold)),
        ("A: b\rC: d\r\n", E::Head(HeadError::FieldValue)),
        ("A: \0\r\n", E::Head(HeadError::FieldValue)),
        (": b\r\n", E::Head(HeadError::FieldName)),
        ("A\r\n", E::Head(HeadError::FieldName)),
        ("Transfer-Encoding: chunked\r\n", E::FramingField),
        ("Content-Length: 1\r\n", E::FramingField),
        ("Content-Length: 0, 0\r\n", E::FramingField),
        (
            "Encapsulated: null-body=0\r\nEncapsulated: null-body=0\r\n",
            E::RepeatedField("Encapsulated"),
        ),
        (
            "Encapsulated: req-body=0\r\n",
            E::Encapsulated(EncapsulatedError::PartNotAllowed),
        ),
    ] {
        check_lines(lines, expected);
    }
}

#[test]
fn ambiguous_chunk_is_refused() {
    use BodyError as B;
    for (content, expected) in [
        ("5\nhello\r\n", B::ChunkLineEnd),
        ("5\r\nhello\n0\r\n\r\n", B::ChunkDataEnd),
        ("5\r\nhello0\r\n\r\n", B::ChunkDataEnd),
        ("4\r\nhello\r\n0\r\n\r\n", B::ChunkDataEnd),
        (" 5\r\nhello\r\n", B::ChunkSize),
        ("5 \r\nhello\r\n", B::ChunkSize),
        ("-5\r\nhello\r\n", B::ChunkSize),
        ("0x5\r\nhello\r\n", B::ChunkSize),
        ("5_0\r\nhello\r\n", B::ChunkSize),
        ("\r\n5\r\nhello\r\n", B::ChunkSize),
        ("10000000000000000\r\n", B::ChunkSizeTooLong),
        ("00000000000000005\r\nhello\r\n", B::ChunkSizeTooLong),
        ("0\r\nA : b\r\n\r\n", B::Trailer(HeadError::SpaceInName)),
        ("0\r\nA: b\n\r\n", B::Trailer(HeadError::BareLf)),
    ] {
        check_content(content, MessageError::Content(expected));
    }
    for content in [
        "5;a=b\r\nhello\r\n",
        "0;a\r\n\r\n",
        "0; use-original-body=5\r\n\r\n",
    ] {
        check_content(content, MessageError::ChunkExtension);
    }
    check_content("0; ieof\r\n\r\n", MessageError::IeofOutsidePreview);
}

#[test]
fn chunk_of_the_greatest_size_does_not_end_the_content() {
    let content = format!("{RESPONSE}ffffffffffffffff\r\nhello\r\n0\r\n\r\n");
    let answer = modified("res-hdr=0, res-body=25", &content);
    let mut client = RESPMOD.sent(b"");
    let words = receive(&mut client, &answer);
    assert_eq!(words[1..], [r"content hello\r\n0\r\n\r\n"]);
    assert!(client.at_eof().is_err());
}

#[test]
fn ambiguous_encapsulated_head_is_refused() {
    for (head, expected) in [
        ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", HeadError::SpaceInName),
        ("HTTP/1.1 200 OK\r\nA: b\n\r\n", HeadError::BareLf),
        ("HTTP/1.1 200 OK\nA: b\r\n\r\n", HeadError::BareLf),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", HeadError::StatusLine),
        ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", HeadError::ObsFold),
        ("HTTP/3.0 200 OK\r\n\r\n", HeadError::UnsupportedVersion),
    ] {
        let list = format!("res-hdr=0, null-body={}", head.len());
        let error = format!("error Message({:?})", MessageError::ResponseHead(expected));
        let words = receive(&mut RESPMOD.sent(b""), &modified(&list, head));
        assert_eq!(words, [error.as_str()], "{head:?}");
        let lines = format!("Host: e\r\nEncapsulated: {list}\r\n");
        let request = message("RESPMOD icap://e/s ICAP/1.0", &lines, head);
        assert_eq!(
            serve(&mut server(), &request).0,
            [error.as_str()],
            "{head:?}"
        );
    }
}

#[test]
fn wrong_parts_of_a_request_are_refused_by_name() {
    use EncapsulatedError as E;
    for (method, list, expected) in [
        ("REQMOD", "null-body=0", E::NoHead),
        ("REQMOD", "req-body=0", E::NoHead),
        ("REQMOD", "res-hdr=0, res-body=25", E::PartNotAllowed),
        (
            "REQMOD",
            "req-hdr=0, res-hdr=27, res-body=52",
            E::PartNotAllowed,
        ),
        ("REQMOD", "req-hdr=0, res-body=27", E::PartNotAllowed),
        ("RESPMOD", "req-hdr=0, req-body=27", E::PartNotAllowed),
        ("RESPMOD", "res-hdr=0, opt-body=25", E::PartNotAllowed),
        ("RESPMOD", "res-hdr=0, req-hdr=25, res-body=52", E::Order),
        (
            "RESPMOD",
            "res-hdr=0, res-hdr=25, res-body=50",
            E::RepeatedPart,
        ),
        (
            "RESPMOD",
            "req-hdr=0, res-hdr=27, res-body=27",
            E::OffsetNotAscending,
        ),
        ("OPTIONS", "opt-body=0", E::PartNotAllowed),
    ] {
        let lines = format!("Host: e\r\nEncapsulated: {list}\r\n");
        let request = message(&format!("{method} icap://e/s ICAP/1.0"), &lines, "");
        let error = ServerError::Message(MessageError::Encapsulated(expected));
        assert_eq!(
            serve(&mut server(), &request).0,
            [format!("error {error:?}")],
            "{list}"
        );
    }
}

#[test]
fn request_hidden_in_content_is_content() {
    let hidden = "OPTIONS icap://e/s ICAP/1.0\r\nHost: e\r\n\r\n";
    let content = format!("{RESPONSE}{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
    let lines = "Host: e\r\nEncapsulated: res-hdr=0, res-body=25\r\n";
    let request = message("RESPMOD icap://e/s ICAP/1.0", lines, &content);
    let (words, stop) = serve(&mut server(), &request);
    let expected = format!("content {}", hidden.escape_default());
    assert_eq!(words[1..], [expected, "end".to_owned()]);
    assert_eq!(stop, Stop::AnswerDue);
}
