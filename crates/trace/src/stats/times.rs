//! Round trips and times.

use super::super::Row;
use super::said::{Quantity, Share, Spread};
use serde::Serialize;

/// Microseconds; `None` is what the trace does not say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// SYN to SYN-ACK.
    pub setup_us: Option<Spread>,
    /// Request to response head.
    pub response_us: Option<Spread>,
    /// First to last byte of content.
    pub transfer_us: Option<Spread>,
    /// Arrival to the end.
    pub total_us: Option<Spread>,
    /// SYN to SYN-ACK toward the next hop.
    pub next_hop_setup_us: Option<Spread>,
    /// Request to response head at the next hop.
    pub next_hop_response_us: Option<Spread>,
    /// Of the requests with a set-up and an end, those whose set-up took at least half of the whole
    /// time.
    pub setup_is_half: Option<Share>,
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    setup: Quantity,
    response: Quantity,
    transfer: Quantity,
    total: Quantity,
    next_hop_setup: Quantity,
    next_hop_response: Quantity,
    setup_is_half: Share,
}

impl Counter {
    pub(super) fn add(&mut self, row: &Row) {
        self.setup.add(row.setup_us);
        self.response.add(between(row.request_us, row.response_us));
        self.transfer
            .add(between(row.first_byte_us, row.last_byte_us));
        self.total.add(row.last_byte_us);
        self.next_hop_setup.add(row.next_hop_setup_us);
        self.next_hop_response.add(row.next_hop_response_us);
        let whole = row.setup_us.zip(row.last_byte_us);
        self.setup_is_half
            .add(whole.map(|(setup, total)| setup >= total.div_ceil(2)));
    }

    pub(super) fn finish(&self) -> Times {
        Times {
            setup_us: self.setup.finish(),
            response_us: self.response.finish(),
            transfer_us: self.transfer.finish(),
            total_us: self.total.finish(),
            next_hop_setup_us: self.next_hop_setup.finish(),
            next_hop_response_us: self.next_hop_response.finish(),
            setup_is_half: self.setup_is_half.finish(),
        }
    }
}

/// `None` as well where the end is before the beginning: no time was less than none.
fn between(from: Option<u64>, to: Option<u64>) -> Option<u64> {
    to?.checked_sub(from?)
}
