//! The subject of a measurement.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// The proxy, as far as the benchmark knows it: by its address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The name that reports print.
    pub label: String,
    /// Its address and port; for a direct run the origin's.
    pub proxy: String,
    /// How it was spoken to.
    pub mode: Mode,
    /// Whether it was configured to cache. `false` for a run with caching off, and for a direct
    /// one.
    pub is_caching: bool,
}

/// How a proxy is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Absolute-form (RFC 9112 §3.2.2): the client is configured to use it.
    Forward,
    /// Origin-form: it stands in front of the origin.
    Gateway,
    /// There is none: the clients send requests to the origin.
    Direct,
}
