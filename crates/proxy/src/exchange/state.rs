//! The state of a request that needs more than one pass: what was decided, and what is under way
//! for it.

mod heavy_hitters;
mod hooks;
mod reuse;

pub(crate) use reuse::reuse_of;

use crate::cache::chosen::ChosenResponse;
use crate::client::hand_off::HandOffStep;
use crate::client::peer_listener::PeerSeal;
use crate::cluster::{Counted, Maker};
use crate::config::Span;
use crate::exchange::next_hop::route_request::ResponseTimer;
use crate::exchange::next_hop::{ChosenNode, LateralFetch, NextHop, ProxyHop};
use crate::fetch::collapse::Leader;
use crate::fetch::missing_range::MissingRange;
use crate::log::client::{ForPeers, RequestClient};
use crate::log::request_log::RequestLog;
use crate::modules::module_answer::ModuleAnswer;
use crate::modules::module_content::ModuleContent;
use crate::modules::request_modules::RequestModules;
use crate::request::answer::Answer;
use crate::request::facts::Request;
use crate::request::vary::{SelectingFields, forwarded_key};
use crate::request::who_asked::{WhoAsked, counted_client};
use crate::send::heads::ServedForm;
use crate::settings::Settings;
use crate::worker::core::Worker;
use crate::worker::kept_content::KeptContent;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use weir_extend::LocalResponse;
use weir_measure::Metric;
use weir_net::http::{HopLines, NextHopStream};
use weir_net::next_hops::ClientEnds;
use weir_policy::catalog::Refusal;
use weir_policy::destination::ClientNetwork;
use weir_policy::extension::Variant;
use weir_policy::fetch::{AbortPolicy, ReadAhead};
use weir_policy::route::DigestVersion;
use weir_policy::rule::{Bits, FetchingRules, FieldRules, Reuse};
use weir_policy::{
    Digest, Event, Forwarding, KeyHasher, Missing, Phase, Phases, Rules, Serving, Transaction,
};
use weir_semantics::{
    FieldLine, FieldNames, NamedFields, RequestDirectives, RequestFacts, Timestamp, without_query,
};
use weir_store::{DiskVariants, ExpectedResponse, StoredResponse};

/// How long a next hop may be silent before the head of a response that nothing has asked for:
/// others wait for its place.
const UNASKED_HEAD_SILENCE_MAX: Span = Span::from_millis(10_000);

/// How a request is answered. It is moved on the way of each hit: what hits do not have is boxed.
#[derive(Debug)]
pub(crate) enum Plan {
    /// Judge the request and choose what answers it.
    Judge,
    /// Send a stored response; validate it in the background if there is a `refresh`.
    Serve {
        /// The response.
        response: Arc<StoredResponse>,
        /// How.
        serving: Serving,
        /// RFC 5861 §3: the response that may be stored.
        refresh: Option<Box<ExpectedResponse>>,
    },
    /// Forward it.
    Forward {
        /// How.
        forwarding: Forwarding,
        /// The stale response that is validated, or served if the next hop fails.
        stored: Option<ChosenResponse>,
    },
    /// Look on disk: memory has none, for this reason.
    DiskLookup(Missing),
    /// Open a tunnel (RFC 9110 §9.3.6).
    Connect,
    /// Answer by ourselves.
    Answer(Box<Answer>),
    /// Do what another node of the cluster says.
    Member(MemberMessage),
    /// Send the response of a module.
    Module(Box<LocalResponse>),
}

/// What another node of the cluster wants of this one.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MemberMessage {
    /// Purge what it says.
    Purges,
    /// Take over a connection that it hands over, or hear of one.
    HandOff(HandOffStep),
    /// Send it the digest of this node; of what it knows.
    Digest(Option<DigestVersion>),
}

impl Plan {
    /// Whether it shows the source of the response.
    pub(crate) const fn is_final(&self) -> bool {
        !matches!(self, Self::Judge | Self::DiskLookup(_))
    }
}

