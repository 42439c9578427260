//! An origin without a site: the target of a request describes its response, and the origin logs
//! every fetch.
//!
//! ```text
//! /weir/abort?size=20000000&rate=2000000     20 MB, 2 MB a second
//! /weir/herd?size=20000&delay_ms=200         the head after 200 ms
//! /a?size=10&store=no                        may not be stored
//! /a?size=10&length=no                       ends with its connection
//! /tally?/weir/                              what was fetched below a path, as JSON
//! ```

pub(super) mod fetches;

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_workload::{Content, Representation, Scenario, Target, UnixSeconds};

use super::worker::lock;
use super::{OriginHandle, OriginListen, OriginPlan};
use crate::failure::Failure;
use fetches::Fetches;

/// How such an origin sends, and what it needs to know of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct ByTarget {
    /// `SO_SNDBUF` of its connections; `None` leaves it to the kernel. What waits in the origin's
    /// own kernel was not taken by the peer yet.
    pub send_buffer_bytes: Option<usize>,
    /// Bytes of content in one write at most. Small beside the send buffer: a segment that fills a
    /// small buffer alone (loopback takes 64 KiB) is acknowledged 40 ms late.
    pub write_bytes_max: u64,
    /// Bytes written to a socket that its peer's kernel has not acknowledged (`SIOCOUTQ`).
    pub unacknowledged_bytes: fn(RawFd) -> Option<u64>,
}

/// What begins the target of a question about fetches; a prefix of paths follows.
pub(super) const TALLY: &str = "/tally?";

/// A larger size is refused: it would be a mistake in a target.
const SIZE_BYTES_MAX: u64 = 1 << 33;

/// All content is this old: long enough that no cache finds it too new to have a strong validator
/// (RFC 9110 §8.8.2.2).
const LAST_MODIFIED: UnixSeconds = UnixSeconds(1_600_000_000);

const MAX_AGE_S: u64 = 3600;

/// As many as fit under a limit of 20 000 open files, a common one.
const CONNECTIONS_MAX: u32 = 19_500;

/// Only the origin's part of it is used.
const SCENARIO: &str = r#"
format = 1
name = "by-target"
about = "responses that their targets describe"
sources = []
workload = { kind = "hits", targets = 1, size = "constant(1B)", connections = 1, duration = "1s" }
clients = { http = "1.1", keep_alive = true, connections_max = 1, queue_max = 1, response_timeout = "1s", addresses = "one" }

[origin]
latency = "constant(0s)"
http = "1.1"
keep_alive = true
idle_timeout = "24h"
conditional = true
addresses = "one"
"#;

/// Starts one on an address; 0.0.0.0 is all of the machine's.
///
/// # Errors
/// The address cannot be listened on, or a thread cannot be started.
pub fn start_by_target(address: SocketAddr, options: ByTarget) -> Result<OriginHandle, Failure> {
    let scenario = Scenario::parse("by-target.toml", SCENARIO)
        .map_err(|error| Failure::usage("cannot serve as origin", error))?;
    let plan = OriginPlan {
        scenario: Arc::new(scenario),
        seed: 0,
        listen: OriginListen::Gateway(address),
        threads: 1,
        shares: 1,
        connections_max: CONNECTIONS_MAX,
    };
    super::start_as(&plan, Some(FetchLog::new(options)))
}

/// A response as its target describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseSpec {
    /// Without the query.
    pub path: String,
    /// Bytes of content.
    pub size_bytes: u64,
    /// Of content, for one connection; `None` as fast as it goes.
    pub rate_bytes_per_s: Option<u64>,
    /// From the request until the first byte of the head.
    pub delay: Duration,
    /// May a shared cache store it?
    pub is_storable: bool,
    /// Without one the end of the connection is that of the content.
    pub has_length: bool,
}

impl ResponseSpec {
    /// A storable response of this size, as fast as it goes.
    #[must_use]
    pub fn new(path: &str, size_bytes: u64) -> Self {
        Self {
            path: path.to_owned(),
            size_bytes,
            rate_bytes_per_s: None,
            delay: Duration::ZERO,
            is_storable: true,
            has_length: true,
        }
    }

