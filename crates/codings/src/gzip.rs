//! The gzip format (RFC 1952) around deflated data: header and trailer of a member.

use flate2::Crc;

/// Flags of a header (RFC 1952 §2.3.1) that something follows.
const HEADER_CRC: u8 = 2;
const EXTRA: u8 = 4;
const NAME: u8 = 8;
const COMMENT: u8 = 16;
/// Those that are reserved: what they stand for is not known.
const RESERVED: u8 = 0xe0;

/// The first two bytes of a member.
pub(crate) const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// It is not gzip, or was damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotGzip;

/// Reads the header of a member byte by byte.
#[derive(Debug)]
pub(crate) struct HeaderReader {
    state: State,
    flags: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// This byte of the fixed part.
    Fixed(u8),
    /// This byte of the length of the extra field, and the length so far.
    ExtraLength(u8, u16),
    Extra(u16),
    Name,
    Comment,
    HeaderCrc(u8),
    Done,
}

impl HeaderReader {
    pub(crate) const fn new() -> Self {
        Self {
            state: State::Fixed(0),
            flags: 0,
        }
    }

    /// Reads the header from the front of `input`: how many bytes of that are of it, and whether it
    /// is over.
    ///
    /// # Errors
    ///
    /// It is no header.
    pub(crate) fn read(&mut self, input: &[u8]) -> Result<(usize, bool), NotGzip> {
        for (at, byte) in input.iter().enumerate() {
            if self.state == State::Done {
                return Ok((at, true));
            }
            self.step(*byte)?;
        }
        Ok((input.len(), self.state == State::Done))
    }

    fn step(&mut self, byte: u8) -> Result<(), NotGzip> {
        self.state = match self.state {
            State::Fixed(at @ 0..=1) if byte != MAGIC[usize::from(at)] => return Err(NotGzip),
            // the only method there is
            State::Fixed(2) if byte != 8 => return Err(NotGzip),
            State::Fixed(3) if byte & RESERVED != 0 => return Err(NotGzip),
            State::Fixed(9) => self.behind(EXTRA),
            State::Fixed(at) => {
                if at == 3 {
                    self.flags = byte;
                }
                State::Fixed(at + 1)
            }
            State::ExtraLength(0, _) => State::ExtraLength(1, u16::from(byte)),
            State::ExtraLength(_, low) => match low | u16::from(byte) << 8 {
                0 => self.behind(NAME),
                length => State::Extra(length),
            },
            State::Extra(1) => self.behind(NAME),
            State::Extra(left) => State::Extra(left - 1),
            State::Name if byte == 0 => self.behind(COMMENT),
            State::Comment if byte == 0 => self.behind(HEADER_CRC),
            State::HeaderCrc(0) => State::HeaderCrc(1),
            State::HeaderCrc(_) => State::Done,
            same @ (State::Name | State::Comment | State::Done) => same,
        };
        Ok(())
    }

    /// The first part that there is, from the one of `flag` on.
    fn behind(&self, flag: u8) -> State {
        let parts = [
            (EXTRA, State::ExtraLength(0, 0)),
            (NAME, State::Name),
            (COMMENT, State::Comment),
            (HEADER_CRC, State::HeaderCrc(0)),
        ];
        let mut rest = parts.into_iter().skip_while(|(part, _)| *part != flag);
        let next = rest.find(|(part, _)| self.flags & part != 0);
        next.map_or(State::Done, |(_, state)| state)
    }
}

/// Reads the trailer of a member: a check and the length of its data.
#[derive(Debug, Default)]
pub(crate) struct TrailerReader {
    bytes: [u8; 8],
    have: usize,
}

impl TrailerReader {
    /// Reads the trailer from the front of `input`: how many bytes of that are of it, and whether
    /// it is over.
    ///
    /// # Errors
    ///
    /// The data is not what was compressed.
    pub(crate) fn read(&mut self, input: &[u8], data: &Crc) -> Result<(usize, bool), NotGzip> {
        let count = input.len().min(self.bytes.len() - self.have);
        self.bytes[self.have..][..count].copy_from_slice(&input[..count]);
        self.have += count;
        if self.have < self.bytes.len() {
            return Ok((count, false));
        }
        let [a, b, c, d, e, f, g, h] = self.bytes;
        let is_right = u32::from_le_bytes([a, b, c, d]) == data.sum()
            && u32::from_le_bytes([e, f, g, h]) == data.amount();
        match is_right {
            true => Ok((count, true)),
            false => Err(NotGzip),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_is_read_with_each_of_its_parts_whole_and_byte_by_byte() {
        let parts: [(u8, &[u8]); 4] = [
            (EXTRA, b"\x03\0abc"),
            (NAME, b"name\0"),
            (COMMENT, b"comment\0"),
            (HEADER_CRC, b"cc"),
        ];
        for flags in 0..32 {
            let mut header = vec![0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3];
            for (flag, part) in parts {
                if flags & flag != 0 {
                    header.extend_from_slice(part);
                }
            }
            let whole = header.len();
            header.extend_from_slice(b"data");
            assert_eq!(HeaderReader::new().read(&header), Ok((whole, true)));
            let mut reader = HeaderReader::new();
            for (at, byte) in header[..whole].iter().enumerate() {
                assert_eq!(reader.read(&[*byte]), Ok((1, at + 1 == whole)), "{flags}");
            }
            assert_eq!(reader.read(b"data"), Ok((0, true)));
        }
    }

    #[test]
    fn header_of_another_format_method_or_with_reserved_flags_is_refused() {
        for header in [
            &b"PK"[..],
            b"\x1f\x8c",
            b"\x1f\x8b\x07",
            b"\x1f\x8b\x08\x20",
        ] {
            assert_eq!(HeaderReader::new().read(header), Err(NotGzip));
        }
        assert_eq!(
            HeaderReader::new().read(b"\x1f\x8b\x08\0\0\0\0\0\0"),
            Ok((9, false))
        );
    }
}
