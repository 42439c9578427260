//! The access log: a JSON object a line for each request of ICAP.

use std::cell::RefCell;
use std::net::IpAddr;
use std::time::Instant;
use weir_icap::{EncapsulatedHeads, RequestHead};
use weir_log::{LineLog, Stamp, escape};
use weir_wire::LineBuffer;

/// Bytes of a target and of the name of a service that are shown: as much as in the log of a proxy.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// The fields of a line, in their order, with what they mean. One that does not apply is absent.
pub const LOG_FIELDS: [(&str, &str); 13] = [
    ("time", "When the answer ended, RFC 3339, UTC."),
    (
        "client",
        "Address of the client; 127.0.0.1 on a socket in the file system.",
    ),
    (
        "method",
        "Method of ICAP; absent if what came is no request.",
    ),
    ("service", "Path and query of the service."),
    (
        "http_method",
        "Method of the request that is adapted, or whose response is.",
    ),
    ("target", "Its target, as received."),
    ("http_status", "Status of the response that is adapted."),
    (
        "status",
        "Status of the answer, in ICAP; 0 if the client was gone before.",
    ),
    (
        "result",
        "`options`, `unmodified`, `modified`, `responded` (the module answers by itself), `failed` \
         (the module did) or `refused`.",
    ),
    (
        "is_whole",
        "Whether all of the answer was sent: a module can fail, and a client disconnect.",
    ),
    ("request_bytes", "Bytes received of the request."),
    ("response_bytes", "Bytes sent of the answer."),
    (
        "total_us",
        "From the first byte of the request to the last of the answer, microseconds.",
    ),
];

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestResult {
    Options,
    Unmodified,
    Modified,
    Responded,
    Failed,
    Refused,
}

impl RequestResult {
    const fn word(self) -> &'static str {
        match self {
            Self::Options => "options",
            Self::Unmodified => "unmodified",
            Self::Modified => "modified",
            Self::Responded => "responded",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }
}

/// What is logged of a request.
#[derive(Debug, Default)]
pub(super) struct RequestLog {
    /// When its first byte came.
    pub(super) begun: Option<Instant>,
    method: &'static str,
    service: String,
    http_method: String,
    target: String,
    http_status: Option<u16>,
    /// The status of the answer and what it says.
    pub(super) answer: Option<(u16, RequestResult)>,
    pub(super) request_bytes: u64,
    pub(super) response_bytes: u64,
}

thread_local! {
    static STAMP: RefCell<Stamp> = const { RefCell::new(Stamp::new()) };
}

impl RequestLog {
    /// Notes what the request is about.
    pub(super) fn note(&mut self, head: &RequestHead, heads: Option<&EncapsulatedHeads>) {
        self.method = head.method().as_str();
        head.service()
            .path_and_query()
            .clone_into(&mut self.service);
        let mut lines = LineBuffer::new();
        if let Some(request) = heads.and_then(|heads| heads.request(&mut lines)) {
            request.method.clone_into(&mut self.http_method);
            request.target.clone_into(&mut self.target);
        }
        let response = heads.and_then(|heads| heads.response(&mut lines));
        self.http_status = response.map(|response| response.status);
    }

