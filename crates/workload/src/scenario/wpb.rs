//! The Wisconsin Proxy Benchmark 1.0 (Almeida and Cao, "Measuring Proxy Performance with the
//! Wisconsin Proxy Benchmark", Computer Networks and ISDN Systems 30, 1998), and what its authors
//! named as missing and planned for 2.0.

use super::text::{As, Seconds, Share, is_zero};
use crate::law::Law;
use serde::{Deserialize, Serialize};

/// `[workload]` with `kind = "wpb"`: clients in a closed loop, two phases of the same number of
/// requests, a first without and a second with repetition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wpb {
    /// Client processes, each with one request outstanding and no time to think.
    pub clients: u32,
    /// Requests of a client in each of the two phases.
    pub requests_per_client: u32,
    /// Server processes, a port each.
    pub servers: u32,
    /// The probability that a request of the second phase repeats one of the client's own, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub inherent_hit_ratio: f64,
    /// Sizes, in bytes, of the files; a file keeps its size.
    pub sizes: Law,
    /// How long after it was sent a response expires, in seconds. Every one is fresh until then.
    #[serde(rename = "expires_after", with = "As::<Seconds>")]
    pub expires_after_s: f64,
    /// The probability that a new request goes to the server of the client's last one, 0 to 1; else
    /// the server is drawn uniformly. 0 as in 1.0.
    #[serde(default, with = "As::<Share>", skip_serializing_if = "is_zero")]
    pub spatial_locality: f64,
    /// Repeats are drawn by popularity, Zipf with this exponent over the client's files in order of
    /// first request, and not, as in 1.0, by distance, where the request made t requests ago is
    /// repeated with probability 1/t.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub popularity: Option<f64>,
    /// The share of repeats with `If-Modified-Since`, 0 to 1. None as in 1.0.
    #[serde(default, with = "As::<Share>", skip_serializing_if = "is_zero")]
    pub if_modified_share: f64,
    /// Bytes of a path; shorter ones are filled up to it with directories. As short as
    /// `/dummy17.html` in 1.0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<Law>,
}
