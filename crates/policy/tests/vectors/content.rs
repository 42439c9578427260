//! Content byte by byte, each there or not: parts the naive way.

use std::ops::RangeInclusive;
use weir_semantics::{ByteRange, ContentRange, ResponseFacts};
use weir_vectors::{Answer, Fault};

/// Every byte of a representation, `None` where it has not been received.
#[derive(Clone, Debug)]
pub(crate) struct Content(Vec<Option<u8>>);

impl Content {
    /// What an answer brings: the whole, or a part in its place; half of that if it is cut.
    pub(crate) fn received(answer: &Answer, response: &ResponseFacts) -> Self {
        let body = answer.response.body.as_bytes();
        let came = match answer.fault {
            Some(Fault::Cut) => body.len() / 2,
            Some(Fault::Closed | Fault::Broken) | None => body.len(),
        };
        let (first, complete_length) = match response.content_range {
            Some(ContentRange::Part {
                range,
                complete_length: Some(length),
            }) if response.status == 206 => (place(range.first), place(length)),
            _ => (0, body.len()),
        };
        let mut bytes = vec![None; complete_length];
        for (byte, received) in bytes.iter_mut().skip(first).zip(&body[..came]) {
            *byte = Some(*received);
        }
        Self(bytes)
    }

    /// With the bytes of `other` where there are none.
    pub(crate) fn joined(&self, other: &Self) -> Self {
        let pairs = self.0.iter().zip(&other.0);
        Self(pairs.map(|(ours, theirs)| ours.or(*theirs)).collect())
    }

    pub(crate) fn complete_length(&self) -> u64 {
        self.0.len() as u64
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// The bytes of `range`; `None` if one of them is not there.
    pub(crate) fn text(&self, range: ByteRange) -> Option<String> {
        let bytes: Option<Vec<u8>> = self.0[places(range)].iter().copied().collect();
        bytes.map(|bytes| String::from_utf8(bytes).expect("bodies are text"))
    }

    /// All of them, in the same form.
    pub(crate) fn whole_text(&self) -> Option<String> {
        let last = self.complete_length().checked_sub(1);
        last.map_or(Some(String::new()), |last| {
            self.text(ByteRange { first: 0, last })
        })
    }

    /// From the first byte to the last that is missing in `range`.
    pub(crate) fn missing(&self, range: ByteRange) -> Option<ByteRange> {
        let is_missing = |at: &usize| self.0[*at].is_none();
        let first = places(range).find(is_missing)?;
        let last = places(range).rfind(is_missing)?;
        Some(ByteRange {
            first: first as u64,
            last: last as u64,
        })
    }
}

fn places(range: ByteRange) -> RangeInclusive<usize> {
    place(range.first)..=place(range.last)
}

fn place(at: u64) -> usize {
    usize::try_from(at).expect("a body fits memory")
}
