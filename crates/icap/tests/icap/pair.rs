//! The client against the server, with the bytes of each direction cut at each place.

use weir_icap::{
    Adapted, AdaptedContent, Limits, Method, OptionsAnswer, RefusalStatus, Server, ServerEvent,
    Transaction,
};

use crate::events::{Events, React, Stop, feed_client, feed_server};
use crate::script::{REQMOD, REQUEST, RESPMOD, RESPONSE, Shape, offer, server, service};

/// How the bytes of one direction arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    Nowhere,
    After(usize),
    Everywhere,
}

/// One direction.
struct Pipe {
    bytes: Vec<u8>,
    /// How many bytes have arrived.
    arrived: usize,
    /// How many of them are consumed.
    consumed: usize,
    cut: Cut,
}

impl Pipe {
    fn new(cut: Cut) -> Self {
        Self {
            bytes: Vec::new(),
            arrived: 0,
            consumed: 0,
            cut,
        }
    }

    /// Lets more bytes arrive. Whether there were any.
    fn arrive(&mut self) -> bool {
        let before = self.arrived;
        let all = self.bytes.len();
        self.arrived = match self.cut {
            Cut::After(cut) if before < cut => all.min(cut),
            Cut::Everywhere => all.min(before + 1),
            _ => all,
        };
        self.arrived > before
    }

    fn unread(&self) -> &[u8] {
        &self.bytes[self.consumed..self.arrived]
    }
}

/// What both sides found in one request and its answer.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    client: Vec<String>,
    server: Vec<String>,
    is_reusable: bool,
}

struct Conversation {
    client: Transaction,
    content: &'static [u8],
    react: fn(&mut Server, &ServerEvent<'_>, &mut Vec<u8>),
}

impl Conversation {
    /// Runs it until nothing moves. Returns the outcome and the bytes of both directions.
    fn run(&self, server: &mut Server, cuts: [Cut; 2]) -> (Outcome, [usize; 2]) {
        let mut client = self.client.clone();
        let mut content = self.content;
        let [mut requests, mut answers] = cuts.map(Pipe::new);
        let mut words = [Events::default(), Events::default()];
        let mut is_ended = false;
        let mut react = self.react;
        loop {
            content = offer(&mut client, content);
            requests.bytes.extend_from_slice(client.unsent());
            client.sent(client.unsent().len());
            let mut moves = requests.arrive();
            let (input, out) = (requests.unread(), &mut answers.bytes);
            let react: &mut React<'_> = &mut react;
            let (consumed, stop) = feed_server(server, input, react, out, &mut words[1]);
            assert_ne!(stop, Stop::Failed, "{words:?}");
            requests.consumed += consumed;
            if !is_ended {
                moves |= answers.arrive();
                let input = answers.unread();
                let (consumed, stop) = feed_client(&mut client, input, &mut words[0]);
                assert_ne!(stop, Stop::Failed, "{words:?}");
                answers.consumed += consumed;
                is_ended = stop == Stop::End;
            }
            if !moves && client.unsent().is_empty() {
                break;
            }
        }
        assert!(is_ended, "{words:?}");
        let [client_words, server_words] = words.map(|words| words.words().to_vec());
        let outcome = Outcome {
            client: client_words,
            server: server_words,
            is_reusable: client.is_reusable(),
        };
        (outcome, [requests.bytes.len(), answers.bytes.len()])
    }

