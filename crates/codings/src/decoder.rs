//! Undoes a content coding in front of a module that wants plain content.
//!
//! A decoder is a stage of the chain like a module: it is handed pieces, and puts out at most one
//! piece at a call. Content that is not whole, or damaged, ends the message: a module must not work
//! on a part as if it were all. What follows the end of the coded data is ignored, as browsers and
//! curl do, except that gzip may have further members (RFC 1952 §2.2) and zstd further frames (RFC
//! 8878 §3); behind a zstd frame anything else is refused. No content at all is none when decoded,
//! too: servers send it so.
//!
//! Memory: a window of 32 KiB for gzip and deflate, at most 16 MiB for br (RFC 7932 §9.1), and
//! 8 MiB for zstd (RFC 9659); the codes of br take up to 4 MiB more. A gauge shows what a decoder
//! has: its chain charges that.

use crate::growth::is_excessive;
use crate::gzip::{HeaderReader, MAGIC, NotGzip, TrailerReader};
use crate::memory_gauge::MemoryGauge;
use brotli_decompressor::{
    Allocator, BrotliDecompressStream, BrotliResult, BrotliState, SliceWrapper as _, StandardAlloc,
};
use flate2::{Crc, Decompress, FlushDecompress, Status};
use weir_extend::{Coding, Piece, Progress, Transform};
use zstd::zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

/// Bytes that are decoded at once.
const STEP_BYTES: usize = 16 * 1024;

/// The largest window of zstd, as a power of two (RFC 9659 §3).
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

/// What `flate2` takes to inflate: a window of 32 KiB and its codes.
const INFLATE_BYTES: usize = 48 * 1024;

/// Undoes one coding.
pub struct Decoder {
    coding: State,
    /// Where content is decoded into.
    step: Box<[u8]>,
    gauge: MemoryGauge,
    taken_bytes: u64,
    put_bytes: u64,
}

/// How far a coding is undone.
enum State {
    /// Which form of `deflate` it is shows in its first two bytes.
    DeflateForm,
    Deflate(Box<Decompress>),
    Gzip(Gzip),
    Brotli(Box<Brotli>),
    Zstd(DCtx<'static>, Frame),
    /// What still comes is ignored.
    Ended,
}

type Brotli = BrotliState<GaugedAlloc, GaugedAlloc, GaugedAlloc>;

/// Memory of a br decoder, which a gauge shows.
#[derive(Clone)]
struct GaugedAlloc(MemoryGauge);

impl<T: Clone + Default> Allocator<T> for GaugedAlloc {
    type AllocatedMemory = <StandardAlloc as Allocator<T>>::AllocatedMemory;

    fn alloc_cell(&mut self, len: usize) -> Self::AllocatedMemory {
        self.0.add(len.saturating_mul(size_of::<T>()));
        StandardAlloc::default().alloc_cell(len)
    }

    fn free_cell(&mut self, memory: Self::AllocatedMemory) {
        self.0.subtract(size_of_val(memory.slice()));
        StandardAlloc::default().free_cell(memory);
    }
}

/// A member of gzip data.
enum Gzip {
    Header(HeaderReader),
    Data(Box<(Decompress, Crc)>),
    Trailer(TrailerReader, Crc),
    /// Another member may follow.
    Between,
}

/// Where in a zstd frame content ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    Within,
    Behind,
}

/// The content is damaged, or is not coded so.
struct Damaged;

/// There is no memory for a decoder.
#[derive(Debug)]
struct NoDecoder;

impl From<NotGzip> for Damaged {
    fn from(NotGzip: NotGzip) -> Self {
        Self
    }
}

/// Bytes that were used and made.
type Step = (usize, usize);

