//! The record file: everything that was measured, with what is needed to measure it again. Tables
//! are made from it.

use super::files::{Made, Streamed};
use super::options::Options;
use super::packets::{Memory, Packets};
use crate::failure::Failure;
use crate::host::{self, Host};
use crate::record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Raised when a field changes its meaning.
pub(crate) const SCHEMA: u32 = 2;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) schema: u32,
    pub(crate) command: String,
    pub(crate) commit: String,
    pub(crate) begun: String,
    pub(crate) host: Host,
    /// The seed is among them.
    pub(crate) settings: Options,
    /// Hits alone, beside the other.
    pub(crate) hits: Option<Hits>,
    /// Packets and connections on a trace of 1997: each scenario of each round.
    pub(crate) packets: Vec<Packets>,
    /// The proxy alone, for more and more requests of the same keys.
    pub(crate) memory: Vec<Memory>,
    /// A trace made, read and run.
    pub(crate) made: Option<Made>,
    /// A long trace in a file.
    pub(crate) streamed: Vec<Streamed>,
}

/// Hits alone.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Hits {
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
    pub(crate) fn begin(options: &Options, arguments: &[String]) -> Self {
        Self {
            schema: SCHEMA,
            command: record::command("sim-bench", arguments),
            commit: host::commit(),
            begun: host::time(),
            host: Host::here(),
            settings: options.clone(),
            hits: None,
            packets: Vec::new(),
            memory: Vec::new(),
            made: None,
            streamed: Vec::new(),
        }
    }

    /// The record in `file`, if parts of it were measured before, or an empty one.
    pub(crate) fn resume(
        file: &Path,
        options: &Options,
        arguments: &[String],
    ) -> Result<Self, Failure> {
        let own = Self::begin(options, arguments);
        if !file.exists() {
            return Ok(own);
        }
        let former: Self = record::read(file, SCHEMA, |it: &Self| it.schema)?;
        // the record itself is a change on top of the commit
        let bare = |commit: &str| commit.split(' ').next().map(str::to_owned);
        let is_same = bare(&former.commit) == bare(&own.commit) && former.host.cpu == own.host.cpu;
        if !is_same || !former.settings.measures_as(options) {
            return Err(Failure::Usage(format!(
                "`{}` is of another commit, machine or size (commit {}): name another file with --out, or remove it",
                file.display(),
                former.commit
            )));
        }
        Ok(Self {
            command: format!("{}; {}", former.command, own.command),
            ..former
        })
    }
}

impl Hits {
    pub(crate) fn add_ours(&mut self, policy: &str, run: Measured) {
        self.weir.entry(policy.to_owned()).or_default().push(run);
    }

    pub(crate) fn add_theirs(&mut self, policy: &str, run: Measured) {
        self.others.entry(policy.to_owned()).or_default().push(run);
    }
}
