//! What a made trace is like: a file of constants, each with its source.

use crate::generator::measurement::figure::Published;
use serde::Deserialize;
use weir_workload::whole;
use weir_workload::{CacheControl, Law, Validators, Vary};

/// The constants of a kind of trace. Those that come with the program are known by
/// [`Profile::built_in`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// What people call it.
    pub(crate) name: String,
    /// What it is, in a sentence or two.
    pub(crate) about: String,
    /// Where its numbers come from.
    pub(crate) sources: Vec<String>,
    /// How many requests a trace has by default.
    pub(crate) requests: u64,
    pub(super) time: Time,
    pub(super) clients: Clients,
    pub(super) network: Network,
    pub(super) sites: Sites,
    pub(super) pages: PageLaw,
    /// Sites without cookies, then sites with.
    pub(super) plain: Class,
    pub(super) cookie: Class,
    /// What the first request of a page is for, and what the others.
    pub(super) document: Kind,
    pub(super) embedded: Vec<Kind>,
    /// What is made for each request.
    pub(super) dynamic: Vec<Dynamic>,
    pub(super) asks: Asks,
    pub(super) says: Says,
    pub(super) ends: Ends,
    /// What is known of such traces, for the comparison.
    pub(crate) published: Vec<Published>,
}

/// When.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Time {
    /// Of the first request, seconds since 1970.
    pub(super) begins_s: i64,
    /// Requests a second, on average over a day.
    pub(super) rate_per_s: f64,
    /// Sessions begin at the mean rate times 1 plus or minus this.
    pub(super) daily_swing: f64,
    /// When most begin, hours after midnight.
    pub(super) peak_hour: f64,
}

/// Clients.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Clients {
    /// Clients that may begin a session.
    pub(super) population: u32,
    /// A session is of client `population * u^skew`, u uniform.
    pub(super) skew: f64,
    /// Mean of a geometric law.
    pub(super) pages_a_session: f64,
    /// From the end of a page to the next one, seconds.
    pub(super) think: Law,
    /// Connections of a client to one server, HTTP/1.
    pub(super) connections_a_server: usize,
    /// Connections of a client.
    pub(super) connections_max: usize,
    /// A server closes a connection that is idle longer, seconds.
    pub(super) idle_limit_s: f64,
}

/// How far.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    /// From SYN to SYN-ACK, seconds, before the server's factor.
    pub(super) setup: Law,
    /// From request to response head, seconds, before the server's factor.
    pub(super) response: Law,
    /// The factor of a server, mean 1.
    pub(super) server_factor: Law,
    /// From SYN-ACK to request: the round trip between the place of measurement and the client,
    /// seconds.
    pub(super) access_s: f64,
    /// Bytes a second of a transfer.
    pub(super) rate: Law,
    /// Bytes a second of the link that all transfers of a client share, headers with them: the next
    /// request waits for it. Without it, no link is waited for.
    pub(super) client_bytes_s: Option<f64>,
    /// Bytes that come with the response head, in the same packet.
    pub(super) first_packet_bytes: u64,
}

/// Where.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sites {
    /// The share of pages on the site of the page before.
    pub(super) stay: f64,
    /// How many there are.
    pub(super) servers: u32,
    /// The n-th of a class has new pages in proportion to n to the minus this.
    pub(super) exponent: f64,
    /// The share of embedded items on the site of a third party.
    pub(super) third_party: f64,
    /// How many sites third parties have; the n-th is used with probability in proportion to 1/n.
    pub(super) third_parties: u32,
}

/// What a page is.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageLaw {
    /// Items embedded in a page.
    pub(super) embedded: Law,
    pub(super) embedded_max: u16,
    /// The share of new pages that are requested only once.
    pub(super) once: f64,
    /// The factor of all sizes of a page, mean 1.
    pub(super) size_factor: Law,
    /// A page whose items have more bytes than this, on average, does not become more popular by
    /// being requested.
    pub(super) popular_bytes_max: f64,
    /// The largest size, bytes.
    pub(super) size_max: f64,
}

/// Requests to one of the two classes of sites.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Class {
    /// The share of all requests.
    pub(super) share: f64,
    /// The share of all requests that are for what was requested of this class before, all of these
    /// requests cachable.
    pub(super) hits: f64,
    /// The share of all received bytes that these have; without it, chance decides.
    pub(super) hit_bytes: Option<f64>,
    /// The share of this class's requests for what is made for each.
    pub(super) dynamic: f64,
    /// The factor of its sizes.
    pub(super) size_factor: f64,
    /// The factor of the sizes of pages that are requested once, beside that.
    pub(super) once_factor: f64,
}

/// A kind of content.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kind {
    /// The share of embedded items; the document has none.
    #[serde(default)]
    pub(super) share: f64,
    pub(super) media_type: String,
    /// The share with a `Content-Length`.
    pub(super) declared: f64,
    /// Bytes with a `Content-Length`.
    pub(super) size: Law,
    /// Bytes without.
    pub(super) size_undeclared: Law,
}

