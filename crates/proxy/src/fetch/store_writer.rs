//! Stores a relayed response: one that is whole with its first read, or that is fetched for the
//! store alone.

use crate::exchange::state::RequestState;
use crate::fetch::collapse::Leader;
use crate::fetch::storable_head::StorableHead;
use crate::worker::core::Worker;
use weir_policy::catalog::Refusal;
use weir_policy::rule::Reuse;
use weir_policy::{Digest, StoredFacts};
use weir_semantics::line_named;
use weir_store::{ContentBuilder, Reservation};
use weir_wire::{BodyLength, ResponseHead, write};

/// A response on its way into the store.
pub(crate) struct StoreWriter {
    reservation: Reservation,
    content: ContentBuilder,
    head: StorableHead,
    /// The head says the length already, where the origin put it.
    has_length: bool,
    /// How rules of the operator have it used.
    reuse: Reuse,
    /// Leads the waiting requests: they are decided here, also if the client of this request
    /// disconnects.
    leader: Option<Leader>,
    key: Digest,
}

impl StoreWriter {
    /// Takes room for a response; `None` if the catalog refuses; the transaction gets that as an
    /// event.
    pub(crate) fn begin(
        worker: &Worker,
        exchange: &mut RequestState,
        response: &ResponseHead<'_, '_>,
        body: BodyLength,
        facts: StoredFacts,
    ) -> Option<Self> {
        let expected = expected(body);
        let head = StorableHead::of(worker, exchange, response, body, expected, facts);
        let reservation = head.begin(worker, exchange, expected)?;
        Some(Self {
            reservation,
            content: ContentBuilder::new(expected),
            head,
            has_length: matches!(body, BodyLength::Exact(_)),
            reuse: exchange.reuse_for(response.status, line_named(response.fields, "content-type")),
            leader: exchange.leader.take(),
            key: exchange.key,
        })
    }

    /// The head as it is stored.
    pub(crate) fn head_lines(&self) -> &[u8] {
        &self.head.lines
    }

    /// Keeps the next bytes.
    ///
    /// # Errors
    ///
    /// The catalog's reason for not keeping it after all; the store_writer is of no use then.
    pub(crate) fn push(&mut self, worker: &Worker, bytes: &[u8]) -> Result<(), Refusal> {
        let room = self
            .reservation
            .reserve_next(&mut self.content, bytes.len());
        match room {
            Ok(()) => self.content.push(bytes),
            Err(_) => {
                if let Some(leader) = self.leader.take() {
                    leader.refused(worker.now(), None);
                }
            }
        }
        room
    }

    /// The response is whole: from now on it is found, first by the waiting requests.
    ///
    /// # Errors
    ///
    /// As for `push`.
    pub(crate) fn finish(mut self, worker: &Worker) -> Result<(), Refusal> {
        let body = self.reservation.finish_whole(self.content);
        if self.head.facts.status != 204 && !self.has_length {
            write::number_field(&mut self.head.lines, "Content-Length", body.len());
        }
        let (now, vary) = (worker.now(), self.head.vary.take());
        let answers_others = self.reuse.of(&self.head.facts).answers_others(now);
        let stored = self
            .reservation
            .commit(now, vary, self.head.with_body(body));
        if let Some(leader) = self.leader.take() {
            match stored {
                // dropped while it was received: the waiting requests look it up, miss, and one of
                // them leads
                Ok(()) | Err(Refusal::NotResident) => leader.stored(),
                Err(_) => leader.refused(now, None),
            }
        } else if stored.is_ok() && answers_others {
            worker.shared.collapsed.shared(self.key);
        }
        stored
    }
}

/// How many bytes of content a message with `body` has, if that is known from its head.
pub(crate) fn expected(body: BodyLength) -> Option<u64> {
    match body {
        BodyLength::Exact(bytes) => Some(bytes),
        BodyLength::None => Some(0),
        BodyLength::Chunked | BodyLength::UntilClose => None,
    }
}
