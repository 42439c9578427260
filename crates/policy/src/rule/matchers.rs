//! Which requests and responses a rule is for.

use super::path::PathPattern;
use crate::route::HostPattern;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
use core::ops::RangeInclusive;
use core::str::FromStr;
use ipnet::IpNet;
use weir_extend::ListenerMode;
use weir_semantics::Method;

/// Most values of one matcher.
pub const PATTERNS_MAX: usize = 64;

/// What a rule is for. Of the values of a matcher one must fit, and all matchers must; a matcher
/// without values fits always.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matchers {
    /// The listener that received the request.
    pub listener: Vec<ListenerPattern>,
    /// The host of the target.
    pub host: Vec<HostPattern>,
    /// Its path. The target of a CONNECT has none.
    pub path: Vec<PathPattern>,
    /// The method of the request.
    pub method: Vec<Method>,
    /// The networks of its client.
    pub client: Vec<IpNet>,
    /// The status of the response.
    pub status: Vec<StatusPattern>,
    /// Its Content-Type.
    pub content_type: Vec<TypePattern>,
}

/// Listeners of one kind, or one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerPattern {
    /// All of this mode.
    Mode(ListenerMode),
    /// The one with this name, or this address if it has none.
    Named(Box<str>),
}

/// One status, or all of a class (RFC 9110 §15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusPattern(RangeInclusive<u16>);

/// A media type in lower case, `type/subtype`, or all of one type, `type/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePattern(Box<str>);

/// Why a text is no status or media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PatternError(&'static str);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for PatternError {}

impl StatusPattern {
    /// The pattern of one status.
    #[must_use]
    pub const fn one(status: u16) -> Self {
        Self(status..=status)
    }

    /// Whether it is for `status`.
    #[must_use]
    pub fn matches(&self, status: u16) -> bool {
        self.0.contains(&status)
    }

    /// Whether a rule can give a response with one of these statuses a lifetime: those that speak
    /// of the target. Not those that speak of one request (of its credentials, its preconditions,
    /// its form, its client), which any odd request can provoke; not a part, which is stored as the
    /// whole, and not 304, which is never stored.
    #[must_use]
    pub fn has_lifetime(&self) -> bool {
        self.0.clone().any(Self::may_have_lifetime)
    }

    /// The same of one status.
    #[must_use]
    pub const fn may_have_lifetime(status: u16) -> bool {
        matches!(
            status,
            200..=205 | 207..=303 | 305..=399 | 404 | 410 | 451 | 500 | 502 | 503 | 504
        )
    }

    /// Whether it is for interim responses alone, which no rule sees.
    #[must_use]
    pub fn is_interim(&self) -> bool {
        *self.0.end() < 200
    }

    fn covers(&self, other: &Self) -> bool {
        self.matches(*other.0.start()) && self.matches(*other.0.end())
    }
}

impl FromStr for StatusPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let error = PatternError("a status is three digits, such as 404, or a class, such as 5xx");
        let [class @ b'1'..=b'5', rest @ ..] = text.as_bytes() else {
            return Err(error);
        };
        let first = u16::from(class - b'0') * 100;
        match rest {
            b"xx" => Ok(Self(first..=first + 99)),
            [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
                let status = first + u16::from(tens - b'0') * 10 + u16::from(ones - b'0');
                Ok(Self::one(status))
            }
            _ => Err(error),
        }
    }
}

impl fmt::Display for StatusPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0.start(), self.0.end());
        if first == last {
            write!(f, "{first}")
        } else {
            write!(f, "{}xx", first / 100)
        }
    }
}

impl TypePattern {
    /// Whether it is for the media type in a Content-Type, whose parameters do not matter.
    #[must_use]
    pub fn matches(&self, content_type: &[u8]) -> bool {
        let end = content_type.iter().position(|byte| *byte == b';');
        let media = content_type[..end.unwrap_or(content_type.len())].trim_ascii();
        match self.0.strip_suffix('*') {
            // with its slash
            Some(class) => media
                .split_at_checked(class.len())
                .is_some_and(|(start, _)| start.eq_ignore_ascii_case(class.as_bytes())),
            None => media.eq_ignore_ascii_case(self.0.as_bytes()),
        }
    }

