//! Fields of requests and responses that rules set, add and remove.

mod cookie;

pub use cookie::is_targeted_field;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write as _};
use core::net::IpAddr;
use weir_extend::{FieldError, FieldRule, FieldRuleError, Fields};
use weir_semantics::{Known, identify, is_same_field, list_elements, without_query};

/// Most changes of a head that one rule makes.
pub const FIELDS_MAX: usize = 32;

/// Most bytes of a value with what its placeholders stand for.
pub const VALUE_BYTES_MAX: usize = 4096;

/// Changes of a head, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldRules(Box<[FieldRule]>);

/// Whose head is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// That of a request, before anything is decided by it.
    Request,
    /// That of a response, when it is sent to its client.
    Response,
}

/// What placeholders in values stand for.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    client: Option<IpAddr>,
    host: &'a str,
    path: &'a str,
}

impl<'a> Values<'a> {
    /// `{client}` stands for the address of the client, without one for `unknown` (as RFC 7239 §6.2
    /// has it), `{host}` for the host of the target without port, `{path}` for its path without
    /// query.
    #[must_use]
    pub fn new(client: Option<IpAddr>, host: &'a str, path_and_query: &'a str) -> Self {
        Self {
            client,
            host,
            path: without_query(path_and_query),
        }
    }

    /// A value with what its placeholders stand for.
    ///
    /// # Errors
    ///
    /// It is longer than [`VALUE_BYTES_MAX`] then, or no field can have it.
    pub fn fill<'v>(&self, value: &'v str) -> Result<Cow<'v, str>, ChangeError> {
        if !value.contains('{') {
            return Ok(Cow::Borrowed(value));
        }
        let mut out = String::with_capacity(value.len() + 64);
        for (text, name) in parts(value) {
            out.push_str(text);
            let written = match (name, self.client) {
                (Some("client"), Some(client)) => write!(out, "{}", client.to_canonical()),
                (Some("client"), None) => out.write_str("unknown"),
                (Some("host"), _) => out.write_str(self.host),
                (Some("path"), _) => out.write_str(self.path),
                _ => Ok(()),
            };
            if written.is_err() || out.len() > VALUE_BYTES_MAX {
                return Err(ChangeError::LongValue);
            }
        }
        match out.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            true => Err(ChangeError::Field(FieldError::BadValue)),
            false => Ok(Cow::Owned(out)),
        }
    }
}

/// Why a head cannot be changed as rules say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// A value is longer than [`VALUE_BYTES_MAX`] with what its placeholders stand for.
    LongValue,
    /// No head takes the field.
    Field(FieldError),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LongValue => write!(
                f,
                "a value would be longer than {VALUE_BYTES_MAX} bytes with what its placeholders \
                 stand for"
            ),
            Self::Field(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for ChangeError {}

impl From<FieldError> for ChangeError {
    fn from(error: FieldError) -> Self {
        Self::Field(error)
    }
}

/// Why a text is no change that a rule can make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldRulesError {
    /// It is none at all.
    Text(FieldRuleError),
    /// Rules of the protocol are decided by this field, or by one that some servers take for it.
    Decides(&'static str),
    /// It has a placeholder that stands for nothing.
    Placeholder(String),
    /// There are more than [`FIELDS_MAX`].
    TooMany,
}

impl fmt::Display for FieldRulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(error) => error.fmt(f),
            Self::Decides(name) => write!(f, "{name} is not for rules: HTTP decides by it"),
            Self::Placeholder(name) => write!(
                f,
                "`{{{name}}}` stands for nothing; there are {{client}}, {{host}} and {{path}}"
            ),
            Self::TooMany => write!(f, "there are more than {FIELDS_MAX} changes"),
        }
    }
}

impl core::error::Error for FieldRulesError {}

