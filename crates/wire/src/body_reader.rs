//! Taking content out of its framing (RFC 9112 §6, §7), step by step and without copying it.

use core::error::Error;
use core::fmt;

use crate::body_length::BodyLength;
use crate::chunk_line::ChunkLine;
use crate::head::HeadLimits;
use crate::head_error::HeadError;
use crate::trailers::Trailers;
use weir_semantics::NamedFields;

/// Reads the content of one message.
///
/// Hand the bytes after the head to [`step`](Self::step), drop what it consumed, and again, until
/// the event is [`BodyEvent::End`]. Bytes after the end belong to the next message and are not
/// touched.
#[derive(Clone, Debug)]
pub struct BodyReader {
    state: State,
    /// Bytes of chunk extensions so far, over the whole message.
    extension_bytes: u32,
    is_lenient: bool,
    is_repaired: bool,
    trailers: Trailers,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// So many bytes to come; never zero.
    Exact(u64),
    UntilClose,
    ChunkLine(ChunkLine),
    /// So many bytes of a chunk to come; never zero.
    ChunkData(u64),
    /// The carriage return after a chunk's data.
    ChunkDataCr,
    /// The line feed after that.
    ChunkDataLf,
    Trailers,
    Ended,
    /// An error was reported; there is no way on.
    Failed(BodyError),
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyStep<'b> {
    /// How many bytes of the input are done with, those in [`BodyEvent::Data`] included. They are
    /// the last of them.
    pub consumed: usize,
    /// What was found.
    pub event: BodyEvent<'b>,
}

/// What a step found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEvent<'b> {
    /// All input is consumed and the message is not over.
    NeedMore,
    /// Content, never empty.
    Data(&'b [u8]),
    /// The message is over. Further steps consume nothing and say so again.
    End,
}

/// Why the framing of content is refused.
///
/// `Display` is a fragment that fits "failed to read the content: …". A request that fails so is
/// answered with 400 if it can still be answered; in any case its connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BodyError {
    /// A chunk size is not hexadecimal digits: empty, a sign, `0x`, an underscore, whitespace.
    ChunkSize,
    /// A chunk size has more than [`CHUNK_SIZE_DIGITS_MAX`](crate::CHUNK_SIZE_DIGITS_MAX) digits.
    ChunkSizeTooLong,
    /// A chunk line of a response has more than
    /// [`CHUNK_PADDING_BYTES_MAX`](crate::CHUNK_PADDING_BYTES_MAX) bytes of padding.
    ChunkPadding,
    /// A chunk extension is neither `;name` nor `;name=token` nor `;name="string"`.
    ChunkExtension,
    /// The chunk extensions of the message have more than
    /// [`EXTENSION_BYTES_MAX`](crate::EXTENSION_BYTES_MAX) bytes.
    ExtensionsTooLarge,
    /// The line with the chunk size does not end in CRLF.
    ChunkLineEnd,
    /// The data of a chunk is not followed by CRLF: it is longer or shorter than its size.
    ChunkDataEnd,
    /// The trailer section is refused.
    Trailer(HeadError),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ChunkSize => "a chunk size is not hexadecimal digits only",
            Self::ChunkSizeTooLong => "a chunk size has too many digits",
            Self::ChunkPadding => "a chunk line has more padding than allowed",
            Self::ChunkExtension => "a chunk extension is malformed",
            Self::ExtensionsTooLarge => "the chunk extensions have more bytes than allowed",
            Self::ChunkLineEnd => {
                "the line with a chunk size does not end in carriage return and line feed"
            }
            Self::ChunkDataEnd => {
                "the data of a chunk is not followed by carriage return and line feed"
            }
            Self::Trailer(error) => return write!(f, "in the trailer section: {error}"),
        })
    }
}

impl Error for BodyError {}

