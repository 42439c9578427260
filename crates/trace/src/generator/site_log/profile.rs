//! What the log of a site is like: a file of constants, each with its source.

use crate::generator::measurement::figure::Published;
use serde::Deserialize;

/// The constants of a kind of log. Those that come with the program are known by
/// [`SiteProfile::built_in`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SiteProfile {
    /// What people call it.
    pub(crate) name: String,
    /// What it is, in a sentence or two.
    pub(crate) about: String,
    /// Where its numbers come from.
    pub(crate) sources: Vec<String>,
    /// How many requests a trace has by default.
    pub(crate) requests: u64,
    pub(super) time: Time,
    pub(super) targets: Targets,
    pub(super) pages: PageLaw,
    pub(super) visits: VisitLaw,
    pub(super) sizes: SizeLaw,
    pub(super) connections: ConnectionLaw,
    /// What is known of such logs, for the comparison.
    pub(crate) published: Vec<Published>,
}

/// When.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Time {
    /// Of the beginning, seconds since 1970.
    pub(super) begins_s: i64,
    /// Connections that begin in a second, on average.
    pub(super) connections_per_s: f64,
}

/// All targets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Targets {
    /// How many there are: pages, their own images, and shared images.
    pub(super) count: u32,
    /// The sum of their sizes.
    pub(super) bytes: u64,
}

/// What a page is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageLaw {
    /// Images of one page alone, the mean of a geometric law.
    pub(super) own_images: f64,
    /// Images of many pages.
    pub(super) shared_images: u32,
    /// Those of a page, the mean of a Poisson law.
    pub(super) shared_a_page: f64,
}

/// How often pages are visited.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VisitLaw {
    /// Page `n` in proportion to `n + offset` to the minus this.
    pub(super) exponent: f64,
    pub(super) offset: f64,
    /// The share of pages that are visited once, the last ones.
    pub(super) once: f64,
}

/// How large targets are.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SizeLaw {
    /// The standard deviation of the logarithm.
    pub(super) sigma: f64,
    /// The targets of page `n` of `N` in proportion to `n / N` to this power.
    pub(super) rank_exponent: f64,
    /// The smallest size, bytes.
    pub(super) bytes_min: u64,
}

/// How clients use connections. Times are uniform between two bounds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ConnectionLaw {
    /// Pages of a connection, the mean of a geometric law from 1.
    pub(super) pages: f64,
    /// Clients that may connect.
    pub(super) clients: u32,
    /// From the last request of a page to the next page of the connection, seconds.
    pub(super) next_page_s: [f64; 2],
    /// From a page to each of its images, seconds.
    pub(super) image_s: [f64; 2],
    /// From the last request of a connection to the client's next connection at least, seconds.
    pub(super) next_connection_min_s: f64,
}

impl SiteProfile {
    /// The one that comes with the program under this name.
    pub(crate) fn built_in(name: &str) -> Option<Self> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Some(toml::from_str(text).expect("a test reads every profile that is built in"))
    }

    /// The names of those that come with the program.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }
}

const BUILT_IN: [(&str, &str); 1] = [("rice-1999", include_str!("../profiles/rice-1999.toml"))];
