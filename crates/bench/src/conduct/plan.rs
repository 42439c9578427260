//! What a run is to be.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;
use weir_measure::record::Mode;
use weir_workload::Scenario;

/// How the proxy is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Approach {
    /// In absolute-form.
    Forward,
    /// In origin-form, the server's number as the first segment of the path.
    Gateway,
    /// Not at all: clients ask the origin.
    Direct,
}

impl From<Approach> for Mode {
    fn from(approach: Approach) -> Self {
        match approach {
            Approach::Forward => Self::Forward,
            Approach::Gateway => Self::Gateway,
            Approach::Direct => Self::Direct,
        }
    }
}

/// What a run is to be, whoever takes part.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// As it is run: scaled, with all its keys set.
    pub scenario: Arc<Scenario>,
    /// Of request streams and content.
    pub seed: u64,
    /// What reports call the proxy.
    pub label: String,
    /// Its address; `None` for a direct run.
    pub proxy: Option<SocketAddr>,
    /// How it is spoken to.
    pub approach: Approach,
    /// It was told to keep what it fetches.
    pub is_caching: bool,
    /// The size of its cache, if the operator knows: a rule of WPB is about it.
    pub cache_bytes: Option<u64>,
    /// Its process, if it is on the machine of the master.
    pub proxy_pid: Option<u32>,
    /// Its version, as the operator calls it.
    pub proxy_version: Option<String>,
    /// More errors than this share of the requests make a run invalid, 0 to 1. Those that the
    /// scenario causes do not count.
    pub errors_share_max: f64,
    /// The command line, for the record.
    pub command: String,
}

/// [`RunPlan::errors_share_max`] unless told otherwise. The cache-offs took a run with a tenth of
/// it for a bad one; the Wisconsin benchmark reports errors as a result, and a proxy that refuses
/// connections should still have a record that is true.
pub const ERRORS_SHARE_MAX: f64 = 0.01;
