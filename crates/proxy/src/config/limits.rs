//! Every wait, buffer and count of connections has a limit; these are the ones an operator may
//! move.
//!
//! Waits are lengths of silence unless the text says otherwise: a slow peer that goes on is not cut
//! off.

use crate::config::invalid::Invalid;
use crate::config::setting::table;
use crate::config::values::byte_size::ByteSize;
use crate::config::values::span::Span;
use crate::config::values::when_busy::WhenBusy;

table! {
    /// The `[limits]` table.
    pub struct Limits in "limits" {
        /// From a client's first byte of a request to the end of its head, in all: what a slow-head
        /// attack can hold a connection for. A head fits one packet; 10 s covers a bad mobile link.
        request_head: Span = Span::from_secs(10), from WAIT_MIN, to WAIT_MAX;
        /// To open a connection to one address of a next hop. Two repeated SYNs (1 s, 3 s) fit into
        /// 5 s.
        connect: Span = Span::from_secs(5), from WAIT_MIN, to WAIT_MAX;
        /// Without a byte from a next hop while a response is awaited or under way; then 504.
        /// As long as nginx waits; Squid's 15 min would hold a slot on a hung origin.
        next_hop_silence: Span = Span::from_secs(60), from WAIT_MIN, to WAIT_MAX;
        /// Without a byte taken or given by a client in the middle of a message; then the
        /// connection is closed.
        client_silence: Span = Span::from_secs(60), from WAIT_MIN, to WAIT_MAX;
        /// That a client's connection may stay between two requests. Longer than a page is read,
        /// since an idle connection is cheap here.
        client_idle: Span = Span::from_mins(3), from WAIT_MIN, to IDLE_MAX;
        /// That a connection to a next hop is kept unused. Shorter than nginx's 75 s, so that we
        /// mostly close first; where an origin is quicker (Apache httpd: 5 s), a safe request is
        /// sent again on a new one.
        next_hop_idle: Span = Span::from_secs(30), from WAIT_MIN, to IDLE_MAX;
        /// Without a byte either way through a CONNECT or upgraded tunnel. Long, since push
        /// channels are quiet.
        tunnel_idle: Span = Span::from_mins(10), from WAIT_MIN, to IDLE_MAX;
        /// To finish what is under way after SIGTERM, in all; then it is cut. What Kubernetes
        /// grants before it kills.
        drain: Span = Span::from_secs(30), from Span::ZERO, to WAIT_MAX;
        /// To resolve a name, in all, whatever the resolver repeats.
        dns: Span = Span::from_secs(5), from WAIT_MIN, to WAIT_MAX;
        /// For a free connection slot when a next hop has as many connections as it may; then 503.
        next_hop_wait: Span = Span::from_secs(5), from WAIT_MIN, to WAIT_MAX;
        /// What a request does when every connection to its next hop is busy and more are allowed.
        /// `open` opens one. `race` opens one and takes whichever is free first, it or a busy one;
        /// what is left over serves the next. It opens no more connections than `open`, and
        /// requests get theirs sooner. `wait-if-sooner` waits where a busy one is expected back
        /// before a new one would be set up, as both were measured, and opens one if that was
        /// wrong: fewer connections, and more waiting in all, for next hops that are short of them.
        /// Below 2 ms of set-up all three open one.
        next_hop_busy: WhenBusy = WhenBusy::Race;
        /// That a connection to a next hop is used in all; then it ends with the response under
        /// way. Without it a busy one would never notice that the next hop's name has another
        /// address. nginx uses an hour as well.
        next_hop_age: Span = Span::from_hours(1), from Span::from_secs(1), to AGE_MAX;
        /// The size of a request's or a response's head, and of a trailer section; then 431 or 502.
        /// Twice the 32 KiB of Varnish, which cookie-heavy sites exceed.
        head_bytes: ByteSize = ByteSize::from_kib(64), from ByteSize::from_kib(1), to ByteSize::from_mib(1);
        /// The number of field lines in a request's head or trailer section; then 431. The parser
        /// has room for no more than the default.
        head_fields_max: u32 = 128, from 8, to 128;
        /// The number of field lines in a response's head or trailer section; then 502. Some sites
        /// send more than a hundred (Link, Set-Cookie, Content-Security-Policy); nginx and Squid
        /// limit their bytes only. A head of more than 128 lines costs one allocation.
        response_fields_max: u32 = 512, from 8, to RESPONSE_FIELDS_MAX;
        /// How much of an unwanted request's content is read and dropped to keep its connection;
        /// then it is closed.
        request_body_drain: ByteSize = ByteSize::from_kib(64), from ByteSize::from_bytes(0), to ByteSize::from_gib(1);
        /// Client connections at once; more wait to be accepted. 0 takes what the limit of open
        /// files allows, leaving room for next hops.
        clients_max: u32 = 0, from 0, to CONNECTIONS_MAX;
        /// Connections to one next hop at once, used or idle; more requests wait for
        /// `next_hop_wait`.
        connections_per_next_hop_max: u32 = 256, from 1, to CONNECTIONS_MAX;
        /// Connections to all next hops at once, used or idle.
        next_hop_connections_max: u32 = 4096, from 1, to CONNECTIONS_MAX;
        /// Idle connections kept to one next hop; 0 keeps none.
        idle_per_next_hop_max: u32 = 64, from 0, to CONNECTIONS_MAX;
        /// Idle connections kept to all next hops; 0 keeps none.
        idle_next_hop_connections_max: u32 = 1024, from 0, to CONNECTIONS_MAX;
        /// Connections opened ahead: so many are kept ready to each next hop of a route that was
        /// asked within `next_hop_idle`, before anybody needs them. 0 opens none ahead: they take
        /// places at the next hop that nobody may ever use. Worth it where setting up is slow and
        /// requests come in bursts.
        connections_ahead: u32 = 0, from 0, to 1024;
    }
}