impl FieldRules {
    /// The changes `rules` of a `message`.
    ///
    /// # Errors
    ///
    /// The first that cannot be made, and its place.
    pub fn new(
        message: Message,
        rules: impl IntoIterator<Item = FieldRule>,
    ) -> Result<Self, (usize, FieldRulesError)> {
        let rules: Box<[FieldRule]> = rules.into_iter().collect();
        if rules.len() > FIELDS_MAX {
            return Err((FIELDS_MAX, FieldRulesError::TooMany));
        }
        for (place, rule) in rules.iter().enumerate() {
            let check = || {
                if let Some(name) = message.decides(rule.name())
                    && !(message == Message::Response && only_restricts(rule))
                {
                    return Err(FieldRulesError::Decides(name));
                }
                let unknown = rule.value().and_then(unknown_placeholder);
                unknown.map_or(Ok(()), |name| {
                    Err(FieldRulesError::Placeholder(name.into()))
                })
            };
            check().map_err(|error| (place, error))?;
        }
        Ok(Self(rules))
    }

    /// Whether a head has a field of this name by them, whatever it had before.
    #[must_use]
    pub fn put(&self, name: &[u8]) -> bool {
        let mut putting = self.0.iter().filter(|rule| rule.value().is_some());
        str::from_utf8(name).is_ok_and(|name| putting.any(|rule| is_same_field(rule.name(), name)))
    }

    /// The names of the fields of which nothing is left but what these changes put there.
    pub fn replaced(&self) -> impl Iterator<Item = &str> {
        let replacing = self.0.iter();
        let replacing = replacing.filter(|rule| !matches!(rule, FieldRule::Add(..)));
        replacing.map(FieldRule::name)
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The changes.
    pub fn iter(&self) -> impl Iterator<Item = &FieldRule> {
        self.0.iter()
    }

    /// Changes `fields`, with `values` in the place of placeholders.
    ///
    /// # Errors
    ///
    /// A change cannot be made: its value is too long or no field content, or there is no room. The
    /// changes before it are made.
    pub fn apply(&self, fields: &mut Fields, values: &Values<'_>) -> Result<(), ChangeError> {
        self.0.iter().try_for_each(|rule| match rule {
            FieldRule::Set(name, value) => {
                let value = values.fill(value)?;
                remove_other_spellings(fields, name)?;
                Ok(fields.set(name, value.as_bytes())?)
            }
            FieldRule::Add(name, value) => Ok(fields.add(name, values.fill(value)?.as_bytes())?),
            FieldRule::Remove(name) => {
                remove_other_spellings(fields, name)?;
                Ok(fields.remove(name).map(|_| ())?)
            }
        })
    }
}

/// Removes the lines that some recipients take for ones with this name.
pub(super) fn remove_other_spellings(fields: &mut Fields, name: &str) -> Result<(), FieldError> {
    let is_other = |other: &&str| is_same_field(other, name) && !other.eq_ignore_ascii_case(name);
    let names = fields.iter().map(|line| line.0);
    let others: Vec<String> = names.filter(is_other).map(Into::into).collect();
    others
        .iter()
        .try_for_each(|other| fields.remove(other).map(|_| ()))
}

impl Message {
    /// The name of the field, as it is usually written, if rules must leave it alone.
    fn decides(self, name: &str) -> Option<&'static str> {
        // some servers read `_` as `-`
        let hyphenated = name.contains('_').then(|| name.replace('_', "-"));
        let known = identify(hyphenated.as_deref().unwrap_or(name))?;
        let decides = match self {
            Self::Request => matches!(
                known,
                Known::CacheControl
                    | Known::Forwarded
                    | Known::IfMatch
                    | Known::IfModifiedSince
                    | Known::IfNoneMatch
                    | Known::IfRange
                    | Known::IfUnmodifiedSince
                    | Known::Pragma
                    | Known::ProxyAuthorization
                    | Known::Range
                    | Known::XForwardedFor
                    | Known::XForwardedHost
                    | Known::XForwardedProto
            ),
            Self::Response => matches!(
                known,
                Known::CacheControl
                    | Known::CdnCacheControl
                    | Known::ContentEncoding
                    | Known::Date
                    | Known::ETag
                    | Known::Expires
                    | Known::LastModified
                    | Known::Pragma
                    | Known::ProxyAuthenticate
                    | Known::ProxyAuthenticationInfo
                    | Known::Vary
            ),
        };
        decides.then_some(known.as_str())
    }
}

