//! Traces from seeds: few targets, clients and seconds, so that everything meets everything else.

use crate::conditions::Conditions;
use std::collections::BTreeMap;
use weir_policy::Profile;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::AbortPolicy;
use weir_trace::{AbortedBy, RequestBit, ResponseBit, Row, TraceMethod};
use weir_workload::{Chance, mix};

/// 2026-01-01 00:00:00 GMT: when every trace begins.
pub(crate) const START_S: i64 = 1_767_225_600;

/// Round trip to servers, microseconds: about that of a connection within a machine. Not none: what
/// a new connection costs is weighed by it.
const SERVER_RTT_US: u64 = 100;

/// Servers of a trace.
pub(crate) const SERVERS: u64 = 2;

/// A trace, and under what it is run.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) conditions: Conditions,
    pub(crate) rows: Vec<Row>,
    /// Length of each target's representations.
    pub(crate) lengths: BTreeMap<u64, u64>,
}

impl Trace {
    /// The trace of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let mut chance = Chance::new(seed, 0);
        let kind = Kind::ALL[usize::try_from(seed % Kind::ALL.len() as u64).expect("few")];
        let mut maker = Maker::new(kind, &mut chance);
        let conditions = maker.conditions();
        let count = 25 + maker.chance.below(30);
        let mut rows: Vec<Row> = (0..count).map(|_| maker.row()).collect();
        rows.extend(maker.questions());
        let lengths = maker
            .targets
            .iter()
            .map(|target| (target.number, target.length));
        Self {
            conditions,
            rows,
            lengths: lengths.collect(),
        }
    }

    /// The same under these rules of an operator.
    pub(crate) fn ruled_by(mut self, rules: &'static str) -> Self {
        self.conditions.rules = rules;
        self
    }

    /// When its first request comes, milliseconds since 1970.
    pub(crate) fn begin_ms(&self) -> u64 {
        let first = self.rows.first().map_or(0, |row| row.arrival_us);
        u64::try_from(first / 1000).expect("after 1970")
    }

    /// Whole length of what a row is of; what answers an unsafe request has its own.
    pub(crate) fn length_of(&self, row: &Row) -> u64 {
        match row.method {
            Some(TraceMethod::Get | TraceMethod::Head) | None => {
                let of_error = row.declared_bytes.filter(|_| is_error(row.status));
                of_error.unwrap_or_else(|| self.lengths.get(&row.target).copied().unwrap_or(0))
            }
            Some(_) => row.declared_bytes.unwrap_or(0),
        }
    }
}

/// A failure of the moment, not what is at the target.
fn is_error(status: Option<u16>) -> bool {
    matches!(status, Some(500 | 503))
}

/// What a trace is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Storing, freshness, validation, Vary, what may not be stored.
    Caching,
    /// A cache that is too small.
    Eviction,
    /// One response for many, clients that leave, ranges and parts.
    Sharing,
    /// The rules of 1998.
    Old,
}

impl Kind {
    /// As often as they are worth.
    const ALL: [Self; 8] = [
        Self::Caching,
        Self::Sharing,
        Self::Eviction,
        Self::Sharing,
        Self::Caching,
        Self::Sharing,
        Self::Eviction,
        Self::Old,
    ];
}

/// Something that can be asked for.
#[derive(Clone, Debug)]
struct Target {
    number: u64,
    length: u64,
    status: u16,
    validators: Validators,
    is_varying: bool,
    is_star: bool,
    directives: u32,
    max_age_s: Option<u32>,
    s_maxage_s: Option<u32>,
    while_revalidate_s: Option<u32>,
    if_error_s: Option<u32>,
    expires_in_s: Option<i64>,
    has_age: bool,
    has_date: bool,
    /// Seconds after which it is another one; 0: never.
    period_s: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Validators {
    Strong,
    Weak,
    Modified,
    Both,
    None,
}

/// Makes rows.
struct Maker<'a> {
    kind: Kind,
    chance: &'a mut Chance,
    targets: Vec<Target>,
    at_ms: i64,
}

