//! A store as plain as it can be: a list of responses for one target.

use crate::origin::{LENGTH, OriginExchange};
use crate::reference_store::{Base, Lines, Merging, Selecting, borrow};
use weir_policy::{Missing, Now, StoredFacts};
use weir_semantics::{
    ByteRange, ConnectionOptions, Known, ResponseFacts, TargetedFields, Timestamp, identify,
    is_hop_by_hop, is_stored,
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
    selecting: Selecting,
    received: Timestamp,
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
            !new.selecting.0.is_empty() && !old.selecting.0.is_empty() && !old.is_for(request)
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
            selecting: Selecting::of(&lines, request),
            lines,
            content,
            received: now.wall,
        }
    }

    pub(crate) fn is_for(&self, request: &Lines) -> bool {
        self.selecting.matches(request)
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.content.iter().all(Option::is_some)
    }

    pub(crate) fn base(&self) -> Base<'_> {
        Base {
            lines: &self.lines,
            status: self.facts.status,
            received: self.received,
            complete_length: LENGTH as u64,
        }
    }

    /// What an answer makes of this one; `asked` are the bytes that were asked for, if a part was.
    pub(crate) fn merging(
        &self,
        asked: Option<ByteRange>,
        told: &OriginExchange,
        response: &ResponseFacts,
        now: Now,
    ) -> Merging {
        let targeted = TargetedFields::none();
        self.base()
            .merging(asked, (response, &told.lines), now, &targeted)
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
            selecting: Selecting::of(&merging.stored, request),
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

fn is_named(line: &(String, String), known: Known) -> bool {
    identify(&line.0) == Some(known)
}
