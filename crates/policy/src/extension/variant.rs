//! Which variant of what is stored a request gets where modules change responses before they are
//! stored.
//!
//! The variant is all that the change depends on beside the response of the next hop: the modules
//! in their order, the configuration and state of each, and the tag that each has given the
//! request. A module that failed for the request is another variant than one that worked: what
//! passed without it is not served as if it had changed it.

use crate::digest::{Digest, KeyHasher, Secret};
use alloc::format;
use alloc::vec::Vec;
use weir_extend::OptionValue;
use weir_semantics::{EntityTag, Timestamp};

/// The secret of digests that are the same in all processes: those of what only the operator
/// writes, and those that clients see.
const NO_SECRET: Secret = Secret([0; 16]);

/// A variant of what is stored for a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// Names it in the store. It depends on the secret, as clients may choose tags.
    digest: Digest,
    /// Names it in entity tags. Proxies with the same configuration give the same, also after a
    /// restart.
    public: u64,
}

impl Variant {
    /// The key of the target `primary`, for this variant alone: the base of the digest of its
    /// nominated fields.
    #[must_use]
    pub fn key(&self, secret: &Secret, primary: Digest) -> Digest {
        let mut hasher = KeyHasher::from_digest(secret, primary);
        hasher.number(self.digest.0);
        hasher.number(self.digest.1);
        hasher.finish()
    }

    /// Names it among the variants of a target.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The entity tag of a response whose content was changed, for clients: made of `tag`, that of
    /// the next hop, else of `last_modified`. `None` if the response has neither.
    ///
    /// It is weak. The same content of the next hop, changed once more, need not come to the same
    /// bytes: a compressor is handed other pieces, and a list may give several rules in another
    /// order. A strong one would let a client join bytes of two such results (RFC 9110 §15.3.7.3).
    #[must_use]
    pub fn entity_tag(
        &self,
        tag: Option<&[u8]>,
        last_modified: Option<Timestamp>,
    ) -> Option<Vec<u8>> {
        let mut derived = b"W/\"".to_vec();
        match (tag.and_then(EntityTag::parse), last_modified) {
            (Some(tag), _) => derived.extend_from_slice(tag.opaque),
            (None, Some(modified)) => {
                derived.extend_from_slice(format!("{:x}", modified.0).as_bytes());
            }
            (None, None) => return None,
        }
        derived.extend_from_slice(format!("-{:016x}\"", self.public).as_bytes());
        Some(derived)
    }
}

/// Makes a [`Variant`] of what the change of a response depends on, in the order of the modules.
#[derive(Clone, Debug)]
pub struct VariantHasher {
    hashers: [KeyHasher; 2],
    is_empty: bool,
}

impl VariantHasher {
    /// Without modules, under the secret of a store.
    #[must_use]
    pub fn new(secret: &Secret) -> Self {
        Self {
            hashers: [KeyHasher::new(secret), KeyHasher::new(&NO_SECRET)],
            is_empty: true,
        }
    }

    /// A module with this configuration ([`configuration_digest`]) and state, which has given the
    /// request `tag`, if it has given it one.
    pub fn module(&mut self, configuration: Digest, state: &str, tag: Option<&str>) {
        self.begin(1, configuration);
        self.text(state);
        self.number(u64::from(tag.is_some()));
        self.text(tag.unwrap_or_default());
    }

    /// A module that failed for the request, and may not keep it from continuing.
    pub fn failed(&mut self, configuration: Digest) {
        self.begin(2, configuration);
    }

    /// The request has `no-transform`: modules leave content as it is (RFC 9111 §5.2.1.6).
    pub fn keep_content(&mut self) {
        self.number(3);
    }

    /// The variant; `None` without modules.
    #[must_use]
    pub fn finish(&self) -> Option<Variant> {
        let [store, public] = &self.hashers;
        (!self.is_empty).then(|| Variant {
            digest: store.finish(),
            public: public.finish().0,
        })
    }

    fn begin(&mut self, kind: u64, configuration: Digest) {
        self.is_empty = false;
        for number in [kind, configuration.0, configuration.1] {
            self.number(number);
        }
    }

    fn number(&mut self, number: u64) {
        for hasher in &mut self.hashers {
            hasher.number(number);
        }
    }

    /// Behind its length, so that what follows cannot be taken for a part of it.
    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        for hasher in &mut self.hashers {
            hasher.part(text.as_bytes());
        }
    }
}

/// The digest of a module's configuration: the version of the program, which has the code of the
/// kinds, the kind, and the options by their names.
#[must_use]
pub fn configuration_digest<'o>(
    program: &str,
    kind: &str,
    options: impl IntoIterator<Item = (&'o str, &'o OptionValue)>,
) -> Digest {
    let mut hasher = KeyHasher::new(&NO_SECRET);
    feed_text(&mut hasher, program);
    feed_text(&mut hasher, kind);
    for (name, value) in options {
        feed_text(&mut hasher, name);
        feed_value(&mut hasher, value);
    }
    hasher.finish()
}

fn feed_text(hasher: &mut KeyHasher, text: &str) {
    hasher.number(text.len() as u64);
    hasher.part(text.as_bytes());
}

