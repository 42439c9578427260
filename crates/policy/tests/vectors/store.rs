//! A store as plain as it can be: a list of responses for each host and target.

use crate::content::Content;
use crate::lines::{Lines, borrow, value};
use std::collections::BTreeMap;
use weir_policy::{Missing, Now, StoredFacts, Update};
use weir_semantics::{
    ByteRange, EntityTag, FieldLine, Fits, Heuristic, RequestedPart, ResponseFacts,
    StoredValidators, Timestamp, Validators, combines, feed_selecting, lines_named, merge,
    nominated, parse_http_date, write_http_date,
};

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
    /// Nominated fields with what the original request said in them.
    selecting: Vec<(String, Vec<u8>)>,
    received: Timestamp,
}

/// A response that may update a stored one, merged into that.
pub(crate) struct Merging {
    facts: ResponseFacts,
    stored: Lines,
    for_client: Lines,
    fits: Fits,
    changes_vary: bool,
}

impl Merging {
    pub(crate) fn update<'a>(&'a self, response: &'a ResponseFacts) -> Update<'a> {
        Update {
            response,
            merged: &self.facts,
            fits: self.fits,
            changes_vary: self.changes_vary,
        }
    }
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
        let matches = |kept: &&StoredEntry| {
            let mut selecting = kept.selecting.iter();
            selecting.all(|(name, fed)| feed(request, name) == *fed)
        };
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
        let names = nominated_names(lines);
        let kept = StoredEntry {
            number: self.last_number,
            facts,
            selecting: names
                .into_iter()
                .map(|name| (name.clone(), feed(request, &name)))
                .collect(),
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
    /// What a response makes of this one.
    pub(crate) fn merging(
        &self,
        asked: Option<ByteRange>,
        response: &ResponseFacts,
        lines: &Lines,
        now: Now,
    ) -> Merging {
        let (mut received, stored) = ([0; 29], borrow(&self.lines));
        write_http_date(now.wall, &mut received);
        let (fields, tag) = (borrow(lines), value(&self.lines, "etag"));
        let tag = tag.map(str::as_bytes);
        let merged = merge(&stored, &fields, &received);
        let complete_length = Some(self.content.complete_length());
        let compared = StoredValidators {
            entity_tag: tag,
            last_modified: self.validators().last_modified,
            complete_length,
        };
        let fits = match (response.status, asked) {
            (206, Some(asked)) => {
                let asked = RequestedPart {
                    entity_tag: self.validators().entity_tag,
                    content_encoding: value(&self.lines, "content-encoding").map(str::as_bytes),
                    complete_length,
                    asked,
                };
                combines(&asked, response, &fields)
            }
            (206, None) => Fits::Other,
            (304, _) => compared.validated_by(&fields, response),
            _ => compared.fits(&fields, response),
        };
        Merging {
            facts: merged.facts(self.facts.status, now.wall, &crate::targeted()),
            stored: own(&merged.stored),
            for_client: own(&merged.for_client()),
            fits,
            changes_vary: merged.changes_vary,
        }
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

    /// What preconditions are evaluated against.
    pub(crate) fn validators(&self) -> Validators<'_> {
        let date = |name| {
            value(&self.lines, name)
                .and_then(|value| parse_http_date(value.as_bytes(), self.received))
        };
        Validators {
            entity_tag: value(&self.lines, "etag").and_then(|tag| EntityTag::parse(tag.as_bytes())),
            last_modified: date("last-modified"),
            date: date("date").or(Some(self.received)),
        }
    }
}

fn own(fields: &[FieldLine<'_>]) -> Lines {
    let not_age = |line: &&FieldLine<'_>| !line.name.eq_ignore_ascii_case("age");
    fields
        .iter()
        .filter(not_age)
        .map(|line| {
            let value = String::from_utf8_lossy(line.value).into_owned();
            (line.name.to_owned(), value)
        })
        .collect()
}

fn nominated_names(response: &Lines) -> Vec<String> {
    let borrowed = borrow(response);
    nominated(lines_named(&borrowed, "vary"))
        .map(str::to_ascii_lowercase)
        .collect()
}

fn feed(request: &Lines, name: &str) -> Vec<u8> {
    let mut fed = Vec::new();
    feed_selecting(&borrow(request), name, &mut |bytes| {
        fed.extend_from_slice(bytes)
    });
    fed
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
