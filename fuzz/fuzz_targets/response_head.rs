//! Invariant: a response head read whole or byte by byte gives the same head or the same error,
//! decided at the same byte; a head that is read keeps its limits, holds no octet that could end a
//! line elsewhere, has as many field lines as it has lines, and reads the same when it is written
//! again.
//!
//! Read leniently, the same holds of whole and parts; what the strict reading reads is read alike;
//! what is repaired is canonical: written again, the strict reading reads it and nothing is left to
//! repair.
//!
//! The first byte of the input chooses the limits, the rest is the head.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::HeadLimits;

#[path = "../../crates/wire/tests/invariants/mod.rs"]
mod invariants;

/// Every beginning of the input is read, so long inputs cost the square of their length.
const TEXT_BYTES_MAX: usize = 1024;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, text)) = input.split_first() else {
        return;
    };
    let text = &text[..text.len().min(TEXT_BYTES_MAX)];
    let limits = match choice {
        0..128 => HeadLimits::default(),
        _ => HeadLimits {
            bytes_max: usize::from(choice - 128),
            fields_max: usize::from(choice % 5),
        },
    };
    invariants::response_head(text, &limits);
    invariants::lenient_response_head(text, &limits);
});
