//! The proxy's side of a module: what it may ask for beside the messages that pass it.

use crate::fields::Fields;
use crate::pending::Pending;
use crate::stored::{NoStore, StoredResponses};
use crate::whole::{ContentMemory, UnchargedMemory};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// The longest that a request of a module's own may take.
pub const FETCH_TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Tasks of modules on one worker at one time.
pub const TASKS_MAX: usize = 1024;

/// Most bytes of content of a module's own request and of the response to it.
pub const FETCH_CONTENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The proxy, as a module on one worker sees it. A worker is one thread; what comes from its host
/// stays there.
pub trait Host {
    /// The number of the worker, from 0. What is to be done once is done on worker 0.
    fn worker(&self) -> usize;

    /// Milliseconds since 1970-01-01 00:00 UTC, by the proxy's clock.
    fn wall_ms(&self) -> u64;

    /// Writes a line to the proxy's own log, with the name of the module before it. The proxy
    /// limits how many are written.
    fn log(&self, level: LogLevel, line: &str);

    /// Sends a request of the module's own. It passes the destination rules as a request of a
    /// client does, no module, and no cache. Ready with the whole response.
    fn fetch(&self, request: OwnRequest) -> Pending<Result<OwnResponse, FetchError>>;

    /// The stored responses. Where there is no store each call fails.
    fn stored(&self) -> &dyn StoredResponses {
        &NoStore
    }

    /// Runs a task of the module's own on this worker, beside the requests. A task should end when
    /// its module is gone. Whether it runs: at most [`TASKS_MAX`] do on a worker. A panic in a
    /// task is a failure of the module.
    fn spawn(&self, task: Pending<()>) -> bool {
        drop(task);
        false
    }

    /// Memory for content that the module collects ([`Whole`](crate::Whole)).
    fn memory(&self) -> Box<dyn ContentMemory> {
        Box::new(UnchargedMemory)
    }

    /// Ready when so much time has passed. Where no time passes, never.
    fn sleep(&self, time: Duration) -> Pending<()> {
        let _ = time;
        Box::pin(core::future::pending())
    }
}

/// How important a line of a log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// For the author of the module.
    Debug,
    /// Normal operation.
    Info,
    /// Something is wrong that the module can handle.
    Warning,
    /// Something failed.
    Error,
}

/// A request that a module sends by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnRequest {
    /// A token (RFC 9110 §9.1). CONNECT is refused.
    pub method: String,
    /// The target URI: `http://`, an authority, a path and query.
    pub url: String,
    /// The field lines. The proxy adds Host, the length and Via.
    pub fields: Fields,
    /// The content, at most [`FETCH_CONTENT_BYTES_MAX`].
    pub content: Vec<u8>,
    /// When it has failed; at most [`FETCH_TIMEOUT_MAX`].
    pub timeout: Duration,
    /// The most content that the module takes, bytes: a longer response has failed. At most
    /// [`FETCH_CONTENT_BYTES_MAX`].
    pub content_bytes_max: usize,
}

impl OwnRequest {
    /// A GET of `url` that may take five seconds and 1 MiB.
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: "GET".into(),
            url: url.into(),
            fields: Fields::default(),
            content: Vec::new(),
            timeout: Duration::from_secs(5),
            content_bytes_max: 1024 * 1024,
        }
    }
}

/// The response to a request of a module's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnResponse {
    /// The status code of the final response.
    pub status: u16,
    /// Its field lines.
    pub fields: Fields,
    /// Its content, decoded from its framing.
    pub content: Vec<u8>,
}

/// Why there is no response to a request of a module's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// The request is not valid: method, target, or content that is too long.
    BadRequest,
    /// The destination rules forbid it.
    Forbidden,
    /// The module, or all of them, have as many requests under way as they may.
    TooMany,
    /// The next hop cannot be reached, or broke the response off.
    Unreachable,
    /// It took too long.
    Timeout,
    /// The content is longer than the module takes.
    TooLarge,
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BadRequest => "the request is not valid",
            Self::Forbidden => "the destination is forbidden",
            Self::TooMany => "too many requests of modules are under way",
            Self::Unreachable => "the next hop gave no whole response",
            Self::Timeout => "the response took too long",
            Self::TooLarge => "the response is too large",
        })
    }
}

impl core::error::Error for FetchError {}
