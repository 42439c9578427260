//! A store as plain as it can be: a list of responses for one target.

use crate::lines::{borrow, value};
use crate::origin::{LENGTH, Lines, OriginExchange};
use weir_policy::{Missing, Now, StoredFacts, Update};
use weir_semantics::{
    ByteRange, ConnectionOptions, EntityTag, FieldLine, Fits, Known, RequestedPart, ResponseFacts,
    StoredValidators, TargetedFields, Timestamp, Validators, combines, feed_selecting, identify,
    is_hop_by_hop, is_stored, lines_named, merge, nominated, parse_http_date, write_http_date,
};

/// Content byte by byte, each there or not.
pub(crate) type Content = Vec<Option<u8>>;

/// A stored response.
#[derive(Clone, Debug)]
pub(crate) struct StoredResponse {
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
    /// What the transaction is told.
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
    stored: Vec<StoredResponse>,
    last_number: usize,
}

impl Store {
    /// The newest response whose nominated fields match.
    pub(crate) fn find(&self, request: &Lines) -> Result<&StoredResponse, Missing> {
        if self.stored.is_empty() {
            return Err(Missing::Target);
        }
        let found = self
            .stored
            .iter()
            .rev()
            .find(|stored| stored.is_for(request));
        found.ok_or(Missing::Variant)
    }

    /// Stores: a response without Vary replaces all others, one with Vary those that the same
    /// request would have chosen.
    pub(crate) fn put(&mut self, mut new: StoredResponse, request: &Lines) -> StoredResponse {
        self.stored.retain(|old| {
            !new.selecting.is_empty() && !old.selecting.is_empty() && !old.is_for(request)
        });
        self.last_number += 1;
        new.number = self.last_number;
        self.stored.push(new.clone());
        new
    }

    /// Puts `fresh` in the place of what it was made of, if that is still there.
    pub(crate) fn replace(&mut self, fresh: &StoredResponse) {
        let mut all = self.stored.iter_mut();
        if let Some(place) = all.find(|stored| stored.number == fresh.number) {
            place.clone_from(fresh);
        }
    }

    /// Forgets one response.
    pub(crate) fn forget(&mut self, number: usize) {
        self.stored.retain(|stored| stored.number != number);
    }

    /// Forgets the target (RFC 9111 §4.4).
    pub(crate) fn invalidate(&mut self) {
        self.stored.clear();
    }
}

impl StoredResponse {
    /// What is stored of an answer to a request with these fields.
    pub(crate) fn of(told: &OriginExchange, facts: StoredFacts, request: &Lines, now: Now) -> Self {
        let mut content = vec![None; LENGTH];
        for (place, byte) in content.iter_mut().skip(told.first).zip(&told.content) {
            *place = Some(*byte);
        }
        let mut lines = end_to_end(&told.lines);
        // of a part Content-Range would say where it was, which the content does
        lines.retain(|line| {
            identify(&line.0).is_none_or(is_stored) && !is_named(line, Known::ContentRange)
        });
        Self {
            number: 0,
            facts,
            selecting: selecting(&lines, request),
            lines,
            content,
            received: now.wall,
        }
    }

    pub(crate) fn is_for(&self, request: &Lines) -> bool {
        let mut selecting = self.selecting.iter();
        selecting.all(|(name, fed)| feed(request, name) == *fed)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.content.iter().all(Option::is_some)
    }

    /// What an answer makes of this one; `asked` are the bytes that were asked for, if a part was.
    pub(crate) fn merging(
        &self,
        asked: Option<ByteRange>,
        told: &OriginExchange,
        response: &ResponseFacts,
        now: Now,
    ) -> Merging {
        let (stored, update) = (borrow(&self.lines), borrow(&told.lines));
        let mut received = [0; 29];
        write_http_date(now.wall, &mut received);
        let merged = merge(&stored, &update, &received);
        let entity_tag = value(&self.lines, "etag").map(str::as_bytes);
        let complete_length = Some(LENGTH as u64);
        let compared = StoredValidators {
            entity_tag,
            last_modified: None,
            complete_length,
        };
        let fits = match (told.status, asked) {
            (206, Some(asked)) => {
                let entity_tag = self.validators().entity_tag;
                let asked = RequestedPart {
                    entity_tag,
                    content_encoding: None,
                    complete_length,
                    asked,
                };
                combines(&asked, response, &update)
            }
            (206, None) => Fits::Other,
            (304, _) => compared.validated_by(&update, response),
            _ => compared.fits(&update, response),
        };
        Merging {
            facts: merged.facts(self.facts.status, now.wall, &TargetedFields::none()),
            stored: owned(&merged.stored),
            for_client: owned(&merged.for_client()),
            fits,
            changes_vary: merged.changes_vary,
        }
    }

    /// This response as it is stored after an update, with the content that came.
    pub(crate) fn updated(
        &self,
        merging: &Merging,
        facts: StoredFacts,
        told: &OriginExchange,
        request: &Lines,
        now: Now,
    ) -> Self {
        let mut content = self.content.clone();
        if told.status == 206 {
            for (place, byte) in content.iter_mut().skip(told.first).zip(&told.content) {
                place.get_or_insert(*byte);
            }
        }
        Self {
            number: self.number,
            facts,
            selecting: selecting(&merging.stored, request),
            lines: merging.stored.clone(),
            content,
            received: now.wall,
        }
    }

    /// The same as the client gets it that brought the update.
    pub(crate) fn for_client(&self, merging: &Merging) -> Self {
        Self {
            lines: merging.for_client.clone(),
            ..self.clone()
        }
    }

    /// What preconditions are evaluated against.
    pub(crate) fn validators(&self) -> Validators<'_> {
        let tag = value(&self.lines, "etag");
        let date = value(&self.lines, "date");
        Validators {
            entity_tag: tag.and_then(|tag| EntityTag::parse(tag.as_bytes())),
            last_modified: None,
            date: date
                .and_then(|date| parse_http_date(date.as_bytes(), self.received))
                .or(Some(self.received)),
        }
    }
}

/// Without what is for one connection only (RFC 9110 §7.6.1).
pub(crate) fn end_to_end(lines: &Lines) -> Lines {
    let borrowed = borrow(lines);
    let options = ConnectionOptions::gather(&borrowed);
    let goes_on = |line: &&(String, String)| {
        !identify(&line.0).is_some_and(is_hop_by_hop) && !options.names(&line.0)
    };
    lines.iter().filter(goes_on).cloned().collect()
}

fn owned(fields: &[FieldLine<'_>]) -> Lines {
    let owned = |line: &FieldLine<'_>| {
        let value = String::from_utf8_lossy(line.value).into_owned();
        (line.name.to_owned(), value)
    };
    fields.iter().map(owned).collect()
}

fn is_named(line: &(String, String), known: Known) -> bool {
    identify(&line.0) == Some(known)
}

/// The fields that a response nominates, with what the request says in them.
fn selecting(response: &Lines, request: &Lines) -> Vec<(String, Vec<u8>)> {
    let borrowed = borrow(response);
    nominated(lines_named(&borrowed, "vary"))
        .map(|name| (name.to_ascii_lowercase(), feed(request, name)))
        .collect()
}

fn feed(request: &Lines, name: &str) -> Vec<u8> {
    let mut fed = Vec::new();
    feed_selecting(&borrow(request), name, &mut |bytes| {
        fed.extend_from_slice(bytes);
    });
    fed
}