impl Decoder {
    /// Undoes `coding`; `gauge` shows the memory that it takes.
    ///
    /// # Errors
    ///
    /// There is no memory for it.
    fn new(coding: Coding, gauge: MemoryGauge) -> Result<Self, NoDecoder> {
        let decoder_bytes = match coding {
            Coding::Gzip | Coding::Deflate => INFLATE_BYTES,
            Coding::Brotli => size_of::<Brotli>(),
            // shown with its window
            Coding::Zstd => 0,
        };
        gauge.set(STEP_BYTES + decoder_bytes);
        Ok(Self {
            coding: match coding {
                Coding::Gzip => State::Gzip(Gzip::Header(HeaderReader::new())),
                Coding::Deflate => State::DeflateForm,
                Coding::Brotli => {
                    let alloc = || GaugedAlloc(gauge.clone());
                    State::Brotli(Box::new(BrotliState::new_strict(alloc(), alloc(), alloc())))
                }
                Coding::Zstd => {
                    let mut decoder = DCtx::try_create().ok_or(NoDecoder)?;
                    let limit = DParameter::WindowLogMax(ZSTD_WINDOW_LOG_MAX);
                    decoder.set_parameter(limit).map_err(|_| NoDecoder)?;
                    State::Zstd(decoder, Frame::Behind)
                }
            },
            step: vec![0; STEP_BYTES].into_boxed_slice(),
            gauge,
            taken_bytes: 0,
            put_bytes: 0,
        })
    }

    /// A stage that undoes `coding`. Without memory for it, one that fails.
    #[must_use]
    pub fn stage(coding: Coding) -> Box<dyn Transform> {
        Self::gauged_stage(coding).0
    }

    /// The same, and what shows the memory that it takes.
    #[must_use]
    pub fn gauged_stage(coding: Coding) -> (Box<dyn Transform>, MemoryGauge) {
        let gauge = MemoryGauge::default();
        let stage: Box<dyn Transform> = match Self::new(coding, gauge.clone()) {
            Ok(decoder) => Box::new(decoder),
            Err(NoDecoder) => Box::new(Refusal),
        };
        (stage, gauge)
    }

    /// Decodes once, at most `room` bytes.
    fn decode(&mut self, input: &[u8], is_last: bool, room: usize) -> Result<Step, Damaged> {
        let output = &mut self.step[..room.min(STEP_BYTES)];
        match &mut self.coding {
            State::Ended => Ok((input.len(), 0)),
            State::DeflateForm => {
                if input.len() >= 2 || is_last {
                    self.coding = State::Deflate(Box::new(Decompress::new(is_zlib(input))));
                }
                Ok((0, 0))
            }
            State::Deflate(inflate) => {
                let (step, has_ended) = run_inflate(inflate, input, output)?;
                if has_ended {
                    self.coding = State::Ended;
                }
                Ok(step)
            }
            State::Gzip(gzip) => gzip.decode(input, is_last, output),
            State::Brotli(state) => {
                let (step, has_ended) = run_brotli(state, input, output)?;
                if has_ended {
                    self.coding = State::Ended;
                }
                Ok(step)
            }
            State::Zstd(decoder, frame) => {
                let (step, is_behind) = run_zstd(decoder, input, output)?;
                self.gauge.set(STEP_BYTES + decoder.sizeof());
                if step != (0, 0) {
                    *frame = match is_behind {
                        true => Frame::Behind,
                        false => Frame::Within,
                    };
                }
                Ok(step)
            }
        }
    }

    /// Whether the content may end here.
    fn may_end(&self) -> bool {
        self.taken_bytes == 0
            || match &self.coding {
                State::Ended | State::Gzip(Gzip::Between) | State::Zstd(_, Frame::Behind) => true,
                State::DeflateForm
                | State::Deflate(_)
                | State::Gzip(_)
                | State::Brotli(_)
                | State::Zstd(_, Frame::Within) => false,
            }
    }
}

impl Transform for Decoder {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        loop {
            let is_form_known = !matches!(self.coding, State::DeflateForm);
            let room = piece.room();
            if room == 0 {
                return Progress::Continue;
            }
            let Ok((used, made)) = self.decode(piece.input(), piece.is_last(), room) else {
                return Progress::Fail;
            };
            piece.take(used);
            piece.put(&self.step[..made]);
            self.taken_bytes += used as u64;
            self.put_bytes += made as u64;
            // a limit of the content, and not the fault of a module
            if is_excessive(self.taken_bytes, self.put_bytes) {
                return Progress::Fail;
            }
            let has_found_form = !is_form_known && !matches!(self.coding, State::DeflateForm);
            if used > 0 || made > 0 || has_found_form {
                continue;
            }
            return match (piece.is_last(), self.may_end()) {
                (false, _) => Progress::Continue,
                (true, true) => Progress::Done,
                (true, false) => Progress::Fail,
            };
        }
    }
}