/// A request and the state of its exchange.
pub(crate) struct RequestState {
    /// The worker that serves it.
    pub(crate) worker: Rc<Worker>,
    /// The client that sent it.
    pub(crate) client: RequestClient,
    /// The request. It does not change.
    pub(crate) request: Request,
    /// The settings in force when it was received.
    pub(crate) settings: Arc<Settings>,
    /// What it did and cost.
    pub(crate) log: RequestLog,
    /// The phases that hooks were called for, or were not and will not be.
    pub(crate) passed: Phases,
    pub(crate) tx: Transaction,
    pub(crate) plan: Plan,
    pub(crate) key: Digest,
    /// It has no client: a validation in the background, or a fetch for readers of an in-flight
    /// response.
    pub(crate) background: bool,
    /// It is the request of a call about stored responses.
    pub(crate) is_of_call: bool,
    /// It is a request of this program's own: neither a client nor a module nor the operator has
    /// asked for what it brings.
    pub(crate) is_unasked: bool,
    /// The missing range of a stored part that is requested.
    pub(crate) missing: Option<Box<MissingRange>>,
    /// Set while it leads collapsed requests.
    pub(crate) leader: Option<Leader>,
    /// The expected response: a purge from now on covers it too.
    pub(crate) expected: Option<Box<ExpectedResponse>>,
    /// What the disk has of other variants.
    pub(crate) disk_variants: Option<Box<DiskVariants>>,
    /// The node of the cluster that was chosen before it is forwarded, if one was.
    pub(crate) chosen_node: Cell<Option<Box<ChosenNode>>>,
    /// The request to another node of the cluster, if one was sent for it last.
    pub(crate) lateral: Option<Box<LateralFetch>>,
    /// The parent or sibling that it was sent to last, if it was.
    pub(crate) proxy: Option<ProxyHop>,
    /// Set while it waits for the head of an origin's response, where other nodes are told.
    pub(crate) waits: Option<Counted>,
    /// What modules have of it, if there are any.
    pub(crate) modules: Option<Box<RequestModules>>,
    /// The request as its client sent it, if modules have changed it.
    pub(crate) received: Option<Box<Request>>,
    /// The rules of the operator that are for it.
    pub(crate) operator_rules: Bits,
    /// Such a rule has changed its target for the cache key.
    pub(crate) is_rekeyed: bool,
    /// Such a rule limits how fast its client is sent the response.
    pub(crate) is_rate_limited: bool,
    /// The directives that the client sent, if such a rule has some ignored.
    pub(crate) directives_sent: Option<Box<RequestDirectives>>,
    /// The request as its client sent it, if such a rule has changed it: for the access log.
    pub(crate) logged: Option<Box<Request>>,
    /// Measures when the next hop responds, if the policy of its route uses that.
    pub(crate) response_timer: Option<Box<ResponseTimer>>,
    /// The last next hop is spoken to by HTTP/2.
    pub(crate) is_answered_by_http2: bool,
    /// Which variant of stored responses it gets, if modules change them before they are stored.
    pub(crate) variant: Option<Box<Variant>>,
}

impl RequestState {
    /// The state of a request at its first decision.
    #[inline(always)]
    pub(crate) fn new(
        (worker, client): (Rc<Worker>, RequestClient),
        request: Request,
        settings: Arc<Settings>,
        tx: Transaction,
        plan: Plan,
        key: Digest,
        log: RequestLog,
    ) -> Self {
        Self {
            worker,
            client,
            request,
            settings,
            log,
            passed: Phases::NONE,
            tx,
            plan,
            key,
            background: false,
            is_of_call: false,
            is_unasked: false,
            missing: None,
            leader: None,
            expected: None,
            disk_variants: None,
            chosen_node: Cell::new(None),
            lateral: None,
            proxy: None,
            waits: None,
            modules: None,
            received: None,
            operator_rules: Bits::NONE,
            is_rekeyed: false,
            is_rate_limited: false,
            directives_sent: None,
            logged: None,
            response_timer: None,
            is_answered_by_http2: false,
            variant: None,
        }
    }

    /// The same with the modules that are for its target.
    pub(crate) fn with_modules(mut self) -> Self {
        let (host, path) = (self.request.host.as_bytes(), self.request.path_and_query());
        self.modules = RequestModules::of(&self.settings.modules, host, path);
        self
    }

    /// The rules of storing for a response with this status and Content-Type to it.
    pub(crate) fn storing_rules(&self, status: u16, content_type: Option<&[u8]>) -> Rules {
        let mut rules = self.settings.rules;
        let (mode, target) = (self.request.mode.into(), self.target());
        let content_type = content_type.unwrap_or_default();
        let operator_rules = &self.settings.operator_rules;
        let storing = operator_rules.storing(mode, target, status, content_type);
        rules.heuristic.assigned = storing.default;
        rules.reuse = storing.reuse;
        rules
    }

