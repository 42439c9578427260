//! A shared cache as the RFCs describe it, as a list of what may be seen: for each response, which
//! earlier answers of the origin may be in it, and which of their fields.
//!
//! It looks at what was asked, told and seen, and knows nothing of how the cache works. Sources:
//! RFC 9111 §3 (storing), §3.2 and §4.3.4 (304), §3.4 (parts), §3.5 (Authorization), §4.1 (Vary),
//! §4.2 (freshness), §4.2.4 (stale), §4.3.5 (HEAD), §4.4 (invalidation), §7.3 (cookies); RFC 5861;
//! RFC 9110 §7.6.1 (Connection). Stricter than the RFCs are: a response that sets a cookie is
//! shared only if it says `public` or `s-maxage`, cookies of a 304 are for its client alone, and an
//! error replaces no fresh response.

use crate::cache::{PlayResult, text};
use crate::origin::OriginExchange;
use crate::ruled::Ruled;
use crate::sequence::{Ask, Fault, Request, Role, Say, Sequence, Verb};
use crate::turn::Observation;

/// A rule that was broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) rule: &'static str,
    pub(crate) place: String,
}

/// What a user sees, and what it was made of.
struct View<'a> {
    seen: &'a Observation,
    request: &'a Request,
    at_s: u32,
    told: &'a [OriginExchange],
    /// Answers whose fields or content are in it, oldest first.
    sources: Vec<&'a OriginExchange>,
}

pub(crate) fn check(sequence: &Sequence, played: &PlayResult, ruled: Ruled) -> Vec<Violation> {
    let mut broken = Vec::new();
    for seen in &played.seen {
        let view = View::of(sequence, &played.told, seen);
        // how long a response is used is what rules of the operator change
        let of_use: &[Rule] = match ruled {
            Ruled::No => &[validation, freshness, lifetimes],
            Ruled::Forced => &[validation, lifetimes],
            Ruled::Ignoring => &[lifetimes_given],
        };
        for rule in RULES.iter().chain(of_use) {
            if let Some(rule) = rule(&view) {
                let content: Vec<_> = seen
                    .content
                    .iter()
                    .map(|byte| OriginExchange::number_of(*byte))
                    .collect();
                let (index, role, status) = (seen.exchange, seen.role, seen.status);
                let fields = text(&seen.lines);
                let place = format!("{role:?} of {index} sees {status} {fields} {content:?}");
                broken.push(Violation { rule, place });
            }
        }
    }
    broken.extend(crate::good::check(sequence, played));
    broken
}

/// The name of the rule if it is broken.
type Rule = fn(&View<'_>) -> Option<&'static str>;

const RULES: &[Rule] = &[
    connection_fields,
    sharing,
    cookies,
    nominated_fields,
    invalidation,
    one_representation,
    own_304,
    newer_head,
];

impl<'a> View<'a> {
    fn of(sequence: &'a Sequence, told: &'a [OriginExchange], seen: &'a Observation) -> Self {
        let exchanges = &sequence.0[..=seen.exchange];
        let exchange = &sequence.0[seen.exchange];
        let request = match (seen.role, &exchange.follower) {
            (Role::Follower, Some(follower)) => follower,
            _ => &exchange.client,
        };
        let marks = seen
            .lines
            .iter()
            .filter_map(|line| line.0.strip_prefix("X-Only-"));
        let mut numbers: Vec<usize> = marks.filter_map(|number| number.parse().ok()).collect();
        numbers.extend(
            seen.content
                .iter()
                .map(|byte| OriginExchange::number_of(*byte)),
        );
        numbers.sort_unstable();
        numbers.dedup();
        Self {
            seen,
            request,
            at_s: exchanges.iter().map(|exchange| exchange.pause_s).sum(),
            told,
            sources: numbers.into_iter().map(|number| &told[number]).collect(),
        }
    }

    /// The answer was given to this very request.
    fn is_own(&self, told: &OriginExchange) -> bool {
        told.exchange == self.seen.exchange && told.role == self.seen.role
    }

    /// Those that are not.
    fn stored(&self) -> impl Iterator<Item = &'a OriginExchange> {
        let others = self.sources.iter().filter(|told| !self.is_own(told));
        others.copied().collect::<Vec<_>>().into_iter()
    }

    /// The first of them: what the others update or complete.
    fn base(&self) -> Option<&'a OriginExchange> {
        self.sources.first().copied()
    }

    /// The origin took part in this response.
    fn is_validated(&self) -> bool {
        self.sources.iter().any(|told| self.is_own(told))
    }

    /// What `Cache-Control` says after the update by `told`.
    fn directives(&self, told: &OriginExchange) -> &'a [Say] {
        let mut so_far = self
            .sources
            .iter()
            .rev()
            .filter(|source| source.number <= told.number);
        let last = so_far.find(|source| source.has_directives());
        last.map_or(&[], |source| &source.says)
    }
}

