//! What is stored for one target: a response, or several by the fields they vary on (RFC 9111 §4.1).

use std::sync::Arc;
use weir_policy::Digest;
use weir_policy::catalog::Slot;

/// Variants kept for one target; the oldest leaves for the next. A bound on what one target can occupy.
pub const VARIANTS_MAX: usize = 64;

/// Different sets of nominated fields looked at for one target, newest first.
pub const RULES_MAX: usize = 4;

/// The fields a stored response varies on, as named by its Vary, lower case, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryRule(pub Arc<[Box<str>]>);

/// One variant: the digest of the nominated fields of its original request, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variant {
    pub selecting: Digest,
    pub slot: Slot,
}

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
    /// Newest first, at most `RULES_MAX`.
    pub rules: Vec<VaryRule>,
    /// Oldest first, at most `VARIANTS_MAX`.
    pub variants: Vec<Variant>,
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

    /// Puts a rule in front.
    pub(crate) fn promote(&mut self, rule: &VaryRule) {
        self.rules.retain(|known| known != rule);
        self.rules.insert(0, rule.clone());
        self.rules.truncate(RULES_MAX);
    }
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

    /// Takes one slot out; `true` if nothing is left.
    pub(crate) fn forget(&mut self, slot: Slot) -> bool {
        match self {
            Self::Single(only) => *only == slot,
            Self::Varying(varying) => {
                varying.variants.retain(|variant| variant.slot != slot);
                varying.variants.is_empty()
            }
        }
    }
}
