//! What would become of a request, and why: its decision is stepped as that of a client's request,
//! by the same functions, and nothing comes of it.
//!
//! No use of a stored response is noted, nothing is loaded into memory, counted or sent. Modules
//! are not called, but for those that change what is stored: without them it is not known which
//! variant the request gets.

mod inputs;
mod links;
mod not_stored;
pub(crate) mod report;
mod rules;
mod variants;

use super::calls::{CallContext, StoredCalls};
use super::target::{CallRequest, mode_of, receive};
use crate::cache::disk_lookup::keeps_to_targeted;
use crate::cache::variants as module_variants;
use crate::client::fast::{self, RefusedPreview};
use crate::config::Mode;
use crate::exchange::next_hop::NextHop;
use crate::exchange::state::RequestState;
use crate::host::own_request::{end_to_end, whole_target};
use crate::log::words::write_cache_status;
use crate::request::answer::{Answer, AnswerReason};
use crate::request::judge::key_of;
use crate::request::vary::selecting_digest;
use crate::send::disk_read::READ_WAIT;
use inputs::Inputs;
use report::{
    EXPLAIN_VERSION, Explanation, OutcomeReport, RequestReport, RuleUse, StoringForecast,
};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::time::timeout;
use variants::FoundVariant;
use weir_extend::{Pending, StoredError, StoredTarget};
use weir_net::next_hops::SpentLink;
use weir_policy::rule::Action;
use weir_policy::verdict::{NotStored, Storing};
use weir_policy::{
    Command, Commands, Digest, Event, Failure, Handling, Missing, Now, RefuseReason, Rules,
    Transaction, Verdict,
};
use weir_semantics::{
    FieldLine, Fwd, HostName, Method, NotStorable, RequestDirectives, ResponseFacts,
};
use weir_store::{LookupResult, VaryRule};

/// A request that is to be explained.
#[derive(Debug)]
pub struct ExplainCall {
    /// Its method.
    pub method: String,
    /// Its target, the mode of the listener, and its fields.
    pub target: StoredTarget,
    /// The client that sends it.
    pub client: IpAddr,
    /// The listener that it comes to, by the address that the configuration has.
    pub listener: Option<String>,
    /// Values of fields of stored responses are shown.
    pub shows_values: bool,
}

impl StoredCalls {
    /// What would become of a request.
    pub(crate) fn explain(&self, call: ExplainCall) -> Pending<Result<Explanation, StoredError>> {
        self.call(async move |context: CallContext| explain(&context, &call).await)
    }
}

async fn explain(context: &CallContext, call: &ExplainCall) -> Result<Explanation, StoredError> {
    let target = &call.target;
    let mut host_name = HostName::EMPTY;
    let canonical =
        whole_target(Method::Get, &target.url, &mut host_name).ok_or(StoredError::BadTarget)?;
    if Method::parse(&call.method) == Method::Connect {
        return Err(StoredError::BadTarget);
    }
    let fields = end_to_end(&target.fields).ok_or(StoredError::BadTarget)?;
    let mode = mode_of(target.mode);
    let request = RequestReport {
        method: call.method.clone(),
        url: target.url.clone(),
        mode: mode.as_str(),
        listener: call.listener.clone(),
        client: call.client.to_string(),
        fields: fields.iter().map(|(name, _)| name.to_owned()).collect(),
    };
    let mut inputs = Inputs::default();
    let received = CallRequest {
        method: &call.method,
        fields: &fields,
        client: call.client,
        listener: call.listener.as_deref(),
    };
    let previewed = receive(context, target, &received, |receiver, head| {
        receiver.preview(head)
    });
    let mut exchange = match previewed? {
        Ok(exchange) => exchange,
        Err(refused) => {
            let key = key_of(mode, &canonical, context.worker.shared.store.secret());
            return Ok(refusal(context, (call, request), *refused, key, inputs));
        }
    };
    if mode == Mode::Forward {
        inputs.add_client(call.client);
    }
    let request = RequestReport {
        url: exchange.request.target_uri(),
        ..request
    };
    Decision {
        context,
        call,
        inputs,
        found: None,
    }
    .run(&mut exchange, request)
    .await
}

/// The decision about a request, step by step.
struct Decision<'a> {
    context: &'a CallContext,
    call: &'a ExplainCall,
    inputs: Inputs,
    /// The stored response that was chosen.
    found: Option<FoundVariant>,
}