fn feed_value(hasher: &mut KeyHasher, value: &OptionValue) {
    match value {
        OptionValue::Text(text) => {
            hasher.number(1);
            feed_text(hasher, text);
        }
        OptionValue::Number(number) => {
            hasher.number(2);
            hasher.number(number.cast_unsigned());
        }
        OptionValue::Flag(flag) => {
            hasher.number(3);
            hasher.number(u64::from(*flag));
        }
        OptionValue::List(values) => {
            hasher.number(4);
            hasher.number(values.len() as u64);
            for value in values {
                feed_value(hasher, value);
            }
        }
        OptionValue::Table(values) => {
            hasher.number(5);
            hasher.number(values.len() as u64);
            for (name, value) in values {
                feed_text(hasher, name);
                feed_value(hasher, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    const SECRET: Secret = Secret([7; 16]);
    const A: Digest = Digest(1, 2);
    const B: Digest = Digest(2, 1);

    fn variant(feed: impl Fn(&mut VariantHasher)) -> Option<Variant> {
        let mut hasher = VariantHasher::new(&SECRET);
        feed(&mut hasher);
        hasher.finish()
    }

    /// Feeds what makes a variant.
    type Feed = fn(&mut VariantHasher);

    #[test]
    fn each_thing_that_a_change_depends_on_makes_another_variant() {
        let feeds: [Feed; 12] = [
            |it| it.module(A, "", None),
            |it| it.module(B, "", None),
            |it| it.module(A, "1", None),
            |it| it.module(A, "", Some("")),
            |it| it.module(A, "", Some("1")),
            |it| it.module(A, "1", Some("1")),
            |it| it.module(A, "11", None),
            |it| it.failed(A),
            |it| {
                it.module(A, "", None);
                it.keep_content();
            },
            |it| {
                it.module(A, "", None);
                it.module(B, "", None);
            },
            |it| {
                it.module(B, "", None);
                it.module(A, "", None);
            },
            |it| {
                it.module(A, "", None);
                it.failed(B);
            },
        ];
        let made = feeds.map(|feed| variant(feed).expect("a module"));
        for (at, one) in made.iter().enumerate() {
            assert_eq!(variant(feeds[at]), Some(*one), "{at}");
            let before = &made[..at];
            assert!(!before.iter().any(|other| other.digest == one.digest));
            assert!(!before.iter().any(|other| other.public == one.public));
        }
    }

    #[test]
    fn request_without_modules_that_change_what_is_stored_has_no_variant() {
        assert_eq!(variant(|_| {}), None);
        assert_eq!(variant(VariantHasher::keep_content), None);
    }

    #[test]
    fn digest_in_the_store_depends_on_the_secret_and_that_of_clients_does_not() {
        let mut other = VariantHasher::new(&Secret([8; 16]));
        other.module(A, "s", Some("t"));
        let other = other.finish().expect("a module");
        let one = variant(|it| it.module(A, "s", Some("t"))).expect("a module");
        assert_ne!(one.digest, other.digest);
        assert_eq!(one.public, other.public);
        assert_ne!(one.key(&SECRET, A), one.key(&SECRET, B));
        assert_ne!(one.key(&SECRET, A), A);
    }

    #[test]
    fn entity_tag_for_clients_is_weak_and_names_origin_tag_and_variant() {
        let variant = Variant {
            digest: A,
            public: 0xab,
        };
        let check = |tag: Option<&str>, modified: Option<i64>, expected: Option<&str>| {
            let made = variant.entity_tag(tag.map(str::as_bytes), modified.map(Timestamp));
            assert_eq!(made.as_deref(), expected.map(str::as_bytes));
        };
        check(Some("\"x\""), None, Some("W/\"x-00000000000000ab\""));
        check(Some("W/\"x\""), Some(1), Some("W/\"x-00000000000000ab\""));
        check(Some("\"\""), None, Some("W/\"-00000000000000ab\""));
        check(None, Some(255), Some("W/\"ff-00000000000000ab\""));
        // what is no entity tag names nothing
        check(Some("x"), None, None);
        check(Some("x"), Some(255), Some("W/\"ff-00000000000000ab\""));
        check(None, None, None);
    }

    #[test]
    fn each_part_of_a_configuration_makes_another_digest() {
        let text = |text: &str| OptionValue::Text(text.into());
        let table = |name: &str| OptionValue::Table(BTreeMap::from([(name.into(), text("x"))]));
        let values = [
            text("1"),
            text(""),
            OptionValue::Number(1),
            OptionValue::Number(-1),
            OptionValue::Flag(true),
            OptionValue::Flag(false),
            OptionValue::List(Vec::new()),
            OptionValue::List([text("a"), text("b")].into()),
            OptionValue::List([text("ab")].into()),
            table("a"),
            table("b"),
        ];
        let mut made: Vec<Digest> = Vec::new();
        for value in &values {
            for (program, kind, name) in [("1", "k", "n"), ("1", "k", "m"), ("1", "l", "n")] {
                made.push(configuration_digest(program, kind, [(name, value)]));
            }
            made.push(configuration_digest("2", "k", [("n", value)]));
        }
        made.push(configuration_digest("1", "k", []));
        for (at, one) in made.iter().enumerate() {
            assert!(!made[..at].contains(one), "{at}");
        }
    }
}
