//! The content of one message on its way through a filter.
//!
//! A filter is called with what has come since it let content pass. While it pauses, content is
//! kept for it, at most `module[].hold`, in memory of responses that arrive. A message that is
//! paused at its end, or while an HTTP call of its stream is under way, waits for that; otherwise
//! it waits for more content.

use super::{Outcome, Stream, local_response, settle};
use crate::guest::content::Content;
use crate::slot::Ended;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_extend::{LocalResponse, PIECE_BYTES_MAX, Piece, Progress, Transform};
use weir_wasm::Side;

/// The status of the response to a request whose content is longer than what the filter may hold
/// (RFC 9110 §15.5.14).
const TOO_LARGE_STATUS: u16 = 413;

/// The content of one message.
pub(crate) struct Body {
    stream: Rc<Stream>,
    side: Side,
    /// What the filter let pass, and how much of it was put out. Content that is kept next has its
    /// room.
    out: Option<Content>,
    put: usize,
    /// Bytes that the filter holds.
    held: usize,
    is_paused: bool,
    /// The filter was given the end.
    has_ended: bool,
    /// HTTP calls of the stream are under way.
    has_calls: bool,
}

/// Content that passes.
type Passed = Option<Content>;

impl Body {
    pub(crate) fn new(stream: Rc<Stream>, side: Side) -> Self {
        Self {
            stream,
            side,
            out: None,
            put: 0,
            held: 0,
            is_paused: false,
            has_ended: false,
            has_calls: false,
        }
    }

    /// Puts out what passed. Whether all of it is out.
    fn flush(&mut self, piece: &mut Piece<'_>) -> bool {
        let Some(out) = &mut self.out else {
            return true;
        };
        self.put += piece.put(&out.bytes()[self.put..]);
        let is_empty = self.put == out.bytes().len();
        if is_empty {
            out.clear();
            self.put = 0;
        }
        is_empty
    }

    /// Gives content to the filter, or nothing if it was only to be seen whether a paused message
    /// goes on.
    fn step(&mut self, content: Option<(&[u8], bool)>) -> Result<Outcome<Passed>, Ended> {
        let (side, mut left) = (self.side, (0, false));
        let (own, room) = (&*self.stream, &mut self.out);
        let outcome = own.call(|instance, id| {
            let action = match content {
                None => None,
                Some((content, ends)) => {
                    if let Some(stream) = instance.host_mut().streams.get_mut(&id) {
                        let empty = || room.take().unwrap_or_else(|| own.new_content());
                        let body = stream.message(side).body.get_or_insert_with(empty);
                        if body.append(content).is_err() {
                            return Ok(Outcome::Broken);
                        }
                    }
                    Some(match side {
                        Side::Request => instance.request_body(id, ends)?,
                        Side::Response => instance.response_body(id, ends)?,
                    })
                }
            };
            let outcome = settle(instance, id, side, action, |stream| {
                stream.message(side).body.take()
            });
            if let Some(stream) = instance.host_mut().streams.get_mut(&id) {
                let body = stream.message(side).body.as_ref();
                let held = body.map_or(0, |body| body.bytes().len());
                left = (held, stream.calls > 0);
            }
            Ok(outcome)
        });
        (self.held, self.has_calls) = left;
        outcome
    }

    /// The message goes on with this content, or ends otherwise: how, if so.
    fn settle(&mut self, outcome: Result<Outcome<Passed>, Ended>) -> Option<Progress> {
        match outcome {
            Ok(Outcome::Continue(content)) => {
                self.out = content;
                self.is_paused = false;
                None
            }
            Ok(Outcome::Pause) => {
                self.is_paused = true;
                None
            }
            Ok(Outcome::Respond(response)) => Some(match local_response(response) {
                Some(response) => Progress::Respond(Box::new(response)),
                None => Progress::Fail,
            }),
            Ok(Outcome::Close | Outcome::Broken) | Err(Ended::Before) => Some(Progress::Fail),
            Err(Ended::Now) => Some(Progress::Unavailable),
        }
    }

    /// Content is longer than what may be held.
    fn too_large(&self) -> Progress {
        match (self.side, LocalResponse::new(TOO_LARGE_STATUS, "")) {
            (Side::Request, Ok(response)) => Progress::Respond(Box::new(response)),
            _ => Progress::Fail,
        }
    }

    /// What to wait for.
    fn waiting(&self) -> Progress {
        match self.is_paused && (self.has_ended || self.has_calls) {
            true => Progress::Defer,
            false => Progress::Continue,
        }
    }
}

impl Drop for Body {
    /// What is kept takes memory no longer.
    fn drop(&mut self) {
        if self.held > 0 {
            let side = self.side;
            // an instance that ended keeps nothing
            let _ = self.stream.call(|instance, id| {
                if let Some(stream) = instance.host_mut().streams.get_mut(&id) {
                    stream.message(side).body = None;
                }
                Ok(())
            });
        }
    }
}

impl Transform for Body {
    fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        if self.is_paused {
            let outcome = self.step(None);
            if let Some(end) = self.settle(outcome) {
                return end;
            }
        }
        if !self.flush(piece) {
            return Progress::Continue;
        }
        if self.has_ended && !self.is_paused {
            return Progress::Done;
        }
        let input = piece.input();
        if input.is_empty() && (self.has_ended || !piece.is_last()) {
            return self.waiting();
        }
        let room = self
            .stream
            .plugin
            .setup
            .body_bytes_max
            .saturating_sub(self.held);
        let count = input.len().min(room).min(PIECE_BYTES_MAX);
        if count == 0 && !input.is_empty() {
            return self.too_large();
        }
        let ends = piece.is_last() && count == input.len();
        let outcome = self.step(Some((&input[..count], ends)));
        piece.take(count);
        self.has_ended |= ends;
        if let Some(end) = self.settle(outcome) {
            return end;
        }
        match self.flush(piece) {
            true if self.has_ended && !self.is_paused => Progress::Done,
            true => self.waiting(),
            false => Progress::Continue,
        }
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (side, has_ended) = (self.side, self.has_ended);
        self.stream.poll(cx, side, |stream| {
            // without a call under way it waits for more content
            stream.is_decided(side) || (!has_ended && stream.calls == 0)
        })
    }
}

/// What stands in the place of a response whose head was made already: another one, or its end.
pub(crate) struct Instead(Option<LocalResponse>);

impl Instead {
    pub(crate) fn new(response: Option<LocalResponse>) -> Self {
        Self(response)
    }
}

impl Transform for Instead {
    fn transform(&mut self, _: &mut Piece<'_>) -> Progress {
        match self.0.take() {
            Some(response) => Progress::Respond(Box::new(response)),
            None => Progress::Fail,
        }
    }
}
