//! A stored response that was chosen for a request, and is asked about.

use std::sync::Arc;
use weir_store::{ExpectedResponse, StoredResponse};

/// A stored response that is to be validated or completed, or is there if the next hop fails.
///
/// Much may pass before the next hop is asked: a wait for another request's response, for an
/// address, for a connection. What is purged in all that time must not come back with the answer.
/// So the one is not to be had without the other.
#[derive(Debug)]
pub(crate) struct ChosenResponse {
    pub(crate) response: Arc<StoredResponse>,
    /// What the answer may bring into the store, since the choice.
    pub(crate) expected: ExpectedResponse,
}
