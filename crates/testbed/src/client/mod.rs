//! Clients, which check every byte that they get.

pub(crate) mod get;
pub(crate) mod group;
pub(crate) mod http2;
pub(crate) mod metrics;
pub(crate) mod reader;
pub(crate) mod transfer;
pub(crate) mod wrk;
