//! Invariant: a message that is the state of a connection is the one that this state is written as,
//! and its queues are within their limits. Any other one is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_net::hand_off::repair::{ConnectionState, UNACKNOWLEDGED_BYTES_MAX, UNREAD_BYTES_MAX};

fuzz_target!(|message: &[u8]| {
    let Ok(state) = ConnectionState::decode(message) else {
        return;
    };
    let mut written = Vec::new();
    state.encode(&mut written);
    assert_eq!(written, message);
    assert!(state.unread.len() <= UNREAD_BYTES_MAX);
    assert!(state.unacknowledged.len() + state.unsent.len() <= UNACKNOWLEDGED_BYTES_MAX);
});
