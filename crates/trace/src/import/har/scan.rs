//! Finds the entries of an archive without holding more than one of them.
//!
//! It knows where values of JSON (RFC 8259) begin and end, and nothing of what is in them.

use super::super::damage::{Damage, Place, reason};
use super::entry::Creator;
use std::io::{self, BufRead, ErrorKind};

/// Bytes of an entry, which may have the content of the response in it.
pub(super) const ENTRY_BYTES_MAX: usize = 256 << 20;

/// Bytes of a name, and of what is said about the program that wrote the archive.
const SMALL_BYTES_MAX: usize = 64 * 1024;

/// An entry that was found.
pub(super) enum ScanItem {
    /// The text of an entry, and which one it is.
    Entry(Vec<u8>, Place),
    /// One that is longer than [`ENTRY_BYTES_MAX`].
    TooLong(Place),
}

/// Where we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Before an archive.
    Start,
    /// In its outermost object.
    Root,
    /// In `log`.
    Log,
    /// In `entries`.
    Entries,
}

/// An archive that is being read, or several in a row.
pub(super) struct Scan<R> {
    source: R,
    /// Bytes that were used.
    offset: u64,
    at: At,
    /// Whether a comma must come before the next member.
    is_first: bool,
    entries: u64,
    /// Whether the archive has entries at all, were it none.
    has_entries: bool,
    /// Memory for the next entry.
    spare: Vec<u8>,
    /// What wrote the archive; empty if it does not say so before its entries.
    pub(super) creator: Creator,
}

/// Why it cannot be scanned on.
enum Fault {
    Source(io::Error),
    End,
    Byte(u8, &'static str),
    NoEntries,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Source(error)
    }
}

