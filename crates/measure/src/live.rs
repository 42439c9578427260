//! What a running proxy tells of itself in JSON: the types that the admin interface writes, and
//! that programs which show them read.
//!
//! Each has a `version`. A field may be added without a new one; a reader ignores fields that it
//! does not know. A field that changes its meaning or goes away makes a new version.

use crate::labels;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The version of the types of this module.
pub const VERSION: u32 = 1;

/// Most rows of a table of heavy hitters.
pub const TOP_ROWS_MAX: u16 = 1000;

/// Most bytes of a name, which a proxy cuts: that of a URL in tables and among misses.
pub const NAME_BYTES_MAX: usize = 256;

labels! {
    /// Of what the heavy hitters are listed.
    TopOf {
        /// Target URIs, by default without their query.
        Urls = "urls",
        /// Hosts, with their port if it is not 80.
        Hosts = "hosts",
        /// Clients, by their addresses or by a name made of these.
        Clients = "clients",
        /// Addresses of next hops.
        NextHops = "next-hops",
    }

    /// By what heavy hitters are found.
    TopBy {
        /// Requests of clients.
        Requests = "requests",
        /// Bytes of responses and tunnels to clients, heads included.
        ToClients = "to-clients",
        /// Bytes received from next hops, heads included.
        FromNextHops = "from-next-hops",
        /// Content bytes received from next hops that no client received.
        Wasted = "wasted",
        /// Requests of clients that were forwarded.
        Misses = "misses",
        /// Requests of clients that were forwarded and went wrong: the next hop was not reached,
        /// was late, or its response broke off.
        Errors = "errors",
    }
}

/// The heaviest URLs, hosts, clients or next hops by one measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopTable {
    /// The version of this type.
    pub version: u32,
    /// A word of [`TopOf`].
    pub of: String,
    /// A word of [`TopBy`].
    pub by: String,
    /// `requests` or `bytes`.
    pub unit: String,
    /// Sum over everything, also over what is not listed. It is halved each `halving_s`, as all
    /// counts are.
    pub total: u64,
    /// The most that a name which nothing is counted for can have.
    pub resolution: u64,
    /// The most that a name without a row in this table can have: at least `resolution`, and more
    /// if names that are counted were left out.
    pub unlisted_max: u64,
    /// Seconds between two halvings of the counts.
    pub halving_s: u32,
    /// The heaviest first.
    pub rows: Vec<TopRow>,
}

/// One of the heaviest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopRow {
    /// Its name; it comes from clients, and may hold any character.
    pub name: String,
    /// At most so many.
    pub count: u64,
    /// It has at least `count - error`.
    pub error: u64,
    /// It certainly has more than each name that nothing is counted for.
    pub certain: bool,
}

/// The next hops that a configuration names: those of routes, parents and siblings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextHops {
    /// The version of this type.
    pub version: u32,
    /// Each once.
    pub next_hops: Vec<NextHopRow>,
}

/// How a next hop is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextHopRow {
    /// Where it is.
    pub url: String,
    /// `route`, `parent` or `sibling`.
    pub kind: String,
    /// The first route that it is of, as host and path, and how many more there are: one URL can be
    /// spoken to in several ways. Empty of others.
    #[serde(default)]
    pub routes: String,
    /// `in`; `ejected`: it failed, and is not asked; `spent`: its link has spent its quota, and
    /// nothing is fetched over it.
    pub state: String,
    /// How long it is ejected from now on, seconds; 0 if one request may find out whether it is
    /// back.
    pub ejected_for_s: Option<u64>,
    /// Requests that were sent there and have not ended.
    pub outstanding: u32,
}

/// The links that a configuration has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRows {
    /// The version of this type.
    pub version: u32,
    /// Each once, in the order of the configuration.
    pub links: Vec<LinkRow>,
}

/// What is moved over a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRow {
    /// Its name.
    pub name: String,
    /// Bytes read from next hops since the process began.
    pub received_bytes: u64,
    /// Bytes written to them since then.
    pub sent_bytes: u64,
    /// Requests since then that were not sent because its quota was spent.
    pub refused: u64,
    /// How long transfers waited for it since then, all together, milliseconds.
    pub waited_ms: u64,
    /// Its rate now, if it has one.
    pub rate_bytes_s: Option<u64>,
    /// It is in a time window with a rate of its own, or that costs nothing.
    pub is_in_window: bool,
    /// Bytes are not of the quota now.
    pub is_free: bool,
    /// Its clock was set within the hour: no period begins, and no free window opens.
    pub is_after_clock_step: bool,
    /// Its quota, if it has one.
    pub quota: Option<LinkQuotaRow>,
}

impl LinkRow {
    /// What holds of it now, in words: `spent`, `window`, `free`, `clock-step`; none if it is as at
    /// any time.
    #[must_use]
    pub fn state_words(&self) -> Vec<&'static str> {
        let is_spent = self.quota.as_ref().is_some_and(|quota| quota.is_spent);
        let words = [
            (is_spent, "spent"),
            (self.is_in_window, "window"),
            (self.is_free, "free"),
            (self.is_after_clock_step, "clock-step"),
        ];
        words
            .into_iter()
            .filter_map(|(holds, word)| holds.then_some(word))
            .collect()
    }
}

