//! What is stored for the target of a request that is explained.

use super::report::{FieldReport, Mark, StoredReport};
use super::{ExplainCall, rules};
use crate::config::Mode;
use crate::exchange::state::{RequestState, reuse_of};
use crate::host::own_request::whole_target;
use crate::host::stored::calls::CallContext;
use crate::modules::report::push_visible;
use crate::send::heads::stored_fields;
use crate::settings::Settings;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock};
use weir_policy::rule::{IgnoredDirective, Reuse};
use weir_policy::{Digest, Now, StoredFacts, Transaction};
use weir_semantics::{
    Expires, FieldLine, Heuristic, HostName, Known, LifetimeSource, Method, RequestFacts,
    ResponseFacts, identify, line_named, lines_named, nominated, sourced_lifetime, write_http_date,
};
use weir_store::{FORWARDED, MODULES, MemoryStore, StoredResponse, VaryRule};
use weir_wire::LineBuffer;

/// Most bytes of a value that are shown; the rest is left out.
const VALUE_BYTES_MAX: usize = 512;

/// Most fields of a stored response that are shown.
const FIELDS_MAX: usize = 64;

/// The key of hashes of values: equal ones can be told as long as the process runs, and nothing can
/// be tried against them elsewhere.
static HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The stored response that a request selects.
pub(super) struct FoundVariant {
    pub(super) response: Arc<StoredResponse>,
    /// What it varies on, if it was found on disk alone.
    on_disk: Option<Option<(VaryRule, Digest)>>,
}

impl FoundVariant {
    pub(super) const fn in_memory(response: Arc<StoredResponse>) -> Self {
        Self {
            response,
            on_disk: None,
        }
    }

    pub(super) const fn on_disk(
        vary: Option<(VaryRule, Digest)>,
        response: Arc<StoredResponse>,
    ) -> Self {
        Self {
            response,
            on_disk: Some(vary),
        }
    }
}

/// Of what target the stored responses are.
#[derive(Clone, Copy)]
struct Stored<'a> {
    settings: &'a Settings,
    store: &'a MemoryStore,
    key: Digest,
    mode: Mode,
    target: (&'a [u8], &'a str),
    now: Now,
    shows_values: bool,
}

/// All that is stored for the target of a request, of which `found` is selected; whether the disk
/// may have more.
pub(super) fn all(
    exchange: &RequestState,
    found: Option<&FoundVariant>,
    call: &ExplainCall,
) -> (Vec<StoredReport>, bool) {
    let host = &exchange.request.host;
    let stored = Stored {
        settings: &exchange.settings,
        store: &exchange.worker.shared.store,
        key: exchange.key,
        mode: exchange.request.mode,
        target: (host.as_bytes(), exchange.request.path_and_query()),
        now: exchange.worker.now(),
        shows_values: call.shows_values,
    };
    stored.all(found)
}

/// The same of a request that is refused.
pub(super) fn of_refused(
    context: &CallContext,
    key: Digest,
    (url, mode): (&str, Mode),
    call: &ExplainCall,
) -> (Vec<StoredReport>, bool) {
    let mut host = HostName::EMPTY;
    let Some(target) = whole_target(Method::Get, url, &mut host) else {
        return (Vec::new(), false);
    };
    let stored = Stored {
        settings: &context.settings,
        store: &context.worker.shared.store,
        key,
        mode,
        target: (target.host.as_bytes(), target.path_and_query),
        now: context.worker.now(),
        shows_values: call.shows_values,
    };
    stored.all(None)
}

