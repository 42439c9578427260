//! What the paper says, number by number, and where. Nothing else is known of its results: it gives
//! no values for the bars of its figures 7 and 9 nor for its curves.

use super::experiment::Kind::{self, Modem, Research};
use serde::Serialize;

/// What a number is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Hundredths of something, or by how many of them something is less.
    Percent,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// 10^9 bytes.
    Gigabytes,
    /// Things that are counted.
    Count,
    /// A mean of counts, or how many times as much.
    Mean,
}

/// How a number is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// As it stands.
    Exactly,
    /// The best that was seen.
    UpTo,
    /// More than this.
    MoreThan,
    /// Less than this.
    LessThan,
}

/// A number of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PublishedValue {
    /// The line of our tables that it belongs to.
    #[serde(skip)]
    pub key: &'static str,
    /// The trace that it is of.
    #[serde(skip)]
    pub kind: Kind,
    /// The number.
    pub value: f64,
    /// What it is of.
    pub unit: Unit,
    /// How it is meant.
    pub bound: Bound,
    /// Where it stands.
    pub place: &'static str,
}

impl PublishedValue {
    /// What the paper says of this line and trace, if it says anything.
    #[must_use]
    pub fn of(key: &str, kind: Kind) -> Option<Self> {
        let mut all = PUBLISHED.iter();
        all.find(|one| one.key == key && one.kind == kind).copied()
    }

    const fn meant(mut self, bound: Bound) -> Self {
        self.bound = bound;
        self
    }
}

const fn is(
    key: &'static str,
    kind: Kind,
    value: f64,
    unit: Unit,
    place: &'static str,
) -> PublishedValue {
    PublishedValue {
        key,
        kind,
        value,
        unit,
        bound: Bound::Exactly,
        place,
    }
}

const fn percent(key: &'static str, kind: Kind, value: f64, place: &'static str) -> PublishedValue {
    is(key, kind, value, Unit::Percent, place)
}

const fn count(key: &'static str, kind: Kind, value: f64) -> PublishedValue {
    is(key, kind, value, Unit::Count, CONNECTIONS)
}

const fn bytes(key: &'static str, value: f64) -> PublishedValue {
    is(key, Modem, value, Unit::Bytes, ABORTS_COMPUTED)
}

const fn gigabytes(key: &'static str, value: f64) -> PublishedValue {
    is(key, Modem, value, Unit::Gigabytes, BANDWIDTH)
}

const fn median_s(key: &'static str, kind: Kind, value: f64) -> PublishedValue {
    is(key, kind, value, Unit::Seconds, FIGURE_4)
}

const fn requests_each(key: &'static str, value: f64) -> PublishedValue {
    is(key, Modem, value, Unit::Mean, CONNECTIONS)
}

const TRACES: &str = "section on the traces";
const CAUSES: &str = "table of uncachable responses";
const HITS: &str = "section on hit ratios";
const ABORTS: &str = "table of aborted transfers";
const ABORTS_COMPUTED: &str = "table of aborted transfers, bytes by transfers";
const BANDWIDTH: &str = "section on bandwidth";
const LATENCY: &str = "section IV, over no proxy";
const OVER_PROXY: &str = "section IV, over a proxy without caching";
const INTRODUCTION: &str = "introduction, over a proxy without caching";
const FIGURE_4: &str = "figure 4";
const SETUP: &str = "section on latency";
const CONNECTIONS: &str = "table of the connection cache";

