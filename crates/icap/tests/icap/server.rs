//! The server's side against bytes.

use core::time::Duration;

use weir_icap::{
    Adapted, AdaptedContent, AnswerError, IsTag, Limits, MessageError, Method, OptionsAnswer,
    PIECE_BYTES_MAX, RefusalStatus, Server, ServerError,
};
use weir_semantics::FieldLine;
use weir_wire::HeadLimits;

use crate::events::Stop;
use crate::script::{REQUEST, RESPONSE, message, serve, server};

/// A RESPMOD request with these further lines and content.
fn respmod(lines: &str, content: &str) -> String {
    message(
        "RESPMOD icap://e/s ICAP/1.0",
        &format!("Host: e\r\nEncapsulated: req-hdr=0, res-hdr=27, res-body=52\r\n{lines}"),
        &format!("{REQUEST}{RESPONSE}{content}"),
    )
}

const ADAPT: &str = "RESPMOD [GET / HTTP/1.1] [HTTP/1.1 200 OK]";

fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), AnswerError>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn refused(write: impl FnOnce(&mut Vec<u8>) -> Result<(), AnswerError>) -> AnswerError {
    let mut out = Vec::new();
    let error = write(&mut out).unwrap_err();
    assert_eq!(out, b"", "nothing is appended");
    error
}

const OPTIONS: &str = "OPTIONS icap://e/s ICAP/1.0\r\nHost: e\r\n\r\n";

const ANNOUNCED: OptionsAnswer<'_> = OptionsAnswer {
    methods: &[Method::Respmod],
    service: "Weir",
    service_id: Some("weir"),
    preview_bytes: Some(1024),
    max_connections: Some(100),
    ttl: Some(Duration::from_secs(60)),
    allows_204: true,
    fields: &[],
};

#[test]
fn options_answer_has_what_the_service_can_do() {
    let mut server = server();
    let options = vec!["options icap://e/s".to_owned(), "end".to_owned()];
    assert_eq!(serve(&mut server, OPTIONS), (options, Stop::AnswerDue));
    assert_eq!(
        written(|out| server.write_options(&ANNOUNCED, out)),
        "ICAP/1.0 200 OK\r\nISTag: \"t1\"\r\nEncapsulated: null-body=0\r\nMethods: RESPMOD\r\n\
         Service: Weir\r\nService-ID: weir\r\nPreview: 1024\r\nTransfer-Preview: *\r\n\
         Max-Connections: 100\r\nOptions-TTL: 60\r\nAllow: 204\r\n\r\n"
    );
    assert!(server.is_idle() && !server.is_closing());
}

#[test]
fn options_that_clients_would_refuse_are_not_written() {
    for (options, expected) in [
        (
            OptionsAnswer {
                methods: &[],
                ..ANNOUNCED
            },
            AnswerError::Method,
        ),
        (
            OptionsAnswer {
                methods: &[Method::Options],
                ..ANNOUNCED
            },
            AnswerError::Method,
        ),
        (
            OptionsAnswer {
                service: "a\r\nb",
                ..ANNOUNCED
            },
            AnswerError::Field,
        ),
        (
            OptionsAnswer {
                service_id: Some(""),
                ..ANNOUNCED
            },
            AnswerError::Field,
        ),
        (
            OptionsAnswer {
                preview_bytes: Some(65_537),
                ..ANNOUNCED
            },
            AnswerError::PreviewTooLarge,
        ),
        (
            OptionsAnswer {
                fields: &[FieldLine::new("Allow", b"206")],
                ..ANNOUNCED
            },
            AnswerError::Field,
        ),
    ] {
        let mut server = server();
        serve(&mut server, OPTIONS);
        assert_eq!(refused(|out| server.write_options(&options, out)), expected);
    }
}

