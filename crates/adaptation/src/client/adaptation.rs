//! What a service makes of one message, as it is polled by the exchange and the transform of the
//! module.
//!
//! Content that may still have to be used as it was is not taken: the proxy keeps it, and hands it
//! over again with more. So the proxy counts what is held, a request on a connection that turns out
//! to be closed can be repeated, and the message can pass without the service if that fails before
//! content has come back. Content that must not be changed is kept until the service has sent it
//! back, and compared with that.

use super::connections::Lease;
use super::conversation::Conversation;
use super::failure::Failure;
use super::service::Service;
use crate::caller::{self, AnswerNotes, CALLER};
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use weir_extend::{Hook, ListenerMode, PIECE_BYTES_MAX, Piece, Progress};
use weir_icap::{AdaptRequest, ClientEvent, EncapsulatedHeads, Subject, Transaction};
use weir_semantics::FieldLine;

/// Most bytes of content of a response that a service answers a request with.
pub(crate) const RESPONSE_BYTES_MAX: usize = weir_extend::RESPONSE_CONTENT_BYTES_MAX;

/// Bytes that are offered at once, at least, while content is kept: the proxy hands it all over for
/// each.
const OFFER_BYTES_MIN: usize = 16 * 1024;

/// The exchange is polled so often before content that is there already is handed over. Sent with
/// the head it costs no system call of its own, and the server is woken once.
const HELD_POLLS: u8 = 2;

/// A message, as it is sent.
#[derive(Debug)]
pub(crate) struct Message {
    /// The head of the request; of a response the one that it answers, if that is known.
    pub(crate) request: Option<Vec<u8>>,
    /// The head of the response, if it is one.
    pub(crate) response: Option<Vec<u8>>,
    pub(crate) has_content: bool,
    pub(crate) preview: Option<u32>,
    pub(crate) allow_204: bool,
    /// Bytes of content that are kept until it comes back, at most.
    pub(crate) keep_bytes: usize,
    /// The content must come back as it was.
    pub(crate) is_inspected: bool,
    /// The address of the client, for the service.
    pub(crate) client: Option<String>,
    /// What else the process of a module is told, if the service is one.
    pub(crate) called: Option<CalledHook>,
}

/// A hook at which a module is called in its process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CalledHook {
    pub(crate) hook: Hook,
    pub(crate) mode: ListenerMode,
}

/// What the service said.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The message is used as it was.
    Unmodified,
    /// It is replaced; `true`: by one with content.
    Modified(Box<EncapsulatedHeads>, bool),
}

/// One message at a service.
pub(crate) struct Adaptation {
    service: Arc<Service>,
    message: Message,
    stage: Stage,
    /// How often nothing is sent yet, as content may be handed over that can be sent with the head.
    held_polls: u8,
    verdict: Option<Verdict>,
    failure: Option<Failure>,
    /// What the process of a module says beside the verdict.
    notes: AnswerNotes,
    /// The service wants the content behind the preview.
    wants_content: bool,
    /// That is waited for, and the exchange has not been told.
    reports_want: bool,
    /// Bytes of the content that is handed over which were offered and not taken.
    offered: usize,
    /// Content was taken, so that the request cannot be repeated.
    has_taken: bool,
    /// What was offered is kept until content comes back.
    keeps: bool,
    /// The same, until it has come back itself: it is compared.
    compares: bool,
    /// Content of the answer has come, or its end.
    has_begun: bool,
    /// The end of the content was offered.
    is_finished: bool,
    /// There is content, or its end, that the service has no room for.
    has_more: bool,
    /// Content of the answer that was not put out.
    out: Vec<u8>,
    /// Most bytes of it.
    out_bytes_max: usize,
    /// All of the answer is there.
    is_whole: bool,
    /// The exchange goes on with what the service made of the head.
    is_decided: bool,
    /// The last one that waited.
    waker: Option<Waker>,
    /// The exchange, or the transform, was woken as it can go on, and did not yet.
    is_woken: bool,
}

