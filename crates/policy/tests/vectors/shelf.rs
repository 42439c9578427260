//! A store as plain as it can be: a list of responses for each host and target.

use crate::content::Content;
use crate::lines::{Lines, borrow, value};
use std::collections::BTreeMap;
use weir_policy::{Missing, Now, StoredFacts};
use weir_semantics::{
    AskedPart, ByteRange, EntityTag, Fits, Heuristic, ResponseFacts, Timestamp, Validators,
    combines, feed_selecting, identify, is_freshened, lines_named, nominated, parse_http_date,
};

/// Host and target.
pub(crate) type Key = (String, String);

/// A stored response.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    /// Tells it from every other one.
    pub(crate) number: usize,
    pub(crate) facts: StoredFacts,
    pub(crate) lines: Lines,
    pub(crate) content: Content,
    /// Nominated fields with what the original request said in them.
    selecting: Vec<(String, Vec<u8>)>,
    received: Timestamp,
}

/// All stored responses.
#[derive(Default)]
pub(crate) struct Shelf {
    kept: BTreeMap<Key, Vec<Kept>>,
    last_number: usize,
}

impl Shelf {
    /// The newest response whose nominated fields match.
    pub(crate) fn find(&self, key: &Key, request: &Lines) -> Result<&Kept, Missing> {
        let all = self.kept.get(key).ok_or(Missing::Target)?;
        let matches = |kept: &&Kept| {
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
        let names = nominated_names(lines);
        let kept = Kept {
            number: self.last_number,
            facts,
            selecting: names
                .into_iter()
                .map(|name| (name.clone(), feed(request, &name)))
                .collect(),
            // of a part it would say where it was, which the content does
            lines: lines
                .iter()
                .filter(|line| !line.0.eq_ignore_ascii_case("content-range"))
                .cloned()
                .collect(),
            content: content.clone(),
            received: now.wall,
        };
        self.kept.entry(key.clone()).or_default().push(kept);
    }

    /// Merges the fields of a 304 into what is stored (RFC 9111 §3.2), and returns the result; `None` if the 304 is
    /// about another response, and what is stored is forgotten.
    pub(crate) fn freshen(
        &mut self,
        key: &Key,
        stored: &Kept,
        update: &Lines,
        request_time: Timestamp,
        now: Now,
    ) -> Option<Kept> {
        if names_another(stored, update) {
            self.forget_one(key, stored.number);
            return None;
        }
        let fresh = stored.updated(update, request_time, now);
        self.replace(key, &fresh);
        Some(fresh)
    }

    /// Puts `fresh` in the place of what it was made of, if that is still there.
    pub(crate) fn replace(&mut self, key: &Key, fresh: &Kept) {
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

    /// Forgets the target, and what Location and Content-Location name on the same host (RFC 9111 §4.4).
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

impl Kept {
    /// Whether a 206 to a request for the bytes `asked` belongs to this part.
    pub(crate) fn fits(&self, asked: ByteRange, response: &ResponseFacts, lines: &Lines) -> Fits {
        let asked = AskedPart {
            entity_tag: self.validators().entity_tag,
            complete_length: Some(self.content.complete_length()),
            asked,
        };
        combines(&asked, response, &borrow(lines))
    }

    /// This part with what `received` adds to it, and with its fields (RFC 9111 §3.4).
    pub(crate) fn joined(
        &self,
        update: &Lines,
        received: &Content,
        request_time: Timestamp,
        now: Now,
    ) -> Self {
        Self {
            content: self.content.joined(received),
            ..self.updated(update, request_time, now)
        }
    }

    /// With the fields of `update` for its own.
    fn updated(&self, update: &Lines, request_time: Timestamp, now: Now) -> Self {
        let updates = update
            .iter()
            .filter(|line| identify(&line.0).is_none_or(is_freshened));
        let is_replaced =
            |name: &str| value(update, name).is_some() && identify(name).is_none_or(is_freshened);
        // received without a Date it was made when it came (RFC 9110 §6.6.1)
        let dated = value(update, "date").is_some();
        let mut lines: Lines = self
            .lines
            .iter()
            .filter(|line| !is_replaced(&line.0) && !line.0.eq_ignore_ascii_case("age"))
            .filter(|line| dated || !line.0.eq_ignore_ascii_case("date"))
            .cloned()
            .collect();
        lines.extend(updates.cloned());
        let facts = ResponseFacts::gather(self.facts.status, &borrow(&lines), now.wall);
        Self {
            facts: StoredFacts::new(&facts, request_time, now, &Heuristic::default()),
            lines,
            received: now.wall,
            ..self.clone()
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

/// A 304 with a strong entity tag that is not the stored one is about another response (RFC 9111 §4.3.4).
fn names_another(stored: &Kept, update: &Lines) -> bool {
    let tag = value(update, "etag").and_then(|tag| EntityTag::parse(tag.as_bytes()));
    tag.is_some_and(|tag| {
        !tag.weak
            && stored
                .validators()
                .entity_tag
                .is_none_or(|ours| !ours.strong_eq(&tag))
    })
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
