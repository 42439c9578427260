//! What rows say, counted.

use super::percent;
use crate::generator::measurement::figure::Quantity;
use crate::stats::{Cause, CauseSet};
use crate::{RequestBit, ResponseBit, Row, TraceMethod, TraceVersion};
use weir_measure::ratio;

/// Bits of a response's directives that do not stand in `Cache-Control`.
const NO_CACHE_CONTROL: u32 = ResponseBit::PragmaNoCache.bit() | ResponseBit::ExpiresInvalid.bit();

/// Sums over rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    rows: u64,
    causes: [u64; Cause::ALL.len()],
    uncachable: u64,
    directives: [u64; ResponseBit::ALL.len()],
    no_store_no_cache: u64,
    expires: u64,
    control: u64,
    no_control: u64,
    modified: u64,
    etag: u64,
    both: u64,
    varies: u64,
    storable: u64,
    set_cookie: u64,
    with_lifetime: u64,
    older: u64,
    ends: Ends,
    links: ConnectionCounts,
    conditional: [ConditionalCounts; 2],
}

#[derive(Clone, Debug, Default)]
struct ConditionalCounts {
    asked: u64,
    not_modified: u64,
}

#[derive(Clone, Debug, Default)]
struct Ends {
    declared: u64,
    complete: u64,
    aborted: u64,
    complete_bytes: u64,
    aborted_bytes: u64,
    aborted_received: u64,
    undeclared_bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct ConnectionCounts {
    persistent: u64,
    new: u64,
    setup_us: u64,
    half: u64,
    later_than_http1: u64,
    cookies: u64,
}

impl Tally {
    pub(super) fn add(&mut self, row: &Row, causes: CauseSet) {
        self.rows += 1;
        for (count, cause) in self.causes.iter_mut().zip(Cause::ALL) {
            *count += u64::from(causes.has(*cause));
        }
        self.uncachable += u64::from(!causes.is_empty());
        self.ends.add(row);
        self.links.add(row);
        self.condition(row);
        self.response(row);
    }

    fn response(&mut self, row: &Row) {
        let bits = row.response_directives.unwrap_or(0);
        let has = |bit: ResponseBit| bits & bit.bit() != 0;
        for (count, bit) in self.directives.iter_mut().zip(ResponseBit::ALL) {
            *count += u64::from(has(*bit));
        }
        self.no_store_no_cache += u64::from(has(ResponseBit::NoStore) && has(ResponseBit::NoCache));
        self.expires += u64::from(row.expires_s.is_some());
        self.control += u64::from(bits & !NO_CACHE_CONTROL != 0);
        self.no_control += u64::from(bits == 0 && row.expires_s.is_none());
        let (modified, etag) = (row.last_modified_s.is_some(), row.etag.is_some());
        self.modified += u64::from(modified);
        self.etag += u64::from(etag);
        self.both += u64::from(modified && etag);
        self.varies += u64::from(row.vary.is_some_and(|vary| vary != Row::VARY_NONE));
        if !has(ResponseBit::NoStore) && row.method == Some(TraceMethod::Get) {
            self.storable += 1;
            self.set_cookie += u64::from(row.has_set_cookie == Some(true));
        }
        if let (Some(max_age), Some(modified), Some(date)) =
            (row.max_age_s, row.last_modified_s, row.date_s)
            && max_age > 0
        {
            self.with_lifetime += 1;
            self.older += u64::from(date - modified > i64::from(max_age));
        }
    }

    fn condition(&mut self, row: &Row) {
        let bits = row.request_directives.unwrap_or(0);
        let has_etag = bits & RequestBit::IfNoneMatch.bit() != 0;
        if has_etag || bits & RequestBit::IfModifiedSince.bit() != 0 {
            let answered = &mut self.conditional[usize::from(has_etag)];
            answered.asked += 1;
            answered.not_modified += u64::from(row.status == Some(304));
        }
    }

    /// A quantity in its unit.
    pub(super) fn of(&self, quantity: Quantity) -> Option<f64> {
        let cause = |cause: Cause| percent(self.causes[cause as usize], self.rows);
        match quantity {
            Quantity::Cookie => cause(Cause::Cookie),
            Quantity::Query => cause(Cause::Query),
            Quantity::ClientCacheControl => cause(Cause::ClientCacheControl),
            Quantity::CgiBin => cause(Cause::CgiBin),
            Quantity::OtherMethod => cause(Cause::Method),
            Quantity::Authorization => cause(Cause::Authorization),
            Quantity::ServerCacheControl => cause(Cause::ServerCacheControl),
            Quantity::Uncachable => percent(self.uncachable, self.rows),
            Quantity::NotModified => {
                percent(self.conditional[0].not_modified, self.conditional[0].asked)
            }
            Quantity::NotModifiedEtag => {
                percent(self.conditional[1].not_modified, self.conditional[1].asked)
            }
            _ => self
                .ends
                .of(quantity, self.rows)
                .or_else(|| self.links.of(quantity, self.rows))
                .or_else(|| self.said(quantity)),
        }
    }