type Connecting = Pin<Box<dyn Future<Output = Result<Lease, Failure>>>>;

enum Stage {
    Connecting(Connecting),
    Talking(Box<Conversation>),
    Over,
}

impl Adaptation {
    /// Of `message`, by `service`.
    pub(crate) fn new(service: Arc<Service>, message: Message) -> Self {
        let held_polls = match message.has_content && message.called.is_none() {
            true => HELD_POLLS,
            false => 0,
        };
        let keeps = message.has_content && message.called.is_none();
        let compares = keeps && message.is_inspected;
        let (stage, failure) = match service.connections().try_check_out() {
            Some(lease) => match begin(&service, &message, lease) {
                Ok(conversation) => (Stage::Talking(Box::new(conversation)), None),
                Err(failure) => (Stage::Over, Some(failure)),
            },
            None => {
                let connecting = Arc::clone(service.connections()).check_out(false);
                (Stage::Connecting(Box::pin(connecting)), None)
            }
        };
        Self {
            service,
            message,
            stage,
            held_polls,
            verdict: None,
            failure,
            notes: AnswerNotes::default(),
            wants_content: false,
            reports_want: false,
            offered: 0,
            has_taken: false,
            keeps,
            compares,
            has_begun: false,
            is_finished: false,
            has_more: false,
            out: Vec::new(),
            out_bytes_max: PIECE_BYTES_MAX,
            is_whole: false,
            is_decided: false,
            waker: None,
            is_woken: false,
        }
    }

    /// What the service said, if it has.
    pub(crate) const fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// Why it failed, if it has.
    pub(crate) const fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// What the process of a module says beside the verdict.
    pub(crate) const fn notes(&self) -> &AnswerNotes {
        &self.notes
    }

    /// [`Self::poll_head`] is to be ready also when the service wants content.
    pub(crate) const fn report_want(&mut self) {
        self.reports_want = true;
    }

    /// Whether the service wants content. Asked once.
    pub(crate) fn take_want(&mut self) -> bool {
        std::mem::take(&mut self.reports_want) && self.wants_content
    }

    /// The exchange goes on with the verdict: what fails from here on fails the content.
    pub(crate) const fn decide(&mut self) {
        self.is_decided = true;
    }

