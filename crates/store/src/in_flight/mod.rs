//! In-flight content: its blocks, their room, and their way to the disk.

pub(crate) mod builder;
pub(crate) mod content;
pub(crate) mod disk_writer;
pub(crate) mod reservation;
pub(crate) mod write_behind;
pub(crate) mod write_position;
