//! The plan of a run.

use std::net::SocketAddr;
use std::sync::Arc;
use weir_measure::record::Mode;
use weir_workload::Scenario;

/// What a run measures, and how.
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
    pub mode: Mode,
    /// It is configured to cache.
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

/// The default of [`RunPlan::errors_share_max`]. The cache-offs took a run with a tenth of it for a
/// bad one; the Wisconsin benchmark reports errors as a result, and a proxy that refuses
/// connections should still have a record that is true.
pub const ERRORS_SHARE_MAX: f64 = 0.01;
