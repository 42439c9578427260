//! What a rule's matchers and changes are written as.

use crate::config::listener::{Listener, Mode};
use crate::config::route::HostPattern;
use crate::config::setting::invalid::Invalid;
use crate::config::values::address::parse_address;
use crate::config::values::name;
use crate::config::values::rate::Rate;
use crate::config::values::text::{BadValue, Form, choice, text_value};
use std::fmt;
use std::net::SocketAddr;
use weir_extend::FieldRule;
use weir_policy::rule::{
    ByteRate, CodingName, IgnoredDirective, LanguageTag, ListenerPattern, PathPattern, Preset,
    QueryName, RuleRate, StatusPattern, TypePattern,
};
use weir_semantics::Method;

/// All listeners of a mode, or the one at an address or with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleListener {
    /// All of this mode.
    Mode(Mode),
    /// The one that is configured with this address.
    At(SocketAddr),
    /// The one with this name.
    Named(String),
}

impl RuleListener {
    /// The patterns that it stands for beside these `listeners`: one that has a name is found by
    /// its address, too.
    pub(super) fn patterns(&self, listeners: &[Listener]) -> Vec<ListenerPattern> {
        let named = |name: String| ListenerPattern::Named(name.into());
        match self {
            Self::Mode(mode) => vec![ListenerPattern::Mode((*mode).into())],
            Self::Named(name) => vec![named(name.clone())],
            Self::At(address) => {
                let there = listeners.iter().filter(|it| it.address == *address);
                let mut names: Vec<_> = there.map(|it| named(it.name_or_address())).collect();
                if names.is_empty() {
                    names.push(named(address.to_string()));
                }
                names
            }
        }
    }

    /// The name by which it names one.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Named(name) => Some(name),
            Self::Mode(_) | Self::At(_) => None,
        }
    }
}

impl std::str::FromStr for RuleListener {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if let Ok(mode) = text.parse() {
            return Ok(Self::Mode(mode));
        }
        if let Ok(address) = parse_address(text) {
            return Ok(Self::At(address));
        }
        if name::is_name(text) {
            return Ok(Self::Named(text.to_owned()));
        }
        Err(BadValue::new(format!(
            "`{text}` is no listener: `forward`, `gateway`, or a name or an address as a [[listener]] has it"
        )))
    }
}

impl fmt::Display for RuleListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mode(mode) => mode.fmt(f),
            Self::At(address) => address.fmt(f),
            Self::Named(name) => f.write_str(name),
        }
    }
}

text_value!(RuleListener);

choice! {
    /// A method that a rule names.
    pub enum RuleMethod {
        /// `GET`.
        Get = "GET",
        /// `HEAD`.
        Head = "HEAD",
        /// `POST`.
        Post = "POST",
        /// `PUT`.
        Put = "PUT",
        /// `DELETE`.
        Delete = "DELETE",
        /// `CONNECT`.
        Connect = "CONNECT",
        /// `OPTIONS`.
        Options = "OPTIONS",
        /// `PATCH`.
        Patch = "PATCH",
    }
}

choice! {
    /// What a rule permits of responses that may be for one user.
    pub enum Sharing {
        /// They are shared.
        Unsafe = "unsafe",
    }
}

impl RuleMethod {
    pub(super) fn method(self) -> Method {
        Method::parse(self.as_str())
    }
}

