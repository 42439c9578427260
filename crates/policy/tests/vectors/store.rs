//! A store as plain as it can be: a list of responses for each host and target.

use crate::content::Content;
use crate::reference_store::{Base, Lines, Merging, Selecting};
use std::collections::BTreeMap;
use weir_policy::{Missing, Now, StoredFacts};
use weir_semantics::{ByteRange, Heuristic, ResponseFacts, Timestamp};

/// Host and target.
pub(crate) type Key = (String, String);

/// A stored response.
#[derive(Clone, Debug)]
pub(crate) struct StoredEntry {
    /// Tells it from every other one.
    pub(crate) number: usize,
    pub(crate) facts: StoredFacts,
    pub(crate) lines: Lines,
    pub(crate) content: Content,
    selecting: Selecting,
    received: Timestamp,
}

/// All stored responses.
#[derive(Default)]
pub(crate) struct Store {
    kept: BTreeMap<Key, Vec<StoredEntry>>,
    last_number: usize,
}

impl Store {
    /// The newest response whose nominated fields match.
    pub(crate) fn find(&self, key: &Key, request: &Lines) -> Result<&StoredEntry, Missing> {
        let all = self.kept.get(key).ok_or(Missing::Target)?;
        let matches = |kept: &&StoredEntry| kept.selecting.matches(request);
        all.iter().rev().find(matches).ok_or(Missing::Variant)
    }

    /// Stores; a response that the same request would have chosen leaves.
    pub(crate) fn put(
        &mut self,
        key: &Key,
        request: &Lines,
        facts: StoredFacts,
        lines: &Lines,
        content: &Content,
        now: Now,
    ) {
        if let Ok(old) = self.find(key, request) {
            let number = old.number;
            self.forget_one(key, number);
        }
        self.last_number += 1;
        let is_part = !content.is_whole();
        let kept = StoredEntry {
            number: self.last_number,
            facts,
            selecting: Selecting::of(lines, request),
            // of a part it would say where it was, which the content does
            lines: lines
                .iter()
                .filter(|line| !is_part || !line.0.eq_ignore_ascii_case("content-range"))
                .cloned()
                .collect(),
            content: content.clone(),
            received: now.wall,
        };
        self.kept.entry(key.clone()).or_default().push(kept);
    }

    /// Puts `fresh` in the place of what it was made of, if that is still there.
    pub(crate) fn replace(&mut self, key: &Key, fresh: &StoredEntry) {
        let all = self.kept.entry(key.clone()).or_default();
        if let Some(place) = all.iter_mut().find(|kept| kept.number == fresh.number) {
            place.clone_from(fresh);
        }
    }

    /// Forgets one response.
    pub(crate) fn forget_one(&mut self, key: &Key, number: usize) {
        let all = self.kept.entry(key.clone()).or_default();
        all.retain(|kept| kept.number != number);
        if all.is_empty() {
            self.kept.remove(key);
        }
    }

    /// Forgets the target, and what Location and Content-Location name on the same host (RFC 9111
    /// §4.4).
    pub(crate) fn invalidate(&mut self, key: &Key, response: &Lines) {
        self.kept.remove(key);
        for (name, reference) in response {
            let names = ["location", "content-location"];
            if !names.contains(&name.to_ascii_lowercase().as_str()) {
                continue;
            }
            if let Some(target) = resolve(key, reference) {
                self.kept.remove(&(key.0.clone(), target));
            }
        }
    }
}

impl StoredEntry {
    pub(crate) fn base(&self) -> Base<'_> {
        Base {
            lines: &self.lines,
            status: self.facts.status,
            received: self.received,
            complete_length: self.content.complete_length(),
        }
    }

    /// What a response makes of this one.
    pub(crate) fn merging(
        &self,
        asked: Option<ByteRange>,
        response: &ResponseFacts,
        lines: &Lines,
        now: Now,
    ) -> Merging {
        let targeted = crate::targeted();
        self.base()
            .merging(asked, (response, lines), now, &targeted)
    }

    /// This part with what `received` adds to it, updated (RFC 9111 §3.4).
    pub(crate) fn joined(
        &self,
        merging: &Merging,
        facts: StoredFacts,
        received: &Content,
        now: Now,
    ) -> Self {
        Self {
            content: self.content.joined(received),
            ..self.updated(merging, facts, now)
        }
    }

    /// This response as it is stored after an update.
    pub(crate) fn updated(&self, merging: &Merging, facts: StoredFacts, now: Now) -> Self {
        Self {
            facts,
            lines: merging.stored.clone(),
            received: now.wall,
            ..self.clone()
        }
    }

    /// This response as the client gets it that brought an update.
    pub(crate) fn for_client(&self, merging: &Merging, request_time: Timestamp, now: Now) -> Self {
        let heuristic = Heuristic::default();
        let facts = StoredFacts::new(&merging.facts, request_time, now, &heuristic);
        Self {
            lines: merging.for_client.clone(),
            ..self.updated(merging, facts, now)
        }
    }
}

/// The path a reference names on the host of `key`; `None` for another origin.
fn resolve(key: &Key, reference: &str) -> Option<String> {
    let reference = reference.split('#').next().unwrap_or_default();
    if let Some((scheme, rest)) = reference.split_once("://") {
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        return (scheme == "http" && host == key.0).then(|| path.to_owned());
    }
    if reference.starts_with('/') {
        return Some(reference.to_owned());
    }
    let folder = key.1.rfind('/').map_or("/", |at| &key.1[..=at]);
    Some(format!("{folder}{reference}"))
}
