//! One request of a filter: its stream, and what becomes of its heads.

mod body;

use crate::apply::{FilterHead, FilterResponse, FormerHead};
use crate::guest::content::Content;
use crate::guest::properties::Facts;
use crate::guest::{Guest, StreamData};
use crate::pairs_of_head::Refused;
use crate::plugin::Plugin;
use crate::slot::{Ended, Readiness, Slot};
use body::{Body, Instead};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use weir_extend::{
    Answer, Call, Exchange, FieldError, Host, LocalResponse, RequestHead, ResponseHead,
};
use weir_wasm::{Action, CallError, ContextId, Finish, Instance, Pairs, Side};

/// Streams of an instance that the filter has not finished by itself. One beyond is deleted.
const PENDING_MAX: usize = 100;

/// The status of the response to a request whose stream the filter has reset.
const RESET_STATUS: u16 = 502;

/// A stream of an instance. It is finished when the last part of the request is dropped.
pub(crate) struct Stream {
    pub(crate) plugin: Arc<Plugin>,
    slot: Arc<Slot>,
    host: Rc<dyn Host>,
    /// The instance that has it, and its number there.
    place: Cell<Option<(u64, ContextId)>>,
}

impl Stream {
    /// Calls the instance for this stream.
    ///
    /// # Errors
    ///
    /// The instance has ended.
    pub(crate) fn call<R>(
        &self,
        call: impl FnOnce(&mut Instance<Guest>, ContextId) -> Result<R, CallError>,
    ) -> Result<R, Ended> {
        let (generation, id) = self.place.get().ok_or(Ended::Before)?;
        let called = self
            .slot
            .call(&self.host, generation, |instance| call(instance, id));
        if called.is_err() {
            self.place.set(None);
        }
        called
    }

    /// Ready when `is_ready` says so of the stream, and when it is gone.
    pub(crate) fn poll(
        &self,
        cx: &mut Context<'_>,
        side: Side,
        is_ready: impl FnOnce(&mut StreamData) -> bool,
    ) -> Poll<()> {
        let polled = self.call(|instance, id| {
            let Some(stream) = instance.host_mut().streams.get_mut(&id) else {
                return Ok(Poll::Ready(()));
            };
            if is_ready(stream) {
                return Ok(Poll::Ready(()));
            }
            stream.message(side).waker = Some(cx.waker().clone());
            Ok(Poll::Pending)
        });
        polled.unwrap_or(Poll::Ready(()))
    }

    /// Room for content that is kept for the filter.
    fn new_content(&self) -> Content {
        Content::new(self.host.memory())
    }

    /// The generation of the instance that has the stream, or is to have it.
    ///
    /// # Errors
    ///
    /// There is none: what to answer.
    fn generation(&self) -> Result<u64, Answer> {
        if let Some((generation, _)) = self.place.get() {
            return Ok(generation);
        }
        match self.slot.ensure(&self.plugin, &self.host, None) {
            Readiness::Ready(generation) => Ok(generation),
            Readiness::Starting => Err(Answer::Defer),
            Readiness::Failed => Err(Answer::Fail),
        }
    }

