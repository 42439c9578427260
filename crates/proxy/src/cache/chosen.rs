//! A stored response that was chosen for a request and will be validated or completed.

use std::sync::Arc;
use weir_store::{ExpectedResponse, StoredResponse};

/// A stored response to validate or complete, or to serve if the next hop fails.
///
/// Much time may pass before the request is sent: it waits for another request's response, for an
/// address, for a connection. A response that is purged in that time must not be stored again. So
/// this type holds the stored response together with the expected one.
#[derive(Debug)]
pub(crate) struct ChosenResponse {
    pub(crate) response: Arc<StoredResponse>,
    /// The response that may be stored, expected since the choice.
    pub(crate) expected: Box<ExpectedResponse>,
}
