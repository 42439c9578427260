//! From the log of a request to what a recorder is given.

use super::Finished;
use super::details::micros;
use crate::log::report::FinishedRequest;
use crate::log::words;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use weir_measure::Label as _;
use weir_policy::route::Why;

impl Finished {
    /// What a recorder is given of `finished`. `heads` are those of request and response, where the
    /// log has no details of its own.
    pub(in crate::log) fn of(
        finished: &FinishedRequest<'_>,
        (request, response): (&[u8], &[u8]),
    ) -> Self {
        let (log, client, total_us) = (finished.log, finished.client, finished.total_us);
        let details = log.details.as_deref();
        let since_start = |moment: Instant| micros(log.started, moment);
        let (request, response) = match details {
            None => (request, response),
            Some(details) => {
                let response = details.response.as_deref().unwrap_or_default();
                (&details.request[..], response)
            }
        };
        let received_bytes = log.body_bytes + details.map_or(0, |details| details.tunnel_bytes);
        let has_content = log.body_bytes > 0;
        let content_us = details
            .and_then(|details| details.content_times.first_last())
            .filter(|_| has_content)
            .map(|(first, last)| (since_start(first), since_start(last)))
            // content that is copied behind the head is sent with it
            .or(has_content.then_some((total_us, total_us)));
        let mut heads = Vec::with_capacity(request.len() + response.len());
        heads.extend_from_slice(request);
        heads.extend_from_slice(response);
        Self {
            client: client.peer.ip().to_canonical(),
            connection: client.connection,
            sequence: client.sequence,
            arrival_us: unix_us().saturating_sub_unsigned(total_us),
            reached: log.times,
            first_byte_us: content_us.map(|(first_us, _)| first_us),
            last_byte_us: content_us.map_or(total_us, |(_, last_us)| last_us),
            next_hop: details.and_then(|details| details.next_hop),
            status: Some(log.status).filter(|status| *status > 0),
            received_bytes,
            next_hop_bytes: log.forward().next_hop_content_bytes
                + details.map_or(0, |details| details.fetched_bytes + details.tunnel_bytes),
            request_content_bytes: details
                .and_then(|details| details.request_content_bytes)
                .or(finished.request_content_bytes),
            end: log.end,
            is_persistent: finished.is_persistent,
            verdict: words::word(finished.verdict).word(),
            node_choice: log.node_choice.map(Why::as_str),
            next_hop_choice: log.next_hop_choice.map(Why::as_str),
            targeted: Arc::clone(finished.settings.targeted(client.listener.mode)),
            authority: finished
                .lacks_host
                .then(|| client.listener.default.to_string().into()),
            request_bytes: request.len(),
            heads: heads.into(),
        }
    }
}

fn unix_us() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(0))
}
