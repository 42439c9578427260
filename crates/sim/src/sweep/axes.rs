//! The axes of the whole simulation: each word of a point as a setting.
//!
//! Words are those of `weir sim run`. An axis of the network that is not named leaves the number to
//! the network that is.

use super::grid::Point;
use super::job::Parameter;
use crate::hit_ratio::hits::admission_from_word;
use crate::hit_ratio::mrc::Size;
use crate::network::tcp::Tcp;
use crate::settings::{Network, Settings, UNLIMITED_BYTES};
use std::str::FromStr;
use weir_policy::Profile;
use weir_policy::choice::UnknownWord;
use weir_policy::eviction::EvictionKind;
use weir_policy::fetch::{AbortKind, ReadAhead};
use weir_workload::{Dimension, Law};

/// The word for what is left to the network.
const NETWORK: &str = "network";

const TIME: &str = "a time such as `250ms`, or as the network has it";
const RATE: &str = "bits a second such as `21kbit/s`, or as the network has it";

/// An axis, in the order of the file's columns: those that come later change what those before have
/// set.
macro_rules! axis {
    ($name:literal, $meaning:expr, $default:expr) => {
        Parameter {
            name: $name,
            meaning: $meaning,
            default: $default,
            check: |word| {
                let mut settings = Settings::of(Network::MODEM, Profile::Rfc9111);
                set(&mut settings, $name, word, 0)
            },
        }
    };
}

pub(super) fn parameters() -> Vec<Parameter> {
    [caches(), transfers(), links(), others()].concat()
}

/// What is stored, and by which rules.
fn caches() -> Vec<Parameter> {
    vec![
        axis!(
            "network",
            "a network by name: modem, research, fixed-2024, mobile-2024, leo, geo, mobile-slow",
            "modem"
        ),
        axis!(
            "profile",
            "what may be stored: rfc9111 or http-1998",
            Profile::Rfc9111.as_str()
        ),
        axis!("caching", "off, on or ignoring-cookies", "on"),
        axis!(
            "size",
            "the size of the cache, bytes such as `64MiB`, a share of the footprint such as `10%`, or unlimited",
            "unlimited"
        ),
        axis!("policy", "who leaves", EvictionKind::DEFAULT.as_str()),
        axis!(
            "admission",
            "who comes in: always, second-request or small:SIZE",
            "always"
        ),
        axis!(
            "assume_lifetime",
            "how long a response is fresh where the source of the trace knew no heads: a time such as `1h`, or none",
            "24h"
        ),
    ]
}

/// Connections that are kept, and fetches.
fn transfers() -> Vec<Parameter> {
    vec![
        axis!(
            "client_connections",
            "which are kept toward clients: never, as-in-trace or always",
            "always"
        ),
        axis!(
            "server_connections",
            "which are kept toward servers: never, as-in-trace or always",
            "always"
        ),
        axis!(
            "abort",
            "handling of a fetch without readers: value, stop, finish or squid",
            AbortKind::Value.as_str()
        ),
        axis!(
            "read_ahead",
            "how far a fetch runs ahead of its fastest reader, bytes such as `64KiB`, or unlimited",
            "64KiB"
        ),
        axis!(
            "background_rate",
            "bytes a second that fetches may take while nobody reads, or unlimited",
            "1MiB"
        ),
    ]
}

/// Single numbers of the network.
fn links() -> Vec<Parameter> {
    vec![
        axis!("client_rate", RATE, NETWORK),
        axis!("client_rtt", TIME, NETWORK),
        axis!("internet_rate", RATE, NETWORK),
        axis!("server_rtt", TIME, NETWORK),
        axis!("client_idle", TIME, NETWORK),
        axis!("server_idle", TIME, NETWORK),
        axis!("tcp", "1997, linux, or as the network has it", "network"),
        axis!(
            "initial_window",
            "segments under way on a new connection, or as the network has it",
            "network"
        ),
    ]
}

fn others() -> Vec<Parameter> {
    vec![
        axis!(
            "hit_overhead",
            "what a hit takes beside the network, a time or a law",
            "0s"
        ),
        axis!(
            "miss_overhead",
            "what a forwarded request takes beside the network, a time or a law",
            "0s"
        ),
        axis!("seed", "a number, for what is drawn by these laws", "1"),
        axis!(
            "path",
            "proxy; or direct: clients and servers without one, connections as in the trace",
            "proxy"
        ),
    ]
}

/// The settings of a point.
pub(super) fn settings(point: &Point, footprint_bytes: u64) -> Result<Settings, String> {
    let mut settings = Settings::of(Network::MODEM, Profile::Rfc9111);
    for parameter in parameters() {
        let word = point
            .get(parameter.name)
            .map_or(parameter.default, String::as_str);
        set(&mut settings, parameter.name, word, footprint_bytes)?;
    }
    Ok(settings)
}

fn set(settings: &mut Settings, name: &str, word: &str, footprint: u64) -> Result<(), String> {
    match name {
        "network" => settings.network = network(word)?,
        "profile" => settings.rules.profile = choice(word)?,
        "caching" => settings.caching = choice(word)?,
        "size" => settings.cache_bytes = size(word, footprint)?.unwrap_or(UNLIMITED_BYTES),
        "policy" => settings.eviction = choice(word)?,
        "admission" => settings.admission = admission_from_word(word)?,
        "assume_lifetime" => settings.assumed_lifetime_s = lifetime(word)?,
        "client_connections" => settings.client_connections = choice(word)?,
        "server_connections" => settings.server_connections = choice(word)?,
        "abort" => settings.abort = choice::<AbortKind>(word)?.into(),
        "read_ahead" => {
            settings.read_ahead = bytes(word)?.map_or(ReadAhead::Unbounded, ReadAhead::Bytes)
        }
        "background_rate" => settings.background_bytes_s = bytes(word)?.unwrap_or(u64::MAX),
        "hit_overhead" => settings.hit_overhead = overhead(word)?,
        "miss_overhead" => settings.miss_overhead = overhead(word)?,
        "seed" => settings.seed = whole(word)?,
        "path" => match word {
            "proxy" => {}
            "direct" => *settings = settings.without_proxy(),
            _ => return Err(none_of(word, "proxy, direct")),
        },
        _ if word == NETWORK => {}
        _ => set_link(&mut settings.network, name, word)?,
    }
    Ok(())
}

