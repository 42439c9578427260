//! The content of Web Polygraph's PolyMix workloads. Every property of a target is a hash of it;
//! servers remember nothing.

use super::life::Life;
use super::{Property, Representation, length, path};
use crate::UnixSeconds;
use crate::scenario::{ContentType, PolyMix};
use crate::target::Target;

#[derive(Clone, Debug)]
pub(super) struct PolyMixSite {
    contents: Vec<ContentType>,
    /// The kind that others embed; none does where there is none.
    embedded_kind: u8,
}

/// What a [`Target::number`] of a PolyMix scenario says, from its highest bits to its lowest.
/// Polygraph's worlds: what one robot requested first stands in one row, so that every robot may
/// request any of it again without a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberParts {
    /// Its kind's place in the scenario's contents: 3 bits.
    pub kind: u8,
    /// The only robot that requests it, 24 bits; none if all robots do.
    pub owner: Option<u32>,
    /// Its place in its world, from 0: 36 bits. What a page with the index i embeds has 16 i, 16 i
    /// + 1, ...
    pub index: u64,
}

/// The number of these parts; bits that do not fit are dropped.
#[must_use]
pub fn number(kind: u8, owner: Option<u32>, index: u64) -> u64 {
    let world = match owner {
        None => 0,
        Some(robot) => 1 << 60 | (u64::from(robot) & ROBOT_MASK) << 36,
    };
    (u64::from(kind) & 7) << 61 | world | index & INDEX_MASK
}

/// The parts of a number.
#[must_use]
pub fn number_parts(number: u64) -> NumberParts {
    let robot = u32::try_from(number >> 36 & ROBOT_MASK).unwrap_or(0);
    NumberParts {
        kind: u8::try_from(number >> 61).unwrap_or(0),
        owner: (number >> 60 & 1 == 1).then_some(robot),
        index: number & INDEX_MASK,
    }
}

impl PolyMixSite {
    pub(super) fn new(polymix: &PolyMix) -> Self {
        let embedded = polymix.contents.iter().position(|content| !content.direct);
        Self {
            contents: polymix.contents.clone(),
            embedded_kind: embedded
                .and_then(|kind| u8::try_from(kind).ok())
                .unwrap_or(0),
        }
    }

    /// `/t0/_1f.html`: the kind, the rest of the number in hexadecimal, and the kind's extension.
    pub(super) fn write_path(&self, target: Target, out: &mut Vec<u8>) {
        out.extend_from_slice(b"/t");
        path::write_decimal(target.number >> 61, out);
        out.extend_from_slice(b"/_");
        path::write_hexadecimal(target.number & REST_MASK, out);
        out.extend_from_slice(self.kind(target).extension.as_bytes());
    }

    pub(super) fn parse_number(&self, path: &[u8]) -> Option<u64> {
        let rest = path.strip_prefix(b"/t")?;
        let (digit, rest) = rest.split_first()?;
        let kind = usize::from(digit.checked_sub(b'0')?);
        let digits = rest
            .strip_prefix(b"/_")?
            .strip_suffix(self.contents.get(kind)?.extension.as_bytes())?;
        let rest = path::read_hexadecimal(digits)?;
        let number = (kind as u64) << 61 | rest & REST_MASK;
        let parts = number_parts(number);
        (number == self::number(parts.kind, parts.owner, parts.index)).then_some(number)
    }

    pub(super) fn length(&self, seed: u64, target: Target) -> u64 {
        length(
            &self.kind(target).size,
            &mut Property::Length.chance(seed, target),
        )
    }

    pub(super) fn is_storable(&self, seed: u64, target: Target) -> bool {
        let share = self.kind(target).storable;
        Property::Storable.unit(seed, target) < share
    }

    pub(super) fn embedded_count(&self, seed: u64, target: Target) -> u32 {
        let Some(law) = &self.kind(target).embeds else {
            return 0;
        };
        let drawn = length(law, &mut Property::Embedded.chance(seed, target));
        u32::try_from(drawn)
            .unwrap_or(EMBEDDED_MAX)
            .min(EMBEDDED_MAX)
    }

    pub(super) fn first_embedded(&self, target: Target) -> Target {
        let parts = number_parts(target.number);
        let index = parts.index.wrapping_mul(u64::from(EMBEDDED_MAX));
        Target {
            server: target.server,
            number: number(self.embedded_kind, parts.owner, index),
        }
    }

    pub(super) fn life(&self, seed: u64, target: Target) -> Life {
        let cycle = &self.kind(target).life_cycle;
        Life::new(cycle, Property::Life.chance(seed, target))
    }

    pub(super) fn describe(
        &self,
        seed: u64,
        target: Target,
        at: UnixSeconds,
    ) -> Representation<'_> {
        let life = self.life(seed, target);
        let version = life.version(at);
        let (modified, changes_at) = (life.begins(version), life.ends(version));
        let storable = self.is_storable(seed, target);
        let left = u64::try_from(changes_at.0.saturating_sub(at.0)).unwrap_or(0);
        Representation {
            version,
            length: self.length(seed, target),
            content_type: &self.kind(target).media_type,
            modified: Some(modified),
            // nmt + 0 s: fresh exactly until it changes
            expires: storable.then_some(changes_at),
            cache_control: Some(if storable {
                "public"
            } else {
                "private, no-cache"
            }),
            max_age_s: None,
            etag: true,
            vary: None,
            set_cookie: false,
            storable,
            freshness_lifetime_s: if storable { left } else { 0 },
            changes_at: Some(changes_at),
        }
    }

    fn kind(&self, target: Target) -> &ContentType {
        let kind = usize::from(number_parts(target.number).kind);
        // a number of no kind is in no request; it is described as the last kind
        &self.contents[kind.min(self.contents.len() - 1)]
    }
}

/// What one page embeds at most: so many places a page has in the row of embedded targets.
const EMBEDDED_MAX: u32 = 16;

const ROBOT_MASK: u64 = (1 << 24) - 1;
const INDEX_MASK: u64 = (1 << 36) - 1;
const REST_MASK: u64 = (1 << 61) - 1;
