//! Invariant: no bytes make an importer of logs or of lists panic; read at once or byte by byte,
//! they give the same rows, the same damage and the same counts; there is nothing behind the end.
//!
//! The first byte of the input says which format it is.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_trace::import::Format;

#[path = "../../crates/trace/tests/import_invariants/mod.rs"]
mod import_invariants;

const FORMATS: [Format; 4] = [
    Format::Squid,
    Format::Common,
    Format::Webcachesim,
    Format::OracleGeneral,
];

fuzz_target!(|input: &[u8]| {
    if let Some((&choice, text)) = input.split_first() {
        let format = FORMATS[usize::from(choice) % FORMATS.len()];
        import_invariants::check(text, Some(format));
    }
});