/// The peer closed the connection before the message was over. What was read must not pass for the
/// whole.
///
/// `Display` is a fragment that fits "failed to read the content: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incomplete {
    /// So many bytes of a Content-Length are missing; at least one.
    Short {
        /// The bytes that are missing.
        missing_bytes: u64,
    },
    /// The last chunk, or the end of the trailer section after it, is missing.
    Unterminated,
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { missing_bytes } => {
                write!(f, "the connection closed {missing_bytes} bytes early")
            }
            Self::Unterminated => f.write_str("the connection closed before the last chunk"),
        }
    }
}

impl Error for Incomplete {}

impl BodyReader {
    /// A reader for content of this length.
    ///
    /// `trailer_limits` bounds the trailer section of chunked content: its bytes, the empty line
    /// included, and its lines. Only the bytes of trailer fields are ever held in memory.
    #[must_use]
    pub const fn new(length: BodyLength, trailer_limits: HeadLimits) -> Self {
        Self::of(length, trailer_limits, false)
    }

    /// As [`new`](Self::new), for a response: its chunk lines may be padded, up to
    /// [`CHUNK_PADDING_BYTES_MAX`](crate::CHUNK_PADDING_BYTES_MAX) bytes a line.
    #[must_use]
    pub const fn lenient(length: BodyLength, trailer_limits: HeadLimits) -> Self {
        Self::of(length, trailer_limits, true)
    }

    const fn of(length: BodyLength, trailer_limits: HeadLimits, is_lenient: bool) -> Self {
        let state = match length {
            BodyLength::None | BodyLength::Exact(0) => State::Ended,
            BodyLength::Exact(bytes) => State::Exact(bytes),
            BodyLength::Chunked => State::ChunkLine(ChunkLine::new(is_lenient)),
            BodyLength::UntilClose => State::UntilClose,
        };
        Self {
            state,
            extension_bytes: 0,
            is_lenient,
            is_repaired: false,
            trailers: Trailers::new(trailer_limits),
        }
    }

    /// The same for a message whose head names `named` in `Connection`: they go no further in the
    /// trailer section either (RFC 9110 §7.6.1).
    #[must_use]
    pub fn without_trailers(mut self, named: NamedFields) -> Self {
        self.trailers.leave_out(named);
        self
    }

    /// Was a chunk line padded, so far? Then the connection must not be used for another response.
    #[must_use]
    pub const fn is_repaired(&self) -> bool {
        self.is_repaired
    }

