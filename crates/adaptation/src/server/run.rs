//! One module at work on one message, without a proxy: its hooks are called in order, and the
//! content passes what it sets.

use super::stage::{Stage, StageError, Turn};
use std::task::{Context, Poll};
use weir_extend::{
    Answer, Call, Codings, Exchange, Hook, LocalResponse, PIECE_BYTES_MAX, RequestHead,
    ResponseHead, Transform,
};

/// Calls at one hook that a module may defer: one that always defers would never end.
const DEFERRALS_MAX: usize = 64;

/// A module at work on a message.
pub(crate) struct Run {
    exchange: Box<dyn Exchange>,
    call: Call,
    /// Bytes of content that the module may leave for a later call.
    hold_bytes: usize,
    /// The request, or the one that the response answers.
    pub(crate) request: RequestHead<'static>,
    /// The response, if the message is one.
    pub(crate) response: Option<ResponseHead<'static>>,
    /// The hooks that are called.
    hooks: Vec<Hook>,
    /// How many of them are done.
    done: usize,
    deferrals: usize,
    is_deferred: bool,
    /// What the content passes, in its direction: decoders and transforms.
    stages: Vec<Stage>,
    /// How many hooks were done when the last transform was set.
    set_at: usize,
}

/// What came of a message.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It stays as it was.
    Unchanged,
    /// Its head, or its content, is another one.
    Changed,
    /// The module answers the request.
    Respond(LocalResponse),
    /// The module failed.
    Failed,
}

impl Run {
    /// Of a request, for a module that may leave so many bytes of content for a later call.
    pub(crate) fn of_request(
        exchange: Box<dyn Exchange>,
        (call, hold_bytes): (Call, usize),
        hooks: Vec<Hook>,
        request: RequestHead<'static>,
    ) -> Self {
        Self {
            exchange,
            call,
            hold_bytes,
            request,
            response: None,
            hooks,
            done: 0,
            deferrals: 0,
            is_deferred: false,
            stages: Vec::new(),
            set_at: 0,
        }
    }

    /// Of a response to `request`, for which the module was called before.
    pub(crate) fn of_response(
        exchange: Box<dyn Exchange>,
        call: (Call, usize),
        hooks: Vec<Hook>,
        request: RequestHead<'static>,
        response: ResponseHead<'static>,
    ) -> Self {
        Self {
            response: Some(response),
            ..Self::of_request(exchange, call, hooks, request)
        }
    }

    /// The exchange, for the response to this request.
    pub(crate) fn into_exchange(self) -> Box<dyn Exchange> {
        self.exchange
    }

    /// Whether the content passes the module.
    pub(crate) fn is_transformed(&self) -> bool {
        !self.stages.is_empty()
    }

    /// Bytes of content that can be given now.
    pub(crate) fn room(&self) -> usize {
        self.stages.first().map_or(0, Stage::room)
    }

    /// Gives content to the first stage, and nothing behind it if it `is_last`. How many bytes it
    /// took.
    pub(crate) fn give(&mut self, content: &[u8], is_last: bool) -> usize {
        match self.stages.first_mut() {
            Some(first) => {
                let count = content.len().min(first.room());
                first.give(&content[..count], is_last && count == content.len());
                count
            }
            None => 0,
        }
    }

