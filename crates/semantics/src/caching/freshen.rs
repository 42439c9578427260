//! A response updates a stored one: a 304 (RFC 9111 §4.3.4), a 206 that joins a stored part (§3.4),
//! a 200 to HEAD (§4.3.5).
//!
//! [`merge`] gives two results, because the update answers one client and the store answers all:
//! the fields to store, and the fields of the update that go to its own client alone. Whether the
//! result may be stored is decided afterwards by the same rules as for any response.
//!
//! Where the text is silent:
//! * `Set-Cookie`, `Set-Cookie2` and `Clear-Site-Data` of an update are never stored. They concern
//!   the client whose request brought the update; what an earlier response stored in these fields
//!   stays as it is. What an update says for its client goes to it with `Cache-Control: private`:
//!   stored fields such as `public` permit other caches to share what they came with, and no more.
//! * A stored response whose nominated fields change by an update is stored under the wrong key:
//!   see [`MergedFields::changes_vary`].

use alloc::vec::Vec;

use crate::caching::targeted::{DecidedBy, TargetedFields};
use crate::caching::vary::VaryKind;
use crate::facts::ResponseFacts;
use crate::fields::field::{FieldLine, is_token, lines_named, list_elements};
use crate::fields::hop_by_hop::{ConnectionOptions, is_for_one_client, is_freshened};
use crate::fields::known::{Known, identify};
use crate::ranges::part::Fits;
use crate::time::Timestamp;
use crate::validation::entity_tag::EntityTag;

/// The fields of a stored response and of its update in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedFields<'a> {
    /// The fields to store.
    pub stored: Vec<FieldLine<'a>>,
    /// The fields of the update for the client that brought it; never stored, never for another
    /// request.
    pub own: Vec<FieldLine<'a>>,
    /// The update nominates other fields than the stored response (RFC 9111 §4.1). The stored
    /// response was keyed by what its own request said in the old ones, so it may not be used for
    /// requests chosen by the new ones.
    pub changes_vary: bool,
}

impl<'a> MergedFields<'a> {
    /// What the merged response says to a cache that reads the `targeted` fields, with the `status`
    /// of the stored one; `now` is for two-digit years only.
    #[must_use]
    pub fn facts(&self, status: u16, now: Timestamp, targeted: &TargetedFields) -> ResponseFacts {
        ResponseFacts::gather(status, &self.stored, now).targeted(&self.stored, targeted)
    }

    /// The fields for the client that brought the update: its own fields stand in for stored ones
    /// of the same name. If there are any, no other cache may share the response.
    #[must_use]
    pub fn for_client(&self) -> Vec<FieldLine<'a>> {
        let mut fields = replaced(&self.stored, &self.own);
        if !self.own.is_empty() {
            // a cache that reads a targeted field would not read `private`
            fields.retain(|line| !is_targeted(line.name));
            fields.push(FieldLine::new("Cache-Control", b"private"));
        }
        fields
    }
}

/// Merges `update` into the fields `stored` (RFC 9111 §3.2): each field of the update that is
/// stored at all replaces all stored lines of its name, the others stay in their order.
///
/// `received` is the time of receipt as a value of `Date`. It is used where the update has no
/// `Date` (RFC 9110 §6.6.1): the stored one would make the update old.
#[must_use]
pub fn merge<'a>(
    stored: &[FieldLine<'a>],
    update: &[FieldLine<'a>],
    received: &'a [u8],
) -> MergedFields<'a> {
    let options = ConnectionOptions::gather(update);
    let mut updates = Vec::with_capacity(update.len() + 1);
    let mut own = Vec::new();
    let mut has_date = false;
    for line in update {
        let known = identify(line.name);
        has_date |= known == Some(Known::Date);
        if known.is_some_and(is_for_one_client) {
            own.push(*line);
        } else if known.is_none_or(is_freshened) && !options.names(line.name) {
            updates.push(*line);
        }
    }
    if !has_date {
        updates.push(FieldLine::new("Date", received));
    }
    let mut merged = replaced(stored, &updates);
    if !updates.iter().any(|line| is_age(line)) {
        // that of the stored response was counted when it was received
        merged.retain(|line| !is_age(line));
    }
    MergedFields {
        changes_vary: nominated_names(stored) != nominated_names(&merged),
        stored: merged,
        own,
    }
}

