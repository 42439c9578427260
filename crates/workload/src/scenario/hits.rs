//! Nothing but hits: how fast a cache is where it has no work but the fast path.

use super::text::{As, Seconds};
use crate::law::Law;
use serde::{Deserialize, Serialize};

/// `[workload]` with `kind = "hits"`: connections in a closed loop over few targets. Each
/// requests every target once, which is not measured; then targets drawn uniformly, which is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hits {
    /// How many targets there are.
    pub targets: u32,
    /// Bytes of a response.
    pub size: Law,
    /// Connections, each with one request outstanding.
    pub connections: u32,
    /// How long it is measured, in seconds.
    #[serde(rename = "duration", with = "As::<Seconds>")]
    pub duration_s: f64,
}
