//! The window that a connection to a next hop begins with.

use weir_policy::Now;
use weir_policy::fetch::{Pace, ReadAhead};

/// Round trips change slowly: they are read this often, milliseconds.
pub const LOOK_MS: u64 = 50;

/// The first window of a connection to a next hop, bytes; `None`: as the kernel likes.
pub fn first_window(read_ahead: ReadAhead, now: Now) -> Option<u32> {
    // with nothing to come the window is the one at rest
    Pace::new(read_ahead, now).window(Some(0))
}
