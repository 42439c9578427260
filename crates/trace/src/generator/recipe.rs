//! A kind of trace that can be made.

use super::measurement::figure::Published;
use super::proxy_log::{Maker, Profile};
use crate::Row;

/// A kind of synthetic trace: its name, its constants, and the model that makes rows of them.
#[derive(Clone, Debug)]
pub struct Recipe(Profile);

impl Recipe {
    /// The longest trace, in requests: what 32 bits count.
    pub const REQUESTS_MAX: u64 = u32::MAX as u64;

    /// The one that comes with the program under this name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        Profile::built_in(name).map(Self)
    }

    /// The names of those that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Profile::names()
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it is, in a sentence or two.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.0.about
    }

    /// Where its numbers come from.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        &self.0.sources
    }

    /// How many requests a trace has by default.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.0.requests
    }

    /// What is known of such traces, for the comparison.
    #[must_use]
    pub fn published(&self) -> &[Published] {
        &self.0.published
    }

    /// The rows of a trace of so many requests, at most [`Recipe::REQUESTS_MAX`], in order of
    /// arrival: the same for the same length and seed, on every machine.
    #[must_use]
    pub fn rows(&self, requests: u64, seed: u64) -> Box<dyn Iterator<Item = Row> + Send> {
        let requests = requests.min(Self::REQUESTS_MAX);
        Box::new(Maker::new(&self.0, requests, seed))
    }
}