    /// How rules of the operator have a stored response used for it. For requests of other nodes,
    /// those that their clients are connected to decide.
    pub(crate) fn reuse_of(&self, stored: &StoredResponse) -> Reuse {
        if self.client.facts().listener.peers != ForPeers::No {
            return Reuse::NONE;
        }
        reuse_of(&self.settings, self.request.mode, self.target(), stored)
    }

    /// The same for a response with this status and Content-Type that it brings.
    pub(crate) fn reuse_for(&self, status: u16, content_type: Option<&[u8]>) -> Reuse {
        if self.client.facts().listener.peers != ForPeers::No {
            return Reuse::NONE;
        }
        self.storing_rules(status, content_type).reuse
    }

    /// Host and path of its target.
    fn target(&self) -> (&[u8], &str) {
        (self.request.host.as_bytes(), self.request.path_and_query())
    }

    /// Has directives ignored, as rules of the operator say; `facts` are to be those that it is
    /// decided by.
    pub(crate) fn ignore_directives(&mut self, facts: &mut RequestFacts) {
        let outcome = self.settings.operator_rules.outcome(self.operator_rules);
        let sent = outcome.ignored.take_from(&mut facts.directives);
        self.directives_sent = sent.map(Box::new);
    }

    /// Notes whether `stored` answers it only because a rule of the operator has it so.
    pub(crate) fn note_rules(&mut self, stored: &StoredResponse) {
        let reuse = self.reuse_of(stored);
        if self.directives_sent.is_none() && reuse.is_none() {
            return;
        }
        let directives = self.tx.request().directives;
        let sent = self
            .directives_sent
            .as_deref()
            .copied()
            .unwrap_or(directives);
        let (own, used) = (&stored.facts, reuse.of(&stored.facts));
        let by = (&self.settings.rules, &sent);
        self.tx
            .answered_by_rule(self.worker.now(), by, (own, &used));
    }

    /// Fields of its trailer section that go no further: its head names them, or rules of the
    /// operator have set or removed them there.
    pub(crate) fn named_in_trailers(&self) -> NamedFields {
        let rules = &self.settings.operator_rules;
        let named = self.request.named_in_trailers();
        let changes = rules.outcome(self.operator_rules).request;
        let replaced = changes.into_iter().flat_map(FieldRules::replaced);
        named.and(replaced.collect())
    }

    /// The field line for Via on the request, which says by what it was received.
    pub(crate) fn via_line(&self) -> &[u8] {
        match self.client.is_http2() {
            true => self.settings.via_line_of_http2(),
            false => self.settings.via_line(self.request.version),
        }
    }

    /// The field line for Via on the response, which says by what it was received: by a head of
    /// this version, if it is not HTTP/2.
    pub(crate) fn via_line_of_response(&self, version: weir_wire::Version) -> &[u8] {
        match self.is_answered_by_http2 {
            true => self.settings.via_line_of_http2(),
            false => self.settings.via_line(version),
        }
    }

    /// Fields that rules of the operator replace in the head of the response, and that are neither
    /// to come before it nor behind the content.
    pub(crate) fn left_out(&self) -> FieldNames {
        self.settings.operator_rules.left_out(self.operator_rules)
    }

    /// Whether a rule of the operator has it bypass the cache.
    pub(crate) fn bypasses_by_rule(&self) -> bool {
        let rules = &self.settings.operator_rules;
        rules.outcome(self.operator_rules).bypass
    }

    /// The key of its target; of its variant of that, if it has one. Digests of nominated fields
    /// are made with it.
    pub(crate) fn variant_key(&self) -> Digest {
        let secret = self.worker.shared.store.secret();
        let variant = self.variant.as_deref();
        let key = variant.map_or(self.key, |variant| variant.key(secret, self.key));
        match self.forwarded_variant() {
            Some(forwarded) => forwarded_key(secret, key, forwarded),
            None => key,
        }
    }

    /// What selects its variant whatever `Vary` nominates, if something does: a response that
    /// varies on nothing is not for it.
    pub(crate) fn variant_digest(&self) -> Option<Digest> {
        let forwarded = self.forwarded_variant();
        let modules = self.variant.as_deref().map(Variant::digest);
        match (modules, forwarded) {
            (Some(modules), Some(forwarded)) => {
                let secret = self.worker.shared.store.secret();
                Some(forwarded_key(secret, modules, forwarded))
            }
            (one, other) => one.or(other),
        }
    }