    /// Calls the hooks. Pending while the module waits, also for content that can be given.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            if !self.is_deferred {
                match self.call_next() {
                    None => continue,
                    Some(Answer::Defer) => {}
                    Some(Answer::Continue) => {
                        self.stages.iter_mut().for_each(Stage::open);
                        return Poll::Ready(self.outcome());
                    }
                    Some(Answer::Respond(response)) => {
                        return Poll::Ready(Outcome::Respond(response));
                    }
                    Some(Answer::Fail | Answer::Unavailable) => {
                        return Poll::Ready(Outcome::Failed);
                    }
                }
            }
            let has_moved = match self.turn(cx, None) {
                Ok(has_moved) => has_moved,
                Err(StageError::Respond(response)) => {
                    return Poll::Ready(Outcome::Respond(*response));
                }
                Err(StageError::Failed) => return Poll::Ready(Outcome::Failed),
            };
            if self.exchange.poll_deferred(cx).is_ready() {
                self.is_deferred = false;
            } else if !has_moved {
                return Poll::Pending;
            }
        }
    }

    /// Calls the next hook once: `None` if there are more of them; [`Answer::Continue`] if not.
    fn call_next(&mut self) -> Option<Answer> {
        let Some(hook) = self.hooks.get(self.done).copied() else {
            return Some(Answer::Continue);
        };
        let answer = match (hook, &mut self.response) {
            (Hook::RequestReceived, _) => self
                .exchange
                .request_received(&mut self.request, &self.call),
            (Hook::RequestSent, _) => self.exchange.request_sent(&mut self.request, &self.call),
            (Hook::ResponseReceived, Some(head)) => {
                self.exchange.response_received(head, &self.call)
            }
            (Hook::ResponseSent, Some(head)) => self.exchange.response_sent(head, &self.call),
            _ => Answer::Continue,
        };
        let mut is_set = true;
        if let Some(transform) = self.request.take_transform() {
            is_set &= self.set(&Codings::none(), transform);
        }
        let response = self.response.as_mut();
        if let Some((codings, transform)) = response.and_then(ResponseHead::take_transform) {
            is_set &= self.set(&codings, transform);
        }
        if !is_set {
            return Some(Answer::Fail);
        }
        match answer {
            Answer::Continue => {
                self.done += 1;
                self.deferrals = 0;
                None
            }
            Answer::Defer if self.deferrals >= DEFERRALS_MAX => Some(Answer::Fail),
            Answer::Defer => {
                self.deferrals += 1;
                self.is_deferred = true;
                Some(Answer::Defer)
            }
            answer => Some(answer),
        }
    }

    /// Has the content pass `transform`, with `codings` undone in front of it. One that the module
    /// has set at the same hook is replaced; if that has taken coded content, these cannot be
    /// undone any more: `false`.
    fn set(&mut self, codings: &Codings, transform: Box<dyn Transform>) -> bool {
        let mut given = None;
        if let Some(last) = self.stages.last_mut() {
            if self.set_at != self.done {
                last.open();
            } else if codings.is_empty() {
                last.replace(transform);
                return true;
            } else {
                given = self.stages.pop().and_then(Stage::into_untouched);
                if given.is_none() {
                    return false;
                }
            }
        }
        let hold_bytes = self.hold_bytes;
        let first = self.stages.len();
        let decoders = codings.iter();
        let decoders = decoders.map(|coding| Stage::decoder(coding, hold_bytes));
        self.stages.extend(decoders);
        self.stages.push(Stage::new(transform, hold_bytes));
        self.set_at = self.done;
        if let Some((content, is_last)) = given {
            self.stages[first].give(&content, is_last);
        }
        true
    }

    fn outcome(&self) -> Outcome {
        let is_changed = match &self.response {
            Some(head) => head.fields.is_changed() || head.status_is_changed(),
            None => self.request.is_changed(),
        };
        match is_changed || self.is_transformed() {
            true => Outcome::Changed,
            false => Outcome::Unchanged,
        }
    }

    /// Has the stages work, and puts at most a piece into `out`, which is empty. Ready with whether
    /// that is the end; pending if content is needed that can be given, or a stage waits.
    pub(crate) fn poll_content(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Result<bool, StageError>> {
        loop {
            let has_moved = match self.turn(cx, Some(out)) {
                Ok(has_moved) => has_moved,
                Err(error) => return Poll::Ready(Err(error)),
            };
            if self.stages.last().is_none_or(Stage::is_done) {
                return Poll::Ready(Ok(true));
            }
            if out.len() >= PIECE_BYTES_MAX || (!has_moved && !out.is_empty()) {
                return Poll::Ready(Ok(false));
            }
            if !has_moved {
                return Poll::Pending;
            }
        }
    }

    /// Calls the last stage that can do something, once. Whether one could.
    fn turn(
        &mut self,
        cx: &mut Context<'_>,
        mut out: Option<&mut Vec<u8>>,
    ) -> Result<bool, StageError> {
        for at in (0..self.stages.len()).rev() {
            let (before, behind) = self.stages.split_at_mut(at + 1);
            let Some(stage) = before.last_mut() else {
                continue;
            };
            let turn = match (behind.first_mut(), &mut out) {
                (Some(next), _) => {
                    let mut between = Vec::new();
                    let turn = stage.poll(cx, &mut between, next.room(), true)?;
                    next.give(&between, stage.is_done());
                    turn
                }
                (None, Some(out)) => {
                    let room = PIECE_BYTES_MAX.saturating_sub(out.len());
                    stage.poll(cx, out, room, true)?
                }
                (None, None) => stage.poll(cx, &mut Vec::new(), 0, false)?,
            };
            if turn == Turn::Moved {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
