//! What the system permits a process.

mod descriptors;
mod file_size_signal;

pub use descriptors::{raise_descriptor_limit, room_for_a_request};
pub use file_size_signal::ignore_file_size_signal;