/// All of them.
pub const PUBLISHED: &[PublishedValue] = &[
    percent("trace.persistent", Modem, 18.0, TRACES),
    percent("trace.persistent", Research, 12.0, TRACES),
    // causes
    percent("causes.cookie", Modem, 30.20, CAUSES),
    percent("causes.query", Modem, 9.85, CAUSES),
    percent("causes.client-cache-control", Modem, 7.47, CAUSES),
    percent("causes.cgi-bin", Modem, 5.42, CAUSES),
    percent("causes.method", Modem, 2.02, CAUSES),
    percent("causes.authorization", Modem, 1.69, CAUSES),
    percent("causes.server-cache-control", Modem, 1.65, CAUSES),
    percent("causes.union", Modem, 43.06, CAUSES),
    percent("causes.cookie", Research, 18.83, CAUSES),
    percent("causes.query", Research, 7.46, CAUSES),
    percent("causes.client-cache-control", Research, 14.38, CAUSES),
    percent("causes.cgi-bin", Research, 4.68, CAUSES),
    percent("causes.method", Research, 1.86, CAUSES),
    percent("causes.authorization", Research, 1.10, CAUSES),
    percent("causes.server-cache-control", Research, 1.10, CAUSES),
    percent("causes.union", Research, 37.55, CAUSES),
    // hit ratios
    percent("hits.ignoring-cookies", Modem, 54.5, HITS),
    percent("hits.obeying-cookies", Modem, 35.2, HITS),
    percent("hits.bytes-ignoring-cookies", Modem, 40.9, HITS),
    percent("hits.bytes-obeying-cookies", Modem, 30.4, HITS),
    percent("hits.ignoring-cookies", Research, 33.9, HITS),
    percent("hits.obeying-cookies", Research, 27.0, HITS),
    percent("hits.bytes-ignoring-cookies", Research, 28.1, HITS),
    percent("hits.bytes-obeying-cookies", Research, 23.3, HITS),
    // aborts
    percent("aborts.complete", Modem, 88.79, ABORTS),
    percent("aborts.aborted", Modem, 10.94, ABORTS),
    percent("aborts.overlong", Modem, 0.27, ABORTS),
    bytes("aborts.complete-bytes", 6147.0),
    bytes("aborts.aborted-declared", 65_780.0),
    bytes("aborts.aborted-received", 12_141.0),
    bytes("aborts.overlong-declared", 7842.0),
    bytes("aborts.overlong-received", 9039.0),
    // bandwidth
    gigabytes("bandwidth.none-gb", 49.8),
    gigabytes("bandwidth.continue-gb", 58.7),
    gigabytes("bandwidth.stop-45-gb", 53.7),
    gigabytes("bandwidth.stop-1.5-gb", 50.7),
    gigabytes("bandwidth.stop-0.5-gb", 41.5),
    percent("bandwidth.continue", Modem, -18.0, BANDWIDTH),
    percent("bandwidth.stop-45", Modem, -8.0, BANDWIDTH),
    percent("bandwidth.stop-1.5", Modem, -2.0, BANDWIDTH),
    percent("bandwidth.stop-0.5", Modem, 15.0, BANDWIDTH),
    percent("bandwidth.flow-control", Modem, 13.0, BANDWIDTH),
    percent("bandwidth.stop-1.5", Research, 14.0, BANDWIDTH),
    // latency
    percent("latency.nothing", Modem, 0.0, LATENCY).meant(Bound::LessThan),
    percent("latency.data", Modem, 3.0, LATENCY),
    percent("latency.data-median", Modem, 4.0, LATENCY),
    percent("latency.connections", Modem, 21.0, LATENCY),
    percent("latency.connections-median", Modem, 40.0, LATENCY),
    percent("latency.both", Modem, 24.0, LATENCY),
    percent("latency.both-median", Modem, 48.0, LATENCY),
    percent("latency.both-cookies", Modem, 26.0, LATENCY),
    percent("latency.data-cookies", Modem, 8.0, LATENCY),
    is("latency.client-factor", Modem, 2.0, Unit::Mean, LATENCY).meant(Bound::MoreThan),
    is("latency.all-factor", Modem, 7.5, Unit::Mean, LATENCY).meant(Bound::MoreThan),
    percent("latency.nothing", Research, 0.0, LATENCY).meant(Bound::LessThan),
    percent("latency.data", Research, 7.0, LATENCY),
    percent("latency.connections", Research, 2.0, LATENCY),
    percent("latency.connections-median", Research, 20.0, LATENCY),
    percent("latency.both", Research, 47.5, LATENCY),
    percent("latency.both-median", Research, 40.4, LATENCY),
    percent("over-proxy.data", Modem, 8.0, INTRODUCTION),
    percent("over-proxy.connections", Modem, 25.0, INTRODUCTION).meant(Bound::UpTo),
    percent("over-proxy.both", Modem, 28.0, INTRODUCTION).meant(Bound::UpTo),
    percent("over-proxy.data", Research, 38.0, INTRODUCTION),
    percent("over-proxy.connections", Research, 35.0, INTRODUCTION),
    percent("over-proxy.connections-again", Research, 39.0, OVER_PROXY),
    percent("over-proxy.both", Research, 65.0, INTRODUCTION),
    // validation, set-up
    median_s("validation.transfer-trace", Modem, 0.44),
    median_s("validation.transfer", Modem, 0.42),
    median_s("validation.total-trace", Modem, 1.8),
    median_s("validation.total", Modem, 2.4),
    median_s("validation.total-trace", Research, 0.42),
    median_s("validation.total", Research, 0.54),
    is("setup.mean", Modem, 1.3, Unit::Seconds, SETUP),
    percent("setup.half", Modem, 47.0, SETUP),
    percent("setup.half", Research, 26.0, SETUP),
    // connections
    count("connections.all.client-max", Modem, 646.0),
    count("connections.all.server-max", Modem, 240.0),
    percent("connections.all.client-new", Modem, 18.4, CONNECTIONS),
    percent("connections.all.server-new", Modem, 20.6, CONNECTIONS),
    count("connections.server.client-max", Modem, 203.0),
    count("connections.server.server-max", Modem, 243.0),
    percent("connections.server.client-new", Modem, 100.0, CONNECTIONS),
    percent("connections.server.server-new", Modem, 20.8, CONNECTIONS),
    count("connections.client.client-max", Modem, 646.0),
    count("connections.client.server-max", Modem, 75.0),
    percent("connections.client.client-new", Modem, 18.4, CONNECTIONS),
    percent("connections.client.server-new", Modem, 77.8, CONNECTIONS),
    count("connections.none.client-max", Modem, 204.0),
    count("connections.none.server-max", Modem, 73.0),
    percent("connections.none.client-new", Modem, 100.0, CONNECTIONS),
    percent("connections.none.server-new", Modem, 77.87, CONNECTIONS),
    count("connections.all.client-max", Research, 216.0),
    count("connections.all.server-max", Research, 198.0),
    percent("connections.all.client-new", Research, 10.1, CONNECTIONS),
    percent("connections.all.server-new", Research, 25.2, CONNECTIONS),
    count("connections.server.client-max", Research, 179.0),
    count("connections.server.server-max", Research, 198.0),
    percent(
        "connections.server.client-new",
        Research,
        100.0,
        CONNECTIONS,
    ),
    percent("connections.server.server-new", Research, 25.2, CONNECTIONS),
    count("connections.client.client-max", Research, 216.0),
    count("connections.client.server-max", Research, 183.0),
    percent("connections.client.client-new", Research, 10.1, CONNECTIONS),
    percent("connections.client.server-new", Research, 84.0, CONNECTIONS),
    count("connections.none.client-max", Research, 179.0),
    count("connections.none.server-max", Research, 183.0),
    percent("connections.none.client-new", Research, 100.0, CONNECTIONS),
    percent("connections.none.server-new", Research, 84.0, CONNECTIONS),
    count("connections.no-proxy", Modem, 112.0),
    requests_each("connections.client-requests", 5.4),
    requests_each("connections.server-requests", 3.8),
    requests_each("connections.client-servers", 2.0),
    requests_each("connections.server-clients", 1.2),
];
