//! The content of a request on a stream of HTTP/2.

use super::head;
use super::shared::Shared;
use crate::http::received_content::{ContentError, ReceivedContent};
use crate::workers::ResetBudget;
use h2::RecvStream;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use weir_semantics::NamedFields;
use weir_wire::{BodyError, BodyLength, HeadLimits};

/// The content of a request on a stream of HTTP/2. That it is as long as its `content-length` says
/// is seen to by `h2`. It is part of each request under way: what those without content do not need
/// is boxed.
pub(crate) struct Http2Content {
    stream: RecvStream,
    length: BodyLength,
    is_begun: bool,
    is_ended: bool,
    content_bytes: u64,
    /// Of a stream that the client has not ended with its head.
    streaming: Option<Box<StreamingContent>>,
}

/// What comes behind the head: whether content waits, and the trailer section as it may be and as
/// it has come.
struct StreamingContent {
    limits: HeadLimits,
    /// Fields that are no trailers.
    named: NamedFields,
    lines: Vec<u8>,
    shared: Rc<Shared>,
    /// The client that a reset counts for, beside the connection.
    client: Option<ResetBudget>,
    /// Content that was received and not consumed, bytes.
    unused_bytes: usize,
    /// What has come may wait, for all that is known: it counts for the window of the connection.
    may_wait: bool,
}

impl StreamingContent {
    fn set_waits(&mut self, may_wait: bool) {
        if std::mem::replace(&mut self.may_wait, may_wait) != may_wait {
            let window = &self.shared.receive_window;
            match may_wait {
                true => window.begin_wait(),
                false => window.end_wait(),
            }
        }
    }
}

impl Drop for StreamingContent {
    fn drop(&mut self) {
        self.set_waits(false);
    }
}

impl Http2Content {
    pub(super) fn new(
        stream: RecvStream,
        length: BodyLength,
        (limits, named): (HeadLimits, NamedFields),
        (shared, client): (Rc<Shared>, Option<ResetBudget>),
    ) -> Self {
        let streaming = (!stream.is_end_stream()).then(|| {
            Box::new(StreamingContent {
                limits,
                named,
                lines: Vec::new(),
                shared,
                client,
                unused_bytes: 0,
                may_wait: false,
            })
        });
        let mut content = Self {
            stream,
            length,
            is_begun: false,
            is_ended: matches!(length, BodyLength::None | BodyLength::Exact(0)),
            content_bytes: 0,
            streaming,
        };
        content.note_waits(false);
        content
    }

    /// Notes whether content waits. Where nothing `is_awaited`, there may be some that has come.
    fn note_waits(&mut self, is_awaited: bool) {
        let may_come = !is_awaited && !self.is_ended;
        if let Some(streaming) = &mut self.streaming {
            streaming.set_waits(may_come || streaming.unused_bytes > 0);
        }
    }

    /// What follows belongs to a tunnel.
    pub(super) fn become_tunnel(&mut self) {
        self.length = BodyLength::UntilClose;
        self.is_ended = false;
    }

    pub(crate) fn length(&self) -> BodyLength {
        self.length
    }

    #[expect(
        clippy::unused_self,
        reason = "content of a frame cannot be framed wrongly within"
    )]
    pub(crate) fn check_received(&self) -> Result<(), BodyError> {
        Ok(())
    }

    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        _scratch: &mut [u8],
        into: &mut Vec<u8>,
    ) -> Poll<Result<ReceivedContent, ContentError>> {
        self.is_begun = true;
        if self.is_ended {
            return Poll::Ready(Ok(ReceivedContent::Whole));
        }
        let received = self.stream.poll_data(cx);
        self.note_waits(received.is_pending());
        match ready!(received) {
            Some(Ok(data)) => {
                self.content_bytes += data.len() as u64;
                if let Some(streaming) = &mut self.streaming {
                    streaming.unused_bytes += data.len();
                }
                into.extend_from_slice(&data);
                self.is_ended = self.stream.is_end_stream();
                self.note_waits(false);
                Poll::Ready(Ok(match self.is_ended {
                    true => ReceivedContent::Whole,
                    false => ReceivedContent::More,
                }))
            }
            Some(Err(_)) => Poll::Ready(Err(ContentError::Disconnected)),
            None => self.poll_trailers(cx),
        }
    }

    fn poll_trailers(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<ReceivedContent, ContentError>> {
        let Ok(fields) = ready!(self.stream.poll_trailers(cx)) else {
            return Poll::Ready(Err(ContentError::Disconnected));
        };
        // a tunnel has no frame like that (RFC 9113 §8.5)
        let may_come = !matches!(self.length, BodyLength::UntilClose);
        if let Some((fields, streaming)) = fields.zip(self.streaming.as_mut()) {
            let lines = head::trailers(&fields, streaming.limits, &streaming.named);
            let Some(lines) = lines.filter(|_| may_come) else {
                // the content is not whole, as its end is malformed (RFC 9113 §8.1.1)
                streaming.shared.note_malformed();
                if let Some(client) = &streaming.client {
                    streaming.shared.note_reset_for(client);
                }
                return Poll::Ready(Err(ContentError::Disconnected));
            };
            streaming.lines = lines;
        }
        self.is_ended = true;
        self.note_waits(false);
        Poll::Ready(Ok(ReceivedContent::Whole))
    }

    /// The client may send as much again.
    pub(crate) fn consumed(&mut self, bytes: usize) {
        // fails if the stream has ended: then nothing is held back
        let _ = self.stream.flow_control().release_capacity(bytes);
        if let Some(streaming) = &mut self.streaming {
            streaming.unused_bytes = streaming.unused_bytes.saturating_sub(bytes);
        }
        if self.is_ended {
            self.note_waits(false);
        }
    }

    pub(crate) fn trailers(&self) -> &[u8] {
        self.streaming.as_ref().map_or(&[], |it| &it.lines)
    }

    pub(crate) fn is_begun(&self) -> bool {
        self.is_begun
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    pub(crate) fn read_bytes(&self) -> u64 {
        self.content_bytes
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.content_bytes
    }

    pub(crate) fn content_bytes(&self) -> u64 {
        self.content_bytes
    }
}
