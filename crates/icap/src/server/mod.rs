//! The server's side: requests on a connection and their answers.

pub(crate) mod answer;
pub(crate) mod connection;
pub(crate) mod error;
pub(crate) mod refusal;
pub(crate) mod request;