/// Content that takes as much of a cache as memory is really set aside for it: blocks of 64 KiB
/// with their counts. So that the cache that counts allocations, and the one that counts bytes,
/// agree on who fits.
const UNIT_BYTES: u64 = 64 * 1024 - 16;

impl<'a> Maker<'a> {
    fn new(kind: Kind, chance: &'a mut Chance) -> Self {
        let count = match kind {
            Kind::Eviction => 14 + chance.below(10),
            Kind::Sharing => 3 + chance.below(4),
            Kind::Caching | Kind::Old => 6 + chance.below(6),
        };
        let targets = (1..=count).map(|number| Target::of(kind, number, chance));
        let targets = targets.collect();
        Self {
            kind,
            chance,
            targets,
            at_ms: 0,
        }
    }

    fn conditions(&mut self) -> Conditions {
        let chance = &mut *self.chance;
        // GreedyDual-Size goes by each byte, and real heads are not as long as simulated ones
        let kinds = EvictionKind::ALL.into_iter();
        let kinds: Vec<_> = kinds.filter(|kind| *kind != EvictionKind::Gds).collect();
        let drawn = usize::try_from(chance.below(kinds.len() as u64));
        let eviction = kinds[drawn.expect("a place among them")];
        let abort = match (self.kind, chance.below(6)) {
            // what is left of a response in part is no whole unit
            (Kind::Eviction, _) | (_, 0) => AbortPolicy::Finish,
            (_, 1) => AbortPolicy::Stop,
            (_, 2) => AbortPolicy::SQUID,
            (_, 3) => AbortPolicy::Squid {
                min_bytes: 4096,
                max_bytes: 100_000,
                pct: 50,
            },
            _ => AbortPolicy::VALUE,
        };
        Conditions {
            profile: if self.kind == Kind::Old {
                Profile::Http1998
            } else {
                Profile::Rfc9111
            },
            eviction,
            cache_bytes: match self.kind {
                Kind::Eviction => 16 * UNIT_BYTES + UNIT_BYTES / 2 + 16_384,
                _ => 64 << 20,
            },
            abort,
            background_bytes_s: if self.kind != Kind::Eviction && chance.is(0.1) {
                0
            } else {
                1 << 30
            },
            // with less, a connection whose window the kernel had opened further is not used again
            read_ahead_bytes: [262_144, 1 << 20, 4 << 20]
                [usize::try_from(chance.below(3)).expect("three")],
            internet_bits_s: match self.kind {
                Kind::Sharing => 800_000 << chance.below(3),
                Kind::Caching | Kind::Eviction | Kind::Old => 8_000_000 << chance.below(6),
            },
            server_idle_ms: 1000 << chance.below(5),
            rules: "[]",
        }
    }

    fn row(&mut self) -> Row {
        let gaps = match self.kind {
            Kind::Sharing => [0, 0, 10, 50, 200, 400, 1000, 3000],
            _ => [0, 10, 50, 200, 1000, 2000, 5000, 17_000],
        };
        self.at_ms += gaps[usize::try_from(self.chance.below(8)).expect("eight")];
        let count = self.targets.len() as u64;
        // the first ones more often
        let place = self.chance.below(count).min(self.chance.below(count));
        let target = self.targets[usize::try_from(place).expect("few")].clone();
        let mut row = target.row(self.at_ms, 1 + self.chance.below(2));
        row.client = Some(1 + self.chance.below(4));
        let thinks = [0, 20, 100, 500, 1500];
        let think = thinks[usize::try_from(self.chance.below(5)).expect("five")];
        row.next_hop_response_us = Some(think * 1000 + SERVER_RTT_US);
        self.set_request(&mut row);
        match self.chance.below(100) {
            0..=4 => self.make_unsafe(&mut row),
            5..=8 => make_bare(&mut row),
            // parts are no whole units
            9..=24 if target.status == 200 && self.kind != Kind::Eviction => {
                self.make_ranged(&mut row, &target);
            }
            25..=36 if target.status == 200 => self.make_conditional(&mut row, &target),
            _ => {}
        }
        self.make_trouble(&mut row);
        row
    }

