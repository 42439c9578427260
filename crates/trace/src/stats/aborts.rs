//! Aborts as PROXIM inferred them: the length that was declared against what was received.
//!
//! Only responses with content count: not those to HEAD, nor 1xx, 204 and 304, whose Content-Length
//! is that of content that was not sent (RFC 9110 §8.6).

use super::super::Row;
use crate::row::words::{AbortedBy, TraceMethod};
use serde::Serialize;
use weir_measure::share;

/// How lengths compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lengths {
    /// All that was declared was received.
    Complete,
    /// Less was received: the transfer was aborted.
    Aborted,
    /// More was received.
    Overlong,
}

impl Lengths {
    const ALL: [Self; 3] = [Self::Complete, Self::Aborted, Self::Overlong];

    /// As the paper writes it: Content-Length, received data length.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "CL = RDL",
            Self::Aborted => "CL > RDL",
            Self::Overlong => "CL < RDL",
        }
    }
}

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Abort {
    /// How lengths compare.
    pub lengths: Lengths,
    /// Transfers.
    pub transfers: u64,
    /// What they declared, bytes.
    pub declared_bytes: u64,
    /// What was received of them, bytes.
    pub received_bytes: u64,
}

impl Abort {
    /// Mean length that was declared, bytes.
    #[must_use]
    pub fn declared_mean(&self) -> f64 {
        share(self.declared_bytes, self.transfers)
    }

    /// Mean length that was received, bytes.
    #[must_use]
    pub fn received_mean(&self) -> f64 {
        share(self.received_bytes, self.transfers)
    }
}

/// Transfers by the side that ended them, where the source says so itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EndCounts {
    /// Transfers that came to their end.
    #[serde(rename = "nobody")]
    pub complete: u64,
    /// Those that the client left.
    pub client: u64,
    /// Those that the next hop cut.
    pub server: u64,
}

/// The tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Aborts {
    /// Complete, aborted, overlong; `None` if no transfer has both lengths.
    pub by_length: Option<[Abort; 3]>,
    /// `None` if the trace does not say.
    pub by_whom: Option<EndCounts>,
}

#[derive(Debug)]
pub(super) struct Counter {
    by_length: [Abort; 3],
    by_whom: EndCounts,
}

impl Default for Counter {
    fn default() -> Self {
        let abort = |lengths| Abort {
            lengths,
            transfers: 0,
            declared_bytes: 0,
            received_bytes: 0,
        };
        Self {
            by_length: Lengths::ALL.map(abort),
            by_whom: EndCounts::default(),
        }
    }
}

impl Counter {
    pub(super) fn add(&mut self, row: &Row) {
        match row.aborted_by {
            None => {}
            Some(AbortedBy::Neither) => self.by_whom.complete += 1,
            Some(AbortedBy::Client) => self.by_whom.client += 1,
            Some(AbortedBy::Server) => self.by_whom.server += 1,
        }
        let (Some(declared), Some(received)) = (row.declared_bytes, row.received_bytes) else {
            return;
        };
        if !has_content(row) {
            return;
        }
        let abort = match declared.cmp(&received) {
            std::cmp::Ordering::Equal => &mut self.by_length[0],
            std::cmp::Ordering::Greater => &mut self.by_length[1],
            std::cmp::Ordering::Less => &mut self.by_length[2],
        };
        abort.transfers += 1;
        abort.declared_bytes = abort.declared_bytes.saturating_add(declared);
        abort.received_bytes = abort.received_bytes.saturating_add(received);
    }

    pub(super) fn finish(&self) -> Aborts {
        let transfers: u64 = self.by_length.iter().map(|abort| abort.transfers).sum();
        Aborts {
            by_length: (transfers > 0).then_some(self.by_length),
            by_whom: (self.by_whom != EndCounts::default()).then_some(self.by_whom),
        }
    }
}

fn has_content(row: &Row) -> bool {
    let is_without = |status: u16| status < 200 || matches!(status, 204 | 304);
    !matches!(row.method, Some(TraceMethod::Head | TraceMethod::Connect))
        && !row.status.is_some_and(is_without)
}