    /// Calls the instance for this stream, which is created if there is none yet.
    ///
    /// # Errors
    ///
    /// There is no instance, or it has ended: what to answer.
    fn begin<R>(
        &self,
        facts: &Call,
        call: impl FnOnce(&mut Instance<Guest>, ContextId) -> Result<R, CallError>,
    ) -> Result<R, Answer> {
        let generation = self.generation()?;
        let called = self.slot.call(&self.host, generation, |instance| {
            let id = match self.place.get() {
                Some((_, id)) => id,
                None => {
                    let id = instance.create_stream()?;
                    self.place.set(Some((generation, id)));
                    instance.host_mut().begin(id, Facts::of(facts));
                    id
                }
            };
            call(instance, id)
        });
        called.map_err(|error| {
            self.place.set(None);
            ended(error)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // an instance that ended has nothing left of it
        let _ = self.call(|instance, id| {
            if let Some(stream) = instance.host_mut().streams.get_mut(&id) {
                (stream.request.body, stream.response.body) = (None, None);
            }
            let is_crowded = instance.host().pending >= PENDING_MAX;
            match instance.finish_stream(id)? {
                Finish::Finished => Ok(()),
                Finish::Pending if is_crowded => instance.delete_stream(id),
                Finish::Pending => {
                    instance.host_mut().set_pending(id);
                    Ok(())
                }
            }
        });
    }
}

/// What became of a message after a callback.
pub(crate) enum Outcome<T> {
    /// It goes on, so changed.
    Continue(T),
    /// It waits.
    Pause,
    /// The filter answers the request.
    Respond(weir_wasm::LocalResponse),
    /// The filter resets the stream.
    Close,
    /// What the filter wants cannot be done.
    Broken,
}

/// What became of a message: `action` is what its callback gave, `None` if there was no callback
/// since it paused. `take` gives what goes on.
pub(crate) fn settle<T>(
    instance: &mut Instance<Guest>,
    id: ContextId,
    side: Side,
    action: Option<Action>,
    take: impl FnOnce(&mut StreamData) -> T,
) -> Outcome<T> {
    let Some(stream) = instance.host_mut().streams.get_mut(&id) else {
        return Outcome::Broken;
    };
    if stream.is_broken {
        return Outcome::Broken;
    }
    if let Some(response) = stream.answer.take() {
        return Outcome::Respond(response);
    }
    if stream.is_closed {
        return Outcome::Close;
    }
    let is_continued = std::mem::take(&mut stream.message(side).is_continued);
    match action {
        Some(Action::Pause) => Outcome::Pause,
        None if !is_continued => Outcome::Pause,
        Some(Action::Continue) | None => Outcome::Continue(take(stream)),
    }
}

/// How far a message has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The filter was not called for it.
    New,
    /// The filter has paused it.
    Paused,
    /// It went on.
    Passed,
}

/// One request.
pub(crate) struct FilterExchange {
    stream: Rc<Stream>,
    request: Phase,
    response: Phase,
    /// The head of the request as the filter was given it, when another response takes the place
    /// of one that the filter has seen.
    asked: Option<Pairs>,
    /// No content follows the head of the request.
    asks_alone: bool,
    /// The response has no content whatever its head says.
    is_head: bool,
}

impl FilterExchange {
    pub(crate) fn new(plugin: &Arc<Plugin>, slot: Arc<Slot>, host: &Rc<dyn Host>) -> Self {
        Self {
            stream: Rc::new(Stream {
                plugin: Arc::clone(plugin),
                slot,
                host: Rc::clone(host),
                place: Cell::new(None),
            }),
            request: Phase::New,
            response: Phase::New,
            asked: None,
            asks_alone: true,
            is_head: false,
        }
    }

    /// Calls the filter for a head, if it was not yet (`is_new`), and says what became of the
    /// message. A head that goes on is changed as the filter has changed it.
    ///
    /// # Errors
    ///
    /// There is no instance, or it has ended: what to answer.
    fn head(
        &self,
        (side, call): (Side, &Call),
        head: &mut impl FilterHead,
        is_new: bool,
        ends: bool,
    ) -> Result<Outcome<Result<(), Refused>>, Answer> {
        self.stream.begin(call, |instance, id| {
            let mut action = None;
            if is_new {
                if let Some(stream) = instance.host_mut().streams.get_mut(&id) {
                    let message = stream.message(side);
                    if head.put(&mut message.fields).is_err() {
                        return Ok(Outcome::Broken);
                    }
                    message.is_open = true;
                }
                action = Some(match side {
                    Side::Request => instance.request_headers(id, ends)?,
                    Side::Response => instance.response_headers(id, ends)?,
                });
            }
            let counts = &self.stream.plugin.setup.counts;
            Ok(settle(instance, id, side, action, |stream| {
                let message = stream.message(side);
                message.is_open = false;
                head.apply(message.fields.changes(), counts)
            }))
        })
    }

