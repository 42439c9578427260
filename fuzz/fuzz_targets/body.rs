//! Invariant: content read whole, byte by byte, or cut in two anywhere gives the same bytes and the
//! same end or error; chunked content agrees with a naive decoder that sees it whole; content that
//! is whole reads the same when it is framed again; nothing after the end is consumed. All of it
//! holds of the strict and of the lenient reading, and the lenient one reads what the strict one
//! reads alike.
//!
//! The first byte of the input chooses the framing and the limits of the trailer section, the rest
//! is the content.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::{BodyLength, HeadLimits};

#[path = "../../crates/wire/tests/invariants/mod.rs"]
mod invariants;

/// The input is read once for each place where it is cut.
const TEXT_BYTES_MAX: usize = 4096;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, text)) = input.split_first() else {
        return;
    };
    let text = &text[..text.len().min(TEXT_BYTES_MAX)];
    let small = HeadLimits {
        bytes_max: usize::from(choice % 64),
        fields_max: usize::from(choice % 5),
    };
    let (length, limits) = match choice {
        0..128 => (BodyLength::Chunked, HeadLimits::default()),
        128..192 => (BodyLength::Chunked, small),
        192..240 => (BodyLength::Exact(u64::from(choice - 192)), small),
        240..248 => (BodyLength::UntilClose, small),
        248.. => (BodyLength::None, small),
    };
    invariants::body(text, length, limits);
});