/// In the place of a decoder for which there is no memory.
struct Refusal;

impl Transform for Refusal {
    fn transform(&mut self, _: &mut Piece<'_>) -> Progress {
        Progress::Fail
    }
}

impl Gzip {
    fn decode(&mut self, input: &[u8], is_last: bool, output: &mut [u8]) -> Result<Step, Damaged> {
        match self {
            Self::Header(header) => {
                let (used, is_over) = header.read(input)?;
                if is_over {
                    let data = (Decompress::new(false), Crc::new());
                    *self = Self::Data(Box::new(data));
                }
                Ok((used, 0))
            }
            Self::Data(data) => {
                let (inflate, crc) = &mut **data;
                let ((used, made), has_ended) = run_inflate(inflate, input, output)?;
                crc.update(&output[..made]);
                if has_ended {
                    let crc = std::mem::take(crc);
                    *self = Self::Trailer(TrailerReader::default(), crc);
                }
                Ok((used, made))
            }
            Self::Trailer(trailer, crc) => {
                let (used, is_over) = trailer.read(input, crc)?;
                if is_over {
                    *self = Self::Between;
                }
                Ok((used, 0))
            }
            Self::Between if input.starts_with(&MAGIC) => {
                let mut header = HeaderReader::new();
                let (used, _) = header.read(&input[..MAGIC.len()])?;
                *self = Self::Header(header);
                Ok((used, 0))
            }
            // the second byte shows whether it is a member
            Self::Between if input == [MAGIC[0]] && !is_last => Ok((0, 0)),
            Self::Between => Ok((input.len(), 0)),
        }
    }
}

/// Whether deflated content has the format of zlib (RFC 1950 §2.2), as it should; some servers send
/// RFC 1951 alone.
fn is_zlib(input: &[u8]) -> bool {
    match *input {
        [method, flags, ..] => {
            method & 0x0f == 8 && u16::from_be_bytes([method, flags]).is_multiple_of(31)
        }
        _ => false,
    }
}

/// Inflates once: the step, and whether the data has ended.
fn run_inflate(
    inflate: &mut Decompress,
    input: &[u8],
    output: &mut [u8],
) -> Result<(Step, bool), Damaged> {
    let before = (inflate.total_in(), inflate.total_out());
    let status = inflate.decompress(input, output, FlushDecompress::None);
    let status = status.map_err(|_| Damaged)?;
    let used = usize::try_from(inflate.total_in() - before.0).map_err(|_| Damaged)?;
    let made = usize::try_from(inflate.total_out() - before.1).map_err(|_| Damaged)?;
    Ok(((used, made), status == Status::StreamEnd))
}

/// The same for a zstd frame.
fn run_zstd(
    decoder: &mut DCtx<'static>,
    input: &[u8],
    output: &mut [u8],
) -> Result<(Step, bool), Damaged> {
    let (mut input, mut output) = (InBuffer::around(input), OutBuffer::around(output));
    let left = decoder.decompress_stream(&mut output, &mut input);
    let has_ended = left.map_err(|_| Damaged)? == 0;
    Ok(((input.pos(), output.pos()), has_ended))
}

/// The same for br.
fn run_brotli(
    state: &mut Brotli,
    input: &[u8],
    output: &mut [u8],
) -> Result<(Step, bool), Damaged> {
    let (mut left, mut used) = (input.len(), 0);
    let (mut room, mut made, mut total) = (output.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut left, &mut used, input, &mut room, &mut made, output, &mut total, state,
    );
    match result {
        BrotliResult::ResultFailure => Err(Damaged),
        BrotliResult::ResultSuccess => Ok(((used, made), true)),
        BrotliResult::NeedsMoreInput | BrotliResult::NeedsMoreOutput => Ok(((used, made), false)),
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
