//! The client's side against bytes.

use weir_icap::{
    AdaptRequest, ClientError, ClientEvent, EncapsulatedError, Limits, MessageError,
    PIECE_BYTES_MAX, RequestError, ServiceOptions, Subject, Transaction,
};
use weir_semantics::FieldLine;
use weir_wire::{HeadError, HeadLimits};

use crate::script::{
    CONTINUE, REQMOD, REQUEST, RESPMOD, RESPONSE, Shape, UNMODIFIED, message, modified, offer,
    receive, send, service,
};

fn error(error: impl Into<ClientError>) -> Vec<String> {
    vec![format!("error {:?}", error.into())]
}

#[test]
fn options_request_has_host_and_no_parts() {
    let line = FieldLine::new("User-Agent", b"weir");
    let mut client = Transaction::options(&service(), &[line], Limits::default()).unwrap();
    assert_eq!(
        send(&mut client),
        "OPTIONS icap://e/s ICAP/1.0\r\nHost: e\r\nUser-Agent: weir\r\n\
         Encapsulated: null-body=0\r\n\r\n"
    );
    let answer = message(
        "ICAP/1.0 200 OK",
        "Methods: RESPMOD\r\nISTag: \"t1\"\r\nPreview: 0\r\n",
        "",
    );
    let step = client.receive(answer.as_bytes()).unwrap();
    let ClientEvent::Options(head) = step.event else {
        panic!("{:?}", step.event);
    };
    let options = ServiceOptions::read(&head, core::time::Duration::ZERO, 1024).unwrap();
    assert_eq!(options.preview_bytes(), Some(0));
    assert_eq!(receive(&mut client, ""), ["end"]);
    assert!(client.is_reusable());
}

#[test]
fn content_of_an_options_answer_is_passed_on() {
    let mut client = Transaction::options(&service(), &[], Limits::default()).unwrap();
    send(&mut client);
    let answer = modified("opt-body=0", "5\r\nhello\r\n0\r\n\r\n");
    assert_eq!(
        receive(&mut client, &answer),
        ["options", "content hello", "end"]
    );
}

#[test]
fn respmod_sends_heads_then_a_preview_then_the_rest() {
    let shape = Shape {
        preview: Some(4),
        allow_204: true,
        ..RESPMOD
    };
    let mut client = shape.start();
    let rest = offer(&mut client, b"hello world");
    assert_eq!(rest, b"o world");
    assert_eq!(
        send(&mut client),
        format!(
            "RESPMOD icap://e/s ICAP/1.0\r\nHost: e\r\nAllow: 204\r\nPreview: 4\r\n\
             Encapsulated: req-hdr=0, res-hdr=27, res-body=52\r\n\r\n\
             {REQUEST}{RESPONSE}4\r\nhell\r\n0\r\n\r\n"
        )
    );
    assert_eq!(receive(&mut client, CONTINUE), ["continue"]);
    assert_eq!(offer(&mut client, rest), b"");
    assert_eq!(send(&mut client), "7\r\no world\r\n0\r\n\r\n");
    assert!(client.may_be_unmodified(), "204 is allowed");
    let answer = modified("res-hdr=0, res-body=25", RESPONSE);
    assert_eq!(
        receive(&mut client, &answer),
        ["modified HTTP/1.1 200 OK, content"]
    );
    assert!(!client.may_be_unmodified(), "the content is replaced");
    assert!(!client.is_reusable());
    assert_eq!(
        receive(&mut client, "2\r\nHE\r\n0\r\n\r\n"),
        ["content HE", "end"]
    );
    assert!(client.is_reusable());
}

#[test]
fn whole_content_in_a_preview_ends_with_ieof() {
    let shape = Shape {
        preview: Some(8),
        ..REQMOD
    };
    let mut client = shape.start();
    offer(&mut client, b"hello");
    let text = send(&mut client);
    assert!(
        text.ends_with("\r\n\r\n5\r\nhello\r\n0; ieof\r\n\r\n"),
        "{text}"
    );
    let unexpected = error(ClientError::UnexpectedContinue);
    assert_eq!(receive(&mut client.clone(), CONTINUE), unexpected);
    assert_eq!(receive(&mut client, UNMODIFIED), ["unmodified", "end"]);
    assert!(client.is_reusable());
}

