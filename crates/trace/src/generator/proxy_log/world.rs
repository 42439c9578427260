//! The state that a visit to a page changes, and the transactions that it becomes.

use super::client_link::Arrival;
use super::connections::Limits;
use super::deficit::{Deficit, Mix};
use super::endings::Endings;
use super::item::{self, Item};
use super::metadata::Metadata;
use super::pages::{Page, PageNumber};
use super::profile::Profile;
use super::session::{Session, Site};
use super::site_class::SiteClass;
use super::transaction::{PageRequest, RequestFlags, Resource, Transaction};
use crate::TraceVersion;
use std::collections::BTreeMap;
use weir_workload::{Chance, mix, whole};

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) profile: Profile,
    pub(super) metadata: Metadata,
    pub(super) chance: Chance,
    /// Transactions that were generated and have not left, by arrival and number.
    pub(super) pending: BTreeMap<(u64, u64), Transaction>,
    /// Without cookies, and with.
    site_classes: [SiteClass; 2],
    classes: Mix,
    dynamics: Mix,
    versions: Mix,
    persistent: Deficit,
    endings: Endings,
    limits: Limits,
    salt: u64,
    /// How many transactions were generated.
    order: u64,
    /// How many connections were opened.
    connections: u64,
}

/// A page as one client requests it.
#[derive(Clone, Copy, Debug)]
struct Visit {
    page: Page,
    /// Hash of the page.
    hash: u64,
    /// Hash of its server.
    server: u64,
    site: Site,
    marks: RequestFlags,
    /// Requested before, all of it cachable but for cookies.
    is_hit: bool,
    size_factor: f64,
}

/// The totals of a page.
#[derive(Clone, Copy, Debug, Default)]
struct PageTotals {
    bytes: f64,
    /// Items, without what is made for each request, and their bytes.
    items: f64,
    item_bytes: f64,
}

impl PageTotals {
    fn add(&mut self, transaction: &Transaction) {
        let bytes = transaction.received as f64;
        self.bytes += bytes;
        if matches!(transaction.request.resource, Resource::Item(_)) {
            self.items += 1.0;
            self.item_bytes += bytes;
        }
    }
}

impl World {
    pub(super) fn new(profile: &Profile, requests: u64, seed: u64) -> Self {
        let clients = &profile.clients;
        Self {
            metadata: Metadata::new(profile),
            chance: Chance::new(seed, MAIN),
            pending: BTreeMap::new(),
            site_classes: [false, true].map(|has| SiteClass::new(profile, has, requests)),
            classes: Mix::new([profile.plain.share, profile.cookie.share]),
            dynamics: Mix::new(profile.dynamic_shares()),
            versions: Mix::new(profile.asks.versions.iter().map(|version| version.share)),
            persistent: Deficit::new(profile.ends.persistent),
            endings: Endings::new(&profile.ends),
            limits: Limits {
                a_server: clients.connections_a_server,
                most: clients.connections_max,
                idle_us: microseconds(clients.idle_limit_s),
            },
            salt: mix(seed),
            order: 0,
            connections: 0,
            profile: profile.clone(),
        }
    }

    /// Hash of a client.
    pub(super) fn client(&self, number: u64) -> u64 {
        self.name(Name::Client, number)
    }

    /// The session requests a page at `at_us`; returns when the last of it has arrived.
    pub(super) fn visit(&mut self, session: &mut Session, at_us: u64) -> u64 {
        let visit = self.choose(session);
        session.site = Some(visit.site);
        let asked = self.requests(&visit);
        let mut ready_us = at_us;
        let mut ends_us = at_us;
        let mut received = PageTotals::default();
        for (number, one) in asked.iter().enumerate() {
            let (transaction, end_us) = self.plan(session, &visit, one, ready_us);
            ends_us = ends_us.max(end_us);
            if number == 0 {
                // embedded items are known when the document is there
                ready_us = end_us;
            }
            received.add(&transaction);
            let place = (transaction.arrival_us, transaction.order);
            self.pending.insert(place, transaction);
        }
        self.count(&visit, asked.len() as f64, received);
        ends_us
    }

