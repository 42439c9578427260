//! How long responses are fresh by a rule.

use crate::config::setting::check_range;
use crate::config::setting::invalid::Invalid;
use crate::config::values::text::BadValue;
use crate::config::values::time::span::Span;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use weir_policy::rule::RuleLifetime as Lifetime;
use weir_semantics::DeltaSeconds;

/// How long responses are fresh: one of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RuleLifetime {
    /// Those that do not give a lifetime themselves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Span>,
    /// All that are stored, whatever they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced: Option<Span>,
}

impl<'de> Deserialize<'de> for RuleLifetime {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(TableOrTime)
    }
}

/// Reads the table, and says how it is written where there is a time in its place.
struct TableOrTime;

impl<'de> Visitor<'de> for TableOrTime {
    type Value = RuleLifetime;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table, such as { default = \"1d\" }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<RuleLifetime, E> {
        let refusal = BadValue::new(format!(
            "`{}` does not say of which responses it is the lifetime: a table is expected",
            text.escape_debug()
        ));
        let meant = text.parse::<Span>().unwrap_or(Span::from_days(1));
        Err(E::custom(
            refusal.suggesting(format!("{{ default = \"{meant}\" }}")),
        ))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RuleLifetime, A::Error> {
        let Table { default, forced } = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(RuleLifetime { default, forced })
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    default: Option<Span>,
    forced: Option<Span>,
}

impl RuleLifetime {
    pub(super) fn check(self, key: &str) -> Result<(), Invalid> {
        let given = [("default", self.default), ("forced", self.forced)];
        for (name, span) in given {
            if let Some(span) = span {
                check_range(
                    &format!("{key}.{name}"),
                    &span,
                    &LIFETIMES[0],
                    &LIFETIMES[1],
                )?;
            }
        }
        if self.default.is_some() == self.forced.is_some() {
            return Err(Invalid::new(
                key,
                "it is one of `default` and `forced`",
                "write { default = \"1d\" } for responses without a lifetime, { forced = \"1d\" } for all",
            ));
        }
        Ok(())
    }

    pub(super) fn lifetime(self) -> Option<Lifetime> {
        let forced = self.forced.map(|span| Lifetime::Forced(seconds(span)));
        forced.or(self.default.map(|span| Lifetime::Default(seconds(span))))
    }
}

/// The whole seconds of a time.
pub(super) fn seconds(span: Span) -> DeltaSeconds {
    DeltaSeconds::from_secs(span.as_secs())
}

/// No lifetime, and ten years: no response is used for longer.
pub(super) const LIFETIMES: [Span; 2] = [Span::ZERO, Span::from_days(3650)];
