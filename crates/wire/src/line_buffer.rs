//! Storage for the field lines of one head.

use core::array;

use httparse::Header;
use weir_semantics::FieldLine;

/// The most field lines a head can have, whatever the configured limit.
///
/// Others: httpd, Go's and Node's defaults allow 100 to a few thousand; hyper allows 100.
pub const FIELDS_CAPACITY: usize = 128;

/// Storage for up to [`FIELDS_CAPACITY`] field lines, on the caller's stack.
///
/// A new one costs nothing: only as many slots are written as the head has lines, rounded up to the next size. One
/// buffer holds the lines of one head at a time.
#[derive(Clone, Debug, Default)]
pub struct LineBuffer<'a> {
    slots: Slots<'a>,
}

// Without `unsafe` a slice needs initialised slots. Setting all 128 to an empty line would write 4 KiB a head; an enum
// of sizes writes what is needed and allocates nothing.
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
    UpAll([FieldLine<'a>; FIELDS_CAPACITY]),
}

impl<'a> LineBuffer<'a> {
    /// An empty buffer.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { slots: Slots::None }
    }

    /// Takes over the lines that `httparse` found. At most [`FIELDS_CAPACITY`] of them are kept; callers never hand in
    /// more.
    pub(crate) fn fill(&mut self, headers: &[Header<'a>]) -> &[FieldLine<'a>] {
        debug_assert!(
            headers.len() <= FIELDS_CAPACITY,
            "the parser's own storage has this many slots"
        );
        // each arm assigns: a match whose value is assigned would move the whole 4 KiB
        match headers.len() {
            0 => self.slots = Slots::None,
            1..=8 => self.slots = Slots::Up8(copied(headers)),
            9..=16 => self.slots = Slots::Up16(copied(headers)),
            17..=32 => self.slots = Slots::Up32(copied(headers)),
            33..=64 => self.slots = Slots::Up64(copied(headers)),
            _ => self.slots = Slots::UpAll(copied(headers)),
        }
        let slots: &[FieldLine<'a>] = match &self.slots {
            Slots::None => &[],
            Slots::Up8(lines) => lines,
            Slots::Up16(lines) => lines,
            Slots::Up32(lines) => lines,
            Slots::Up64(lines) => lines,
            Slots::UpAll(lines) => lines,
        };
        &slots[..headers.len().min(FIELDS_CAPACITY)]
    }
}

/// The lines in the first slots, empty lines in the others.
#[inline]
fn copied<'a, const N: usize>(headers: &[Header<'a>]) -> [FieldLine<'a>; N] {
    array::from_fn(|slot| match headers.get(slot) {
        Some(header) => FieldLine {
            name: header.name,
            value: header.value,
        },
        None => FieldLine {
            name: "",
            value: b"",
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_lost_or_invented_where_one_size_ends_and_the_next_begins() {
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
        for count in [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128] {
            let mut lines = LineBuffer::new();
            let filled = lines.fill(&headers[..count]);
            assert_eq!(filled.len(), count);
            for (line, header) in filled.iter().zip(&headers) {
                assert_eq!((line.name, line.value), (header.name, header.value));
            }
        }
    }
}