#[test]
fn hop_by_hop_fields_are_neither_sent_nor_reported() {
    let head = b"GET / HTTP/1.1\r\nHost: e\r\nConnection: x\r\nX: y\r\nTE: trailers\r\n\
        Content-Length: 5\r\n\r\n";
    let request = AdaptRequest {
        service: &service(),
        fields: &[],
        subject: Subject::Request(head),
        has_content: true,
        preview: None,
        allow_204: false,
    };
    let mut client = Transaction::adapt(&request, Limits::default()).unwrap();
    let sent = send(&mut client);
    let expected = "Encapsulated: req-hdr=0, req-body=46\r\n\r\n\
        GET / HTTP/1.1\r\nHost: e\r\nContent-Length: 5\r\n\r\n";
    assert!(sent.ends_with(expected), "{sent}");
    let adapted = "GET /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 99\r\n\
        Host: f\r\nUpgrade: h2c\r\n\r\n";
    let list = format!("req-hdr=0, req-body={}", adapted.len());
    let answer = modified(&list, adapted);
    let step = client.receive(answer.as_bytes()).unwrap();
    let ClientEvent::Modified { heads, .. } = step.event else {
        panic!("{:?}", step.event);
    };
    assert_eq!(heads.request_bytes(), b"GET /b HTTP/1.1\r\nHost: f\r\n\r\n");
    assert_eq!(heads.response_bytes(), b"");
}

#[test]
fn second_100_is_refused() {
    let shape = Shape {
        preview: Some(2),
        allow_204: true,
        ..RESPMOD
    };
    let mut client = shape.sent(b"hello");
    assert_eq!(receive(&mut client, CONTINUE), ["continue"]);
    let unexpected = error(ClientError::UnexpectedContinue);
    assert_eq!(receive(&mut client.clone(), CONTINUE), unexpected);
    offer(&mut client, b"llo");
    send(&mut client);
    assert_eq!(receive(&mut client, CONTINUE), unexpected);
    assert!(!client.is_reusable());
    let twice = [CONTINUE, CONTINUE].concat();
    let mut client = shape.sent(b"hello");
    let words = receive(&mut client, &twice);
    assert_eq!(words, [vec!["continue".to_owned()], unexpected].concat());
}

#[test]
fn continue_without_a_preview_that_was_sent_is_refused() {
    let unexpected = error(ClientError::UnexpectedContinue);
    assert_eq!(receive(&mut RESPMOD.sent(b"hello"), CONTINUE), unexpected);
    let shape = Shape {
        preview: Some(2),
        ..RESPMOD
    };
    // all is sent but the last byte of the preview's end
    let mut client = shape.start();
    offer(&mut client, b"hello");
    client.sent(client.unsent().len() - 1);
    assert_eq!(receive(&mut client, CONTINUE), unexpected);
    let mut options = Transaction::options(&service(), &[], Limits::default()).unwrap();
    send(&mut options);
    let status = error(ClientError::UnexpectedStatus(100));
    assert_eq!(receive(&mut options, CONTINUE), status);
}

#[test]
fn answer_204_needs_allow_or_a_preview() {
    let refused = error(ClientError::UnmodifiedNotAllowed);
    let unmodified = ["unmodified", "end"];
    assert_eq!(receive(&mut RESPMOD.sent(b"hello"), UNMODIFIED), refused);
    let with_preview = Shape {
        preview: Some(2),
        ..RESPMOD
    };
    let mut client = with_preview.sent(b"hello");
    assert_eq!(receive(&mut client, UNMODIFIED), unmodified);
    assert!(client.is_reusable(), "the rest is not sent");
    for allow_204 in [false, true] {
        let shape = Shape {
            allow_204,
            ..with_preview
        };
        let mut client = shape.sent(b"hello");
        assert!(client.may_be_unmodified(), "in the preview");
        assert_eq!(receive(&mut client, CONTINUE), ["continue"]);
        assert_eq!(client.may_be_unmodified(), allow_204, "after the preview");
        let words = receive(&mut client, UNMODIFIED);
        assert!(!client.may_be_unmodified(), "after the answer");
        if allow_204 {
            assert_eq!(words, unmodified);
            assert!(!client.is_reusable(), "the rest was due and is not sent");
        } else {
            assert_eq!(words, refused);
        }
    }
    let allowed = Shape {
        allow_204: true,
        ..RESPMOD
    };
    let mut client = allowed.sent(b"hello");
    assert_eq!(receive(&mut client, UNMODIFIED), unmodified);
    assert!(client.is_reusable());
}

