//! Where a message ends, or why that cannot be said: smuggling by Content-Length and
//! Transfer-Encoding.

use weir_semantics::Method;
use weir_wire::{
    BodyLength, CONTENT_LENGTH_MAX, FramingError, LineBuffer, Version, parse_fields, request_body,
    response_body,
};

use BodyLength::{Chunked, Exact, UntilClose};
use FramingError::{
    BothLengths, ContentLength, ContentLengthTooLarge, LengthOfNothing, Lookalike,
    RepeatedContentLength, RepeatedTransferEncoding, TransferEncoding, TransferEncodingInHttp10,
    UnknownCoding,
};
use Version::{Http10, Http11};

#[track_caller]
fn check_request(version: Version, section: &str, expected: Result<BodyLength, FramingError>) {
    let mut lines = LineBuffer::new();
    let fields = parse_fields(section.as_bytes(), &mut lines).expect("fields are well formed");
    assert_eq!(request_body(version, fields), expected, "{section:?}");
}

#[track_caller]
fn check_response(
    version: Version,
    method: Method,
    status: u16,
    section: &str,
    expected: Result<BodyLength, FramingError>,
) {
    let mut lines = LineBuffer::new();
    let fields = parse_fields(section.as_bytes(), &mut lines).expect("fields are well formed");
    assert_eq!(
        response_body(version, method, status, fields),
        expected,
        "{status} {section:?}"
    );
}

#[test]
fn plain_framing_is_accepted() {
    for version in [Http10, Http11] {
        check_request(version, "", Ok(BodyLength::None));
        check_request(
            version,
            "Host: e\r\nContent-Type: a/b\r\n",
            Ok(BodyLength::None),
        );
        check_request(version, "Content-Length: 0\r\n", Ok(Exact(0)));
        check_request(version, "content-LENGTH:5\r\n", Ok(Exact(5)));
        check_response(version, Method::Get, 200, "", Ok(UntilClose));
        check_response(
            version,
            Method::Get,
            200,
            "Content-Length: 5\r\n",
            Ok(Exact(5)),
        );
    }
    for section in [
        "Transfer-Encoding: chunked\r\n",
        "transfer-encoding:\t CHUNKED \t\r\n",
    ] {
        check_request(Http11, section, Ok(Chunked));
        check_response(Http11, Method::Get, 200, section, Ok(Chunked));
    }
}

/// What is refused in requests is refused in responses alike.
#[track_caller]
fn check_both(version: Version, section: &str, expected: FramingError) {
    check_request(version, section, Err(expected));
    check_response(version, Method::Get, 200, section, Err(expected));
    check_response(version, Method::Head, 200, section, Err(expected));
    check_response(version, Method::Get, 304, section, Err(expected));
    check_response(version, Method::Get, 204, section, Err(expected));
}

#[test]
fn conflicting_or_repeated_lengths_are_refused() {
    check_both(
        Http11,
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        BothLengths,
    );
    check_both(
        Http11,
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        BothLengths,
    );
    check_both(
        Http11,
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        BothLengths,
    );
    check_both(
        Http11,
        "Transfer-Encoding: x\r\nContent-Length: 5\r\n",
        BothLengths,
    );
    check_both(
        Http11,
        "Transfer-Encoding:\r\nContent-Length: 5\r\n",
        BothLengths,
    );
    check_both(
        Http10,
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        BothLengths,
    );
    check_both(
        Http11,
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        RepeatedContentLength,
    );
    check_both(
        Http11,
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        RepeatedContentLength,
    );
    check_both(
        Http11,
        "Content-Length: 5\r\nHost: e\r\ncontent-length: 5\r\n",
        RepeatedContentLength,
    );
    check_both(
        Http11,
        "Content-Length: 5\r\nContent-Length:\r\n",
        RepeatedContentLength,
    );
}

#[test]
fn content_length_other_than_digits_is_refused() {
    for value in [
        "", "+5", "-5", "-0", "5, 5", "5,5", "5,", ",5", "0x5", "5 5", "5\t5", "5.0", "5e0",
        "1_000", "five", "\"5\"", "5;5", "5a", "\u{663}",
    ] {
        check_both(
            Http11,
            &format!("Content-Length: {value}\r\n"),
            ContentLength,
        );
    }
}

#[test]
fn content_length_is_limited_to_2_to_the_63_minus_1_and_19_digits() {
    check_request(
        Http11,
        "Content-Length: 9223372036854775807\r\n",
        Ok(Exact(CONTENT_LENGTH_MAX)),
    );
    check_request(
        Http11,
        "Content-Length: 0000000000000000005\r\n",
        Ok(Exact(5)),
    );
    for value in [
        "9223372036854775808",
        "9999999999999999999",
        "00000000000000000005",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551621",
        "99999999999999999999999999999999999999",
    ] {
        check_both(
            Http11,
            &format!("Content-Length: {value}\r\n"),
            ContentLengthTooLarge,
        );
    }
}

