//! With how many others a connection is shared, were all to persist: by the times of the trace, and
//! the rule of the paper's proxy (an idle connection of the same host, the newest, or else another
//! one).

use serde::Serialize;
use std::collections::HashMap;

/// Connections of one side of the proxy.
#[derive(Debug)]
pub(super) struct Reuse {
    idle_us: i64,
    open: HashMap<u64, Vec<Connection>>,
    spans: Spans,
}

/// Sums over connections that were closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Spans {
    connections: u64,
    others: u64,
}

#[derive(Debug)]
struct Connection {
    free_us: i64,
    /// The other hosts that it was used with.
    others: Vec<u64>,
}

impl Spans {
    /// Others on one connection, on average.
    pub(super) fn mean(self) -> Option<f64> {
        (self.connections > 0).then(|| self.others as f64 / self.connections as f64)
    }

    fn add(&mut self, connection: &Connection) {
        self.connections += 1;
        self.others += connection.others.len() as u64;
    }
}

impl Reuse {
    pub(super) fn new(idle_us: i64) -> Self {
        Self {
            idle_us,
            open: HashMap::new(),
            spans: Spans::default(),
        }
    }

    /// A request on a connection of `host`, on behalf of or for `other`.
    pub(super) fn take(&mut self, host: u64, other: u64, begins_us: i64, ends_us: i64) {
        let open = self.open.entry(host).or_default();
        open.retain(|connection| {
            let lives = begins_us - connection.free_us <= self.idle_us;
            if !lives {
                self.spans.add(connection);
            }
            lives
        });
        let idle = open.iter_mut().filter(|one| one.free_us <= begins_us);
        match idle.max_by_key(|one| one.free_us) {
            Some(connection) => {
                connection.free_us = ends_us;
                if !connection.others.contains(&other) {
                    connection.others.push(other);
                }
            }
            None => open.push(Connection {
                free_us: ends_us,
                others: vec![other],
            }),
        }
    }

    pub(super) fn finish(mut self) -> Spans {
        for connection in self.open.values().flatten() {
            self.spans.add(connection);
        }
        self.spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_peers_are_counted_per_connection_until_it_closes() {
        let mut reuse = Reuse::new(100);
        reuse.take(1, 7, 0, 10);
        reuse.take(1, 7, 10, 20);
        reuse.take(1, 8, 120, 130);
        assert_eq!(reuse.open[&1].len(), 1);
        // idle for longer than 100
        reuse.take(1, 9, 231, 240);
        // busy
        reuse.take(1, 9, 235, 236);
        let spans = reuse.finish();
        assert_eq!(
            spans,
            Spans {
                connections: 3,
                others: 4
            }
        );
        assert_eq!(Reuse::new(1).finish().mean(), None);
    }
}
