//! Traces from captures of packets: pcap and pcapng.
//!
//! ```text
//! file -> container -> decode -> connection -> stream (client) -> exchange -> window -> rows
//!         packets      segments              -> stream (server) ->    HTTP     in order
//! ```
//!
//! A capture is what a monitor saw, not what client or server saw. Our readings:
//!
//! * **Times** are the monitor's. `setup_us` is from the first SYN to the first SYN-ACK: near the
//!   client that is a round trip, near the server almost nothing. Bytes count when they could be
//!   read in order.
//! * **Loss.** A byte that was sent and not captured counts as received if the client acknowledged
//!   it: sequence numbers say that it was there. Content may be missing so; heads may not, nor what
//!   frames content: then the framing is lost until the next head. Bytes behind a hole that was not
//!   acknowledged, and bytes after the client's reset, were not received.
//! * **Ends.** Complete content is not aborted, however the connection ended. Otherwise the side
//!   that closed or reset first aborted it; a client that had closed its side before the response
//!   began has only said that it sends no more requests. Content that ends with the connection is
//!   complete if the server closed first, in order. A tunnel ends; it is not aborted. If the
//!   capture ends first, that is not known: `None`.
//! * **Connections** that began before the capture are joined at the first head. Their rows have no
//!   `connection_sequence`.
//! * **Responses** without a request become no row, as their target is not known; they are counted.
//! * **Both sides of a proxy** in one capture give the rows of both, each transaction twice: once
//!   from the client to the proxy, once from the proxy to the server, whose client is the proxy.
//!   With the address of the proxy ([`Settings::proxy`]), [`open`](super::open) joins them.
//!
//! What is deliberately absent: TLS, HTTP/2, fragments of IP, and TCP headers that PPP has
//! compressed; each is counted.
//!
//! Memory is bounded by the limits in [`limits`], whatever the file holds, and grows with the
//! connections that are open.

mod connection;
mod counts;
mod exchange;
mod head;
mod length;
pub mod limits;
mod order;
mod packets;
mod proxied;
mod repair;
mod stream;
mod transaction;
mod window;

pub use counts::Counts;
pub use packets::decode::NotTcp;
pub(crate) use proxied::ProxiedCapture;

use std::collections::HashMap;
use std::io::Read;
use std::net::SocketAddr;

use self::connection::{Beginning, Connection};
use self::exchange::{Endpoints, ImportContext, Side};
use self::limits::{CLOSING_S, CONNECTIONS_MAX, IDLE_S, LINGER_S, SWEEP_S, TOTAL_HELD_BYTES_MAX};
use self::packets::container::Container;
use self::packets::decode::{Segment, segment};
use self::window::Window;
use super::{Damage, Dropped, Import, Settings};
use crate::Row;

/// An import of one capture: an iterator over rows in order of arrival (see
/// [`limits::ROWS_HELD_MAX`]).
pub struct Capture<'a, R> {
    container: Container<R>,
    flows: Flows<'a>,
    dropped: Dropped,
    /// When the open connections were last looked at, microseconds since 1970.
    swept_us: i64,
    has_ended: bool,
}

/// The bits of a connection's number that count the connections of one capture; those above say
/// which input of the trace it was.
const CONNECTION_BITS: u32 = 40;

/// Set in the number of a connection that is not toward the proxy, where there is one.
const IS_NEXT_HOP: u64 = 1 << (CONNECTION_BITS - 1);

/// The two ends: client and server.
type Ends = (SocketAddr, SocketAddr);

impl<'a, R: Read> Capture<'a, R> {
    /// Reads a capture in either format. Of the settings the names, and which input of its trace it
    /// is, matter.
    pub fn new(reader: R, settings: &Settings<'a>) -> Self {
        Self {
            container: Container::new(reader),
            flows: Flows {
                open: HashMap::new(),
                latest_number: u64::from(settings.input) << CONNECTION_BITS,
                proxy: settings.proxy,
                held_bytes: 0,
                context: ImportContext {
                    hide: settings.hide,
                    window: Window::default(),
                    counts: Counts::default(),
                    is_impatient: false,
                },
            },
            dropped: Dropped::default(),
            swept_us: i64::MIN,
            has_ended: false,
        }
    }

    /// What was met so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            packets: self.container.packets(),
            late: self.flows.context.window.late(),
            ..self.flows.context.counts.clone()
        }
    }

    /// Reads one packet. `false`: there was none.
    fn step(&mut self) -> Result<bool, (Damage, bool)> {
        let fault = match self.container.next_frame() {
            None => return Ok(false),
            Some(Ok(frame)) => {
                match segment(&frame) {
                    Err(reason) => self.flows.context.counts.add_not_tcp(reason),
                    Ok(segment) => {
                        self.flows.take(&segment);
                        if segment.time_us.saturating_sub(self.swept_us) >= SWEEP_S * 1_000_000 {
                            self.swept_us = segment.time_us;
                            self.flows.sweep(segment.time_us);
                        }
                    }
                }
                return Ok(true);
            }
            Some(Err(fault)) => fault,
        };
        let packets = self.container.packets();
        // after a fault that ends the file there is no whole packet with this number
        let is_last = !fault.goes_on();
        let packet = packets + u64::from(is_last);
        Err((fault.damaged(packet), is_last))
    }

    /// The file is at its end: what is open will not be seen further.
    fn end(&mut self) {
        self.has_ended = true;
        let open = std::mem::take(&mut self.flows.open);
        let mut open: Vec<Connection> = open.into_values().collect();
        open.sort_unstable_by_key(Connection::number);
        for mut connection in open {
            connection.finish(&mut self.flows.context);
        }
        for (name, count) in self.flows.context.counts.dropped() {
            self.dropped.count_many(name, count);
        }
    }
}

