//! A shorter trace with the same fate.

use crate::coverage::Coverage;
use crate::difference::Difference;
use crate::replay::replay;
use crate::trace::Trace;
use std::time::Duration;

/// Replays that are spent on it.
const TRIES_MAX: usize = 120;

/// How long a replay of a shorter trace waits for what may not come.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Leaves rows out as long as there is a difference: halves first, then less.
pub(crate) fn shortened(trace: &Trace, difference: Difference) -> (Trace, Difference) {
    let (mut trace, mut difference) = (trace.clone(), difference);
    let mut tries = 0;
    let mut chunk = trace.rows.len() / 2;
    while chunk > 0 && tries < TRIES_MAX {
        let mut from = 0;
        while from < trace.rows.len() && tries < TRIES_MAX {
            tries += 1;
            let mut shorter = trace.clone();
            shorter
                .rows
                .drain(from..(from + chunk).min(trace.rows.len()));
            match replay(&shorter, PATIENCE, &mut Coverage::default()) {
                Err(found) => {
                    trace = shorter;
                    difference = found;
                }
                Ok(()) => from += chunk,
            }
        }
        chunk /= 2;
    }
    (trace, difference)
}
