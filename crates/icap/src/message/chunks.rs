//! Chunked content inside of ICAP messages, and the end of a preview (RFC 3507 §4.4.2, §4.5).
//!
//! The chunks are read by `weir-wire`, strictly. What it drops is refused here: chunk extensions,
//! of which ICAP has only one, `ieof` at the last chunk of a preview. The RFC writes it as `0;
//! ieof`, so one space may stand before it.

use weir_wire::{BodyEvent, BodyLength, BodyReader, HeadLimits};

use crate::limits::PIECE_BYTES_MAX;
use crate::message::error::MessageError;

/// Reads the content of one message, or one preview.
#[derive(Clone, Debug)]
pub(crate) struct Chunks {
    reader: BodyReader,
    at: At,
    /// The bytes that the next chunks of a preview may have; `None` outside of a preview.
    preview_left: Option<u64>,
    /// The preview is the whole content.
    is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
enum At {
    /// Before a chunk size.
    SizeStart,
    /// In a chunk size of zeros only.
    Zeros,
    /// In another chunk size, or at the end of its line.
    Size,
    /// In the extension of a last chunk: so many bytes of [`IEOF`] were read.
    Extension(usize),
    /// After the line of a chunk: its data.
    Data,
    /// After the data: so many bytes of its line end are missing.
    DataEnd(u8),
    /// After the last chunk.
    Trailers { is_empty: bool },
}

/// The most bytes of a chunk extension: those of `; ieof`.
pub const CHUNK_EXTENSION_BYTES_MAX: usize = IEOF.len() - b"\r\n".len();

/// What stands behind the zero of a preview's last chunk; the space may be absent.
const IEOF: &[u8] = b"; ieof\r\n";

/// What a step found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunksEvent<'b> {
    NeedMore,
    /// 1 to [`PIECE_BYTES_MAX`] bytes.
    Data(&'b [u8]),
    End,
}

impl Chunks {
    /// For content, with a trailer section within these limits.
    pub(crate) const fn content(limits: HeadLimits) -> Self {
        Self::of(None, limits)
    }

    /// For a preview of at most so many bytes.
    pub(crate) const fn preview(bytes_max: u64, limits: HeadLimits) -> Self {
        Self::of(Some(bytes_max), limits)
    }

    const fn of(preview_left: Option<u64>, limits: HeadLimits) -> Self {
        Self {
            reader: BodyReader::new(BodyLength::Chunked, limits),
            at: At::SizeStart,
            preview_left,
            is_whole: preview_left.is_none(),
        }
    }

    /// Is a preview meant?
    pub(crate) const fn is_preview(&self) -> bool {
        self.preview_left.is_some()
    }

    /// After the end: was that the end of the content? False for a preview without `ieof`.
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// After the end: the trailer fields that may be passed on, as `weir_wire` has them.
    pub(crate) fn trailers(&self) -> &[u8] {
        self.reader.trailers()
    }

    /// Reads on. Returns how many bytes of the input were consumed, and what was found.
    pub(crate) fn step<'b>(
        &mut self,
        input: &'b [u8],
    ) -> Result<(usize, ChunksEvent<'b>), MessageError> {
        let mut consumed = 0;
        loop {
            if self.reader.is_ended() {
                return Ok((consumed, ChunksEvent::End));
            }
            let rest = &input[consumed..];
            let Some(&byte) = rest.first() else {
                return Ok((consumed, ChunksEvent::NeedMore));
            };
            if let At::Data = self.at {
                let piece = &rest[..rest.len().min(PIECE_BYTES_MAX)];
                let (count, data) = self.read(piece)?;
                if self.reader.content_ahead() == 0 {
                    self.at = At::DataEnd(2);
                }
                return Ok((consumed + count, ChunksEvent::Data(data)));
            }
            self.push_framing(byte)?;
            consumed += 1;
        }
    }

