//! Content of a response that is received before any of the response may be sent.

use crate::worker::core::Worker;
use std::ops::ControlFlow;
use std::task::{Context, Poll};
use weir_net::http::{ContentCut, ContentEnd, ContentRead, ResponseReceiver};
use weir_store::ChargedMemory;

/// The longest content that is received while members are waited for, bytes, if the read-ahead
/// permits as many: answers to unsafe requests are short. It is charged to the memory of responses
/// that arrive.
const HELD_BYTES_MAX: u64 = 1 << 20;

/// Content that was received before it may be sent.
pub(crate) struct HeldContent {
    pub(crate) content: Vec<u8>,
    charged: ChargedMemory,
    bytes_max: usize,
    /// Bytes received with the head, framing included.
    pub(crate) with_head_bytes: u64,
    /// Bytes received since.
    pub(crate) read_bytes: u64,
    /// Bytes of framing among both.
    pub(crate) overhead_bytes: u64,
    /// What follows; `None` until what came with the head is taken.
    pub(crate) end: Option<Result<ContentEnd, ContentCut>>,
    /// There is no room for more.
    is_full: bool,
}

impl HeldContent {
    /// None yet, and no more than `read_ahead` bytes.
    pub(crate) fn new(worker: &Worker, read_ahead: u64) -> Self {
        let bytes_max = read_ahead.min(HELD_BYTES_MAX);
        Self {
            content: Vec::new(),
            charged: ChargedMemory::new(&worker.shared.store),
            bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
            with_head_bytes: 0,
            read_bytes: 0,
            overhead_bytes: 0,
            end: None,
            is_full: false,
        }
    }

    /// Receives what there is.
    pub(crate) fn receive(
        &mut self,
        from_hop: &mut ResponseReceiver<'_>,
        worker: &Worker,
        cx: &mut Context<'_>,
    ) {
        if self.end.is_none() {
            self.with_head_bytes = from_hop.buffered_bytes() as u64;
            let content = &mut self.content;
            let read = from_hop.take_buffered(|bytes| {
                content.extend_from_slice(bytes);
                ControlFlow::Continue(())
            });
            self.note(read);
        }
        while self.end == Some(Ok(ContentEnd::More)) && !self.is_full {
            let mut scratch = worker.scratch();
            let room = self.bytes_max.saturating_sub(self.content.len());
            let max = room.min(scratch.len());
            let bytes = (self.content.len() + max) as u64;
            if max == 0 || self.charged.hold(bytes).is_err() {
                self.is_full = true;
                return;
            }
            let content = &mut self.content;
            let read = from_hop.poll_content(cx, &mut scratch[..max], |_, bytes| {
                content.extend_from_slice(bytes);
                ControlFlow::Continue(())
            });
            match read {
                Poll::Pending => return,
                Poll::Ready(Ok(read)) => {
                    self.read_bytes += read.bytes;
                    self.note(read);
                }
                Poll::Ready(Err(cut)) => self.end = Some(Err(cut)),
            }
        }
    }

    fn note(&mut self, read: ContentRead) {
        self.overhead_bytes += read.bytes - read.content_bytes;
        self.end = Some(Ok(read.end));
    }

    /// Whether anything was taken.
    pub(crate) const fn is_begun(&self) -> bool {
        self.end.is_some()
    }

    /// Whether that is all of it.
    pub(crate) fn is_whole(&self) -> bool {
        self.end == Some(Ok(ContentEnd::Whole))
    }
}
