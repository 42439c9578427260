//! The whole process: start, control interface, signals, and what is checked before it serves.

pub(crate) mod advice;
pub(crate) mod control;
pub(crate) mod descriptors;
pub(crate) mod disk_tier;
#[cfg(test)]
mod fast_path_tests;
mod history_place;
pub(crate) mod machine;
#[cfg(test)]
mod multiplexed_tests;
pub mod on_disk;
pub(crate) mod purge_log;
pub(crate) mod run;
pub(crate) mod secret_file;
mod service_manager;
pub(crate) mod signals;
pub(crate) mod until_restart;
