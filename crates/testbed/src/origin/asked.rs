//! What a request asks of the origin. Everything about a response is said in its target.

use crate::client::get as client;
use std::time::Duration;

/// A response as its target describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) target: String,
    pub(crate) size_bytes: u64,
    /// Content for one connection; `None` as fast as it goes.
    pub(crate) rate_bytes_s: Option<u64>,
    /// From the request until the first byte of the head.
    pub(crate) think: Duration,
    pub(crate) is_storable: bool,
    /// The end of the content is that of the connection.
    pub(crate) is_until_close: bool,
}

/// The larger is refused: it would be a mistake in a target.
const SIZE_BYTES_MAX: u64 = 1 << 33;

impl Asked {
    /// `None` when the target means nothing here.
    pub(crate) fn parse(target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?')?;
        let mut asked = Self {
            path: path.to_owned(),
            target: target.to_owned(),
            size_bytes: 0,
            rate_bytes_s: None,
            think: Duration::ZERO,
            is_storable: true,
            is_until_close: false,
        };
        let mut has_size = false;
        for pair in query.split('&') {
            match pair.split_once('=')? {
                ("size", size) => {
                    asked.size_bytes = size.parse().ok().filter(|&size| size <= SIZE_BYTES_MAX)?;
                    has_size = true;
                }
                ("rate", rate) => {
                    asked.rate_bytes_s = Some(rate.parse().ok().filter(|&rate| rate > 0)?);
                }
                ("think_ms", think) => asked.think = Duration::from_millis(think.parse().ok()?),
                ("store", "no") => asked.is_storable = false,
                ("length", "no") => asked.is_until_close = true,
                _ => return None,
            }
        }
        has_size.then_some(asked)
    }
}

/// The target of a response.
pub(crate) fn target(
    path: &str,
    size_bytes: u64,
    rate_bytes_s: Option<u64>,
    is_storable: bool,
) -> String {
    let rate = rate_bytes_s.map_or(String::new(), |rate| format!("&rate={rate}"));
    let store = if is_storable { "" } else { "&store=no" };
    format!("{path}?size={size_bytes}{rate}{store}")
}

/// The same response, whose head comes that much later.
pub(crate) fn after_thought(target: &str, think_ms: u64) -> String {
    format!("{target}&think_ms={think_ms}")
}

/// The same response without a length: the end of its connection ends it.
pub(crate) fn without_length(target: &str) -> String {
    format!("{target}&length=no")
}

/// A part that a request is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    /// Half-open, within the content and not empty.
    Range {
        from: u64,
        to: u64,
    },
    /// 416
    Unsatisfiable,
}

/// RFC 9110 §14.2: a `Range` of several ranges, of another unit or that cannot be understood is
/// ignored; §13.1.5: so is one whose `If-Range` names another entity tag.
pub(crate) fn part(head: &str, size_bytes: u64, entity_tag: &str) -> Part {
    let is_meant = client::field(head, "if-range").is_none_or(|named| named == entity_tag);
    let range = client::field(head, "range").filter(|_| is_meant);
    range
        .and_then(|range| one_range(range, size_bytes))
        .unwrap_or(Part::Whole)
}

/// `bytes=from-last`, `bytes=from-` or `bytes=-suffix_length`
fn one_range(range: &str, size_bytes: u64) -> Option<Part> {
    let (first, last) = range.strip_prefix("bytes=")?.trim().split_once('-')?;
    let (from, to) = if first.is_empty() {
        let length: u64 = last.parse().ok()?;
        (size_bytes.saturating_sub(length), size_bytes)
    } else {
        let from: u64 = first.parse().ok()?;
        let last = if last.is_empty() {
            u64::MAX
        } else {
            last.parse().ok()?
        };
        if last < from {
            return None;
        }
        (from, size_bytes.min(last.saturating_add(1)))
    };
    Some(if from < to {
        Part::Range { from, to }
    } else {
        Part::Unsatisfiable
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_carries_size_rate_delay_and_storability() {
        let check = |size, rate, is_storable, think_ms| {
            let target = after_thought(&target("/weir/a", size, rate, is_storable), think_ms);
            let expected = Asked {
                path: "/weir/a".to_owned(),
                target: target.clone(),
                size_bytes: size,
                rate_bytes_s: rate,
                think: Duration::from_millis(think_ms),
                is_storable,
                is_until_close: false,
            };
            assert_eq!(Asked::parse(&target), Some(expected));
        };
        check(20, None, true, 0);
        check(0, Some(5), false, 300);
    }

    #[test]
    fn malformed_target_is_refused() {
        for target in [
            "/a",
            "/a?rate=1",
            "/a?size=x",
            "/a?size=1&rate=0",
            "/a?size=1&think_ms=soon",
            "/a?size=1&store=yes",
            "/a?size=8589934593",
        ] {
            assert_eq!(Asked::parse(target), None, "{target}");
        }
    }

    fn check_part(fields: &str, expected: Part) {
        let head = format!("GET /a?size=100 HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(part(&head, 100, "\"t\""), expected, "{fields}");
    }

    #[test]
    fn single_range_is_answered_with_its_part() {
        check_part("", Part::Whole);
        check_part("Range: bytes=10-19\r\n", Part::Range { from: 10, to: 20 });
        check_part("Range: bytes=99-\r\n", Part::Range { from: 99, to: 100 });
        check_part(
            "Range: bytes=90-1000\r\n",
            Part::Range { from: 90, to: 100 },
        );
        check_part("Range: bytes=-1\r\n", Part::Range { from: 99, to: 100 });
        check_part("Range: bytes=-1000\r\n", Part::Range { from: 0, to: 100 });
    }

    #[test]
    fn range_beyond_the_end_is_unsatisfiable() {
        check_part("Range: bytes=100-\r\n", Part::Unsatisfiable);
        check_part("Range: bytes=-0\r\n", Part::Unsatisfiable);
    }

    #[test]
    fn multiple_or_malformed_ranges_are_ignored() {
        check_part("Range: bytes=0-1,5-6\r\n", Part::Whole);
        check_part("Range: lines=0-1\r\n", Part::Whole);
        check_part("Range: bytes=5-4\r\n", Part::Whole);
    }

    #[test]
    fn range_with_non_matching_if_range_is_ignored() {
        check_part(
            "Range: bytes=0-1\r\nIf-Range: \"t\"\r\n",
            Part::Range { from: 0, to: 2 },
        );
        check_part("Range: bytes=0-1\r\nIf-Range: \"u\"\r\n", Part::Whole);
        check_part("Range: bytes=0-1\r\nIf-Range: W/\"t\"\r\n", Part::Whole);
    }
}