impl<R: BufRead> Scan<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            offset: 0,
            at: At::Start,
            is_first: true,
            entries: 0,
            has_entries: false,
            spare: Vec::new(),
            creator: Creator::default(),
        }
    }

    /// Takes an entry's memory back.
    pub(super) fn give_back(&mut self, mut text: Vec<u8>) {
        if text.capacity() <= SPARE_BYTES_MAX {
            text.clear();
            self.spare = text;
        }
    }

    /// The next entry; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<ScanItem>, Damage> {
        self.step_to_entry().map_err(|fault| self.damage(fault))
    }

    fn damage(&self, fault: Fault) -> Damage {
        let place = match self.at {
            At::Entries => Place::Entry(self.entries),
            _ => Place::Byte(self.offset),
        };
        match fault {
            Fault::Source(error) => Damage::unread(place, &error),
            Fault::End => Damage::end(place, reason::CUT_OFF, "the end comes within the archive"),
            Fault::Byte(byte, wanted) => {
                let byte = byte.escape_ascii();
                let what = format!("`{byte}` at byte {} is not {wanted}", self.offset);
                Damage::end(place, reason::JSON, what)
            }
            Fault::NoEntries => {
                let what = "there is no list `entries` in an object `log`";
                Damage::end(place, reason::JSON, what)
            }
        }
    }

    fn step_to_entry(&mut self) -> Result<Option<ScanItem>, Fault> {
        loop {
            match self.at {
                At::Start => {
                    if !self.begin()? {
                        return Ok(None);
                    }
                }
                At::Root => match self.member()? {
                    Some(name) if name == b"log" => self.open(b'{', "an object", At::Log)?,
                    Some(_) => self.skip()?,
                    None if self.has_entries => self.at = At::Start,
                    None => return Err(Fault::NoEntries),
                },
                At::Log => match self.member()? {
                    Some(name) if name == b"entries" => {
                        self.has_entries = true;
                        self.open(b'[', "a list", At::Entries)?;
                    }
                    Some(name) if name == b"creator" => self.read_creator()?,
                    Some(_) => self.skip()?,
                    None => self.close(At::Root),
                },
                At::Entries => match self.element()? {
                    Some(found) => return Ok(Some(found)),
                    None => self.close(At::Log),
                },
            }
        }
    }

    /// Goes into an archive; false if there is none any more.
    fn begin(&mut self) -> Result<bool, Fault> {
        for mark in *b"\xef\xbb\xbf" {
            if self.peek()? == Some(mark) {
                self.bump();
            }
        }
        match self.peek_solid()? {
            None => Ok(false),
            Some(b'{') => {
                self.has_entries = false;
                self.creator = Creator::default();
                self.open(b'{', "an object", At::Root)?;
                Ok(true)
            }
            Some(other) => Err(Fault::Byte(other, "the beginning of an archive")),
        }
    }

    fn open(&mut self, byte: u8, wanted: &'static str, at: At) -> Result<(), Fault> {
        self.expect(byte, wanted)?;
        self.is_first = true;
        self.at = at;
        Ok(())
    }

    fn close(&mut self, at: At) {
        self.is_first = false;
        self.at = at;
    }

    /// The name of the next member of an object, and the colon behind it; `None` at its end.
    fn member(&mut self) -> Result<Option<Vec<u8>>, Fault> {
        if self.is_end(b'}')? {
            return Ok(None);
        }
        match self.peek_solid()?.ok_or(Fault::End)? {
            b'"' => {}
            other => return Err(Fault::Byte(other, "the name of a member")),
        }
        let mut name = Vec::new();
        self.value(&mut name, SMALL_BYTES_MAX)?;
        self.expect(b':', "a colon")?;
        let inner = name.strip_prefix(b"\"").unwrap_or(&name);
        Ok(Some(inner.strip_suffix(b"\"").unwrap_or(inner).to_vec()))
    }

    /// The next element of `entries`; `None` at its end.
    fn element(&mut self) -> Result<Option<ScanItem>, Fault> {
        if self.is_end(b']')? {
            return Ok(None);
        }
        self.entries += 1;
        let place = Place::Entry(self.entries);
        let mut text = std::mem::take(&mut self.spare);
        Ok(Some(if self.value(&mut text, ENTRY_BYTES_MAX)? {
            ScanItem::Entry(text, place)
        } else {
            ScanItem::TooLong(place)
        }))
    }

    /// Whether the object or list ends here; if not, the comma before the next of it is used.
    fn is_end(&mut self, end: u8) -> Result<bool, Fault> {
        let next = self.peek_solid()?.ok_or(Fault::End)?;
        if next == end {
            self.bump();
            return Ok(true);
        }
        if !self.is_first {
            self.expect(b',', "a comma")?;
        }
        self.is_first = false;
        Ok(false)
    }

    fn read_creator(&mut self) -> Result<(), Fault> {
        let mut text = Vec::new();
        if self.value(&mut text, SMALL_BYTES_MAX)? {
            // its creator is not needed to read it
            self.creator = serde_json::from_slice(&text).unwrap_or_default();
        }
        Ok(())
    }

    fn skip(&mut self) -> Result<(), Fault> {
        self.value(&mut Vec::new(), 0).map(|_| ())
    }

    /// Copies one value; false, and nothing of use in `out`, if it is longer than `bytes_max`.
    fn value(&mut self, out: &mut Vec<u8>, bytes_max: usize) -> Result<bool, Fault> {
        let first = self.peek_solid()?.ok_or(Fault::End)?;
        if matches!(first, b',' | b':' | b'}' | b']') {
            return Err(Fault::Byte(first, "a value"));
        }
        let mut walk = Walk::default();
        let mut length = 0;
        loop {
            let piece = self.piece()?;
            if piece.is_empty() {
                return match walk.is_scalar() {
                    true => Ok(length <= bytes_max),
                    false => Err(Fault::End),
                };
            }
            let end = walk.end_in(piece);
            let part = &piece[..end.unwrap_or(piece.len())];
            length += part.len();
            if length <= bytes_max {
                out.extend_from_slice(part);
            }
            let used = part.len();
            self.consume(used);
            if end.is_some() {
                return Ok(length <= bytes_max);
            }
        }
    }

    fn expect(&mut self, byte: u8, wanted: &'static str) -> Result<(), Fault> {
        match self.peek_solid()?.ok_or(Fault::End)? {
            found if found == byte => {
                self.bump();
                Ok(())
            }
            other => Err(Fault::Byte(other, wanted)),
        }
    }

    /// The next byte that is not whitespace.
    fn peek_solid(&mut self) -> Result<Option<u8>, Fault> {
        loop {
            match self.peek()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.bump(),
                other => return Ok(other),
            }
        }
    }

    fn peek(&mut self) -> Result<Option<u8>, Fault> {
        Ok(self.piece()?.first().copied())
    }

    fn bump(&mut self) {
        self.consume(1);
    }

    fn piece(&mut self) -> io::Result<&[u8]> {
        loop {
            match self.source.fill_buf() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // what follows only brings the borrow to an end
                Ok(_) => break,
                Err(error) => return Err(error),
            }
        }
        self.source.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.source.consume(count);
        self.offset += count as u64;
    }
}

/// Memory that is kept for the next entry.
const SPARE_BYTES_MAX: usize = 1 << 20;

/// A walk through one value.
#[derive(Default)]
struct Walk {
    depth: u64,
    is_begun: bool,
    is_in_text: bool,
    is_escaped: bool,
    is_text: bool,
}

impl Walk {
    /// Where the value ends in `piece`, which follows what was walked; `None` if not in it.
    fn end_in(&mut self, piece: &[u8]) -> Option<usize> {
        for (at, &byte) in piece.iter().enumerate() {
            if self.is_in_text {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => {
                        self.is_in_text = false;
                        if self.depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => {
                    self.is_in_text = true;
                    self.is_text |= self.depth == 0;
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth == 1 => return Some(at + 1),
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' | b',' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => {
                    return Some(at);
                }
                _ => {}
            }
            self.is_begun = true;
        }
        None
    }

    /// Whether what was walked may be a whole number or word, which nothing ends but what follows.
    const fn is_scalar(&self) -> bool {
        self.is_begun && self.depth == 0 && !self.is_in_text && !self.is_text
    }
}
