//! Invariant: an ICAP answer, and ICAP requests on one connection, read whole, byte by byte, or cut
//! in two anywhere give the same events, the same end or error, and the same bytes in answer. An
//! answer that the connection cuts short is an error and never an end; a connection on which a
//! request failed is closed; pieces of content are not empty and at most 64 KiB.
//!
//! The first byte of the input chooses the side, the second one the request that was sent and what
//! the server does, the rest is what arrives.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/icap/tests/icap/events.rs"]
mod events;
#[path = "../../crates/icap/tests/icap/invariants.rs"]
mod invariants;

/// The input is read once for each place where it is cut.
const TEXT_BYTES_MAX: usize = 1024;

fuzz_target!(|input: &[u8]| {
    let [side, choice, text @ ..] = input else {
        return;
    };
    let text = &text[..text.len().min(TEXT_BYTES_MAX)];
    if side % 2 == 0 {
        invariants::answer(*choice, text);
    } else {
        invariants::requests(*choice, text);
    }
});