    /// What responses say; 304 among them, which says what the stored one says.
    fn said(&self, quantity: Quantity) -> Option<f64> {
        let responses = self.rows;
        let directive = |bit: ResponseBit| percent(self.directives[bit as usize], responses);
        match quantity {
            Quantity::CacheControl => percent(self.control, responses),
            Quantity::Expires => percent(self.expires, responses),
            Quantity::NoControl => percent(self.no_control, responses),
            Quantity::MaxAge => directive(ResponseBit::MaxAge),
            Quantity::Public => directive(ResponseBit::Public),
            Quantity::NoCache => directive(ResponseBit::NoCache),
            Quantity::MustRevalidate => directive(ResponseBit::MustRevalidate),
            Quantity::NoStore => directive(ResponseBit::NoStore),
            Quantity::NoStoreNoCache => percent(self.no_store_no_cache, responses),
            Quantity::Private => directive(ResponseBit::Private),
            Quantity::Immutable => directive(ResponseBit::Immutable),
            Quantity::StaleWhileRevalidate => directive(ResponseBit::StaleWhileRevalidate),
            Quantity::SMaxAge => directive(ResponseBit::SMaxAge),
            Quantity::LastModified => percent(self.modified, responses),
            Quantity::Etag => percent(self.etag, responses),
            Quantity::BothValidators => percent(self.both, responses),
            Quantity::NoValidator => {
                percent(responses + self.both - self.modified - self.etag, responses)
            }
            Quantity::Vary => percent(self.varies, responses),
            Quantity::SetCookie => percent(self.set_cookie, self.storable),
            Quantity::OlderThanLifetime => percent(self.older, self.with_lifetime),
            _ => None,
        }
    }
}

impl Ends {
    fn add(&mut self, row: &Row) {
        let received = row.received_bytes.unwrap_or(0);
        let Some(declared) = row.declared_bytes else {
            self.undeclared_bytes += received;
            return;
        };
        self.declared += 1;
        if received == declared {
            self.complete += 1;
            self.complete_bytes += declared;
        } else if received < declared {
            self.aborted += 1;
            self.aborted_bytes += declared;
            self.aborted_received += received;
        }
    }

    fn of(&self, quantity: Quantity, rows: u64) -> Option<f64> {
        match quantity {
            Quantity::Declared => percent(self.declared, rows),
            Quantity::Complete => percent(self.complete, self.declared),
            Quantity::Aborted => percent(self.aborted, self.declared),
            Quantity::Overlong => {
                percent(self.declared - self.complete - self.aborted, self.declared)
            }
            Quantity::CompleteBytes => ratio(self.complete_bytes, self.complete),
            Quantity::AbortedBytes => ratio(self.aborted_bytes, self.aborted),
            Quantity::ReceivedOfAborted => percent(self.aborted_received, self.aborted_bytes),
            Quantity::UndeclaredBytes => ratio(self.undeclared_bytes, rows - self.declared),
            _ => None,
        }
    }
}

impl ConnectionCounts {
    fn add(&mut self, row: &Row) {
        self.persistent += u64::from(row.is_persistent_client == Some(true));
        self.new += u64::from(row.connection_sequence == Some(1));
        if let Some(setup_us) = row.setup_us {
            self.setup_us += setup_us;
            self.half += u64::from(
                row.last_byte_us
                    .is_some_and(|last_us| setup_us * 2 >= last_us),
            );
        }
        let is_later = matches!(row.version, Some(TraceVersion::Http2 | TraceVersion::Http3));
        self.later_than_http1 += u64::from(is_later);
        self.cookies += u64::from(row.has_cookie == Some(true));
    }

    fn of(&self, quantity: Quantity, rows: u64) -> Option<f64> {
        match quantity {
            Quantity::Persistent => percent(self.persistent, rows),
            Quantity::SetupMean => ratio(self.setup_us, self.new).map(|us| us / 1e6),
            Quantity::SetupHalf => percent(self.half, self.new),
            Quantity::Http2OrLater => percent(self.later_than_http1, rows),
            Quantity::RequestCookie => percent(self.cookies, rows),
            Quantity::RequestsAConnection => ratio(rows, self.new),
            _ => None,
        }
    }
}
