//! Other proxies that forward requests are sent to: parents, which answer any request, and
//! siblings, which are asked for what they have stored.

use crate::config::listener::{Listener, ListenerKind};
use crate::config::route::{HostPattern, OwnPlaces, PathPrefix};
use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::setting::{Setting, check_range};
use crate::config::values::next_hop_url::{ClearUrl, NextHopUrl};
use crate::config::values::text::choice;
use crate::config::values::time::span::Span;
use crate::config::values::token_file::TokenFile;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use weir_policy::route::NODES_MAX;
use weir_policy::route::policy::PolicyKind;

/// One `[[parent]]` table. Which of several a request is sent to is decided as among next hops of
/// routes, in `weir_policy::route`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parent {
    /// The proxy; absent only in a table that sends requests to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<NextHopUrl>,
    /// What it is asked for.
    #[serde(default)]
    pub kind: ParentKind,
    /// Hosts it is for; absent for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostPattern>,
    /// Path prefix it is for.
    #[serde(default)]
    pub path: PathPrefix,
    /// Its share of the requests.
    #[serde(default = "weight")]
    pub weight: u16,
    /// How the parents for the same host and path share the requests; absent: as another of their
    /// tables says, or the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyKind>,
    /// Whether the requests may be sent to the host of their URL; absent: as another table for the
    /// same host and path says, or the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direct: Option<Direct>,
    /// Whether what comes from it is stored here.
    #[serde(default = "keep")]
    pub keep: bool,
    /// The file with the name and password to prove to it who this proxy is.
    #[serde(default = "no_login", skip_serializing_if = "is_off")]
    pub login_file: TokenFile,
    /// How long a sibling may take; absent for the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

choice! {
    /// What another proxy is asked for.
    #[derive(Default, PartialOrd, Ord)]
    pub enum ParentKind {
        /// For any request.
        #[default]
        Parent = "parent",
        /// For what it has stored.
        Sibling = "sibling",
    }
}

choice! {
    /// Whether requests for which there are parents may be sent to the host of their URL.
    #[derive(Default)]
    pub enum Direct {
        /// If no parent can be reached.
        #[default]
        Fallback = "fallback",
        /// Never.
        Never = "never",
        /// First; to parents if it cannot be reached.
        Prefer = "prefer",
        /// Always: parents and siblings are not asked.
        Always = "always",
    }
}

const fn weight() -> u16 {
    1
}

const fn keep() -> bool {
    true
}

const fn no_login() -> TokenFile {
    TokenFile::Off
}

fn is_off(file: &TokenFile) -> bool {
    *file == TokenFile::Off
}

/// How long a sibling may take if its table does not say it: Squid waits at most so long for
/// answers to its queries (`maximum_icp_query_timeout`).
const TIMEOUT: Span = Span::from_secs(2);

/// The shortest and the longest time for a sibling.
const TIMEOUTS: [Span; 2] = [Span::from_millis(10), Span::from_mins(1)];

impl Parent {
    /// A parent at `url`, and all else by default.
    #[must_use]
    pub fn new(url: NextHopUrl) -> Self {
        Self {
            url: Some(url),
            kind: ParentKind::default(),
            host: None,
            path: PathPrefix::default(),
            weight: weight(),
            policy: None,
            direct: None,
            keep: keep(),
            login_file: TokenFile::Off,
            timeout: None,
        }
    }

    /// How long it may take, if it is a sibling.
    #[must_use]
    pub fn timeout(&self) -> Span {
        self.timeout.unwrap_or(TIMEOUT)
    }

