//! Content that arrives from its first byte on, read by nobody before it is whole.

use crate::body::Body;
use crate::growing::{Growing, Place};
use weir_policy::fetch::ByteSpan;

/// Content as it arrives, from the first byte on. It never holds more than is charged for what was reserved: for
/// content of a known length that length, else whole blocks.
#[derive(Debug)]
pub struct BodyBuilder {
    growing: Growing,
    place: Place,
}

impl BodyBuilder {
    /// A builder; of `expected` bytes, if the length is known.
    #[must_use]
    pub fn new(expected: Option<u64>) -> Self {
        let mut growing = Growing::default();
        let place = growing.open(ByteSpan {
            from: 0,
            to: expected.unwrap_or(u64::MAX),
        });
        Self { growing, place }
    }

    /// Bytes taken so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.growing.present_bytes()
    }

    /// Whether nothing was taken yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.growing.push(self.place, bytes);
    }

    /// Bytes of memory it holds.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.growing.held_bytes()
    }

    /// The finished content: whole, whatever was expected.
    #[must_use]
    pub fn finish(mut self) -> Body {
        self.growing.set_complete_length(self.len());
        self.growing.finish()
    }
}
