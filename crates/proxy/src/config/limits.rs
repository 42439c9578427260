//! Every wait, buffer and count of connections has a limit; these are the ones that an operator may
//! change.
//!
//! Most times are lengths of silence: a slow peer that still sends or receives is not cut off.

use crate::config::setting::invalid::Invalid;
use crate::config::setting::mistakes::Mistakes;
use crate::config::setting::table;
use crate::config::values::byte_size::ByteSize;
use crate::config::values::time::span::Span;
use crate::config::values::when_busy::WhenBusy;

table! {
    /// The `[limits]` table.
    pub struct Limits in "limits" {
        /// Time for a whole request head, from its first byte. It bounds how long a slow-head
        /// attack can hold a connection. A head fits into one packet; 10 s are enough for a bad
        /// mobile link.
        request_head: Span = Span::from_secs(10), from WAIT_MIN, to WAIT_MAX;
        /// Time for the whole TLS handshake of a client, from when its connection was accepted. A
        /// handshake is two round trips, or three; 10 s are enough for a bad mobile link.
        tls_handshake: Span = Span::from_secs(10), from WAIT_MIN, to WAIT_MAX;
        /// TLS handshakes under way at once, of each worker. When there are as many, the oldest of
        /// the client that has most is ended for a new one: a client that goes on with its
        /// handshake is done in two round trips, and those that hold one open are the oldest.
        tls_handshakes_max: u32 = 1000, from 1, to CONNECTIONS_MAX;
        /// TLS handshakes of one client (an address, or a network of 64 bits of IPv6) under way at
        /// once, of each worker. When it has as many, its oldest is ended for its new one, so that
        /// it cannot take the places of others. A handshake takes a fraction of a second; 100 are
        /// enough for some hundred new connections a second of users behind one address.
        tls_handshakes_per_client_max: u32 = 100, from 1, to CONNECTIONS_MAX;
        /// Time to open a connection to one address of a next hop. Two repeated SYNs (after 1 s and
        /// 3 s) fit into 5 s.
        connect: Span = Span::from_secs(5), from WAIT_MIN, to WAIT_MAX;
        /// Time without a byte from a next hop while a response is awaited or under way; then the
        /// client gets 504. nginx has the same default; Squid's 15 min would hold a connection to
        /// an origin that hangs.
        next_hop_silence: Span = Span::from_secs(60), from WAIT_MIN, to WAIT_MAX;
        /// Time without a byte received from or taken by a client in the middle of a message; then
        /// its connection is closed.
        client_silence: Span = Span::from_secs(60), from WAIT_MIN, to WAIT_MAX;
        /// Time that a client's connection stays open between two requests. It is longer than a
        /// page is read, since an idle connection costs little here.
        client_idle: Span = Span::from_mins(3), from WAIT_MIN, to IDLE_MAX;
        /// Time that an unused connection to a next hop is kept. It is shorter than nginx's 75 s,
        /// so that Weir mostly closes first; where an origin closes sooner (Apache httpd: 5 s), a
        /// safe request is sent again on a new connection.
        next_hop_idle: Span = Span::from_secs(30), from WAIT_MIN, to IDLE_MAX;
        /// Time without a byte in either direction through a CONNECT tunnel or an upgraded
        /// connection. It is long, since push channels are quiet.
        tunnel_idle: Span = Span::from_mins(10), from WAIT_MIN, to IDLE_MAX;
        /// Time to finish what is under way after SIGTERM; then it is cut off. Kubernetes kills
        /// after the same time.
        drain: Span = Span::from_secs(30), from Span::ZERO, to WAIT_MAX;
        /// Time to resolve a name, with all that the resolver repeats.
        dns: Span = Span::from_secs(5), from WAIT_MIN, to WAIT_MAX;
        /// Time that a request waits for a connection when its next hop has the most connections
        /// allowed; then the client gets 503.
        next_hop_wait: Span = Span::from_secs(5), from WAIT_MIN, to WAIT_MAX;
        /// What a request does when every connection to its next hop is busy and more are allowed.
        /// `open` opens a connection. `race` opens one and uses the first that is free, the new one
        /// or a busy one; the other serves the next request. It opens no more connections than
        /// `open`, and requests get theirs sooner. `wait-if-sooner` waits if a busy connection is
        /// expected to be free before a new one could be set up, as both were measured; it opens
        /// one if the estimate was wrong. That makes fewer connections and more waiting, for next
        /// hops that allow few. Where set-up takes less than 2 ms, all three open one.
        next_hop_busy: WhenBusy = WhenBusy::Race;
        /// Time that a connection to a next hop is used in all; it ends with the response under
        /// way. Without this limit a busy connection would never notice that the next hop's name
        /// has another address. nginx uses an hour, too.
        next_hop_age: Span = Span::from_hours(1), from Span::from_secs(1), to AGE_MAX;
        /// Bytes of a request head, a response head or a trailer section; more is answered with 431
        /// or 502. It is twice the 32 KiB of Varnish, which sites with many cookies exceed. Of a
        /// head, `Connection` may have 64 options and 4096 bytes, whatever the limit is; more is
        /// answered with 400 or 502.
        head_bytes: ByteSize = ByteSize::from_kib(64), from ByteSize::from_kib(1), to ByteSize::from_mib(1);
        /// Field lines in the head or trailer section of a request; more is answered with 431. The
        /// parser has room for no more than the default.
        head_fields_max: u32 = 128, from 8, to 128;
        /// Field lines in the head or trailer section of a response; more is answered with 502.
        /// Some sites send more than a hundred (Link, Set-Cookie, Content-Security-Policy); nginx
        /// and Squid limit their bytes only. A head of more than 128 lines costs one allocation.
        response_fields_max: u32 = 512, from 8, to RESPONSE_FIELDS_MAX;
        /// Content of a request that is not used and is read and dropped, to keep the connection;
        /// beyond that the connection is closed.
        request_body_drain: ByteSize = ByteSize::from_kib(64), from ByteSize::from_bytes(0), to ByteSize::from_gib(1);
        /// Client connections at once; more wait to be accepted. As many requests of HTTP/2 may be
        /// under way beside one of each connection; more are refused, and may be sent again. 0
        /// takes what the limit of open files allows, with room left for next hops.
        clients_max: u32 = 0, from 0, to CONNECTIONS_MAX;
        /// Connections to one next hop at once, used or idle; more requests wait for
        /// `next_hop_wait`. A client (an address, or a /64 of IPv6; the one that a trusted proxy or
        /// a balancer names) has as many requests under way to it as connections are left for
        /// others: one client has half of them, two have a third each. With fewer than 16
        /// connections there are no shares. What other nodes of a cluster request counts for no
        /// client.
        connections_per_next_hop_max: u32 = 256, from 1, to CONNECTIONS_MAX;
        /// Connections to all next hops at once, used or idle. Where one more is needed, an idle
        /// one is closed. A client has as many requests under way, whatever their next hops, as
        /// connections are left for others; idle ones are.
        next_hop_connections_max: u32 = 4096, from 1, to CONNECTIONS_MAX;
        /// Idle connections kept to one next hop; 0 keeps none.
        idle_per_next_hop_max: u32 = 64, from 0, to CONNECTIONS_MAX;
        /// Idle connections kept to all next hops; 0 keeps none.
        idle_next_hop_connections_max: u32 = 1024, from 0, to CONNECTIONS_MAX;
        /// Connections opened before they are needed: so many are kept ready to each next hop that
        /// a route has used within `next_hop_idle`. 0 opens none, since each takes a connection at
        /// the next hop and may never be used. It helps where set-up is slow and requests come in
        /// bursts.
        connections_ahead: u32 = 0, from 0, to 1024;
    }
}