impl Decision<'_> {
    async fn run(
        mut self,
        exchange: &mut RequestState,
        request: RequestReport,
    ) -> Result<Explanation, StoredError> {
        let is_let_through = self.select(exchange).await;
        let sent = exchange.tx.request().directives;
        let now = self.context.worker.now();
        let commands = self.choose(exchange, now, &sent).await?;
        let mut outcome = self.outcome(exchange, &commands);
        if !is_let_through {
            outcome.word = "unknown";
            outcome.detail = Some(NotStored::Module.as_str());
        }
        let forwards = matches!(commands.first(), Some(Command::Forward(_)));
        let mut storing = forwards.then(|| self.forecast(exchange, now));
        let unsent = match forwards {
            true => unsent(exchange, is_let_through),
            false => None,
        };
        let is_unsent = unsent.is_some();
        if let Some((name, section, answer)) = unsent {
            self.inputs.add(name, answer.reason.text.clone(), section);
            outcome = of_answer(self.context, &answer);
            storing = None;
        } else if forwards
            && is_let_through
            && let Some(spent) = links::look(&mut self.inputs, exchange)
        {
            outcome = self.without_next_hop(exchange, now, spent);
            storing = None;
        }
        let not_stored = match storing {
            Some(_) => not_stored::recently(exchange),
            None => Vec::new(),
        };
        let (stored, may_be_more_on_disk) = variants::all(exchange, self.found.as_ref(), self.call);
        let is_fetched = storing.is_some() || outcome.refreshes;
        let may_be_stored = storing.as_ref().is_some_and(|it| it.word != "no");
        let rules = self.rules(exchange, is_unsent, is_fetched, may_be_stored);
        Ok(Explanation {
            version: EXPLAIN_VERSION,
            request,
            outcome,
            inputs: self.inputs.finish(),
            rules,
            modules: modules_of(exchange),
            storing,
            not_stored,
            next_hop: None,
            next_hop_problem: None,
            certificates: Vec::new(),
            certificate_problem: None,
            stored,
            may_be_more_on_disk,
            values_shown: self.call.shows_values,
        })
    }

    /// The rules that are for a request, with the actions that have a part in what becomes of it.
    fn rules(
        &self,
        exchange: &RequestState,
        is_unsent: bool,
        is_fetched: bool,
        may_be_stored: bool,
    ) -> Vec<RuleUse> {
        let found = self.found.as_ref().map(|found| &*found.response);
        let left = exchange.tx.request().directives;
        let has_part = |action: Action| match action {
            Action::Key | Action::Request => true,
            _ if is_unsent => false,
            Action::Ignore => exchange
                .directives_sent
                .as_deref()
                .is_some_and(|sent| *sent != left),
            Action::ReadAhead | Action::Abort => is_fetched,
            action if action.is_of_storing() => found.is_some() || may_be_stored,
            _ => true,
        };
        rules::uses(exchange, found, &has_part)
    }

    /// What becomes of a request that the spent quota of a link keeps from its next hop.
    fn without_next_hop(
        &mut self,
        exchange: &mut RequestState,
        now: Now,
        spent: SpentLink,
    ) -> OutcomeReport {
        let failure = Failure::LinkSpent {
            stale_for: spent.now.stale_for,
        };
        if let (Some(found), Some(stale_for)) = (&self.found, spent.now.stale_for) {
            let own = &found.response.facts;
            let facts = self
                .context
                .settings
                .facts_now(&mut exchange.tx.clone(), own);
            let used = exchange.reuse_of(&found.response).of(&facts);
            links::add_stale(&mut self.inputs, now, &used, stale_for);
        }
        let rules = &self.context.settings.rules;
        let commands = exchange.tx.handle(now, rules, Event::Failed(failure));
        if !matches!(commands.first(), Some(Command::Serve(_))) {
            let status = spent.now.status;
            let answer = Answer::open(status, AnswerReason::link_spent(spent));
            return of_answer(self.context, &answer);
        }
        if let Some(found) = &self.found {
            exchange.note_rules(&found.response);
        }
        self.outcome(exchange, &commands)
    }

    /// Finds the variant that the request gets of modules; `false` if they answer it, or send it
    /// elsewhere.
    async fn select(&mut self, exchange: &mut RequestState) -> bool {
        let is_read = matches!(exchange.request.method, Method::Get | Method::Head);
        // boxed: few have modules that change what is stored
        !is_read || Box::pin(module_variants::select(exchange)).await
    }

    /// Steps the transaction to where the response comes from.
    async fn choose(
        &mut self,
        exchange: &mut RequestState,
        now: Now,
        sent: &RequestDirectives,
    ) -> Result<Commands, StoredError> {
        let settings = &self.context.settings;
        let mut facts = *exchange.tx.request();
        exchange.ignore_directives(&mut facts);
        let keeps_content = facts.directives.no_transform;
        let choice = module_variants::begin(exchange, facts.method, keeps_content);
        let mut tx = Transaction::new(facts, now);
        if choice.fetches_whole {
            tx.fetch_whole();
        }
        let commands = fast::start(&mut tx, settings, now, choice, true);
        self.add_begin(facts.method, choice.bypass);
        if commands.first() != Some(Command::LookUp) {
            if !choice.bypass && !settings.config.cache.enabled {
                self.inputs.add("cache", "off", "cache.enabled");
            } else if matches!(facts.method, Method::Get | Method::Head) && !choice.bypass {
                let profile = settings.config.cache.profile.as_str();
                self.inputs.add("profile", profile, "cache.profile");
            }
            exchange.tx = tx;
            return Ok(commands);
        }
        let commands = match self.look_up(exchange).await? {
            Err(missing) => tx.handle(now, &settings.rules, Event::Missing(missing)),
            Ok(found) => {
                let reuse = exchange.reuse_of(&found.response);
                let lines = exchange.request.fields();
                let of_use = (now, reuse);
                let response = &found.response;
                let commands = fast::judge_found(&mut tx, settings, of_use, &lines, response);
                let used = reuse.of(&settings.facts_now(&mut tx.clone(), &response.facts));
                if used.is_withheld_from(&facts) {
                    let value = match used.lacks_rule() {
                        true => "no rule permits any more what it was stored by",
                        false => "a rule alone gives its lifetime: it answers no user's request",
                    };
                    self.inputs
                        .add("rule of the operator", value, "rule[].ignore");
                } else {
                    let may_be_purged = tx.verdict().may_be_purged;
                    let directives = (sent, &facts.directives);
                    self.inputs
                        .add_judgement(now, directives, &used, may_be_purged);
                }
                if tx.verdict().handling == Handling::Forward(Fwd::Partial) {
                    let value = "the stored part lacks some of it";
                    self.inputs
                        .add("requested range", value, "RFC 9111 section 3.3");
                }
                let response = Arc::clone(&found.response);
                self.found = Some(found);
                drop(lines);
                exchange.tx = tx;
                if commands
                    .first()
                    .is_some_and(|it| matches!(it, Command::Serve(_)))
                {
                    exchange.note_rules(&response);
                }
                tx = exchange.tx;
                commands
            }
        };
        if tx.verdict().handling == Handling::Refused(RefuseReason::OnlyIfCached) {
            let value = "present: no origin is asked";
            self.inputs.add(
                "only-if-cached of the request",
                value,
                "RFC 9111 section 5.2.1.7",
            );
        }
        exchange.tx = tx;
        Ok(commands)
    }

    fn add_begin(&mut self, method: Method, bypass: bool) {
        match method {
            Method::Get | Method::Head => {
                let value = "GET or HEAD: stored responses answer it";
                self.inputs.add("method", value, "RFC 9111 section 4");
            }
            _ => {
                let value = "stored responses answer GET and HEAD alone";
                self.inputs.add("method", value, "RFC 9111 section 4");
                return;
            }
        }
        if bypass {
            let value = "has it bypass the cache";
            self.inputs
                .add("rule of the operator", value, "rule[].bypass");
        }
    }

    /// Looks in memory, then on disk.
    async fn look_up(
        &mut self,
        exchange: &RequestState,
    ) -> Result<Result<FoundVariant, Missing>, StoredError> {
        let store = &self.context.worker.shared.store;
        let (fields, key) = (exchange.request.fields(), exchange.variant_key());
        let fields = exchange.selecting(&fields);
        let selecting = |rule: &VaryRule| selecting_digest(store.secret(), key, rule, fields);
        let of_variants = exchange.variant_digest().is_some();
        let missing = match store.peek(exchange.key, of_variants, &selecting) {
            LookupResult::Found(response) => {
                self.add_found("in memory", &response.head);
                return Ok(Ok(FoundVariant::in_memory(response)));
            }
            LookupResult::Missing(missing) => missing,
        };
        if !store.may_be_on_disk(exchange.key) {
            self.add_missing(missing, "");
            return Ok(Err(missing));
        }
        let now = self.context.worker.now();
        let looking = store.peek_on_disk(now, exchange.key, of_variants, &selecting);
        let found = timeout(READ_WAIT, looking).await;
        match found.map_err(|_| StoredError::Timeout)? {
            Ok(Ok((vary, response))) if keeps_to_targeted(exchange, &response) => {
                self.add_found("on disk", &response.head);
                Ok(Ok(FoundVariant::on_disk(vary, response)))
            }
            Ok(Err(on_disk)) => {
                let missing = match missing {
                    Missing::Variant => missing,
                    Missing::Target => on_disk,
                };
                self.add_missing(missing, "");
                Ok(Err(missing))
            }
            Ok(Ok(_)) => {
                self.add_missing(
                    missing,
                    "; what is on disk was stored by other targeted fields",
                );
                Ok(Err(missing))
            }
            Err(_) => {
                self.add_missing(missing, "; what is on disk cannot be read");
                Ok(Err(missing))
            }
        }
    }

    fn add_found(&mut self, place: &str, head: &[u8]) {
        let value = format!("a response is stored for it, {place}");
        self.inputs.add("target URI", value, "RFC 9111 section 2");
        let names = variants::vary_of(head);
        if !names.is_empty() {
            let value = format!("the fields match: {}", names.join(", "));
            self.inputs.add("Vary", value, "RFC 9111 section 4.1");
        }
    }

    fn add_missing(&mut self, missing: Missing, beside: &str) {
        match missing {
            Missing::Target => {
                let value = format!("nothing is stored for it{beside}");
                self.inputs.add("target URI", value, "RFC 9111 section 2");
            }
            Missing::Variant => {
                let value = format!("no stored response has its nominated fields{beside}");
                self.inputs.add("Vary", value, "RFC 9111 section 4.1");
            }
        }
    }

    fn outcome(&self, exchange: &RequestState, commands: &Commands) -> OutcomeReport {
        let tx = &exchange.tx;
        let verdict = tx.verdict();
        let word = match commands.first() {
            Some(Command::Serve(_)) => "hit",
            Some(Command::Forward(forwarding)) if forwarding.validate => "validated",
            Some(Command::Forward(forwarding)) if forwarding.complete => "completed",
            Some(Command::Forward(_)) if tx.is_for_caches() => "fetched",
            Some(Command::Forward(_)) => "passed",
            _ => return of_answer(self.context, &Answer::only_if_cached()),
        };
        let mut all = commands.iter();
        OutcomeReport {
            word,
            verdict: verdict.handling.as_str(),
            detail: verdict.detail(),
            cache_status: cache_status(self.context, verdict),
            fresh_for_s: verdict.ttl,
            refreshes: all.any(|command| command == Command::RefreshInBackground),
            status: None,
            text: None,
        }
    }

    fn forecast(&self, exchange: &RequestState, now: Now) -> StoringForecast {
        if self
            .context
            .settings
            .cluster()
            .is_some_and(|it| it.is_front_end())
        {
            return no("front-end", None);
        }
        forecast(&exchange.tx, now, &exchange.storing_rules(200, None))
    }
}

