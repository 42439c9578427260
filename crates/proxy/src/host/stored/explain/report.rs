//! What is said of a request that is explained. The names are those of the JSON form
//! (docs/reference/explain.md).

use crate::cluster::report::RouteReport;
use serde::Serialize;
use weir_measure::live::ListenerCertificate;

/// The version of the JSON form: keys are added under the same one.
pub const EXPLAIN_VERSION: u32 = 2;

/// What would become of a request now, why, and what is stored for its target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// [`EXPLAIN_VERSION`].
    pub version: u32,
    /// The request.
    pub request: RequestReport,
    /// What would become of it.
    pub outcome: OutcomeReport,
    /// What the decision looks at, in its order.
    pub inputs: Vec<InputReport>,
    /// The rules of the operator that are for it, in their order.
    pub rules: Vec<RuleUse>,
    /// The modules that would be called for it, and may change any of this.
    pub modules: Vec<String>,
    /// Whether the response to it could be stored, if it is forwarded.
    pub storing: Option<StoringForecast>,
    /// Why the last responses for its URL were not stored, if it is forwarded; the latest first.
    pub not_stored: Vec<NotStoredReport>,
    /// Where it would be sent, if it is forwarded.
    pub next_hop: Option<RouteReport>,
    /// Why that cannot be said: no route is for it.
    pub next_hop_problem: Option<String>,
    /// The certificates that clients of its host may get, best first: by `https` at a gateway.
    pub certificates: Vec<ListenerCertificate>,
    /// That none of these is for its host.
    pub certificate_problem: Option<String>,
    /// What is stored for its target.
    pub stored: Vec<StoredReport>,
    /// Further variants may be on disk alone.
    pub may_be_more_on_disk: bool,
    /// Whether values of fields are shown that may be of one user, and not as hashes.
    pub values_shown: bool,
}

/// The request that is explained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestReport {
    /// Its method.
    pub method: String,
    /// Its target URI, after rules have changed it for the cache key.
    pub url: String,
    /// The mode of the listener that receives it: `forward` or `gateway`.
    pub mode: &'static str,
    /// That listener, if there is one.
    pub listener: Option<String>,
    /// The client that sends it.
    pub client: String,
    /// The names of its fields.
    pub fields: Vec<String>,
}

/// What would become of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutcomeReport {
    /// `hit`, `validated`, `completed`, `fetched`, `passed`, `refused`, `denied`, `error` if the
    /// next hop cannot be used, or `unknown` if modules decide.
    pub word: &'static str,
    /// The word of the access log: `hit`, `uri-miss`, `stale` and so on.
    pub verdict: &'static str,
    /// The finer reason, as in the detail of `Cache-Status`.
    pub detail: Option<&'static str>,
    /// What `Cache-Status` says so far.
    pub cache_status: String,
    /// For how long the response is still fresh, seconds; negative if it is stale.
    pub fresh_for_s: Option<i64>,
    /// It is validated in the background, too.
    pub refreshes: bool,
    /// The status of an answer of the proxy's own.
    pub status: Option<u16>,
    /// What that says.
    pub text: Option<String>,
}

/// One input of the decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputReport {
    /// What is looked at, in the words of the RFC.
    pub name: &'static str,
    /// What it is.
    pub value: String,
    /// Where the RFC says so, or the key of the configuration.
    pub section: &'static str,
    /// It decides.
    pub decides: bool,
}

/// A rule of the operator that is for the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleUse {
    /// Its place among the `[[rule]]` tables, from 0, as paths of the configuration have it.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// The line of the configuration file, if it is of one.
    pub line: Option<u32>,
    /// The actions that it decides.
    pub decides: Vec<&'static str>,
    /// Its other actions: an earlier rule decides them, they are not for the response that is
    /// stored, or have no part in what becomes of the request.
    pub others: Vec<&'static str>,
}

/// Whether a response to the request could be stored, as far as that is known without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoringForecast {
    /// `yes` if it permits that, `if-shared` if it says that it may be shared, `no`.
    pub word: &'static str,
    /// Why not, or not without that, in the words of `Cache-Status`.
    pub reason: Option<&'static str>,
    /// Where the RFC says so.
    pub section: Option<&'static str>,
}

