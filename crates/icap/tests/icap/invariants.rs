//! What holds of any bytes, for the fuzz target too.

use weir_icap::{
    AdaptRequest, Adapted, AdaptedContent, IsTag, Limits, Method, OptionsAnswer, Server,
    ServerEvent, ServiceUri, Subject, Transaction,
};
use weir_wire::HeadLimits;

use crate::events::{Events, Stop, feed_client, feed_server};

/// What a text was read as: events, consumed bytes, why it stopped, and the bytes of the answers.
type Outcome = (Events, usize, Stop, Vec<u8>);

fn limits(choice: u8) -> Limits {
    if choice & 0x80 == 0 {
        return Limits::default();
    }
    let head = HeadLimits {
        bytes_max: 200,
        fields_max: 4,
    };
    Limits {
        icap_head: head,
        http_head: head,
        preview_bytes_max: 8,
    }
}

/// A request that was sent, whose shape and limits `choice` decides.
fn sent(choice: u8) -> Option<Transaction> {
    let service = ServiceUri::parse(b"icap://e/s").ok()?;
    let head = b"GET / HTTP/1.1\r\n\r\n";
    let subject = match choice & 3 {
        0 => {
            let mut client = Transaction::options(&service, &[], limits(choice)).ok()?;
            client.sent(client.unsent().len());
            return Some(client);
        }
        1 => Subject::Request(head),
        _ => Subject::Response {
            request: Some(head),
            head: b"HTTP/1.1 200 OK\r\n\r\n",
        },
    };
    let request = AdaptRequest {
        service: &service,
        fields: &[],
        subject,
        has_content: choice & 4 == 0,
        preview: (choice & 8 == 0).then_some(4),
        allow_204: choice & 16 == 0,
    };
    let mut client = Transaction::adapt(&request, limits(choice)).ok()?;
    send(&mut client);
    Some(client)
}

/// Sends what can be sent of content that is longer than a preview, and its end.
fn send(client: &mut Transaction) {
    if client.takes_content() {
        client.offer(b"hello");
        client.finish_content();
    }
    client.sent(client.unsent().len());
}

/// The client reads `text` in pieces that end at `ends`.
fn read_answer(choice: u8, text: &[u8], ends: &[usize]) -> Option<Outcome> {
    let mut client = sent(choice)?;
    let mut events = Events::default();
    let mut consumed = 0;
    let mut stop = Stop::NeedMore;
    for &end in ends {
        while stop == Stop::NeedMore && consumed < end {
            let (count, why) = feed_client(&mut client, &text[consumed..end], &mut events);
            consumed += count;
            stop = why;
            send(&mut client);
        }
    }
    let is_last = |word: &str| events.words().last().is_some_and(|last| last == word);
    assert_eq!(is_last("end"), stop == Stop::End);
    let at_eof = client.at_eof();
    assert_eq!(
        at_eof.is_ok(),
        stop == Stop::End,
        "an end is not an end: {events:?}"
    );
    assert!(!client.is_reusable());
    Some((events, consumed, stop, Vec::new()))
}

/// What the server of the invariants does: by `choice`, it continues after previews or answers
/// them, and answers at the end or as soon as it can.
fn react(choice: u8, server: &mut Server, event: &ServerEvent<'_>, out: &mut Vec<u8>) {
    let response = Adapted::Response(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
    // what is no answer to this request is refused, and the next event has another chance
    let _ = match event {
        ServerEvent::PreviewEnd { is_whole: false } if choice & 1 == 0 => {
            server.write_continue(out)
        }
        ServerEvent::Adapt { .. } if choice & 2 == 0 => {
            server.write_adapted(&[], &response, AdaptedContent::Changed, out)
        }
        ServerEvent::End if choice & 2 == 0 => server.write_end(out),
        ServerEvent::AnswerDue => server
            .write_unmodified(&[], out)
            .or_else(|_| server.write_adapted(&[], &response, AdaptedContent::None, out)),
        ServerEvent::Options(_) => server.write_options(
            &OptionsAnswer {
                methods: &[Method::Respmod],
                service: "",
                service_id: None,
                preview_bytes: None,
                max_connections: None,
                ttl: None,
                allows_204: false,
                fields: &[],
            },
            out,
        ),
        _ => Ok(()),
    };
}

/// The server reads `text` in pieces that end at `ends`.
fn read_requests(choice: u8, text: &[u8], ends: &[usize]) -> Option<Outcome> {
    let mut server = Server::new(IsTag::new("t1").ok()?, limits(choice));
    let mut events = Events::default();
    let mut out = Vec::new();
    let mut consumed = 0;
    let mut stop = Stop::NeedMore;
    for &end in ends {
        while stop == Stop::NeedMore && consumed < end {
            let react = &mut |server: &mut Server, event: &ServerEvent<'_>, out: &mut Vec<u8>| {
                react(choice, server, event, out);
            };
            let piece = &text[consumed..end];
            let (count, why) = feed_server(&mut server, piece, react, &mut out, &mut events);
            consumed += count;
            stop = why;
        }
    }
    if stop == Stop::Failed {
        assert!(server.is_closing(), "a connection that failed stays open");
    }
    Some((events, consumed, stop, out))
}

fn same_in_pieces(text: &[u8], read: impl Fn(&[usize]) -> Option<Outcome>) {
    let read = |ends: &[usize]| read(ends).expect("a constant of this file is malformed");
    let (events, consumed, stop, out) = read(&[text.len()]);
    let check = |ends: &[usize]| {
        let cut = read(ends);
        assert_eq!(cut.0, events, "cut at {ends:?}");
        assert_eq!(cut.2, stop, "cut at {ends:?}");
        assert_eq!(cut.3, out, "cut at {ends:?}");
        // where an error is noticed may depend on the pieces
        if stop != Stop::Failed {
            assert_eq!(cut.1, consumed, "cut at {ends:?}");
        }
    };
    check(&(1..=text.len()).collect::<Vec<_>>());
    for cut in 1..text.len() {
        check(&[cut, text.len()]);
    }
}

/// An answer reads the same whole, byte by byte and cut in two anywhere; it is over or it fails
/// when the connection closes, and never both.
pub(crate) fn answer(choice: u8, text: &[u8]) {
    same_in_pieces(text, |ends| read_answer(choice, text, ends));
}

/// Requests read the same whole, byte by byte and cut in two anywhere, and have the same answers; a
/// connection on which one failed is closed.
pub(crate) fn requests(choice: u8, text: &[u8]) {
    same_in_pieces(text, |ends| read_requests(choice, text, ends));
}
