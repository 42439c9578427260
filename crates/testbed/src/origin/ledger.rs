//! What the origin was asked for and how much of it was taken.

use serde::{Deserialize, Serialize};

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    Running,
    /// All of it was written to the socket.
    Whole,
    /// The connection was closed before.
    Cut,
}

/// A request and its response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fetch {
    #[serde(skip)]
    pub(crate) path: String,
    /// The `Range` field of the request.
    pub(crate) range: Option<String>,
    pub(crate) status: u16,
    /// Content written to the socket.
    pub(crate) handed_bytes: u64,
    /// Content that the peer's kernel has acknowledged.
    pub(crate) acknowledged_bytes: u64,
    pub(crate) end: End,
}

/// All fetches of paths with a common prefix.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) fetches: u64,
    pub(crate) running: u64,
    pub(crate) handed_bytes: u64,
    pub(crate) acknowledged_bytes: u64,
    /// The first few, one by one.
    pub(crate) first: Vec<Fetch>,
}

const FIRST_MAX: usize = 8;

/// Every fetch since the origin began.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Vec<Fetch>);

impl Ledger {
    /// Enters a fetch; the number names it from now on.
    pub(crate) fn begin(&mut self, path: &str, range: Option<&str>, status: u16) -> usize {
        self.0.push(Fetch {
            path: path.to_owned(),
            range: range.map(str::to_owned),
            status,
            handed_bytes: 0,
            acknowledged_bytes: 0,
            end: End::Running,
        });
        self.0.len() - 1
    }

    pub(crate) fn handed(&mut self, fetch: usize, bytes: u64) {
        if let Some(fetch) = self.0.get_mut(fetch) {
            fetch.handed_bytes += bytes;
        }
    }

    /// `unacknowledged_bytes` are those of its connection; content goes last, so they are content
    /// first of all.
    pub(crate) fn acknowledged(&mut self, fetch: usize, unacknowledged_bytes: u64) {
        if let Some(fetch) = self.0.get_mut(fetch) {
            fetch.acknowledged_bytes = fetch.handed_bytes.saturating_sub(unacknowledged_bytes);
        }
    }

    pub(crate) fn end(&mut self, fetch: usize, end: End) {
        if let Some(fetch) = self.0.get_mut(fetch)
            && fetch.end == End::Running
        {
            fetch.end = end;
        }
    }

    pub(crate) fn concerns(&self, fetch: usize, prefix: &str) -> bool {
        self.0
            .get(fetch)
            .is_some_and(|fetch| fetch.path.starts_with(prefix))
    }

    pub(crate) fn tally(&self, prefix: &str) -> Tally {
        let mut tally = Tally::default();
        for fetch in self.0.iter().filter(|fetch| fetch.path.starts_with(prefix)) {
            tally.fetches += 1;
            tally.running += u64::from(fetch.end == End::Running);
            tally.handed_bytes += fetch.handed_bytes;
            tally.acknowledged_bytes += fetch.acknowledged_bytes;
            if tally.first.len() < FIRST_MAX {
                tally.first.push(fetch.clone());
            }
        }
        tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tally_covers_exactly_the_fetches_of_its_prefix() {
        let mut ledger = Ledger::default();
        let one = ledger.begin("/weir/abort", None, 200);
        let two = ledger.begin("/weir/abort", Some("bytes=5-"), 206);
        let other = ledger.begin("/weir/lead", None, 200);
        for (fetch, bytes, left) in [(one, 100, 30), (two, 10, 20), (other, 1000, 0)] {
            ledger.handed(fetch, bytes);
            ledger.acknowledged(fetch, left);
        }
        ledger.end(one, End::Cut);
        ledger.end(one, End::Whole);
        let tally = ledger.tally("/weir/abort");
        assert_eq!((tally.fetches, tally.running), (2, 1));
        // what is not acknowledged of the second is its head too
        assert_eq!((tally.handed_bytes, tally.acknowledged_bytes), (110, 70));
        assert_eq!(tally.first[0].end, End::Cut);
        assert_eq!(tally.first[1].range.as_deref(), Some("bytes=5-"));
    }
}
