//! Lines of text, one at a time and none longer than we hold.

use memchr::memchr;
use std::io::{self, BufRead, ErrorKind};

/// Bytes of a line. Servers take request lines of 8 KiB (Apache, nginx) to 64 KiB, and a Combined
/// log adds two fields as long; logs that escape bytes write up to four for one.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 20;

/// A line that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// All of it, without its end (`\n`, or `\r\n`).
    Whole(&'a [u8]),
    /// It is longer than [`LINE_BYTES_MAX`]; what follows it can be read.
    TooLong,
}

/// The lines of a source.
pub(crate) struct Lines<R> {
    source: R,
    line: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(source: R) -> Self {
        Self {
            source,
            line: Vec::new(),
            number: 0,
        }
    }

    /// The number of the line that was read last; of the first it is 1.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// The next line; `None` at the end. The last one need not have an end of line.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        self.number += 1;
        let mut length = 0;
        let mut ended = false;
        while !ended {
            let piece = match self.source.fill_buf() {
                Ok([]) => break,
                Ok(piece) => piece,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = memchr(b'\n', piece);
            let part = &piece[..end.unwrap_or(piece.len())];
            length += part.len();
            if length <= LINE_BYTES_MAX {
                self.line.extend_from_slice(part);
            }
            ended = end.is_some();
            let used = part.len() + usize::from(ended);
            self.source.consume(used);
        }
        if length == 0 && !ended {
            self.number -= 1;
            return Ok(None);
        }
        if length > LINE_BYTES_MAX {
            return Ok(Some(Line::TooLong));
        }
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        Ok(Some(Line::Whole(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn check(input: &[u8], expected: &[&[u8]]) {
        for capacity in [1, 3, 4096] {
            let mut lines = Lines::new(BufReader::with_capacity(capacity, input));
            for (index, expected) in expected.iter().enumerate() {
                assert_eq!(
                    lines.next().unwrap(),
                    Some(Line::Whole(expected)),
                    "{input:?}"
                );
                assert_eq!(lines.number(), index as u64 + 1, "{input:?}");
            }
            assert_eq!(lines.next().unwrap(), None, "{input:?}");
            assert_eq!(lines.number(), expected.len() as u64, "{input:?}");
        }
    }

    #[test]
    fn line_ends_at_lf_or_crlf_and_not_at_a_lone_cr() {
        check(b"", &[]);
        check(b"\n", &[b""]);
        check(b"a", &[b"a"]);
        check(b"a\r\nb\n\nc\rd", &[b"a", b"b", b"", b"c\rd"]);
    }

    #[test]
    fn line_over_the_limit_is_skipped_and_the_next_is_read() {
        let mut input = vec![b'x'; LINE_BYTES_MAX];
        input.extend_from_slice(b"\n");
        input.extend(vec![b'x'; LINE_BYTES_MAX + 1]);
        input.extend_from_slice(b"\nafter");
        let mut lines = Lines::new(&input[..]);
        assert_eq!(
            lines.next().unwrap(),
            Some(Line::Whole(&input[..LINE_BYTES_MAX]))
        );
        assert_eq!(lines.next().unwrap(), Some(Line::TooLong));
        assert_eq!(lines.next().unwrap(), Some(Line::Whole(b"after")));
        assert_eq!(lines.number(), 3);
        assert_eq!(lines.next().unwrap(), None);
    }
}
