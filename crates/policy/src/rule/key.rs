//! What of a target and of preferences is in the cache key by a rule.
//!
//! What is taken out of the key is taken out of the request, too: the next hop gets what is left,
//! so that its response cannot depend on what the key lacks (RFC 9110 §7.7 lets a proxy change a
//! query by arrangement). Mode, scheme, host, port and path are never changed.

use super::fields::remove_other_spellings;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use weir_extend::{FieldError, Fields};
use weir_semantics::{is_token, preferences};

/// Most parameters of a query that is changed; one with more stays as it is, in the key and in the
/// request.
pub const KEY_PARAMETERS_MAX: usize = 64;

/// Most members of `Accept-Language` or `Accept-Encoding` that are looked at.
const PREFERENCES_MAX: usize = 32;

/// Most bytes of the name of a parameter in a rule.
pub const QUERY_NAME_BYTES_MAX: usize = 128;

/// What a rule does to the key, and to the request. Nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRule {
    /// Parameters of the query that are dropped.
    pub drop_query: Vec<QueryName>,
    /// The parameters that are kept; all if it is `None`.
    pub keep_query: Option<Vec<QueryName>>,
    /// Parameters are sorted by their names; those of one name stay in their order.
    pub sort_query: bool,
    /// `Accept-Language` becomes the one of these that is preferred, and is removed where none is
    /// acceptable.
    pub languages: Option<Vec<LanguageTag>>,
    /// `Accept-Encoding` becomes the one of these that is preferred, and `identity` where none is
    /// acceptable.
    pub codings: Option<Vec<CodingName>>,
}

/// The name of a parameter of a query as it is written in targets, or the beginning of one with `*`
/// behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryName(Box<str>);

/// A language (RFC 5646), such as `de` or `de-AT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LanguageTag(Box<str>);

/// A content coding (RFC 9110 §8.4.1), such as `gzip`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodingName(Box<str>);

/// Why a text is none of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPatternError(&'static str);

impl fmt::Display for KeyPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for KeyPatternError {}

impl FromStr for QueryName {
    type Err = KeyPatternError;

    fn from_str(text: &str) -> Result<Self, KeyPatternError> {
        let name = text.strip_suffix('*').unwrap_or(text);
        let is_part = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'&' | b'=' | b'#');
        if !name.bytes().all(is_part) || name.contains('*') {
            return Err(KeyPatternError(
                "the name of a parameter is as in a URL, with `*` at its end for all that follow",
            ));
        }
        if text.is_empty() || text.len() > QUERY_NAME_BYTES_MAX {
            return Err(KeyPatternError("it is empty or too long"));
        }
        Ok(Self(text.into()))
    }
}

impl FromStr for LanguageTag {
    type Err = KeyPatternError;

    fn from_str(text: &str) -> Result<Self, KeyPatternError> {
        let is_subtag = |part: &str| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        match text.len() <= 35 && text.split('-').all(is_subtag) {
            true => Ok(Self(text.into())),
            false => Err(KeyPatternError("a language is such as `de` or `de-AT`")),
        }
    }
}

impl FromStr for CodingName {
    type Err = KeyPatternError;

    fn from_str(text: &str) -> Result<Self, KeyPatternError> {
        let is_other = !matches!(text, "*" | "identity");
        match is_token(text.as_bytes()) && is_other {
            true => Ok(Self(text.to_ascii_lowercase().into())),
            false => Err(KeyPatternError(
                "a content coding is such as `gzip` or `br`",
            )),
        }
    }
}

