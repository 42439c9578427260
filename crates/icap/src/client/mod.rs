//! The client's side: one request and its answer on a connection.

pub(crate) mod answer;
pub(crate) mod error;
pub(crate) mod request;
pub(crate) mod sending;
pub(crate) mod transaction;
