//! Content that is arriving: its blocks, the room they take, and their way to the disk.

pub(crate) mod behind;
pub(crate) mod builder;
pub(crate) mod building;
pub(crate) mod filling;
pub(crate) mod growing;
pub(crate) mod spilling;
