//! The record of a response.

use super::error::RecordError;
use super::reader::{Reader, put_digest, put_string};
use super::rules::{put_rule, read_rule};
use crate::content::StoredContent;
use crate::resource::VaryRule;
use crate::stored::StoredResponse;
use weir_policy::rule::StoringIgnored;
use weir_policy::{Digest, Now, StoredFacts};
use weir_semantics::{DeltaSeconds, Timestamp};

/// A stored response without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseRecord {
    /// As [`StoredResponse::head`].
    pub head: Box<[u8]>,
    /// The facts as they are now.
    pub facts: StoredFacts,
    /// Value of ETag as received, if it has one.
    pub entity_tag: Option<Box<[u8]>>,
    /// Last-Modified, if it parsed.
    pub last_modified: Option<Timestamp>,
    /// Date, or the time of receipt.
    pub date: Timestamp,
    /// When it was received.
    pub received: Timestamp,
    /// The complete length of its content in bytes, if that is known.
    pub complete_length: Option<u64>,
    /// How many of the bytes of its content no client had received when it was written.
    pub undelivered_bytes: u64,
    /// What it varies on, and the digest of these fields in the request it answers.
    pub vary: Option<(VaryRule, Digest)>,
    /// Its target, for people: nothing is found by it.
    pub target: Option<Box<str>>,
}

/// What a bit of the first number says.
mod bit {
    pub(super) const HAS_VALIDATOR: u16 = 1;
    pub(super) const STRONG_TAG: u16 = 1 << 1;
    pub(super) const NO_CACHE: u16 = 1 << 2;
    pub(super) const MUST_REVALIDATE: u16 = 1 << 3;
    pub(super) const WHILE_REVALIDATE: u16 = 1 << 4;
    pub(super) const IF_ERROR: u16 = 1 << 5;
    pub(super) const LAST_MODIFIED: u16 = 1 << 6;
    pub(super) const COMPLETE_LENGTH: u16 = 1 << 7;
    pub(super) const ENTITY_TAG: u16 = 1 << 8;
    pub(super) const VARIES: u16 = 1 << 9;
    pub(super) const TARGET: u16 = 1 << 10;
    /// The stale windows count, although stale responses are forbidden otherwise. Records of before
    /// this bit have windows that something forbids.
    pub(super) const WINDOWS_COUNT: u16 = 1 << 11;
    /// Modules have changed the content.
    pub(super) const TRANSFORMED: u16 = 1 << 12;
    /// No rule changes how long it may be used. Records of before this bit do not say so.
    pub(super) const KEEPS_LIFETIME: u16 = 1 << 13;
    /// It was stored since a rule had something ignored; which directives, stands behind the times.
    /// A process that does not know this bit drops the record.
    pub(super) const IGNORED: u16 = 1 << 14;
    pub(super) const ALL: u16 = (1 << 15) - 1;
}

impl ResponseRecord {
    pub(super) fn read(reader: &mut Reader<'_>, now: Now) -> Result<Self, RecordError> {
        let bits = reader.u16("flags")?;
        if bits & !bit::ALL != 0 {
            return Err(reader.wrong("flags"));
        }
        let has = |bit: u16| bits & bit != 0;
        let status = reader.u16("status")?;
        // a stored part is an incomplete 200 (RFC 9111 §3.3)
        if !(200..600).contains(&status) || status == 206 {
            return Err(reader.wrong("status"));
        }
        let received = Timestamp(reader.i64("time of receipt")?);
        let forbids = has(bit::NO_CACHE) || has(bit::MUST_REVALIDATE);
        let windows_count = !forbids || has(bit::WINDOWS_COUNT);
        let mut facts = StoredFacts {
            status,
            has_validator: has(bit::HAS_VALIDATOR),
            strong_tag: has(bit::STRONG_TAG),
            is_transformed: has(bit::TRANSFORMED),
            keeps_lifetime: has(bit::KEEPS_LIFETIME),
            ignored: StoringIgnored::NONE,
            is_permitted: false,
            no_cache: has(bit::NO_CACHE),
            must_revalidate: has(bit::MUST_REVALIDATE),
            freshness_lifetime: seconds(reader, "freshness lifetime")?,
            corrected_initial_age: seconds(reader, "initial age")?,
            response_tick: now.tick,
            stale_while_revalidate: has(bit::WHILE_REVALIDATE)
                .then(|| seconds(reader, "stale-while-revalidate"))
                .transpose()?,
            stale_if_error: has(bit::IF_ERROR)
                .then(|| seconds(reader, "stale-if-error"))
                .transpose()?,
        };
        if has(bit::IGNORED) {
            let bits = StoringIgnored::from_bits(reader.u16("ignored directives")?);
            let ignored = bits.filter(|ignored| !ignored.is_empty());
            facts.ignored = ignored.ok_or_else(|| reader.wrong("ignored directives"))?;
        }
        if !windows_count {
            facts.stale_while_revalidate = None;
            facts.stale_if_error = None;
        }
        let date = Timestamp(reader.i64("date")?);
        let last_modified = has(bit::LAST_MODIFIED)
            .then(|| reader.i64("last modification").map(Timestamp))
            .transpose()?;
        let complete_length = has(bit::COMPLETE_LENGTH)
            .then(|| reader.u64("complete length"))
            .transpose()?;
        let undelivered_bytes = reader.u64("undelivered bytes")?;
        let entity_tag = has(bit::ENTITY_TAG)
            .then(|| reader.string("entity tag").map(Into::into))
            .transpose()?;
        let vary = has(bit::VARIES)
            .then(|| Ok((read_rule(reader)?, reader.digest("nominated fields")?)))
            .transpose()?;
        let target = has(bit::TARGET).then(|| target(reader)).transpose()?;
        let head = reader.string("head")?;
        if !is_head(head) {
            return Err(reader.wrong("head"));
        }
        Ok(Self {
            head: head.into(),
            facts: facts.read_from_disk(received, now),
            entity_tag,
            last_modified,
            date,
            received,
            complete_length,
            undelivered_bytes,
            vary,
            target,
        })
    }