    /// Chooses a page and the properties of its requests.
    fn choose(&mut self, session: &Session) -> Visit {
        let stays = self.chance.is(self.profile.sites.stay);
        let at = session.site.filter(|_| stays);
        let has_cookies = match at {
            Some(site) => site.has_cookies,
            None => self.classes.draw(&mut self.chance) == 1,
        };
        let site_class = &mut self.site_classes[usize::from(has_cookies)];
        let mark = site_class.marks.draw(&mut self.chance);
        // a reload follows an earlier visit, and pages with a password are visited often
        let is_repeat = mark != 0 || site_class.is_repeat(&mut self.chance);
        let server = at.map(|site| site.server);
        let found = if is_repeat {
            site_class.repeat(server, &mut self.chance)
        } else {
            None
        };
        let number = match found {
            Some(number) => number,
            None => self.new_page(has_cookies, server),
        };
        self.decide_reuse(has_cookies, number, found.is_some(), mark == 0);
        let page = self.site_classes[usize::from(has_cookies)]
            .pages
            .page(number);
        let site = match session
            .site
            .filter(|site| site.has_cookies == has_cookies && site.server == page.server)
        {
            Some(site) => site,
            None => self.arrive(has_cookies, page),
        };
        let hash = self.name(Name::Page(has_cookies), u64::from(number));
        Visit {
            page,
            hash,
            server: self.name(Name::Server(has_cookies), u64::from(page.server)),
            site,
            marks: RequestFlags {
                cookie: has_cookies,
                first_visit: has_cookies && self.chance.is(self.profile.says.first_visit),
                reload: mark == 1,
                authorization: mark == 2,
                ..RequestFlags::default()
            },
            is_hit: found.is_some() && mark == 0,
            size_factor: self.size_factor(has_cookies, hash),
        }
    }

    fn new_page(&mut self, has_cookies: bool, server: Option<u32>) -> PageNumber {
        let law = &self.profile.pages;
        let drawn = law.embedded.draw(&mut self.chance);
        let embedded = whole::<u16>(drawn).min(law.embedded_max);
        let number = self.site_classes[usize::from(has_cookies)].pages.count() as u64;
        let hash = self.name(Name::Page(has_cookies), number);
        let factor = self.size_factor(has_cookies, hash);
        let bytes: f64 = (0..=embedded)
            .map(|number| Item::of(&self.profile, hash, factor, number))
            .map(|item| self.expected(item))
            .sum();
        let an_item = bytes / (f64::from(embedded) + 1.0);
        let site_class = &mut self.site_classes[usize::from(has_cookies)];
        let server = server.unwrap_or_else(|| site_class.server(&mut self.chance));
        site_class.pages.add(server, embedded, an_item)
    }

    /// Decides whether the page may be copied from now on. What was not cachable when it was
    /// requested may not: that the next request for it is a hit would not be true.
    fn decide_reuse(
        &mut self,
        has_cookies: bool,
        number: PageNumber,
        is_old: bool,
        is_cachable: bool,
    ) {
        let hash = self.name(Name::Page(has_cookies), u64::from(number));
        let law = &self.profile.pages;
        let is_once = item::is_once(&self.profile, hash);
        let pages = &mut self.site_classes[usize::from(has_cookies)].pages;
        if !is_cachable {
            return;
        }
        if !is_old {
            if !is_once {
                pages.publish(number);
            }
        } else if f64::from(pages.page(number).bytes) <= law.popular_bytes_max {
            pages.again(number);
        }
    }

    fn arrive(&mut self, has_cookies: bool, page: Page) -> Site {
        Site {
            has_cookies,
            server: page.server,
            persists: self
                .chance
                .is(self.persistent.chance(self.profile.ends.persistent)),
            version: self.versions.draw(&mut self.chance),
        }
    }

    fn expected(&self, item: Item) -> f64 {
        if item.is_declared {
            self.endings.expected(item.bytes)
        } else {
            item.bytes as f64
        }
    }

