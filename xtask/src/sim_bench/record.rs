//! The record file: everything that was measured, with what is needed to measure it again. Tables are made from it.

use super::options::Options;
use crate::bed::host::{self, Host};
use crate::bed::record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Raised when a field changes its meaning.
pub(crate) const SCHEMA: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) schema: u32,
    pub(crate) command: String,
    pub(crate) commit: String,
    pub(crate) begun: String,
    pub(crate) host: Host,
    /// The seed is among them.
    pub(crate) settings: Options,
    pub(crate) trace: Whole,
    pub(crate) capacity_bytes: u64,
    /// The version of libCacheSim's Python package; `None` where it was not installed.
    pub(crate) libcachesim: Option<String>,
    /// By policy.
    pub(crate) weir: BTreeMap<String, Vec<Measured>>,
    /// By policy; empty where it was not installed.
    pub(crate) others: BTreeMap<String, Vec<Measured>>,
}

/// The trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Whole {
    pub(crate) requests: u64,
    pub(crate) bytes: u64,
    pub(crate) keys: u64,
    pub(crate) footprint_bytes: u64,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) requests: u64,
    pub(crate) hits: u64,
    pub(crate) hit_bytes: u64,
    /// User and system time.
    pub(crate) cpu_us: u64,
}

impl Measured {
    #[expect(clippy::cast_precision_loss, reason = "printed with three digits")]
    pub(crate) fn millions_a_second(&self) -> f64 {
        self.requests as f64 / self.cpu_us.max(1) as f64
    }
}

impl Record {
    /// An empty record of this machine.
    pub(crate) fn begin(
        options: &Options,
        arguments: &[String],
        trace: &Whole,
        capacity_bytes: u64,
        libcachesim: Option<String>,
    ) -> Self {
        Self {
            schema: SCHEMA,
            command: record::command("sim-bench", arguments),
            commit: host::commit(),
            begun: host::time(),
            host: Host::here(),
            settings: options.clone(),
            trace: *trace,
            capacity_bytes,
            libcachesim,
            weir: BTreeMap::new(),
            others: BTreeMap::new(),
        }
    }

    pub(crate) fn add_ours(&mut self, policy: &str, run: Measured) {
        self.weir.entry(policy.to_owned()).or_default().push(run);
    }

    pub(crate) fn add_theirs(&mut self, policy: &str, run: Measured) {
        self.others.entry(policy.to_owned()).or_default().push(run);
    }
}
