//! What an instance is started with.

use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::shared_data::SharedData;
use std::sync::Arc;

/// What an instance is started with: configurations, limits, and what it shares with the other
/// instances of its module.
#[derive(Clone, Debug, Default)]
pub struct InstanceSettings {
    /// The property `plugin_name`.
    pub plugin_name: String,
    /// The property `plugin_root_id`.
    pub root_id: String,
    /// The property `plugin_vm_id`.
    pub vm_id: String,
    /// What `proxy_on_vm_start` can read.
    pub vm_configuration: Arc<[u8]>,
    /// What `proxy_on_configure` can read.
    pub plugin_configuration: Arc<[u8]>,
    /// Arguments of WASI. The specification has none.
    pub arguments: Vec<String>,
    /// Environment variables of WASI. Those of the host's process are never visible.
    pub environment: Vec<(String, String)>,
    /// What it may use.
    pub limits: Limits,
    /// Shared keys and values.
    pub shared_data: SharedData,
    /// Shared metrics.
    pub metrics: Metrics,
}