    /// The stored response with `body`.
    #[must_use]
    pub fn with_body(self, body: StoredContent) -> StoredResponse {
        StoredResponse {
            head: self.head,
            facts: self.facts,
            entity_tag: self.entity_tag,
            last_modified: self.last_modified,
            date: self.date,
            body: body.with_undelivered(self.undelivered_bytes),
        }
    }
}

pub(super) fn write(
    response: &StoredResponse,
    vary: Option<&(VaryRule, Digest)>,
    target: Option<&str>,
    now: Now,
    out: &mut Vec<u8>,
) {
    let facts = &response.facts;
    let body = &response.body;
    let has_window = facts.stale_while_revalidate.is_some() || facts.stale_if_error.is_some();
    let bits = [
        (facts.has_validator, bit::HAS_VALIDATOR),
        (facts.strong_tag, bit::STRONG_TAG),
        (facts.is_transformed, bit::TRANSFORMED),
        (facts.keeps_lifetime, bit::KEEPS_LIFETIME),
        (facts.no_cache, bit::NO_CACHE),
        (facts.must_revalidate, bit::MUST_REVALIDATE),
        (
            facts.stale_while_revalidate.is_some(),
            bit::WHILE_REVALIDATE,
        ),
        (facts.stale_if_error.is_some(), bit::IF_ERROR),
        (response.last_modified.is_some(), bit::LAST_MODIFIED),
        (body.complete_length().is_some(), bit::COMPLETE_LENGTH),
        (response.entity_tag.is_some(), bit::ENTITY_TAG),
        (vary.is_some(), bit::VARIES),
        (target.is_some(), bit::TARGET),
        (has_window && facts.forbids_stale(), bit::WINDOWS_COUNT),
        (!facts.ignored.is_empty(), bit::IGNORED),
    ];
    let bits = bits.iter().filter(|(has, _)| *has);
    let bits = bits.fold(0, |bits, (_, bit)| bits | bit);
    out.extend_from_slice(&u16::to_le_bytes(bits));
    out.extend_from_slice(&facts.status.to_le_bytes());
    out.extend_from_slice(&facts.received(now).0.to_le_bytes());
    let times = [
        Some(facts.freshness_lifetime),
        Some(facts.corrected_initial_age),
        facts.stale_while_revalidate,
        facts.stale_if_error,
    ];
    for seconds in times.into_iter().flatten() {
        out.extend_from_slice(&seconds.0.to_le_bytes());
    }
    if !facts.ignored.is_empty() {
        out.extend_from_slice(&facts.ignored.bits().to_le_bytes());
    }
    out.extend_from_slice(&response.date.0.to_le_bytes());
    if let Some(time) = response.last_modified {
        out.extend_from_slice(&time.0.to_le_bytes());
    }
    if let Some(length) = body.complete_length() {
        out.extend_from_slice(&length.to_le_bytes());
    }
    out.extend_from_slice(&body.undelivered_bytes().to_le_bytes());
    if let Some(tag) = &response.entity_tag {
        put_string(tag, out);
    }
    if let Some((rule, selecting)) = vary {
        put_rule(rule, out);
        put_digest(*selecting, out);
    }
    if let Some(target) = target {
        put_string(target.as_bytes(), out);
    }
    put_string(&response.head, out);
}

fn target(reader: &mut Reader<'_>) -> Result<Box<str>, RecordError> {
    let text = reader.string("target")?;
    let text = std::str::from_utf8(text).map_err(|_| reader.wrong("target"))?;
    Ok(text.into())
}

fn seconds(reader: &mut Reader<'_>, what: &'static str) -> Result<DeltaSeconds, RecordError> {
    let seconds = DeltaSeconds(reader.u32(what)?);
    if seconds > DeltaSeconds::MAX {
        return Err(reader.wrong(what));
    }
    Ok(seconds)
}

/// Whether it is a status line and field lines, each ended by CRLF, and no empty one: what is put
/// behind it must not become content.
fn is_head(head: &[u8]) -> bool {
    let mut rest = head;
    let mut is_first = true;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let Some((b'\r', line)) = rest[..end].split_last() else {
            return false;
        };
        let is_line = if is_first {
            line.starts_with(b"HTTP/1.1 ")
        } else {
            !line.is_empty()
        };
        if !is_line || memchr::memchr2(b'\r', b'\0', line).is_some() {
            return false;
        }
        is_first = false;
        rest = &rest[end + 1..];
    }
    rest.is_empty() && !is_first
}
