//! What is in a trace: PROXIM's tables (Feldmann, Caceres, Douglis, Glass, Rabinovich, INFOCOM
//! 1999), and the usual first figures.
//!
//! One pass. What is remembered grows with the different targets, clients, servers and connections,
//! not with the rows. What no row says is `None` in a [`Summary`], never 0, and "not in this trace"
//! in its tables. Shares are of the rows that say: where every row does, as in a trace of packets,
//! they are shares of all requests, which is what the paper has.

mod aborts;
mod causes;
mod connections;
mod infinite;
mod population;
mod said;
mod span;
pub(super) mod table;
#[cfg(test)]
mod tests;
mod times;
mod words;

pub use aborts::{Abort, Aborts, EndCounts, Lengths};
pub(crate) use causes::CauseSet;
pub use causes::{Cause, CauseShare, Causes, Reason, Storable};
pub use connections::{Connections, Persistence};
pub use infinite::{Infinite, Ratios};
pub use population::{Popularity, Population, ZIPF_REQUESTS_MIN};
pub(super) use said::Quantity;
pub use said::{Share, Spread};
pub use span::{Span, Volume};
pub use table::text;
pub use times::Times;
pub use words::{WORDS_MAX, Word, Words};

use super::{Column, Columns, Row};
use serde::Serialize;

/// The columns that are looked at; [`Row`]s without the others will do.
pub const COLUMNS: Columns = Columns::without(&[
    Column::target_text,
    Column::variant,
    Column::stale_while_revalidate_s,
    Column::stale_if_error_s,
    Column::date_s,
    Column::age_s,
    Column::last_modified_s,
    Column::complete_bytes,
    Column::request_head_bytes,
    Column::response_head_bytes,
    Column::request_content_bytes,
    Column::next_access,
]);

/// Takes rows in the order of the trace.
#[derive(Debug, Default)]
pub struct Stats {
    rows: u64,
    span: span::Counter,
    words: words::Counter,
    causes: causes::Counter,
    infinite: Infinite,
    aborts: aborts::Counter,
    connections: connections::Counter,
    population: population::Counter,
    times: times::Counter,
}

/// What is in a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Rows, one a request.
    pub requests: u64,
    /// When, and how fast.
    pub span: Option<Span>,
    /// Bytes in all, and the sizes of responses.
    pub volume: Volume,
    /// Methods, status codes and the like.
    pub words: Words,
    /// Why the caches of 1998 would not keep a response.
    pub causes: Causes,
    /// What RFC 9111 says of the same requests.
    pub storable: Option<Storable>,
    /// What a cache that never evicts would hit.
    pub infinite: Infinite,
    /// Transfers by declared and received length.
    pub aborts: Aborts,
    /// Connections on both sides.
    pub connections: Connections,
    /// Clients, servers, targets.
    pub population: Population,
    /// Round trips and times.
    pub times: Times,
}

impl Stats {
    /// Adds the next row.
    pub fn add(&mut self, row: &Row) {
        self.rows += 1;
        self.span.add(row);
        self.words.add(row);
        let causes = self.causes.add(row);
        self.infinite.add(row, self.population.add(row), causes);
        self.aborts.add(row);
        self.connections.add(row);
        self.times.add(row);
    }

    /// What all of them come to.
    #[must_use]
    pub fn finish(self) -> Summary {
        let (causes, storable) = self.causes.finish();
        let (span, volume) = self.span.finish(self.rows);
        Summary {
            requests: self.rows,
            span,
            volume,
            words: self.words.finish(),
            causes,
            storable,
            infinite: self.infinite,
            aborts: self.aborts.finish(),
            connections: self.connections.finish(),
            population: self.population.finish(),
            times: self.times.finish(),
        }
    }
}