    /// The targets that it is for.
    fn scope(&self) -> Scope<'_> {
        (self.host.as_ref(), &self.path)
    }

    pub(in crate::config) fn settings() -> Vec<Setting> {
        vec![
            Setting::new::<ClearUrl>(
                "parent[].url",
                &[
                    "Another proxy, to which requests of forward listeners are sent, in absolute form, and CONNECT too.",
                    "Left out only with `direct = \"always\"`.",
                ],
            ),
            Setting::new::<ParentKind>(
                "parent[].kind",
                &[
                    "A `parent` is asked for anything. A `sibling` is asked for what it has stored (`only-if-cached`): before the",
                    "parents, for GET and HEAD that a cache may answer, two siblings at most; never by CONNECT.",
                ],
            )
            .by_default(&ParentKind::default()),
            Setting::new::<HostPattern>(
                "parent[].host",
                &[
                    "Hosts it is for, as `route[].host`. Of the tables with parents, those with the most exact host and the",
                    "longest path that fit are used, as of routes; of those with siblings too.",
                ],
            ),
            Setting::new::<PathPrefix>(
                "parent[].path",
                &["What the path begins with, as `route[].path`. CONNECT has the path `/`."],
            )
            .by_default(&PathPrefix::default()),
            Setting::new::<u16>(
                "parent[].weight",
                &["Its share of the requests, relative to those of the others for the same host and path."],
            )
            .by_default(&weight())
            .within(&1, &u16::MAX),
            Setting::new::<PolicyKind>(
                "parent[].policy",
                &[
                    "How the parents for the same host and path share the requests: the words of `route[].policy`, with the",
                    "constants that are the default there. One of their tables says it, or several alike. Squid's `carp` is `hash`.",
                ],
            )
            .by_default(&PolicyKind::default()),
            Setting::new::<Direct>(
                "parent[].direct",
                &[
                    "Whether requests for this host and path may be sent to the host of their URL: `fallback` if no parent can be",
                    "reached, `never`, `prefer` for first and parents only if that cannot be reached, `always` for all of them: then",
                    "the table has no `url`. One of the tables for the host and path says it, or several alike.",
                ],
            )
            .by_default(&Direct::default()),
            Setting::new::<bool>(
                "parent[].keep",
                &["Whether responses that come from it are stored here. Squid's `proxy-only` is `false`."],
            )
            .by_default(&keep()),
            Setting::new::<TokenFile>(
                "parent[].login_file",
                &[
                    "File with one line, `NAME:PASSWORD`, that its owner alone can read: sent to this proxy as",
                    "`Proxy-Authorization: Basic`, and to nothing else. What clients send in that field is never sent on.",
                ],
            )
            .by_default(&TokenFile::Off),
            Setting::new::<Span>(
                "parent[].timeout",
                &[
                    "Time that a sibling has to accept a connection, and again for the head of its response. Then the next",
                    "sibling is asked, or what comes after the siblings.",
                ],
            )
            .by_default(&TIMEOUT)
            .within(&TIMEOUTS[0], &TIMEOUTS[1]),
        ]
    }
}

/// A host pattern and a path prefix.
type Scope<'a> = (Option<&'a HostPattern>, &'a PathPrefix);

/// How the parents for one host and path are used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ParentsUse {
    /// How they share the requests.
    pub(crate) policy: PolicyKind,
    /// Whether requests may be sent to the host of their URL.
    pub(crate) direct: Direct,
}

/// The tables with the same host and path as parents, by their places, with how they are used; in
/// the order of the first of each.
pub(crate) fn parents(all: &[Parent]) -> Vec<(ParentsUse, Vec<usize>)> {
    let scopes = scopes(all, ParentKind::Parent);
    let of_scope = scopes.into_iter().map(|places| {
        let tables = || places.iter().map(|place| &all[*place]);
        let how = ParentsUse {
            policy: tables().find_map(|it| it.policy).unwrap_or_default(),
            direct: tables().find_map(|it| it.direct).unwrap_or_default(),
        };
        (how, places)
    });
    of_scope.collect()
}

/// The tables of `kind` with the same host and path, by their places.
pub(crate) fn scopes(all: &[Parent], kind: ParentKind) -> Vec<Vec<usize>> {
    let mut numbers: BTreeMap<Scope<'_>, usize> = BTreeMap::new();
    let mut scopes: Vec<Vec<usize>> = Vec::new();
    for (place, parent) in all.iter().enumerate().filter(|(_, it)| it.kind == kind) {
        let number = *numbers.entry(parent.scope()).or_insert(scopes.len());
        match scopes.get_mut(number) {
            Some(scope) => scope.push(place),
            None => scopes.push(vec![place]),
        }
    }
    scopes
}

/// Refuses parents that no request is sent to, that contradict each other, or that are this proxy.
pub(in crate::config) fn check(
    all: &[Parent],
    listeners: &[Listener],
    own: &OwnPlaces,
    mistakes: &mut Mistakes,
) {
    let takes = |listener: &Listener| listener.mode != ListenerKind::Gateway;
    if !all.is_empty() && !listeners.iter().any(takes) {
        mistakes.note(Err(Invalid::new(
            "parent[0]",
            "there are parents and no listener uses them: all are gateways",
            "set mode = \"forward\" on a listener, or name the next hops in a [[route]] table",
        )));
    }
    let mut seen = BTreeSet::new();
    for (index, parent) in all.iter().enumerate() {
        mistakes.note(check_one(index, parent));
        let Some(url) = &parent.url else { continue };
        let key = || format!("parent[{index}].url");
        if !seen.insert((parent.scope(), url)) {
            mistakes.note(Err(Invalid::new(
                key(),
                format!("{url} is in an earlier table for the same host and path"),
                "name it once, with a larger `weight`",
            )));
        }
        mistakes.note(url.refuse_tls(key, "no TLS is spoken with other proxies"));
        mistakes.note(own.check(key, url, "name another proxy here"));
    }
    for kind in ParentKind::ALL {
        for scope in scopes(all, kind) {
            mistakes.note(check_scope(all, &scope));
        }
    }
    mistakes.note(check_never(all));
}