    /// Reads one byte that is not content.
    fn push_framing(&mut self, byte: u8) -> Result<(), MessageError> {
        match self.at {
            At::Zeros if byte == b';' => self.at = At::Extension(1),
            At::SizeStart | At::Size if byte == b';' => return Err(MessageError::ChunkExtension),
            At::SizeStart | At::Zeros | At::Size => {
                self.read(&[byte])?;
                self.at = match self.at {
                    _ if byte == b'\n' => return self.end_line(),
                    At::SizeStart | At::Zeros if byte == b'0' => At::Zeros,
                    _ => At::Size,
                };
            }
            At::Extension(matched) => self.push_extension(matched, byte)?,
            At::DataEnd(missing) => {
                self.read(&[byte])?;
                self.at = match missing {
                    2 => At::DataEnd(1),
                    _ => At::SizeStart,
                };
            }
            At::Trailers { is_empty } => {
                if is_empty && byte != b'\r' && self.is_preview() && !self.is_whole {
                    return Err(MessageError::TrailersInPreview);
                }
                self.read(&[byte])?;
                self.at = At::Trailers { is_empty: false };
            }
            At::Data => unreachable!("the caller reads data"),
        }
        Ok(())
    }

    /// Reads one byte of the extension of a last chunk.
    fn push_extension(&mut self, matched: usize, byte: u8) -> Result<(), MessageError> {
        let matched = if matched == 1 && byte.eq_ignore_ascii_case(&b'i') {
            // the space is absent
            2
        } else {
            matched
        };
        if !IEOF[matched].eq_ignore_ascii_case(&byte) {
            return Err(MessageError::ChunkExtension);
        }
        if matches!(byte, b'\r' | b'\n') {
            self.read(&[byte])?;
        }
        if matched + 1 < IEOF.len() {
            self.at = At::Extension(matched + 1);
            return Ok(());
        }
        if !self.is_preview() {
            return Err(MessageError::IeofOutsidePreview);
        }
        self.is_whole = true;
        self.end_line()
    }

    /// The line of a chunk was read.
    fn end_line(&mut self) -> Result<(), MessageError> {
        let chunk_bytes = self.reader.content_ahead();
        if chunk_bytes > 0 {
            if let Some(left) = &mut self.preview_left {
                let counted = left.checked_sub(chunk_bytes);
                *left = counted.ok_or(MessageError::PreviewExceeded)?;
            }
            self.at = At::Data;
            return Ok(());
        }
        if !self.is_whole && self.preview_left != Some(0) {
            return Err(MessageError::PreviewShort);
        }
        self.at = At::Trailers { is_empty: true };
        Ok(())
    }

