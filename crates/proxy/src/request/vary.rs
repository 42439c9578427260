//! Nominated fields as digests (RFC 9111 §4.1).

use weir_policy::{Digest, KeyHasher, Secret};
use weir_semantics::{FieldLine, feed_selecting, lines_named, nominated};
use weir_store::VaryRule;

/// Digest of the request's nominated fields under `rule`, on top of the key of its target.
pub(crate) fn selecting_digest(
    secret: &Secret,
    key: Digest,
    rule: &VaryRule,
    fields: &[FieldLine<'_>],
) -> Digest {
    let mut hasher = KeyHasher::from_digest(secret, key);
    for name in rule.0.iter() {
        hasher.part(name.as_bytes());
        feed_selecting(fields, name, &mut |bytes| hasher.part(bytes));
    }
    hasher.finish()
}

/// The rule a response's Vary sets; `None` if it varies on nothing.
pub(crate) fn rule_of(response: &[FieldLine<'_>]) -> Option<VaryRule> {
    let mut names: Vec<Box<str>> = nominated(lines_named(response, "vary"))
        .map(|name| name.to_ascii_lowercase().into_boxed_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| VaryRule(names.into()))
}
