//! Traces that others wrote: logs of servers and proxies, recordings of browsers, traces of
//! researchers.
//!
//! An importer reads a stream once, from its beginning, and yields a [`Row`] for each transaction,
//! in the order of the source. What it holds in memory does not grow with the input. Each source
//! says other things; what one does not say is `None`, and `docs/trace-sources.md` has what its
//! columns mean. Nothing is skipped in silence: an item that cannot be read is a [`Damage`], which
//! says where, what, and how to go on; what can be read but is no transaction is counted by reason
//! in [`Dropped`].
//!
//! Names are hidden here, before anything else gets to see a row: an importer hands them to
//! [`Hide`] and forgets them.

mod compressed;
mod damage;
mod facts;
mod format;
mod har;
mod heads;
mod hide;
mod items;
mod logs;
mod oracle_general;
pub mod pcap;
mod request_line;
mod settings;
mod summary;

pub use compressed::Compression;
pub use damage::{Damage, Dropped, Place, reason};
pub use format::{Format, OpenSource, Unreadable, open};
pub use heads::{Heads, NoRequest};
pub use hide::Hide;
pub use settings::{BadSite, MissingSize, Settings, Site};
pub use summary::{Span, Summary};

use crate::Row;

/// A source that is being read.
///
/// After a [`Damage`] the next item is the one behind it; after one that ends the source, and at
/// the end, `next` is `None`.
pub trait Import: Iterator<Item = Result<Row, Damage>> {
    /// What was read and is no row, so far.
    fn dropped(&self) -> &Dropped;

    /// What was met so far, by name, what became rows included: for sources that have more in them
    /// than transactions.
    fn met(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests;