impl<R: Read> Import for Capture<'_, R> {
    fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    fn met(&self) -> Vec<(&'static str, u64)> {
        self.counts()
            .iter()
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

impl<R: Read> Iterator for Capture<'_, R> {
    type Item = Result<Row, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.flows.context.window.next() {
                return Some(Ok(row));
            }
            if self.has_ended {
                return None;
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => self.end(),
                Err((damaged, is_last)) => {
                    if is_last {
                        self.end();
                    }
                    return Some(Err(damaged));
                }
            }
        }
    }
}

/// The open connections and what a packet does to them.
struct Flows<'a> {
    open: HashMap<Ends, Connection>,
    /// The number of the latest connection; before the first one, the number before its own.
    latest_number: u64,
    /// Where the proxy is, if both of its sides are in the capture.
    proxy: Option<SocketAddr>,
    held_bytes: usize,
    context: ImportContext<'a>,
}

impl Flows<'_> {
    fn take(&mut self, segment: &Segment<'_>) {
        let Some((ends, side)) = self.find(segment) else {
            return;
        };
        let Some(connection) = self.open.get_mut(&ends) else {
            return;
        };
        let others = self.held_bytes - connection.memory_bytes();
        connection.take(segment, side, &mut self.context);
        if others + connection.memory_bytes() > TOTAL_HELD_BYTES_MAX {
            connection.press_on(&mut self.context, true);
        }
        if others + connection.memory_bytes() > TOTAL_HELD_BYTES_MAX {
            self.context.counts.given_up += 1;
            connection.finish(&mut self.context);
        }
        self.held_bytes = others + connection.memory_bytes();
    }

    /// The connection of a segment and its sender; a new connection, if the segment begins one.
    fn find(&mut self, segment: &Segment<'_>) -> Option<(Ends, Side)> {
        let known = [
            ((segment.from, segment.to), Side::Client),
            ((segment.to, segment.from), Side::Server),
        ]
        .into_iter()
        .find(|(ends, _)| self.open.contains_key(ends));
        if let Some((ends, side)) = known {
            let is_another = self
                .open
                .get(&ends)
                .is_some_and(|connection| connection.is_another(segment, side));
            if !is_another {
                return Some((ends, side));
            }
            self.close(&ends);
        }
        let beginning = Beginning::of(segment)?;
        let side = beginning.side();
        let ends = match side {
            Side::Client => (segment.from, segment.to),
            Side::Server => (segment.to, segment.from),
        };
        if self.open.len() >= CONNECTIONS_MAX {
            self.make_room();
        }
        self.latest_number += 1;
        let is_next_hop = self.proxy.is_some_and(|proxy| proxy != ends.1);
        let side_bit = if is_next_hop { IS_NEXT_HOP } else { 0 };
        let endpoints = Endpoints {
            client: self.context.hide.client(ends.0.ip().to_string().as_bytes()),
            connection: self.latest_number | side_bit,
            server: ends.1.to_string(),
        };
        let connection = Connection::new(beginning, endpoints, segment, &mut self.context);
        self.open.insert(ends, connection);
        Some((ends, side))
    }

    /// A connection is over.
    fn close(&mut self, ends: &Ends) {
        if let Some(mut connection) = self.open.remove(ends) {
            self.held_bytes -= connection.memory_bytes();
            connection.finish(&mut self.context);
        }
    }

    /// Closes what was silent too long.
    fn sweep(&mut self, now_us: i64) {
        let is_silent = |connection: &Connection| {
            let limit_s = if connection.is_over() {
                LINGER_S
            } else if connection.is_closing() {
                CLOSING_S
            } else {
                IDLE_S
            };
            now_us.saturating_sub(connection.latest_us()) > limit_s * 1_000_000
        };
        let silent = self.numbered(is_silent);
        self.close_all(silent);
    }

    /// Gives up the sixteenth of the connections that was silent longest.
    fn make_room(&mut self) {
        let mut all = self.numbered(|_| true);
        all.sort_unstable_by_key(|(number, ends)| {
            let latest_us = self.open.get(ends).map(Connection::latest_us);
            (latest_us, *number)
        });
        all.truncate(CONNECTIONS_MAX / 16);
        self.close_all(all);
    }

    fn numbered(&self, is_wanted: impl Fn(&Connection) -> bool) -> Vec<(u64, Ends)> {
        let mut found: Vec<(u64, Ends)> = self
            .open
            .iter()
            .filter(|(_, connection)| is_wanted(connection))
            .map(|(ends, connection)| (connection.number(), *ends))
            .collect();
        found.sort_unstable();
        found
    }

    fn close_all(&mut self, which: Vec<(u64, Ends)>) {
        for (_, ends) in which {
            let is_given_up = self
                .open
                .get(&ends)
                .is_some_and(|connection| !connection.is_over());
            self.context.counts.given_up += u64::from(is_given_up);
            self.close(&ends);
        }
    }
}