/// Why a request that is to be forwarded is sent nowhere, if that is known before: the input that
/// decides so, the key of the configuration, and the answer.
fn unsent(
    exchange: &RequestState,
    is_let_through: bool,
) -> Option<(&'static str, &'static str, Answer)> {
    if let Err(answer) = NextHop::check_origin(exchange) {
        return Some(("destination", "access.allow_destinations", answer));
    }
    let found = match is_let_through {
        true => NextHop::check_route(exchange),
        // modules may send it elsewhere
        false => Ok(()),
    };
    found.err().map(|answer| ("route", "route[].host", answer))
}

const fn no(reason: &'static str, section: Option<&'static str>) -> StoringForecast {
    StoringForecast {
        word: "no",
        reason: Some(reason),
        section,
    }
}

/// Whether a response can be stored: two that permit it, one of which says that it is for all, are
/// judged as if they had come.
fn forecast(tx: &Transaction, now: Now, rules: &Rules) -> StoringForecast {
    let storing = |said: &[u8]| {
        let lines = [FieldLine::new("Cache-Control", said)];
        let response = ResponseFacts::gather(200, &lines, now.wall);
        let mut tx = *tx;
        tx.handle(now, rules, Event::Response(&response));
        match tx.verdict().storing {
            Some(Storing::NotStored(why)) => Some(why),
            Some(Storing::Stored) | None => None,
        }
    };
    match (storing(b"max-age=60"), storing(b"public, max-age=60")) {
        (None, _) => StoringForecast {
            word: "yes",
            reason: None,
            section: None,
        },
        (Some(why), None) => StoringForecast {
            word: "if-shared",
            ..no(why.as_str(), section_of(why))
        },
        (_, Some(why)) => no(why.as_str(), section_of(why)),
    }
}

