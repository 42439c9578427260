//! What the origin saw of a phase.

use crate::merge_fields;
use serde::{Deserialize, Serialize};

/// Requests by the mark they carry; the mark names the phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginSide {
    /// Requests that arrived: `distinct + repeated + without_id`.
    pub requests: u64,
    /// Client requests that were seen at least once.
    pub distinct: u64,
    /// Requests whose client request had been seen before: a retry, a range, a validation on top.
    pub repeated: u64,
    /// Requests that carry no mark: the proxy's own. They have no phase, and are counted in the
    /// total alone.
    pub without_id: u64,
    /// Content sent, bytes.
    pub content_bytes: u64,
    /// 304 responses.
    pub not_modified: u64,
    /// Responses that were not sent to their end: the scenario's faults, and proxies that left.
    pub aborted: u64,
    /// Connections that were accepted. They have no phase, and are counted in the total alone.
    pub connections_opened: u64,
}

merge_fields! {
    OriginSide { sum {
        requests, distinct, repeated, without_id, content_bytes, not_modified, aborted,
        connections_opened,
    } }
}
