//! Sources that are read item by item: lines, entries, records.

use super::{Damage, Dropped, Import};
use crate::Row;

/// A source of items.
pub(crate) trait ItemSource {
    /// The row of the next item, or why it makes none; `None` at the end.
    fn next_item(&mut self) -> Option<Result<Row, NoRow>>;
}

/// Why an item makes no row.
pub(crate) enum NoRow {
    /// It is well-formed, and no transaction of the accepted kind ([`reason`](super::reason)).
    Dropped(&'static str),
    /// It cannot be read.
    Damage(Damage),
}

impl From<Damage> for NoRow {
    fn from(damaged: Damage) -> Self {
        Self::Damage(damaged)
    }
}

/// The rows of a source, up to its end or to damage that ends it.
pub(crate) struct Items<S> {
    source: S,
    dropped: Dropped,
    is_over: bool,
}

impl<S: ItemSource> Items<S> {
    pub(crate) fn new(source: S) -> Self {
        Self {
            source,
            dropped: Dropped::default(),
            is_over: false,
        }
    }
}

impl<S: ItemSource> Import for Items<S> {
    fn dropped(&self) -> &Dropped {
        &self.dropped
    }
}

impl<S: ItemSource> Iterator for Items<S> {
    type Item = Result<Row, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            match self.source.next_item() {
                Some(Ok(row)) => return Some(Ok(row)),
                Some(Err(NoRow::Dropped(reason))) => self.dropped.count(reason),
                Some(Err(NoRow::Damage(damaged))) => {
                    self.is_over = !damaged.goes_on;
                    return Some(Err(damaged));
                }
                None => self.is_over = true,
            }
        }
        None
    }
}