    /// Another response comes in the place of one that was not sent on, such as that to a
    /// validation that was of no use. The filter is done with its stream, and sees this one on
    /// another, which begins with the head of the request.
    ///
    /// # Errors
    ///
    /// The filter was called for the request, and the head that it was given is gone with its
    /// instance.
    fn start_over(&mut self) -> Result<(), Answer> {
        let former = &self.stream;
        let asked = former.call(|instance, id| {
            let stream = instance.host_mut().streams.get(&id);
            Ok(stream.and_then(|stream| stream.request.fields.given()))
        });
        self.asked = asked.map_err(ended)?;
        self.stream = Rc::new(Stream {
            plugin: Arc::clone(&former.plugin),
            slot: Arc::clone(&former.slot),
            host: Rc::clone(&former.host),
            place: Cell::new(None),
        });
        (self.request, self.response) = (Phase::New, Phase::New);
        Ok(())
    }

    /// Has a stream that was started over begin with the head of the request. That was sent
    /// already: what the filter would do with it now cannot be done.
    fn ask_again(&mut self, call: &Call) -> Result<(), Answer> {
        if self.request != Phase::New || self.asked.is_none() {
            return Ok(());
        }
        // it is not taken before there is an instance
        self.stream.generation()?;
        if let Some(asked) = self.asked.take() {
            let mut asked = FormerHead(asked);
            let (side, ends) = (Side::Request, self.asks_alone);
            match self.head((side, call), &mut asked, true, ends)? {
                Outcome::Continue(_) => self.request = Phase::Passed,
                _ => return Err(Answer::Fail),
            }
        }
        Ok(())
    }

    fn response(&mut self, head: &mut ResponseHead<'_>, call: &Call, is_sent: bool) -> Answer {
        if self.response == Phase::Passed
            && let Err(answer) = self.start_over()
        {
            return answer;
        }
        if let Err(answer) = self.ask_again(call) {
            return answer;
        }
        let ends = self.is_head || has_no_content(head);
        let is_new = self.response == Phase::New;
        let mut seen = FilterResponse {
            head: &mut *head,
            may_change_status: !is_sent,
        };
        let outcome = match self.head((Side::Response, call), &mut seen, is_new, ends) {
            Ok(outcome) => outcome,
            Err(answer) => return answer,
        };
        let instead = match outcome {
            Outcome::Pause => {
                self.response = Phase::Paused;
                return Answer::Defer;
            }
            Outcome::Broken => return Answer::Fail,
            Outcome::Continue(applied) => {
                self.response = Phase::Passed;
                if applied.is_err() {
                    return Answer::Fail;
                }
                self.pass_response(head, ends);
                return Answer::Continue;
            }
            Outcome::Respond(response) => local_response(response),
            Outcome::Close if is_sent => None,
            Outcome::Close => reset_response(),
        };
        self.response = Phase::Passed;
        match instead {
            Some(response) if !is_sent => Answer::Respond(response),
            // the head is not sent yet: it is replaced before the first byte of the content
            instead if self.stream.plugin.response_body && !ends => {
                head.inspect(Box::new(Instead::new(instead)));
                Answer::Continue
            }
            _ => Answer::Fail,
        }
    }

    /// The response goes on: the filter gets its content, if it wants that.
    fn pass_response(&self, head: &mut ResponseHead<'_>, ends: bool) {
        let plugin = &self.stream.plugin;
        // the head of a response to HEAD is that of the response to GET
        if !plugin.response_body || (ends && !self.is_head) {
            return;
        }
        if head.check_transform().is_err() {
            self.keep_body(Side::Response);
            head.inspect(self.body(Side::Response));
            return;
        }
        let body = self.body(Side::Response);
        let set = match plugin.plain {
            true => head.transform_plain(body),
            false => head.transform(body),
        };
        if set.is_err() {
            // a coding that cannot be undone: the filter sees it as it is
            self.keep_body(Side::Response);
            head.inspect(self.body(Side::Response));
        }
    }