    fn set_request(&mut self, row: &mut Row) {
        let is_old = self.kind == Kind::Old;
        row.has_cookie = Some(self.chance.is(if is_old { 0.1 } else { 0.02 }));
        row.has_authorization = Some(self.chance.is(0.04));
        let mut bits = 0;
        let odds = [
            (RequestBit::NoCache, 0.04),
            (RequestBit::NoStore, 0.02),
            (RequestBit::OnlyIfCached, 0.02),
            (RequestBit::MaxStale, 0.03),
            (RequestBit::MinFresh, 0.02),
            (RequestBit::MaxAge, 0.04),
            (RequestBit::PragmaNoCache, 0.02),
        ];
        for (bit, share) in odds {
            if self.chance.is(share) {
                bits |= bit.bit();
            }
        }
        if bits & RequestBit::MaxAge.bit() != 0 {
            let seconds = u32::try_from(self.chance.below(8)).expect("few");
            row.request_max_age_s = Some(seconds);
        }
        row.request_directives = Some(bits);
    }

    fn make_unsafe(&mut self, row: &mut Row) {
        let methods = [TraceMethod::Post, TraceMethod::Put, TraceMethod::Delete];
        let method = methods[usize::try_from(self.chance.below(3)).expect("three")];
        let statuses = [200, 200, 204, 404, 500];
        let status = statuses[usize::try_from(self.chance.below(5)).expect("five")];
        row.method = Some(method);
        row.status = Some(status);
        let bytes = if status == 204 { 0 } else { 20 };
        row.declared_bytes = Some(bytes);
        row.received_bytes = Some(bytes);
        row.request_content_bytes = Some(if method == TraceMethod::Post { 10 } else { 0 });
    }

    fn make_ranged(&mut self, row: &mut Row, target: &Target) {
        if target.length < 4 {
            return;
        }
        let first = self.chance.below(target.length - 1);
        let is_open = self.chance.is(0.4);
        let last = if is_open {
            target.length - 1
        } else {
            first + self.chance.below(target.length - first)
        };
        row.range_first = Some(first);
        row.range_last = (!is_open).then_some(last);
        row.status = Some(206);
        row.declared_bytes = Some(last + 1 - first);
        row.received_bytes = row.declared_bytes;
        row.complete_bytes = Some(target.length);
    }

    fn make_conditional(&mut self, row: &mut Row, target: &Target) {
        let bit = match target.validators {
            Validators::Strong | Validators::Weak | Validators::Both => RequestBit::IfNoneMatch,
            // who has an older one than ours has is told so by us and not by the origin: a trace
            // cannot say it
            Validators::Modified if target.period_s == 0 => RequestBit::IfModifiedSince,
            Validators::Modified | Validators::None => return,
        };
        row.request_directives = Some(row.request_directives.unwrap_or(0) | bit.bit());
        if self.chance.is(0.5) {
            row.status = Some(304);
            row.declared_bytes = None;
            row.received_bytes = Some(0);
        }
    }

    /// The origin is in trouble, or the client leaves.
    fn make_trouble(&mut self, row: &mut Row) {
        let is_safe = matches!(row.method, Some(TraceMethod::Get | TraceMethod::Head));
        if is_safe && self.chance.is(0.06) {
            row.status = Some(if self.chance.is(0.5) { 503 } else { 500 });
            let bytes = if row.method == Some(TraceMethod::Head) {
                0
            } else {
                30
            };
            row.declared_bytes = Some(30);
            row.received_bytes = Some(bytes);
            row.complete_bytes = None;
            forget_fields(row);
            return;
        }
        if is_safe && self.chance.is(0.04) {
            row.status = None;
            row.aborted_by = Some(AbortedBy::Server);
            return;
        }
        let bytes = row.declared_bytes.unwrap_or(0);
        let is_get = row.method == Some(TraceMethod::Get) && bytes > 0;
        let leaves = if self.kind == Kind::Sharing {
            0.3
        } else {
            0.06
        };
        if is_get && self.chance.is(leaves) {
            row.aborted_by = Some(AbortedBy::Client);
            row.received_bytes = Some(self.chance.below(bytes));
        } else if is_get && self.kind != Kind::Eviction && self.chance.is(0.04) {
            row.aborted_by = Some(AbortedBy::Server);
            row.received_bytes = Some(self.chance.below(bytes));
        }
    }

