//! Sending a stored response: whole, its head, a part, or "not modified".
//!
//! The stored head is ready to send; only Age, Cache-Status and Connection are made for each use
//! (RFC 9111 §4, RFC 9211), and, for 206 and 304, the status line and the fields that differ (RFC
//! 9110 §15.3.7, §15.4.5).

use crate::log::words;
use crate::settings::Settings;
use weir_net::http::ContentForm;
use weir_policy::fetch::ByteSpan;
use weir_policy::{Serving, Verdict};
use weir_semantics::{
    ByteRange, FieldLine, Known, Method, Precondition, RangeOutcome, RequestFacts, Timestamp,
    evaluate, identify, if_range_holds, line_named, select,
};
use weir_store::{PieceRef, StoredResponse};
use weir_wire::{LineBuffer, Version, parse_fields, write};

/// Content up to this size is copied behind its head and sent in one write; a larger copy costs
/// more than a second piece.
pub(crate) const INLINE_BYTES_MAX: u64 = 16 * 1024;

/// In what form a stored response answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServedForm {
    /// As stored.
    Whole,
    /// As stored, of a length that is not known yet.
    Unsized,
    /// As stored, without content (HEAD).
    HeadOnly,
    /// 304 (RFC 9110 §15.4.5).
    NotModified,
    /// 412 (RFC 9110 §13.2.2).
    Failed,
    /// 206 with one part.
    Part(ByteRange),
    /// 416.
    Unsatisfiable,
}

