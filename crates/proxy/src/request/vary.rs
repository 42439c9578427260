//! Nominated fields as digests (RFC 9111 §4.1).

use crate::request::who_asked::WhoAsked;
use weir_policy::{Digest, KeyHasher, Secret};
use weir_semantics::{FieldLine, feed_selecting, lines_named, nominated};
use weir_store::{FORWARDED, MODULES, VaryRule};

/// What of a request may be nominated: its fields, as the next hop gets them.
#[derive(Clone, Copy)]
pub(crate) struct SelectingFields<'a> {
    /// Its own.
    pub(crate) own: &'a [FieldLine<'a>],
    /// For whom it is forwarded, in the place of those that say so.
    pub(crate) who_asked: WhoAsked<'a>,
}

/// Digest of the request's nominated fields under `rule`, on top of `key`: that of its target, or
/// of the variant that it gets.
pub(crate) fn selecting_digest(
    secret: &Secret,
    key: Digest,
    rule: &VaryRule,
    fields: SelectingFields<'_>,
) -> Digest {
    let mut hasher = KeyHasher::from_digest(secret, key);
    for name in rule.0.iter() {
        hasher.part(name.as_bytes());
        let sent = fields.who_asked.sent(name, fields.own);
        match sent {
            None => feed_selecting(fields.own, name, &mut |bytes| hasher.part(bytes)),
            Some(None) => hasher.part(b"-\n"),
            Some(Some(value)) => {
                let sent = [FieldLine::new(name, &value)];
                feed_selecting(&sent, name, &mut |bytes| hasher.part(bytes));
            }
        }
    }
    hasher.finish()
}

/// What the key of a variant is, for what trusted proxies say (`WhoAsked::variant`).
pub(crate) fn forwarded_key(secret: &Secret, key: Digest, forwarded: Digest) -> Digest {
    let mut hasher = KeyHasher::from_digest(secret, key);
    hasher.number(forwarded.0);
    hasher.number(forwarded.1);
    hasher.finish()
}

/// What has a response stored as a variant, whatever its `Vary` is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct VariantOf {
    /// Modules change responses before they are stored.
    pub(crate) modules: bool,
    /// A trusted proxy may have said for which host or protocol the request is. What is for others
    /// is a variant, too: it does not take the place of those.
    pub(crate) forwarded: bool,
}

/// The rule a response's Vary sets, and that it is a variant of its own. `None` if it varies on
/// nothing.
pub(crate) fn rule_of(response: &[FieldLine<'_>], of: VariantOf) -> Option<VaryRule> {
    let mut names: Vec<Box<str>> = nominated(lines_named(response, "vary"))
        .map(|name| name.to_ascii_lowercase().into_boxed_str())
        .collect();
    if of.modules {
        names.push(MODULES.into());
    }
    if of.forwarded {
        names.push(FORWARDED.into());
    }
    names.sort_unstable();
    names.dedup();
    (!names.is_empty()).then(|| VaryRule(names.into()))
}