fn check_one(index: usize, parent: &Parent) -> Result<(), Invalid> {
    let key = |name: &str| format!("parent[{index}].{name}");
    check_range(&key("weight"), &parent.weight, &1, &u16::MAX)?;
    if parent.url.is_none() && parent.direct != Some(Direct::Always) {
        return Err(Invalid::new(
            format!("parent[{index}]"),
            "it names no proxy",
            "add its `url`; to send requests to the host of their URL, set direct = \"always\"",
        ));
    }
    if parent.url.is_some() && parent.direct == Some(Direct::Always) {
        return Err(Invalid::new(
            key("url"),
            "no request is sent to it: `direct` is \"always\"",
            "remove the `url`, or use another word for `direct`",
        ));
    }
    if let Some(timeout) = &parent.timeout {
        if parent.kind == ParentKind::Parent {
            return Err(Invalid::new(
                key("timeout"),
                "it is for siblings; a parent has the time of limits.next_hop_silence",
                "remove the line",
            ));
        }
        check_range(&key("timeout"), timeout, &TIMEOUTS[0], &TIMEOUTS[1])?;
    }
    let of_parents = [
        ("policy", parent.policy.is_some()),
        ("direct", parent.direct.is_some()),
    ];
    let misplaced = of_parents.iter().find(|(_, is_set)| *is_set);
    match misplaced.filter(|_| parent.kind == ParentKind::Sibling) {
        None => Ok(()),
        Some((name, _)) => Err(Invalid::new(
            key(name),
            "it is for parents: siblings are asked in turn, before anything else",
            "set it in the table of a parent for the same host and path",
        )),
    }
}

/// Refuses more tables for one host and path than there may be, and those that contradict each
/// other.
fn check_scope(all: &[Parent], scope: &[usize]) -> Result<(), Invalid> {
    if scope.len() > NODES_MAX {
        return Err(Invalid::new(
            format!("parent[{}]", scope[NODES_MAX]),
            format!("more than {NODES_MAX} tables are for the same host and path"),
            "give them other hosts or paths",
        ));
    }
    let differs = |name: &str, index: usize, word: &str, earlier: (usize, &str)| {
        Invalid::new(
            format!("parent[{index}].{name}"),
            format!(
                "it is \"{word}\", and parent[{}] for the same host and path has \"{}\"",
                earlier.0, earlier.1
            ),
            "say it once for each host and path",
        )
    };
    let (mut policy, mut direct) = (None, None);
    for &index in scope {
        let parent = &all[index];
        let word = parent.policy.map(PolicyKind::as_str);
        check_same(&mut policy, index, word)
            .map_err(|(word, first)| differs("policy", index, word, first))?;
        let word = parent.direct.map(Direct::as_str);
        check_same(&mut direct, index, word)
            .map_err(|(word, first)| differs("direct", index, word, first))?;
    }
    Ok(())
}

/// Whether `word` is the one that was said before, if one was.
fn check_same<'a>(
    said: &mut Option<(usize, &'a str)>,
    index: usize,
    word: Option<&'a str>,
) -> Result<(), (&'a str, (usize, &'a str))> {
    match (word, *said) {
        (Some(word), Some(first)) if first.1 != word => Err((word, first)),
        (Some(word), None) => {
            *said = Some((index, word));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A table without a `url` sends all requests for its host and path to the host of their URL: there
/// is no parent for the same.
fn check_never(all: &[Parent]) -> Result<(), Invalid> {
    for (how, scope) in parents(all) {
        let parent = scope.iter().find(|place| all[**place].url.is_some());
        if how.direct == Direct::Always
            && let Some(place) = parent
        {
            return Err(Invalid::new(
                format!("parent[{place}].url"),
                "no request is sent to it: another table for the same host and path has direct = \"always\"",
                "remove one of the two",
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(url: &str) -> Parent {
        Parent::new(url.parse().unwrap())
    }

    #[test]
    fn tables_with_the_same_host_and_path_are_one_scope_and_siblings_another() {
        let all = [
            parent("http://a"),
            Parent {
                host: Some("*.example".parse().unwrap()),
                ..parent("http://b")
            },
            Parent {
                kind: ParentKind::Sibling,
                ..parent("http://c")
            },
            Parent {
                policy: Some(PolicyKind::Hash),
                direct: Some(Direct::Never),
                ..parent("http://d")
            },
        ];
        let places: Vec<Vec<usize>> = parents(&all).into_iter().map(|(_, it)| it).collect();
        assert_eq!(places, [vec![0, 3], vec![1]]);
        assert_eq!(scopes(&all, ParentKind::Sibling), [vec![2]]);
        let (how, _) = &parents(&all)[0];
        assert_eq!((how.policy, how.direct), (PolicyKind::Hash, Direct::Never));
        let (how, _) = &parents(&all)[1];
        assert_eq!(how.direct, Direct::Fallback);
    }
}