/// Whether a change adds directives to `Cache-Control` that let caches behind this one do less,
/// whatever else it says (RFC 9111 §5.2.2). Not `must-revalidate`: it lets them share more (§3.5).
fn only_restricts(change: &FieldRule) -> bool {
    const RESTRICTING: [&[u8]; 4] = [b"private", b"no-store", b"no-cache", b"no-transform"];
    let FieldRule::Add(name, value) = change else {
        return false;
    };
    let mut directives = list_elements(value.as_bytes()).peekable();
    let is_restricting = |directive: &[u8]| {
        let mut known = RESTRICTING.iter();
        known.any(|known| directive.eq_ignore_ascii_case(known))
    };
    identify(name) == Some(Known::CacheControl)
        && directives.peek().is_some()
        && directives.all(is_restricting)
}

/// The placeholders of a value, and the text before each; last the text behind them.
fn parts(value: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let mut rest = Some(value);
    core::iter::from_fn(move || {
        let text = rest?;
        let mut from = 0;
        while let Some(open) = text[from..].find('{').map(|at| from + at) {
            let inner = &text[open + 1..];
            let length = inner.bytes().take_while(u8::is_ascii_lowercase).count();
            if length > 0 && inner[length..].starts_with('}') {
                rest = Some(&inner[length + 1..]);
                return Some((&text[..open], Some(&inner[..length])));
            }
            from = open + 1;
        }
        rest = None;
        Some((text, None))
    })
}

fn unknown_placeholder(value: &str) -> Option<&str> {
    let is_known = |name: &str| matches!(name, "client" | "host" | "path");
    parts(value).find_map(|(_, name)| name.filter(|name| !is_known(name)))
}

/// Reads changes of a message as they are written.
///
/// # Errors
///
/// The first that is none, and its place.
pub fn parse_fields<T: AsRef<str>>(
    message: Message,
    texts: impl IntoIterator<Item = T>,
) -> Result<FieldRules, (usize, FieldRulesError)> {
    let texts = texts.into_iter().enumerate();
    let rules: Result<Vec<FieldRule>, _> = texts
        .map(|(place, text)| {
            let error = |error| (place, FieldRulesError::Text(error));
            FieldRule::parse(text.as_ref()).map_err(error)
        })
        .collect();
    FieldRules::new(message, rules?)
}

