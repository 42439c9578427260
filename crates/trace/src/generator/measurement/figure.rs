//! What is compared: a quantity, the number that is published of it, and the one measured in a made
//! trace.

use crate::row::words::words;
use serde::Deserialize;

words! {
    /// What a number counts, as it stands behind the number.
    Unit {
        /// Hundredths.
        Percent = "%",
        /// Bytes.
        Bytes = "B",
        /// Seconds.
        Seconds = "s",
        /// Requests.
        Requests = "requests",
        /// Targets.
        Targets = "targets",
    }
}

/// Defines [`Quantity`]: the word in a profile, the unit, and the name in a table.
macro_rules! quantities {
    ($($(#[$word:meta])* $variant:ident = $unit:ident, $name:literal;)+) => {
        /// What can be measured in a trace. Percentages are of all rows unless the name says of
        /// what.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Quantity {
            $(#[doc = $name] $(#[$word])* $variant,)+
        }

        impl Quantity {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// What it is called in a table.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// What it is counted in.
            #[must_use]
            pub const fn unit(self) -> Unit {
                match self {
                    $(Self::$variant => Unit::$unit,)+
                }
            }
        }
    };
}

quantities! {
    Cookie = Percent, "cookie";
    Query = Percent, "`?`";
    ClientCacheControl = Percent, "client Cache-Control";
    CgiBin = Percent, "cgi-bin";
    OtherMethod = Percent, "neither GET nor HEAD";
    Authorization = Percent, "Authorization";
    ServerCacheControl = Percent, "server Cache-Control";
    Uncachable = Percent, "uncachable (union)";
    HitRatio = Percent, "hit ratio, ignoring cookies";
    ByteHitRatio = Percent, "byte hit ratio, ignoring cookies";
    HitRatioCookies = Percent, "hit ratio, obeying cookies";
    ByteHitRatioCookies = Percent, "byte hit ratio, obeying cookies";
    Complete = Percent, "complete, of declared";
    Aborted = Percent, "aborted, of declared";
    Overlong = Percent, "overlong, of declared";
    Declared = Percent, "with Content-Length";
    CompleteBytes = Bytes, "complete: mean size";
    AbortedBytes = Bytes, "aborted: mean declared size";
    ReceivedOfAborted = Percent, "aborted: received of declared bytes";
    UndeclaredBytes = Bytes, "without Content-Length: mean size";
    Persistent = Percent, "on persistent connections";
    ClientConnections = Percent, "new client connections, were all to persist";
    RequestsAClientConnection = Requests, "requests a client connection, were all to persist";
    ServerConnections = Percent, "new server connections, were all to persist";
    SetupMean = Seconds, "set-up: mean";
    SetupHalf = Percent, "set-up is half of the latency or more";
    TotalMedian = Seconds, "latency: median";
    TransferMedian = Seconds, "transfer: median";
    Recurrence = Percent, "requests for what was asked for before";
    OneHit = Percent, "targets asked for once, of all targets";
    SizeMedian = Bytes, "size of responses: median";
    SizeP90 = Bytes, "size of responses: 90th percentile";
    RequestCookie = Percent, "Cookie";
    Http2OrLater = Percent, "HTTP/2 or later";
    CacheControl = Percent, "Cache-Control";
    Expires = Percent, "Expires";
    NoControl = Percent, "neither Cache-Control nor Expires";
    MaxAge = Percent, "max-age";
    Public = Percent, "public";
    NoCache = Percent, "no-cache";
    MustRevalidate = Percent, "must-revalidate";
    NoStore = Percent, "no-store";
    NoStoreNoCache = Percent, "no-store with no-cache";
    Private = Percent, "private";
    Immutable = Percent, "immutable";
    StaleWhileRevalidate = Percent, "stale-while-revalidate";
    SMaxAge = Percent, "s-maxage";
    LastModified = Percent, "Last-Modified";
    Etag = Percent, "ETag";
    BothValidators = Percent, "Last-Modified and ETag";
    NoValidator = Percent, "neither Last-Modified nor ETag";
    Vary = Percent, "Vary";
    SetCookie = Percent, "Set-Cookie, of storable responses";
    OlderThanLifetime = Percent, "older than its lifetime, of those with max-age and Last-Modified";
    NotModified = Percent, "304, of requests with If-Modified-Since alone";
    NotModifiedEtag = Percent, "304, of requests with If-None-Match";
    RequestsAConnection = Requests, "requests a connection";
    Targets = Targets, "targets";
    TargetBytes = Bytes, "bytes of all targets";
    #[serde(rename = "bytes-of-97-percent")]
    BytesOf97Percent = Bytes, "bytes of the targets with 97 % of the requests";
    #[serde(rename = "bytes-of-98-percent")]
    BytesOf98Percent = Bytes, "bytes of the targets with 98 % of the requests";
    #[serde(rename = "bytes-of-99-percent")]
    BytesOf99Percent = Bytes, "bytes of the targets with 99 % of the requests";
}

/// A number that is known of such traces.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// What it is of.
    pub quantity: Quantity,
    /// The number, in the quantity's unit; the least where there is a `most`.
    pub value: f64,
    /// The greatest number that is known.
    pub most: Option<f64>,
    /// The largest difference, as a share of the number, where it is not the usual one.
    pub within: Option<f64>,
    /// The publication.
    pub source: String,
}

/// A quantity beside what is published of it.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What is known.
    pub published: Published,
    /// What was measured; `None` where the trace has nothing to measure it by.
    pub made: Option<f64>,
}