    /// What a trusted proxy says of whom it is forwarded for, if that selects a variant.
    pub(crate) fn forwarded_variant(&self) -> Option<Digest> {
        if !self.settings.believes_proxies(self.request.mode) {
            return None;
        }
        let fields = self.request.fields();
        self.who_asked().variant(&fields)
    }

    /// What the next hop is told of whom it is forwarded for.
    pub(crate) fn who_asked(&self) -> WhoAsked<'_> {
        let secret = self.worker.shared.store.secret();
        let target = self.request.target();
        WhoAsked::of(&self.settings, self.client.facts(), target, secret)
    }

    /// The client that has a share of the connections to its next hop; `None` if it is of no
    /// client, or no client waits for what it brings.
    pub(crate) fn counted_client(&self) -> Option<ClientNetwork> {
        if self.is_unasked || self.is_for_store_alone() {
            return None;
        }
        let fields = match self.settings.believes_proxies(self.request.mode) {
            true => self.request.fields(),
            false => Vec::new(),
        };
        counted_client(&self.settings, self.client.facts(), &fields)
    }

    /// Its client's connection, of which a next hop may be told; `None` as above, and where none is
    /// told.
    pub(crate) fn client_ends(&self) -> Option<ClientEnds> {
        if !self.settings.tells_next_hops {
            return None;
        }
        self.counted_client().and_then(|_| self.client.ends())
    }

    /// What of it may be nominated by a response; `fields` are its own.
    pub(crate) fn selecting<'f>(&'f self, fields: &'f [FieldLine<'f>]) -> SelectingFields<'f> {
        SelectingFields {
            own: fields,
            who_asked: self.who_asked(),
        }
    }

    /// The same request again, for the store alone, with the modules that it began with.
    pub(crate) fn in_background(&self, tx: Transaction, plan: Plan) -> Self {
        let mut state = Self::new(
            (Rc::clone(&self.worker), self.client.clone()),
            self.request.for_store(),
            Arc::clone(&self.settings),
            tx,
            plan,
            self.key,
            RequestLog::unread(),
        );
        state.background = true;
        state.received.clone_from(&self.received);
        state.variant.clone_from(&self.variant);
        let (host, path) = (
            state.request.host.as_bytes(),
            state.request.path_and_query(),
        );
        let modules = self.modules.as_ref();
        state.modules = modules.and_then(|modules| modules.again(host, path));
        state
    }

    /// Why nothing of what it brings is stored here, if that follows from where it comes from:
    /// another node of the cluster keeps it, or a parent or sibling is to. A front end stores
    /// nothing, wherever it comes from.
    pub(crate) fn left_to_source(&self) -> Option<Refusal> {
        if let Some(lateral) = &self.lateral {
            return (!lateral.is_kept()).then_some(Refusal::OnPeer);
        }
        if self.settings.cluster().is_some_and(|it| it.is_front_end()) {
            return Some(Refusal::FrontEnd);
        }
        let proxy = self.proxy.as_ref().filter(|it| !it.configured().keep)?;
        Some(match proxy.is_sibling() {
            true => Refusal::OnSibling,
            false => Refusal::OnParent,
        })
    }

    /// Whether another node keeps what it brings, so that what is stored here is a copy.
    pub(crate) fn brings_copy(&self) -> bool {
        self.lateral
            .as_deref()
            .is_some_and(LateralFetch::brings_copy)
    }

    /// It is about to be sent on `hop`, to `next_hop`.
    pub(crate) fn ask(&mut self, next_hop: &NextHop, hop: &mut NextHopStream) {
        self.lateral = next_hop
            .peer()
            .map(|peer| Box::new(peer.ask(&self.worker, hop)));
        if self.lateral.is_some() {
            self.worker.counters().inc(Metric::PeerRequests);
        }
        self.sent_to(next_hop);
        let cluster = self.settings.cluster();
        if let Some(leader) = self.leader.as_ref().filter(|_| cluster.is_some()) {
            leader.sent(self.lateral.as_deref().is_some_and(LateralFetch::may_wait));
        }
        let to_origin = cluster.filter(|_| self.lateral.is_none());
        self.waits = to_origin.map(|cluster| cluster.state().wait());
    }

    /// It, or a tunnel for it, is sent to `next_hop`.
    pub(crate) fn sent_to(&mut self, next_hop: &NextHop) {
        self.proxy = next_hop.proxy().cloned();
        self.log.proxy = self.proxy.as_ref().map(ProxyHop::log_word);
    }

    /// Whether it was sent to a sibling, which answers from what it has stored or not at all.
    pub(crate) fn asks_sibling(&self) -> bool {
        self.proxy.as_ref().is_some_and(ProxyHop::is_sibling)
    }

    /// Appends what proves to the parent, sibling or other node that it is sent to who this proxy
    /// is. Last of all: no module sees it, and for another node it proves all before it.
    pub(crate) fn write_login(&self, head: &mut Vec<u8>) {
        if let Some(proxy) = &self.proxy {
            head.extend_from_slice(proxy.configured().login());
        }
        if let Some(lateral) = &self.lateral {
            lateral.seal_request(self.request.mode, head);
        }
    }

    /// How long its next hop may be silent before the head of the response.
    pub(crate) fn head_silence(&self) -> Span {
        let config = &self.settings.config;
        match (&self.lateral, &self.proxy) {
            (Some(_), _) => config.cluster.peer_timeout,
            (None, Some(proxy)) if proxy.is_sibling() => proxy.configured().timeout,
            (None, _) if self.is_unasked => {
                config.limits.next_hop_silence.min(UNASKED_HEAD_SILENCE_MAX)
            }
            (None, _) => config.limits.next_hop_silence,
        }
    }

    /// What the final head of a response to another node ends with.
    pub(crate) fn peer_lines(&self, maker: Maker) -> Option<HopLines> {
        if self.client.facts().listener.peers != ForPeers::Member {
            return None;
        }
        let seal = PeerSeal::new(&self.settings, &self.request.fields(), maker)?;
        let worker = Rc::clone(&self.worker);
        Some(Box::new(move |head| seal.append(&worker, head, 0)))
    }

    /// Whether it fills a missing range of an in-flight response.
    pub(crate) fn fills_missing_range(&self) -> bool {
        self.missing
            .as_ref()
            .is_some_and(|missing| missing.into.is_some())
    }

    /// Whether it completes a stored part for no client.
    pub(crate) const fn completes_part(&self) -> bool {
        self.is_unasked && self.missing.is_some()
    }

    /// Whether no client waits for what it brings: a validation in the background.
    pub(crate) fn is_for_store_alone(&self) -> bool {
        self.background && !self.fills_missing_range()
    }

    /// What the bytes of ranges that it asks for add up to over a link: the ranges of one target
    /// for one client. `None` if it asks for no range. The query is left out: an origin may ignore
    /// it, and then each query would be another target.
    pub(crate) fn range_of(&self) -> Option<Digest> {
        if self.missing.is_none() && !self.tx.request().has_range {
            return None;
        }
        let mut hasher = KeyHasher::new(self.worker.shared.store.secret());
        ClientNetwork::of(self.client.facts().peer.ip()).hash_into(&mut hasher);
        hasher.part(self.request.host.as_bytes());
        let path = self.request.path_and_query();
        hasher.part(without_query(path).as_bytes());
        Some(hasher.finish())
    }

    /// Of what its client has in memory while a rule has it read `owner`'s content slowly, of which
    /// `bytes` are there. `None` if nothing limits it, or content is on disk as well: that does not
    /// keep others from being stored.
    pub(crate) fn keep_content<T>(&self, owner: &Arc<T>, bytes: u64) -> Option<KeptContent> {
        let store = &self.worker.shared.store;
        if !self.is_rate_limited || store.disk().is_some() {
            return None;
        }
        let mut hasher = KeyHasher::new(store.secret());
        hasher.part(b"client");
        ClientNetwork::of(self.client.facts().peer.ip()).hash_into(&mut hasher);
        Some(KeptContent::new(
            &self.worker,
            hasher.finish(),
            owner,
            bytes,
        ))
    }

    /// Its content was sent to the next hop; `false` if it has none, or that was known.
    pub(crate) fn content_sent(&mut self) -> bool {
        let is_new =
            self.request.has_content() && !self.log.reached().contains(Phase::RequestContent);
        if is_new {
            self.log.reach(Phase::RequestContent);
        }
        is_new
    }

    /// Whether it is the last request of its connection, whatever its client wants.
    pub(crate) fn is_last(&self) -> bool {
        let listener = self.client.facts().listener;
        self.worker.shared.has_closed(listener)
    }

    /// What a module has answered for content of the request or its response, since the last call.
    pub(crate) fn content_answer(&mut self) -> Option<ModuleAnswer> {
        let modules = self.modules.as_mut();
        modules.and_then(|modules| modules.take_answer())
    }

    /// What the content of the request is to pass on its way to the next hop. It is taken once.
    pub(crate) fn take_request_content(&mut self) -> Option<Box<ModuleContent>> {
        let modules = self.modules.as_mut();
        modules.and_then(|modules| modules.take_request_content())
    }

    /// How far a fetch for it may run ahead.
    pub(crate) fn read_ahead(&self) -> ReadAhead {
        if !self.settings.read_aheads_differ() {
            return self.settings.read_ahead_of(None);
        }
        self.fetching_rules().read_ahead.unwrap_or_else(|| {
            let (host, path) = (self.request.host.as_str(), self.request.path_and_query());
            self.settings.read_ahead_for(self.request.mode, host, path)
        })
    }

    /// What decides whether a fetch for it continues without readers.
    pub(crate) fn abort(&self) -> AbortPolicy {
        match self.fetching_rules().abort {
            Some(kind) => self.settings.abort_by(kind),
            None => self.settings.abort,
        }
    }

    fn fetching_rules(&self) -> FetchingRules {
        let rules = &self.settings.operator_rules;
        rules.fetching(self.request.mode.into(), self.target())
    }

    /// In what form `response` answers it.
    pub(crate) fn form_of(&self, response: &StoredResponse, now: Timestamp) -> ServedForm {
        ServedForm::of(self.tx.request(), &self.request.fields(), response, now)
    }

    /// Holds the chosen response, and the expected one, from the choice on.
    pub(crate) fn hold(&mut self, chosen: Option<ChosenResponse>) -> Option<Arc<StoredResponse>> {
        let (response, expected) = chosen.map(|it| (it.response, it.expected)).unzip();
        self.expected = expected;
        response
    }

    /// To be called before a request is sent to the next hop, also one about the chosen stored
    /// response; `false` if that was dropped while the request waited. Then the request is sent as
    /// if nothing had been found.
    pub(crate) fn expect(&mut self, worker: &Worker) -> bool {
        let is_current = self
            .expected
            .as_deref_mut()
            .is_none_or(ExpectedResponse::renew);
        let store = &worker.shared.store;
        // a HEAD stores nothing, but its 200 may update what is stored
        let may_store = self.tx.may_store() || self.tx.may_update(200);
        let held = self.expected.take().filter(|_| is_current);
        let held = held.map(|held| *held);
        let expected = held.or_else(|| may_store.then(|| store.expect(self.key)));
        self.expected = expected.map(|expected| {
            let expected = expected.named(|| self.request.target_uri());
            Box::new(match &self.disk_variants {
                Some(disk_variants) => disk_variants.add_to(expected),
                None => expected,
            })
        });
        is_current
    }

    /// The chosen stored response was dropped since: how to forward the request as if nothing had
    /// been found.
    pub(crate) fn forget_chosen(&mut self, worker: &Worker) -> Forwarding {
        self.missing = None;
        let _ = self.tx.lost(worker.now());
        Forwarding {
            validate: false,
            complete: false,
        }
    }

    /// Whether what was chosen for it was forgotten since.
    pub(crate) fn is_outdated(&self) -> bool {
        self.expected
            .as_deref()
            .is_some_and(ExpectedResponse::is_outdated)
    }

    /// The response is not for others: its followers are forwarded one by one. With `remembered`,
    /// so are later requests for a while (hit-for-miss).
    pub(crate) fn release_followers(&mut self, worker: &Worker, remembered: bool) {
        let Some(leader) = self.leader.take() else {
            return;
        };
        let now = worker.now();
        let ms = self.settings.config.fetch.uncollapsible_for.as_millis();
        leader.refused(now, remembered.then(|| now.tick.plus_ms(ms)));
    }

    /// The stored response was freshened to `stored`, or dropped: followers look it up again, if it
    /// may be for them.
    pub(crate) fn freshened(&mut self, worker: &Worker, stored: Option<&StoredResponse>) {
        let answers_others = |stored: &StoredResponse| {
            let used = self.reuse_of(stored).of(&stored.facts);
            used.answers_others(worker.now())
        };
        if !stored.is_some_and(answers_others) {
            let says_about_target = self.tx.says_about_target(304);
            self.release_followers(worker, says_about_target);
        } else if let Some(leader) = self.leader.take() {
            leader.stored();
        }
    }

    /// Reports an event to the transaction that calls for no action.
    pub(crate) fn tell(&mut self, worker: &Worker, event: Event<'_>) {
        let rules = &self.settings.rules;
        let _ = self.tx.handle(worker.now(), rules, event);
    }
}
