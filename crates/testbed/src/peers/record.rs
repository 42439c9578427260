//! The record file: everything that was measured, raw, with what is needed to measure it again.
//! Tables are made from it.

use super::idle::Idle;
use super::options::Options;
use super::rounds::Programs;
use super::run::Run;
use super::wrk;
use crate::failure::Failure;
use crate::host::{self, Host};
use crate::process::affinity::Cores;
use crate::proxy::contender::Contender;
use crate::record;
use crate::tables::Begun;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Raised when a field changes its meaning.
const SCHEMA: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) schema: u32,
    pub(crate) command: String,
    pub(crate) seed: String,
    pub(crate) commit: String,
    pub(crate) begun: String,
    pub(crate) host: Host,
    pub(crate) versions: BTreeMap<String, String>,
    pub(crate) settings: Options,
    pub(crate) cores: Cores,
    pub(crate) wrk_connections: u32,
    /// Contenders that did not take part, with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
    pub(crate) runs: Vec<Run>,
    pub(crate) idle: Vec<Idle>,
}

impl Begun for Record {
    fn begun(&self) -> &str {
        &self.begun
    }
}

impl Record {
    /// An empty record of this machine.
    pub(crate) fn begin(
        options: &Options,
        arguments: &[String],
        programs: &Programs,
        present: &[&'static Contender],
    ) -> Result<Self, Failure> {
        let words = programs.words();
        let mut versions = host::versions(present, &words);
        versions.insert("wrk".to_owned(), host::version(&["wrk", "-v"], &words));
        versions.insert("origin".to_owned(), host::version(&["nginx", "-v"], &words));
        Ok(Self {
            schema: SCHEMA,
            command: record::command("peers", arguments),
            seed: "none: every request is the same, nothing is drawn".to_owned(),
            commit: host::commit(),
            begun: host::time(),
            host: Host::here(),
            versions,
            settings: options.clone(),
            cores: Cores::choose()?,
            wrk_connections: wrk::CONNECTIONS,
            left_out: BTreeMap::new(),
            runs: Vec::new(),
            idle: Vec::new(),
        })
    }

    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        record::read(file, SCHEMA, |record: &Self| record.schema)
    }

    pub(crate) fn write(&self, file: &Path) -> Result<(), Failure> {
        record::write(self, file)
    }

    /// Whether there is something in it and every check passed.
    pub(crate) fn is_sound(&self) -> bool {
        let troubles = self
            .runs
            .iter()
            .map(|run| &run.trouble)
            .chain(self.idle.iter().map(|idle| &idle.trouble));
        !self.runs.is_empty() && self.left_out.is_empty() && troubles.flatten().next().is_none()
    }
}