#[test]
fn answer_204_to_a_message_without_content_needs_allow_or_a_preview() {
    let shape = Shape {
        has_content: false,
        preview: Some(0),
        ..REQMOD
    };
    let mut client = shape.start();
    let sent = send(&mut client);
    assert!(sent.contains("Preview: 0\r\n"), "{sent}");
    assert!(sent.ends_with(&format!("req-hdr=0, null-body=27\r\n\r\n{REQUEST}")));
    assert!(!client.takes_content());
    assert_eq!(receive(&mut client, UNMODIFIED), ["unmodified", "end"]);
    assert!(client.is_reusable());
}

#[test]
fn status_that_is_no_answer_is_refused() {
    for (status, lines) in [
        (101, ""),
        (102, ""),
        (201, "Encapsulated: null-body=0\r\n"),
        // partial content, which `Allow: 206` would permit and which is never sent
        (206, "Encapsulated: res-hdr=0, res-body=25\r\n"),
        (301, ""),
    ] {
        let shape = Shape {
            preview: Some(2),
            allow_204: true,
            ..RESPMOD
        };
        let answer = message(&format!("ICAP/1.0 {status} Text"), lines, "");
        let words = receive(&mut shape.sent(b"hello"), &answer);
        assert_eq!(words, error(ClientError::UnexpectedStatus(status)));
    }
}

#[test]
fn answer_may_end_while_content_is_sent() {
    let mut client = RESPMOD.start();
    client.offer(b"hello");
    send(&mut client);
    let answer = modified("res-hdr=0, res-body=25", RESPONSE);
    assert_eq!(receive(&mut client, &answer).len(), 1);
    assert!(client.takes_content(), "the answer is not over");
    assert_eq!(client.offer(b" world"), 6);
    assert_eq!(send(&mut client), "6\r\n world\r\n");
    let end = "5\r\nHELLO\r\n0\r\n\r\n";
    assert_eq!(receive(&mut client, end), ["content HELLO", "end"]);
    assert!(!client.takes_content());
    assert_eq!((client.room(), client.offer(b"more")), (0, 0));
    client.finish_content();
    assert_eq!(send(&mut client), "");
    assert!(!client.is_reusable(), "the server still reads content");
}

#[test]
fn error_answer_may_come_before_the_heads_were_sent_and_others_may_not() {
    let mut client = RESPMOD.start();
    assert_eq!(
        receive(&mut client.clone(), UNMODIFIED),
        error(ClientError::AnswerBeforeRequest)
    );
    client.sent(1);
    let overloaded = "ICAP/1.0 503 Overloaded\r\n\r\n";
    assert_eq!(
        receive(&mut client.clone(), overloaded),
        ["refused 503", "end"]
    );
    let answer = modified("res-hdr=0, null-body=25", RESPONSE);
    assert_eq!(
        receive(&mut client, &answer),
        error(ClientError::AnswerBeforeRequest)
    );
}