    /// The requests of a page: its items, and dynamic content between them.
    fn requests(&mut self, visit: &Visit) -> Vec<PageRequest> {
        let class = usize::from(visit.site.has_cookies);
        let mut asked = Vec::with_capacity(usize::from(visit.page.embedded) + 4);
        for number in 0..=visit.page.embedded {
            let share = self.profile.class(visit.site.has_cookies).dynamic;
            // before an item stand so many dynamic ones that their share of all is kept
            while self
                .chance
                .is(self.site_classes[class].dynamic.chance(share))
                && asked.len() < PAGE_REQUESTS_MAX
            {
                asked.push(self.dynamic(visit));
                self.site_classes[class].dynamic.count(1.0, 1.0);
            }
            asked.push(self.item(visit, number));
            self.site_classes[class].dynamic.count(1.0, 0.0);
        }
        if visit.marks.first_visit {
            for later in asked.iter_mut().skip(1) {
                later.marks.first_visit = false;
            }
        }
        asked
    }

    fn item(&mut self, visit: &Visit, number: u16) -> PageRequest {
        let item = Item::of(&self.profile, visit.hash, visit.size_factor, number);
        let server = item.third_party.map_or(visit.server, |third| {
            self.name(Name::ThirdParty, u64::from(third))
        });
        let mut marks = visit.marks;
        let mut is_declared = item.is_declared;
        let mut bytes = item.bytes;
        let asks = &self.profile.asks;
        if visit.is_hit && asks.conditional > 0.0 && self.chance.is(asks.conditional) {
            let unit = item::Facet::Validators.unit(visit.hash, number);
            let (has_modified, has_etag) = self.metadata.validators.chosen(unit);
            marks.conditional = has_modified || has_etag;
            let share = asks.not_modified[usize::from(has_etag)];
            marks.not_modified = marks.conditional && self.chance.is(share);
        }
        if marks.not_modified {
            is_declared = false;
            bytes = 0;
        }
        PageRequest {
            resource: Resource::Item(number),
            target: mix(visit.hash ^ mix(u64::from(number) + 1)),
            server,
            kind: item.kind,
            bytes,
            is_declared,
            marks,
        }
    }

    fn dynamic(&mut self, visit: &Visit) -> PageRequest {
        let place = self.dynamics.draw(&mut self.chance);
        self.dynamics.count(place, 1.0);
        let document = &self.profile.document;
        let drawn = document.size_undeclared.draw(&mut self.chance);
        // some have the words of an earlier one
        let number = if self.chance.is(DYNAMIC_AGAIN) {
            self.chance.below(DYNAMIC_KNOWN)
        } else {
            DYNAMIC_KNOWN + self.order + self.chance.below(1 << 40)
        };
        let kind = u8::try_from(place).expect("a profile has few kinds of dynamic targets");
        PageRequest {
            resource: Resource::Dynamic(kind),
            target: mix(visit.server ^ mix(number ^ (u64::from(kind) << 56))),
            server: visit.server,
            kind: 0,
            bytes: item::whole(drawn, self.profile.pages.size_max),
            is_declared: false,
            marks: visit.marks,
        }
    }

