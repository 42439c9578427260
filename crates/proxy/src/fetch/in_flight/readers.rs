//! The readers of an in-flight response: which may join, and what each can send next.

use super::{InFlightResponse, Inner};
use crate::worker::core::Worker;
use std::sync::Arc;
use std::task::Waker;
use weir_disk::Extent;
use weir_policy::Now;
use weir_policy::fetch::{
    AttachError, ByteSpan, Confirm, CutReason, DeliveryCount, FetchId, ReaderId, Step,
};
use weir_store::{Block, InFlightPiece, Reservation};

/// Bytes of the block under way that a reader copies at once; whole blocks are shared.
pub(crate) const COPY_BYTES_MAX: usize = 64 * 1024;

/// The command for a reader.
pub(crate) enum ReaderAction {
    /// Send these bytes, a whole block's or a part of it.
    Block {
        /// The block; shared, not copied.
        block: Block,
        /// First byte of it.
        from: usize,
        /// One past the last.
        to: usize,
    },
    /// Read this from disk, and send it.
    Disk {
        /// Where it is on disk.
        extent: Arc<Extent>,
        /// One past the last byte of the content that may be sent.
        to: u64,
    },
    /// Send what was copied.
    Copied,
    /// Wait; the waker is kept.
    Wait,
    /// Start this fetch, then call again.
    Fetch(FetchId, ByteSpan),
    /// There is nothing more.
    Done,
    /// It was cut.
    Cut,
    /// A module ended it.
    EndedByModule,
    /// What is missing may not be fetched for others too.
    NotShared,
    /// Its next byte was dropped before it read it.
    ContentDropped,
}

/// The terms on which a request joins as a reader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinTerms {
    /// Followers that may read at once.
    pub(crate) followers_max: usize,
    /// What is fetched at its request may be joined with what is here.
    pub(crate) completes: bool,
    /// The response was found here, and not waited for: it may have been requested before a purge.
    pub(crate) is_newcomer: bool,
}

impl InFlightResponse {
    /// Adds the reader of the request that began it, for `span`.
    pub(crate) fn attach(&self, span: ByteSpan) -> Result<ReaderId, AttachError> {
        let mut inner = self.lock();
        let attached = inner.fill.attach(span);
        inner.wake_stirred();
        attached
    }

    /// Adds a follower as a reader of `span`; `None` if it may not join.
    pub(crate) fn follow(&self, span: ByteSpan, terms: JoinTerms) -> Option<ReaderId> {
        let mut inner = self.lock();
        let attached = inner
            .lets_on(span, terms)
            .then(|| inner.fill.attach(span).ok());
        inner.wake_stirred();
        attached.flatten()
    }

    /// What `reader` can do, its next byte being `at`; of a block under way as much is copied to
    /// `out` as one write may take, at most
    /// [`COPY_BYTES_MAX`]: thousands of slow readers hold no more.
    pub(crate) fn read(
        &self,
        now: Now,
        reader: ReaderId,
        at: u64,
        waker: &Waker,
        out: &mut Vec<u8>,
    ) -> ReaderAction {
        let mut inner = self.lock();
        let step = inner.fill.step(now, reader);
        inner.wake_stirred();
        match step {
            Step::Read(span) if inner.has_passed(span.from) => ReaderAction::ContentDropped,
            Step::Read(span) => {
                debug_assert_eq!(span.from, at);
                let write_max = inner.fill.unsent(reader);
                let copy_max = write_max.map_or(COPY_BYTES_MAX, |most| most as usize);
                inner.lend(span, copy_max.min(COPY_BYTES_MAX), out)
            }
            Step::Wait => {
                inner.waiting.reader(reader, waker);
                ReaderAction::Wait
            }
            Step::Fetch { fetch, span } => {
                inner.open(fetch, span);
                ReaderAction::Fetch(fetch, span)
            }
            Step::Done => ReaderAction::Done,
            Step::Cut(CutReason::NotShared) => ReaderAction::NotShared,
            Step::Cut(CutReason::Module) => ReaderAction::EndedByModule,
            Step::Cut(_) => ReaderAction::Cut,
        }
    }

    /// Whether `reader`, which was sent nothing so far, can be sent its head; the waker is kept if
    /// it has to wait.
    pub(crate) fn confirm(&self, now: Now, reader: ReaderId, waker: &Waker) -> Confirm {
        let mut inner = self.lock();
        let confirm = inner.fill.confirm(now, reader);
        inner.wake_stirred();
        match confirm {
            Confirm::Wait => inner.waiting.reader(reader, waker),
            Confirm::Fetch { fetch, span } => inner.open(fetch, span),
            Confirm::Yes | Confirm::No => {}
        }
        confirm
    }