/// Shorter waits are slips of the unit: 10 ms is less than a round trip to the next country.
const WAIT_MIN: Span = Span::from_millis(10);

/// A longer wait for bytes is no limit.
const WAIT_MAX: Span = Span::from_hours(1);

/// Idle connections may be kept longer than anybody waits.
const IDLE_MAX: Span = Span::from_days(1);

/// Long enough to mean never.
const AGE_MAX: Span = Span::from_days(365);

/// What the parser has room for ([`FIELDS_CAPACITY`](weir_wire::FIELDS_CAPACITY)), without what is
/// added to a stored head: Date, Via, Content-Length.
const RESPONSE_FIELDS_MAX: u32 = 1000;

/// The most files a process may open where Linux is left as it is (`fs.nr_open`).
const CONNECTIONS_MAX: u32 = 1 << 20;

/// Refuses a part larger than its whole.
pub(super) fn check(limits: &Limits) -> Result<(), Invalid> {
    let part_of = |part_key: &str, part: u32, whole_key: &str, whole: u32| {
        if part <= whole {
            return Ok(());
        }
        Err(Invalid::new(
            format!("limits.{part_key}"),
            format!("{part} is more than limits.{whole_key}, {whole}"),
            format!("raise {whole_key}, or use at most {whole}"),
        ))
    };
    part_of(
        "connections_per_next_hop_max",
        limits.connections_per_next_hop_max,
        "next_hop_connections_max",
        limits.next_hop_connections_max,
    )?;
    part_of(
        "idle_per_next_hop_max",
        limits.idle_per_next_hop_max,
        "connections_per_next_hop_max",
        limits.connections_per_next_hop_max,
    )?;
    part_of(
        "connections_ahead",
        limits.connections_ahead,
        "idle_per_next_hop_max",
        limits.idle_per_next_hop_max,
    )?;
    part_of(
        "idle_next_hop_connections_max",
        limits.idle_next_hop_connections_max,
        "next_hop_connections_max",
        limits.next_hop_connections_max,
    )
}
