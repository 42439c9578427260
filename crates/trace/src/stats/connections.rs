//! Persistence: how connections are used on both sides.

use super::super::Row;
use super::population::Numbers;
use super::said::Share;
use serde::Serialize;
use weir_measure::share;

/// Both sides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Connections {
    /// Clients.
    pub client: Persistence,
    /// Next hops.
    pub next_hop: Persistence,
}

/// One side; `None` is what the trace does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Persistence {
    /// Requests whose connection could carry another one afterwards: PROXIM's persistent requests.
    pub persistent: Option<Share>,
    /// Requests that came on a connection which had carried one before.
    pub reused: Option<Share>,
    /// Different connections.
    pub connections: Option<u64>,
    /// Requests with a connection, by connection.
    pub requests_per_connection: Option<f64>,
}

#[derive(Debug, Default)]
struct Side {
    persistent: Share,
    reused: Share,
    connections: Numbers,
    requests: u64,
}

impl Side {
    /// `is_later`: whether it is not the first of its connection, if the source says so itself.
    fn add(
        &mut self,
        connection: Option<u64>,
        is_later: Option<bool>,
        is_persistent: Option<bool>,
    ) {
        self.persistent.add(is_persistent);
        let is_known = connection.map(|connection| {
            self.requests += 1;
            !self.connections.insert(connection)
        });
        self.reused.add(is_later.or(is_known));
    }

    fn finish(self) -> Persistence {
        let connections = self.connections.len() as u64;
        let is_said = connections > 0;
        Persistence {
            persistent: self.persistent.finish(),
            reused: self.reused.finish(),
            connections: is_said.then_some(connections),
            requests_per_connection: is_said.then(|| share(self.requests, connections)),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    client: Side,
    next_hop: Side,
}

impl Counter {
    pub(super) fn add(&mut self, row: &Row) {
        let is_later = row.connection_sequence.map(|sequence| sequence > 1);
        self.client
            .add(row.connection, is_later, row.is_persistent_client);
        self.next_hop
            .add(row.next_hop_connection, None, row.is_persistent_server);
    }

    pub(super) fn finish(self) -> Connections {
        Connections {
            client: self.client.finish(),
            next_hop: self.next_hop.finish(),
        }
    }
}
