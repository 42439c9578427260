//! The result of a simulated request, for a caller that needs each of them and not only their sums.

use std::fmt::Debug;
use weir_policy::{Handling, RefuseReason, Verdict};
use weir_trace::AbortedBy;

/// One request at its end. Times are those of its client: a recording has those of the proxy, which
/// are shorter by the client's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestResult {
    /// The number of its row, from 0.
    pub number: u64,
    /// What was decided.
    pub verdict: Verdict,
    /// Set-up of the client's connection, where it opened one.
    pub setup_us: Option<u64>,
    /// From arrival to the request.
    pub request_us: u64,
    /// From arrival to the first byte of the response, if one came.
    pub response_us: Option<u64>,
    /// From arrival to the last byte, or to the last one before the client left.
    pub last_byte_us: u64,
    /// Content that the client received.
    pub received_bytes: u64,
    /// As much of it as did not have to come from the next hop for this request.
    pub cached_bytes: u64,
    /// How it ended.
    pub aborted_by: AbortedBy,
}

impl RequestResult {
    /// The verdict in the word that `weir serve --record` has for it.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self.verdict.handling {
            Handling::Refused(RefuseReason::OnlyIfCached | RefuseReason::AnsweredHere) => "local",
            Handling::Refused(RefuseReason::BadRequest) => "invalid",
            handling => handling.as_str(),
        }
    }
}

/// Takes what requests came to, in the order in which they end.
pub trait ResultSink: Send + Debug {
    /// A request has ended.
    fn take(&mut self, result: &RequestResult);

    /// No more will come.
    fn end(&mut self);
}
