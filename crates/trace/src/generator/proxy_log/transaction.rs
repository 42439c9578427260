//! A transaction that waits for its turn: pages are generated whole, and rows leave in order of
//! arrival.

use super::item::{Facet, kind_of};
use super::metadata::{Lifetime, Metadata};
use super::profile::Profile;
use crate::{AbortedBy, RequestBit, Row, TraceMethod, TraceVersion};
use weir_workload::{Chance, chosen, mix};

/// The kind of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resource {
    /// An item of a page.
    Item(u16),
    /// Dynamic content, by its place in the profile.
    Dynamic(u8),
}

/// Properties of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestFlags {
    pub(super) cookie: bool,
    /// The response is the one that sets the cookie.
    pub(super) first_visit: bool,
    pub(super) reload: bool,
    pub(super) authorization: bool,
    pub(super) conditional: bool,
    pub(super) not_modified: bool,
}

/// One request of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageRequest {
    pub(super) resource: Resource,
    pub(super) target: u64,
    pub(super) server: u64,
    pub(super) kind: u8,
    pub(super) bytes: u64,
    pub(super) is_declared: bool,
    pub(super) marks: RequestFlags,
}

#[derive(Clone, Debug)]
pub(super) struct Transaction {
    /// Since the trace began.
    pub(super) arrival_us: u64,
    /// The order of generation, where two arrive at once.
    pub(super) order: u64,
    pub(super) client: u64,
    /// Hash of the page.
    pub(super) page: u64,
    pub(super) request: PageRequest,
    pub(super) version: TraceVersion,
    pub(super) connection: u64,
    pub(super) sequence: u32,
    /// From SYN to SYN-ACK at the place of measurement, of a new connection. The client's own round
    /// trip comes to it until the request.
    pub(super) setup_us: Option<u64>,
    pub(super) request_us: u64,
    pub(super) response_us: u64,
    pub(super) last_byte_us: u64,
    pub(super) received: u64,
    pub(super) is_aborted: bool,
    pub(super) persists: bool,
}

impl Transaction {
    /// The row of it. What a target always says follows from the hash of its page.
    pub(super) fn row(&self, profile: &Profile, metadata: &Metadata) -> Row {
        let mut row = self.exchange(profile);
        match self.request.resource {
            Resource::Item(number) => self.describe_item(number, profile, metadata, &mut row),
            Resource::Dynamic(place) => {
                describe_dynamic(usize::from(place), profile, metadata, &mut row)
            }
        }
        let drawn = mix(self.request.target ^ mix(self.order));
        let cookie_bytes = u32::from(self.request.marks.cookie) * 64;
        row.request_head_bytes = Some(HEAD_BYTES + cookie_bytes + low(drawn, 8));
        row.response_head_bytes = Some(HEAD_BYTES + low(drawn >> 8, 7));
        row
    }

    fn exchange(&self, profile: &Profile) -> Row {
        let (request, marks) = (&self.request, self.request.marks);
        let arrival_us = i64::try_from(self.arrival_us).unwrap_or(i64::MAX);
        let directives = if marks.reload {
            RequestBit::NoCache.bit() | RequestBit::PragmaNoCache.bit()
        } else {
            0
        };
        let begins_us = profile.time.begins_s.saturating_mul(1_000_000);
        let ended = self.arrival_us + self.response_us;
        Row {
            arrival_us: begins_us.saturating_add(arrival_us),
            setup_us: self.setup_us.map(|_| self.request_us),
            request_us: Some(self.request_us),
            response_us: Some(self.response_us),
            first_byte_us: Some(self.response_us),
            last_byte_us: Some(self.last_byte_us),
            next_hop_setup_us: self.setup_us,
            next_hop_response_us: Some(self.response_us - self.request_us),
            client: Some(self.client),
            connection: Some(self.connection),
            connection_sequence: Some(self.sequence),
            server: Some(request.server),
            target: request.target,
            method: Some(TraceMethod::Get),
            scheme: crate::TraceScheme::from_word(&profile.says.scheme),
            version: Some(self.version),
            has_cookie: Some(marks.cookie && !marks.first_visit),
            has_authorization: Some(marks.authorization),
            has_query: Some(false),
            has_cgi_bin: Some(false),
            request_directives: Some(directives),
            status: Some(if marks.not_modified { 304 } else { 200 }),
            has_set_cookie: Some(marks.first_visit),
            response_directives: Some(0),
            date_s: Some(profile.time.begins_s + i64::try_from(ended / 1_000_000).unwrap_or(0)),
            vary: Some(Row::VARY_NONE),
            content_type: Some(kind_of(profile, request.kind).media_type.clone()),
            declared_bytes: request.is_declared.then_some(request.bytes),
            received_bytes: Some(self.received),
            next_hop_bytes: Some(self.received),
            request_content_bytes: Some(0),
            aborted_by: Some(if self.is_aborted {
                AbortedBy::Client
            } else {
                AbortedBy::Neither
            }),
            is_persistent_client: Some(self.persists),
            is_persistent_server: Some(self.persists),
            ..Row::default()
        }
    }

    fn describe_item(&self, number: u16, profile: &Profile, metadata: &Metadata, row: &mut Row) {
        let unit = |facet: Facet| facet.unit(self.page, number);
        let target = self.request.target;
        row.has_query = Some(unit(Facet::Query) < profile.asks.query);
        if unit(Facet::SetCookie) < profile.says.set_cookie {
            row.has_set_cookie = Some(true);
        }
        let (has_modified, has_etag) = metadata.validators.chosen(unit(Facet::Validators));
        if has_modified {
            let age = metadata.age_s(target);
            row.last_modified_s = Some(profile.time.begins_s - age);
        }
        if has_etag {
            row.etag = Some(mix(target ^ ETAG));
            row.etag_is_weak = Some(false);
        }
        if self.request.marks.conditional {
            let modified = RequestBit::IfModifiedSince.bit() * u32::from(has_modified);
            let etag = RequestBit::IfNoneMatch.bit() * u32::from(has_etag);
            row.request_directives = row.request_directives.map(|bits| bits | modified | etag);
        }
        if let Some((vary, names)) = metadata.vary(unit(Facet::Vary)) {
            row.vary = Some(vary);
            // what browsers send in these fields differs little: a few kinds of browser
            let kinds = if names.contains("User-Agent") { 32 } else { 2 };
            row.variant = Some(mix(vary ^ (mix(self.client) % kinds)));
        }
        let place = chosen(metadata.shares(), unit(Facet::CacheControl));
        if let Some(control) = place.map(|place| metadata.control(place)) {
            control.say(row, metadata.lifetime(target));
        }
    }
}

fn describe_dynamic(place: usize, profile: &Profile, metadata: &Metadata, row: &mut Row) {
    let dynamic = &profile.dynamic[place];
    row.has_query = Some(dynamic.query);
    row.has_cgi_bin = Some(dynamic.cgi_bin);
    if dynamic.post {
        row.method = Some(TraceMethod::Post);
        let mut chance = Chance::of(row.target);
        row.request_content_bytes = Some(FORM_BYTES + chance.below(FORM_BYTES * 4));
    }
    metadata.dynamic(place).say(row, Lifetime::NONE);
}

/// A request or response head without anything special; ours.
const HEAD_BYTES: u32 = 200;

/// A form that was filled in; ours.
const FORM_BYTES: u64 = 60;

/// Keeps entity tags apart from targets.
const ETAG: u64 = 0x6574_6167;

/// The lowest bits.
fn low(word: u64, bits: u32) -> u32 {
    let mask = (1_u64 << bits) - 1;
    u32::try_from(word & mask).unwrap_or(0)
}
