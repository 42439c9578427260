//! A run second by second.

use serde::{Deserialize, Serialize};

/// What happened in one second, of all clients together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Its begin, seconds since the common start.
    pub at_s: f64,
    /// Requests begun.
    pub requests: u64,
    /// Responses ended.
    pub responses: u64,
    /// Of these hits.
    pub hits: u64,
    /// Requests that failed.
    pub errors: u64,
    /// Content received, bytes.
    pub content_bytes: u64,
    /// Half of the responses that ended took no longer, microseconds; 0 without a response.
    pub p50_us: u64,
    /// 99 of 100 responses that ended took no longer, microseconds; 0 without a response.
    pub p99_us: u64,
    /// Connections open at its end.
    pub connections_open: u64,
}
