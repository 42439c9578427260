//! Entity tags, RFC 9110 §8.8.3: opaque, quoted, weak or strong.

/// How much two representations with the same entity tag have in common (RFC 9110 §8.8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strength {
    /// Equivalent in meaning; parts of them may not be combined.
    Weak,
    /// The same bytes.
    Strong,
}

/// One entity tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EntityTag<'a> {
    /// Does it carry the `W/` prefix?
    pub weak: bool,
    /// The bytes between the quotation marks, compared byte by byte; may be empty.
    pub opaque: &'a [u8],
}

impl<'a> EntityTag<'a> {
    /// Reads one entity tag and nothing else. `None` if it is not quoted, if `W` is in lower case,
    /// or if a byte is not allowed: such a tag cannot be repeated to its origin in a form it knows,
    /// so it validates nothing.
    #[must_use]
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let (tag, rest) = Self::parse_prefix(value)?;
        rest.is_empty().then_some(tag)
    }

    /// Reads a list of entity tags as in `If-None-Match`; members that are no entity tags are
    /// skipped. A comma within a tag does not end it, and a backslash escapes nothing (RFC 9110
    /// §8.8.3).
    pub fn parse_list(value: &'a [u8]) -> impl Iterator<Item = Self> {
        List { rest: value }
    }

    /// RFC 9110 §8.8.3.2 strong comparison: both strong, the same bytes.
    #[must_use]
    pub fn strong_eq(&self, other: &EntityTag<'_>) -> bool {
        !self.weak && !other.weak && self.opaque == other.opaque
    }

    /// RFC 9110 §8.8.3.2 weak comparison: the same bytes.
    #[must_use]
    pub fn weak_eq(&self, other: &EntityTag<'_>) -> bool {
        self.opaque == other.opaque
    }

    /// Weak or strong.
    #[must_use]
    pub const fn strength(&self) -> Strength {
        if self.weak {
            Strength::Weak
        } else {
            Strength::Strong
        }
    }

    /// The tag that begins `value`, and what follows it.
    fn parse_prefix(value: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (weak, quoted) = match value.strip_prefix(b"W/") {
            Some(quoted) => (true, quoted),
            None => (false, value),
        };
        let inner = quoted.strip_prefix(b"\"")?;
        let end = inner.iter().position(|&byte| !is_etagc(byte))?;
        let rest = inner[end..].strip_prefix(b"\"")?;
        Some((
            Self {
                weak,
                opaque: &inner[..end],
            },
            rest,
        ))
    }
}

struct List<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for List<'a> {
    type Item = EntityTag<'a>;

    fn next(&mut self) -> Option<EntityTag<'a>> {
        loop {
            while let [b',' | b' ' | b'\t', rest @ ..] = self.rest {
                self.rest = rest;
            }
            if self.rest.is_empty() {
                return None;
            }
            let found = EntityTag::parse_prefix(self.rest);
            let after = found.map_or(self.rest, |(_, rest)| rest);
            let end = after
                .iter()
                .position(|&byte| byte == b',')
                .unwrap_or(after.len());
            self.rest = &after[end..];
            // something between the tag and its comma: not a tag
            if let Some((tag, _)) = found
                && after[..end].iter().all(|byte| matches!(byte, b' ' | b'\t'))
            {
                return Some(tag);
            }
        }
    }
}

/// A byte of an opaque tag: visible, not a quotation mark, or beyond ASCII.
const fn is_etagc(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x7e | 0x80..)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(value: &str, expected: Option<(bool, &str)>) {
        let tag = EntityTag::parse(value.as_bytes());
        assert_eq!(
            tag,
            expected.map(|(weak, opaque)| EntityTag {
                weak,
                opaque: opaque.as_bytes()
            }),
            "{value:?}"
        );
    }

    fn check_list(value: &str, expected: &[&str]) {
        let tags: Vec<String> = EntityTag::parse_list(value.as_bytes())
            .map(|tag| {
                format!(
                    "{}{}",
                    if tag.weak { "W/" } else { "" },
                    str::from_utf8(tag.opaque).unwrap()
                )
            })
            .collect();
        assert_eq!(tags, expected, "{value:?}");
    }

    #[test]
    fn only_the_exact_syntax_is_an_entity_tag() {
        check(r#""abc""#, Some((false, "abc")));
        check(r#""""#, Some((false, "")));
        check(r#"W/"abc""#, Some((true, "abc")));
        check(r#""a,b\""#, Some((false, r"a,b\")));
        check("\"abcdefü\"", Some((false, "abcdefü")));
        for invalid in [
            "", "abc", "\"abc", "abc\"", r#"w/"a""#, r#"W"a""#, r#"W\"a""#, r#""a" "#, r#""a b""#,
            "W/", "*",
        ] {
            check(invalid, None);
        }
    }

    #[test]
    fn tag_list_keeps_commas_within_tags_and_skips_invalid_members() {
        check_list("", &[]);
        check_list(r#""a", W/"b" ,"c""#, &["a", "W/b", "c"]);
        check_list(r#", "a,b" ,,"c""#, &["a,b", "c"]);
        check_list(r#"abc, "a""#, &["a"]);
        check_list(r#""a" x, "b""#, &["b"]);
        check_list(r#""a\", "b""#, &[r"a\", "b"]);
        check_list("*", &[]);
    }

    #[test]
    fn strong_comparison_never_matches_a_weak_tag() {
        // the table of RFC 9110 §8.8.3.2
        let tag = |weak, opaque| EntityTag { weak, opaque };
        for (one, two, strong, weak) in [
            (tag(true, &b"1"[..]), tag(true, &b"1"[..]), false, true),
            (tag(true, b"1"), tag(true, b"2"), false, false),
            (tag(true, b"1"), tag(false, b"1"), false, true),
            (tag(false, b"1"), tag(false, b"1"), true, true),
        ] {
            assert_eq!(
                (one.strong_eq(&two), one.weak_eq(&two)),
                (strong, weak),
                "{one:?} {two:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_tag_list_yields_at_most_one_tag_per_byte(value in prop::collection::vec(prop::sample::select(b"W/\"a, \\".to_vec()), 0..64)) {
            prop_assert!(EntityTag::parse_list(&value).count() <= value.len());
        }
    }
}
