//! Nominated fields as digests (RFC 9111 §4.1).

use weir_policy::{Digest, KeyHasher, Secret};
use weir_semantics::{FieldLine, feed_selecting, lines_named, nominated};
use weir_store::{MODULES, VaryRule};

/// Digest of the request's nominated fields under `rule`, on top of `key`: that of its target, or
/// of the variant that it gets of modules.
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

/// The rule a response's Vary sets, and that it `is_of_modules`: those change responses before they
/// are stored. `None` if it varies on nothing.
pub(crate) fn rule_of(response: &[FieldLine<'_>], is_of_modules: bool) -> Option<VaryRule> {
    let mut names: Vec<Box<str>> = nominated(lines_named(response, "vary"))
        .map(|name| name.to_ascii_lowercase().into_boxed_str())
        .collect();
    if is_of_modules {
        names.push(MODULES.into());
    }
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| VaryRule(names.into()))
}