/// A kind of target that is made for each request.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Dynamic {
    /// Of all requests, percent.
    pub(super) share: f64,
    #[serde(default)]
    pub(super) query: bool,
    #[serde(default)]
    pub(super) cgi_bin: bool,
    #[serde(default)]
    pub(super) post: bool,
    /// Directives of the response's `Cache-Control`.
    #[serde(default)]
    pub(super) directives: String,
}

/// What requests say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asks {
    /// The share of requests with `Cache-Control: no-cache` and `Pragma: no-cache`.
    pub(super) reload: f64,
    /// The share of requests with `Authorization`.
    pub(super) authorization: f64,
    /// The share of targets with `?`, dynamic ones apart.
    #[serde(default)]
    pub(super) query: f64,
    /// The share of requests, among those for what was requested before and has a validator, with a
    /// precondition.
    #[serde(default)]
    pub(super) conditional: f64,
    /// The share of those that are answered 304, with `Last-Modified` only, and with an entity tag.
    #[serde(default)]
    pub(super) not_modified: [f64; 2],
    /// Shares of HTTP versions; they add up to 1.
    pub(super) versions: Vec<Version>,
}

/// A version of HTTP.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Version {
    pub(super) version: String,
    pub(super) share: f64,
}

/// What responses say.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Says {
    pub(super) scheme: String,
    /// The share of the pages of cookie sites that are the first there for their client: no
    /// `Cookie` yet, and a `Set-Cookie`.
    #[serde(default)]
    pub(super) first_visit: f64,
    /// The share of targets with `Set-Cookie`.
    #[serde(default)]
    pub(super) set_cookie: f64,
    pub(super) validators: Validators,
    /// How long before the trace a representation was modified, seconds.
    pub(super) age: Law,
    /// `Cache-Control` and `Expires` of what is not dynamic; shares that add up to 1, or nothing.
    #[serde(default)]
    pub(super) cache_control: Vec<CacheControl>,
    /// Seconds of the lifetimes that they give.
    #[serde(default = "no_time")]
    pub(super) lifetime: Law,
    #[serde(default)]
    pub(super) vary: Vec<Vary>,
}

/// How transfers end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ends {
    /// The share of responses with `Content-Length` that are aborted.
    pub(super) aborted: f64,
    /// The odds of it are 1 at this size, bytes,
    pub(super) even_bytes: f64,
    /// and grow with the size to this power.
    pub(super) slope: f64,
    /// The mean share of an aborted response that was received.
    pub(super) received: f64,
    /// The share of responses with `Content-Length` that are longer,
    pub(super) overlong: f64,
    /// and by which factor.
    pub(super) overlong_factor: f64,
    /// The share of requests on connections that persist.
    pub(super) persistent: f64,
}

impl Profile {
    /// The one that comes with the program under this name.
    pub(crate) fn built_in(name: &str) -> Option<Self> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        Some(toml::from_str(text).expect("a test reads every profile that is built in"))
    }

    /// The names of those that come with the program.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The class that sends cookies, or the other.
    pub(super) const fn class(&self, has_cookies: bool) -> &Class {
        if has_cookies {
            &self.cookie
        } else {
            &self.plain
        }
    }

    /// The share of a class's cachable requests that are for what was requested before: what
    /// remains of it without the requests that are dynamic, reload or are authorised.
    pub(super) fn usual_hits(&self, has_cookies: bool) -> f64 {
        let class = self.class(has_cookies);
        let marked = self.asks.reload + self.asks.authorization;
        class.hits / (class.share * (1.0 - class.dynamic) * (1.0 - marked))
    }

    /// How many servers a class has.
    pub(super) fn servers(&self, has_cookies: bool) -> u32 {
        whole((f64::from(self.sites.servers) * self.class(has_cookies).share).max(1.0))
    }

    /// The share of each kind of dynamic request in all of them.
    pub(super) fn dynamic_shares(&self) -> impl Iterator<Item = f64> {
        let whole: f64 = self.dynamic.iter().map(|dynamic| dynamic.share).sum();
        self.dynamic
            .iter()
            .map(move |dynamic| dynamic.share / whole)
    }

    /// Requests a page, on average.
    pub(super) fn requests_a_page(&self) -> f64 {
        let dynamic =
            self.plain.share * self.plain.dynamic + self.cookie.share * self.cookie.dynamic;
        // rounding down costs half an item
        let embedded = self.pages.embedded.mean().unwrap_or(0.0) - 0.5;
        (1.0 + embedded.max(0.0)) / (1.0 - dynamic)
    }
}

fn no_time() -> Law {
    "0".parse().expect("a number is a law")
}

const BUILT_IN: [(&str, &str); 3] = [
    ("modem-1997", include_str!("../profiles/modem-1997.toml")),
    (
        "research-1997",
        include_str!("../profiles/research-1997.toml"),
    ),
    ("web-2026", include_str!("../profiles/web-2026.toml")),
];
