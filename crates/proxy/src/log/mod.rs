//! What is written down of a request: its log line, its counters, its row of a recorded trace.

pub(crate) mod access_log;
pub(crate) mod account;
pub mod record;
pub(crate) mod report;
pub(crate) mod served;
