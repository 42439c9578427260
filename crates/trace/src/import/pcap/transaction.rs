//! One transaction while it lasts.

use weir_semantics::{
    ConnectionOptions, FieldLine, Method, TargetedFields, line_named, lines_named, list_elements,
};
use weir_wire::{
    HeadLimits, LineBuffer, Progress, RequestHead, ResponseHead, Version, parse_request,
};

use super::window::Begun;
use crate::import::Hide;
use crate::import::facts::response_facts;
use crate::{AbortedBy, Row, TraceVersion};

/// A request and its response so far.
#[derive(Debug)]
pub(super) struct Transaction {
    pub(super) begun: Begun,
    pub(super) row: Box<Row>,
    pub(super) method: Method,
    /// The request's head, in a form that can be read again: a response's Vary may name any of its
    /// fields.
    pub(super) head: Vec<u8>,
    /// The sequence number after the request's head: a response acknowledges it.
    pub(super) head_end: u32,
    /// What the request acknowledged of the responses: its own begins there or later.
    pub(super) acknowledgement: Option<u32>,
    /// It requests another protocol on its connection.
    pub(super) upgrades: bool,
    /// It has no version, and the response has no head.
    pub(super) is_http09: bool,
    /// Whether the request allows for another one.
    pub(super) is_persistent: bool,
    /// The final response has begun.
    pub(super) is_answered: bool,
    /// Content so far, bytes.
    pub(super) received_bytes: u64,
    /// The same when the client said that it was done.
    pub(super) received_at_close: Option<u64>,
}

/// When each side ended a connection, microseconds since 1970.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CloseTimes {
    pub(super) client_fin_us: Option<i64>,
    pub(super) client_rst_us: Option<i64>,
    pub(super) server_fin_us: Option<i64>,
    pub(super) server_rst_us: Option<i64>,
    /// Whether the server closed first, if acknowledgements say so: packets may have been captured
    /// in another order.
    pub(super) server_was_first: Option<bool>,
}

impl CloseTimes {
    /// When the client ended it, one way or the other.
    fn client_us(&self) -> Option<i64> {
        earlier(self.client_fin_us, self.client_rst_us)
    }

    /// When the server did.
    fn server_us(&self) -> Option<i64> {
        earlier(self.server_fin_us, self.server_rst_us)
    }

    /// Whether the server was first.
    fn is_by_server(&self) -> bool {
        match (self.server_us(), self.client_us()) {
            (Some(server_us), Some(client_us)) => {
                let both_said_so =
                    self.server_fin_us == Some(server_us) && self.client_fin_us == Some(client_us);
                self.server_was_first
                    .filter(|_| both_said_so)
                    .unwrap_or(server_us < client_us)
            }
            (server_us, _) => server_us.is_some(),
        }
    }

    /// Whether either of them did.
    pub(super) fn is_closed(&self) -> bool {
        self.first_us().is_some()
    }

    /// When the first of them did.
    fn first_us(&self) -> Option<i64> {
        earlier(self.client_us(), self.server_us())
    }
}

fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Transaction {
    /// Microseconds from its arrival. What was captured before the request that it answers has come
    /// with it.
    pub(super) fn since(&self, time_us: i64) -> Option<u64> {
        u64::try_from(time_us.saturating_sub(self.row.arrival_us).max(0)).ok()
    }

    /// Content came, at this time.
    pub(super) fn receive(&mut self, bytes: u64, time_us: i64) {
        let since = self.since(time_us);
        self.row.first_byte_us = self.row.first_byte_us.or(since);
        self.row.last_byte_us = since;
        self.received_bytes += bytes;
    }

    /// The final response's head has come; `bytes` long, from `begun_us` to `whole_us`.
    pub(super) fn answer(
        &mut self,
        head: &ResponseHead<'_, '_>,
        bytes: usize,
        begun_us: i64,
        whole_us: i64,
        hide: &dyn Hide,
    ) {
        let mut lines = LineBuffer::new();
        let request = parse_request(&self.head, &HeadLimits::default(), &mut lines);
        let request = match request {
            Ok(Progress::Complete { head, .. }) => head.fields,
            _ => &[],
        };
        let now_s = begun_us.div_euclid(1_000_000);
        response_facts(
            &mut self.row,
            head.status,
            head.fields,
            // the recipient may be a browser: Cache-Control alone is read
            &TargetedFields::none(),
            request,
            now_s,
            hide,
        );
        self.row.response_head_bytes = u32::try_from(bytes).ok();
        self.row.response_us = self.since(begun_us);
        self.row.last_byte_us = self.since(whole_us);
        self.is_answered = true;
        self.is_persistent &= is_persistent(head.version, head.fields);
    }

    /// It came to its end, after which the connection could go on if `delimited`.
    pub(super) fn complete(mut self, delimited: bool) -> (Begun, Box<Row>) {
        self.row.received_bytes = Some(self.received_bytes);
        self.row.aborted_by = Some(AbortedBy::Neither);
        self.row.is_persistent_client = Some(delimited && self.is_persistent);
        (self.begun, self.row)
    }

    /// The thread of its response was lost: how much there was of it, and how it ended, is not
    /// known.
    pub(super) fn lose(mut self) -> (Begun, Box<Row>) {
        self.row.received_bytes = None;
        (self.begun, self.row)
    }

    /// Its connection ended first. `to_close`: its content was to end with the connection.
    pub(super) fn break_off(mut self, closed: &CloseTimes, to_close: bool) -> (Begun, Box<Row>) {
        let by = self.ended_by(closed, to_close);
        // a side that closed both directions, which a later reset shows, has received nothing since
        if let (Some(AbortedBy::Client), Some(_), Some(bytes)) =
            (by, closed.client_rst_us, self.received_at_close)
        {
            self.received_bytes = bytes;
        }
        self.row.received_bytes = Some(self.received_bytes);
        self.row.aborted_by = by;
        self.row.is_persistent_client = by.map(|_| false);
        if self.row.last_byte_us.is_none() {
            self.row.last_byte_us = closed.first_us().and_then(|time_us| self.since(time_us));
        }
        (self.begun, self.row)
    }

    /// The side that ended it; `None` if that was not seen.
    fn ended_by(&self, closed: &CloseTimes, to_close: bool) -> Option<AbortedBy> {
        let server_us = closed.server_us();
        let Some(client_us) = closed.client_us() else {
            let reset_first = closed.server_fin_us.is_none();
            return server_us.map(|_| match to_close && !reset_first {
                true => AbortedBy::Neither,
                false => AbortedBy::Server,
            });
        };
        if closed.is_by_server() {
            return Some(match to_close && closed.server_fin_us == server_us {
                true => AbortedBy::Neither,
                false => AbortedBy::Server,
            });
        }
        // the client was first. If it said before the response began that it had no more requests,
        // and took all that came, that was no abort
        let half_closed = closed.client_rst_us.is_none()
            && self
                .row
                .response_us
                .is_some_and(|response_us| self.since(client_us) < Some(response_us));
        match (half_closed, closed.server_fin_us) {
            (true, Some(_)) if to_close => Some(AbortedBy::Neither),
            (true, _) if server_us.is_some() => Some(AbortedBy::Server),
            (true, _) => None,
            (false, _) => Some(AbortedBy::Client),
        }
    }
}

/// Whether the sender of this head would go on with the connection (RFC 9112 §9.3;
/// `Proxy-Connection` as clients of the nineties had it).
pub(super) fn is_persistent(version: Version, fields: &[FieldLine<'_>]) -> bool {
    let options = ConnectionOptions::gather(fields);
    let proxy_says = |option: &[u8]| {
        line_named(fields, "connection").is_none()
            && lines_named(fields, "proxy-connection")
                .flat_map(list_elements)
                .any(|element| element.eq_ignore_ascii_case(option))
    };
    match version {
        Version::Http10 => options.keep_alive || proxy_says(b"keep-alive"),
        Version::Http11 => !(options.close || proxy_says(b"close")),
    }
}

/// Whether a request is for another protocol on its connection (RFC 9110 §7.8).
pub(super) fn upgrades(head: &RequestHead<'_, '_>) -> bool {
    ConnectionOptions::gather(head.fields).upgrade && line_named(head.fields, "upgrade").is_some()
}

/// A version in the words of a trace.
pub(super) const fn version(version: Version) -> TraceVersion {
    match version {
        Version::Http10 => TraceVersion::Http10,
        Version::Http11 => TraceVersion::Http11,
    }
}
