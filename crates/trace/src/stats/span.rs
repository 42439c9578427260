//! When the requests came, how fast, and how many bytes.

use super::super::Row;
use super::said::{Quantity, Spread};
use serde::Serialize;
use std::collections::HashMap;

/// When.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// The first arrival, microseconds since 1970.
    pub first_us: i64,
    /// The last.
    pub last_us: i64,
    /// Requests a second, from the first to the last; `None` if all came at once.
    pub requests_per_s: Option<f64>,
    /// Requests of the busiest minute.
    pub busiest_minute: u64,
    /// Rows that arrived before the row in front of them.
    pub out_of_order: u64,
}

/// How much.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Volume {
    /// Content that clients received, bytes.
    pub received_bytes: Option<u64>,
    /// Content that responses declared, bytes.
    pub declared_bytes: Option<u64>,
    /// Content that came from next hops, bytes.
    pub next_hop_bytes: Option<u64>,
    /// Sizes of what was received, else declared, by request; bytes.
    pub size: Option<Spread>,
}

const MINUTE_US: i64 = 60_000_000;

#[derive(Debug, Default)]
pub(super) struct Counter {
    first_us: Option<i64>,
    last_us: i64,
    before_us: i64,
    out_of_order: u64,
    /// By minute since 1970: 1440 a day.
    minutes: HashMap<i64, u64>,
    received: Quantity,
    declared: Quantity,
    next_hop: Quantity,
    size: Quantity,
}

impl Counter {
    pub(super) fn add(&mut self, row: &Row) {
        let at = row.arrival_us;
        if let Some(first) = &mut self.first_us {
            self.out_of_order += u64::from(at < self.before_us);
            *first = at.min(*first);
            self.last_us = at.max(self.last_us);
        } else {
            self.first_us = Some(at);
            self.last_us = at;
        }
        self.before_us = at;
        *self.minutes.entry(at.div_euclid(MINUTE_US)).or_default() += 1;
        self.received.add(row.received_bytes);
        self.declared.add(row.declared_bytes);
        self.next_hop.add(row.next_hop_bytes);
        self.size.add(row.content_bytes());
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "a rate is shown with three digits"
    )]
    pub(super) fn finish(&self, rows: u64) -> (Option<Span>, Volume) {
        let span = self.first_us.map(|first_us| {
            let us = self.last_us.abs_diff(first_us);
            Span {
                first_us,
                last_us: self.last_us,
                requests_per_s: (us > 0).then(|| rows as f64 / (us as f64 / 1e6)),
                busiest_minute: self.minutes.values().copied().max().unwrap_or(0),
                out_of_order: self.out_of_order,
            }
        });
        let volume = Volume {
            received_bytes: self.received.total(),
            declared_bytes: self.declared.total(),
            next_hop_bytes: self.next_hop.total(),
            size: self.size.finish(),
        };
        (span, volume)
    }
}
