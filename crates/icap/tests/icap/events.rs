//! What each side reports, as words.

use weir_icap::{ClientEvent, PIECE_BYTES_MAX, Server, ServerEvent, Transaction};

/// Events in order; content that follows content is joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Events {
    words: Vec<String>,
    ends_with_content: bool,
}

/// Why no more input was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    NeedMore,
    /// An answer is due, and none was written.
    AnswerDue,
    /// The answer is over, or the connection is.
    End,
    Failed,
}

impl Events {
    fn word(&mut self, word: String) {
        self.words.push(word);
        self.ends_with_content = false;
    }

    fn content(&mut self, data: &[u8]) {
        assert!((1..=PIECE_BYTES_MAX).contains(&data.len()));
        let text = data.escape_ascii().to_string();
        match self.words.last_mut().filter(|_| self.ends_with_content) {
            Some(last) => last.push_str(&text),
            None => self.words.push(format!("content {text}")),
        }
        self.ends_with_content = true;
    }

    pub(crate) fn words(&self) -> &[String] {
        &self.words
    }
}

/// The first line of a head.
fn start_line(head: &[u8]) -> String {
    let end = head.iter().position(|&byte| byte == b'\r');
    head[..end.unwrap_or(head.len())].escape_ascii().to_string()
}

/// Lets the client read `input`. Returns how many bytes it consumed.
pub(crate) fn feed_client(
    client: &mut Transaction,
    input: &[u8],
    events: &mut Events,
) -> (usize, Stop) {
    let mut consumed = 0;
    loop {
        let step = match client.receive(&input[consumed..]) {
            Ok(step) => step,
            Err(error) => {
                events.word(format!("error {error:?}"));
                return (consumed, Stop::Failed);
            }
        };
        consumed += step.consumed;
        events.word(match step.event {
            ClientEvent::NeedMore => {
                assert_eq!(consumed, input.len());
                return (consumed, Stop::NeedMore);
            }
            ClientEvent::Content(data) => {
                events.content(data);
                continue;
            }
            ClientEvent::Continue => "continue".into(),
            ClientEvent::Unmodified(_) => "unmodified".into(),
            ClientEvent::Modified {
                heads, has_content, ..
            } => {
                let head = [heads.request_bytes(), heads.response_bytes()].concat();
                let content = if has_content { ", content" } else { "" };
                format!("modified {}{content}", start_line(&head))
            }
            ClientEvent::Options(_) => "options".into(),
            ClientEvent::Refused(answer) => format!("refused {}", answer.status()),
            ClientEvent::End => {
                events.word("end".into());
                return (consumed, Stop::End);
            }
        });
    }
}

/// What a server does on an event: it may append an answer.
pub(crate) type React<'r> = dyn FnMut(&mut Server, &ServerEvent<'_>, &mut Vec<u8>) + 'r;

/// Lets the server read `input` and react. Returns how many bytes it consumed.
pub(crate) fn feed_server(
    server: &mut Server,
    input: &[u8],
    react: &mut React<'_>,
    out: &mut Vec<u8>,
    events: &mut Events,
) -> (usize, Stop) {
    let mut consumed = 0;
    loop {
        let step = match server.receive(&input[consumed..]) {
            Ok(step) => step,
            Err(error) => {
                events.word(format!("error {error:?}"));
                return (consumed, Stop::Failed);
            }
        };
        consumed += step.consumed;
        match &step.event {
            ServerEvent::NeedMore => {
                assert_eq!(consumed, input.len());
                return (consumed, Stop::NeedMore);
            }
            ServerEvent::Closing => return (consumed, Stop::End),
            ServerEvent::AnswerDue => {}
            ServerEvent::Content(data) => events.content(data),
            ServerEvent::Options(head) => {
                events.word(format!("options {}", head.service().as_str()))
            }
            ServerEvent::Adapt { head, heads } => {
                let request = start_line(heads.request_bytes());
                let response = start_line(heads.response_bytes());
                let method = head.method().as_str();
                events.word(format!("{method} [{request}] [{response}]"));
            }
            ServerEvent::PreviewEnd { is_whole: true } => events.word("preview is whole".into()),
            ServerEvent::PreviewEnd { is_whole: false } => events.word("preview end".into()),
            ServerEvent::End => events.word("end".into()),
        }
        let written = out.len();
        react(server, &step.event, out);
        if step.event == ServerEvent::AnswerDue && out.len() == written {
            return (consumed, Stop::AnswerDue);
        }
    }
}