    /// Reads on, up to the next piece of content, the end, or the end of `input`.
    ///
    /// # Errors
    ///
    /// The framing is refused. Content reported before is what it is; the message must not pass for
    /// whole, and nothing that follows on the connection can be read. Further steps fail alike.
    pub fn step<'b>(&mut self, input: &'b [u8]) -> Result<BodyStep<'b>, BodyError> {
        let result = self.advance(input);
        if let Err(error) = result {
            self.state = State::Failed(error);
        }
        result
    }

    fn advance<'b>(&mut self, input: &'b [u8]) -> Result<BodyStep<'b>, BodyError> {
        let mut consumed = 0;
        loop {
            let rest = &input[consumed..];
            if let State::Ended = self.state {
                return Ok(BodyStep {
                    consumed,
                    event: BodyEvent::End,
                });
            }
            let Some(&byte) = rest.first() else {
                return Ok(BodyStep {
                    consumed,
                    event: BodyEvent::NeedMore,
                });
            };
            let data = match &mut self.state {
                State::Exact(left) => {
                    let data = take(left, rest);
                    if *left == 0 {
                        self.state = State::Ended;
                    }
                    data
                }
                State::ChunkData(left) => {
                    let data = take(left, rest);
                    if *left == 0 {
                        self.state = State::ChunkDataCr;
                    }
                    data
                }
                State::UntilClose => rest,
                _ => {
                    consumed += self.advance_framing(byte, rest)?;
                    continue;
                }
            };
            return Ok(BodyStep {
                consumed: consumed + data.len(),
                event: BodyEvent::Data(data),
            });
        }
    }

    /// Reads bytes that are not content; `byte` is the first of `rest`. Returns how many were read,
    /// at least one.
    fn advance_framing(&mut self, byte: u8, rest: &[u8]) -> Result<usize, BodyError> {
        match &mut self.state {
            State::ChunkLine(line) => {
                if let Some(size) = line.push(byte, &mut self.extension_bytes)? {
                    self.is_repaired |= line.is_repaired();
                    self.state = if size == 0 {
                        State::Trailers
                    } else {
                        State::ChunkData(size)
                    };
                }
            }
            State::ChunkDataCr if byte == b'\r' => self.state = State::ChunkDataLf,
            State::ChunkDataLf if byte == b'\n' => {
                self.state = State::ChunkLine(ChunkLine::new(self.is_lenient));
            }
            State::ChunkDataCr | State::ChunkDataLf => return Err(BodyError::ChunkDataEnd),
            State::Trailers => {
                let (taken, whole) = self.trailers.push(rest)?;
                if whole {
                    self.state = State::Ended;
                }
                return Ok(taken);
            }
            State::Failed(error) => return Err(*error),
            State::Exact(_) | State::ChunkData(_) | State::UntilClose | State::Ended => {
                unreachable!("content and the end are read by the caller")
            }
        }
        Ok(1)
    }

    /// Is the message over? True as soon as its last byte was consumed, and from the beginning if
    /// it has no content; there is no need to wait for [`BodyEvent::End`].
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// The peer closed the connection. That ends content of [`BodyLength::UntilClose`], and is
    /// nothing to content that is over.
    ///
    /// # Errors
    ///
    /// The message is cut short.
    pub const fn at_eof(&mut self) -> Result<(), Incomplete> {
        match self.state {
            State::Ended => Ok(()),
            State::UntilClose => {
                self.state = State::Ended;
                Ok(())
            }
            State::Exact(missing_bytes) => Err(Incomplete::Short { missing_bytes }),
            _ => Err(Incomplete::Unterminated),
        }
    }

    /// The trailer fields that may be passed on: field lines, each with its CRLF, without the empty
    /// line.
    ///
    /// Empty before the end. Fields about framing, routing, authentication, caching and the form of
    /// the content are dropped (RFC 9110 §6.5.1), and those of
    /// [`without_trailers`](Self::without_trailers).
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        if self.is_ended() {
            self.trailers.kept()
        } else {
            &[]
        }
    }

    /// How many of the next bytes are content, whatever they are; 0 where framing comes next. All
    /// that come, where the connection's end is the content's.
    #[must_use]
    pub const fn content_ahead(&self) -> u64 {
        match self.state {
            State::Exact(left) | State::ChunkData(left) => left,
            State::UntilClose => u64::MAX,
            _ => 0,
        }
    }

    /// Passes over `count` bytes of content that are not there to be read: a monitor knows that
    /// they were sent and did not see them. Does nothing and says `false` if there may be framing
    /// among them.
    pub fn skip_content(&mut self, count: u64) -> bool {
        if count > self.content_ahead() {
            return false;
        }
        match &mut self.state {
            State::Exact(left) => {
                *left -= count;
                if *left == 0 {
                    self.state = State::Ended;
                }
            }
            State::ChunkData(left) => {
                *left -= count;
                if *left == 0 {
                    self.state = State::ChunkDataCr;
                }
            }
            _ => {}
        }
        true
    }

    /// How many bytes of content are to come, if that is known: a Content-Length, or no content, or
    /// the end was reached.
    #[must_use]
    pub const fn remaining_exact(&self) -> Option<u64> {
        match self.state {
            State::Exact(left) => Some(left),
            State::Ended => Some(0),
            _ => None,
        }
    }
}

/// The bytes of `input` that belong to the `left` ones, which are counted down.
fn take<'b>(left: &mut u64, input: &'b [u8]) -> &'b [u8] {
    let count = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
    *left -= count as u64;
    &input[..count]
}
