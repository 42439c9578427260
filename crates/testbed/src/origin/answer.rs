//! What the origin answers: a head, and the part of the content that follows it.

use super::asked::{Asked, Part, part};
use crate::client::content::Content;
use crate::host;
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A response before it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) content: Content,
    /// Half-open.
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// All content is this old: long enough that no cache finds it too new to have a strong validator
/// (RFC 9110 §8.8.2.2).
const LAST_MODIFIED: Duration = Duration::from_secs(1_600_000_000);

/// The response to a request for `asked` with this head.
pub(crate) fn answer(asked: &Asked, request_head: &str, now: SystemTime) -> Answer {
    let content = Content::of(&asked.target);
    let size_bytes = asked.size_bytes;
    let entity_tag = format!("\"{:016x}\"", content.seed());
    let (status, reason, from, to) = match part(request_head, size_bytes, &entity_tag) {
        Part::Whole => (200, "OK", 0, size_bytes),
        Part::Range { from, to } => (206, "Partial Content", from, to),
        Part::Unsatisfiable => (416, "Range Not Satisfiable", 0, 0),
    };
    let mut head = format!("HTTP/1.1 {status} {reason}\r\n");
    let mut field = |name: &str, value: &str| {
        // writing to a string cannot fail
        let _ = write!(head, "{name}: {value}\r\n");
    };
    field("Date", &host::http_date(now));
    if asked.is_until_close && status == 200 {
        field("Connection", "close");
    } else {
        field("Content-Length", &(to - from).to_string());
    }
    match status {
        206 => field(
            "Content-Range",
            &format!("bytes {from}-{}/{size_bytes}", to - 1),
        ),
        416 => field("Content-Range", &format!("bytes */{size_bytes}")),
        _ => field("Accept-Ranges", "bytes"),
    }
    if status != 416 {
        field("Content-Type", "application/octet-stream");
        field("ETag", &entity_tag);
        field(
            "Last-Modified",
            &host::http_date(UNIX_EPOCH + LAST_MODIFIED),
        );
        let storable = "public, max-age=3600";
        field(
            "Cache-Control",
            if asked.is_storable {
                storable
            } else {
                "no-store"
            },
        );
    }
    head.push_str("\r\n");
    Answer {
        status,
        head,
        content,
        from,
        to,
    }
}

#[cfg(test)]
mod tests {
    use super::super::asked::target;
    use super::*;
    use crate::client::get::field;

    fn check(fields: &str, is_storable: bool) -> Answer {
        let target = target("/a", 100, None, is_storable);
        let asked = Asked::parse(&target).expect("a target of ours");
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        answer(
            &asked,
            &request,
            UNIX_EPOCH + Duration::from_secs(784_111_777),
        )
    }

    #[test]
    fn storable_response_has_freshness_validator_and_range_fields() {
        let whole = check("", true);
        assert_eq!((whole.status, whole.from, whole.to), (200, 0, 100));
        assert_eq!(field(&whole.head, "content-length"), Some("100"));
        assert_eq!(
            field(&whole.head, "date"),
            Some("Sun, 06 Nov 1994 08:49:37 GMT")
        );
        assert_eq!(
            field(&whole.head, "cache-control"),
            Some("public, max-age=3600")
        );
        assert!(field(&whole.head, "last-modified").is_some());
        let part = check("Range: bytes=10-19\r\n", true);
        assert_eq!((part.status, part.from, part.to), (206, 10, 20));
        assert_eq!(field(&part.head, "content-range"), Some("bytes 10-19/100"));
        assert_eq!(field(&part.head, "content-length"), Some("10"));
        assert_eq!(field(&part.head, "etag"), field(&whole.head, "etag"));
    }

    #[test]
    fn non_storable_response_is_marked_no_store() {
        let response = check("", false);
        assert_eq!(field(&response.head, "cache-control"), Some("no-store"));
    }

    #[test]
    fn unsatisfiable_range_is_answered_with_416_and_the_size() {
        let response = check("Range: bytes=100-\r\n", true);
        assert_eq!((response.status, response.from, response.to), (416, 0, 0));
        assert_eq!(field(&response.head, "content-range"), Some("bytes */100"));
    }
}
