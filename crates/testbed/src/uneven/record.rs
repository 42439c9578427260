//! The record file: everything that was measured, with what is needed to measure it again. Tables
//! are made from it.

use super::abort::{Abort, Second};
use super::herd::Herd;
use super::join::Join;
use super::measured::Measured;
use super::memory::Memory;
use super::options::Options;
use super::path::LongPath;
use super::read_ahead::ReadAhead;
use crate::host::{self, Host};
use crate::proxy::contender::Contender;
use crate::proxy::template::Words;
use crate::record;
use crate::tables::Begun;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Raised when a field changes its meaning.
pub(crate) const SCHEMA: u32 = 1;

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
    /// Open files that each process may have.
    pub(crate) files_max: u64,
    /// In the order of the table.
    pub(crate) contenders: Vec<String>,
    /// Contenders and experiments that did not take part, with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
    pub(crate) aborts: Vec<Measured<Abort>>,
    pub(crate) seconds: Vec<Measured<Second>>,
    pub(crate) leads: Vec<Measured<ReadAhead>>,
    pub(crate) joins: Vec<Measured<Join>>,
    pub(crate) herds: Vec<Measured<Herd>>,
    pub(crate) memories: Vec<Measured<Memory>>,
    pub(crate) path: Option<LongPath>,
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
        words: &Words,
        present: &[&'static Contender],
        files_max: u64,
    ) -> Self {
        Self {
            schema: SCHEMA,
            command: record::command("uneven", arguments),
            seed: "none: content is a function of target and offset, nothing is drawn".to_owned(),
            commit: host::commit(),
            begun: host::time(),
            host: Host::here(),
            versions: host::versions(present, words),
            settings: options.clone(),
            files_max,
            contenders: present
                .iter()
                .map(|contender| contender.name.to_owned())
                .collect(),
            left_out: BTreeMap::new(),
            aborts: Vec::new(),
            seconds: Vec::new(),
            leads: Vec::new(),
            joins: Vec::new(),
            herds: Vec::new(),
            memories: Vec::new(),
            path: None,
        }
    }
}