impl Stored<'_> {
    fn all(&self, found: Option<&FoundVariant>) -> (Vec<StoredReport>, bool) {
        let in_memory = self.store.variants(self.key);
        let mut varies = in_memory.iter();
        let varies = varies.any(|(vary, _)| vary.is_some());
        let may_be_more = self.store.may_be_on_disk(self.key) && (in_memory.is_empty() || varies);
        let mut all = Vec::with_capacity(in_memory.len() + 1);
        let selected = found.filter(|found| found.on_disk.is_none());
        for (vary, response) in &in_memory {
            let selecting = vary.as_ref().map(|(_, selecting)| *selecting);
            let is_it = |found: &FoundVariant| Arc::ptr_eq(&found.response, response);
            let is_selected = selected.is_some_and(is_it);
            let on_disk = self.store.is_on_disk(self.key, selecting);
            all.push(self.report(vary.as_ref(), response, (is_selected, on_disk)));
        }
        if let Some(found) = found
            && let Some(vary) = &found.on_disk
        {
            all.push(self.report(vary.as_ref(), &found.response, (true, true)));
        }
        let is_single = all.len() == 1 && all[0].vary.is_empty();
        (all, may_be_more && !is_single)
    }

    fn report(
        &self,
        vary: Option<&(VaryRule, Digest)>,
        response: &StoredResponse,
        (selected, on_disk): (bool, bool),
    ) -> StoredReport {
        let mut lines = LineBuffer::new();
        let fields = stored_fields(&response.head, &mut lines);
        let (own, now) = (&response.facts, self.now);
        let reuse = reuse_of(self.settings, self.mode, self.target, response);
        let (used, may_be_purged) = self.used(own, reuse);
        let (by, field) = self.lifetime_by(response, fields, reuse);
        let has_cookie = lines_named(fields, "set-cookie").next().is_some();
        let names = vary.map(|(rule, _)| rule.0.to_vec()).unwrap_or_default();
        let is_of = |what: &str| names.iter().any(|name| &**name == what);
        let marks = [
            (own.keeps_lifetime && !has_cookie, Mark::Authorization),
            (own.keeps_lifetime && has_cookie, Mark::SetCookie),
            (!own.ignored.is_empty(), Mark::ByRule),
            (used.lacks_rule(), Mark::LacksRule),
            (may_be_purged, Mark::MayBePurged),
            (response.is_part(), Mark::Part),
            (own.is_transformed, Mark::Transformed),
            (is_of(MODULES), Mark::OfModules),
            (is_of(FORWARDED), Mark::Forwarded),
        ];
        let marks = marks.into_iter().filter(|(has, _)| *has);
        let storing = self.settings.operator_rules.storing_by(
            self.mode.into(),
            self.target,
            own.status,
            &content_type_of(response),
        );
        let is_by_rule = matches!(by, "rule" | "assigned");
        let tag = response.entity_tag.as_deref();
        StoredReport {
            selected,
            vary: names
                .iter()
                .filter(|name| !name.starts_with(':'))
                .map(|name| visible(name.as_bytes()))
                .collect(),
            vary_hash: vary.map(|(_, selecting)| hash(&(selecting.0, selecting.1))),
            status: own.status,
            place: match response.body.is_in_memory() {
                true => "memory",
                false => "disk",
            },
            on_disk,
            stored_bytes: response.body.present_bytes(),
            complete_bytes: response.complete_length(),
            age_s: own.current_age(now).0,
            lifetime_s: used.freshness_lifetime.0,
            lifetime_by: by,
            lifetime_field: field,
            lifetime_rule: is_by_rule
                .then(|| rules::numbers(self.settings, storing).lifetime)
                .flatten(),
            fresh_for_s: used.ttl(now),
            no_cache: used.no_cache,
            must_revalidate: used.must_revalidate,
            stale_while_revalidate_s: used.stale_while_revalidate.map(|seconds| seconds.0),
            stale_if_error_s: used.stale_if_error.map(|seconds| seconds.0),
            entity_tag: tag.map(|tag| self.shown("ETag", tag)),
            is_strong: own.strong_tag,
            last_modified: response.last_modified.map(|time| {
                let mut date = [0; 29];
                write_http_date(time, &mut date);
                String::from_utf8_lossy(&date).into_owned()
            }),
            marks: marks.map(|(_, mark)| mark.as_str()).collect(),
            ignored: IgnoredDirective::ALL
                .into_iter()
                .filter(|directive| own.ignored.has(*directive))
                .map(IgnoredDirective::as_str)
                .collect(),
            fields_left_out: fields.len().saturating_sub(FIELDS_MAX),
            fields: fields
                .iter()
                .take(FIELDS_MAX)
                .map(|line| FieldReport {
                    name: visible(line.name.as_bytes()),
                    value: self.shown(line.name, line.value),
                })
                .collect(),
        }
    }

    /// The facts by which it is used now, and whether it may have been purged.
    fn used(&self, own: &StoredFacts, reuse: Reuse) -> (StoredFacts, bool) {
        let facts = RequestFacts::gather(Method::Get, "/", &[]);
        let mut tx = Transaction::new(facts, self.now);
        let used = reuse.of(&self.settings.facts_now(&mut tx, own));
        (used, tx.verdict().may_be_purged)
    }

    /// What gives it its lifetime, and the targeted field that does.
    fn lifetime_by(
        &self,
        response: &StoredResponse,
        fields: &[FieldLine<'_>],
        reuse: Reuse,
    ) -> (&'static str, Option<String>) {
        let own = &response.facts;
        if reuse.forced.is_some() && !own.keeps_lifetime {
            return ("rule", None);
        }
        let said = ResponseFacts::gather(own.status, fields, self.now.wall)
            .targeted(fields, self.settings.targeted(self.mode));
        let field = self.settings.targeted_name(said.decided_by);
        let ignores_expires = own.ignored.has(IgnoredDirective::ResponseExpires);
        let left = ResponseFacts {
            directives: own.ignored.left_of(&said.directives),
            expires: said.expires.filter(|_: &Expires| !ignores_expires),
            ..said
        };
        let content_type = content_type_of(response);
        let storing = self.settings.operator_rules.storing(
            self.mode.into(),
            self.target,
            own.status,
            &content_type,
        );
        let heuristic = Heuristic {
            assigned: storing.default,
            ..self.settings.rules.heuristic
        };
        let (source, seconds) = sourced_lifetime(&left, response.date, &heuristic);
        // as if it said so itself: nothing of it is in its fields
        if own.ignored.gives_lifetime() && storing.default == Some(own.freshness_lifetime) {
            return (LifetimeSource::Assigned.as_str(), None);
        }
        let is_it = seconds == own.freshness_lifetime;
        let is_stated = matches!(source, LifetimeSource::SMaxage | LifetimeSource::MaxAge);
        match is_it {
            true => (
                source.as_str(),
                field.filter(|_| is_stated).map(str::to_owned),
            ),
            false => ("changed", None),
        }
    }

    /// A value, or its hash if it may be of one user.
    fn shown(&self, name: &str, value: &[u8]) -> String {
        if self.shows_values || is_plain(name) || self.settings.is_targeted(name) {
            visible(value)
        } else {
            format!("hash:{}", hash(value))
        }
    }
}