    /// Reads a target; `None` if it describes no response.
    #[must_use]
    pub fn parse(target: &str) -> Option<Self> {
        let (path, query) = target.split_once('?')?;
        let (size, rest) = query.split_once('&').unwrap_or((query, ""));
        let size = size.strip_prefix("size=")?.parse().ok();
        let mut spec = Self::new(path, size.filter(|&size| size <= SIZE_BYTES_MAX)?);
        for pair in rest.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=')? {
                ("rate", rate) => {
                    spec.rate_bytes_per_s = Some(rate.parse().ok().filter(|&rate| rate > 0)?);
                }
                ("delay_ms", delay) => spec.delay = Duration::from_millis(delay.parse().ok()?),
                ("store", "no") => spec.is_storable = false,
                ("length", "no") => spec.has_length = false,
                _ => return None,
            }
        }
        Some(spec)
    }

    pub(super) fn described(&self) -> Representation<'static> {
        Representation {
            length: self.size_bytes,
            content_type: "application/octet-stream",
            modified: Some(LAST_MODIFIED),
            cache_control: Some(if self.is_storable {
                "public"
            } else {
                "no-store"
            }),
            max_age_s: self.is_storable.then_some(MAX_AGE_S),
            etag: true,
            storable: self.is_storable,
            freshness_lifetime_s: if self.is_storable { MAX_AGE_S } else { 0 },
            ..Representation::default()
        }
    }
}

/// The target, path and query, as in a request line.
impl fmt::Display for ResponseSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}?size={}", self.path, self.size_bytes)?;
        if let Some(rate) = self.rate_bytes_per_s {
            write!(f, "&rate={rate}")?;
        }
        if !self.delay.is_zero() {
            write!(f, "&delay_ms={}", self.delay.as_millis())?;
        }
        f.write_str(if self.is_storable { "" } else { "&store=no" })?;
        f.write_str(if self.has_length { "" } else { "&length=no" })
    }
}

/// The content of a target: every target has its own.
#[must_use]
pub fn content_of(target: &str) -> Content {
    let nothing = Target {
        server: 0,
        number: 0,
    };
    Content::of(hash(target), nothing, 0)
}

/// FNV-1a: short, and the same in every run.
pub(super) fn hash(target: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    target.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The log of all fetches, and its options.
#[derive(Debug)]
pub(super) struct FetchLog {
    pub(super) options: ByTarget,
    fetches: Mutex<Fetches>,
}

impl FetchLog {
    fn new(options: ByTarget) -> Self {
        Self {
            options,
            fetches: Mutex::default(),
        }
    }

    /// Reads or changes the log.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut Fetches) -> T) -> T {
        change(&mut lock(&self.fetches))
    }

    /// What was fetched below a prefix of paths until now, as JSON.
    pub(super) fn tally(&self, prefix: &str) -> String {
        let tally = self.with(|fetches| fetches.tally(prefix, self.options.unacknowledged_bytes));
        serde_json::to_string(&tally).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_carries_size_rate_delay_storability_and_length() {
        let plain = ResponseSpec::new("/weir/a", 20);
        assert_eq!(plain.to_string(), "/weir/a?size=20");
        let spec = ResponseSpec {
            rate_bytes_per_s: Some(5),
            delay: Duration::from_millis(300),
            is_storable: false,
            has_length: false,
            ..plain.clone()
        };
        for spec in [plain, spec] {
            assert_eq!(ResponseSpec::parse(&spec.to_string()), Some(spec));
        }
    }

    #[test]
    fn malformed_target_is_refused() {
        for target in [
            "/a",
            "/a?rate=1",
            "/a?size=x",
            "/a?size=1&rate=0",
            "/a?size=1&delay_ms=soon",
            "/a?size=1&store=yes",
            "/a?size=8589934593",
        ] {
            assert_eq!(ResponseSpec::parse(target), None, "{target}");
        }
    }

    #[test]
    fn content_of_another_target_differs() {
        let mut part = [0; 1000];
        content_of("/a?size=1").fill(8000, &mut part);
        assert_eq!(content_of("/a?size=1").differs_at(8000, &part), None);
        assert!(content_of("/b?size=1").differs_at(8000, &part).is_some());
    }
}
