//! The trace as an iterator: connections begin, and their requests leave in order of arrival.

use super::connections::{Connections, PlannedRequest};
use super::page_law::Pages;
use super::profile::SiteProfile;
use super::visits::Visits;
use crate::{Row, TraceMethod, TraceVersion};
use std::collections::BTreeMap;
use weir_workload::{Chance, mix};

/// Makes the rows of a trace, in order of arrival: the same for the same profile, number of
/// requests and seed, on every machine.
///
/// A trace that is shorter than the profile's length is the beginning of the one of that length: it
/// has fewer targets. Its memory grows with pages, targets and clients, and with the connections
/// that are open at a time; not with the requests.
#[derive(Clone, Debug)]
pub(crate) struct SiteMaker {
    pages: Pages,
    visits: Visits,
    connections: Connections,
    /// Requests that were planned and have not left, by arrival and the order of planning.
    pending: BTreeMap<(u64, u64), Pending>,
    begins_us: i64,
    salt: u64,
    /// Connections that were planned.
    begun: u64,
    /// Requests that were planned, and that will be at most.
    planned: u64,
    planned_max: u64,
    left: u64,
}

/// A request that waits for its turn.
#[derive(Clone, Copy, Debug)]
struct Pending {
    request: PlannedRequest,
    client: u64,
    connection: u64,
    sequence: u32,
}

impl SiteMaker {
    /// A trace of so many requests.
    pub(crate) fn new(profile: &SiteProfile, left: u64, seed: u64) -> Self {
        let planned_max = left.max(profile.requests);
        let pages = Pages::new(profile, &mut Chance::new(seed, PAGES));
        let visits = Visits::new(profile, &pages, planned_max, Chance::new(seed, VISITS));
        Self {
            pages,
            visits,
            connections: Connections::new(profile, Chance::new(seed, CONNECTIONS)),
            pending: BTreeMap::new(),
            begins_us: profile.time.begins_s.saturating_mul(1_000_000),
            salt: mix(seed),
            begun: 0,
            planned: 0,
            planned_max,
            left,
        }
    }

    /// The requests of the next connection wait for their turn.
    fn advance(&mut self) {
        let (client, requests) = self.connections.plan(&self.pages, &mut self.visits);
        self.begun += 1;
        let client = mix(self.salt ^ mix(CLIENT ^ client as u64));
        for (sequence, request) in (1..).zip(requests) {
            if self.planned == self.planned_max {
                return;
            }
            self.planned += 1;
            let pending = Pending {
                request,
                client,
                connection: self.begun,
                sequence,
            };
            self.pending.insert((request.at_us, self.planned), pending);
        }
    }

    /// The request that arrives next. No connection that is planned later begins before it.
    fn leave(&mut self) -> Option<Pending> {
        loop {
            let is_whole = self.planned == self.planned_max;
            let begins_us = self.connections.begins_us();
            let first = self.pending.first_entry();
            match first.filter(|first| is_whole || first.key().0 <= begins_us) {
                Some(first) => return Some(first.remove()),
                None if is_whole => return None,
                None => self.advance(),
            }
        }
    }

    fn row(&self, pending: &Pending) -> Row {
        let Pending {
            request,
            client,
            connection,
            sequence,
        } = *pending;
        let arrival_us = i64::try_from(request.at_us).unwrap_or(i64::MAX);
        let bytes = self.pages.bytes(request.target);
        let media_type = if request.is_page {
            "text/html"
        } else {
            "image/gif"
        };
        Row {
            arrival_us: self.begins_us.saturating_add(arrival_us),
            client: Some(client),
            connection: Some(connection),
            connection_sequence: Some(sequence),
            target: mix(self.salt ^ mix(TARGET ^ u64::from(request.target))),
            method: Some(TraceMethod::Get),
            version: Some(TraceVersion::Http11),
            status: Some(200),
            content_type: Some(media_type.to_owned()),
            declared_bytes: Some(bytes),
            received_bytes: Some(bytes),
            is_persistent_client: Some(true),
            ..Row::default()
        }
    }

    /// Requests that have not left.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.pending.len()
    }
}

impl Iterator for SiteMaker {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.left = self.left.checked_sub(1)?;
        let pending = self.leave()?;
        Some(self.row(&pending))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}

/// Streams of chance that do not depend on each other.
const PAGES: u64 = 1;
const VISITS: u64 = 2;
const CONNECTIONS: u64 = 3;

/// Keep hashes of clients and targets apart.
const CLIENT: u64 = 0x636c_6965_6e74;
const TARGET: u64 = 0x7461_7267_6574;