#[test]
fn connection_is_reused_only_after_a_clean_end() {
    let shape = Shape {
        allow_204: true,
        ..RESPMOD
    };
    let close = "ICAP/1.0 204 No\r\nConnection: foo, Close\r\n\r\n";
    let mut client = shape.sent(b"hello");
    receive(&mut client, close);
    assert!(!client.is_reusable(), "the server closes");
    let mut client = shape.sent(b"hello");
    let answer = format!("{UNMODIFIED}x");
    let step = client.receive(answer.as_bytes()).unwrap();
    assert_eq!(step.consumed, UNMODIFIED.len());
    assert_eq!(client.receive(b"x").unwrap().event, ClientEvent::End);
    assert!(!client.is_reusable(), "bytes follow the answer");
    let mut client = shape.sent(b"hello");
    receive(&mut client, UNMODIFIED);
    assert!(client.is_reusable());
    assert_eq!(client.at_eof(), Ok(()));
    assert!(!client.is_reusable(), "the server closed");
    let mut client = shape.sent(b"hello");
    receive(
        &mut client,
        "ICAP/1.0 404 No\r\nEncapsulated: null-body=0\r\n\r\n",
    );
    assert!(client.is_reusable(), "an error of the service");
    let mut client = shape.sent(b"hello");
    receive(&mut client, "ICAP/1.0 500 No\r\nContent-Length: 5\r\n\r\n");
    assert!(!client.is_reusable(), "an error with content");
}

#[test]
fn answer_with_wrong_parts_is_refused_by_name() {
    use EncapsulatedError as E;
    let check = |shape: Shape, list: &str, rest: &str, expected: MessageError| {
        let words = receive(&mut shape.sent(b""), &modified(list, rest));
        assert_eq!(words, error(expected), "{list}");
    };
    let with = |error| MessageError::Encapsulated(error);
    for (list, expected) in [
        ("null-body=0", with(E::NoHead)),
        ("res-body=0", with(E::NoHead)),
        ("res-hdr=0, req-body=25", with(E::PartNotAllowed)),
        ("res-hdr=0, opt-body=25", with(E::PartNotAllowed)),
        (
            "req-hdr=0, res-hdr=27, res-body=52",
            with(E::PartNotAllowed),
        ),
        ("res-hdr=0", with(E::NoBody)),
        ("res-hdr=0, res-body=25, null-body=30", with(E::AfterBody)),
        ("res-hdr=0, res-body=0", with(E::OffsetNotAscending)),
        ("res-hdr=5, res-body=25", with(E::FirstOffset)),
        ("res-hdr=0, foo-body=25", with(E::UnknownPart)),
        ("res-hdr=0, res-body=24", MessageError::EncapsulatedHeadEnd),
        ("res-hdr=0, res-body=23", MessageError::EncapsulatedHeadEnd),
        ("res-hdr=0, res-body=26", MessageError::EncapsulatedHeadEnd),
        (
            "res-hdr=0, res-body=65537",
            MessageError::EncapsulatedHeadTooLarge,
        ),
        (
            "res-hdr=0, res-body=999999999",
            MessageError::EncapsulatedHeadTooLarge,
        ),
    ] {
        check(
            RESPMOD,
            list,
            &format!("{RESPONSE}5\r\nhello\r\n"),
            expected,
        );
    }
    check(
        RESPMOD,
        "req-hdr=0, null-body=27",
        REQUEST,
        with(E::PartNotAllowed),
    );
    let kind = MessageError::RequestHead(HeadError::RequestLine);
    check(REQMOD, "req-hdr=0, null-body=25", RESPONSE, kind);
    let missing = "ICAP/1.0 200 OK\r\n\r\n";
    let words = receive(&mut RESPMOD.sent(b""), missing);
    assert_eq!(words, error(with(E::Missing)));
    let list = "Encapsulated: null-body=0, null-body=0\r\n";
    let unmodified = message("ICAP/1.0 204 No", list, "");
    let shape = Shape {
        allow_204: true,
        ..RESPMOD
    };
    let words = receive(&mut shape.sent(b""), &unmodified);
    assert_eq!(words, error(with(E::AfterBody)));
}

#[test]
fn answer_to_reqmod_may_be_a_request_or_a_response() {
    for (list, head, expected) in [
        (
            "req-hdr=0, null-body=27",
            REQUEST,
            "modified GET / HTTP/1.1",
        ),
        (
            "res-hdr=0, null-body=25",
            RESPONSE,
            "modified HTTP/1.1 200 OK",
        ),
    ] {
        let words = receive(&mut REQMOD.sent(b""), &modified(list, head));
        assert_eq!(words, [expected, "end"]);
    }
}