#[test]
fn preview_is_answered_with_204_and_the_next_request_is_read() {
    let mut server = server();
    let request = respmod("Preview: 5\r\n", "5\r\nhello\r\n0\r\n\r\n");
    let (words, stop) = serve(&mut server, &request);
    assert_eq!(words, [ADAPT, "content hello", "preview end"]);
    assert_eq!(stop, Stop::AnswerDue);
    assert!(!server.is_idle());
    server.set_istag(IsTag::new("t2").unwrap());
    assert_eq!(
        written(|out| server.write_unmodified(&[], out)),
        "ICAP/1.0 204 No modifications needed\r\nISTag: \"t2\"\r\nEncapsulated: null-body=0\r\n\r\n"
    );
    assert!(server.is_idle());
    assert_eq!(
        refused(|out| server.write_unmodified(&[], out)),
        AnswerError::Order
    );
    assert_eq!(serve(&mut server, OPTIONS).0, ["options icap://e/s", "end"]);
}

#[test]
fn content_after_a_preview_is_read_once_the_server_continues() {
    let mut server = server();
    serve(
        &mut server,
        &respmod("Preview: 5\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    );
    let text = written(|out| server.write_continue(out));
    assert_eq!(text, "ICAP/1.0 100 Continue\r\n\r\n");
    let twice = refused(|out| server.write_continue(out));
    assert_eq!(twice, AnswerError::ContinueNotAwaited);
    let (words, stop) = serve(&mut server, "6\r\n world\r\n0\r\n\r\n");
    assert_eq!(
        (words, stop),
        (vec!["content  world".into(), "end".into()], Stop::AnswerDue)
    );
    let error = refused(|out| server.write_unmodified(&[], out));
    assert_eq!(error, AnswerError::UnmodifiedNotAllowed);
}

#[test]
fn answer_204_needs_allow_or_a_preview() {
    for (lines, content, is_allowed) in [
        ("", "0\r\n\r\n", false),
        ("Allow: 206\r\n", "0\r\n\r\n", false),
        ("Allow: 204\r\n", "0\r\n\r\n", true),
        ("Preview: 0\r\n", "0; ieof\r\n\r\n", true),
        ("Preview: 0\r\n", "0\r\n\r\n", true),
    ] {
        let mut server = server();
        serve(&mut server, &respmod(lines, content));
        let result = server.write_unmodified(&[], &mut Vec::new());
        let expected = if is_allowed {
            Ok(())
        } else {
            Err(AnswerError::UnmodifiedNotAllowed)
        };
        assert_eq!(result, expected, "{lines:?}");
    }
    let mut server = server();
    serve(
        &mut server,
        &respmod("Preview: 0\r\nAllow: 204\r\n", "0\r\n\r\n"),
    );
    server.write_continue(&mut Vec::new()).unwrap();
    assert_eq!(server.write_unmodified(&[], &mut Vec::new()), Ok(()));
}

#[test]
fn adapted_message_is_written_in_pieces() {
    let mut server = server();
    serve(&mut server, &respmod("", "5\r\nhello\r\n0\r\n\r\n"));
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\nA: b\r\n\r\n";
    let via = FieldLine::new("Via", b"ICAP/1.0 weir");
    let adapted = Adapted::Response(head);
    let content = AdaptedContent::Changed;
    assert_eq!(
        written(|out| server.write_adapted(&[via], &adapted, content, out)),
        format!(
            "ICAP/1.0 200 OK\r\nISTag: \"t1\"\r\nVia: ICAP/1.0 weir\r\n\
             Encapsulated: res-hdr=0, res-body=25\r\n\r\n{RESPONSE}"
        )
    );
    assert!(!server.is_idle());
    assert_eq!(
        refused(|out| server.write_content(b"", out)),
        AnswerError::Piece
    );
    let large = vec![0; PIECE_BYTES_MAX + 1];
    assert_eq!(
        refused(|out| server.write_content(&large, out)),
        AnswerError::Piece
    );
    assert_eq!(
        written(|out| server.write_content(b"HELLO", out)),
        "5\r\nHELLO\r\n"
    );
    assert_eq!(written(|out| server.write_end(out)), "0\r\n\r\n");
    assert_eq!(refused(|out| server.write_end(out)), AnswerError::Order);
    assert!(server.is_idle());
}

#[test]
fn length_of_unchanged_content_is_kept() {
    for (content, list) in [
        (AdaptedContent::Unchanged, "res-body=38"),
        (AdaptedContent::None, "null-body=38"),
    ] {
        let mut server = server();
        serve(&mut server, &respmod("", "0\r\n\r\n"));
        let adapted = Adapted::Response(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
        let text = written(|out| server.write_adapted(&[], &adapted, content, out));
        assert!(
            text.contains(&format!("res-hdr=0, {list}\r\n\r\n")),
            "{text}"
        );
        assert!(text.ends_with("OK\r\nContent-Length: 5\r\n\r\n"), "{text}");
    }
}

#[test]
fn head_that_does_not_answer_the_request_is_not_written() {
    let mut server = server();
    serve(&mut server, &respmod("", "0\r\n\r\n"));
    for adapted in [
        Adapted::Request(REQUEST.as_bytes()),
        Adapted::Response(REQUEST.as_bytes()),
        Adapted::Response(b"HTTP/1.1 200 OK\r\nA: b\r\n"),
        Adapted::Response(b"HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n"),
        Adapted::Response(b""),
    ] {
        let content = AdaptedContent::None;
        let error = refused(|out| server.write_adapted(&[], &adapted, content, out));
        assert!(matches!(error, AnswerError::Head(_)), "{error:?}");
    }
    let line = FieldLine::new("Encapsulated", b"null-body=0");
    let error = refused(|out| server.write_unmodified(&[line], out));
    assert_eq!(error, AnswerError::UnmodifiedNotAllowed);
    let adapted = Adapted::Response(RESPONSE.as_bytes());
    let content = AdaptedContent::None;
    let error = refused(|out| server.write_adapted(&[line], &adapted, content, out));
    assert_eq!(error, AnswerError::Field);
    let error = refused(|out| server.write_options(&ANNOUNCED, out));
    assert_eq!(error, AnswerError::Method);
}

#[test]
fn answer_may_begin_and_end_before_the_request_does() {
    let mut server = server();
    let (words, stop) = serve(&mut server, &respmod("", "5\r\nhello\r\n"));
    assert_eq!((words.len(), stop), (2, Stop::NeedMore));
    let adapted = Adapted::Response(RESPONSE.as_bytes());
    let content = AdaptedContent::None;
    written(|out| server.write_adapted(&[], &adapted, content, out));
    assert!(!server.is_idle(), "the request is not over");
    let (words, stop) = serve(&mut server, "6\r\n world\r\n0\r\n\r\n");
    assert_eq!(
        (words, stop),
        (vec!["content  world".into(), "end".into()], Stop::NeedMore)
    );
    assert!(server.is_idle());
}

#[test]
fn error_answer_closes_unless_the_request_is_over() {
    let not_found =
        |server: &mut Server| written(|out| server.write_refusal(RefusalStatus::NotFound, out));
    let line = "ICAP/1.0 404 ICAP Service not found\r\nISTag: \"t1\"\r\n";
    let (close, list) = ("Connection: close\r\n", "Encapsulated: null-body=0\r\n\r\n");
    for (content, is_closing) in [
        ("5\r\nhello\r\n0\r\n\r\n", false),
        ("5\r\nhello\r\n0; ieof\r\n\r\n", false),
        ("5\r\nhello\r\n", true),
        ("", true),
    ] {
        let mut server = server();
        serve(&mut server, &respmod("Preview: 5\r\n", content));
        let close = if is_closing { close } else { "" };
        assert_eq!(not_found(&mut server), format!("{line}{close}{list}"));
        assert_eq!(server.is_closing(), is_closing);
        let (words, stop) = serve(&mut server, OPTIONS);
        assert_eq!(
            (words.is_empty(), stop == Stop::End),
            (is_closing, is_closing)
        );
    }
    let overloaded = RefusalStatus::ServiceOverloaded;
    let mut server = server();
    let text = written(|out| server.write_refusal(overloaded, out));
    assert!(text.contains(close), "{text}");
    assert!(server.is_closing(), "an answer before any request");
}

#[test]
fn client_that_closes_after_its_request_still_gets_the_answer() {
    let mut server = server();
    serve(&mut server, &respmod("", "0\r\n\r\n"));
    assert_eq!(server.at_eof(), Ok(()));
    let adapted = Adapted::Response(RESPONSE.as_bytes());
    let content = AdaptedContent::None;
    let text = written(|out| server.write_adapted(&[], &adapted, content, out));
    assert!(text.contains("Connection: close\r\n"));
    assert!(server.is_closing());
    let mut idle = super::script::server();
    assert_eq!(idle.at_eof(), Ok(()));
}

#[test]
fn request_cut_at_each_byte_is_an_error() {
    for request in [
        respmod("", "5\r\nhello\r\n0\r\n\r\n"),
        respmod("Preview: 5\r\n", "5\r\nhello\r\n0; ieof\r\n\r\n"),
        respmod("", "5\r\nhello\r\n0\r\nA: b\r\n\r\n"),
        OPTIONS.to_owned(),
    ] {
        for cut in 1..request.len() {
            let mut server = server();
            let (words, _) = serve(&mut server, &request[..cut]);
            assert!(!words.contains(&"end".to_owned()), "cut at {cut}");
            assert_eq!(
                server.at_eof(),
                Err(ServerError::Incomplete),
                "cut at {cut}"
            );
        }
        let mut server = server();
        let (words, _) = serve(&mut server, &request);
        assert_eq!(words.last().map(String::as_str), Some("end"));
        assert_eq!(server.at_eof(), Ok(()));
    }
}

#[test]
fn bytes_after_a_preview_before_100_fail_however_they_arrive() {
    let request = respmod("Preview: 5\r\n", "5\r\nhello\r\n0\r\n\r\n");
    let failed = format!("error {:?}", ServerError::BytesBeforeContinue);
    let mut together = server();
    let (words, stop) = serve(&mut together, &format!("{request}{OPTIONS}"));
    assert_eq!(words, [ADAPT, "content hello", "preview end", &failed]);
    assert_eq!(stop, Stop::Failed);
    let mut apart = server();
    serve(&mut apart, &request);
    assert_eq!(serve(&mut apart, OPTIONS), (vec![failed], Stop::Failed));
    // a driver that answers at the end of the preview closes, too
    let mut server = server();
    let input = format!("{request}{OPTIONS}");
    let mut at = 0;
    while !matches!(
        server.receive(&input.as_bytes()[at..]).map(|step| {
            at += step.consumed;
            step.event
        }),
        Ok(weir_icap::ServerEvent::PreviewEnd { .. })
    ) {}
    let text = written(|out| server.write_unmodified(&[], out));
    assert!(text.contains("Connection: close\r\n"), "{text}");
    let error = server.receive(&input.as_bytes()[at..]);
    assert_eq!(error, Err(ServerError::BytesBeforeContinue));
    assert!(server.is_closing());
}

#[test]
fn request_that_is_only_a_body_part_is_whole_at_its_head() {
    let request = "RESPMOD icap://e/s ICAP/1.0\r\nHost: e\r\nEncapsulated: null-body=0\r\n\r\n";
    let (words, stop) = serve(&mut server(), request);
    assert_eq!(
        (words, stop),
        (vec!["RESPMOD [] []".into(), "end".into()], Stop::AnswerDue)
    );
}

#[test]
fn malformed_request_has_the_status_to_answer_with() {
    for (request, status) in [
        (
            "GET / HTTP/1.1\r\nHost: e\r\n\r\n",
            RefusalStatus::BadRequest,
        ),
        (
            "FOOMOD icap://e/ ICAP/1.0\r\nHost: e\r\n\r\n",
            RefusalStatus::NotImplemented,
        ),
        (
            "OPTIONS icap://e/ ICAP/2.0\r\nHost: e\r\n\r\n",
            RefusalStatus::VersionNotSupported,
        ),
    ] {
        let mut server = server();
        let error = server.receive(request.as_bytes()).unwrap_err();
        assert_eq!(error.status(), status, "{request}");
        let text = written(|out| server.write_refusal(status, out));
        assert!(
            text.starts_with(&format!("ICAP/1.0 {} ", status.code())),
            "{text}"
        );
        assert!(text.contains("Connection: close\r\n") && server.is_closing());
        assert_eq!(server.receive(b""), Err(error));
    }
}

#[test]
fn preview_greater_than_the_limit_is_refused() {
    let limits = Limits {
        preview_bytes_max: 4,
        ..Limits::default()
    };
    for (preview, is_good) in [(4, true), (5, false)] {
        let mut server = Server::new(IsTag::new("t1").unwrap(), limits);
        let request = respmod(&format!("Preview: {preview}\r\n"), "");
        assert_eq!(server.receive(request.as_bytes()).is_ok(), is_good);
    }
}

#[test]
fn trailer_fields_are_those_of_the_last_request() {
    let mut server = server();
    serve(
        &mut server,
        &respmod("Allow: 204\r\n", "0\r\nDigest: y\r\nHost: e\r\n\r\n"),
    );
    assert_eq!(server.trailers(), b"Digest: y\r\n");
    written(|out| server.write_unmodified(&[], out));
    serve(&mut server, OPTIONS);
    assert_eq!(server.trailers(), b"");
}

#[test]
fn connection_that_the_client_closes_reads_no_further_request() {
    let mut server = server();
    serve(
        &mut server,
        &respmod("Allow: 204\r\nConnection: close\r\n", "0\r\n\r\n"),
    );
    assert!(!server.is_closing(), "the answer is due");
    let text = written(|out| server.write_unmodified(&[], out));
    assert!(text.contains("Connection: close\r\n"), "{text}");
    assert!(server.is_closing());
    assert_eq!(serve(&mut server, OPTIONS), (Vec::new(), Stop::End));
}

#[test]
fn encapsulated_heads_of_a_request_are_bounded() {
    let limits = Limits {
        http_head: HeadLimits {
            bytes_max: 27,
            fields_max: 1,
        },
        ..Limits::default()
    };
    for (list, is_good) in [
        ("req-hdr=0, res-hdr=27, res-body=54", true),
        ("req-hdr=0, res-hdr=28, res-body=54", false),
        ("req-hdr=0, res-hdr=27, res-body=55", false),
    ] {
        let lines = format!("Host: e\r\nEncapsulated: {list}\r\n");
        let request = message("RESPMOD icap://e/s ICAP/1.0", &lines, "");
        let mut server = Server::new(IsTag::new("t1").unwrap(), limits);
        let error = server.receive(request.as_bytes()).err();
        let too_large = ServerError::Message(MessageError::EncapsulatedHeadTooLarge);
        assert_eq!(error, (!is_good).then_some(too_large), "{list}");
    }
}

#[test]
fn preview_of_a_request_that_was_answered_has_no_end() {
    let mut server = server();
    serve(&mut server, &respmod("Preview: 5\r\n", ""));
    let adapted = Adapted::Response(RESPONSE.as_bytes());
    let content = AdaptedContent::Changed;
    written(|out| server.write_adapted(&[], &adapted, content, out));
    let (words, stop) = serve(&mut server, "5\r\nhello\r\n0\r\n\r\n");
    assert_eq!(words, ["content hello", "preview end"]);
    assert_eq!(stop, Stop::AnswerDue, "the answer has no end");
    let error = refused(|out| server.write_continue(out));
    assert_eq!(error, AnswerError::ContinueNotAwaited);
    written(|out| server.write_end(out));
    assert!(server.is_idle());
}

#[test]
fn answer_to_a_request_that_failed_is_not_ended() {
    for is_eof in [false, true] {
        let mut server = server();
        serve(&mut server, &respmod("", "5\r\nhello\r\n"));
        let adapted = Adapted::Response(RESPONSE.as_bytes());
        let content = AdaptedContent::Changed;
        written(|out| server.write_adapted(&[], &adapted, content, out));
        written(|out| server.write_content(b"HELLO", out));
        if is_eof {
            assert_eq!(server.at_eof(), Err(ServerError::Incomplete));
        } else {
            assert_eq!(serve(&mut server, "x").1, Stop::Failed);
        }
        let piece = refused(|out| server.write_content(b"x", out));
        assert_eq!(piece, AnswerError::Order);
        assert_eq!(refused(|out| server.write_end(out)), AnswerError::Order);
        let refusal = RefusalStatus::ServerError;
        let error = refused(|out| server.write_refusal(refusal, out));
        assert_eq!(error, AnswerError::Order, "the answer was begun");
        assert!(server.is_closing());
    }
}
