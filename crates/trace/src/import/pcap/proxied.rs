//! A capture of both sides of a proxy: the requests of its clients, each with the proxy's own
//! request for it.
//!
//! Nothing in the packets says which of the proxy's requests are for which of its clients'. We
//! match one with the first of those for the same target and method that were under way when it was
//! sent and have none yet. A request of the proxy's own (it validates what it has served already)
//! belongs to no client: it becomes no row and is counted.

use std::collections::VecDeque;
use std::io::Read;

use super::limits::ROWS_HELD_MAX;
use super::{Capture, IS_NEXT_HOP};
use crate::Row;
use crate::import::{Damage, Dropped, Import, reason};

/// The rows of the clients' side, in order of arrival.
pub(crate) struct ProxiedCapture<'a, R> {
    capture: Capture<'a, R>,
    dropped: Dropped,
    /// Rows that may still get their next hop's columns, in order of arrival.
    held: VecDeque<Held>,
    /// The latest arrival of any row so far, microseconds since 1970.
    latest_us: i64,
    forwarded: u64,
    has_ended: bool,
}

struct Held {
    row: Row,
    has_next_hop: bool,
}

impl<'a, R: Read> ProxiedCapture<'a, R> {
    pub(crate) fn new(capture: Capture<'a, R>) -> Self {
        Self {
            capture,
            dropped: Dropped::default(),
            held: VecDeque::new(),
            latest_us: i64::MIN,
            forwarded: 0,
            has_ended: false,
        }
    }

    /// The first row, if nothing that comes can be of it any more.
    fn leaving(&mut self) -> Option<Row> {
        let first = self.held.front()?;
        let may_leave = self.has_ended
            || self.held.len() > ROWS_HELD_MAX
            || first.has_next_hop
            || end_us(&first.row) < self.latest_us;
        if !may_leave {
            return None;
        }
        let Held {
            mut row,
            has_next_hop,
        } = self.held.pop_front()?;
        if !has_next_hop && row.status.is_some() {
            row.next_hop_bytes = Some(0);
        }
        Some(row)
    }

    /// Gives a request of the proxy to the client's request that it is for.
    fn join(&mut self, asked: &Row) {
        let Some(at_us) = requested_us(asked) else {
            self.dropped.count(reason::NEXT_HOP);
            return;
        };
        let is_for = |held: &&mut Held| {
            let row = &held.row;
            !held.has_next_hop
                && (row.target, row.method) == (asked.target, asked.method)
                && requested_us(row).is_some_and(|request_us| request_us <= at_us)
                && at_us <= end_us(row)
        };
        let Some(held) = self.held.iter_mut().find(is_for) else {
            self.dropped.count(reason::NEXT_HOP);
            return;
        };
        self.forwarded += 1;
        held.has_next_hop = true;
        let row = &mut held.row;
        row.next_hop_setup_us = asked.setup_us;
        let times = asked.request_us.zip(asked.response_us);
        row.next_hop_response_us =
            times.map(|(request, response)| response.saturating_sub(request));
        row.next_hop_connection = asked.connection;
        row.next_hop_bytes = asked.received_bytes;
        row.is_persistent_server = asked.is_persistent_client;
    }
}

impl<R: Read> Import for ProxiedCapture<'_, R> {
    fn dropped(&self) -> &Dropped {
        &self.dropped
    }

    fn met(&self) -> Vec<(&'static str, u64)> {
        let mut met = self.capture.met();
        met.push(("requests-forwarded", self.forwarded));
        met
    }
}

impl<R: Read> Iterator for ProxiedCapture<'_, R> {
    type Item = Result<Row, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.leaving() {
                return Some(Ok(row));
            }
            if self.has_ended {
                return None;
            }
            match self.capture.next() {
                Some(Ok(row)) => {
                    self.latest_us = self.latest_us.max(row.arrival_us);
                    if row
                        .connection
                        .is_some_and(|number| number & IS_NEXT_HOP != 0)
                    {
                        self.join(&row);
                    } else {
                        let has_next_hop = false;
                        self.held.push_back(Held { row, has_next_hop });
                    }
                }
                Some(Err(damaged)) => return Some(Err(damaged)),
                None => {
                    self.has_ended = true;
                    self.dropped.add(self.capture.dropped());
                }
            }
        }
    }
}

fn requested_us(row: &Row) -> Option<i64> {
    row.arrival_us.checked_add_unsigned(row.request_us?)
}

/// When its client had the last byte; where that is not known, it may be under way for as long as
/// the capture lasts.
fn end_us(row: &Row) -> i64 {
    let end_us = row
        .last_byte_us
        .map(|us| row.arrival_us.saturating_add_unsigned(us));
    end_us.unwrap_or(i64::MAX)
}
