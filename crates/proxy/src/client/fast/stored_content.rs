//! A stored response of which the head is made at once, and whose content is sent from the store
//! behind it: a request that needs no more than that has no exchange, which would hold three times
//! as much while its client does not read.

use super::answer::MADE_LINES_BYTES;
use super::{HeadTime, Receiver};
use crate::log::client::ClientFacts;
use crate::log::report;
use crate::log::request_log::{ContentSource, RequestLog};
use crate::log::served::ServedRequest;
use crate::request::judge::ReceivedRequest;
use crate::send::heads::{self, ServedForm};
use crate::settings::Settings;
use crate::worker::core::Worker;
use bytes::Bytes;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use weir_net::http::{FurtherContent, write_connection};
use weir_policy::{Digest, Now, Phase, Serving, Transaction};
use weir_semantics::{Form, HostName};
use weir_store::{StoredContent, StoredResponse};
use weir_wire::{LineBuffer, Progress, RequestHead, Version, parse_request, write};

/// Shorter pieces are copied, bytes: the request may be over before the socket has them, and for a
/// few bytes a response of any length would stay in memory.
const HELD_BYTES_MIN: usize = 4 * 1024;

/// What is sent of the content of a stored response, which is in memory.
pub(crate) struct ContentInStore {
    response: Arc<StoredResponse>,
    /// The first byte that is sent, and one past the last.
    from: u64,
    end: u64,
    key: Digest,
}

/// Whether `response` can be sent so. A recorder is told when its content was sent, which an
/// exchange notes.
pub(super) fn may_be_sent(
    worker: &Worker,
    request: &ReceivedRequest<'_>,
    response: &StoredResponse,
) -> bool {
    request.is_shareable() && response.body.is_in_memory() && worker.shared.record.is_none()
}

/// Makes the head; the caller sends that and the content, and then says so
/// ([`ContentInStore::ended`]).
#[inline(never)]
pub(super) fn begin(
    receiver: &Receiver<'_>,
    (head, received): (&RequestHead<'_, '_>, Range<usize>),
    (request, tx): (&ReceivedRequest<'_>, &Transaction),
    (response, serving, key): (&Arc<StoredResponse>, Serving, Digest),
    now: Now,
    log: &mut RequestLog,
    (out, served): (&mut Vec<u8>, &mut Vec<ServedRequest>),
) -> ContentInStore {
    let Receiver {
        worker,
        settings,
        client,
        ..
    } = receiver;
    let form = ServedForm::of(&request.facts, head.fields, response, now.wall);
    let before = out.len();
    out.reserve(response.head.len() + MADE_LINES_BYTES);
    heads::write_head(settings, response, form, serving, tx.verdict(), out);
    let closes = worker.shared.has_closed(client.listener);
    let is_persistent = request.is_persistent && !closes;
    let http11 = request.version == Version::Http11;
    write_connection(is_persistent, http11, out);
    write::end_of_head(out);
    // it may be held until the client has all of the content
    out.shrink_to_fit();
    log.response_head(form.status(response), &out[before..]);
    served.push(ServedRequest {
        log: log.take(),
        verdict: *tx.verdict(),
        sequence: client.sequence,
        request: Some(received),
        response: before..out.len(),
        end: out.len(),
        request_content_bytes: Some(0),
        lacks_host: request.form == Form::Origin && !http11,
        is_persistent,
        // the client has a part in its time: it reads the content meanwhile
        came_at_once: false,
    });
    // a hit counts as a request for it, too
    worker.shared.popularity.note(key);
    let (from, end) = form.content(response);
    ContentInStore {
        response: Arc::clone(response),
        from,
        end,
        key,
    }
}

/// Whether a piece of `length` bytes holds all of the `content`, and is not copied. The account of
/// the store has to have what is held, also once it is evicted.
fn is_held(content: &StoredContent, length: usize) -> bool {
    length >= HELD_BYTES_MIN && content.counts_while_held()
}

/// Bytes of a stored response, which is held as long as they are.
struct HeldBytes {
    response: Arc<StoredResponse>,
    at: u64,
    length: usize,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        let bytes = self.response.body.at(self.at);
        &bytes[..bytes.len().min(self.length)]
    }
}

impl FurtherContent for ContentInStore {
    fn bytes_at(&self, at: u64) -> &[u8] {
        let at = self.from + at;
        let bytes = match at < self.end {
            true => self.response.body.at(at),
            false => &[],
        };
        let left = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        &bytes[..bytes.len().min(left)]
    }

    fn share(&self, at: u64, length: usize) -> Bytes {
        let held = HeldBytes {
            response: Arc::clone(&self.response),
            at: self.from + at,
            length,
        };
        match is_held(&self.response.body, length) {
            true => Bytes::from_owner(held),
            false => Bytes::copy_from_slice(held.as_ref()),
        }
    }
}

impl ContentInStore {
    /// Counts the response to the request in `served`, with the head `received`, of which so many
    /// bytes were sent.
    pub(crate) fn ended(
        &self,
        (worker, settings): (&Rc<Worker>, &Arc<Settings>),
        client: ClientFacts<'_>,
        received: &[u8],
        (sent_bytes, is_whole): (u64, bool),
        served: &mut [ServedRequest],
    ) {
        let [request] = served else { return };
        let log = &mut request.log;
        let content_bytes = sent_bytes.saturating_sub(request.response.len() as u64);
        log.sent(sent_bytes);
        log.sent_content(content_bytes, ContentSource::of(&self.response));
        if is_whole {
            log.reach(Phase::ResponseContent);
        }
        log.reach(Phase::Done);
        report::count(worker.counters(), &client, &request.verdict, log);
        report::count_phases(worker.counters(), log.reached());
        if settings.config.admin.top {
            self.count_heavy_hitter((worker, settings), client, received, served);
        }
    }

    /// Counts it for its target, of which the head is read again: it was not kept parsed.
    fn count_heavy_hitter(
        &self,
        (worker, settings): (&Rc<Worker>, &Arc<Settings>),
        client: ClientFacts<'_>,
        received: &[u8],
        served: &[ServedRequest],
    ) {
        let receiver = Receiver::new(worker, settings, client, HeadTime::Now);
        let mut lines = LineBuffer::new();
        let mut host = HostName::EMPTY;
        if let Ok(Progress::Complete { head, .. }) =
            parse_request(received, &settings.heads, &mut lines)
            && let Ok(request) = receiver.judge(&head, &mut host)
        {
            worker.note_hit(settings, client, (self.key, &request.target), served);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::catalog::UNPINNED_CONTENT_BYTES_MAX;

    #[test]
    fn piece_that_is_short_or_of_content_that_no_account_has_is_copied() {
        let most = usize::try_from(UNPINNED_CONTENT_BYTES_MAX).unwrap();
        for (bytes, length, expected) in [
            (most, HELD_BYTES_MIN, false),
            (most + 1, HELD_BYTES_MIN, true),
            (most + 1, HELD_BYTES_MIN - 1, false),
        ] {
            let content = StoredContent::from(&vec![0; bytes][..]);
            assert_eq!(is_held(&content, length), expected, "{length} of {bytes}");
        }
    }
}