/// The quota of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkQuotaRow {
    /// Bytes of a period.
    pub bytes: u64,
    /// Bytes that are spent in this one.
    pub spent_bytes: u64,
    /// Bytes that count as spent if the process is killed now.
    pub booked_bytes: u64,
    /// When the period began, seconds since 1970 UTC.
    pub begin_unix_s: i64,
    /// When the next one begins.
    pub end_unix_s: i64,
    /// What follows when it is spent: a word of `link[].when_spent`.
    pub when_spent: String,
    /// Whether it is.
    pub is_spent: bool,
}

/// The certificates of listeners with TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerCertificates {
    /// The version of this type.
    pub version: u32,
    /// Listener by listener, in the order of the configuration.
    pub certificates: Vec<ListenerCertificate>,
}

/// A certificate of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListenerCertificate {
    /// The name of the listener, or else its address.
    pub listener: String,
    /// The names and addresses that it is for, or is to be for while there is none.
    pub names: Vec<String>,
    /// `file`, or `authority` if it is ordered.
    pub source: String,
    /// The file of the chain, or the URL of the authority's directory.
    pub from: String,
    /// When it ends, seconds since 1970 UTC; `None` if there is none yet.
    pub end_unix_s: Option<u64>,
    /// When a new one, or the first, is ordered, as far as is known.
    pub order_unix_s: Option<i64>,
    /// Orders that have failed since the last one that did not.
    pub failures: Option<u32>,
    /// The last order since the process began.
    pub last_order: Option<CertificateOrder>,
}

/// How an order of a certificate has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateOrder {
    /// When, seconds since 1970 UTC.
    pub at_unix_s: i64,
    /// How: `issued`, or why not, a word of `weir_acme_orders_total`.
    pub end: String,
    /// What is said of one that failed; the authority may have said it.
    pub reason: Option<String>,
}

/// The last requests that were forwarded, or were to be and were refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentMisses {
    /// The version of this type.
    pub version: u32,
    /// The latest first.
    pub misses: Vec<Miss>,
    /// What the words of [`Miss::why`] in it mean.
    #[serde(default)]
    pub why_meanings: Vec<Meaning>,
    /// What the words of [`Miss::reason`] in it mean.
    #[serde(default)]
    pub reason_meanings: Vec<Meaning>,
}

/// What a word means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meaning {
    /// The word.
    pub word: String,
    /// What it means, in a sentence or two.
    pub about: String,
}

/// A request that was forwarded, or was to be and was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Miss {
    /// When its response had ended, milliseconds since 1970 UTC.
    pub at_unix_ms: u64,
    /// Its method.
    pub method: String,
    /// The target URI, by default without its query; it comes from a client.
    pub url: String,
    /// The client: its address, or a name made of it.
    pub client: String,
    /// Why it was forwarded, or `refused`: a word of [`crate::Verdict`].
    pub why: String,
    /// The status that the client received; 0 if it received none.
    pub status: u16,
    /// Why the response was not stored: a word of [`crate::NotStored`], or none if it was stored or
    /// nothing was to be stored.
    pub not_stored: Option<String>,
    /// Why it was refused, if it was: `link-spent`, or the error of Proxy-Status such as
    /// `dns_error`.
    #[serde(default)]
    pub refused: Option<String>,
}

impl Miss {
    /// Why it was refused, or why the response was not stored: the word that tables show.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.refused.as_deref().or(self.not_stored.as_deref())
    }
}

/// How the values of a series are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiveKind {
    /// By how much a counter grew from one row to the next.
    Count,
    /// What a gauge shows.
    Gauge,
    /// A quantile of response times, microseconds.
    Time,
}

/// A series of values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveSeries {
    /// Its name, such as `requests.hit`.
    pub name: String,
    /// How its values are to be read.
    pub kind: LiveKind,
}

/// What the proxy did in one second: an event of `/events`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveSample {
    /// The end of the second, seconds since 1970 UTC.
    pub at_s: u64,
    /// The values of all series, in their order; none if there is none to show.
    pub values: Vec<Option<u64>>,
    /// Counters since the start and gauges, in the same order.
    pub totals: Vec<Option<u64>>,
}

/// What the proxy does now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// The version of this type.
    pub version: u32,
    /// The version of the proxy.
    pub weir: String,
    /// When it started, milliseconds since 1970 UTC.
    pub started_unix_ms: u64,
    /// All series.
    pub series: Vec<LiveSeries>,
    /// The last second.
    pub sample: LiveSample,
}

/// Rows of the history, by columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryTable {
    /// The version of this type.
    pub version: u32,
    /// Seconds from a row to the next.
    pub step_s: u64,
    /// When the first row begins, seconds since 1970 UTC.
    pub from_s: u64,
    /// The series of the columns.
    pub series: Vec<LiveSeries>,
    /// A column for each series, with a value for each row; none where nothing is known.
    pub columns: Vec<Vec<Option<u64>>>,
}
