//! A scenario: workload, origin and clients, in one file that a person can read, change and cite.

mod built_in;
mod check;
mod clients;
mod error;
mod file;
mod hits;
mod link;
mod origin;
mod polymix;
mod scale;
mod set;
mod text;
mod web;
mod wpb;

pub use clients::{Addresses, Clients, Http};
pub use error::ScenarioError;
pub use hits::Hits;
pub use link::{LINK_PRESETS, Link};
pub use origin::{BodyPoint, Fault, FaultKind, FaultTargets, Origin};
pub use polymix::{ContentType, LifeCycle, Load, PolyMix, PolyPhase, RampBy};
pub use web::{CacheControl, Validators, Vary, Web, WebContent};
pub use wpb::Wpb;

use serde::Serialize;

/// A checked scenario: its values are as the keys' comments say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// The version of the file format: [`Scenario::FORMAT`].
    pub format: u32,
    /// What people call it.
    pub name: String,
    /// What it is for, in a sentence or two.
    pub about: String,
    /// Where its numbers come from.
    pub sources: Vec<String>,
    /// How much shorter it is than the scenario it was made from: 1, or the product of the factors
    /// of [`Scenario::scaled`].
    #[serde(skip_serializing_if = "is_unscaled")]
    pub scale: f64,
    /// The workload.
    pub workload: Workload,
    /// The servers.
    pub origin: Origin,
    /// The clients.
    pub clients: Clients,
}

/// `[workload]`: its `kind` says which keys it has.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Workload {
    /// `kind = "wpb"`.
    Wpb(Wpb),
    /// `kind = "polymix"`.
    PolyMix(PolyMix),
    /// `kind = "web"`.
    Web(Web),
    /// `kind = "hits"`.
    Hits(Hits),
}

fn is_unscaled(scale: &f64) -> bool {
    *scale == 1.0
}

impl Scenario {
    /// The version of the file format that is read and written here.
    pub const FORMAT: u32 = 1;

    /// Reads a scenario. `file` is what messages call the text.
    ///
    /// # Errors
    ///
    /// The text is no TOML; a key is unknown, missing or has a value that is none of its kind; or
    /// values make no sense together.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScenarioError> {
        file::read(file, text)
    }

    /// The text of a scenario that comes with the program, with its comments.
    #[must_use]
    pub fn built_in_text(name: &str) -> Option<&'static str> {
        built_in::text(name)
    }

    /// A scenario that comes with the program.
    ///
    /// # Errors
    ///
    /// There is none of this name; the hint names those that are, or the nearest.
    pub fn built_in(name: &str) -> Result<Self, ScenarioError> {
        built_in::scenario(name)
    }

    /// The names of the scenarios that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        built_in::names()
    }

    /// Changes one key: `clients.keep_alive=true`, `origin.latency=constant(0.1s)`,
    /// `workload.contents[0].share=60%`. A text needs no quotes. A key that is not stated may be
    /// given if the scenario's kind knows it, and `none` takes an optional one away.
    ///
    /// # Errors
    ///
    /// Those of [`Scenario::parse`], and an assignment that is none. The scenario stays as it was.
    pub fn set(&mut self, assignment: &str) -> Result<(), ScenarioError> {
        self.set_all([assignment])
    }

    /// Changes several keys in order, and looks only then whether the values make sense together.
    ///
    /// # Errors
    ///
    /// Those of [`Scenario::set`].
    pub fn set_all<'a>(
        &mut self,
        assignments: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), ScenarioError> {
        *self = set::with(self, assignments)?;
        Ok(())
    }

    /// The scenario in so much of its time, with its shape kept; `scale` says so in the result.
    ///
    /// * wpb: so many of the requests. Clients, servers and their latency stay, and so does the
    ///   latency that misses have. (Benchmarking rules require ten minutes and four times the
    ///   cache; a scaled run breaks them, and is not a WPB result.)
    /// * polymix: so much of every duration, of the working set's time, of the cache that the fill
    ///   is measured by, and of the life cycles, so that as much has changed when the same point of
    ///   the schedule is reached. Rates, robots, latency and links stay. (The cache under test has
    ///   to be as much smaller, by its own configuration.)
    /// * web: so much of warm-up, measured time, popular targets and life cycles. Rates stay, so
    ///   hit ratios do nearly.
    /// * hits: so much of the duration.
    ///
    /// Nothing becomes shorter than a second or fewer than one. `factor` is more than 0; larger
    /// than 1 makes it longer.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        scale::scaled(self, factor)
    }

    /// The text that [`Scenario::parse`] reads as this scenario: every key that is not at its
    /// default, in one order, without comments.
    #[must_use]
    pub fn to_toml(&self) -> String {
        file::write(self)
    }

    /// Agents: clients, robots or connections.
    #[must_use]
    pub fn agents(&self) -> u32 {
        match &self.workload {
            Workload::Wpb(wpb) => wpb.clients,
            Workload::PolyMix(polymix) => polymix.robots(),
            Workload::Web(web) => web.agents,
            Workload::Hits(hits) => hits.connections,
        }
    }
}
