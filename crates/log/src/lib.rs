//! Logs of a line for each request: a bounded queue in front of a thread that writes, and what
//! formats of lines are made of, harmless text and dates.
//!
//! Formats are not here: a proxy and an ICAP server have other things to say of a request. A line
//! is appended without a system call and without a wait; a full queue or a failing destination
//! drops lines and counts them. The writer wakes for the first line, waits a moment for more, and
//! writes them together.

#![forbid(unsafe_code)]

mod calendar;
pub mod escape;
mod line_log;
mod queue;
mod writer;

pub use calendar::{Stamp, put};
pub use line_log::{Destination, LineLog};
pub use queue::QUEUE_BYTES_MAX;
