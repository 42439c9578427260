//! The record file: everything that was measured, with what is needed to measure it again. Tables
//! are made from it.

use super::options::Options;
use super::restart::Restart;
use super::schedule::{Fill, Hits};
use crate::host::{self, Host};
use crate::process::affinity::Cores;
use crate::proxy::contender::Contender;
use crate::proxy::template::Words;
use crate::record;
use serde::{Deserialize, Deserializer, Serialize};
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
    pub(crate) cores: Cores,
    pub(crate) versions: BTreeMap<String, String>,
    /// The seed is among them.
    pub(crate) settings: Options,
    /// Contenders that did not take part, with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
    /// In the order of the table.
    pub(crate) rows: Vec<Row>,
    /// What went wrong, each beginning with the contender's name.
    pub(crate) troubles: Vec<String>,
}

/// The figures of one proxy.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) contender: String,
    pub(crate) fill: Option<Fill>,
    /// Of each round.
    #[serde(deserialize_with = "rounds")]
    pub(crate) hits: Vec<Hits>,
    pub(crate) restart: Option<Restart>,
}

/// Before there were rounds, a record had the one or none.
fn rounds<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Hits>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Rounds {
        All(Vec<Hits>),
        One(Option<Hits>),
    }
    Rounds::deserialize(from).map(|rounds| match rounds {
        Rounds::All(all) => all,
        Rounds::One(one) => one.into_iter().collect(),
    })
}

impl Row {
    pub(crate) fn new(contender: &str) -> Self {
        Self {
            contender: contender.to_owned(),
            fill: None,
            hits: Vec::new(),
            restart: None,
        }
    }
}

impl Record {
    /// An empty record of this machine.
    pub(crate) fn begin(
        options: &Options,
        arguments: &[String],
        words: &Words,
        present: &[&'static Contender],
        cores: Cores,
    ) -> Self {
        Self {
            schema: SCHEMA,
            command: record::command("store-bench", arguments),
            commit: host::commit(),
            begun: host::time(),
            host: Host::here(),
            cores,
            versions: host::versions(present, words),
            settings: options.clone(),
            left_out: BTreeMap::new(),
            rows: Vec::new(),
            troubles: Vec::new(),
        }
    }
}
