//! The record of what the responses of a target vary on.

use super::error::RecordError;
use super::reader::{Reader, put_string};
use super::{Kind, VERSION};
use crate::resource::{RULES_MAX, VaryRule};
use std::hash::{BuildHasher, RandomState};
use weir_policy::{Digest, KeyHasher, Secret};

/// Names the variants of a target that are found by the same rules. Another one after each purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line(pub u64);

impl Line {
    /// One that was never given before: at random, from the system's randomness by way of the
    /// standard library's hashers. That one of a target's comes again has a chance of 2^-64 for
    /// each purge of it.
    #[must_use]
    pub fn begin() -> Self {
        Self(RandomState::new().hash_one(0_u8))
    }
}

/// What the responses of a target vary on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesRecord {
    /// The line of its variants.
    pub line: Line,
    /// Sets of nominated fields, newest first, at least one and at most [`RULES_MAX`].
    pub rules: Vec<VaryRule>,
}

/// The key under which the variant of a target is written whose nominated fields have the digest
/// `selecting`.
#[must_use]
pub fn variant_key(secret: &Secret, primary: Digest, line: Line, selecting: Digest) -> Digest {
    let mut hasher = KeyHasher::from_digest(secret, primary);
    hasher.number(line.0);
    hasher.number(selecting.0);
    hasher.number(selecting.1);
    hasher.finish()
}

impl RulesRecord {
    /// What is written of it.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut meta = vec![VERSION, Kind::Rules as u8];
        meta.extend_from_slice(&self.line.0.to_le_bytes());
        let rules = &self.rules[..self.rules.len().min(RULES_MAX)];
        meta.push(u8::try_from(rules.len()).unwrap_or(0));
        for rule in rules {
            put_rule(rule, &mut meta);
        }
        meta
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, RecordError> {
        let line = Line(reader.u64("line of variants")?);
        let count = reader.byte("number of rules")?;
        if !(1..=RULES_MAX).contains(&usize::from(count)) {
            return Err(reader.wrong("number of rules"));
        }
        let rules = (0..count).map(|_| read_rule(reader));
        let rules = rules.collect::<Result<_, _>>()?;
        Ok(Self { line, rules })
    }
}

pub(super) fn put_rule(rule: &VaryRule, out: &mut Vec<u8>) {
    let names = u16::try_from(rule.0.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&names.to_le_bytes());
    for name in &rule.0[..usize::from(names)] {
        put_string(name.as_bytes(), out);
    }
}

/// A rule: names in lower case, in order, none twice.
pub(super) fn read_rule(reader: &mut Reader<'_>) -> Result<VaryRule, RecordError> {
    let what = "rule of what varies";
    let count = reader.u16(what)?;
    let mut names: Vec<Box<str>> = Vec::new();
    for _ in 0..count {
        let name = std::str::from_utf8(reader.string(what)?).map_err(|_| reader.wrong(what))?;
        let is_name = !name.is_empty() && !name.bytes().any(|byte| byte.is_ascii_uppercase());
        if !is_name || names.last().is_some_and(|last| **last >= *name) {
            return Err(reader.wrong(what));
        }
        names.push(name.into());
    }
    if names.is_empty() {
        return Err(reader.wrong(what));
    }
    Ok(VaryRule(names.into()))
}
