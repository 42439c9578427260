//! Requests that were answered at once, until the kernel has their responses.
//!
//! Their time ends there, and so does what is logged and recorded of them. One look at the clock is
//! enough for all that left in one write, which is as many as a hit took before: when its response
//! was made was asked instead.

use crate::client::connection::Client;
use crate::log::account::Account;
use crate::log::record::{End, Told};
use crate::log::report::{self, Ended};
use crate::worker::settings::Settings;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use weir_policy::Verdict;
use weir_wire::{LineBuffer, Progress, parse_request};

/// A request that was answered at once.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) account: Account,
    pub(crate) verdict: Verdict,
    /// Which request of its connection it is, from 1.
    pub(crate) sequence: u32,
    /// Where its head is among the bytes received; `None` if they were no request.
    pub(crate) request: Option<Range<usize>>,
    /// Where the head of the response is among the bytes to send.
    pub(crate) response: Range<usize>,
    /// Where the response ends among them.
    pub(crate) end: usize,
    /// Content of the request, if it is known.
    pub(crate) request_content_bytes: Option<u64>,
    /// The request does not say for which host it is.
    pub(crate) lacks_host: bool,
    /// The client's connection goes on.
    pub(crate) is_persistent: bool,
}

impl Served {
    /// Counts its time, logs and records it: at `now` the kernel had its response, or the client
    /// was found to have left.
    fn report(
        &self,
        client: &Client,
        settings: &Settings,
        (received, sent): (&[u8], &[u8]),
        now: Instant,
    ) {
        let shared = &client.worker.shared;
        let total_us = self.account.us_until(now);
        let source = report::source(&self.verdict);
        client
            .worker
            .counters()
            .record_response_time(source, total_us);
        let request = self.request.clone().and_then(|range| received.get(range));
        let response = sent.get(self.response.clone()).unwrap_or_default();
        if shared.access_log.is_on() {
            let mut lines = LineBuffer::new();
            let head =
                request.and_then(
                    |bytes| match parse_request(bytes, &settings.heads, &mut lines) {
                        Ok(Progress::Complete { head, .. }) => Some(head),
                        _ => None,
                    },
                );
            let ended = Ended {
                settings,
                head: head.as_ref(),
                verdict: &self.verdict,
                account: &self.account,
                content_type: report::content_type(response),
                total_us,
            };
            ended.log(&client.worker, client.peer, self.sequence > 1);
        }
        if let (Some(record), Some(request)) = (&shared.record, request) {
            let told = Told {
                account: &self.account,
                verdict: &self.verdict,
                request,
                response,
                notes: None,
                total_us,
                sequence: self.sequence,
                request_content_bytes: self.request_content_bytes,
                lacks_host: self.lacks_host,
                is_persistent: self.is_persistent,
            };
            record.tell(told.of(client));
        }
    }
}

/// Requests whose responses the kernel has not taken whole.
pub(crate) struct Unsent {
    settings: Arc<Settings>,
    served: Vec<Served>,
    /// Their heads and those of the responses, if somebody will want them: at most what was
    /// received and gathered at once.
    heads: Vec<u8>,
}

impl Unsent {
    /// Reports them: the kernel has everything, or the client has left.
    pub(crate) fn report(mut self, client: &Client, left: bool) {
        let now = Instant::now();
        for served in &mut self.served {
            if left {
                served.account.break_off(End::ClientLeft, "client-left");
            }
            let heads = (&self.heads[..], &self.heads[..]);
            served.report(client, &self.settings, heads, now);
        }
    }
}

/// Reports what the kernel has, the first `written` bytes of `sent`; yields the rest. `None`: the
/// client has left.
pub(crate) fn report(
    client: &Client,
    settings: &Arc<Settings>,
    (received, sent): (&[u8], &[u8]),
    written: Option<usize>,
    served: &mut Vec<Served>,
) -> Option<Box<Unsent>> {
    if served.is_empty() {
        return None;
    }
    let now = Instant::now();
    let taken = match written {
        Some(written) => served.partition_point(|one| one.end <= written),
        None => served.len(),
    };
    for mut one in served.drain(..taken) {
        if written.is_none() {
            one.account.break_off(End::ClientLeft, "client-left");
        }
        one.report(client, settings, (received, sent), now);
    }
    if served.is_empty() {
        return None;
    }
    let shared = &client.worker.shared;
    let heads_wanted = shared.access_log.is_on() || shared.record.is_some();
    let mut heads = Vec::new();
    let mut keep = |bytes: Option<&[u8]>| {
        let start = heads.len();
        heads.extend_from_slice(bytes.filter(|_| heads_wanted).unwrap_or_default());
        start..heads.len()
    };
    let mut rest = std::mem::take(served);
    for one in &mut rest {
        one.request = one.request.clone().map(|range| keep(received.get(range)));
        one.response = keep(sent.get(one.response.clone()));
    }
    Some(Box::new(Unsent {
        settings: Arc::clone(settings),
        served: rest,
        heads,
    }))
}