/// Declares a value that a type of the policy reads and writes.
macro_rules! of_policy {
    ($(#[$meta:meta])* $Type:ident($inner:ty), $what:literal;) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $Type(pub(super) $inner);

        impl std::str::FromStr for $Type {
            type Err = BadValue;

            fn from_str(text: &str) -> Result<Self, BadValue> {
                text.parse().map(Self).map_err(|error| {
                    BadValue::new(format!(concat!("`{}` is no ", $what, ": {}"), text, error))
                })
            }
        }

        impl fmt::Display for $Type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        text_value!($Type);
    };
}

of_policy! {
    /// A path prefix or a glob.
    RulePath(PathPattern), "path of a rule";
}

of_policy! {
    /// A status, or a class of them.
    RuleStatus(StatusPattern), "status";
}

of_policy! {
    /// A media type, or all of a kind.
    RuleType(TypePattern), "media type";
}

/// How much each client is sent in a second, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRate(pub(super) Option<Rate>);

const OFF: &str = "off";

impl ClientRate {
    pub(super) fn check(self, key: &str) -> Result<(), Invalid> {
        self.0.map_or(Ok(()), |rate| rate.check(key))
    }

    pub(super) fn rate(self) -> RuleRate {
        let rate = self.0.and_then(|rate| ByteRate::new(rate.bytes_s()));
        rate.map_or(RuleRate::Off, RuleRate::Limited)
    }
}

impl std::str::FromStr for ClientRate {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        if text == OFF {
            return Ok(Self(None));
        }
        let rate = text.parse().map(|rate| Self(Some(rate)));
        rate.map_err(|refusal: BadValue| BadValue {
            problem: format!("{}, or `{OFF}`", refusal.problem),
            ..refusal
        })
    }
}

impl fmt::Display for ClientRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(rate) => rate.fmt(f),
            None => f.write_str(OFF),
        }
    }
}

text_value!(ClientRate);
of_policy! {
    /// The name of a parameter of a query.
    QueryNameText(QueryName), "parameter of a query";
}

of_policy! {
    /// A language.
    LanguageText(LanguageTag), "language";
}

of_policy! {
    /// A content coding.
    CodingText(CodingName), "content coding";
}

/// A change of a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldChange(pub(super) FieldRule);

impl std::str::FromStr for FieldChange {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        FieldRule::parse(text)
            .map(Self)
            .map_err(|error| BadValue::new(format!("`{text}` is no change of a head: {error}")))
    }
}

impl fmt::Display for FieldChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

text_value!(FieldChange);

/// The form of single values, and of lists of them.
macro_rules! forms {
    ($($Type:ty, $one:literal, $many:literal;)+) => {$(
        impl Form for $Type {
            const FORM: &'static str = $one;
        }

        impl Form for Vec<$Type> {
            const FORM: &'static str = $many;
        }
    )+};
}

forms! {
    RuleListener, "\"forward\", \"gateway\", a name or an address",
        "a list of listeners, such as [\"forward\"], [\"lan\"] or [\"10.0.0.1:3128\"]";
    RulePath, "a path prefix or a glob, such as \"/static\" or \"/**.deb\"",
        "a list of path prefixes and globs, such as [\"/static\", \"/**.deb\"]";
    RuleStatus, "a status or a class of them, such as \"404\" or \"5xx\"",
        "a list of statuses and classes, such as [\"404\", \"5xx\"]";
    RuleType, "a media type, such as \"text/html\" or \"image/*\"",
        "a list of media types, such as [\"text/html\", \"image/*\"]";
    ClientRate, "a rate, such as \"500KiB/s\", or \"off\"",
        "a list of rates, such as [\"500KiB/s\"]";
    QueryNameText, "the name of a parameter, such as \"id\" or \"utm_*\"",
        "a list of names of parameters, such as [\"id\", \"utm_*\"]";
    LanguageText, "a language, such as \"de\"", "a list of languages, such as [\"de\", \"en\"]";
    CodingText, "a content coding, such as \"gzip\"",
        "a list of content codings, such as [\"br\", \"gzip\"]";
    FieldChange, "a change of a head, such as \"set X-Real-IP: {client}\"",
        "a list of changes, such as [\"set X-Real-IP: {client}\", \"remove Cookie\"]";
}

impl Form for Vec<IgnoredDirective> {
    const FORM: &'static str = "a list of directives, such as [\"request no-cache\"]";
}

impl Form for Preset {
    const FORM: &'static str = Self::FORM;
}

impl Form for Vec<RuleMethod> {
    const FORM: &'static str = "a list of methods, such as [\"GET\", \"HEAD\"]";
}

impl Form for Vec<HostPattern> {
    const FORM: &'static str = "a list of hosts, such as [\"www.example.com\", \"*.example.com\"]";
}
