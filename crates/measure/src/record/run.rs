//! A run as a whole.

use super::{Generator, LinkShaping, Phase, Rule, Second, Subject, UsageSecond, WrongResponse};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// One run against one proxy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`](super::FORMAT).
    pub format: String,
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The tool that measured, and its command line.
    pub tool: Tool,
    /// When the run began: RFC 3339, in UTC.
    pub started: String,
    /// How long it took, seconds; from the common start to the end of the last phase.
    pub seconds: f64,
    /// The machine of the clients (of the first participant, if there were several).
    pub host: Host,
    /// Versions of what took part, by its name: the proxy's, as it was given or as it says in
    /// `Server` or `Via`.
    pub versions: BTreeMap<String, String>,
    /// The seed of the request streams and of all content.
    pub seed: u64,
    /// 1 for a whole run, less for a shorter version of it.
    pub scale: f64,
    /// The scenario as it was run, whole: TOML.
    pub scenario: String,
    /// The name in the scenario.
    pub scenario_name: String,
    /// What was measured.
    pub subject: Subject,
    /// What was varied between runs of one sweep, by its name: `clients`.
    pub parameters: BTreeMap<String, f64>,
    /// What shaped the clients' links; `None` where they have none of their own, and in records
    /// from before this field.
    #[serde(default)]
    pub link_shaping: Option<LinkShaping>,
    /// Nothing speaks against the numbers.
    pub is_valid: bool,
    /// Why it is not valid: one sentence each; empty if it is.
    pub reasons: Vec<String>,
    /// What a reader should know and does not make the run invalid: one sentence each.
    pub warnings: Vec<String>,
    /// Rules of the benchmark that the scenario follows; a run can be valid (its numbers are true)
    /// and break some of them. Empty when the benchmark has no such rules.
    pub rules: Vec<Rule>,
    /// In the order of time.
    pub phases: Vec<Phase>,
    /// All phases together, those that are not measured included; its name is `total`.
    pub total: Phase,
    /// One entry a second, of all clients together.
    pub series: Vec<Second>,
    /// The proxy's process tree and its machine, one entry a second; empty when its process was not
    /// named.
    pub usage: Vec<UsageSecond>,
    /// How well the generator kept its own time.
    pub generator: Generator,
    /// The first wrong responses, in the order they were found; a limited number of them,
    /// [`ClientSide::wrong`](super::ClientSide::wrong) counts all.
    #[serde(alias = "lies")]
    pub wrong_responses: Vec<WrongResponse>,
    /// The file of single requests (Parquet), as it was named; `None` when none was written.
    pub samples: Option<String>,
}

impl Record {
    /// The phases whose numbers are results.
    pub fn measured(&self) -> impl Iterator<Item = &Phase> {
        self.phases.iter().filter(|phase| phase.is_measured)
    }

    /// All measured phases together, or the whole run if none is.
    #[must_use]
    pub fn measured_together(&self) -> Phase {
        let mut all: Option<Phase> = None;
        for phase in self.measured() {
            match &mut all {
                None => all = Some(phase.clone()),
                Some(sum) => sum.merge(phase),
            }
        }
        all.unwrap_or_else(|| self.total.clone())
    }

    /// The phase of that name.
    #[must_use]
    pub fn phase(&self, name: &str) -> Option<&Phase> {
        self.phases.iter().find(|phase| phase.name == name)
    }
}

/// The tool that measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `weir bench`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The commit of the working directory it was called in, if that is a repository; with `+` when
    /// it had changes.
    pub commit: Option<String>,
    /// The command line, word for word.
    pub command: String,
}

/// A machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// The processor as it calls itself.
    pub cpu: String,
    /// Logical processors.
    pub cores: u32,
    /// The kernel's name and release.
    pub kernel: String,
    /// Memory of the machine, bytes.
    pub memory_bytes: u64,
    /// Processes that wanted to run in the minute before the start, on average.
    pub load_average: f64,
}
