//! Invariant: no bytes make the reader of traces panic, or give more rows than the footer says;
//! nothing comes behind an error, and some columns alone are what they are beside the others.
//!
//! The first byte chooses: a file as it stands; or changes to a small trace, each of two bytes for
//! the place and one for the bits, under its seal, as version 1 wrote it, or without a seal, as
//! another program would have left it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::{LazyLock, Once};

#[path = "../../crates/trace/tests/trace_invariants/mod.rs"]
mod trace_invariants;

static SEALED: LazyLock<Vec<u8>> = LazyLock::new(trace_invariants::example);
static UNSEALED: LazyLock<Vec<u8>> =
    LazyLock::new(|| trace_invariants::unsealed(trace_invariants::example()));

/// The reader catches what its decoder makes of damage, and the fuzzer would end the process before
/// it can. What is not caught ends it all the same.
static CAUGHT: Once = Once::new();

fuzz_target!(|input: &[u8]| {
    CAUGHT.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    let Some((&choice, rest)) = input.split_first() else {
        return;
    };
    let whole = match choice {
        0..64 => return trace_invariants::check(rest),
        64..80 => SEALED.clone(),
        80..96 => trace_invariants::VERSION_1.to_vec(),
        96.. => UNSEALED.clone(),
    };
    let changes = rest.as_chunks::<3>().0.iter();
    let changes =
        changes.map(|[high, low, flip]| (usize::from(u16::from_be_bytes([*high, *low])), *flip));
    trace_invariants::check(&trace_invariants::damaged(whole, changes));
});
