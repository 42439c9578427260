//! What a runner observed in one step.

use crate::cache_status::Parameters;

/// What happened in a step.
#[derive(Clone, Debug, Default)]
pub struct Observation {
    /// The requests the origin got, in order.
    pub requests: Vec<OriginRequest>,
    /// What the client got.
    pub response: ClientResponse,
}

/// A request as the origin got it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OriginRequest {
    /// Method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Field lines.
    pub fields: Vec<(String, String)>,
}

/// A response as the client got it. What a runner cannot know is `None`, and is not compared.
#[derive(Clone, Debug, Default)]
pub struct ClientResponse {
    /// Status code.
    pub status: u16,
    /// Content.
    pub body: Option<String>,
    /// Age in seconds; inside, `None` if the response does not say.
    pub age_s: Option<Option<u32>>,
    /// Field lines.
    pub fields: Option<Vec<(String, String)>>,
    /// Parameters of the cache's own member of Cache-Status.
    pub cache_status: Parameters,
    /// It ended before it was whole.
    pub cut: bool,
}