    /// When everything happens to one request that could be made at `ready_us`; and when its client
    /// has all of it.
    fn plan(
        &mut self,
        session: &mut Session,
        visit: &Visit,
        asked: &PageRequest,
        ready_us: u64,
    ) -> (Transaction, u64) {
        let version = self.version(visit.site.version);
        let multiplexes = matches!(version, TraceVersion::Http2 | TraceVersion::Http3);
        let slot = session
            .connections
            .take(asked.server, ready_us, multiplexes, self.limits);
        let network = &self.profile.network;
        let factor = network.server_factor.draw(&mut Chance::of(asked.server));
        let setup_us = slot
            .is_new
            .then(|| microseconds(factor * network.setup.draw(&mut self.chance)).max(1));
        let request_us = match setup_us {
            Some(setup_us) => setup_us + microseconds(network.access_s),
            None => slot.ready_us - slot.begins_us,
        };
        let response_us =
            request_us + microseconds(factor * network.response.draw(&mut self.chance)).max(1);
        let ending = if asked.is_declared {
            self.endings.draw(asked.bytes, &mut self.chance)
        } else {
            super::endings::Ending {
                is_aborted: false,
                received: asked.bytes,
            }
        };
        let after = ending.received.saturating_sub(network.first_packet_bytes) as f64;
        let transfer_s = after / network.rate.draw(&mut self.chance);
        let last_byte_us = response_us + microseconds(transfer_s);
        // without a length the end of HTTP/1.0 content is the end of the connection
        let has_end = asked.is_declared || version != TraceVersion::Http10;
        let persists = visit.site.persists && has_end && (multiplexes || !ending.is_aborted);
        // what was seen at the place of measurement is still on its way to the client
        let arrival = Arrival {
            at_us: slot.begins_us + response_us,
            bytes: ending.received,
            slow_start_rtt_us: setup_us.map(|setup_us| {
                microseconds(network.access_s) + setup_us.min(response_us - request_us)
            }),
        };
        let got_us = session.link.carry(arrival, network.client_bytes_s);
        let ends_us = got_us.max(slot.begins_us + last_byte_us);
        let sent_us = slot.begins_us + request_us;
        let (connection, sequence) =
            session
                .connections
                .give_back(slot, self.connections, sent_us, ends_us, persists);
        self.connections += u64::from(slot.is_new);
        self.order += 1;
        self.persistent.count(1.0, f64::from(u8::from(persists)));
        let transaction = Transaction {
            arrival_us: slot.begins_us,
            order: self.order,
            client: session.client,
            page: visit.hash,
            request: *asked,
            version,
            connection,
            sequence,
            setup_us,
            request_us,
            response_us,
            last_byte_us,
            received: ending.received,
            is_aborted: ending.is_aborted,
            persists,
        };
        (transaction, ends_us)
    }

    fn version(&self, place: usize) -> TraceVersion {
        let word = self
            .profile
            .asks
            .versions
            .get(place)
            .map(|version| version.version.as_str());
        word.and_then(TraceVersion::from_word)
            .unwrap_or(TraceVersion::Http10)
    }

    /// Counts the requests and bytes of a visit.
    fn count(&mut self, visit: &Visit, requests: f64, received: PageTotals) {
        let class = usize::from(visit.site.has_cookies);
        self.classes.count(class, requests);
        self.versions.count(visit.site.version, requests);
        let mark = usize::from(visit.marks.reload) + 2 * usize::from(visit.marks.authorization);
        self.site_classes[class].marks.count(mark, requests);
        for site_class in &mut self.site_classes {
            let is_hit = visit.is_hit && site_class.has_cookies == visit.site.has_cookies;
            let hits = if is_hit {
                received
            } else {
                PageTotals::default()
            };
            site_class.hits.count(requests, hits.items);
            if let Some(deficit) = &mut site_class.hit_bytes {
                deficit.count(received.bytes, hits.item_bytes);
            }
        }
    }

    fn size_factor(&self, has_cookies: bool, page: u64) -> f64 {
        let class = self.profile.class(has_cookies);
        let once = if item::is_once(&self.profile, page) {
            class.once_factor
        } else {
            1.0
        };
        class.size_factor * once * item::size_factor(&self.profile, page)
    }

    /// The hash that stands for something, under this seed.
    fn name(&self, what: Name, number: u64) -> u64 {
        let space = match what {
            Name::Client => 1,
            Name::Page(has_cookies) => 2 + u64::from(has_cookies),
            Name::Server(has_cookies) => 4 + u64::from(has_cookies),
            Name::ThirdParty => 6,
        };
        mix(self.salt ^ mix(number ^ (space << 56)))
    }
}

/// What hashes stand for.
#[derive(Clone, Copy, Debug)]
enum Name {
    Client,
    Page(bool),
    Server(bool),
    ThirdParty,
}

/// Whole microseconds, none for what is less than nothing.
pub(super) fn microseconds(seconds: f64) -> u64 {
    weir_workload::microseconds(seconds.clamp(0.0, SECONDS_MAX))
}

/// Ten days: no wait in a trace is longer.
const SECONDS_MAX: f64 = 864_000.0;

/// The stream of chance that everything is drawn from that no hash decides.
const MAIN: u64 = 0x6d61_6b65;

/// The share of dynamic requests with the words of an earlier one; ours.
const DYNAMIC_AGAIN: f64 = 0.3;

/// How many such words a site knows; ours.
const DYNAMIC_KNOWN: u64 = 16;

/// Requests of a page, at which no dynamic one is added.
const PAGE_REQUESTS_MAX: usize = 2000;