const fn section_of(why: NotStored) -> Option<&'static str> {
    match why {
        NotStored::Rule(NotStorable::Authorization) => Some("RFC 9111 section 3.5"),
        NotStored::Rule(NotStorable::RequestNoStore) => Some("RFC 9111 section 5.2.1.5"),
        NotStored::Rule(_) => Some("RFC 9111 section 3"),
        NotStored::BypassByRule => Some("rule[].bypass"),
        NotStored::Profile(_) => Some("cache.profile"),
        _ => None,
    }
}

/// What is said of a request that is answered before anything is looked up.
fn refusal(
    context: &CallContext,
    (call, request): (&ExplainCall, RequestReport),
    refused: RefusedPreview,
    key: Digest,
    mut inputs: Inputs,
) -> Explanation {
    let RefusedPreview { answer, rules } = refused;
    let (name, section) = match answer.reason.refused {
        RefuseReason::Rule => ("rule of the operator", "rule[].deny"),
        RefuseReason::Denied => ("client or method", "access.clients"),
        RefuseReason::Loop => ("Via", "RFC 9110 section 7.6.3"),
        _ => ("request head", "RFC 9110"),
    };
    inputs.add(name, answer.reason.text.clone(), section);
    let settings = &context.settings;
    let (stored, may_be_more_on_disk) = variants::of_refused(
        context,
        key,
        (&request.url, mode_of(call.target.mode)),
        call,
    );
    Explanation {
        version: EXPLAIN_VERSION,
        outcome: of_answer(context, &answer),
        inputs: inputs.finish(),
        rules: rules::of_refused(settings, rules),
        modules: Vec::new(),
        storing: None,
        not_stored: Vec::new(),
        next_hop: None,
        next_hop_problem: None,
        certificates: Vec::new(),
        certificate_problem: None,
        stored,
        may_be_more_on_disk,
        values_shown: call.shows_values,
        request,
    }
}