/// A single number of the network.
fn set_link(network: &mut Network, name: &str, word: &str) -> Result<(), String> {
    match name {
        "client_rate" => network.client_link.bits_s = bits_s(word)?,
        "client_rtt" => network.client_rtt_us = microseconds(word)?,
        "internet_rate" => network.internet.bits_s = bits_s(word)?,
        "server_rtt" => network.server_rtt_us = microseconds(word)?,
        "client_idle" => network.client_idle_ms = microseconds(word)?.div_ceil(1000),
        "server_idle" => network.server_idle_ms = microseconds(word)?.div_ceil(1000),
        "tcp" => network.tcp = Tcp::preset(word).ok_or_else(|| none_of(word, "1997, linux"))?,
        "initial_window" => {
            let segments = u32::try_from(whole(word)?).ok();
            let segments = segments.filter(|segments| *segments > 0);
            network.tcp.initial_window =
                segments.ok_or_else(|| format!("`{word}` is no number of segments"))?;
        }
        _ => return Err(format!("unknown axis `{name}`")),
    }
    Ok(())
}

fn network(word: &str) -> Result<Network, String> {
    let names = || Network::PRESETS.map(|(name, _)| name).join(", ");
    Network::preset(word).ok_or_else(|| none_of(word, &names()))
}

/// Whole seconds; `None`: none is assumed.
fn lifetime(word: &str) -> Result<Option<u32>, String> {
    if word == "none" {
        return Ok(None);
    }
    let us = microseconds(word)?;
    if !us.is_multiple_of(1_000_000) {
        return Err(format!("`{word}` is no whole number of seconds"));
    }
    Ok(Some(u32::try_from(us / 1_000_000).unwrap_or(u32::MAX)))
}

fn choice<T: FromStr<Err = UnknownWord>>(word: &str) -> Result<T, String> {
    word.parse()
        .map_err(|unknown: UnknownWord| unknown.to_string())
}

/// Bytes, or a share of the footprint; `None`: no limit.
fn size(word: &str, footprint_bytes: u64) -> Result<Option<u64>, String> {
    if word == "unlimited" {
        return Ok(None);
    }
    Ok(Some(word.parse::<Size>()?.of(footprint_bytes)))
}

/// Bytes; `None`: no limit.
fn bytes(word: &str) -> Result<Option<u64>, String> {
    match word {
        "unlimited" => Ok(None),
        "0" => Ok(Some(0)),
        _ => match word.parse()? {
            Size::Bytes(bytes) => Ok(Some(bytes)),
            Size::Percent(_) => Err(format!("`{word}` is no number of bytes, such as `64KiB`")),
        },
    }
}

fn overhead(word: &str) -> Result<Option<Law>, String> {
    let law: Law = word.parse().map_err(|error| format!("{error}"))?;
    if !law.is_of(Dimension::Seconds) {
        return Err(format!("`{word}` is no time, such as `5ms` or `exp(5ms)`"));
    }
    Ok(Some(law).filter(|law| law.maximum() != Some(0.0)))
}

fn bits_s(word: &str) -> Result<u64, String> {
    constant(word, Dimension::BitsPerSecond, 1.0..1e15)
        .ok_or_else(|| format!("`{word}` is no rate, such as `21kbit/s` or `45Mbit/s`"))
}

fn microseconds(word: &str) -> Result<u64, String> {
    let seconds: Option<Law> = word.parse().ok();
    let us = seconds.filter(|law| law.is_of(Dimension::Seconds));
    let us = us.and_then(|law| in_range(law.times(1e6).mean()?, &(0.0..1e15)));
    us.ok_or_else(|| format!("`{word}` is no time, such as `250ms` or `30s`"))
}

fn constant(word: &str, dimension: Dimension, range: std::ops::Range<f64>) -> Option<u64> {
    let law: Law = word.parse().ok()?;
    let value = law.mean().filter(|_| law.is_of(dimension))?;
    in_range(value, &range)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be in range"
)]
fn in_range(value: f64, range: &std::ops::Range<f64>) -> Option<u64> {
    range.contains(&value).then(|| value.round() as u64)
}

fn whole(word: &str) -> Result<u64, String> {
    word.parse()
        .map_err(|_| format!("`{word}` is no whole number"))
}

fn none_of(word: &str, known: &str) -> String {
    format!("unknown value `{word}`, expected one of {known}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::ASSUMED_LIFETIME_S;

    #[test]
    fn default_assumed_lifetime_of_a_sweep_is_that_of_a_single_run() {
        let parameters = parameters();
        let parameter = parameters.iter().find(|it| it.name == "assume_lifetime");
        let default = parameter.map(|it| it.default).unwrap();
        assert_eq!(lifetime(default), Ok(Some(ASSUMED_LIFETIME_S)));
        assert_eq!(lifetime("none"), Ok(None));
        assert!(lifetime("500ms").is_err());
    }
}
