//! Small traces reckoned by hand, and large ones by a naive reference.

mod by_hand;
mod reference;

use super::{Stats, Summary};
use crate::Row;

fn summary(rows: &[Row]) -> Summary {
    let mut stats = Stats::default();
    for row in rows {
        stats.add(row);
    }
    stats.finish()
}
