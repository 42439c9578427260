//! Clients, which check every byte that they get.

pub(crate) mod content;
pub(crate) mod crowd;
pub(crate) mod get;
pub(crate) mod incoming;
pub(crate) mod reader;
