//! How the servers of a scenario behave, whatever is requested.

use super::clients::{Addresses, Http};
use super::link::Link;
use super::text::{As, Bytes, Seconds, Share, as_text, is_zero};
use crate::law::{Dimension, Law, Quantity};
use crate::number::whole;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// `[origin]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// Seconds from a request to the first byte of its response; less than none is none.
    pub latency: Law,
    /// The version of HTTP it speaks.
    pub http: Http,
    /// Whether connections persist.
    pub keep_alive: bool,
    /// Requests that a connection is good for; no limit if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_connection: Option<Law>,
    /// After how many seconds without a request a connection is closed.
    #[serde(rename = "idle_timeout", with = "As::<Seconds>")]
    pub idle_timeout_s: f64,
    /// Whether it answers conditional requests with 304 where that is right.
    pub conditional: bool,
    /// The share of responses that close at a uniformly random byte of their content, 0 to 1.
    #[serde(default, with = "As::<Share>", skip_serializing_if = "is_zero")]
    pub aborted_share: f64,
    /// Bytes a second at which content is sent on each connection; as fast as it is taken, if not
    /// given.
    #[serde(
        rename = "rate",
        default,
        with = "As::<Bytes>",
        skip_serializing_if = "Option::is_none"
    )]
    pub rate_bytes_per_s: Option<u64>,
    /// Whether its servers share one address, a port each, or have an address each, one port for
    /// all.
    pub addresses: Addresses,
    /// The link of each server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
    /// What goes wrong, on purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// A fault of a share of the responses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// What happens.
    pub what: FaultKind,
    /// The share of the responses meant, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub share: f64,
    /// Which responses are meant.
    #[serde(default, skip_serializing_if = "FaultTargets::is_all")]
    pub targets: FaultTargets,
    /// From how many seconds after the start on.
    #[serde(
        rename = "from",
        default,
        with = "As::<Seconds>",
        skip_serializing_if = "is_zero"
    )]
    pub from_s: f64,
    /// Until how many seconds after the start; until the end, if not given.
    #[serde(
        rename = "until",
        default,
        with = "As::<Seconds>",
        skip_serializing_if = "Option::is_none"
    )]
    pub until_s: Option<f64>,
    /// Where in the content it happens.
    #[serde(default, skip_serializing_if = "BodyPoint::is_start")]
    pub at: BodyPoint,
}

/// What goes wrong with a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// `cut`: the connection is closed in order at the point.
    Cut,
    /// `reset`: the connection is reset at the point.
    Reset,
    /// `hang`: nothing more comes after the point, and the connection stays open.
    Hang,
    /// `slow(1KB)`: after the point so many bytes come a second.
    Slow {
        /// At least 1.
        bytes_per_s: u64,
    },
    /// `wrong-length`: `Content-Length` says as much as the point, and all the content is sent.
    WrongLength,
    /// `status(500)`: this status, without the content that was requested.
    Status(u16),
}

/// Which targets a fault is for: `"all"`, `"servers 0-3"`, `"numbers 0-99"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultTargets {
    /// All.
    #[default]
    All,
    /// Those of the servers from the first to the second, both included.
    Servers(u32, u32),
    /// Those with the numbers from the first to the second, both included, on every server.
    Numbers(u64, u64),
}

impl FaultTargets {
    /// Whether the target is one of them.
    #[must_use]
    pub fn includes(self, target: crate::Target) -> bool {
        match self {
            Self::All => true,
            Self::Servers(first, last) => (first..=last).contains(&target.server),
            Self::Numbers(first, last) => (first..=last).contains(&target.number),
        }
    }

    fn is_all(&self) -> bool {
        *self == Self::All
    }
}

/// A point of some content: `"50%"` or `"10KB"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BodyPoint {
    /// A share of the content, 0 to 1.
    Share(f64),
    /// So many bytes from its begin; its end, where it is shorter.
    Bytes(u64),
}

impl Default for BodyPoint {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

impl BodyPoint {
    /// The offset in content of this length.
    #[must_use]
    pub fn of(self, length: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.min(length),
            Self::Share(share) => whole::<u64>(length as f64 * share).min(length),
        }
    }

    fn is_start(&self) -> bool {
        *self == Self::default()
    }
}

impl FromStr for FaultKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, inside) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((name, rest)) => (name.trim(), rest.strip_suffix(')').map(str::trim)),
        };
        match (name, inside) {
            ("cut", None) => Ok(Self::Cut),
            ("reset", None) => Ok(Self::Reset),
            ("hang", None) => Ok(Self::Hang),
            ("wrong-length", None) => Ok(Self::WrongLength),
            ("slow", Some(rate)) => slow(rate),
            ("status", Some(digits)) => match digits.parse() {
                Ok(status @ 200..=599) => Ok(Self::Status(status)),
                _ => Err(format!("`{digits}` is not a status from 200 to 599")),
            },
            _ => Err(format!(
                "unknown fault `{text}`; did you mean one of {FAULTS}?"
            )),
        }
    }
}

const FAULTS: &str = "cut, reset, hang, slow(1KB), wrong-length, status(500)";

fn slow(rate: &str) -> Result<FaultKind, String> {
    let bytes_per_s = super::text::read::<Bytes>(rate.trim_end_matches("/s"))?;
    if bytes_per_s < 1.0 {
        return Err("`slow` has to send at least a byte a second; did you mean `hang`?".to_owned());
    }
    let bytes_per_s = super::text::Number::from_base(bytes_per_s);
    Ok(FaultKind::Slow { bytes_per_s })
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut => f.write_str("cut"),
            Self::Reset => f.write_str("reset"),
            Self::Hang => f.write_str("hang"),
            Self::Slow { bytes_per_s } => write!(f, "slow({})", bytes(*bytes_per_s)),
            Self::WrongLength => f.write_str("wrong-length"),
            Self::Status(status) => write!(f, "status({status})"),
        }
    }
}

impl FromStr for FaultTargets {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || {
            format!(
                "`{text}` is no choice of targets; did you mean `all`, `servers 0-3` or `numbers 0-99`?"
            )
        };
        if text.trim() == "all" {
            return Ok(Self::All);
        }
        let (what, range) = text.trim().split_once(' ').ok_or_else(problem)?;
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
            (Ok(first), Ok(last)) if first <= last => (first, last),
            _ => return Err(problem()),
        };
        match (what, u32::try_from(first), u32::try_from(last)) {
            ("numbers", _, _) => Ok(Self::Numbers(first, last)),
            ("servers", Ok(first), Ok(last)) => Ok(Self::Servers(first, last)),
            _ => Err(problem()),
        }
    }
}

impl fmt::Display for FaultTargets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Servers(first, last) => write!(f, "servers {first}-{last}"),
            Self::Numbers(first, last) => write!(f, "numbers {first}-{last}"),
        }
    }
}

impl FromStr for BodyPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().ends_with('%') {
            return super::text::read::<Share>(text).map(Self::Share);
        }
        super::text::read::<Bytes>(text)
            .map(|bytes| Self::Bytes(super::text::Number::from_base(bytes)))
    }
}

impl fmt::Display for BodyPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(length) => bytes(*length).fmt(f),
            // a share of nothing keeps its sign, so that it is not read as bytes
            Self::Share(0.0) => f.write_str("0%"),
            Self::Share(value) => Quantity {
                value: *value,
                dimension: Dimension::Share,
            }
            .fmt(f),
        }
    }
}

fn bytes(length: u64) -> Quantity {
    let value = length as f64;
    Quantity {
        value,
        dimension: Dimension::Bytes,
    }
}

as_text!(FaultKind, FaultTargets, BodyPoint);
