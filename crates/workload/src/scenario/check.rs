//! Checks the values of a scenario, alone and together.

mod closed;
mod polymix;
mod web;

use super::{Clients, Link, Origin, Scenario, ScenarioError, Workload};
use crate::law::{Dimension, Law, SHARES_SLACK};
use std::fmt::{self, Display};

/// A value that is refused. `Display` names the key.
#[derive(Debug)]
pub(super) struct Invalid {
    pub(super) key_path: String,
    what: String,
    hint: String,
}

impl Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.key_path, self.what)
    }
}

impl Invalid {
    pub(super) fn into_error(self, file: &str) -> ScenarioError {
        ScenarioError::new(file, self.to_string()).hint(self.hint)
    }
}

type Checked = Result<(), Invalid>;

pub(super) fn check(scenario: &Scenario) -> Checked {
    visible("name", &scenario.name)?;
    range("scale", scenario.scale, 1e-9, 1e9)?;
    match &scenario.workload {
        Workload::Wpb(wpb) => closed::check_wpb(wpb)?,
        Workload::PolyMix(polymix) => polymix::check(polymix)?,
        Workload::Web(web) => web::check(web)?,
        Workload::Hits(hits) => closed::check_hits(hits)?,
    }
    check_origin(&scenario.origin)?;
    check_clients(&scenario.clients)
}

fn check_origin(origin: &Origin) -> Checked {
    law("origin.latency", &origin.latency, Dimension::Seconds)?;
    requests(
        "origin.requests_per_connection",
        origin.requests_per_connection.as_ref(),
    )?;
    above_zero("origin.idle_timeout", origin.idle_timeout_s)?;
    require(
        origin.rate_bytes_per_s != Some(0),
        "origin.rate",
        "is zero",
        "leave it out where content is to be sent as fast as it is taken",
    )?;
    for (index, fault) in origin.faults.iter().enumerate() {
        let key = |name: &str| format!("origin.faults[{index}].{name}");
        above_zero(&key("share"), fault.share)?;
        require(
            fault.until_s.is_none_or(|until| until > fault.from_s),
            key("until"),
            "is not after `from`",
            "leave it out where the fault is to last",
        )?;
    }
    link("origin.link", origin.link.as_ref())
}

fn check_clients(clients: &Clients) -> Checked {
    requests(
        "clients.requests_per_connection",
        clients.requests_per_connection.as_ref(),
    )?;
    count(
        "clients.connections_max",
        clients.connections_max,
        CONNECTIONS_MAX,
    )?;
    count("clients.queue_max", clients.queue_max, QUEUE_MAX)?;
    above_zero("clients.response_timeout", clients.response_timeout_s)?;
    count(
        "clients.agents_per_address",
        clients.agents_per_address,
        AGENTS_MAX,
    )?;
    link("clients.link", clients.link.as_ref())
}

/// Clients, robots, agents or connections: what the owner of a PolyMix target has bits for.
const AGENTS_MAX: u32 = 1 << 24;

/// Servers: one has no more ports.
const SERVERS_MAX: u32 = 1 << 16;

/// Open connections an agent.
const CONNECTIONS_MAX: u32 = 1000;

/// Requests an agent that wait.
const QUEUE_MAX: u32 = 1_000_000;

/// Requests a second.
const RATE_MAX: f64 = 1e7;

/// Entries of any list.
const ENTRIES_MAX: usize = 64;

/// Refuses the value of a key unless `holds`.
fn require(
    holds: bool,
    key: impl Into<String>,
    what: impl Into<String>,
    hint: impl Into<String>,
) -> Checked {
    if holds {
        return Ok(());
    }
    Err(Invalid {
        key_path: key.into(),
        what: what.into(),
        hint: hint.into(),
    })
}

/// A number that is not one is in no range.
fn range<N: PartialOrd + Display>(key: &str, found: N, least: N, most: N) -> Checked {
    let hint = format!("it is from {least} to {most}");
    let holds = (least..=most).contains(&found);
    require(holds, key, format!("is {found}"), hint)
}

fn count(key: &str, found: u32, most: u32) -> Checked {
    range(key, found, 1, most)
}

fn above_zero(key: &str, found: f64) -> Checked {
    require(found > 0.0, key, "is zero", "it is more than zero")
}

fn rate(key: &str, found: f64) -> Checked {
    above_zero(key, found)?;
    range(key, found, 0.0, RATE_MAX)
}

fn law(key: &str, found: &Law, dimension: Dimension) -> Checked {
    let what = format!("is `{found}`, which draws something else");
    let hint = format!("its values are each {}", dimension.example());
    require(found.is_of(dimension), key, what, hint)
}

/// Requests a connection: none is no law for a connection.
fn requests(key: &str, found: Option<&Law>) -> Checked {
    let Some(found) = found else { return Ok(()) };
    law(key, found, Dimension::Plain)?;
    require(
        found.minimum() >= 1.0,
        key,
        format!("is `{found}`, which may draw less than 1"),
        "a connection is for one request at least, as with `zipf(16)`",
    )
}

/// Shares of one whole.
fn whole(key: &str, shares: impl Iterator<Item = f64>) -> Checked {
    let sum: f64 = shares.sum();
    require(
        (sum - 1.0).abs() <= SHARES_SLACK,
        key,
        format!("has shares that add up to {:.3} %", sum * 100.0),
        "they add up to 100 %",
    )
}

/// Shares that leave something, or nothing, to the rest.
fn part(key: &str, shares: impl Iterator<Item = f64>) -> Checked {
    let sum: f64 = shares.sum();
    require(
        sum <= 1.0 + SHARES_SLACK,
        key,
        format!("and what it excludes add up to {:.3} %", sum * 100.0),
        "together they are at most 100 %",
    )
}

fn entries(key: &str, found: usize, most: usize) -> Checked {
    let hint = format!("it has from 1 to {most}");
    let what = format!("has {found} entries");
    require((1..=most).contains(&found), key, what, hint)
}

/// Text that may stand in a field: no control could end the line.
fn visible(key: &str, text: &str) -> Checked {
    let is_visible = |byte: u8| (b' '..=b'~').contains(&byte);
    require(
        !text.trim().is_empty() && text.bytes().all(is_visible),
        key,
        "is empty or has characters that are not printable ASCII",
        "it is one line of printable ASCII",
    )
}

/// What a path may end in.
fn extension(key: &str, text: &str) -> Checked {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_extension =
        |rest: &str| !rest.is_empty() && rest.len() <= 16 && rest.bytes().all(is_plain);
    require(
        text.strip_prefix('.').is_some_and(is_extension),
        key,
        format!("is `{}`", text.escape_debug()),
        "a dot and 1 to 16 letters, digits or underscores, as in `.html`",
    )
}

fn link(key: &str, found: Option<&Link>) -> Checked {
    let Some(found) = found else { return Ok(()) };
    for (name, rate) in [("down", found.down_bits_per_s), ("up", found.up_bits_per_s)] {
        require(
            rate != Some(0),
            format!("{key}.{name}"),
            "is zero",
            "leave it out where the link is as fast as the machine",
        )?;
    }
    range(&format!("{key}.delay"), found.delay_ms, 0.0, DELAY_MS_MAX)?;
    // all packets lost is no link
    range(&format!("{key}.loss"), found.loss, 0.0, LOSS_MAX)
}

/// The longest delay of a link, one way: to the moon and back takes 2.6 s.
const DELAY_MS_MAX: f64 = 60_000.0;

/// The most packets that a link loses: with more, connections do not survive.
const LOSS_MAX: f64 = 0.5;