/// Shorter waits are slips of the unit: 10 ms is less than a round trip to the next country.
const WAIT_MIN: Span = Span::from_millis(10);

/// A longer wait for bytes is no limit.
const WAIT_MAX: Span = Span::from_hours(1);

/// A longer time to keep idle connections is an error of the unit.
const IDLE_MAX: Span = Span::from_days(1);

/// Long enough to mean never.
const AGE_MAX: Span = Span::from_days(365);

/// What the parser has room for ([`FIELDS_CAPACITY`](weir_wire::FIELDS_CAPACITY)), without what is
/// added to a stored head: Date, Via, Content-Length.
const RESPONSE_FIELDS_MAX: u32 = 1000;

/// The most files a process may open where Linux is left as it is (`fs.nr_open`).
const CONNECTIONS_MAX: u32 = 1 << 20;

/// Refuses a part larger than its whole.
pub(super) fn check(limits: &Limits, mistakes: &mut Mistakes) {
    let mut part_of = |part_key: &str, part: u32, whole_key: &str, whole: u32| {
        if part > whole {
            mistakes.note(Err(Invalid::new(
                format!("limits.{part_key}"),
                format!("{part} is more than limits.{whole_key}, {whole}"),
                format!("raise {whole_key}, or use at most {whole}"),
            )));
        }
    };
    part_of(
        "connections_per_next_hop_max",
        limits.connections_per_next_hop_max,
        "next_hop_connections_max",
        limits.next_hop_connections_max,
    );
    part_of(
        "idle_per_next_hop_max",
        limits.idle_per_next_hop_max,
        "connections_per_next_hop_max",
        limits.connections_per_next_hop_max,
    );
    part_of(
        "connections_ahead",
        limits.connections_ahead,
        "idle_per_next_hop_max",
        limits.idle_per_next_hop_max,
    );
    part_of(
        "idle_next_hop_connections_max",
        limits.idle_next_hop_connections_max,
        "next_hop_connections_max",
        limits.next_hop_connections_max,
    );
}
