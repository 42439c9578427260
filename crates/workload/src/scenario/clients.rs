//! How the clients of a scenario behave, whatever they request.

use super::link::Link;
use super::text::{As, Seconds, Share, is_zero};
use crate::law::Law;
use serde::{Deserialize, Serialize};

/// `[clients]`. An agent is one client process of the Wisconsin benchmark, one robot of Polygraph,
/// one connection of `hits`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// The version of HTTP they speak.
    pub http: Http,
    /// Whether connections persist.
    pub keep_alive: bool,
    /// Requests that a connection is used for; no limit if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_connection: Option<Law>,
    /// Open connections an agent, at most.
    pub connections_max: u32,
    /// Requests that wait for a connection of their agent, at most. More make the run invalid: the
    /// generator is what is measured then.
    pub queue_max: u32,
    /// The share of requests given up at a uniformly random byte of the content, 0 to 1.
    #[serde(default, with = "As::<Share>", skip_serializing_if = "is_zero")]
    pub aborted_share: f64,
    /// After how many seconds without a byte a response is an error.
    #[serde(rename = "response_timeout", with = "As::<Seconds>")]
    pub response_timeout_s: f64,
    /// Whether agents share one address or have one each.
    pub addresses: Addresses,
    /// Agents that share an address where they do not all share one. At least 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub agents_per_address: u32,
    /// The link of each agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Http {
    /// HTTP/1.0; a connection that persists does so by `Connection: keep-alive`.
    #[serde(rename = "1.0")]
    Http10,
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    Http11,
}

/// How participants differ by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Addresses {
    /// One for all.
    One,
    /// Their own.
    Each,
}

fn one() -> u32 {
    1
}

fn is_one(value: &u32) -> bool {
    *value == 1
}
