//! A kind of trace that can be made.

use super::measurement::figure::Published;
use super::proxy_log::{Maker, Profile};
use super::site_log::{SiteMaker, SiteProfile};
use crate::Row;

/// A kind of synthetic trace: its name, its constants, and the model that makes rows of them.
#[derive(Clone, Debug)]
pub struct Recipe(Model);

#[derive(Clone, Debug)]
enum Model {
    Proxy(Box<Profile>),
    Site(Box<SiteProfile>),
}

/// A field that the constants of each model have.
macro_rules! of_each {
    ($recipe:expr, $field:ident) => {
        match &$recipe.0 {
            Model::Proxy(profile) => &profile.$field,
            Model::Site(profile) => &profile.$field,
        }
    };
}

impl Recipe {
    /// The longest trace, in requests: what 32 bits count.
    pub const REQUESTS_MAX: u64 = u32::MAX as u64;

    /// The one that comes with the program under this name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<Self> {
        let proxy = || Some(Model::Proxy(Box::new(Profile::built_in(name)?)));
        let site = || Some(Model::Site(Box::new(SiteProfile::built_in(name)?)));
        proxy().or_else(site).map(Self)
    }

    /// The names of those that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Profile::names().chain(SiteProfile::names())
    }

    /// What people call it.
    #[must_use]
    pub fn name(&self) -> &str {
        of_each!(self, name)
    }

    /// What it is, in a sentence or two.
    #[must_use]
    pub fn about(&self) -> &str {
        of_each!(self, about)
    }

    /// Where its numbers come from.
    #[must_use]
    pub fn sources(&self) -> &[String] {
        of_each!(self, sources)
    }

    /// How many requests a trace has by default.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        *of_each!(self, requests)
    }

    /// What is known of such traces, for the comparison.
    #[must_use]
    pub fn published(&self) -> &[Published] {
        of_each!(self, published)
    }

    /// The rows of a trace of so many requests, at most [`Recipe::REQUESTS_MAX`], in order of
    /// arrival: the same for the same length and seed, on every machine.
    #[must_use]
    pub fn rows(&self, requests: u64, seed: u64) -> Box<dyn Iterator<Item = Row> + Send> {
        let requests = requests.min(Self::REQUESTS_MAX);
        match &self.0 {
            Model::Proxy(profile) => Box::new(Maker::new(profile, requests, seed)),
            Model::Site(profile) => Box::new(SiteMaker::new(profile, requests, seed)),
        }
    }
}