/// A reason for which responses to requests for the URL were not stored, of the requests that are
/// remembered as `GET /misses` shows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotStoredReport {
    /// The reason, in the words of `Cache-Status`.
    pub reason: &'static str,
    /// What it means.
    pub about: &'static str,
    /// How many responses it is of.
    pub requests: usize,
    /// The status of the latest of them.
    pub status: u16,
}

/// A stored response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredReport {
    /// The request selects it.
    pub selected: bool,
    /// The names of the request fields that select it (`Vary`).
    pub vary: Vec<String>,
    /// What these fields were in the request that it answered, as a hash.
    pub vary_hash: Option<String>,
    /// Its status.
    pub status: u16,
    /// Where its content is read: `memory` or `disk`.
    pub place: &'static str,
    /// Whether the disk has it, too.
    pub on_disk: bool,
    /// Bytes of its content that are stored.
    pub stored_bytes: u64,
    /// All bytes of its content, if that is known.
    pub complete_bytes: Option<u64>,
    /// `current_age` (RFC 9111 section 4.2.3), seconds.
    pub age_s: u32,
    /// `freshness_lifetime` (section 4.2.1) as it is used now, seconds.
    pub lifetime_s: u32,
    /// What gives that: `s-maxage`, `max-age`, `expires`, `heuristic`, `assigned`, `none`, `rule`,
    /// or `changed` if it is not what its fields give now.
    pub lifetime_by: &'static str,
    /// The field that it stands in, if that is a targeted one (RFC 9213).
    pub lifetime_field: Option<String>,
    /// The rule that gives it, or gave it, by its number.
    pub lifetime_rule: Option<usize>,
    /// For how long it is still fresh, seconds; negative if it is stale.
    pub fresh_for_s: i64,
    /// It is validated before each use (section 5.2.2.4).
    pub no_cache: bool,
    /// It is not served stale (section 5.2.2.2).
    pub must_revalidate: bool,
    /// Its window of RFC 5861 section 3 as it is used now, seconds.
    pub stale_while_revalidate_s: Option<u32>,
    /// Its window of RFC 5861 section 4 as it is used now, seconds.
    pub stale_if_error_s: Option<u32>,
    /// The value of ETag that it is validated by.
    pub entity_tag: Option<String>,
    /// Whether that is a strong one.
    pub is_strong: bool,
    /// The value of Last-Modified.
    pub last_modified: Option<String>,
    /// What is to be known of it beside: the words of [`Mark`].
    pub marks: Vec<&'static str>,
    /// The directives that a rule had ignored when it was stored.
    pub ignored: Vec<&'static str>,
    /// Its fields: the first 64.
    pub fields: Vec<FieldReport>,
    /// How many there are beyond these.
    pub fields_left_out: usize,
}

/// A field of a stored response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldReport {
    /// Its name.
    pub name: String,
    /// Its value, or `hash:` and what is the same for equal values as long as the proxy runs.
    pub value: String,
}

weir_semantics::words! {
    /// What is to be known of a stored response beside what its fields say.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Mark {
        /// It answered a request with Authorization, and is shared as it permits itself (RFC 9111
        /// section 3.5).
        Authorization = "authorization",
        /// It sets a cookie, and is shared as it permits itself (section 7.3).
        SetCookie = "set-cookie",
        /// A rule has it stored against what it says, or its request.
        ByRule = "by-rule",
        /// A rule that is gone had it stored: it answers no request.
        LacksRule = "lacks-rule",
        /// It may have been purged, and is validated before its next use.
        MayBePurged = "may-be-purged",
        /// Some of its content is missing (section 3.3).
        Part = "part",
        /// Modules have changed its content.
        Transformed = "transformed",
        /// It is stored for the modules that change responses before they are stored.
        OfModules = "modules",
        /// It is stored for the host and protocol that a trusted proxy may have named.
        Forwarded = "forwarded",
    }
}