    /// The response head of `fetch` has come, and is of this representation.
    pub(crate) fn confirmed(&self, fetch: FetchId) {
        let mut inner = self.lock();
        inner.fill.confirmed(fetch);
        inner.wake_readers();
    }

    /// The kernel took bytes of `reader`'s, up to `span.to`.
    pub(crate) fn handed_over(&self, now: Now, reader: ReaderId, span: ByteSpan) -> DeliveryCount {
        let mut inner = self.lock();
        let delivered = inner.fill.delivered(span);
        inner.fill.moved(now, reader, span.to);
        inner.let_pass();
        if inner.fill.take_changed() {
            inner.wake_held_back();
        }
        delivered
    }

    /// What the kernel says of `reader`'s client: the round trip, microseconds, and the bytes that
    /// were sent and are not acknowledged. The furthest its fetch was ahead, bytes, if it is the
    /// fastest there.
    pub(crate) fn look_at_client(
        &self,
        reader: ReaderId,
        client_us: u32,
        unacknowledged: u32,
    ) -> Option<u64> {
        let inner = &mut *self.lock();
        let fetch = inner.fill.fetch_of(reader)?;
        if inner.fill.fastest_of(fetch) != Some(reader) {
            return None;
        }
        inner.client_us = client_us;
        inner
            .fill
            .set_round_trips(fetch, client_us, inner.next_hop_us);
        if let Some((_, at)) = inner.fill.places() {
            let held = inner.fill.front(fetch).saturating_sub(at);
            inner.read_ahead_max = inner.read_ahead_max.max(held + u64::from(unacknowledged));
        }
        Some(inner.read_ahead_max())
    }

    /// `reader` has read its span, or was dropped.
    pub(crate) fn leave(&self, worker: &Worker, reader: ReaderId) {
        let mut inner = self.lock();
        inner.fill.leave(reader);
        inner.waiting.forget_reader(reader);
        inner.let_pass();
        inner.wake_stirred();
        self.settle(&mut inner, worker);
    }

    /// How many bytes one write of `reader`'s may hand to the kernel; `None` for no limit.
    pub(crate) fn unsent(&self, reader: ReaderId) -> Option<u32> {
        self.lock().fill.unsent(reader)
    }

    /// The trailer section, once the content is whole: field lines, each with its CRLF.
    pub(crate) fn trailers(&self) -> Box<[u8]> {
        self.lock().trailers.clone()
    }

    /// Whether it was purged while it arrived: then it answers no request that comes from now on. A
    /// purge reaches the store first, and the table of what may be joined a moment later.
    pub(crate) fn is_outdated(&self) -> bool {
        self.lock().is_outdated()
    }

    /// The most a fetch was ahead of all readers so far, bytes.
    pub(crate) fn read_ahead_max(&self) -> u64 {
        self.lock().read_ahead_max()
    }
}

impl Inner {
    fn lets_on(&self, span: ByteSpan, terms: JoinTerms) -> bool {
        let has_place = terms.followers_max > 0 && self.fill.readers() <= terms.followers_max;
        // nothing is added to what is settled
        let can_fetch = terms.completes && self.outcome.is_none();
        let is_purged = terms.is_newcomer && self.is_outdated();
        // of content that is not stored, some may have been dropped
        !is_purged
            && has_place
            && !self.has_passed(span.from)
            && (can_fetch || self.fill.is_coming(span))
    }

    /// Whether it was purged while it arrived.
    fn is_outdated(&self) -> bool {
        let reservation = self.reservation.as_ref();
        reservation.is_some_and(Reservation::is_outdated)
    }

    fn lend(&self, span: ByteSpan, copy_max: usize, out: &mut Vec<u8>) -> ReaderAction {
        let most = usize::try_from(span.to - span.from).unwrap_or(usize::MAX);
        match self.content.read(span.from) {
            Some(InFlightPiece::Sealed { block, from }) => {
                let to = block.len().min(from.saturating_add(most));
                ReaderAction::Block { block, from, to }
            }
            Some(InFlightPiece::Disk { extent }) => ReaderAction::Disk {
                extent: Arc::clone(extent),
                to: span.to.min(extent.from + u64::from(extent.len)),
            },
            Some(InFlightPiece::Open(bytes)) => {
                let count = bytes.len().min(most).min(copy_max);
                out.extend_from_slice(&bytes[..count]);
                ReaderAction::Copied
            }
            None => {
                debug_assert!(false, "present, and not there");
                ReaderAction::ContentDropped
            }
        }
    }
}
