//! Invariant: no bytes make the importer of HARs panic; read at once or byte by byte, they give the
//! same rows, the same damage and the same counts; there is nothing behind the end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_trace::import::Format;

#[path = "../../crates/trace/tests/import_invariants/mod.rs"]
mod import_invariants;

fuzz_target!(|input: &[u8]| import_invariants::check(input, Some(Format::Har)));