impl Figure {
    /// The largest difference of a percentage, in points.
    pub const POINTS_MAX: f64 = 2.0;
    /// The largest difference of any other number, as a share of what is published.
    pub const SHARE_MAX: f64 = 0.05;

    /// What was made less what is published, or less the nearer end of what is published; nothing
    /// where it lies within.
    #[must_use]
    pub fn difference(&self) -> Option<f64> {
        let least = self.published.value;
        let most = self.published.most.unwrap_or(least);
        self.made.map(|made| made - made.clamp(least, most))
    }

    /// Whether it is as published: within the share that the publication's figure has for itself,
    /// otherwise a percentage within [`Figure::POINTS_MAX`] and anything else within
    /// [`Figure::SHARE_MAX`].
    #[must_use]
    pub fn holds(&self) -> bool {
        let slack = match (self.published.within, self.published.quantity.unit()) {
            (Some(share), _) => share * self.published.value,
            (None, Unit::Percent) => Self::POINTS_MAX,
            (None, _) => Self::SHARE_MAX * self.published.value,
        };
        self.difference().is_some_and(|off| off.abs() <= slack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(quantity: Quantity, value: f64, most: Option<f64>, made: Option<f64>, holds: bool) {
        let source = String::new();
        let published = Published {
            quantity,
            value,
            most,
            within: None,
            source,
        };
        let figure = Figure { published, made };
        assert_eq!(figure.holds(), holds, "{figure:?}");
    }

    #[test]
    fn figure_holds_exactly_within_its_bound() {
        check(Quantity::Cookie, 30.0, None, Some(32.0), true);
        check(Quantity::Cookie, 30.0, None, Some(27.9), false);
        check(Quantity::SetupMean, 1.0, None, Some(1.04), true);
        check(Quantity::SetupMean, 1.0, None, Some(0.94), false);
        check(
            Quantity::SizeMedian,
            3000.0,
            Some(10_000.0),
            Some(7000.0),
            true,
        );
        check(
            Quantity::SizeMedian,
            3000.0,
            Some(10_000.0),
            Some(11_000.0),
            false,
        );
        check(Quantity::Cookie, 30.0, None, None, false);
    }

    #[test]
    fn figure_with_a_bound_of_its_own_holds_exactly_within_that() {
        for (made, holds) in [(30_900.0, true), (31_000.0, false), (29_000.0, false)] {
            let published = Published {
                quantity: Quantity::Targets,
                value: 30_000.0,
                most: None,
                within: Some(0.03),
                source: String::new(),
            };
            let made = Some(made);
            assert_eq!(Figure { published, made }.holds(), holds, "{made:?}");
        }
    }
}