    fn body(&self, side: Side) -> Box<Body> {
        Box::new(Body::new(Rc::clone(&self.stream), side))
    }

    /// The filter gets content that it must not change.
    fn keep_body(&self, side: Side) {
        // an instance that ended fails the message at its first byte
        let _ = self.stream.call(|instance, id| {
            if let Some(stream) = instance.host_mut().streams.get_mut(&id) {
                stream.message(side).keeps_body = true;
            }
            Ok(())
        });
    }
}

impl Exchange for FilterExchange {
    fn request_received(&mut self, head: &mut RequestHead<'_>, call: &Call) -> Answer {
        let is_new = self.request == Phase::New;
        if is_new {
            self.is_head = head.method() == "HEAD";
            self.asks_alone = !head.has_content();
        }
        let ends = !head.has_content();
        let outcome = match self.head((Side::Request, call), head, is_new, ends) {
            Ok(outcome) => outcome,
            Err(answer) => return answer,
        };
        match outcome {
            Outcome::Continue(Ok(())) => {}
            Outcome::Continue(Err(Refused)) => {
                self.request = Phase::Passed;
                return Answer::Fail;
            }
            Outcome::Pause => {
                self.request = Phase::Paused;
                return Answer::Defer;
            }
            Outcome::Respond(response) => {
                self.request = Phase::Passed;
                return local_response(response).map_or(Answer::Fail, Answer::Respond);
            }
            Outcome::Close => return reset_response().map_or(Answer::Fail, Answer::Respond),
            Outcome::Broken => return Answer::Fail,
        }
        self.request = Phase::Passed;
        if self.stream.plugin.request_body && head.has_content() {
            let body = self.body(Side::Request);
            if head.transform(body).is_err() {
                self.keep_body(Side::Request);
                head.inspect(self.body(Side::Request));
            }
        }
        Answer::Continue
    }

    fn response_received(&mut self, head: &mut ResponseHead<'_>, call: &Call) -> Answer {
        self.response(head, call, false)
    }

    fn response_sent(&mut self, head: &mut ResponseHead<'_>, call: &Call) -> Answer {
        self.response(head, call, true)
    }

    fn poll_deferred(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let stream = &*self.stream;
        if stream.place.get().is_none() {
            let waker = Some(cx.waker());
            return match stream.slot.ensure(&stream.plugin, &stream.host, waker) {
                Readiness::Starting => Poll::Pending,
                Readiness::Ready(_) | Readiness::Failed => Poll::Ready(()),
            };
        }
        let side = match self.request {
            Phase::Paused => Side::Request,
            Phase::New | Phase::Passed => Side::Response,
        };
        stream.poll(cx, side, |data| data.is_decided(side))
    }
}

/// The answer for an instance that has ended. Only the request in which it did tells the breaker.
fn ended(error: Ended) -> Answer {
    match error {
        Ended::Now => Answer::Unavailable,
        Ended::Before => Answer::Fail,
    }
}

/// Whether no content follows a head, to a request that is not a HEAD.
fn has_no_content(head: &ResponseHead<'_>) -> bool {
    matches!(head.status(), 204 | 304) || head.fields.get("content-length") == Some(b"0")
}

/// A response that a filter made; `None` if no module can answer so.
pub(crate) fn local_response(response: weir_wasm::LocalResponse) -> Option<LocalResponse> {
    let mut made = LocalResponse::new(response.status, response.body).ok()?;
    for (name, value) in response.fields.iter() {
        if name.starts_with(b":") {
            continue;
        }
        match made
            .fields
            .add(str::from_utf8(name).ok()?, value.trim_ascii())
        {
            Ok(()) | Err(FieldError::Reserved) => {}
            Err(_) => return None,
        }
    }
    Some(made)
}

/// The response to a request whose stream the filter has reset: whatever becomes of a failure, it
/// does not go on.
fn reset_response() -> Option<LocalResponse> {
    LocalResponse::new(RESET_STATUS, "").ok()
}
