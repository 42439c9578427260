//! Content that arrives from its first byte on, and is not read before it is whole.

use crate::content::StoredContent;
use crate::in_flight::content::{InFlightContent, WritePositionId};
use weir_policy::fetch::ByteSpan;

/// Content as it arrives, from the first byte on. It never holds more than is charged for what was
/// reserved: for content of a known length that length, else whole blocks.
#[derive(Debug)]
pub struct ContentBuilder {
    in_flight: InFlightContent,
    position: WritePositionId,
}

impl ContentBuilder {
    /// A builder; of `expected` bytes, if the length is known.
    #[must_use]
    pub fn new(expected: Option<u64>) -> Self {
        let mut in_flight = InFlightContent::default();
        let position = in_flight.open(ByteSpan {
            from: 0,
            to: expected.unwrap_or(u64::MAX),
        });
        Self {
            in_flight,
            position,
        }
    }

    /// Bytes taken so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.in_flight.present_bytes()
    }

    /// Whether nothing was taken yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.in_flight.push(self.position, bytes);
    }

    /// Bytes of memory it holds.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.in_flight.held_bytes()
    }

    /// The finished content: whole, whatever was expected.
    #[must_use]
    pub fn finish(self) -> StoredContent {
        self.into_whole().finish()
    }

    /// Where it goes.
    pub(crate) fn parts(&mut self) -> (&mut InFlightContent, WritePositionId) {
        (&mut self.in_flight, self.position)
    }

    /// What has come, as all there is.
    pub(crate) fn into_whole(mut self) -> InFlightContent {
        self.in_flight.set_complete_length(self.len());
        self.in_flight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::BLOCK_BYTES;
    use crate::in_flight::content::charged_for;

    /// What is charged for `len` bytes where `expected` were said to come, and whole blocks beyond.
    fn charged(len: u64, expected: Option<u64>) -> usize {
        let expected = expected.unwrap_or(0);
        let beyond = len.saturating_sub(expected);
        charged_for(expected) + charged_for(beyond.next_multiple_of(BLOCK_BYTES as u64))
    }

    fn check(len: usize, step: usize, expected: Option<u64>) {
        let bytes: Vec<u8> = (0..len).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut builder = ContentBuilder::new(expected);
        for part in bytes.chunks(step.max(1)) {
            builder.push(part);
            let (held, charged) = (builder.held_bytes(), charged(builder.len(), expected));
            assert!(held <= charged, "{held} held, {charged} charged of {len}");
        }
        let body = builder.finish();
        let mut read = Vec::new();
        while (read.len() as u64) < body.len() {
            read.extend_from_slice(body.at(read.len() as u64));
        }
        assert_eq!(read, bytes, "{len} bytes in steps of {step}");
        assert!(body.at(body.len()).is_empty());
        assert!(body.is_whole());
        let charged = charged(len as u64, expected);
        assert!(body.charged_bytes() <= charged, "{len} of {expected:?}");
    }

    #[test]
    fn content_is_complete_for_any_write_size_and_within_its_charge() {
        for len in [
            0,
            1,
            BLOCK_BYTES - 1,
            BLOCK_BYTES,
            BLOCK_BYTES + 1,
            3 * BLOCK_BYTES + 17,
        ] {
            for step in [1 + len / 7, 1460, BLOCK_BYTES] {
                check(len, step, None);
                check(len, step, Some(len as u64));
                // a length that was wrong
                check(len, step, Some(len as u64 / 2));
                check(len, step, Some(len as u64 + 1));
            }
        }
    }
}
