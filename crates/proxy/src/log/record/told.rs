//! From what a worker knows to what a recorder is told.

use super::notes::micros;
use super::{Finished, Notes};
use crate::client::connection::Client;
use crate::log::account::Account;
use crate::log::report;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use weir_measure::Label as _;
use weir_policy::Verdict;

/// What is known of a request that has ended, where it ended.
pub(crate) struct Told<'a> {
    pub(crate) account: &'a Account,
    pub(crate) verdict: &'a Verdict,
    /// The request's head as received.
    pub(crate) request: &'a [u8],
    /// The response's head, if it is not in the notes.
    pub(crate) response: &'a [u8],
    /// Of an exchange.
    pub(crate) notes: Option<&'a Notes>,
    /// From the first byte of the request to the last of the response that the kernel took,
    /// microseconds.
    pub(crate) total_us: u64,
    /// Which request of its connection it is, from 1.
    pub(crate) sequence: u32,
    /// Content of the request, if it is known and the notes do not say it.
    pub(crate) request_content_bytes: Option<u64>,
    /// The request says nowhere for which host it is.
    pub(crate) lacks_host: bool,
    /// The client's connection goes on.
    pub(crate) is_persistent: bool,
}

impl Told<'_> {
    /// Tells the recorder of `client`, which has one.
    pub(crate) fn of(&self, client: &Client) -> Finished {
        let (account, notes) = (self.account, self.notes);
        let total_us = self.total_us;
        let since_start = |moment: Instant| micros(account.started, moment);
        let (response, response_us) = match notes.map(|notes| &notes.response) {
            Some(Some((head, made))) => (&head[..], Some(since_start(*made))),
            Some(None) => (&[][..], None),
            None => (self.response, account.first_byte_us.or(Some(total_us))),
        };
        let received_bytes = account.body_bytes + notes.map_or(0, |notes| notes.tunnel_bytes);
        let moments = notes.and_then(|notes| notes.moments.first_last());
        let has_content = account.body_bytes > 0;
        let content_us = moments
            .filter(|_| has_content)
            .map(|(first, last)| (since_start(first), since_start(last)))
            // what is copied behind its head leaves with it
            .or(has_content.then_some((total_us, total_us)));
        let mut heads = Vec::with_capacity(self.request.len() + response.len());
        heads.extend_from_slice(self.request);
        heads.extend_from_slice(response);
        Finished {
            client: client.peer.ip().to_canonical(),
            connection: client.number,
            sequence: self.sequence,
            arrival_us: unix_us().saturating_sub_unsigned(total_us),
            response_us,
            first_byte_us: content_us.map(|(first_us, _)| first_us),
            last_byte_us: content_us.map_or(total_us, |(_, last_us)| last_us),
            next_hop: notes.and_then(|notes| notes.next_hop),
            status: Some(account.status).filter(|status| *status > 0),
            received_bytes,
            next_hop_bytes: account.next_hop_content_bytes
                + notes.map_or(0, |notes| notes.fetched_bytes + notes.tunnel_bytes),
            request_content_bytes: notes
                .and_then(|notes| notes.request_content_bytes)
                .or(self.request_content_bytes),
            end: account.end,
            is_persistent: self.is_persistent,
            verdict: report::word(self.verdict).word(),
            targeted: Arc::clone(client.worker.settings().targeted(client.door.mode)),
            authority: self
                .lacks_host
                .then(|| client.door.default.to_string().into()),
            request_bytes: self.request.len(),
            heads: heads.into(),
        }
    }
}

fn unix_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(0))
}
