//! The requests of an origin, and how much of the responses the peers' kernels have taken.

use std::os::fd::RawFd;

use serde::{Deserialize, Serialize};

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FetchEnd {
    /// It has not.
    Running,
    /// All of it was written to the socket.
    Whole,
    /// The connection was closed before.
    Cut,
}

/// A request and its response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetch {
    #[serde(skip)]
    path: String,
    /// The open socket that it is on, while some of it may be on its way.
    #[serde(skip)]
    socket: Option<RawFd>,
    /// The `Range` field of the request.
    pub range: Option<String>,
    /// Of the response.
    pub status: u16,
    /// Content written to the socket.
    pub handed_bytes: u64,
    /// Content that the peer's kernel has acknowledged.
    pub acknowledged_bytes: u64,
    /// How the response ended.
    pub end: FetchEnd,
}

/// All fetches of paths with a common prefix.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FetchTally {
    /// How many.
    pub fetches: u64,
    /// How many of them have not ended.
    pub running: u64,
    /// Content written to sockets.
    pub handed_bytes: u64,
    /// Content that the peers' kernels have acknowledged.
    pub acknowledged_bytes: u64,
    /// The first few, one by one.
    pub first: Vec<Fetch>,
}

const FIRST_MAX: usize = 8;

/// Every fetch since the origin began; a place in it names a fetch.
#[derive(Debug, Default)]
pub struct Fetches(Vec<Fetch>);

impl Fetches {
    /// Enters a fetch whose response goes to `socket`.
    pub fn begin(&mut self, path: &str, range: Option<&[u8]>, status: u16, socket: RawFd) -> usize {
        self.0.push(Fetch {
            path: path.to_owned(),
            socket: Some(socket),
            range: range.map(|range| String::from_utf8_lossy(range).into_owned()),
            status,
            handed_bytes: 0,
            acknowledged_bytes: 0,
            end: FetchEnd::Running,
        });
        self.0.len() - 1
    }

    /// So many bytes of content of a fetch were written.
    pub fn handed(&mut self, fetch: usize, bytes: u64) {
        if let Some(fetch) = self.0.get_mut(fetch) {
            fetch.handed_bytes += bytes;
        }
    }

    /// The response of a fetch has ended so, unless it had ended before.
    pub fn end(&mut self, fetch: usize, end: FetchEnd) {
        if let Some(fetch) = self.0.get_mut(fetch)
            && fetch.end == FetchEnd::Running
        {
            fetch.end = end;
        }
    }

    /// Reads the kernel's count of a fetch for the last time: its socket carries another response
    /// now, or is about to be closed.
    pub fn settle(&mut self, fetch: usize, unacknowledged_bytes: fn(RawFd) -> Option<u64>) {
        if let Some(fetch) = self.0.get_mut(fetch) {
            fetch.look(unacknowledged_bytes);
            fetch.socket = None;
        }
    }

    /// The fetches of paths with this prefix; `unacknowledged_bytes` tells of a socket what its
    /// peer's kernel has not acknowledged.
    pub fn tally(
        &mut self,
        prefix: &str,
        unacknowledged_bytes: fn(RawFd) -> Option<u64>,
    ) -> FetchTally {
        let mut tally = FetchTally::default();
        let is_below = |fetch: &&mut Fetch| fetch.path.starts_with(prefix);
        for fetch in self.0.iter_mut().filter(is_below) {
            fetch.look(unacknowledged_bytes);
            tally.fetches += 1;
            tally.running += u64::from(fetch.end == FetchEnd::Running);
            tally.handed_bytes += fetch.handed_bytes;
            tally.acknowledged_bytes += fetch.acknowledged_bytes;
            if tally.first.len() < FIRST_MAX {
                tally.first.push(fetch.clone());
            }
        }
        tally
    }
}

impl Fetch {
    /// What is not acknowledged of its connection is content first of all: content goes last.
    fn look(&mut self, unacknowledged_bytes: fn(RawFd) -> Option<u64>) {
        if let Some(bytes) = self.socket.and_then(unacknowledged_bytes) {
            self.acknowledged_bytes = self.handed_bytes.saturating_sub(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tally_covers_exactly_the_fetches_of_its_prefix() {
        let mut fetches = Fetches::default();
        // as if a socket had as many bytes under way as its number says
        let unacknowledged = |socket: RawFd| u64::try_from(socket).ok();
        let one = fetches.begin("/weir/abort", None, 200, 30);
        let two = fetches.begin("/weir/abort", Some(b"bytes=5-"), 206, 20);
        let other = fetches.begin("/weir/lead", None, 200, 0);
        for (fetch, bytes) in [(one, 100), (two, 10), (other, 1000)] {
            fetches.handed(fetch, bytes);
        }
        fetches.end(one, FetchEnd::Cut);
        fetches.end(one, FetchEnd::Whole);
        fetches.settle(one, unacknowledged);
        let tally = fetches.tally("/weir/abort", unacknowledged);
        assert_eq!((tally.fetches, tally.running), (2, 1));
        // what is not acknowledged of the second is its head too
        assert_eq!((tally.handed_bytes, tally.acknowledged_bytes), (110, 70));
        assert_eq!(tally.first[0].end, FetchEnd::Cut);
        assert_eq!(tally.first[1].range.as_deref(), Some("bytes=5-"));
    }
}