    fn covers(&self, other: &Self) -> bool {
        let class = self.0.strip_suffix('*');
        self == other || class.is_some_and(|class| other.0.starts_with(class))
    }
}

impl FromStr for TypePattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let is_name = |name: &str| weir_semantics::is_token(name.as_bytes());
        match text.split_once('/') {
            Some((class, "*")) if is_name(class) && class != "*" => {}
            Some((class, name)) if is_name(class) && is_name(name) && !text.contains('*') => {}
            _ => {
                return Err(PatternError(
                    "a media type is written as type/subtype or type/*, such as image/*",
                ));
            }
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }
}

impl fmt::Display for TypePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Matchers {
    /// Whether it says something of the response.
    #[must_use]
    pub const fn is_of_response(&self) -> bool {
        !self.status.is_empty() || !self.content_type.is_empty()
    }

    /// The matcher that tells requests for one target apart, if there is one: a client, or what is
    /// a matter of the client's choice beside the target. What is stored is for all of them.
    #[must_use]
    pub fn of_client(&self) -> Option<&'static str> {
        let is_named = |pattern: &ListenerPattern| matches!(pattern, ListenerPattern::Named(_));
        if !self.client.is_empty() {
            Some("client")
        } else if self.listener.iter().any(is_named) {
            Some("listener")
        } else if !self.method.is_empty() {
            Some("method")
        } else {
            None
        }
    }

    /// Whether all that `other` is for is what this is for; where that is hard to say, it says no.
    /// `mode_of` says the mode of a listener.
    pub(super) fn covers(
        &self,
        other: &Self,
        mode_of: impl Fn(&str) -> Option<ListenerMode>,
    ) -> bool {
        let listener = |one: &ListenerPattern, other: &ListenerPattern| match (one, other) {
            (ListenerPattern::Mode(mode), ListenerPattern::Named(name)) => {
                mode_of(name) == Some(*mode)
            }
            _ => one == other,
        };
        covers_all(&self.listener, &other.listener, listener)
            && covers_all(&self.host, &other.host, host_covers)
            && covers_all(&self.path, &other.path, PathPattern::covers)
            && covers_all(&self.method, &other.method, |one, other| one == other)
            && covers_all(&self.client, &other.client, |one, other| {
                one.contains(other)
            })
            && covers_all(&self.status, &other.status, StatusPattern::covers)
            && covers_all(&self.content_type, &other.content_type, TypePattern::covers)
    }

    /// Whether a client at `address`, as [`IpAddr::to_canonical`] has it, is one that it is for.
    pub(super) fn has_client(&self, address: IpAddr) -> bool {
        self.client.is_empty() || self.client.iter().any(|net| net.contains(&address))
    }
}

/// Whether each of `others` is covered by one of `ones`; none at all stands for any.
fn covers_all<T>(ones: &[T], others: &[T], covers: impl Fn(&T, &T) -> bool) -> bool {
    let is_covered = |other: &T| ones.iter().any(|one| covers(one, other));
    ones.is_empty() || !others.is_empty() && others.iter().all(is_covered)
}

