//! What is written down of a request: its log line, its counters, its row of a recorded trace.

pub(crate) mod access_log;
pub(crate) mod client;
mod forward_log;
pub(crate) mod line_limit;
pub(crate) mod logged_proxy;
pub(crate) mod module_log;
pub(crate) mod phase_times;
pub mod record;
pub(crate) mod report;
pub(crate) mod request_log;
pub(crate) mod served;
pub(crate) mod top;
pub(crate) mod words;