/// Whether the values of a field say how a response is cached, or what kind of content it has, and
/// nothing of a user.
fn is_plain(name: &str) -> bool {
    matches!(
        identify(name),
        Some(
            Known::AcceptRanges
                | Known::Age
                | Known::CacheControl
                | Known::CdnCacheControl
                | Known::ContentEncoding
                | Known::ContentLanguage
                | Known::ContentLength
                | Known::ContentRange
                | Known::ContentType
                | Known::Date
                | Known::ETag
                | Known::Expires
                | Known::LastModified
                | Known::Pragma
                | Known::Vary
        )
    )
}

fn hash(value: &(impl std::hash::Hash + ?Sized)) -> String {
    format!("{:016x}", HASHES.hash_one(value))
}

fn visible(value: &[u8]) -> String {
    let mut text = String::new();
    push_visible(&mut text, &String::from_utf8_lossy(value), VALUE_BYTES_MAX);
    text
}

/// The names of the fields that a stored response varies on.
pub(super) fn vary_of(head: &[u8]) -> Vec<String> {
    let mut lines = LineBuffer::new();
    let fields = stored_fields(head, &mut lines);
    let names = nominated(lines_named(fields, "vary"));
    names.map(|name| visible(name.as_bytes())).collect()
}

/// The value of its Content-Type; empty if there is none.
pub(super) fn content_type_of(response: &StoredResponse) -> Vec<u8> {
    let mut lines = LineBuffer::new();
    let fields = stored_fields(&response.head, &mut lines);
    line_named(fields, "content-type")
        .unwrap_or_default()
        .to_vec()
}