    /// Runs it whole, cut at each place of each direction, and byte by byte.
    fn check(&self, client: &[&str], server_words: &[&str]) {
        let expected = Outcome {
            client: client.iter().map(ToString::to_string).collect(),
            server: server_words.iter().map(ToString::to_string).collect(),
            is_reusable: true,
        };
        let (outcome, [request_bytes, answer_bytes]) =
            self.run(&mut server(), [Cut::Nowhere, Cut::Nowhere]);
        assert_eq!(outcome, expected);
        let requests = (1..request_bytes).map(|cut| [Cut::After(cut), Cut::Nowhere]);
        let answers = (1..answer_bytes).map(|cut| [Cut::Nowhere, Cut::After(cut)]);
        let each = [
            [Cut::Everywhere, Cut::Nowhere],
            [Cut::Nowhere, Cut::Everywhere],
            [Cut::Everywhere, Cut::Everywhere],
        ];
        for cuts in requests.chain(answers).chain(each) {
            let mut server = server();
            let (outcome, bytes) = self.run(&mut server, cuts);
            assert_eq!(outcome, expected, "{cuts:?}");
            assert_eq!(bytes, [request_bytes, answer_bytes], "{cuts:?}");
            assert!(server.is_idle() && !server.is_closing(), "{cuts:?}");
            let (next, _) = options().run(&mut server, [Cut::Nowhere, Cut::Nowhere]);
            assert_eq!(
                next.client,
                ["options", "end"],
                "the next request, {cuts:?}"
            );
        }
    }
}

fn options() -> Conversation {
    Conversation {
        client: Transaction::options(&service(), &[], Limits::default()).unwrap(),
        content: b"",
        react: |server, event, out| {
            if let ServerEvent::Options(_) = event {
                let options = OptionsAnswer {
                    methods: &[Method::Respmod, Method::Reqmod],
                    service: "test",
                    service_id: None,
                    preview_bytes: Some(4),
                    max_connections: None,
                    ttl: None,
                    allows_204: true,
                    fields: &[],
                };
                server.write_options(&options, out).unwrap();
            }
        },
    }
}

fn conversation(
    shape: Shape,
    content: &'static [u8],
    react: fn(&mut Server, &ServerEvent<'_>, &mut Vec<u8>),
) -> Conversation {
    Conversation {
        client: shape.start(),
        content,
        react,
    }
}

/// Begins a 200 with the response head of the tests.
fn begin(server: &mut Server, out: &mut Vec<u8>) {
    let adapted = Adapted::Response(RESPONSE.as_bytes());
    let content = AdaptedContent::Changed;
    server.write_adapted(&[], &adapted, content, out).unwrap();
}

/// Continues after a preview; answers with other content at the end.
fn continue_and_replace(server: &mut Server, event: &ServerEvent<'_>, out: &mut Vec<u8>) {
    match event {
        ServerEvent::PreviewEnd { is_whole: false } => server.write_continue(out).unwrap(),
        ServerEvent::AnswerDue => {
            begin(server, out);
            server.write_content(b"new", out).unwrap();
            server.write_end(out).unwrap();
        }
        _ => {}
    }
}

/// Answers as soon as the heads are there, piece by piece.
fn echo(server: &mut Server, event: &ServerEvent<'_>, out: &mut Vec<u8>) {
    match event {
        ServerEvent::Adapt { .. } => begin(server, out),
        ServerEvent::Content(data) => {
            let upper = data.to_ascii_uppercase();
            server.write_content(&upper, out).unwrap();
        }
        ServerEvent::End => server.write_end(out).unwrap(),
        _ => {}
    }
}

fn leave_unmodified(server: &mut Server, event: &ServerEvent<'_>, out: &mut Vec<u8>) {
    if let ServerEvent::AnswerDue = event {
        server.write_unmodified(&[], out).unwrap();
    }
}

const ADAPT: &str = "RESPMOD [GET / HTTP/1.1] [HTTP/1.1 200 OK]";
const MODIFIED: &str = "modified HTTP/1.1 200 OK, content";

const PREVIEW: Shape = Shape {
    preview: Some(4),
    ..RESPMOD
};

#[test]
fn options_are_the_same_at_every_cut() {
    options().check(&["options", "end"], &["options icap://e/s", "end"]);
}

#[test]
fn preview_answered_with_204_is_the_same_at_every_cut() {
    conversation(PREVIEW, b"hello world", leave_unmodified).check(
        &["unmodified", "end"],
        &[ADAPT, "content hell", "preview end"],
    );
}

#[test]
fn empty_preview_answered_with_204_is_the_same_at_every_cut() {
    let shape = Shape {
        preview: Some(0),
        ..RESPMOD
    };
    conversation(shape, b"hello", leave_unmodified)
        .check(&["unmodified", "end"], &[ADAPT, "preview end"]);
}

#[test]
fn content_after_a_preview_is_the_same_at_every_cut() {
    conversation(PREVIEW, b"hello world", continue_and_replace).check(
        &["continue", MODIFIED, "content new", "end"],
        &[
            ADAPT,
            "content hell",
            "preview end",
            "content o world",
            "end",
        ],
    );
}

#[test]
fn whole_content_in_a_preview_is_the_same_at_every_cut() {
    conversation(PREVIEW, b"hell", continue_and_replace).check(
        &[MODIFIED, "content new", "end"],
        &[ADAPT, "content hell", "preview is whole", "end"],
    );
    conversation(PREVIEW, b"", continue_and_replace).check(
        &[MODIFIED, "content new", "end"],
        &[ADAPT, "preview is whole", "end"],
    );
}

#[test]
fn answer_204_after_100_is_the_same_at_every_cut() {
    let shape = Shape {
        allow_204: true,
        ..PREVIEW
    };
    let react = |server: &mut Server, event: &ServerEvent<'_>, out: &mut Vec<u8>| match event {
        ServerEvent::PreviewEnd { is_whole: false } => server.write_continue(out).unwrap(),
        event => leave_unmodified(server, event, out),
    };
    conversation(shape, b"hello", react).check(
        &["continue", "unmodified", "end"],
        &[ADAPT, "content hell", "preview end", "content o", "end"],
    );
}

#[test]
fn content_answered_while_it_is_sent_is_the_same_at_every_cut() {
    let content = b"hello world";
    let run = |cuts| {
        conversation(RESPMOD, content, echo)
            .run(&mut server(), cuts)
            .0
    };
    let expected = Outcome {
        client: [MODIFIED, "content HELLO WORLD", "end"]
            .map(str::to_owned)
            .to_vec(),
        server: [ADAPT, "content hello world", "end"]
            .map(str::to_owned)
            .to_vec(),
        is_reusable: true,
    };
    // how the server's chunks are cut depends on the pieces that it received
    for cut in 1..200 {
        assert_eq!(run([Cut::After(cut), Cut::Nowhere]), expected);
        assert_eq!(run([Cut::Nowhere, Cut::After(cut)]), expected);
        assert_eq!(run([Cut::After(cut), Cut::After(cut)]), expected);
        assert_eq!(run([Cut::After(cut), Cut::Everywhere]), expected);
    }
    assert_eq!(run([Cut::Everywhere, Cut::Everywhere]), expected);
}

#[test]
fn answer_204_without_preview_is_the_same_at_every_cut() {
    let shape = Shape {
        allow_204: true,
        ..REQMOD
    };
    conversation(shape, b"hello", leave_unmodified).check(
        &["unmodified", "end"],
        &["REQMOD [GET / HTTP/1.1] []", "content hello", "end"],
    );
}

#[test]
fn request_without_content_is_the_same_at_every_cut() {
    let shape = Shape {
        has_content: false,
        ..REQMOD
    };
    let react = |server: &mut Server, event: &ServerEvent<'_>, out: &mut Vec<u8>| {
        if let ServerEvent::AnswerDue = event {
            let adapted = Adapted::Request(REQUEST.as_bytes());
            let content = AdaptedContent::None;
            server.write_adapted(&[], &adapted, content, out).unwrap();
        }
    };
    conversation(shape, b"", react).check(
        &["modified GET / HTTP/1.1", "end"],
        &["REQMOD [GET / HTTP/1.1] []", "end"],
    );
}