    /// Writes its line; `now_unix_ms` are milliseconds since 1970, UTC.
    pub(super) fn write(&self, log: &LineLog, client: IpAddr, now_unix_ms: u64, is_whole: bool) {
        let mut line = Vec::with_capacity(512);
        STAMP.with_borrow_mut(|stamp| {
            stamp.advance_to(now_unix_ms);
            line.extend_from_slice(b"{\"time\":\"");
            stamp.write_rfc3339(&mut line);
            line.extend_from_slice(b"\",\"client\":\"");
            escape::ip(client, &mut line);
            line.push(b'"');
        });
        let (status, result) = self
            .answer
            .map_or((0, ""), |(status, result)| (status, result.word()));
        for (key, value) in [
            ("method", self.method),
            ("service", &self.service),
            ("http_method", &self.http_method),
            ("target", &self.target),
        ] {
            put_text(key, value, &mut line);
        }
        if let Some(status) = self.http_status {
            put_number("http_status", status.into(), &mut line);
        }
        put_number("status", status.into(), &mut line);
        put_text("result", result, &mut line);
        put_key("is_whole", &mut line);
        line.extend_from_slice(if is_whole { b"true" } else { b"false" });
        let total = self.begun.map(|begun| begun.elapsed().as_micros());
        let total_us = u64::try_from(total.unwrap_or(0)).unwrap_or(u64::MAX);
        for (key, value) in [
            ("request_bytes", self.request_bytes),
            ("response_bytes", self.response_bytes),
            ("total_us", total_us),
        ] {
            put_number(key, value, &mut line);
        }
        line.extend_from_slice(b"}\n");
        log.push(&line);
    }
}

fn put_key(key: &str, line: &mut Vec<u8>) {
    line.extend_from_slice(b",\"");
    line.extend_from_slice(key.as_bytes());
    line.extend_from_slice(b"\":");
}

/// Nothing if the text is empty.
fn put_text(key: &str, text: &str, line: &mut Vec<u8>) {
    if !text.is_empty() {
        put_key(key, line);
        line.push(b'"');
        escape::json(escape::cut(text.as_bytes(), TEXT_BYTES_MAX), line);
        line.push(b'"');
    }
}

fn put_number(key: &str, number: u64, line: &mut Vec<u8>) {
    put_key(key, line);
    escape::number(number, line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Read as _;
    use std::net::Ipv4Addr;

    fn line(log: &RequestLog) -> String {
        let (read, write) = rustix::pipe::pipe().expect("a pipe");
        let lines = LineLog::to_file(File::from(write), 10, |_| {}).expect("a thread");
        log.write(&lines, Ipv4Addr::LOCALHOST.into(), 784_111_777_042, true);
        drop(lines);
        let mut text = String::new();
        File::from(read).read_to_string(&mut text).expect("ASCII");
        text
    }

    #[test]
    fn line_has_the_fields_of_the_table_in_their_order() {
        let log = RequestLog {
            begun: None,
            method: "RESPMOD",
            service: "/scan?hook=response-sent".to_owned(),
            http_method: "GET".to_owned(),
            target: "http://a.example/\"x\"\n".to_owned(),
            http_status: Some(200),
            answer: Some((204, RequestResult::Unmodified)),
            request_bytes: 400,
            response_bytes: 100,
        };
        let found = line(&log);
        assert_eq!(
            found,
            "{\"time\":\"1994-11-06T08:49:37.042Z\",\"client\":\"127.0.0.1\",\
             \"method\":\"RESPMOD\",\"service\":\"/scan?hook=response-sent\",\
             \"http_method\":\"GET\",\"target\":\"http://a.example/\\\"x\\\"\\u000a\",\
             \"http_status\":200,\"status\":204,\"result\":\"unmodified\",\"is_whole\":true,\
             \"request_bytes\":400,\"response_bytes\":100,\"total_us\":0}\n"
        );
        let mut at = 0;
        for (name, _) in LOG_FIELDS {
            let key = format!("\"{name}\":");
            at += found[at..].find(&key).expect("a field, behind the others") + key.len();
        }
        assert_eq!(found.matches("\":").count(), LOG_FIELDS.len());
    }

    #[test]
    fn line_of_what_is_no_request_is_short_and_one_of_a_long_target_is_cut() {
        let mut log = RequestLog {
            answer: Some((400, RequestResult::Refused)),
            ..RequestLog::default()
        };
        assert!(line(&log).ends_with(
            "\"client\":\"127.0.0.1\",\"status\":400,\"result\":\"refused\",\"is_whole\":true,\
             \"request_bytes\":0,\"response_bytes\":0,\"total_us\":0}\n"
        ));
        log.target = "x".repeat(100_000);
        assert!(line(&log).len() < TEXT_BYTES_MAX + 1000);
    }
}