/// Whether a field is named as those with directives for some caches alone are (RFC 9213 §2.1), or
/// is their predecessor.
fn is_targeted(name: &str) -> bool {
    const END: &str = "-cache-control";
    let end = name.len().checked_sub(END.len());
    let end = end.and_then(|from| name.get(from..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(END))
        || name.eq_ignore_ascii_case("surrogate-control")
}

fn is_age(line: &FieldLine<'_>) -> bool {
    identify(line.name) == Some(Known::Age)
}

/// `fields` with those of `updates` in the place of all lines of the same name.
fn replaced<'a>(fields: &[FieldLine<'a>], updates: &[FieldLine<'a>]) -> Vec<FieldLine<'a>> {
    let is_replaced = |name: &str| {
        updates
            .iter()
            .any(|update| update.name.eq_ignore_ascii_case(name))
    };
    let kept = fields.iter().filter(|line| !is_replaced(line.name));
    kept.chain(updates).copied().collect()
}

/// The nominated fields, each once, in lower case and in order.
fn nominated_names(fields: &[FieldLine<'_>]) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = lines_named(fields, "vary")
        .flat_map(list_elements)
        .filter(|name| is_token(name))
        .map(<[u8]>::to_ascii_lowercase)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What a 304 or a 200 to HEAD is compared with (RFC 9111 §4.3.4, §4.3.5).
#[derive(Clone, Copy, Debug)]
pub struct StoredValidators<'a> {
    /// The value of the stored `ETag`, if there is one.
    pub entity_tag: Option<&'a [u8]>,
    /// The stored `Last-Modified`, if there is a valid one.
    pub last_modified: Option<Timestamp>,
    /// The length of the stored content, if it is known.
    pub complete_length: Option<u64>,
}

impl StoredValidators<'_> {
    /// Is a 304 with the fields `update` about this stored response (RFC 9111 §4.3.4)?
    ///
    /// A strong tag must be the same strongly, as §4.3.4 says; a weak one must be the same weakly.
    /// Of several tags each must be. A value that is no entity tag must be the same byte by byte,
    /// if one is stored: some servers forget the quotation marks. Without a tag the date must be
    /// the stored one, if there is a date. A 304 with neither is about the response that was
    /// validated.
    #[must_use]
    pub fn validated_by(&self, update: &[FieldLine<'_>], facts: &ResponseFacts) -> Fits {
        let ours = self.entity_tag.and_then(EntityTag::parse);
        let is_stored = |value: &[u8]| match (EntityTag::parse(value), &ours) {
            (Some(tag), Some(ours)) if tag.weak => tag.weak_eq(ours),
            (Some(tag), Some(ours)) => tag.strong_eq(ours),
            (Some(_), None) => false,
            (None, _) => self.entity_tag.is_none_or(|stored| stored == value),
        };
        let tags = || lines_named(update, "etag");
        let decides = |value| EntityTag::parse(value).is_some() || self.entity_tag.is_some();
        let same_date = || {
            let date = facts.last_modified;
            date.is_none_or(|date| self.last_modified == Some(date))
        };
        fits(tags().all(is_stored) && (tags().any(decides) || same_date()))
    }

    /// Is a 200 to HEAD with the fields `head` about this stored response? Every validator that it
    /// has must be the stored one, and its `Content-Length`, if it has one, the length of what is
    /// stored. [`Fits::Unknown`] if it has no validator: an equal length proves nothing for a
    /// response that is made for each request.
    #[must_use]
    pub fn fits(&self, head: &[FieldLine<'_>], facts: &ResponseFacts) -> Fits {
        let tags = || lines_named(head, "etag");
        let has_validator = tags().next().is_some() || facts.last_modified.is_some();
        let same_tag = tags().all(|tag| self.entity_tag == Some(tag));
        let same_date = facts
            .last_modified
            .is_none_or(|date| self.last_modified == Some(date));
        let same_length = lines_named(head, "content-length")
            .flat_map(list_elements)
            .all(|length| {
                self.complete_length
                    .is_none_or(|stored| parse_length(length) == Some(stored))
            });
        match fits(same_tag && same_date && same_length) {
            Fits::Same if !has_validator => Fits::Unknown,
            fits => fits,
        }
    }
}

const fn fits(is_same: bool) -> Fits {
    if is_same { Fits::Same } else { Fits::Other }
}

/// `1*DIGIT`.
fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })
}

impl ResponseFacts {
    /// The same merge on facts, for callers without field lines: what [`merge`] gives for fields
    /// with these facts.
    ///
    /// A field of the update that is there and means nothing (`Vary:` without a member, an `ETag`
    /// without quotation marks) is not among the facts, and is taken as absent.
    #[must_use]
    pub fn updated_by(&self, update: &Self, received: Timestamp) -> Self {
        // a targeted field stays in force until one of the update stands before it (RFC 9213 §2.2)
        let update_decides = match (self.decided_by, update.decided_by) {
            (DecidedBy::CacheControl, DecidedBy::CacheControl) => update.directives.any,
            (DecidedBy::CacheControl, DecidedBy::Targeted(_)) => true,
            (DecidedBy::Targeted(_), DecidedBy::CacheControl) => false,
            (DecidedBy::Targeted(stored), DecidedBy::Targeted(update)) => update <= stored,
        };
        let (directives, decided_by) = if update_decides {
            (update.directives, update.decided_by)
        } else {
            (self.directives, self.decided_by)
        };
        Self {
            status: self.status,
            directives,
            decided_by,
            date: Some(update.date.unwrap_or(received)),
            expires: match decided_by {
                DecidedBy::CacheControl => update.expires.or(self.expires),
                DecidedBy::Targeted(_) => None,
            },
            last_modified: update.last_modified.or(self.last_modified),
            // that of the stored response was counted when it was stored
            age: update.age,
            entity_tag: update.entity_tag.or(self.entity_tag),
            vary: match update.vary {
                VaryKind::None => self.vary,
                vary => vary,
            },
            // the update's cookies go to its own client
            has_set_cookie: self.has_set_cookie,
            has_content_range: self.has_content_range,
            content_range: self.content_range,
            has_pragma: self.has_pragma || update.has_pragma,
            // that of the update is about the update
            has_mixed_line_ends: self.has_mixed_line_ends,
        }
    }
}

#[cfg(test)]
mod tests;
