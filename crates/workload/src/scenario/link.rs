//! What stands between a participant and the proxy.

use super::text::{As, BitsPerSecond, Seconds, Share};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Deserialize as DeriveDeserialize, Serialize};
use std::fmt;

/// A link of one client or server, each way by itself. In a file a table, or the name of one of
/// [`LINK_PRESETS`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Bits a second to the participant; as many as there are, if not given.
    #[serde(
        rename = "down",
        with = "As::<BitsPerSecond>",
        skip_serializing_if = "Option::is_none"
    )]
    pub down_bits_per_s: Option<u64>,
    /// Bits a second from the participant.
    #[serde(
        rename = "up",
        with = "As::<BitsPerSecond>",
        skip_serializing_if = "Option::is_none"
    )]
    pub up_bits_per_s: Option<u64>,
    /// Milliseconds a packet takes one way; a round trip takes twice that. In a file a time,
    /// `delay = "40ms"`.
    #[serde(rename = "delay", serialize_with = "write_delay")]
    pub delay_ms: f64,
    /// The share of packets that are lost, each way, 0 to 1.
    #[serde(with = "As::<Share>")]
    pub loss: f64,
}

impl Link {
    /// The link of this name in [`LINK_PRESETS`].
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        LINK_PRESETS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, link)| link.clone())
    }
}

/// Links by name. Delays are half of the round trip that the source gives; upload rates are ours
/// where a source has none.
///
/// * `modem-1998`: a 28.8 kbit/s modem, and the 250 ms that a round trip through one takes
///   (Feldmann, Caceres, Douglis, Glass and Rabinovich, INFOCOM 1999).
/// * `fixed-2024`, `mobile-2024`: median rates of fixed and mobile access worldwide (Ookla, by
///   `DataReportal` 2025), with round trips of 20 and 60 ms.
/// * `leo`, `geo`: Starlink in the United States (Ookla 2025) and a geostationary satellite (Ookla,
///   second quarter of 2021).
/// * `mobile-low-income`: mobile access where it is slow, as Myanmar's median (Ookla, second
///   quarter of 2022).
pub const LINK_PRESETS: [(&str, Link); 6] = [
    ("modem-1998", of(28_800, 28_800, 125.0)),
    ("fixed-2024", of(94_000_000, 40_000_000, 10.0)),
    ("mobile-2024", of(56_000_000, 12_000_000, 30.0)),
    ("leo", of(118_000_000, 17_000_000, 22.5)),
    ("geo", of(18_000_000, 3_000_000, 325.0)),
    ("mobile-low-income", of(5_000_000, 2_000_000, 125.0)),
];

const fn of(down: u64, up: u64, delay_ms: f64) -> Link {
    Link {
        down_bits_per_s: Some(down),
        up_bits_per_s: Some(up),
        delay_ms,
        loss: 0.0,
    }
}

/// The table form.
#[derive(DeriveDeserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default, with = "As::<BitsPerSecond>")]
    down: Option<u64>,
    #[serde(default, with = "As::<BitsPerSecond>")]
    up: Option<u64>,
    #[serde(default, with = "As::<Seconds>")]
    delay: f64,
    #[serde(default, with = "As::<Share>")]
    loss: f64,
}

impl From<Table> for Link {
    fn from(table: Table) -> Self {
        Self {
            down_bits_per_s: table.down,
            up_bits_per_s: table.up,
            delay_ms: table.delay * 1000.0,
            loss: table.loss,
        }
    }
}

impl<'de> Deserialize<'de> for Link {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Link;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a link such as \"fixed-2024\" or { down = \"94Mbit/s\", delay = \"10ms\" }")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Link, E> {
        const NAMES: [&str; LINK_PRESETS.len()] = {
            let mut names = [""; LINK_PRESETS.len()];
            let mut index = 0;
            while index < names.len() {
                names[index] = LINK_PRESETS[index].0;
                index += 1;
            }
            names
        };
        Link::preset(name).ok_or_else(|| E::unknown_variant(name, &NAMES))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Link, A::Error> {
        Table::deserialize(MapAccessDeserializer::new(map)).map(Link::from)
    }
}

fn write_delay<S: serde::Serializer>(delay_ms: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    As::<Seconds>::serialize(&(delay_ms / 1000.0), serializer)
}
