//! What a row of a trace says to a cache and to the network; and what is assumed where it says
//! nothing.
//!
//! The live proxy gathers its facts from field lines. A row has them already
//! ([`Row::request_facts_by`], [`Row::response_facts_by`]); what the network wants to know beside
//! them is here.

mod assumed;

pub use assumed::{Assumption, Assumptions};

use crate::hashing::mix;
use crate::network::server_times::{response_time, setup};
use crate::rules::Ruled;
use crate::world::Nanos;
use weir_policy::rule::RuleSet;
use weir_semantics::{
    DeltaSeconds, Fits, Method, RequestFacts, ResponseFacts, is_heuristically_cacheable,
};
use weir_trace::{AbortedBy, Row, TraceVersion};

/// One request as it is simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) client: u64,
    pub(crate) server: u64,
    pub(crate) target: u64,
    /// What its nominated fields come to (RFC 9111 §4.1); 0 where the response varies on nothing.
    pub(crate) variant: u64,
    /// The set of nominated fields; [`Row::VARY_NONE`] and [`Row::VARY_ALL`] are two of them.
    pub(crate) vary: u64,
    pub(crate) request: RequestFacts,
    /// What the origin answered to this request in the trace.
    pub(crate) response: ResponseFacts,
    pub(crate) validators: Validators,
    /// The request asks for this part: first byte, and the last if that is said.
    pub(crate) range: Option<(u64, Option<u64>)>,
    /// Content of the response, had it come to its end.
    pub(crate) content_bytes: u64,
    /// Length of the whole representation, as far as the trace tells.
    pub(crate) whole_bytes: Option<u64>,
    /// The client disconnects when it has so many bytes of content.
    pub(crate) leaves_at: Option<u64>,
    /// The server breaks off after so many.
    pub(crate) cut_at: Option<u64>,
    pub(crate) head_bytes: u32,
    /// From SYN to SYN-ACK between the client and the server.
    pub(crate) setup: Option<Nanos>,
    /// From request to response at the same place.
    pub(crate) response_time: Option<Nanos>,
    /// The server never answered.
    pub(crate) fails: bool,
    /// The request has content: no other request is answered with its response.
    pub(crate) has_content: bool,
    /// What rules of the operator say of it.
    pub(crate) ruled: Ruled,
    /// Whether the trace's connections lived on: the client's, the server's.
    pub(crate) persistent: (bool, bool),
}

/// What tells one representation from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    pub(crate) etag: Option<u64>,
    pub(crate) etag_is_weak: bool,
    pub(crate) last_modified_s: Option<i64>,
    /// They are of a head that the trace tells, and of a whole response: what is not here there is
    /// not.
    pub(crate) are_all: bool,
}

impl Validators {
    /// Whether the origin would say that what has `self` is what it has now, which has `other`. A
    /// validator that is not known decides nothing, and one that is known not to be there any more
    /// cannot be met (RFC 9110 §13.1.2, §13.1.3); entity tags come first (RFC 9110 §13.2.2).
    pub(crate) fn still_hold(self, other: Self) -> bool {
        match (self.etag, other.etag) {
            (Some(ours), Some(theirs)) => ours == theirs,
            (Some(_), None) if other.are_all => false,
            _ => match (self.last_modified_s, other.last_modified_s) {
                (Some(ours), Some(theirs)) => ours == theirs,
                (Some(_), None) => !other.are_all,
                _ => true,
            },
        }
    }

    /// Whether a 304 with `update` is about what has `self`: as
    /// `weir_semantics::StoredValidators::validated_by` says it of field lines.
    pub(crate) fn validated_by(self, update: Self) -> Fits {
        let is_same = match (self.etag, update.etag) {
            (_, None) => match (self.last_modified_s, update.last_modified_s) {
                (_, None) => true,
                (Some(ours), Some(theirs)) => ours == theirs,
                (None, Some(_)) => !self.are_all,
            },
            (Some(ours), Some(theirs)) => {
                ours == theirs && (update.etag_is_weak || !self.etag_is_weak)
            }
            (None, Some(_)) => !self.are_all,
        };
        if is_same { Fits::Same } else { Fits::Other }
    }

    /// Whether both are the same strong entity tag (RFC 9110 §8.8.3.2).
    pub(crate) fn same_strongly(self, other: Self) -> bool {
        self.etag.is_some() && self.etag == other.etag && !self.etag_is_weak && !other.etag_is_weak
    }
}

/// The response head where the trace does not tell its length, bytes: about what servers of 1997
/// sent.
pub(crate) const HEAD_BYTES: u32 = 250;

