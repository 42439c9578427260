//! The line before each chunk: its size and its extensions (RFC 9112 §7.1, §7.1.1).
//!
//! Strict: the size is hexadecimal digits and nothing else, whitespace is nowhere (the grammar has
//! "bad whitespace" around the parts of an extension; no sender needs it), extensions are `;name`,
//! `;name=token` or `;name="quoted string"`, and the line ends in CRLF, not in a line feed.
//! Extensions are read and dropped.
//!
//! Lenient, for responses. All of it is padding, up to [`CHUNK_PADDING_BYTES_MAX`] a line, and no
//! other reading gives another size:
//!
//! * Spaces and tabs where the grammar has "bad whitespace" (§7.1.1: a recipient must read and
//!   remove it).
//! * Spaces and tabs at the end of the line. Some servers write the size into a field of fixed
//!   width.
//! * Zeros before the size, so that it has more than sixteen digits: §7.1 sets no limit to their
//!   number.
//!
//! Whitespace before or within the size, line feeds alone, signs and prefixes stay refused.

use crate::body_reader::BodyError;
use crate::octet::{is_field_byte, is_qdtext, is_tchar};

/// The most hexadecimal digits in a chunk size, leading zeros included: what a `u64` holds.
pub const CHUNK_SIZE_DIGITS_MAX: u8 = 16;

/// The most bytes of chunk extensions in one message.
///
/// They are not used; they are a way to make a recipient read without end. Go and hyper stop at 16
/// KiB as well.
pub const EXTENSION_BYTES_MAX: u32 = 16 * 1024;

/// The most bytes of padding in one chunk line that is read leniently: whitespace, and digits
/// beyond sixteen.
pub const CHUNK_PADDING_BYTES_MAX: u8 = 64;

/// Reads the line before one chunk, byte by byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkLine {
    size: u64,
    digits: u8,
    at: At,
    is_lenient: bool,
    /// Bytes that only the lenient reading allows.
    padding: u8,
}

/// What comes next.
#[derive(Clone, Copy, Debug)]
enum At {
    Size,
    /// After whitespace behind the size or a value: the line ends, or an extension begins.
    Padded,
    /// The same behind a name, whose value may follow.
    PaddedName,
    /// The first byte of an extension's name.
    NameStart,
    Name,
    /// The first byte of an extension's value.
    ValueStart,
    Token,
    Quoted,
    /// The byte after a backslash.
    QuotedPair,
    /// The byte after a closing quote.
    QuotedEnd,
    LineFeed,
}

impl ChunkLine {
    pub(crate) const fn new(is_lenient: bool) -> Self {
        Self {
            size: 0,
            digits: 0,
            at: At::Size,
            is_lenient,
            padding: 0,
        }
    }

    /// Takes the next byte of the line; returns the chunk's size at the end of the line.
    ///
    /// `extension_bytes` counts the bytes of extensions over the whole message.
    pub(crate) fn push(
        &mut self,
        byte: u8,
        extension_bytes: &mut u32,
    ) -> Result<Option<u64>, BodyError> {
        if self.is_lenient
            && matches!(byte, b' ' | b'\t')
            && let Some(at) = self.at_after_padding()
        {
            self.pad()?;
            self.at = at;
            return Ok(None);
        }
        self.at = match (self.at, byte) {
            (At::Padded | At::PaddedName, b'\r') => At::LineFeed,
            (At::Padded | At::PaddedName, b';') => At::NameStart,
            (At::PaddedName, b'=') => At::ValueStart,
            (At::LineFeed, b'\n') => return Ok(Some(self.size)),
            (At::LineFeed, _) | (_, b'\n') => return Err(BodyError::ChunkLineEnd),
            (At::Size, b'\r' | b';') if self.digits == 0 => return Err(BodyError::ChunkSize),
            (At::Size | At::Name | At::Token | At::QuotedEnd, b'\r') => At::LineFeed,
            (At::Size | At::Name | At::Token | At::QuotedEnd, b';') => At::NameStart,
            (At::Size, _) => self.push_digit(byte)?,
            (At::NameStart | At::Name, _) if is_tchar(byte) => At::Name,
            (At::Name, b'=') => At::ValueStart,
            (At::ValueStart | At::Token, _) if is_tchar(byte) => At::Token,
            (At::ValueStart, b'"') => At::Quoted,
            (At::Quoted, b'"') => At::QuotedEnd,
            (At::Quoted, b'\\') => At::QuotedPair,
            (At::Quoted, _) if is_qdtext(byte) => At::Quoted,
            (At::QuotedPair, _) if is_field_byte(byte) => At::Quoted,
            _ => return Err(BodyError::ChunkExtension),
        };
        if !matches!(self.at, At::Size | At::LineFeed) {
            *extension_bytes += 1;
            if *extension_bytes > EXTENSION_BYTES_MAX {
                return Err(BodyError::ExtensionsTooLarge);
            }
        }
        Ok(None)
    }

    /// Was anything read that only the lenient reading allows?
    pub(crate) const fn is_repaired(&self) -> bool {
        self.padding > 0
    }

    /// Where whitespace leads, if it may stand here.
    const fn at_after_padding(&self) -> Option<At> {
        match self.at {
            At::Size if self.digits > 0 => Some(At::Padded),
            At::Token | At::QuotedEnd | At::Padded => Some(At::Padded),
            At::Name | At::PaddedName => Some(At::PaddedName),
            At::NameStart => Some(At::NameStart),
            At::ValueStart => Some(At::ValueStart),
            At::Size | At::Quoted | At::QuotedPair | At::LineFeed => None,
        }
    }

    fn pad(&mut self) -> Result<(), BodyError> {
        if self.padding == CHUNK_PADDING_BYTES_MAX {
            return Err(BodyError::ChunkPadding);
        }
        self.padding += 1;
        Ok(())
    }

    fn push_digit(&mut self, byte: u8) -> Result<At, BodyError> {
        let digit = char::from(byte).to_digit(16).ok_or(BodyError::ChunkSize)?;
        if self.digits == CHUNK_SIZE_DIGITS_MAX {
            // sixteen digits that begin with a zero have room for one more
            if !self.is_lenient || self.size >> 60 != 0 {
                return Err(BodyError::ChunkSizeTooLong);
            }
            self.pad()?;
            self.size = self.size << 4 | u64::from(digit);
            return Ok(At::Size);
        }
        self.digits += 1;
        self.size = self.size << 4 | u64::from(digit);
        Ok(At::Size)
    }
}