fn host_covers(one: &HostPattern, other: &HostPattern) -> bool {
    let HostPattern::Suffix(suffix) = one else {
        return one == other;
    };
    let is_below = |host: &str| {
        let above = host.strip_suffix(suffix.as_str());
        above.is_some_and(|above| above.ends_with('.') && above.len() > 1)
    };
    match other {
        HostPattern::Exact(host) => is_below(host),
        HostPattern::Suffix(other) => other == suffix || is_below(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_three_digits_or_a_class() {
        let check = |text: &str, status: u16, expected: bool| {
            let pattern: StatusPattern = text.parse().expect(text);
            assert_eq!(pattern.matches(status), expected, "{text} {status}");
            assert_eq!(pattern.to_string(), text);
        };
        check("404", 404, true);
        check("404", 403, false);
        check("5xx", 500, true);
        check("5xx", 599, true);
        check("5xx", 499, false);
        for text in [
            "", "4", "40", "4x", "4xxx", "600", "xx", "4XX", "20a", "099",
        ] {
            assert!(text.parse::<StatusPattern>().is_err(), "{text}");
        }
        assert!(
            "1xx"
                .parse::<StatusPattern>()
                .is_ok_and(|it| it.is_interim())
        );
        assert!(
            "200"
                .parse::<StatusPattern>()
                .is_ok_and(|it| !it.is_interim())
        );
    }

    #[test]
    fn media_type_is_compared_without_parameters_and_case() {
        let check = |text: &str, content_type: &str, expected: bool| {
            let pattern: TypePattern = text.parse().expect(text);
            let matches = pattern.matches(content_type.as_bytes());
            assert_eq!(matches, expected, "{text} {content_type}");
        };
        check("text/html", "Text/HTML ; charset=utf-8", true);
        check("text/html", "text/htmlx", false);
        check("image/*", "image/png", true);
        check("image/*", "imagex/png", false);
        check("Image/*", "IMAGE/svg+xml", true);
        check("image/*", "", false);
        for text in [
            "",
            "text",
            "*/*",
            "text/",
            "/x",
            "a/b*",
            "a b/c",
            "text/html;q=1",
        ] {
            assert!(text.parse::<TypePattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn wider_matcher_covers_the_narrower_one_and_not_the_other_way_round() {
        let with = |change: &dyn Fn(&mut Matchers)| {
            let mut matchers = Matchers::default();
            change(&mut matchers);
            matchers
        };
        let host = |text: &'static str| with(&|it| it.host.push(text.parse().expect(text)));
        let path = |text: &'static str| with(&|it| it.path.push(text.parse().expect(text)));
        let client = |text: &'static str| with(&|it| it.client.push(text.parse().expect(text)));
        let status = |text: &'static str| with(&|it| it.status.push(text.parse().expect(text)));
        let media =
            |text: &'static str| with(&|it| it.content_type.push(text.parse().expect(text)));
        let method = |method: Method| with(&move |it| it.method.push(method));
        let listener = |pattern: ListenerPattern| with(&|it| it.listener.push(pattern.clone()));
        let mode = |name: &str| (name == "lan").then_some(ListenerMode::Forward);
        let pairs = [
            (host("*.a.example"), host("x.a.example")),
            (host("*.a.example"), host("*.b.a.example")),
            (path("/a"), path("/a/b")),
            (client("10.0.0.0/8"), client("10.1.0.0/16")),
            (status("4xx"), status("404")),
            (media("image/*"), media("image/png")),
            (Matchers::default(), method(Method::Get)),
            (
                listener(ListenerPattern::Mode(ListenerMode::Forward)),
                listener(ListenerPattern::Named("lan".into())),
            ),
        ];
        for (wide, narrow) in pairs {
            assert!(wide.covers(&narrow, mode), "{wide:?} {narrow:?}");
            assert!(wide.covers(&wide, mode) && narrow.covers(&narrow, mode));
            assert!(!narrow.covers(&wide, mode), "{wide:?} {narrow:?}");
        }
        let unrelated = [
            (host("*.a.example"), host("a.example")),
            (host("*.a.example"), host("xa.example")),
            (method(Method::Get), method(Method::Head)),
            (
                listener(ListenerPattern::Mode(ListenerMode::Gateway)),
                listener(ListenerPattern::Named("lan".into())),
            ),
        ];
        for (one, other) in unrelated {
            assert!(!one.covers(&other, mode), "{one:?} {other:?}");
        }
    }
}