    /// It is given up: the connection is closed.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.stage = Stage::Over;
    }

    /// All content of the answer is to be collected, as it answers the request.
    pub(crate) fn collect(&mut self) {
        (self.keeps, self.compares) = (false, false);
        self.out_bytes_max = RESPONSE_BYTES_MAX + 1;
    }

    /// Whether content that must not be changed can be compared with what comes back: the message
    /// keeps its content, and all that was offered is kept.
    pub(crate) fn can_compare(&self) -> bool {
        let has_content = matches!(self.verdict, Some(Verdict::Modified(_, true)));
        has_content == self.message.has_content && (self.compares || !has_content)
    }

    /// The whole content of the answer, once it is there.
    ///
    /// # Errors
    ///
    /// It is too long.
    pub(crate) fn collected(&mut self) -> Option<Result<Vec<u8>, Failure>> {
        if self.out.len() > RESPONSE_BYTES_MAX {
            let failure = Failure::Adapted("a response that is too long");
            return Some(Err(failure));
        }
        self.is_whole.then(|| Ok(std::mem::take(&mut self.out)))
    }

    /// Ready when the exchange can go on: with a verdict, or with the whole answer if that is
    /// collected.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.drive(cx);
        if self.is_head_ready() {
            self.is_woken = false;
            return Poll::Ready(());
        }
        self.wait(cx, self.is_content_ready())
    }

    /// Ready when the transform can go on.
    pub(crate) fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.drive(cx);
        if self.is_content_ready() {
            return Poll::Ready(());
        }
        self.wait(cx, self.is_head_ready())
    }

    /// Ready when the service has answered, although it has taken all that has come so far.
    pub(crate) fn poll_put(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.drive(cx);
        if self.is_decided && (self.failure.is_some() || self.can_put()) {
            return Poll::Ready(());
        }
        self.wait(cx, self.is_head_ready())
    }

    /// Exchange and transform are polled one after the other, and each may find what the other one
    /// waits for: that is polled once more, if the `other_is_ready`.
    fn wait(&mut self, cx: &Context<'_>, other_is_ready: bool) -> Poll<()> {
        if let Some(waker) = &mut self.waker {
            waker.clone_from(cx.waker());
        } else {
            self.waker = Some(cx.waker().clone());
        }
        if other_is_ready && !self.is_woken {
            self.is_woken = true;
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn is_head_ready(&self) -> bool {
        let is_collecting = self.is_collecting();
        let is_collected = self.is_whole || self.out.len() > RESPONSE_BYTES_MAX;
        self.failure.is_some()
            || (self.verdict.is_some() && !is_collecting && !self.awaits_begin())
            || (self.verdict.is_some() && is_collecting && is_collected)
            || (self.reports_want && self.wants_content)
    }

    fn is_content_ready(&self) -> bool {
        // before the head is decided on there is no room for content
        (self.is_decided && (self.failure.is_some() || self.can_put()))
            || self.is_unmodified()
            || self.has_room()
            || (self.offered > 0 && !self.must_keep())
    }

    /// Whether content has come back, or its end.
    const fn can_put(&self) -> bool {
        self.is_whole || (!self.out.is_empty() && !self.is_collecting())
    }

    /// Whether the head waits for the content that follows it: a service that fails in between can
    /// still be left out.
    fn awaits_begin(&self) -> bool {
        let has_content = matches!(self.verdict, Some(Verdict::Modified(_, true)));
        has_content && self.keeps && !self.has_begun
    }

    /// Whether what was offered may still have to be used as it was, or is to be compared.
    fn must_keep(&self) -> bool {
        self.may_be_unmodified() || self.compares || (self.keeps && !self.has_begun)
    }

    const fn is_collecting(&self) -> bool {
        self.out_bytes_max > PIECE_BYTES_MAX
    }

    const fn is_unmodified(&self) -> bool {
        matches!(self.verdict, Some(Verdict::Unmodified))
    }

    /// Whether there is content that the service takes now.
    fn has_room(&self) -> bool {
        let Stage::Talking(conversation) = &self.stage else {
            return false;
        };
        let transaction = &conversation.transaction;
        let enough = if self.offered > 0 { OFFER_BYTES_MIN } else { 1 };
        let has_room = transaction.room() >= enough || transaction.unsent().is_empty();
        self.has_more && transaction.takes_content() && has_room
    }

    /// Whether what was offered may still have to be used as it was.
    fn may_be_unmodified(&self) -> bool {
        match &self.stage {
            Stage::Connecting(_) => true,
            Stage::Talking(conversation) => conversation.transaction.may_be_unmodified(),
            Stage::Over => false,
        }
    }

    /// Offers content, and puts out what the service made of it.
    pub(crate) fn transform(&mut self, piece: &mut Piece<'_>) -> Progress {
        self.is_woken = false;
        let before = (piece.taken(), piece.room());
        let was_ready = self.is_head_ready();
        self.offer(piece);
        let waker = self.waker.clone().unwrap_or_else(|| Waker::noop().clone());
        self.drive(&mut Context::from_waker(&waker));
        if was_ready != self.is_head_ready() {
            // the exchange waits for it
            waker.wake_by_ref();
        }
        if self.failure.is_some() {
            return self.failure_progress();
        }
        if self.is_unmodified() {
            piece.pass(usize::MAX);
            return match piece.is_last() && piece.input().is_empty() {
                true => Progress::Done,
                false => Progress::Continue,
            };
        }
        self.offer(piece);
        if self.compares
            && self.verdict.is_some()
            && let Err(failure) = self.compare(piece)
        {
            self.fail(failure);
            waker.wake_by_ref();
            return self.failure_progress();
        }
        // the exchange decides before content comes out
        if self.is_collecting() && self.is_whole {
            return Progress::Done;
        }
        if self.verdict.is_some() && !self.is_collecting() && !self.compares {
            let count = piece.put(&self.out);
            self.out.drain(..count);
        }
        let is_compared = !self.compares || (piece.is_last() && piece.input().is_empty());
        if is_compared && self.is_whole && self.out.is_empty() && self.verdict.is_some() {
            return Progress::Done;
        }
        let has_moved = before != (piece.taken(), piece.room());
        // beyond what may be kept, something has to come back first
        let is_full = self.compares && piece.input().len() > self.message.keep_bytes;
        let awaits_content = !self.has_more && !piece.is_last() && !is_full;
        if has_moved || (awaits_content && self.out.is_empty()) {
            Progress::Continue
        } else {
            Progress::Defer
        }
    }

    /// What the transform answers for a failure. While the head is not decided on, the exchange
    /// answers for it: the message may still go on without the service.
    fn failure_progress(&self) -> Progress {
        match &self.failure {
            Some(failure) if self.is_decided => failure.progress(),
            _ => Progress::Defer,
        }
    }

    /// Offers the part of the content that was not offered yet, and takes what need not be kept.
    fn offer(&mut self, piece: &mut Piece<'_>) {
        if self.is_unmodified() {
            return;
        }
        self.has_more = true;
        if let Stage::Talking(conversation) = &mut self.stage {
            let transaction = &mut conversation.transaction;
            let rest = &piece.input()[self.offered.min(piece.input().len())..];
            let count = transaction.offer(rest);
            self.offered += count;
            self.has_more = count < rest.len();
            if !self.has_more && piece.is_last() && !self.is_finished {
                transaction.finish_content();
                self.is_finished = true;
            }
        } else if matches!(self.stage, Stage::Over) && !self.compares {
            // the answer is over: the rest is of no use
            self.offered = piece.input().len();
            self.has_more = false;
        }
        if self.verdict.is_none() && piece.input().len() > self.message.keep_bytes {
            (self.keeps, self.compares) = (false, false);
        }
        if !self.must_keep() {
            self.has_taken |= self.offered > 0;
            piece.take(self.offered);
            self.offered = 0;
        }
    }

    /// Puts out the content that has come back, if it is the same.
    fn compare(&mut self, piece: &mut Piece<'_>) -> Result<(), Failure> {
        let input = piece.input();
        let count = input.len().min(self.out.len());
        let is_longer = self.out.len() > count && piece.is_last();
        let is_shorter = self.is_whole && input.len() > self.out.len();
        if is_longer || is_shorter || input[..count] != self.out[..count] {
            return Err(Failure::Unchangeable);
        }
        let count = piece.pass(count);
        self.out.drain(..count);
        self.offered = self.offered.saturating_sub(count);
        self.has_taken |= count > 0;
        Ok(())
    }

    /// Connects, sends and receives as far as it goes.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if self.failure.is_some() {
            return;
        }
        if let Stage::Connecting(connecting) = &mut self.stage {
            match connecting.as_mut().poll(cx) {
                Poll::Pending => return,
                Poll::Ready(lease) => {
                    match lease.and_then(|it| begin(&self.service, &self.message, it)) {
                        Ok(conversation) => self.stage = Stage::Talking(Box::new(conversation)),
                        Err(failure) => return self.fail(failure),
                    }
                }
            }
        }
        let Stage::Talking(conversation) = &mut self.stage else {
            return;
        };
        if self.out.len() >= self.out_bytes_max {
            return;
        }
        let has_offered = self.offered > 0 || self.has_taken || self.is_finished;
        if self.held_polls > 0 && !has_offered {
            self.held_polls -= 1;
            cx.waker().wake_by_ref();
            return;
        }
        self.held_polls = 0;
        let mut refused = None;
        let (service, out, out_bytes_max) = (&self.service, &mut self.out, self.out_bytes_max);
        let (verdict, notes) = (&mut self.verdict, &mut self.notes);
        let wants_content = &mut self.wants_content;
        let polled = conversation.poll(cx, |event| {
            match event {
                ClientEvent::Continue => *wants_content = true,
                ClientEvent::Unmodified(head) => {
                    service.note(&head);
                    *notes = AnswerNotes::read(&head);
                    *verdict = Some(Verdict::Unmodified);
                }
                ClientEvent::Modified {
                    answer,
                    heads,
                    has_content,
                } => {
                    service.note(&answer);
                    *notes = AnswerNotes::read(&answer);
                    *verdict = Some(Verdict::Modified(Box::new(heads), has_content));
                    if has_content {
                        // the exchange decides what becomes of it
                        return ControlFlow::Break(());
                    }
                }
                ClientEvent::Refused(head) => refused = Some(head.status()),
                ClientEvent::Content(content) => {
                    out.extend_from_slice(content);
                    if out.len() >= out_bytes_max {
                        return ControlFlow::Break(());
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        });
        match (polled, refused) {
            (_, Some(503)) => self.fail(Failure::Overloaded(503)),
            (_, Some(status)) => self.fail(Failure::Refused(status)),
            (Poll::Ready(Err(failure)), None) => self.failed(failure),
            (Poll::Ready(Ok(())), None) => self.ended(),
            (Poll::Pending, None) => {}
        }
        self.has_begun |= self.is_whole || !self.out.is_empty();
    }

    /// The answer may be over.
    fn ended(&mut self) {
        if let Stage::Talking(conversation) = &self.stage
            && conversation.is_over()
        {
            self.is_whole = true;
            if let Stage::Talking(conversation) = std::mem::replace(&mut self.stage, Stage::Over) {
                conversation.end();
            }
        }
    }

    /// Repeats the request on a new connection, if it may not have been seen, and all that was sent
    /// of it is still there.
    fn failed(&mut self, failure: Failure) {
        let Stage::Talking(conversation) = &self.stage else {
            return;
        };
        if failure == Failure::Closed && matches!(self.verdict, Some(Verdict::Modified(..))) {
            // a server has no other way to say that it cannot go on with this content, such as
            // some that is damaged; if it is gone, the next message finds it so
            return self.fail(Failure::Cut);
        }
        let may_repeat = failure == Failure::Closed && conversation.may_repeat();
        if !may_repeat || self.has_taken {
            return self.fail(failure);
        }
        let connecting = Arc::clone(self.service.connections()).check_out(true);
        self.stage = Stage::Connecting(Box::pin(connecting));
        self.offered = 0;
        self.is_finished = false;
        // the content is offered again
        self.has_more = self.message.has_content;
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

/// Begins the conversation about `message` on a connection.
fn begin(service: &Service, message: &Message, lease: Lease) -> Result<Conversation, Failure> {
    let subject = match (&message.response, &message.request) {
        (Some(head), request) => Subject::Response {
            request: request.as_deref(),
            head,
        },
        (None, Some(head)) => Subject::Request(head),
        (None, None) => return Err(Failure::Adapted("nothing of no message")),
    };
    let mut fields = Vec::new();
    if let Some(client) = &message.client {
        fields.push(FieldLine::new("X-Client-IP", client.as_bytes()));
    }
    let mut uri = service.uri();
    if let Some(called) = &message.called {
        let mode = caller::word_of(called.mode);
        fields.push(FieldLine::new(CALLER, mode.as_bytes()));
        uri = service.uri_at(called.hook);
    }
    let request = AdaptRequest {
        service: uri,
        fields: &fields,
        subject,
        has_content: message.has_content,
        preview: message.preview,
        allow_204: message.allow_204,
    };
    let transaction = Transaction::adapt(&request, service.limits());
    let mut transaction = transaction.map_err(Failure::Request)?;
    if message.called.is_some() {
        // the proxy hands over content once the module wants it
        transaction.content_follows();
    }
    Ok(Conversation::new(lease, transaction))
}