impl ServedForm {
    /// The form for a request on `stored` (RFC 9110 §13.2.2: preconditions first, then Range).
    pub(crate) fn of(
        facts: &RequestFacts,
        fields: &[FieldLine<'_>],
        stored: &StoredResponse,
        now: Timestamp,
    ) -> Self {
        let method = facts.method;
        if facts.preconditions && stored.facts.status == 200 {
            match evaluate(method, fields, &stored.validators(), now) {
                Precondition::NotModified => return Self::NotModified,
                Precondition::Failed => return Self::Failed,
                Precondition::Absent | Precondition::Proceed => {}
            }
        }
        if method == Method::Head {
            return Self::HeadOnly;
        }
        if facts.has_range && stored.facts.status == 200 {
            return Self::ranged(facts, fields, stored, now);
        }
        Self::Whole
    }

    fn ranged(
        facts: &RequestFacts,
        fields: &[FieldLine<'_>],
        stored: &StoredResponse,
        now: Timestamp,
    ) -> Self {
        let holds = !facts.has_if_range || if_range_holds(fields, &stored.validators(), now);
        let (true, Some(range)) = (holds, line_named(fields, "range")) else {
            return Self::Whole;
        };
        match select(range, stored.body.len(), 1) {
            RangeOutcome::Single(range) => Self::Part(range),
            RangeOutcome::Unsatisfiable => Self::Unsatisfiable,
            // several parts may be answered by the whole (RFC 9110 §14.2)
            RangeOutcome::Whole | RangeOutcome::Multiple(_) => Self::Whole,
        }
    }

    /// Status code sent.
    pub(crate) fn status(self, stored: &StoredResponse) -> u16 {
        match self {
            Self::Whole | Self::Unsized | Self::HeadOnly => stored.facts.status,
            Self::NotModified => 304,
            Self::Failed => 412,
            Self::Part(_) => 206,
            Self::Unsatisfiable => 416,
        }
    }

    /// The bytes of the content this form sends; `None` if none.
    pub(crate) fn span(self, stored: &StoredResponse) -> Option<ByteSpan> {
        let (from, to) = self.content(stored);
        (from < to).then_some(ByteSpan { from, to })
    }

    /// What follows its head.
    pub(crate) fn content_form(self) -> ContentForm {
        match self {
            Self::Unsized => ContentForm::Unsized,
            Self::HeadOnly | Self::NotModified => ContentForm::None,
            Self::Whole | Self::Part(_) | Self::Failed | Self::Unsatisfiable => ContentForm::Sized,
        }
    }

    /// First byte of the content sent, and one past the last.
    pub(crate) fn content(self, stored: &StoredResponse) -> (u64, u64) {
        match self {
            Self::Whole => (0, stored.body.len()),
            Self::Unsized => (0, u64::MAX),
            Self::Part(range) => (range.first, range.last + 1),
            Self::HeadOnly | Self::NotModified | Self::Failed | Self::Unsatisfiable => (0, 0),
        }
    }
}

/// Appends the head for `form`: the status line and the end-to-end fields.
pub(crate) fn write_head(
    settings: &Settings,
    stored: &StoredResponse,
    form: ServedForm,
    serving: Serving,
    verdict: &Verdict,
    out: &mut Vec<u8>,
) {
    match form {
        ServedForm::Whole | ServedForm::HeadOnly | ServedForm::Unsized => {
            out.extend_from_slice(&stored.head);
        }
        ServedForm::NotModified => write_selected(304, "Not Modified", stored, keeps_in_304, out),
        ServedForm::Failed => write_selected(412, "Precondition Failed", stored, keeps_bare, out),
        ServedForm::Unsatisfiable => {
            write_selected(416, "Range Not Satisfiable", stored, keeps_bare, out);
            out.extend_from_slice(b"Content-Range: bytes */");
            write::decimal(out, stored.body.len());
            out.extend_from_slice(b"\r\n");
        }
        ServedForm::Part(range) => {
            write_selected(206, "Partial Content", stored, keeps_in_206, out);
            write_part(range, stored.body.len(), out);
        }
    }
    if matches!(form, ServedForm::Failed | ServedForm::Unsatisfiable) {
        out.extend_from_slice(b"Content-Length: 0\r\n");
    }
    out.extend_from_slice(b"Age: ");
    write::decimal(out, u64::from(serving.age.0));
    out.extend_from_slice(b"\r\n");
    words::write_cache_status(settings, verdict, out);
}

/// How long the status line of a head is that [`write_head`] has written, with its CRLF.
pub(crate) fn line_bytes(head: &[u8]) -> usize {
    // behind version, status and a space
    const REASON_AT: usize = "HTTP/1.1 200 ".len();
    let reason = head.iter().skip(REASON_AT);
    let end = reason.take_while(|byte| **byte != b'\n').count();
    (REASON_AT + end + 1).min(head.len())
}

fn write_part(range: ByteRange, complete_length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Range: bytes ");
    write::decimal(out, range.first);
    out.push(b'-');
    write::decimal(out, range.last);
    out.push(b'/');
    write::decimal(out, complete_length);
    out.extend_from_slice(b"\r\nContent-Length: ");
    write::decimal(out, range.last - range.first + 1);
    out.extend_from_slice(b"\r\n");
}

/// Appends the content of `form`, which is in memory.
pub(crate) fn write_content(stored: &StoredResponse, form: ServedForm, out: &mut Vec<u8>) {
    let (mut at, end) = form.content(stored);
    while at < end {
        let Some(PieceRef::Memory(bytes)) = stored.body.piece_ref_at(at) else {
            debug_assert!(false, "a form that is not stored");
            return;
        };
        let left = usize::try_from(end - at).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(left)];
        out.extend_from_slice(bytes);
        at += bytes.len() as u64;
    }
}

fn write_selected(
    status: u16,
    reason: &str,
    stored: &StoredResponse,
    keeps: fn(&str) -> bool,
    out: &mut Vec<u8>,
) {
    write::status_line(out, Version::Http11, status, reason);
    let mut lines = LineBuffer::new();
    for line in stored_fields(&stored.head, &mut lines) {
        if keeps(line.name) {
            write::field(out, line.name, line.value);
        }
    }
}

/// The field lines of a stored head: what follows its status line.
pub(crate) fn stored_fields<'s, 'a>(
    head: &'a [u8],
    lines: &'s mut LineBuffer<'a>,
) -> &'s [FieldLine<'a>] {
    let start = head
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(head.len(), |at| at + 1);
    let fields = parse_fields(&head[start..], lines);
    // it was parsed before it was stored, with fewer lines than there is room for: it parses again
    debug_assert!(fields.is_ok(), "a stored head is not read: {fields:?}");
    fields.unwrap_or(&[])
}

/// RFC 9110 §15.4.5: what a 304 must repeat, and no metadata of content that is not sent.
fn keeps_in_304(name: &str) -> bool {
    let of_content = name
        .get(..8)
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case("content-"));
    !of_content || identify(name) == Some(Known::ContentLocation)
}

/// RFC 9110 §15.3.7: everything a 200 would carry, but its length, and a range that means nothing
/// in it.
fn keeps_in_206(name: &str) -> bool {
    !matches!(
        identify(name),
        Some(Known::ContentLength | Known::ContentRange)
    )
}

/// A response without a representation keeps only the fields about its sender and its time.
fn keeps_bare(name: &str) -> bool {
    matches!(identify(name), Some(Known::Date | Known::Via))
}