#[test]
fn error_answer_to_a_preview_is_the_same_at_every_cut() {
    let react = |server: &mut Server, event: &ServerEvent<'_>, out: &mut Vec<u8>| {
        if let ServerEvent::AnswerDue = event {
            let status = RefusalStatus::NotFound;
            server.write_refusal(status, out).unwrap();
        }
    };
    conversation(PREVIEW, b"hello", react).check(
        &["refused 404", "end"],
        &[ADAPT, "content hell", "preview end"],
    );
}

#[test]
fn content_of_many_pieces_arrives_whole() {
    static CONTENT: [u8; 300_000] = [b'x'; 300_000];
    let bytes = |words: &[String]| -> usize {
        let contents = words
            .iter()
            .filter_map(|word| word.strip_prefix("content "));
        contents.map(str::len).sum()
    };
    for (shape, react, answer_bytes) in [
        (
            RESPMOD,
            echo as fn(&mut Server, &ServerEvent<'_>, &mut Vec<u8>),
            CONTENT.len(),
        ),
        (PREVIEW, continue_and_replace, "new".len()),
    ] {
        let conversation = conversation(shape, &CONTENT, react);
        let (outcome, _) = conversation.run(&mut server(), [Cut::Nowhere, Cut::Nowhere]);
        assert_eq!(bytes(&outcome.client), answer_bytes);
        assert_eq!(bytes(&outcome.server), CONTENT.len());
        assert!(outcome.is_reusable);
    }
}
