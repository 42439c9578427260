//! A mix with the sizes, validators and cache directives that responses have today. Ours: the
//! sources stand in the scenario file.

use super::polymix::LifeCycle;
use super::text::{As, Seconds, Share};
use crate::law::Law;
use serde::{Deserialize, Serialize};

/// `[workload]` with `kind = "web"`: independent references in an open loop, a warm-up and a
/// measured phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Web {
    /// Agents that share the rate; each has its own connections.
    pub agents: u32,
    /// Requests a second of all agents; their gaps are exponential.
    pub rate_per_s: f64,
    /// Servers.
    pub servers: u32,
    /// Targets that are requested by popularity.
    pub targets: u64,
    /// The n-th most popular is requested with probability in proportion to n to the minus this.
    pub zipf_exponent: f64,
    /// The share of requests for a target that is never requested again, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub one_hit_share: f64,
    /// How long requests are made before they are measured, in seconds.
    #[serde(rename = "warm_up", with = "As::<Seconds>")]
    pub warm_up_s: f64,
    /// How long they are measured, in seconds.
    #[serde(rename = "measured", with = "As::<Seconds>")]
    pub measured_s: f64,
    /// The share of requests with `If-Modified-Since`, as from a browser that has the response
    /// already, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub if_modified_share: f64,
    /// The share of requests with `Cache-Control: no-cache`, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub reload_share: f64,
    /// The share of `HEAD` requests, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub head_share: f64,
    /// The share of requests with a `Cookie`, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub cookie_share: f64,
    /// The share of targets whose responses have a `Set-Cookie`, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub set_cookie_share: f64,
    /// Bytes of a cookie.
    pub cookie_size: Law,
    /// Kinds of content; shares of targets, which add up to 1.
    pub contents: Vec<WebContent>,
    /// What `Cache-Control` and `Expires` say; shares of targets, which add up to 1.
    pub cache_control: Vec<CacheControl>,
    /// Seconds of the lifetimes that they give.
    pub lifetime: Law,
    /// When a target changes, whatever its lifetime.
    pub life_cycle: LifeCycle,
    /// Which targets have validators.
    pub validators: Validators,
    /// What `Vary` says; shares of targets, at most 1 together. The others have none.
    #[serde(default)]
    pub vary: Vec<Vary>,
}

/// A kind of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebContent {
    /// For reports.
    pub name: String,
    /// The share of targets, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub share: f64,
    /// `Content-Type`.
    pub media_type: String,
    /// What a path ends in, with the dot.
    pub extension: String,
    /// Bytes.
    pub size: Law,
}

/// One way to say how long a response may be stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheControl {
    /// The share of targets, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub share: f64,
    /// The directives beside `max-age`; none and no `max-age` is no field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directives: String,
    /// Whether `max-age` gives the target's lifetime.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub max_age: bool,
    /// Whether `Expires` gives it too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expires: bool,
}

/// Shares of targets with a validator, 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validators {
    /// With `Last-Modified`, and perhaps an `ETag`.
    #[serde(with = "As::<Share>")]
    pub last_modified: f64,
    /// With `ETag`, and perhaps a `Last-Modified`.
    #[serde(with = "As::<Share>")]
    pub etag: f64,
    /// With both.
    #[serde(with = "As::<Share>")]
    pub both: f64,
}

impl Validators {
    /// Whether there is a `Last-Modified`, and an `ETag`; `unit` is uniform in [0, 1).
    #[must_use]
    pub fn chosen(&self, unit: f64) -> (bool, bool) {
        // both | only Last-Modified | only ETag | neither
        let modified = unit < self.last_modified;
        let only_etag = unit < self.last_modified + self.etag - self.both;
        (modified, unit < self.both || (!modified && only_etag))
    }
}

/// A `Vary` and its share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vary {
    /// The share of targets, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub share: f64,
    /// The names of the nominated fields.
    pub value: String,
}
