//! Collecting the bytes of a head: an ICAP head up to its empty line, and encapsulated heads, whose
//! length is known.

use alloc::vec::Vec;

use weir_wire::{HeadError, HeadLimits};

use crate::message::error::MessageError;

/// The bytes of a head so far. Memory grows with what arrives, up to the limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    bytes: Vec<u8>,
}

impl Section {
    /// Takes bytes up to the empty line. Returns how many, and whether the head is whole.
    pub(crate) fn push_head(
        &mut self,
        input: &[u8],
        limits: &HeadLimits,
    ) -> Result<(usize, bool), MessageError> {
        let mut taken = 0;
        while taken < input.len() {
            let rest = &input[taken..];
            let line_end = rest.iter().position(|&byte| byte == b'\n');
            let piece = &rest[..line_end.map_or(rest.len(), |at| at + 1)];
            if self.bytes.len() + piece.len() > limits.bytes_max {
                return Err(MessageError::Head(HeadError::TooLarge));
            }
            self.bytes.extend_from_slice(piece);
            taken += piece.len();
            if line_end.is_some() {
                if !self.bytes.ends_with(b"\r\n") {
                    return Err(MessageError::Head(HeadError::BareLf));
                }
                if self.bytes == b"\r\n" {
                    return Err(MessageError::Head(HeadError::EmptyLines));
                }
                if self.bytes.ends_with(b"\r\n\r\n") {
                    return Ok((taken, true));
                }
            }
        }
        Ok((taken, false))
    }

    /// Takes bytes until there are `total`. Returns how many, and whether all are there.
    pub(crate) fn push_exact(&mut self, input: &[u8], total: usize) -> (usize, bool) {
        let missing = total.saturating_sub(self.bytes.len());
        let piece = &input[..missing.min(input.len())];
        self.bytes.extend_from_slice(piece);
        (piece.len(), piece.len() == missing)
    }

    /// Has nothing arrived?
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes, of which none remain.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_ends_at_its_empty_line_wherever_it_is_cut() {
        let text = b"OPTIONS icap://e/ ICAP/1.0\r\nHost: e\r\n\r\nrest";
        let end = text.len() - 4;
        for cut in 0..text.len() {
            let mut section = Section::default();
            let limits = HeadLimits::default();
            let (first, whole) = section.push_head(&text[..cut], &limits).unwrap();
            assert_eq!((first, whole), (cut.min(end), cut >= end), "cut at {cut}");
            if !whole {
                let second = section.push_head(&text[cut..], &limits).unwrap();
                assert_eq!(second, (end - cut, true));
            }
            assert_eq!(section.take(), &text[..end]);
            assert!(section.is_empty());
        }
    }

    #[test]
    fn head_of_the_limit_passes_and_one_byte_more_does_not() {
        let text = b"A: b\r\n\r\n";
        let with = |bytes_max| {
            let limits = HeadLimits {
                bytes_max,
                ..HeadLimits::default()
            };
            Section::default().push_head(text, &limits)
        };
        assert_eq!(with(text.len()), Ok((text.len(), true)));
        let too_large = Err(MessageError::Head(HeadError::TooLarge));
        assert_eq!(with(text.len() - 1), too_large);
    }

    #[test]
    fn bare_line_feed_and_leading_empty_line_are_refused() {
        for (text, expected) in [
            (&b"A: b\n"[..], HeadError::BareLf),
            (b"\n", HeadError::BareLf),
            (b"A: b\r\n\n", HeadError::BareLf),
            (b"\r\n", HeadError::EmptyLines),
        ] {
            let result = Section::default().push_head(text, &HeadLimits::default());
            assert_eq!(result, Err(MessageError::Head(expected)), "{text:?}");
        }
    }
}
