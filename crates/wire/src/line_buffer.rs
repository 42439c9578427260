//! Storage for the field lines of one head.

use alloc::vec::Vec;
use core::array;

use httparse::Header;
use weir_semantics::FieldLine;

/// The most field lines that a request can have, whatever the configured limit.
///
/// Others: httpd, Go's and Node's defaults allow 100 to a few thousand; hyper allows 100.
pub const REQUEST_FIELDS_CAPACITY: usize = 128;

/// The most field lines that a response or a section that stands alone can have, whatever the
/// configured limit.
///
/// Twice what a response may have by default: a stored head also has the lines that the proxy and
/// updates add.
pub const FIELDS_CAPACITY: usize = 1024;

/// Storage for up to [`FIELDS_CAPACITY`] field lines: up to [`REQUEST_FIELDS_CAPACITY`] on the
/// caller's stack, more in allocated memory.
///
/// A new one costs nothing: only as many slots are written as the head has lines, rounded up to the
/// next size. One buffer holds the lines of one head at a time.
#[derive(Clone, Debug, Default)]
pub struct LineBuffer<'a> {
    slots: Slots<'a>,
    /// How many of the slots are lines.
    count: usize,
}

// Without `unsafe` a slice needs initialised slots. Setting all 128 to an empty line would write 4
// KiB a head; an enum of sizes writes what is needed and allocates for the rare long head only.
#[derive(Clone, Debug, Default)]
#[expect(
    clippy::large_enum_variant,
    reason = "the buffer lives on the stack, and its size is its purpose"
)]
enum Slots<'a> {
    #[default]
    None,
    Up8([FieldLine<'a>; 8]),
    Up16([FieldLine<'a>; 16]),
    Up32([FieldLine<'a>; 32]),
    Up64([FieldLine<'a>; 64]),
    Up128([FieldLine<'a>; REQUEST_FIELDS_CAPACITY]),
    Allocated(Vec<FieldLine<'a>>),
}

impl<'a> LineBuffer<'a> {
    /// An empty buffer.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: Slots::None,
            count: 0,
        }
    }

    /// Takes over the lines that `httparse` found. At most [`FIELDS_CAPACITY`] of them are kept;
    /// callers never hand in more.
    pub(crate) fn fill(&mut self, headers: &[Header<'a>]) -> &[FieldLine<'a>] {
        debug_assert!(
            headers.len() <= FIELDS_CAPACITY,
            "the parser's own storage has this many slots"
        );
        self.collect(headers.iter().map(line_of))
    }

    /// Takes over lines of a head that was read before. At most [`FIELDS_CAPACITY`] of them are
    /// kept.
    #[inline]
    pub fn collect(
        &mut self,
        lines: impl ExactSizeIterator<Item = FieldLine<'a>>,
    ) -> &[FieldLine<'a>] {
        let count = lines.len().min(FIELDS_CAPACITY);
        // each arm assigns: a match whose value is assigned would move the whole 4 KiB
        match count {
            0 => self.slots = Slots::None,
            1..=8 => self.slots = Slots::Up8(copied(lines)),
            9..=16 => self.slots = Slots::Up16(copied(lines)),
            17..=32 => self.slots = Slots::Up32(copied(lines)),
            33..=64 => self.slots = Slots::Up64(copied(lines)),
            65..=REQUEST_FIELDS_CAPACITY => self.slots = Slots::Up128(copied(lines)),
            _ => self.slots = Slots::Allocated(lines.take(FIELDS_CAPACITY).collect()),
        }
        self.count = count;
        self.lines()
    }

    /// Takes over lines that were not read by `httparse`, at most [`FIELDS_CAPACITY`].
    pub(crate) fn replace(&mut self, lines: Vec<FieldLine<'a>>) {
        self.count = lines.len().min(FIELDS_CAPACITY);
        self.slots = Slots::Allocated(lines);
    }

    /// The lines.
    pub(crate) fn lines(&self) -> &[FieldLine<'a>] {
        let slots: &[FieldLine<'a>] = match &self.slots {
            Slots::None => &[],
            Slots::Up8(lines) => lines,
            Slots::Up16(lines) => lines,
            Slots::Up32(lines) => lines,
            Slots::Up64(lines) => lines,
            Slots::Up128(lines) => lines,
            Slots::Allocated(lines) => lines,
        };
        &slots[..self.count]
    }

    /// Replaces each line by what `repair` makes of it, or drops it.
    pub(crate) fn repair(
        &mut self,
        mut repair: impl FnMut(FieldLine<'a>) -> Option<FieldLine<'a>>,
    ) {
        let repaired = self.lines().iter().filter_map(|line| repair(*line));
        let repaired = repaired.collect();
        self.replace(repaired);
    }
}

/// The lines in the first slots, empty lines in the others.
#[inline]
fn copied<'a, const N: usize>(
    mut lines: impl Iterator<Item = FieldLine<'a>>,
) -> [FieldLine<'a>; N] {
    let empty = FieldLine {
        name: "",
        value: b"",
    };
    array::from_fn(|_| lines.next().unwrap_or(empty))
}

const fn line_of<'a>(header: &Header<'a>) -> FieldLine<'a> {
    FieldLine {
        name: header.name,
        value: header.value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_buffer_returns_exactly_the_filled_lines_at_every_size() {
        let names: Vec<String> = (0..FIELDS_CAPACITY)
            .map(|number| format!("n{number}"))
            .collect();
        let headers: Vec<Header<'_>> = names
            .iter()
            .map(|name| Header {
                name,
                value: name.as_bytes(),
            })
            .collect();
        let counts = [
            0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1023, 1024,
        ];
        for count in counts {
            let mut lines = LineBuffer::new();
            let filled = lines.fill(&headers[..count]);
            assert_eq!(filled.len(), count);
            for (line, header) in filled.iter().zip(&headers) {
                assert_eq!((line.name, line.value), (header.name, header.value));
            }
            let filled = filled.to_vec();
            let mut again = LineBuffer::new();
            assert_eq!(again.collect(filled.iter().copied()), filled);
        }
    }
}
