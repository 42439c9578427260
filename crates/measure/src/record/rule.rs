//! A rule of a benchmark, and what a run made of it.

use alloc::string::String;
use serde::{Deserialize, Serialize};

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// What it requires: a short sentence.
    pub rule: String,
    /// The bound, with its unit.
    pub required: String,
    /// What the run had, with its unit.
    pub found: String,
    /// It is kept.
    pub holds: bool,
}
