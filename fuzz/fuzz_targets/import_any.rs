//! Invariant: whatever a file is, compressed or not, telling its format and reading it never
//! panics, and does not depend on how its bytes arrive.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/trace/tests/import_invariants/mod.rs"]
mod import_invariants;

fuzz_target!(|input: &[u8]| import_invariants::check(input, None));