#[test]
fn malformed_tag_is_refused() {
    for tag in ["t1", "\"\"", "\"123456789012345678901234567890123\""] {
        let answer = message("ICAP/1.0 500 No", &format!("ISTag: {tag}\r\n"), "");
        let words = receive(&mut RESPMOD.sent(b""), &answer);
        assert!(words[0].starts_with("error Message(IsTag("), "{words:?}");
    }
}

#[test]
fn heads_of_answers_are_bounded() {
    let limits = Limits {
        icap_head: HeadLimits {
            bytes_max: 120,
            fields_max: 3,
        },
        ..Limits::default()
    };
    let start = || {
        let mut client = Transaction::options(&service(), &[], limits).unwrap();
        send(&mut client);
        client
    };
    let long = format!("ICAP/1.0 200 OK\r\nA: {}", "x".repeat(120));
    let too_large = error(MessageError::Head(HeadError::TooLarge));
    assert_eq!(receive(&mut start(), &long), too_large);
    let lines = |count: usize| message("ICAP/1.0 200 OK", &"A: b\r\n".repeat(count), "");
    assert_eq!(receive(&mut start(), &lines(3)), ["options", "end"]);
    let too_many = error(MessageError::Head(HeadError::TooManyFields));
    assert_eq!(receive(&mut start(), &lines(4)), too_many);
}

#[test]
fn request_that_would_be_malformed_is_not_sent() {
    let service = service();
    let good = AdaptRequest {
        service: &service,
        fields: &[],
        subject: Subject::Request(REQUEST.as_bytes()),
        has_content: true,
        preview: None,
        allow_204: false,
    };
    let check = |request: AdaptRequest<'_>, expected: Option<RequestError>| {
        let result = Transaction::adapt(&request, Limits::default());
        assert_eq!(result.err(), expected, "{request:?}");
    };
    check(good, None);
    let large = Limits::default().preview_bytes_max + 1;
    let preview = Some(large);
    check(
        AdaptRequest { preview, ..good },
        Some(RequestError::PreviewTooLarge),
    );
    let fields = &[FieldLine::new("X", b"a\r\nb")];
    check(AdaptRequest { fields, ..good }, Some(RequestError::Field));
    let long = vec![b'x'; 17_000];
    let fields = &[FieldLine::new("X", &long)];
    check(
        AdaptRequest { fields, ..good },
        Some(RequestError::TooLarge),
    );
    let end = RequestError::Head(MessageError::EncapsulatedHeadEnd);
    for head in ["", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n\r\nx"] {
        let subject = Subject::Request(head.as_bytes());
        check(AdaptRequest { subject, ..good }, Some(end));
    }
}

#[test]
fn unsent_content_is_bounded() {
    let mut client = RESPMOD.start();
    send(&mut client);
    let piece = vec![b'x'; 3 * PIECE_BYTES_MAX];
    assert_eq!(client.offer(&piece), PIECE_BYTES_MAX);
    assert_eq!(client.offer(&piece), 0);
    assert!(!client.takes_content());
    assert!(client.unsent().len() < PIECE_BYTES_MAX + 16);
    client.sent(1000);
    assert!(client.takes_content());
}

#[test]
fn framing_fields_of_http_in_an_answer_with_parts_are_refused() {
    for line in [
        "Transfer-Encoding: chunked",
        "Content-Length: 25",
        "Content-Length: 0",
    ] {
        let lines = format!("{line}\r\nEncapsulated: res-hdr=0, null-body=25\r\n");
        let answer = message("ICAP/1.0 200 OK", &lines, RESPONSE);
        let words = receive(&mut RESPMOD.sent(b""), &answer);
        assert_eq!(words, error(MessageError::FramingField), "{line}");
    }
}

#[test]
fn trailer_fields_that_may_travel_are_reported_at_the_end() {
    let mut client = RESPMOD.sent(b"");
    let content = format!("{RESPONSE}1\r\nx\r\n0\r\nDigest: y\r\nContent-Length: 5\r\n");
    receive(&mut client, &modified("res-hdr=0, res-body=25", &content));
    assert_eq!(client.trailers(), b"");
    assert_eq!(receive(&mut client, "\r\n"), ["end"]);
    assert_eq!(client.trailers(), b"Digest: y\r\n");
}
