//! Invariant: see the module, which tests of the proxy have too.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/proxy/tests/hostile/http2_frames.rs"]
mod http2_frames;

/// More is no other case, and slower.
const SCRIPT_BYTES_MAX: usize = 4096;

fuzz_target!(|input: &[u8]| {
    http2_frames::play(&input[..input.len().min(SCRIPT_BYTES_MAX)]);
});
