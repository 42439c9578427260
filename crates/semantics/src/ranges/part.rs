//! Parts of one representation: which may be joined (RFC 9111 §3.4, RFC 9110 §15.3.7.3).
//!
//! Joining requires more than the RFC does. The same strong validator is its condition, and we know
//! one kind of those: entity tags (a strong date needs the origin's clock to be right). Equal
//! lengths and the requested place are our requirements, for origins that reuse their tags.

use crate::facts::ResponseFacts;
use crate::fields::field::{FieldLine, line_named, lines_named};
use crate::ranges::content_range::ContentRange;
use crate::ranges::range::ByteRange;
use crate::validation::entity_tag::EntityTag;

/// Whether a response is about the representation that is stored; of a part, whether it belongs to
/// that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fits {
    /// It is of the same representation, and begins where requested.
    Same,
    /// Anything else: not a byte of it may be mixed with what is stored.
    Other,
    /// It has no validator that shows whether they are the same. Never of a part.
    Unknown,
}

/// The requested range, and the stored response to join it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestedPart<'a> {
    /// The stored entity tag, if there is one: it was sent as `If-Range`.
    pub entity_tag: Option<EntityTag<'a>>,
    /// The stored `Content-Encoding`, if there is one.
    pub content_encoding: Option<&'a [u8]>,
    /// The length of the whole, if what is stored knows it.
    pub complete_length: Option<u64>,
    /// The requested bytes; `last` is `u64::MAX` where the end was left open.
    pub asked: ByteRange,
}

/// May the content of this 206 be joined with what is stored?
///
/// Only if its entity tag and the stored one are the same strongly (each of them, if it has
/// several), if it is coded as what is stored or does not say how, if it is one part (RFC 9110
/// §15.3.7.2 has no `Content-Range` beside several), if its `Content-Range` begins with the first
/// requested byte and ends not after the last, and if it tells the length of the whole, the same
/// that is stored. A part that ends early fits: a server may send less than the requested range
/// (RFC 9110 §15.3.7), and the missing range is requested again.
#[must_use]
pub fn combines(
    wanted: &RequestedPart<'_>,
    facts: &ResponseFacts,
    fields: &[FieldLine<'_>],
) -> Fits {
    let tags = || lines_named(fields, "etag").map(EntityTag::parse);
    let is_stored = |tag: Option<EntityTag<'_>>| match (&wanted.entity_tag, tag) {
        (Some(stored), Some(tag)) => stored.strong_eq(&tag),
        _ => false,
    };
    let is_same = tags().next().is_some() && tags().all(is_stored);
    let is_coded_alike = lines_named(fields, "content-encoding")
        .all(|coding| wanted.content_encoding == Some(coding));
    let has_several = line_named(fields, "content-type").is_some_and(is_multipart);
    let Some(ContentRange::Part {
        range,
        complete_length: Some(length),
    }) = facts.content_range
    else {
        return Fits::Other;
    };
    let in_place = range.first == wanted.asked.first && range.last <= wanted.asked.last;
    let as_long = wanted.complete_length.is_none_or(|stored| stored == length);
    let is_of_it = is_same && is_coded_alike && !has_several;
    if facts.status == 206 && is_of_it && in_place && as_long {
        Fits::Same
    } else {
        Fits::Other
    }
}