    /// What is there at the end: everything is asked for once more, if it is stored.
    fn questions(&mut self) -> Vec<Row> {
        self.at_ms += 100_000;
        let mut rows = Vec::new();
        for target in self.targets.clone() {
            let variants = if target.is_varying { 2 } else { 1 };
            for variant in 1..=variants {
                self.at_ms += 100;
                let mut row = target.row(self.at_ms, variant);
                row.client = Some(9);
                let bits = RequestBit::OnlyIfCached.bit() | RequestBit::MaxStale.bit();
                row.request_directives = Some(bits);
                rows.push(row);
            }
        }
        rows
    }
}

/// An error says nothing about the representation.
fn forget_fields(row: &mut Row) {
    row.etag = None;
    row.last_modified_s = None;
    row.expires_s = None;
    row.max_age_s = None;
    row.s_maxage_s = None;
    row.stale_while_revalidate_s = None;
    row.stale_if_error_s = None;
    row.has_set_cookie = Some(false);
    row.response_directives = Some(0);
    row.vary = Some(Row::VARY_NONE);
}

fn make_bare(row: &mut Row) {
    row.method = Some(TraceMethod::Head);
    row.received_bytes = Some(0);
}

impl Target {
    fn of(kind: Kind, number: u64, chance: &mut Chance) -> Self {
        let mut pick = |of: &[u32]| {
            let place = chance.below(of.len() as u64);
            of[usize::try_from(place).expect("few")]
        };
        let is_sharing = kind == Kind::Sharing;
        let length = match kind {
            Kind::Eviction => u64::from(pick(&[1, 1, 1, 2, 2, 3, 9])) * UNIT_BYTES,
            Kind::Sharing => u64::from(pick(&[900, 20_000, 70_000, 130_000, 300_000])),
            Kind::Caching | Kind::Old => u64::from(pick(&[1, 300, 1100, 5000, 30_000])),
        };
        let status = if is_sharing || kind == Kind::Eviction {
            200
        } else {
            pick(&[200, 200, 200, 200, 200, 200, 404, 301, 302, 410])
        };
        let validators = match pick(&[0, 0, 0, 1, 2, 3, 4]) {
            0 => Validators::Strong,
            1 => Validators::Weak,
            2 => Validators::Modified,
            3 => Validators::Both,
            _ => Validators::None,
        };
        let mut target = Self {
            number,
            length,
            status: u16::try_from(status).expect("a status"),
            validators,
            is_varying: pick(&[0, 0, 0, 1]) == 1,
            is_star: false,
            directives: 0,
            max_age_s: None,
            s_maxage_s: None,
            while_revalidate_s: None,
            if_error_s: None,
            expires_in_s: None,
            has_age: pick(&[0, 0, 0, 0, 0, 1]) == 1,
            has_date: pick(&[0, 1]) == 1,
            period_s: i64::from(pick(&[0, 0, 7, 25, 60])),
        };
        target.set_lifetime(&mut pick);
        if kind == Kind::Old && pick(&[0, 0, 1]) < 1 {
            target.forget_directives();
        }
        target
    }