fn has_s_maxage(says: &[Say]) -> bool {
    says.iter().any(|say| matches!(say, Say::SMaxAge(_)))
}

/// `s-maxage`, else `max-age`.
fn lifetime(says: &[Say]) -> Option<u32> {
    let shared = says.iter().find_map(|say| match say {
        Say::SMaxAge(seconds) => Some(*seconds),
        _ => None,
    });
    shared.or_else(|| {
        says.iter().find_map(|say| match say {
            Say::MaxAge(seconds) => Some(*seconds),
            _ => None,
        })
    })
}

/// RFC 9110 §7.6.1.
fn connection_fields(view: &View<'_>) -> Option<&'static str> {
    let mut fields = view.seen.lines.iter();
    fields
        .any(|line| line.0 == "X-Hop" || line.0 == "Connection")
        .then_some("fields for one connection stay there")
}

/// RFC 9111 §3, §3.5.
fn sharing(view: &View<'_>) -> Option<&'static str> {
    for told in view.stored() {
        let (request, directives) = (&told.request, view.directives(told));
        let says = |say| directives.contains(&say);
        let permits =
            told.has(Say::Public) || told.has(Say::MustRevalidate) || has_s_maxage(&told.says);
        if told.method == Verb::Post {
            return Some("only responses to GET are shared");
        }
        if request.has(Ask::NoStore) || says(Say::NoStore) {
            return Some("no-store is not shared");
        }
        if says(Say::Private) {
            return Some("private is not shared");
        }
        if told.has(Say::VaryStar) {
            return Some("`Vary: *` is not shared");
        }
        if request.has(Ask::Authorization) && !permits {
            return Some("what answers Authorization is shared only by its own permission");
        }
    }
    None
}

/// RFC 9111 §3, §4.2.2.
fn lifetimes(view: &View<'_>) -> Option<&'static str> {
    view.stored().find_map(|told| lacks_lifetime(view, told))
}

/// The same where a rule gives a lifetime to all statuses.
fn lifetimes_given(view: &View<'_>) -> Option<&'static str> {
    let mut stored = view.stored();
    stored.find_map(|told| {
        let is_of_user =
            |request: &Request| request.has(Ask::Cookie) || request.has(Ask::Authorization);
        let asked_by_user = is_of_user(&told.request) || is_of_user(view.request);
        lacks_lifetime(view, told).filter(|_| asked_by_user || told.has(Say::SetCookie))
    })
}

fn lacks_lifetime(view: &View<'_>, told: &OriginExchange) -> Option<&'static str> {
    let directives = view.directives(told);
    if lifetime(directives).is_some() {
        return None;
    }
    if told.status >= 400 && !matches!(told.status, 404 | 410) {
        return Some("an error without a lifetime is not shared");
    }
    if told.status == 302 && !directives.contains(&Say::Public) {
        return Some("a redirect without a lifetime is not shared");
    }
    None
}

/// RFC 9111 §7.3, and stricter.
fn cookies(view: &View<'_>) -> Option<&'static str> {
    for told in view.stored() {
        let directives = view.directives(told);
        let permits = directives.contains(&Say::Public) || has_s_maxage(directives);
        let mark = format!("{}.", told.number);
        let is_there = |name: &str| {
            let mut fields = view.seen.lines.iter();
            fields.any(|line| line.0 == name && line.1.contains(&mark))
        };
        let any = is_there("Set-Cookie") || is_there("Set-Cookie2") || is_there("Clear-Site-Data");
        if any && told.is_update() {
            return Some("cookies of a 304 are for its own client");
        }
        if told.status != 304 && told.has(Say::SetCookie) && !permits {
            return Some("a response that sets a cookie is shared only by permission");
        }
    }
    None
}

/// RFC 9111 §4.1: of fields that the origin has received.
fn nominated_fields(view: &View<'_>) -> Option<&'static str> {
    for told in view.stored() {
        for say in &told.says {
            let differs = match say {
                Say::VaryName => name(&told.request) != name(view.request),
                Say::VaryOther => other(&told.request) != other(view.request),
                Say::VaryCookie => cookie(&told.request) != cookie(view.request),
                _ => false,
            };
            if differs {
                return Some("nominated fields match");
            }
        }
    }
    None
}

fn name(request: &Request) -> Option<char> {
    let name = request.asks.iter().find_map(|ask| match ask {
        Ask::Name(value) => Some(*value),
        _ => None,
    });
    name.filter(|_| !request.has(Ask::HidesName))
}

fn other(request: &Request) -> Option<char> {
    request.asks.iter().find_map(|ask| match ask {
        Ask::Other(value) => Some(*value),
        _ => None,
    })
}

fn cookie(request: &Request) -> Option<crate::sequence::User> {
    request.has(Ask::Cookie).then_some(request.user)
}

/// RFC 9111 §5.2.2.4.
fn validation(view: &View<'_>) -> Option<&'static str> {
    let last = view.sources.last()?;
    let is_used = !view.is_validated() && view.directives(last).contains(&Say::NoCache);
    is_used.then_some("no-cache is validated before each use")
}

/// RFC 9111 §4.2, §4.2.4, §5.2.1; RFC 5861.
fn freshness(view: &View<'_>) -> Option<&'static str> {
    let last = view.sources.last()?;
    if view.is_validated() {
        return None;
    }
    let directives = view.directives(last);
    let says = |say| directives.contains(&say);
    let lifetime = lifetime(directives).unwrap_or(0);
    let age = view.at_s - last.at_s;
    let staleness = (age + 1).saturating_sub(lifetime);
    let within_window = staleness <= 101;
    let stale_by_name = says(Say::WhileRevalidate) || says(Say::IfError);
    if staleness > 0 && (says(Say::MustRevalidate) || has_s_maxage(directives) && !stale_by_name) {
        return Some("what must be validated when stale is");
    }
    let in_exchange = |told: &&OriginExchange| {
        told.exchange == view.seen.exchange && told.role != Role::Background
    };
    let asked = || view.told.iter().filter(in_exchange);
    let is_disconnected = asked().any(|told| told.fault == Some(Fault::Closed));
    let is_failed = asked().any(|told| {
        told.fault == Some(Fault::Broken) || matches!(told.status, 500 | 502 | 503 | 504)
    });
    if is_disconnected && (within_window || !says(Say::IfError))
        || is_failed && (staleness == 0 || within_window && says(Say::IfError))
    {
        return None;
    }
    if view.request.has(Ask::NoCache) {
        return Some("no-cache asks the origin");
    }
    if view.request.has(Ask::MaxAge0) && age > 0 {
        return Some("max-age=0 asks the origin");
    }
    let allowed = staleness == 0
        || view.request.has(Ask::MaxStale)
        || says(Say::WhileRevalidate) && within_window;
    (!allowed).then_some("stale responses are validated")
}

/// RFC 9111 §4.4.
fn invalidation(view: &View<'_>) -> Option<&'static str> {
    let last = view.sources.last()?;
    let changed = |told: &OriginExchange| {
        let came = !matches!(told.fault, Some(Fault::Closed | Fault::Broken));
        told.method == Verb::Post && told.status < 400 && came
    };
    let since = last.number + 1..view.seen.told.max(last.number + 1);
    (!view.is_validated() && view.told[since].iter().any(changed))
        .then_some("what was changed is asked for again")
}

/// RFC 9111 §3.4, §4.3.4, §4.3.5: what is merged is about one representation.
fn one_representation(view: &View<'_>) -> Option<&'static str> {
    let base = view.base()?;
    // what a 206 leaves in the store is a part of a 200
    let status = if base.status == 206 { 200 } else { base.status };
    for told in &view.sources[1..] {
        let is_update = told.status == 304
            || told.status == 206
            || told.method == Verb::Head && told.status == status;
        if !is_update {
            return Some("a new response has nothing of the old one");
        }
        if let (Some(new), Some(old)) = (told.tag(), base.tag())
            && new.0 != old.0
        {
            return Some("what names another representation updates none");
        }
        if told.status == 304 && told.tag().is_some() && base.tag().is_none() {
            return Some("what names another representation updates none");
        }
    }
    let mut content: Vec<_> = view
        .seen
        .content
        .iter()
        .map(|byte| OriginExchange::number_of(*byte))
        .collect();
    content.dedup();
    let tags = || content.iter().map(|number| view.told[*number].tag());
    let is_one = content.len() < 2
        || tags().all(|tag| tag.is_some_and(|tag| tag.1) && tag == tags().next().flatten());
    (!is_one).then_some("parts that are joined have one strong tag")
}

/// RFC 9111 §4.3.4: this client gets the merged response, with everything that is for it.
fn own_304(view: &View<'_>) -> Option<&'static str> {
    let own = view.told.iter().rev().find(|told| view.is_own(told))?;
    if own.status != 304 || own.fault.is_some() || matches!(view.seen.status, 416 | 502) {
        return None;
    }
    let has = |name: &str, value: &str| {
        let mut fields = view.seen.lines.iter();
        fields.any(|line| line.0 == name && line.1.starts_with(value))
    };
    let number = own.number.to_string();
    let cookie = format!("sid={number}.");
    let is_there = has(&format!("X-Only-{number}"), "")
        && (!own.has(Say::SetCookie) || has("Set-Cookie", &cookie))
        && (!own.has(Say::SetCookie2) || has("Set-Cookie2", &cookie))
        && (!own.has(Say::ClearSiteData) || has("Clear-Site-Data", &format!("\"{number}.")));
    (!is_there).then_some("what a 304 says goes to its own client")
}

/// RFC 9111 §4.3.5: a HEAD that shows another representation makes what is stored invalid.
fn newer_head(view: &View<'_>) -> Option<&'static str> {
    let (base, last) = (view.base()?, view.sources.last()?);
    let varies = |told: &OriginExchange| {
        let mut says = told.says.iter();
        says.any(|say| {
            matches!(
                say,
                Say::VaryName | Say::VaryOther | Say::VaryCookie | Say::VaryStar
            )
        })
    };
    let shows_another = |told: &&OriginExchange| {
        let is_public =
            !told.has(Say::Private) && !told.has(Say::NoStore) && !told.request.has(Ask::NoStore);
        let differs = told
            .tag()
            .zip(base.tag())
            .is_some_and(|(new, old)| new.0 != old.0);
        // else it may have come when nothing was stored yet
        let is_later = told.exchange > last.exchange;
        is_later
            && told.method == Verb::Head
            && told.status == 200
            && !matches!(told.fault, Some(Fault::Closed | Fault::Broken))
            && is_public
            && !told.request.has(Ask::Authorization)
            && !varies(told)
            && differs
    };
    let since = last.number + 1..view.seen.told.max(last.number + 1);
    let is_outdated = base.status == 200
        && !varies(base)
        && !view.is_validated()
        && view.told[since].iter().any(|told| shows_another(&told));
    is_outdated.then_some("what HEAD shows to be outdated is asked for again")
}