#[test]
fn transfer_encoding_other_than_chunked_is_refused() {
    for value in [
        "",
        "xchunked",
        "chunkedx",
        "x chunked",
        "chunked x",
        "identity",
        "identity, chunked",
        "chunked, identity",
        "chunked, chunked",
        "chunked,",
        ",chunked",
        "chunked;q=1",
        "chunked; a=b",
        "\"chunked\"",
        "'chunked'",
        "chun ked",
        "gzip",
        "chunked, gzip",
        "gzip;chunked",
        "gzip, xyz, chunked",
        "\u{a0}chunked",
    ] {
        check_both(
            Http11,
            &format!("Transfer-Encoding: {value}\r\n"),
            TransferEncoding,
        );
    }
    for value in ["gzip, chunked", "GZIP,chunked", "deflate , x-gzip, Chunked"] {
        check_both(
            Http11,
            &format!("Transfer-Encoding: {value}\r\n"),
            UnknownCoding,
        );
    }
    check_both(
        Http11,
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        RepeatedTransferEncoding,
    );
    check_both(
        Http11,
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        RepeatedTransferEncoding,
    );
    check_both(
        Http11,
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        RepeatedTransferEncoding,
    );
    check_both(
        Http11,
        "Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n",
        RepeatedTransferEncoding,
    );
}

#[test]
fn transfer_encoding_in_http10_is_refused() {
    check_both(
        Http10,
        "Transfer-Encoding: chunked\r\n",
        TransferEncodingInHttp10,
    );
    check_both(
        Http10,
        "Transfer-Encoding: identity\r\n",
        TransferEncodingInHttp10,
    );
}

#[test]
fn framing_field_name_with_underscore_is_refused() {
    for name in [
        "Content_Length",
        "content_length",
        "Transfer_Encoding",
        "TRANSFER_ENCODING",
    ] {
        check_both(Http11, &format!("{name}: 5\r\n"), Lookalike);
    }
    check_request(
        Http11,
        "Content-Lengths: 5\r\nXContent-Length: 5\r\nContentXLength: 5\r\n",
        Ok(BodyLength::None),
    );
    check_request(
        Http11,
        "Transfer-EncodinG2: chunked\r\nTransferxEncoding: x\r\n",
        Ok(BodyLength::None),
    );
}

#[test]
fn responses_to_head_and_1xx_204_and_304_have_no_content() {
    let length = "Content-Length: 5\r\n";
    let chunked = "Transfer-Encoding: chunked\r\n";
    for section in ["", "Content-Length: 0\r\n", length, chunked] {
        check_response(Http11, Method::Head, 200, section, Ok(BodyLength::None));
        check_response(Http11, Method::Head, 404, section, Ok(BodyLength::None));
        check_response(Http11, Method::Get, 304, section, Ok(BodyLength::None));
    }
    for status in [100, 101, 103, 199] {
        check_response(Http11, Method::Get, status, "", Ok(BodyLength::None));
        for section in [length, chunked, "Content-Length: 0\r\n"] {
            check_response(Http11, Method::Get, status, section, Err(LengthOfNothing));
        }
    }
    check_response(Http11, Method::Get, 204, "", Ok(BodyLength::None));
    check_response(
        Http11,
        Method::Get,
        204,
        "Content-Length: 0\r\n",
        Ok(BodyLength::None),
    );
    check_response(Http11, Method::Get, 204, length, Err(LengthOfNothing));
    check_response(Http11, Method::Get, 204, chunked, Err(LengthOfNothing));
    // their neighbours have content
    for status in [200, 203, 205, 303, 305, 599, 999] {
        check_response(Http11, Method::Get, status, length, Ok(Exact(5)));
        check_response(Http11, Method::Get, status, "", Ok(UntilClose));
    }
}

#[test]
fn successful_response_to_connect_has_no_content() {
    for status in [200, 204, 299] {
        for section in [
            "",
            "Content-Length: 5\r\n",
            "Transfer-Encoding: chunked\r\nContent-Length: x\r\n",
        ] {
            check_response(
                Http11,
                Method::Connect,
                status,
                section,
                Ok(BodyLength::None),
            );
        }
    }
    check_response(Http11, Method::Connect, 199, "", Ok(BodyLength::None));
    check_response(
        Http11,
        Method::Connect,
        300,
        "Content-Length: 5\r\n",
        Ok(Exact(5)),
    );
    check_response(
        Http11,
        Method::Connect,
        407,
        "Transfer-Encoding: chunked\r\n",
        Ok(Chunked),
    );
}

#[test]
fn unknown_coding_is_answered_with_501_and_malformed_framing_with_400() {
    assert_eq!(UnknownCoding.status(), 501);
    assert_eq!(TransferEncoding.status(), 400);
    assert_eq!(BothLengths.status(), 400);
}