impl Ask {
    /// What `row`, the `number`th of its trace, says; `assumed` counts what it does not.
    pub(crate) fn of(row: &Row, number: u64, assumed: &mut Assumptions) -> Self {
        let method = assumed.known(
            row.method.map(Method::from),
            Assumption::Method,
            Method::Get,
        );
        let status = assumed.known(row.status, Assumption::Status, 200);
        let content = Content::of(row, method, status, assumed);
        assumed.known(row.response_directives, Assumption::ResponseDirectives, 0);
        let by_version = !matches!(
            row.version,
            Some(TraceVersion::Http09 | TraceVersion::Http10)
        );
        let known = row.is_persistent_client.zip(row.is_persistent_server);
        let persistent = (
            row.is_persistent_client.unwrap_or(by_version),
            row.is_persistent_server.unwrap_or(by_version),
        );
        let persistent = assumed.known(known, Assumption::Persistence, persistent);
        Self {
            client: assumed.known(row.client, Assumption::Client, mix(number)),
            server: assumed.known(row.server, Assumption::Server, mix(row.target)),
            target: row.target,
            variant: variant(row, assumed),
            vary: row.vary.unwrap_or(Row::VARY_NONE),
            request: row.request_facts_by(method),
            response: row.response_facts_by(status),
            validators: Validators {
                etag: row.etag,
                etag_is_weak: row.etag_is_weak.unwrap_or(false),
                last_modified_s: row.last_modified_s,
                // a 304 may leave out what has not changed (RFC 9110 §15.4.5)
                are_all: row.response_directives.is_some() && status != 304,
            },
            range: row.range_first.map(|first| (first, row.range_last)),
            content_bytes: content.bytes,
            whole_bytes: match (status, method) {
                (206, _) => row.complete_bytes,
                (100..=199 | 204 | 304, _) => None,
                (_, Method::Head) => row.declared_bytes,
                _ => Some(content.bytes),
            },
            leaves_at: content.leaves_at,
            cut_at: content.cut_at,
            head_bytes: assumed
                .known(row.response_head_bytes, Assumption::HeadBytes, HEAD_BYTES)
                .max(1),
            setup: setup(row),
            response_time: response_time(row),
            fails: row.status.is_none() && row.aborted_by == Some(AbortedBy::Server),
            has_content: row.request_content_bytes.unwrap_or(0) > 0,
            ruled: Ruled::default(),
            persistent,
        }
    }

    /// The same under rules of the operator.
    pub(crate) fn ruled_by(mut self, rules: &RuleSet, row: &Row) -> Self {
        self.ruled = Ruled::of(rules, row, self.request.method);
        let ignored = self.ruled.ignored;
        self.ruled.sent = ignored.take_from(&mut self.request.directives);
        self
    }

    /// The same with a lifetime, if the source of its `row` knew no heads. Only where a cache may
    /// choose a lifetime (RFC 9110 §15.1).
    pub(crate) fn assuming(
        mut self,
        row: &Row,
        lifetime: Option<DeltaSeconds>,
        assumed: &mut Assumptions,
    ) -> Self {
        if !knows_no_head(row) || !is_heuristically_cacheable(self.response.status) {
            return self;
        }
        let instead = match lifetime {
            Some(_) => Assumption::Lifetime,
            None => Assumption::NoLifetime,
        };
        assumed.replace(Assumption::ResponseDirectives, instead);
        // there is no Cache-Control all the same: `any` stays false
        self.response.directives.max_age = lifetime;
        self
    }

    /// The same without cookies on either side.
    pub(crate) fn without_cookies(&self) -> Self {
        let mut ask = *self;
        ask.request.has_cookie = false;
        ask.response.has_set_cookie = false;
        ask
    }

    /// Whether it is answered without content whatever there is.
    pub(crate) fn is_bare(&self) -> bool {
        self.request.method == Method::Head
    }
}

/// Whether the source of a row knew nothing of the response's head: an access log, or a trace of
/// keys and sizes.
fn knows_no_head(row: &Row) -> bool {
    let has_lifetime = row.max_age_s.is_some() || row.s_maxage_s.is_some();
    let has_date = row.date_s.is_some() || row.expires_s.is_some() || row.age_s.is_some();
    let has_validator = row.etag.is_some() || row.last_modified_s.is_some();
    let has_rest = row.vary.is_some() || row.has_set_cookie.is_some();
    let is_known = row.response_directives.is_some();
    !(is_known || has_lifetime || has_date || has_validator || has_rest)
}

fn variant(row: &Row, assumed: &mut Assumptions) -> u64 {
    match row.vary {
        None | Some(Row::VARY_NONE) => row.variant.unwrap_or(0),
        Some(_) => assumed.known(row.variant, Assumption::Variant, 0),
    }
}

/// How much content there was, and how it ended.
struct Content {
    bytes: u64,
    leaves_at: Option<u64>,
    cut_at: Option<u64>,
}

impl Content {
    fn of(row: &Row, method: Method, status: u16, assumed: &mut Assumptions) -> Self {
        let is_bare = method == Method::Head || matches!(status, 100..=199 | 204 | 304);
        if is_bare {
            return Self {
                bytes: 0,
                leaves_at: None,
                cut_at: None,
            };
        }
        let known = row.declared_bytes.max(row.received_bytes);
        let bytes = assumed.known(known, Assumption::ContentBytes, 0);
        let received = row.received_bytes.unwrap_or(bytes);
        let is_short = received < bytes;
        let left = match row.aborted_by {
            Some(AbortedBy::Client) => true,
            Some(AbortedBy::Neither | AbortedBy::Server) => false,
            // as the paper infers it
            None => is_short,
        };
        let is_cut = row.aborted_by == Some(AbortedBy::Server);
        Self {
            bytes,
            leaves_at: (left && is_short).then_some(received),
            cut_at: (is_cut && is_short).then_some(received),
        }
    }
}

#[cfg(test)]
mod tests;
