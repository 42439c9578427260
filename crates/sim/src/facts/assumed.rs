//! What a trace does not say, and what stands in for it.

use std::fmt;
use weir_semantics::words;

words! {
    /// A column without a value, and what is assumed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Assumption {
        /// No method.
        Method = "no method: GET",
        /// No status.
        Status = "no status: 200",
        /// No client.
        Client = "no client: each request comes from another one",
        /// No server.
        Server = "no server: each target has its own",
        /// Nominated fields that are not known.
        Variant = "no variant though the response varies: all requests are alike",
        /// No head length.
        HeadBytes = "no head length: 250 bytes",
        /// Neither a declared nor a received length.
        ContentBytes = "no length: no content",
        /// Nothing about how long the connection lived.
        Persistence = "nothing about persistence: HTTP/1.0 closes, everything else does not",
        /// Nothing about the response's Cache-Control.
        ResponseDirectives = "nothing about the response's Cache-Control: there was none",
        /// Nothing about the response's head: fresh for the lifetime that is assumed.
        Lifetime = "no response head: fresh for the assumed lifetime",
        /// The same, and no lifetime is assumed.
        NoLifetime = "no response head: no lifetime",
        /// No response time of the server: the median of the same target.
        ResponseTimeOfTarget = "no response time of the server: the median of the same target",
        /// No response time of the server: the median of the same server.
        ResponseTimeOfServer = "no response time of the server: the median of the same server",
        /// A set-up time, and no response time of any request to the server.
        ThinkTime = "no response time of the server at all: one round trip",
        /// Neither a set-up time nor a response time.
        ServerRtt = "no set-up or response time: the default round trip to servers",
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How often each was assumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assumptions {
    counts: [u64; Assumption::ALL.len()],
}

impl Assumptions {
    /// What was assumed at all, and for how many requests.
    pub fn iter(&self) -> impl Iterator<Item = (Assumption, u64)> + '_ {
        let pairs = Assumption::ALL.into_iter().zip(self.counts);
        pairs.filter(|(_, count)| *count > 0)
    }

    pub(crate) fn count(&mut self, assumed: Assumption) {
        self.counts[assumed as usize] += 1;
    }

    /// What was counted as `former` is something else.
    pub(crate) fn replace(&mut self, former: Assumption, instead: Assumption) {
        let count = &mut self.counts[former as usize];
        *count = count.saturating_sub(1);
        self.count(instead);
    }

    /// And what was assumed elsewhere.
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
    }

    /// `value`, or what is assumed in its place.
    pub(crate) fn known<T>(&mut self, value: Option<T>, assumed: Assumption, instead: T) -> T {
        value.unwrap_or_else(|| {
            self.count(assumed);
            instead
        })
    }
}
