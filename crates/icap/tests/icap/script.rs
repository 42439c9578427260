//! Parts of conversations.

use weir_icap::{AdaptRequest, IsTag, Limits, Server, ServiceUri, Subject, Transaction};

use crate::events::{Events, Stop, feed_client, feed_server};

/// 27 bytes.
pub(crate) const REQUEST: &str = "GET / HTTP/1.1\r\nHost: e\r\n\r\n";
/// 25 bytes.
pub(crate) const RESPONSE: &str = "HTTP/1.1 200 OK\r\nA: b\r\n\r\n";

pub(crate) fn service() -> ServiceUri {
    ServiceUri::parse(b"icap://e/s").unwrap()
}

/// What of a request is not the same in all tests.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) is_respmod: bool,
    pub(crate) has_content: bool,
    pub(crate) preview: Option<u32>,
    pub(crate) allow_204: bool,
}

pub(crate) const RESPMOD: Shape = Shape {
    is_respmod: true,
    has_content: true,
    preview: None,
    allow_204: false,
};

pub(crate) const REQMOD: Shape = Shape {
    is_respmod: false,
    ..RESPMOD
};

impl Shape {
    pub(crate) fn start(self) -> Transaction {
        let subject = if self.is_respmod {
            Subject::Response {
                request: Some(REQUEST.as_bytes()),
                head: RESPONSE.as_bytes(),
            }
        } else {
            Subject::Request(REQUEST.as_bytes())
        };
        let request = AdaptRequest {
            service: &service(),
            fields: &[],
            subject,
            has_content: self.has_content,
            preview: self.preview,
            allow_204: self.allow_204,
        };
        Transaction::adapt(&request, Limits::default()).unwrap()
    }

    /// The request, with all that can be sent of `content` sent.
    pub(crate) fn sent(self, content: &[u8]) -> Transaction {
        let mut client = self.start();
        offer(&mut client, content);
        send(&mut client);
        client
    }
}

/// Offers `content` and its end. Returns what was not taken.
pub(crate) fn offer<'c>(client: &mut Transaction, mut content: &'c [u8]) -> &'c [u8] {
    while client.takes_content() {
        if content.is_empty() {
            client.finish_content();
        } else {
            let taken = client.offer(content);
            content = &content[taken..];
        }
    }
    content
}

/// All that is to be sent.
pub(crate) fn send(client: &mut Transaction) -> String {
    let text = String::from_utf8_lossy(client.unsent()).into_owned();
    client.sent(client.unsent().len());
    text
}

/// What the client finds in `input`. All of it is consumed.
pub(crate) fn receive(client: &mut Transaction, input: &str) -> Vec<String> {
    let mut events = Events::default();
    let (consumed, stop) = feed_client(client, input.as_bytes(), &mut events);
    if stop != Stop::Failed {
        assert_eq!(consumed, input.len(), "bytes after the end");
    }
    events.words().to_vec()
}

pub(crate) fn server() -> Server {
    Server::new(IsTag::new("t1").unwrap(), Limits::default())
}

/// What the server finds in `input`, and why it stops.
pub(crate) fn serve(server: &mut Server, input: &str) -> (Vec<String>, Stop) {
    let mut events = Events::default();
    let mut out = Vec::new();
    let input = input.as_bytes();
    let (_, stop) = feed_server(server, input, &mut |_, _, _| {}, &mut out, &mut events);
    (events.words().to_vec(), stop)
}

/// An ICAP message: a start line, its field lines, and what follows the head.
pub(crate) fn message(start: &str, lines: &str, rest: &str) -> String {
    format!("{start}\r\n{lines}\r\n{rest}")
}

/// A 200 with these parts.
pub(crate) fn modified(list: &str, rest: &str) -> String {
    let lines = format!("ISTag: \"t1\"\r\nEncapsulated: {list}\r\n");
    message("ICAP/1.0 200 OK", &lines, rest)
}

pub(crate) const UNMODIFIED: &str = "ICAP/1.0 204 No modifications needed\r\n\
    ISTag: \"t1\"\r\nEncapsulated: null-body=0\r\n\r\n";

pub(crate) const CONTINUE: &str = "ICAP/1.0 100 Continue\r\n\r\n";