/// Whether a `Content-Type` announces parts, each with a range of its own.
fn is_multipart(content_type: &[u8]) -> bool {
    const MULTIPART: &[u8] = b"multipart/byteranges";
    let begin = content_type.get(..MULTIPART.len());
    begin.is_some_and(|begin| begin.eq_ignore_ascii_case(MULTIPART))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    const ASKED: ByteRange = ByteRange { first: 4, last: 9 };

    fn fits(wanted: &RequestedPart<'_>, status: u16, fields: &[(&str, &str)]) -> Fits {
        let lines: Vec<_> = fields
            .iter()
            .map(|(name, value)| FieldLine::new(name, value.as_bytes()))
            .collect();
        let facts = ResponseFacts::gather(status, &lines, Timestamp(0));
        combines(wanted, &facts, &lines)
    }

    fn wanted(tag: &str) -> RequestedPart<'_> {
        RequestedPart {
            entity_tag: EntityTag::parse(tag.as_bytes()),
            content_encoding: None,
            complete_length: Some(10),
            asked: ASKED,
        }
    }

    fn check(tag: &str, range: &str, expected: Fits) {
        let fields = [("ETag", tag), ("Content-Range", range)];
        assert_eq!(fits(&wanted("\"a\""), 206, &fields), expected, "{fields:?}");
    }

    #[test]
    fn part_fits_only_with_an_equal_strong_entity_tag() {
        const RANGE: &str = "bytes 4-9/10";
        check("\"a\"", RANGE, Fits::Same);
        for tag in ["\"b\"", "W/\"a\"", "a", "\"A\"", ""] {
            check(tag, RANGE, Fits::Other);
        }
        let fields = [("ETag", "W/\"a\""), ("Content-Range", RANGE)];
        assert_eq!(fits(&wanted("W/\"a\""), 206, &fields), Fits::Other, "weak");
        assert_eq!(fits(&wanted(""), 206, &fields), Fits::Other, "none stored");
        let untagged = [("Content-Range", RANGE)];
        assert_eq!(fits(&wanted("\"a\""), 206, &untagged), Fits::Other);
        assert_eq!(fits(&wanted(""), 206, &untagged), Fits::Other, "no tags");
    }

    #[test]
    fn part_with_contradicting_encoding_tag_or_type_does_not_fit() {
        const FIELDS: [(&str, &str); 2] = [("ETag", "\"a\""), ("Content-Range", "bytes 4-9/10")];
        let gzip = RequestedPart {
            content_encoding: Some(b"gzip"),
            ..wanted("\"a\"")
        };
        let with = |field| [&FIELDS[..], &[field]].concat();
        for field in [
            ("ETag", "\"b\""),
            ("Content-Encoding", "gzip"),
            ("Content-Type", "Multipart/Byteranges; boundary=x"),
        ] {
            let fields = with(field);
            assert_eq!(
                fits(&wanted("\"a\""), 206, &fields),
                Fits::Other,
                "{field:?}"
            );
        }
        for field in [("ETag", "\"a\""), ("Content-Type", "text/plain")] {
            assert_eq!(
                fits(&wanted("\"a\""), 206, &with(field)),
                Fits::Same,
                "{field:?}"
            );
        }
        assert_eq!(
            fits(&gzip, 206, &with(("Content-Encoding", "gzip"))),
            Fits::Same
        );
        assert_eq!(
            fits(&gzip, 206, &with(("Content-Encoding", "br"))),
            Fits::Other
        );
        assert_eq!(
            fits(&gzip, 206, &FIELDS),
            Fits::Same,
            "it need not say it again"
        );
    }

    #[test]
    fn part_fits_only_at_the_requested_offset_and_stored_length() {
        for range in ["bytes 4-9/10", "bytes 4-8/10", "bytes 4-4/10"] {
            check("\"a\"", range, Fits::Same);
        }
        for range in [
            "bytes 3-9/10",
            "bytes 5-9/10",
            "bytes 0-9/10",
            "bytes 4-9/11",
            "bytes 4-8/9",
            "bytes 4-10/11",
            "bytes 4-9/*",
            "bytes */10",
            "bytes 9-4/10",
            "",
        ] {
            check("\"a\"", range, Fits::Other);
        }
    }

    #[test]
    fn part_beyond_the_requested_range_does_not_fit() {
        let wanted = RequestedPart {
            asked: ByteRange { first: 4, last: 6 },
            ..wanted("\"a\"")
        };
        let fits = |range| fits(&wanted, 206, &[("ETag", "\"a\""), ("Content-Range", range)]);
        assert_eq!(fits("bytes 4-6/10"), Fits::Same);
        assert_eq!(fits("bytes 4-7/10"), Fits::Other);
    }

    #[test]
    fn any_stated_length_fits_if_the_stored_length_is_unknown() {
        let wanted = RequestedPart {
            complete_length: None,
            asked: ByteRange {
                first: 4,
                last: u64::MAX,
            },
            ..wanted("\"a\"")
        };
        let fits = |range| fits(&wanted, 206, &[("ETag", "\"a\""), ("Content-Range", range)]);
        assert_eq!(fits("bytes 4-9/10"), Fits::Same);
        assert_eq!(fits("bytes 4-99/1000"), Fits::Same);
        assert_eq!(fits("bytes 4-9/*"), Fits::Other);
    }

    #[test]
    fn only_a_response_with_status_206_fits() {
        let fields = [("ETag", "\"a\""), ("Content-Range", "bytes 4-9/10")];
        assert_eq!(fits(&wanted("\"a\""), 206, &fields), Fits::Same);
        for status in [200, 203, 416] {
            assert_eq!(fits(&wanted("\"a\""), status, &fields), Fits::Other);
        }
    }
}
