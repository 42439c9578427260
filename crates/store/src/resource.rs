//! What is stored for one target: a response, or several by the fields they vary on (RFC 9111
//! §4.1).

use crate::charge::allocated_bytes;
use crate::record::Line;
use std::sync::Arc;
use weir_policy::Digest;
use weir_policy::catalog::Slot;

/// Variants kept for one target; the oldest is dropped for the next. A bound on what one target can
/// occupy.
pub const VARIANTS_MAX: usize = 64;

/// Different sets of nominated fields looked at for one target, newest first.
pub const RULES_MAX: usize = 4;

/// The fields a stored response varies on, as named by its Vary, lower case, in order; and
/// [`MODULES`] and [`FORWARDED`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryRule(pub Arc<[Box<str>]>);

/// In a rule, beside the names of fields: the response was stored for the modules that change
/// responses before they are stored, and for a request without them it is not found. It is no
/// token, so no Vary can name it.
pub const MODULES: &str = ":modules";

/// The same: the response was stored where trusted proxies may say for which host and protocol a
/// request is.
pub const FORWARDED: &str = ":forwarded";

impl VaryRule {
    /// Whether both are one in memory.
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Bytes of memory it holds. A field section can nominate thousands of fields, each of which
    /// costs ten times the bytes of its name.
    #[must_use]
    pub fn charged_bytes(&self) -> usize {
        let counts = 2 * size_of::<usize>();
        let names = self.0.iter().map(|name| allocated_bytes(name.len()));
        allocated_bytes(counts + size_of_val(&*self.0)) + names.sum::<usize>()
    }
}

/// One variant: the rule it was stored under, the digest of the nominated fields of its original
/// request, and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Variant {
    pub rule: VaryRule,
    pub selecting: Digest,
    pub slot: Slot,
}

/// Bytes a variant costs beside its rule: its place in the list, the list's slack, and the target's
/// lists while they are short.
const VARIANT_BYTES: usize = 2 * size_of::<Variant>()
    + allocated_bytes(size_of::<Varying>())
    + allocated_bytes(VARIANTS_SLACK * size_of::<Variant>())
    + allocated_bytes(2 * RULES_MAX * size_of::<VaryRule>());

/// Places the list of variants may have beyond twice those in use.
const VARIANTS_SLACK: usize = 4;

/// All that is stored for one target. Never empty while it is in the index.
#[derive(Debug)]
pub(crate) enum Resource {
    /// One response that varies on nothing: the common case costs no allocation.
    Single(Slot),
    /// Responses that vary.
    Varying(Box<Varying>),
}

/// The variants of a target.
#[derive(Debug, Default)]
pub(crate) struct Varying {
    /// Newest first, at most `RULES_MAX`; each is some variant's, which pays for it.
    pub rules: Vec<VaryRule>,
    /// Oldest first, at most `VARIANTS_MAX`.
    pub variants: Vec<Variant>,
    /// The line of those on disk, where there is one.
    pub line: Option<Line>,
}

impl Varying {
    /// The variant stored for `selecting`, the newest if there are several.
    pub(crate) fn find(&self, selecting: Digest) -> Option<Slot> {
        self.variants
            .iter()
            .rev()
            .find(|variant| variant.selecting == selecting)
            .map(|variant| variant.slot)
    }

    /// Adds a variant as the newest, and its rule in front; returns the variants that it replaces:
    /// the one for the same request, those whose rule is not used any more, and the oldest of too
    /// many.
    pub(crate) fn put(&mut self, rule: &VaryRule, selecting: Digest, slot: Slot) -> Vec<Slot> {
        let known = self.rules.iter().position(|known| known == rule);
        // the known one, so that all variants share it
        let rule = known.map_or_else(|| rule.clone(), |at| self.rules.remove(at));
        self.rules.insert(0, rule.clone());
        let outdated = self.rules.split_off(RULES_MAX.min(self.rules.len()));
        let mut leaving: Vec<Slot> = Vec::new();
        self.variants.retain(|variant| {
            let leaves = variant.selecting == selecting
                || outdated.iter().any(|rule| rule.is(&variant.rule));
            if leaves {
                leaving.push(variant.slot);
            }
            !leaves
        });
        if self.variants.len() >= VARIANTS_MAX {
            leaving.push(self.variants.remove(0).slot);
        }
        self.variants.push(Variant {
            rule,
            selecting,
            slot,
        });
        self.tidy();
        leaving
    }

    fn forget(&mut self, slot: Slot) {
        self.variants.retain(|variant| variant.slot != slot);
        self.tidy();
    }

    /// Nothing stays that no variant pays for.
    fn tidy(&mut self) {
        let variants = &self.variants;
        self.rules
            .retain(|rule| variants.iter().any(|variant| variant.rule.is(rule)));
        if self.variants.capacity() > 2 * self.variants.len() + VARIANTS_SLACK {
            self.variants.shrink_to(self.variants.len() + 1);
        }
    }
}

/// Bytes a response stored under `rule` costs beside itself.
pub(crate) fn variant_charge(rule: Option<&VaryRule>) -> usize {
    rule.map_or(0, |rule| VARIANT_BYTES + rule.charged_bytes())
}

impl Resource {
    /// Every slot of the target.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        match self {
            Self::Single(slot) => vec![*slot],
            Self::Varying(varying) => varying
                .variants
                .iter()
                .map(|variant| variant.slot)
                .collect(),
        }
    }

    /// The variant in `slot`.
    pub(crate) fn variant(&self, slot: Slot) -> Option<&Variant> {
        match self {
            Self::Single(_) => None,
            Self::Varying(varying) => varying.variants.iter().find(|variant| variant.slot == slot),
        }
    }

    /// The line of its variants on disk, where there is one.
    pub(crate) fn line(&self) -> Option<Line> {
        match self {
            Self::Single(_) => None,
            Self::Varying(varying) => varying.line,
        }
    }

    /// Takes one slot out; `true` if nothing is left.
    pub(crate) fn forget(&mut self, slot: Slot) -> bool {
        match self {
            Self::Single(only) => *only == slot,
            Self::Varying(varying) => {
                varying.forget(slot);
                varying.variants.is_empty()
            }
        }
    }
}
