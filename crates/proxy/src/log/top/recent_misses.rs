//! The last requests of one worker that were forwarded, or were to be and were refused.

use std::collections::VecDeque;
use std::net::IpAddr;
use weir_measure::{NotStored, Verdict};

/// How many are remembered for each worker.
pub(super) const MISSES_MAX: usize = 64;

/// Most bytes of a method that are kept.
const METHOD_BYTES_MAX: usize = 16;

/// What is remembered of such a request beside its URL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MissFacts<'a> {
    /// When its response had ended, milliseconds since 1970 UTC.
    pub(crate) at_unix_ms: u64,
    /// Its method, as it was received.
    pub(crate) method: &'a str,
    /// Its client.
    pub(crate) client: IpAddr,
    /// Why it was forwarded, or that it was refused.
    pub(crate) why: Verdict,
    /// The status that the client received; 0 if it received none.
    pub(crate) status: u16,
    /// Why the response was not stored, if it was not.
    pub(crate) not_stored: Option<NotStored>,
    /// Why it was refused, if it was.
    pub(crate) refused: Option<&'static str>,
}

/// Such a request.
#[derive(Clone, Debug)]
pub(super) struct ForwardedRequest {
    pub(super) at_unix_ms: u64,
    pub(super) method: String,
    pub(super) url: String,
    pub(super) client: IpAddr,
    pub(super) why: Verdict,
    pub(super) status: u16,
    pub(super) not_stored: Option<NotStored>,
    pub(super) refused: Option<&'static str>,
}

/// The last [`MISSES_MAX`] of them.
#[derive(Debug, Default)]
pub(super) struct RecentMisses(VecDeque<ForwardedRequest>);

impl RecentMisses {
    /// Remembers one, whose URL `write_url` writes; the oldest is forgotten for it, and gives its
    /// memory.
    pub(super) fn push(&mut self, write_url: impl FnOnce(&mut String), facts: &MissFacts<'_>) {
        let is_full = self.0.len() >= MISSES_MAX;
        let oldest = is_full.then(|| self.0.pop_front()).flatten();
        let (mut method, mut url) = oldest.map_or_else(Default::default, |it| (it.method, it.url));
        method.clear();
        url.clear();
        let end = facts.method.floor_char_boundary(METHOD_BYTES_MAX);
        method.push_str(&facts.method[..end]);
        write_url(&mut url);
        self.0.push_back(ForwardedRequest {
            at_unix_ms: facts.at_unix_ms,
            method,
            url,
            client: facts.client,
            why: facts.why,
            status: facts.status,
            not_stored: facts.not_stored,
            refused: facts.refused,
        });
    }

    /// All of them, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ForwardedRequest> {
        self.0.iter()
    }
}