/// What an answer of the proxy's own says.
fn of_answer(context: &CallContext, answer: &Answer) -> OutcomeReport {
    let verdict = answer.verdict();
    let is_denied = matches!(
        answer.reason.refused,
        RefuseReason::Denied | RefuseReason::Rule
    );
    OutcomeReport {
        word: match is_denied {
            true => "denied",
            false => verdict.handling.as_str(),
        },
        verdict: verdict.handling.as_str(),
        detail: verdict.detail(),
        cache_status: cache_status(context, &verdict),
        fresh_for_s: None,
        refreshes: false,
        status: Some(answer.status),
        text: Some(answer.reason.text.clone()),
    }
}

/// The value of `Cache-Status`.
fn cache_status(context: &CallContext, verdict: &Verdict) -> String {
    let mut line = Vec::new();
    write_cache_status(&context.settings, verdict, &mut line);
    let line = String::from_utf8_lossy(&line);
    let value = line.split_once(": ").map_or("", |(_, value)| value);
    value.trim_end().to_owned()
}

/// The names of the modules that are called for a request.
fn modules_of(exchange: &RequestState) -> Vec<String> {
    let modules = &exchange.settings.modules;
    let (host, path) = (
        exchange.request.host.as_bytes(),
        exchange.request.path_and_query(),
    );
    let called = modules.called(host, path);
    let all = modules.iter().filter(|(id, _)| called.contains(*id));
    all.map(|(_, module)| module.name().to_owned()).collect()
}