    /// How long it is fresh, and what else it says of caches; most are simple.
    fn set_lifetime(&mut self, pick: &mut impl FnMut(&[u32]) -> u32) {
        let seconds = pick(&[1, 3, 8, 20, 100]);
        match pick(&[0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]) {
            0 => self.max_age_s = Some(seconds),
            1 => self.s_maxage_s = Some(seconds),
            2 => self.expires_in_s = Some(i64::from(seconds)),
            3 => self.while_revalidate_s = Some(5),
            4 => self.if_error_s = Some(20),
            5 => self.directives = ResponseBit::NoCache.bit(),
            6 => self.directives = ResponseBit::MustRevalidate.bit(),
            7 => self.directives = ResponseBit::Public.bit(),
            8 => self.directives = ResponseBit::NoStore.bit(),
            9 => self.directives = ResponseBit::Private.bit(),
            10 => self.is_star = pick(&[0, 1]) == 1,
            // heuristic, if it has a Last-Modified
            _ => {}
        }
        let is_explicit = self.directives & ResponseBit::MustRevalidate.bit() != 0
            || self.while_revalidate_s.is_some()
            || self.if_error_s.is_some();
        if is_explicit {
            self.max_age_s = Some(seconds);
        }
    }

    fn forget_directives(&mut self) {
        self.directives = 0;
        self.max_age_s = None;
        self.s_maxage_s = None;
        self.expires_in_s = None;
        self.while_revalidate_s = None;
        self.if_error_s = None;
    }

    /// All that it says in Cache-Control, as bits.
    fn said(&self) -> u32 {
        let lifetimes = [
            (self.max_age_s, ResponseBit::MaxAge),
            (self.s_maxage_s, ResponseBit::SMaxAge),
            (self.while_revalidate_s, ResponseBit::StaleWhileRevalidate),
            (self.if_error_s, ResponseBit::StaleIfError),
        ];
        let said = lifetimes.iter().filter(|(seconds, _)| seconds.is_some());
        said.fold(self.directives, |bits, (_, bit)| bits | bit.bit())
    }

    /// A GET of it, answered.
    fn row(&self, at_ms: i64, variant: u64) -> Row {
        let now_s = START_S + at_ms / 1000;
        let version = if self.period_s == 0 {
            0
        } else {
            at_ms / 1000 / self.period_s
        };
        let variant = if self.is_varying { variant } else { 0 };
        let version_bits = u64::try_from(version).expect("not negative");
        let tag = mix(self.number ^ mix(version_bits ^ mix(variant)));
        let is_tagged = matches!(
            self.validators,
            Validators::Strong | Validators::Weak | Validators::Both
        );
        let is_modified = matches!(self.validators, Validators::Modified | Validators::Both);
        Row {
            arrival_us: START_S * 1_000_000 + at_ms * 1000,
            next_hop_setup_us: Some(SERVER_RTT_US),
            server: Some(self.number % SERVERS),
            target: self.number,
            method: Some(TraceMethod::Get),
            status: Some(self.status),
            has_query: Some(self.number % 7 == 3),
            has_cgi_bin: Some(self.number % 11 == 5),
            variant: Some(variant),
            vary: Some(match (self.is_star, self.is_varying) {
                (true, _) => Row::VARY_ALL,
                (false, true) => 1,
                (false, false) => Row::VARY_NONE,
            }),
            response_directives: Some(self.said()),
            max_age_s: self.max_age_s,
            s_maxage_s: self.s_maxage_s,
            stale_while_revalidate_s: self.while_revalidate_s,
            stale_if_error_s: self.if_error_s,
            expires_s: self.expires_in_s.map(|seconds| now_s + seconds),
            date_s: self.has_date.then_some(now_s),
            age_s: self.has_age.then_some(1),
            etag: is_tagged.then_some(tag),
            etag_is_weak: is_tagged.then_some(self.validators == Validators::Weak),
            last_modified_s: is_modified.then_some(START_S - 100_000 + version * 10),
            has_set_cookie: Some(self.number % 13 == 6),
            declared_bytes: Some(self.length),
            received_bytes: Some(self.length),
            response_head_bytes: Some(300),
            request_directives: Some(0),
            is_persistent_client: Some(true),
            is_persistent_server: Some(true),
            aborted_by: Some(AbortedBy::Neither),
            ..Row::default()
        }
    }
}