macro_rules! displayed {
    ($($Type:ident)+) => {$(
        impl fmt::Display for $Type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

displayed! { QueryName LanguageTag CodingName }

impl QueryName {
    fn matches(&self, name: &str) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == &*self.0,
        }
    }
}

impl LanguageTag {
    /// How many bytes of a range of languages it fits: one of the two is the other, or begins it
    /// (RFC 4647 §3.3.1, §3.4). 0 for the range of all.
    fn fits(&self, range: &[u8]) -> Option<usize> {
        let tag = self.0.as_bytes();
        let (short, long) = match tag.len() < range.len() {
            true => (tag, range),
            false => (range, tag),
        };
        let (start, rest) = long.split_at(short.len());
        match range {
            b"*" => Some(0),
            _ if !start.eq_ignore_ascii_case(short) => None,
            _ => matches!(rest, [] | [b'-', ..]).then_some(short.len()),
        }
    }
}

impl CodingName {
    /// The same for a coding: `x-gzip` is `gzip` (RFC 9110 §8.4.1).
    fn fits(&self, range: &[u8]) -> Option<usize> {
        let name = match range.split_at_checked(2) {
            Some((start, name)) if start.eq_ignore_ascii_case(b"x-") => name,
            _ => range,
        };
        match range {
            b"*" => Some(0),
            _ => name.eq_ignore_ascii_case(self.0.as_bytes()).then_some(1),
        }
    }
}

/// The one of `listed` that the members of `lines` prefer; of equal ones the first. `None` if none
/// is acceptable.
fn preferred<'l, T>(
    listed: &'l [T],
    lines: &[&[u8]],
    fits: impl Fn(&T, &[u8]) -> Option<usize>,
) -> Option<&'l T> {
    let members = lines.iter().flat_map(|line| preferences(line));
    let members: Vec<_> = members.take(PREFERENCES_MAX).collect();
    let weight = |one: &T| {
        let fitting = members
            .iter()
            .filter_map(|(range, weight)| Some((fits(one, range)?, *weight)));
        // what says most of it
        fitting.max().map_or(0, |(_, weight)| weight)
    };
    let mut best = None;
    for one in listed {
        let weight = weight(one);
        if weight > best.map_or(0, |(weight, _)| weight) {
            best = Some((weight, one));
        }
    }
    best.map(|(_, one)| one)
}

impl KeyRule {
    /// Whether it changes nothing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it may change field lines.
    #[must_use]
    pub const fn changes_fields(&self) -> bool {
        self.languages.is_some() || self.codings.is_some()
    }

    /// A path with its query as the rule has it; `None` if it stays as it is.
    #[must_use]
    pub fn target(&self, path_and_query: &str) -> Option<String> {
        if self.drop_query.is_empty() && self.keep_query.is_none() && !self.sort_query {
            return None;
        }
        let (path, query) = path_and_query.split_once('?')?;
        let mut parameters: Vec<&str> = query.split('&').take(KEY_PARAMETERS_MAX + 1).collect();
        if parameters.len() > KEY_PARAMETERS_MAX {
            return None;
        }
        let listed = |list: &[QueryName], name: &str| list.iter().any(|it| it.matches(name));
        let is_kept = |parameter: &&str| {
            let name = name_of(parameter);
            let keep = self.keep_query.as_deref();
            keep.is_none_or(|keep| listed(keep, name)) && !listed(&self.drop_query, name)
        };
        parameters.retain(is_kept);
        if self.sort_query {
            parameters.sort_by_key(|parameter| name_of(parameter));
        }
        let left = match parameters.is_empty() {
            true => String::from(path),
            false => [path, "?", &parameters.join("&")].concat(),
        };
        (left != path_and_query).then_some(left)
    }

    /// Changes the preferences among `fields`.
    ///
    /// # Errors
    ///
    /// There is no room for the change.
    pub fn change(&self, fields: &mut Fields) -> Result<(), FieldError> {
        // some servers read `_` as `-`, and would see what the key lacks
        if let Some(listed) = &self.languages {
            remove_other_spellings(fields, LANGUAGES)?;
            let lines: Vec<&[u8]> = fields.all(LANGUAGES).collect();
            let best = preferred(listed, &lines, LanguageTag::fits);
            match best {
                Some(best) => fields.set(LANGUAGES, best.0.as_bytes())?,
                None => fields.remove(LANGUAGES).map(|_| ())?,
            }
        }
        if let Some(listed) = &self.codings {
            remove_other_spellings(fields, CODINGS)?;
            let lines: Vec<&[u8]> = fields.all(CODINGS).collect();
            let best = preferred(listed, &lines, CodingName::fits);
            let name = best.map_or("identity", |best| &best.0);
            fields.set(CODINGS, name.as_bytes())?;
        }
        Ok(())
    }
}

const LANGUAGES: &str = "Accept-Language";

const CODINGS: &str = "Accept-Encoding";

