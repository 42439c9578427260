//! Child processes: where they run, what they use, and how they end.

pub(crate) mod affinity;
pub(crate) mod cgroup;
pub(crate) mod child;
pub(crate) mod guarded;
pub(crate) mod ioctl;
pub(crate) mod limits;
pub(crate) mod usage;