impl fmt::Display for FieldRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(|rule| format!("{rule}")).collect();
        f.write_str(&texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUES: Values<'static> = Values {
        client: Some(IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1))),
        host: "a.example",
        path: "/b/c",
    };

    fn check(rules: &[&str], expected: &[(&str, &str)]) {
        let rules = parse_fields(Message::Request, rules).expect("rules");
        let mut fields = Fields::received([("X-One", &b"1"[..]), ("Cookie", b"c")]);
        assert_eq!(rules.apply(&mut fields, &VALUES), Ok(()));
        let lines = fields.iter().map(|(name, value)| {
            let value = str::from_utf8(value).expect("text");
            (name, value)
        });
        assert!(lines.eq(expected.iter().copied()), "{rules}: {fields:?}");
    }

    #[test]
    fn fields_are_set_added_and_removed_in_order() {
        check(&[], &[("X-One", "1"), ("Cookie", "c")]);
        check(
            &["remove Cookie", "set x-one: 2", "add X-One: 3"],
            &[("X-One", "2"), ("X-One", "3")],
        );
    }

    /// A server behind CGI takes them for the same.
    #[test]
    fn field_that_is_set_or_removed_is_so_in_each_of_its_spellings() {
        let check = |rule: &str, expected: &[(&str, &str)]| {
            let rules = parse_fields(Message::Request, [rule]).expect("rules");
            let lines = [("X_Real_IP", &b"1"[..]), ("x-real_ip", b"2"), ("X", b"3")];
            let mut fields = Fields::received(lines);
            assert_eq!(rules.apply(&mut fields, &VALUES), Ok(()));
            let expected = expected
                .iter()
                .map(|(name, value)| (*name, value.as_bytes()));
            assert!(fields.iter().eq(expected), "{rule}: {fields:?}");
        };
        check(
            "set X-Real-IP: {client}",
            &[("X", "3"), ("X-Real-IP", "192.0.2.1")],
        );
        check("remove X_Real-IP", &[("X", "3")]);
        let one = [
            ("X_Real_IP", "1"),
            ("x-real_ip", "2"),
            ("X", "3"),
            ("X-Real-IP", "4"),
        ];
        check("add X-Real-IP: 4", &one);
        let rules = parse_fields(Message::Request, ["set A: 1", "add B: 2", "remove C-D"]);
        let rules = rules.expect("rules");
        assert!(rules.replaced().eq(["A", "C-D"]));
        assert!(rules.put(b"a") && rules.put(b"b") && !rules.put(b"c_d"));
    }

    #[test]
    fn placeholders_stand_for_client_host_and_path() {
        check(
            &["remove Cookie", "set X-One: {client} at {host}{path}!"],
            &[("X-One", "192.0.2.1 at a.example/b/c!")],
        );
        check(
            &["remove Cookie", "set X-One: {\"a\": {}, {B} {host"],
            &[("X-One", "{\"a\": {}, {B} {host")],
        );
        let error = parse_fields(Message::Request, ["add A: {host}", "set A: {{port}}"]);
        assert_eq!(error, Err((1, FieldRulesError::Placeholder("port".into()))));
    }

    #[test]
    fn value_that_no_field_can_have_is_no_change() {
        let rules = parse_fields(Message::Request, ["set A: {path}"]).expect("rules");
        let apply = |path: &str| rules.apply(&mut Fields::default(), &Values { path, ..VALUES });
        let bad = ChangeError::Field(FieldError::BadValue);
        assert_eq!(apply("/\r\nX: y"), Err(bad));
        assert_eq!(apply("/\0"), Err(bad));
        assert_eq!(apply(&"a".repeat(VALUE_BYTES_MAX)), Ok(()));
        assert_eq!(
            apply(&"a".repeat(VALUE_BYTES_MAX + 1)),
            Err(ChangeError::LongValue)
        );
    }

    #[test]
    fn fields_that_http_decides_by_are_refused() {
        let check = |message: Message, text: &str| {
            let error = parse_fields(message, [text]).expect_err(text);
            assert_eq!(error.0, 0, "{text}");
        };
        for name in [
            "Host",
            "Range",
            "If-None-Match",
            "if_range",
            "Cache-Control",
            "Pragma",
            "Forwarded",
            "X-Forwarded-For",
            "X_Forwarded_For",
            "Proxy-Authorization",
            "Expect",
            "Connection",
            "Weir-Peer",
            "Via",
        ] {
            check(Message::Request, &format!("set {name}: x"));
            check(Message::Request, &format!("remove {name}"));
        }
        for name in [
            "Content-Length",
            "Content-Range",
            "Content-Encoding",
            "ETag",
            "Last-Modified",
            "Age",
            "Date",
            "Vary",
            "Cache-Status",
            "Transfer-Encoding",
            // caches behind this one share what they permit
            "Cache-Control",
            "CDN-Cache-Control",
            "Expires",
            "Pragma",
        ] {
            check(Message::Response, &format!("set {name}: x"));
            check(Message::Response, &format!("remove {name}"));
        }
        assert!(parse_fields(Message::Request, ["set Authorization: x"]).is_ok());
        // caches behind this one may be told to do less
        for value in ["private", "No-Store, no-cache", "no-transform"] {
            let text = format!("add Cache-Control: {value}");
            assert!(parse_fields(Message::Response, [&text]).is_ok(), "{text}");
            check(Message::Request, &text);
            check(Message::Response, &format!("set Cache-Control: {value}"));
        }
        for value in [
            "must-revalidate",
            "private, public",
            "no-cache=x",
            "max-age=0",
            "{path}",
        ] {
            check(Message::Response, &format!("add Cache-Control: {value}"));
        }
        let many = ["add A: 1"; FIELDS_MAX + 1];
        let error = parse_fields(Message::Request, many);
        assert_eq!(error, Err((FIELDS_MAX, FieldRulesError::TooMany)));
    }
}