fn name_of(parameter: &str) -> &str {
    parameter.split('=').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list<T: FromStr<Err: fmt::Debug>>(texts: &[&str]) -> Vec<T> {
        let texts = texts.iter();
        texts.map(|text| text.parse().expect("a value")).collect()
    }

    fn check(rule: &KeyRule, target: &str, expected: &str) {
        let found = rule.target(target);
        assert_eq!(found.as_deref().unwrap_or(target), expected, "{target}");
        // once more changes nothing: a node may get a target that another has changed
        assert_eq!(rule.target(expected), None, "{expected}");
    }

    #[test]
    fn parameters_are_dropped_kept_and_sorted() {
        let drop = KeyRule {
            drop_query: list(&["utm_*", "ref"]),
            ..KeyRule::default()
        };
        check(&drop, "/a", "/a");
        check(&drop, "/a?", "/a?");
        check(&drop, "/a?ref=1", "/a");
        check(&drop, "/a?utm_a=1&id=2&utm_b&refs=3", "/a?id=2&refs=3");
        check(&drop, "/a?x=?&ref", "/a?x=?");
        // as it is written: what is left is in the key and in the request
        check(&drop, "/a?re%66=1", "/a?re%66=1");
        let keep = KeyRule {
            keep_query: Some(list(&["id"])),
            ..KeyRule::default()
        };
        check(&keep, "/a?b=1&id=2&id=1&", "/a?id=2&id=1");
        check(&keep, "/a?", "/a");
        let none = KeyRule {
            keep_query: Some(Vec::new()),
            ..KeyRule::default()
        };
        check(&none, "/a?b=1&id=2", "/a");
        let sort = KeyRule {
            sort_query: true,
            ..KeyRule::default()
        };
        check(&sort, "/a?b=1&a=2&b=0&a=1", "/a?a=2&a=1&b=1&b=0");
        check(&sort, "/a?a&b", "/a?a&b");
    }

    #[test]
    fn query_of_too_many_parameters_stays_as_it_is() {
        let rule = KeyRule {
            keep_query: Some(Vec::new()),
            ..KeyRule::default()
        };
        let target = |count: usize| alloc::format!("/a?{}", ["b"; 100][..count].join("&"));
        check(&rule, &target(KEY_PARAMETERS_MAX), "/a");
        let many = target(KEY_PARAMETERS_MAX + 1);
        assert_eq!(rule.target(&many), None);
    }

    fn check_fields(rule: &KeyRule, field: (&str, &str), expected: &[(&str, &str)]) {
        let mut fields = Fields::received([(field.0, field.1.as_bytes())]);
        assert_eq!(rule.change(&mut fields), Ok(()));
        let lines = fields.iter().map(|(name, value)| {
            let value = str::from_utf8(value).expect("text");
            (name, value)
        });
        let lines: Vec<_> = lines.filter(|line| line.0 != "X").collect();
        assert_eq!(lines, expected, "{field:?}");
    }

    #[test]
    fn language_becomes_the_listed_one_that_is_preferred() {
        let rule = KeyRule {
            languages: Some(list(&["de", "en", "pt-BR"])),
            ..KeyRule::default()
        };
        let check = |value: &str, expected: &[&str]| {
            let lines: Vec<_> = expected.iter().map(|tag| (LANGUAGES, *tag)).collect();
            check_fields(&rule, (LANGUAGES, value), &lines);
        };
        check("en", &["en"]);
        check("de-AT, en;q=0.8", &["de"]);
        check("en;q=0.5, DE;q=0.8, fr", &["de"]);
        check("pt, en;q=0.9", &["pt-BR"]);
        check("fr", &[]);
        check("fr, *;q=0.1", &["de"]);
        check("de;q=0, *", &["en"]);
        check("den", &[]);
        check_fields(&rule, ("X", "1"), &[]);
        check_fields(&rule, ("Accept_Language", "fr"), &[]);
    }

    #[test]
    fn coding_becomes_the_listed_one_that_is_preferred_or_identity() {
        let rule = KeyRule {
            codings: Some(list(&["br", "gzip"])),
            ..KeyRule::default()
        };
        let check = |value: &str, expected: &str| {
            check_fields(&rule, (CODINGS, value), &[(CODINGS, expected)]);
        };
        check("gzip, deflate, br, zstd", "br");
        check("gzip, br;q=0.9", "gzip");
        check("x-gzip", "gzip");
        check("br;q=0, *", "gzip");
        check("deflate", "identity");
        check("gzip;q=0", "identity");
        check_fields(&rule, ("X", "1"), &[(CODINGS, "identity")]);
    }

    #[test]
    fn text_that_is_no_name_is_refused() {
        for text in ["", "a*b", "a=b", "a b", "ä"] {
            assert!(text.parse::<QueryName>().is_err(), "{text}");
        }
        for text in ["", "*", "de_AT", "toolongtag"] {
            assert!(text.parse::<LanguageTag>().is_err(), "{text}");
        }
        for text in ["", "*", "identity", "a b"] {
            assert!(text.parse::<CodingName>().is_err(), "{text}");
        }
    }
}
