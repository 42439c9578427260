//! A file as it is written, before anything is filled in.

use crate::rule::RuleTable;
use crate::vector::{Fault, Kind, Profile};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use std::fmt;
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawFile {
    pub(crate) vector: Vec<RawVector>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawVector {
    pub(crate) id: Spanned<String>,
    pub(crate) spec: String,
    pub(crate) kind: Kind,
    pub(crate) why: String,
    #[serde(default)]
    pub(crate) profile: Profile,
    #[serde(default)]
    pub(crate) rules: Vec<RuleTable>,
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    pub(crate) steps: Vec<Spanned<RawStep>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawStep {
    pub(crate) at: Option<u32>,
    pub(crate) request: Option<String>,
    pub(crate) host: Option<String>,
    #[serde(default)]
    pub(crate) fields: Vec<String>,
    pub(crate) content: Option<String>,
    pub(crate) origin: RawOrigin,
    #[serde(default)]
    pub(crate) client: RawClient,
}

#[derive(Debug)]
pub(crate) enum RawOrigin {
    None,
    Asked(Box<RawAnswer>),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawAnswer {
    #[serde(default)]
    pub(crate) background: bool,
    pub(crate) method: Option<String>,
    pub(crate) target: Option<String>,
    #[serde(default)]
    pub(crate) has: Vec<String>,
    #[serde(default)]
    pub(crate) has_not: Vec<String>,
    #[serde(default)]
    pub(crate) waits: u32,
    #[serde(default)]
    pub(crate) takes: u32,
    #[serde(default = "ok")]
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) fields: Vec<String>,
    pub(crate) body: Option<String>,
    pub(crate) body_bytes: Option<usize>,
    pub(crate) fails: Option<Fault>,
    pub(crate) again: Option<Box<Self>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawClient {
    pub(crate) status: Option<RawStatus>,
    pub(crate) body: Option<RawBody>,
    pub(crate) age: Option<u32>,
    #[serde(default)]
    pub(crate) has: Vec<String>,
    #[serde(default)]
    pub(crate) has_not: Vec<String>,
    pub(crate) cache_status: Option<String>,
    #[serde(default)]
    pub(crate) cut: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a status code or a list of them is expected")]
pub(crate) enum RawStatus {
    One(u16),
    OneOf(Vec<u16>),
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "the number of a step, a text, or { step, first, last } is expected"
)]
pub(crate) enum RawBody {
    OfStep(usize),
    Text(String),
    Part(RawPart),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawPart {
    pub(crate) step: usize,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

const fn ok() -> u16 {
    200
}

impl<'de> Deserialize<'de> for RawOrigin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OriginVisitor)
    }
}

/// By hand and not untagged: an unknown key inside is to be named.
struct OriginVisitor;

impl<'de> Visitor<'de> for OriginVisitor {
    type Value = RawOrigin;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"none\" or a table with the origin's answer")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RawOrigin, E> {
        if text == "none" {
            return Ok(RawOrigin::None);
        }
        Err(E::custom(format!(
            "`{text}` is neither \"none\" nor a table with the origin's answer"
        )))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawOrigin, A::Error> {
        RawAnswer::deserialize(MapAccessDeserializer::new(map))
            .map(|answer| RawOrigin::Asked(Box::new(answer)))
    }
}