    /// Hands bytes to the reader, which takes all of them up to the end of a chunk's data.
    fn read<'b>(&mut self, bytes: &'b [u8]) -> Result<(usize, &'b [u8]), MessageError> {
        let step = self.reader.step(bytes).map_err(MessageError::Content)?;
        let data = match step.event {
            BodyEvent::Data(data) => data,
            BodyEvent::NeedMore | BodyEvent::End => &[],
        };
        Ok((step.consumed, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_wire::BodyError;

    /// The content, whether the end is that of the whole content, and how many bytes were read.
    type Outcome = Result<(Vec<u8>, bool, usize), MessageError>;

    fn read(mut chunks: Chunks, text: &[u8], piece: usize) -> Outcome {
        let mut content = Vec::new();
        let mut at = 0;
        loop {
            let end = (at + piece).min(text.len());
            let (consumed, event) = chunks.step(&text[at..end])?;
            at += consumed;
            match event {
                ChunksEvent::Data(data) => content.extend_from_slice(data),
                ChunksEvent::End => return Ok((content, chunks.is_whole(), at)),
                ChunksEvent::NeedMore => assert!(end < text.len(), "{text:?} has no end"),
            }
        }
    }

    fn check(chunks: &Chunks, text: &str, expected: Result<(&str, bool), MessageError>) {
        let with_rest = format!("{text}rest");
        let expected = expected.map(|(content, whole)| (content.into(), whole, text.len()));
        for piece in 1..=with_rest.len() {
            let outcome = read(chunks.clone(), with_rest.as_bytes(), piece);
            assert_eq!(outcome, expected, "{text:?} in pieces of {piece}");
        }
    }

    fn content() -> Chunks {
        Chunks::content(HeadLimits::default())
    }

    fn preview(bytes_max: u64) -> Chunks {
        Chunks::preview(bytes_max, HeadLimits::default())
    }

    #[test]
    fn content_is_read_up_to_its_last_chunk() {
        check(&content(), "0\r\n\r\n", Ok(("", true)));
        check(&content(), "5\r\nhello\r\n000\r\n\r\n", Ok(("hello", true)));
        check(
            &content(),
            "2\r\nhe\r\n03\r\nllo\r\n0\r\nA: b\r\n\r\n",
            Ok(("hello", true)),
        );
        check(
            &content(),
            "A\r\n0123456789\r\n0\r\n\r\n",
            Ok(("0123456789", true)),
        );
        check(
            &content(),
            "10\r\n0123456789abcdef\r\n0\r\n\r\n",
            Ok(("0123456789abcdef", true)),
        );
    }

    #[test]
    fn preview_with_ieof_is_the_whole_content() {
        check(
            &preview(9),
            "5\r\nhello\r\n0; ieof\r\n\r\n",
            Ok(("hello", true)),
        );
        check(
            &preview(5),
            "5\r\nhello\r\n0;ieof\r\n\r\n",
            Ok(("hello", true)),
        );
        check(&preview(0), "0; IEOF\r\n\r\n", Ok(("", true)));
        check(
            &preview(5),
            "5\r\nhello\r\n0; ieof\r\nA: b\r\n\r\n",
            Ok(("hello", true)),
        );
    }

    #[test]
    fn full_preview_without_ieof_is_a_part() {
        check(&preview(5), "5\r\nhello\r\n0\r\n\r\n", Ok(("hello", false)));
        check(&preview(0), "0\r\n\r\n", Ok(("", false)));
    }

    #[test]
    fn wrong_end_of_preview_is_refused_by_name() {
        use MessageError as E;
        check(&preview(6), "5\r\nhello\r\n0\r\n\r\n", Err(E::PreviewShort));
        check(&preview(1), "0\r\n\r\n", Err(E::PreviewShort));
        check(
            &preview(5),
            "5\r\nhello\r\n0\r\nA: b\r\n\r\n",
            Err(E::TrailersInPreview),
        );
        check(&content(), "0; ieof\r\n\r\n", Err(E::IeofOutsidePreview));
        check(&content(), "0;ieof\r\n\r\n", Err(E::IeofOutsidePreview));
        for text in [
            "5; ieof\r\nhello\r\n",
            "5\r\nhello\r\n0;  ieof\r\n\r\n",
            "0 ; ieof\r\n\r\n",
            "0; ieof; a\r\n\r\n",
            "0; ieof=1\r\n\r\n",
            "0; ieo\r\n\r\n",
            "0; ieof \r\n\r\n",
            "0; a\r\n\r\n",
            "0;\r\n\r\n",
            "0; ieof\n\r\n",
        ] {
            let outcome = read(preview(5), text.as_bytes(), text.len());
            let is_refused = matches!(outcome, Err(E::ChunkExtension | E::Content(_)));
            assert!(is_refused, "{text:?}: {outcome:?}");
        }
        for text in ["5\r\n", "2\r\nhe\r\n3\r\n", "ffffffffffffffff\r\n"] {
            check(&preview(4), text, Err(E::PreviewExceeded));
        }
    }

    #[test]
    fn wrong_chunks_are_refused_by_name() {
        let error = |error| Err(MessageError::Content(error));
        check(&content(), "x\r\n", error(BodyError::ChunkSize));
        check(&content(), "\r\n", error(BodyError::ChunkSize));
        check(&content(), "0x5\r\nhello\r\n", error(BodyError::ChunkSize));
        check(&content(), "+5\r\nhello\r\n", error(BodyError::ChunkSize));
        check(
            &content(),
            "00000000000000000\r\n\r\n",
            error(BodyError::ChunkSizeTooLong),
        );
        check(&content(), "0\n\n", error(BodyError::ChunkLineEnd));
        check(
            &content(),
            "5\r\nhello!\r\n",
            error(BodyError::ChunkDataEnd),
        );
        check(
            &content(),
            "5\r\nhello\n0\r\n\r\n",
            error(BodyError::ChunkDataEnd),
        );
        check(
            &content(),
            "5;a=b\r\nhello\r\n",
            Err(MessageError::ChunkExtension),
        );
        check(&content(), ";\r\n", Err(MessageError::ChunkExtension));
    }

    #[test]
    fn large_chunk_is_handed_out_in_pieces_of_bounded_size() {
        let mut text = b"40000\r\n".to_vec();
        text.resize(text.len() + 0x40000, b'x');
        let mut chunks = content();
        let (consumed, event) = chunks.step(&text).unwrap();
        assert_eq!(consumed, 7 + PIECE_BYTES_MAX);
        assert!(matches!(event, ChunksEvent::Data(data) if data.len() == PIECE_BYTES_MAX));
    }
}
