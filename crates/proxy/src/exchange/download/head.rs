//! Receives a head of the response, interim or final.

use crate::exchange::download::source::{Fed, ResponseSource};
use crate::exchange::download::{Download, HopFailure, Parties, ResponseOutcome, Step, broken};
use crate::exchange::module_calls;
use crate::exchange::response_outcome::silent;
use crate::exchange::upload::progress::Sending;
use crate::modules::content_source::FedContent;
use crate::request::answer::AnswerReason;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker, ready};
use tokio::task::yield_now;
use weir_net::next_hops::SpentLink;
use weir_policy::fetch::AbortPolicy;
use weir_semantics::ProxyError;
use weir_wire::{BodyLength, HeadError, LineBuffer};

/// Bytes that are read at once for a client of HTTP/2 until the head is there: content that comes
/// with it is held for as long as the client does not take it, for each of its streams. It is
/// enough for most heads.
const SHARED_READ_MAX: usize = 4 * 1024;

/// The rest of a response is waited for if it has no more bytes than this, with its head.
const GATHERED_BYTES_MAX: usize = 16 * 1024;

/// Passes of the worker in which that is waited for.
const PASSES_MAX: u32 = 2;

/// The result of one read.
enum ReadResult {
    Bytes,
    /// Nothing yet: meanwhile all content of the request was sent.
    ContentSent,
    End,
    Failed,
    /// The link to the next hop has spent its quota.
    LinkSpent(Box<SpentLink>),
    Silent,
    /// No client waits for it any more.
    NotAwaited,
}

/// How much was received of a response, to decide on its head.
enum HeadProgress {
    Step(Step),
    /// The head is not whole.
    HeadMissing,
    /// The head is whole, and some content is missing.
    RestMissing,
}

impl Download<'_, '_> {
    /// Reads until a whole head is there, and decides on it.
    pub(super) async fn next_head(&mut self) -> Result<Step, HopFailure> {
        let heads = self.parties.exchange.settings.response_heads;
        let silence = self.parties.exchange.head_silence();
        // interim responses of another node or a sibling give it no more time, nor do those of a
        // next hop to what nothing has asked for
        let exchange = &self.parties.exchange;
        let is_hurried =
            exchange.lateral.is_some() || exchange.asks_sibling() || exchange.is_unasked;
        if self.interim == 0 || !is_hurried {
            self.parties.deadline.set(silence.as_duration());
        }
        loop {
            if self.parties.from_hop.is_worth_reading(&heads) {
                if self.parties.exchange.modules.is_some()
                    && self.former.is_none()
                    && let Err(outcome) = Box::pin(self.pass_modules()).await
                {
                    return Ok(Step::Final(outcome));
                }
                let mut passes_left = PASSES_MAX;
                loop {
                    let most = match passes_left {
                        0 => 0,
                        _ => self.rest_bytes_max(),
                    };
                    match self.try_step(most).map_err(HopFailure::Broken)? {
                        HeadProgress::Step(step) => return Ok(step),
                        HeadProgress::HeadMissing => break,
                        HeadProgress::RestMissing => {}
                    }
                    // behind the match: its value is not to be held meanwhile
                    yield_now().await;
                    passes_left = match self.receive_rest() {
                        true => passes_left - 1,
                        false => 0,
                    };
                }
            }
            match poll_fn(|cx| self.poll_read(cx)).await {
                ReadResult::Bytes => {}
                ReadResult::ContentSent => {
                    if self.parties.exchange.is_hooked() {
                        self.parties.exchange.run_hooks().await;
                    }
                }
                ReadResult::Silent => return Err(silent(silence)),
                ReadResult::LinkSpent(spent) => {
                    return Err(HopFailure::Broken(AnswerReason::link_spent(*spent)));
                }
                ReadResult::NotAwaited => return Ok(Step::Final(ResponseOutcome::ClientLeft)),
                ReadResult::End | ReadResult::Failed => return Err(self.ended()),
            }
        }
    }

    /// How long a response may be whose rest is waited for, with its head, bytes; 0: none is.
    ///
    /// Many next hops send content right behind its head. What comes of it while the worker does
    /// what else it has to do is stored and sent with the head, where it would need a fetch of its
    /// own, and two calls of the kernel to be sent.
    fn rest_bytes_max(&self) -> usize {
        let Parties {
            exchange,
            from_hop,
            sending,
            ..
        } = &self.parties;
        // of HTTP/2, frames that come together are taken together
        let is_fit =
            from_hop.is_http1() && sending.get() == Sending::Done && exchange.modules.is_none();
        match (is_fit, exchange.client.is_http2()) {
            (false, _) => 0,
            (true, true) => SHARED_READ_MAX,
            (true, false) => GATHERED_BYTES_MAX,
        }
    }

    /// Receives once, as far as the rest is waited for; whether something was there. An end or a
    /// fault of the connection shows again at the next read.
    fn receive_rest(&mut self) -> bool {
        let most = self.rest_bytes_max();
        let mut scratch = self.parties.worker.scratch();
        let from_hop = &mut self.parties.from_hop;
        let room = most.saturating_sub(from_hop.buffered_bytes());
        let room = room.min(scratch.len());
        // what comes later wakes the next read
        let mut cx = Context::from_waker(Waker::noop());
        match from_hop.poll_receive_head(&mut cx, &mut scratch[..room]) {
            Poll::Ready(Ok(count)) if count > 0 => {
                self.parties.exchange.log.received(count as u64);
                true
            }
            Poll::Ready(_) | Poll::Pending => false,
        }
    }

    /// The failure of a next hop that ends the response before there is a final head.
    fn ended(&self) -> HopFailure {
        let from_hop = &self.parties.from_hop;
        let has_begun = from_hop.has_received() || self.interim > 0;
        let reason = match from_hop.protocol_error() {
            Some(error) => broken(&error),
            None if has_begun => AnswerReason::new(
                ProxyError::HttpResponseIncomplete,
                "the next hop closed the connection within the response head",
            ),
            None => AnswerReason::new(
                ProxyError::ConnectionTerminated,
                "the next hop closed the connection without a response",
            ),
        };
        match has_begun {
            true => HopFailure::Broken(reason),
            false => HopFailure::Unanswered(reason),
        }
    }

    /// Has modules see the final head at the front of what was received, if all of it is there.
    async fn pass_modules(&mut self) -> Result<(), ResponseOutcome> {
        let Parties {
            exchange,
            from_hop,
            to_client,
            worker,
            sending,
            deadline,
            ..
        } = &mut self.parties;
        let received = from_hop.take_received();
        let mut lines = LineBuffer::new();
        let (method, heads) = (exchange.request.method, exchange.settings.response_heads);
        let parsed = received.head(method, &heads, &mut lines);
        let Ok(Some(found)) = parsed else {
            from_hop.return_received(received, None);
            return Ok(());
        };
        let head = &found.head;
        // framing in doubt is refused as it was received: a module's changes could hide that
        let Some(length) = found.length.ok().filter(|_| head.status >= 200) else {
            from_hop.return_received(received, None);
            return Ok(());
        };
        self.former = Some(found.former());
        let start = (head.version, head.status, head.reason);
        // while others wait for the response, or it is to be stored, the client may disconnect
        let is_for_client = to_client.is_some()
            && exchange.leader.is_none()
            && exchange.abort() != AbortPolicy::Finish;
        let mut source = ResponseSource {
            from_hop,
            received: &received,
            accepted: found.acceptance(),
            is_empty: length == BodyLength::None,
            worker,
            sending,
            deadline,
            silence: exchange.settings.config.limits.next_hop_silence,
            client: self.disconnect.as_mut().filter(|_| is_for_client),
            fed: Fed::default(),
        };
        let changed =
            module_calls::response_received(exchange, start, head.fields, &mut source).await;
        let fed = source.fed;
        exchange.log.handed_on(fed.buffered_bytes);
        exchange
            .log
            .relayed(fed.read_bytes, 0, 0, fed.framing_bytes);
        if let Some(outcome) = fed.end {
            return Err(outcome);
        }
        let changed = changed.map_err(|answer| ResponseOutcome::Module(Box::new(answer)))?;
        if let Some(mut content) = changed.content
            && length != BodyLength::None
        {
            self.former = Some(found.former().with_content_of(length));
            let FedContent { bytes, is_last } = content.take_fed();
            from_hop.set_filter(content, bytes, is_last);
        }
        if fed.is_begun {
            self.decided = Some(received.head_alone(found.bytes(), changed.head));
            return Ok(());
        }
        let received = match changed.head {
            Some(head) => received.with_head(found.bytes(), head),
            None => received,
        };
        from_hop.return_received(received, None);
        Ok(())
    }

    /// Receives once.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<ReadResult> {
        if self.parties.sending.get().is_given_up() {
            return Poll::Ready(ReadResult::NotAwaited);
        }
        if self.parties.sending.get() == Sending::LinkSpent {
            return Poll::Ready(self.failed());
        }
        if self.parties.sending.get() == Sending::Done && self.parties.exchange.content_sent() {
            return Poll::Ready(ReadResult::ContentSent);
        }
        let mut scratch = self.parties.worker.scratch();
        let most = match self.parties.exchange.client.is_http2() {
            true => SHARED_READ_MAX.min(scratch.len()),
            false => scratch.len(),
        };
        let from_hop = &mut self.parties.from_hop;
        match from_hop.poll_receive_head(cx, &mut scratch[..most]) {
            Poll::Pending => {
                if self.poll_not_awaited(cx).is_ready() {
                    return Poll::Ready(ReadResult::NotAwaited);
                }
                // while request content is sent, its own limits hold; the response is due from its
                // end on
                // a link that it waits for is no silence of the next hop
                let is_held_back = self.parties.from_hop.is_held_back();
                if self.parties.sending.get().is_under_way() || is_held_back {
                    let silence = self.parties.exchange.head_silence();
                    self.parties.deadline.set(silence.as_duration());
                }
                self.parties
                    .deadline
                    .poll_passed(cx)
                    .map(|()| ReadResult::Silent)
            }
            Poll::Ready(Err(_)) => Poll::Ready(self.failed()),
            Poll::Ready(Ok(0)) => Poll::Ready(ReadResult::End),
            Poll::Ready(Ok(count)) => {
                self.parties.exchange.log.received(count as u64);
                Poll::Ready(ReadResult::Bytes)
            }
        }
    }

    /// The connection is of no more use: for lack of a quota, if the link has none left.
    fn failed(&self) -> ReadResult {
        match self.parties.from_hop.link_spent() {
            Some(spent) => ReadResult::LinkSpent(Box::new(spent)),
            None => ReadResult::Failed,
        }
    }

    /// Ready once the client has disconnected and no other request waits for the response. Until
    /// the head is received, only this decides whether the fetch continues.
    fn poll_not_awaited(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Parties {
            exchange, sending, ..
        } = &self.parties;
        let (Some(disconnect), Sending::Done) = (&mut self.disconnect, sending.get()) else {
            return Poll::Pending;
        };
        ready!(disconnect.poll(cx));
        if exchange.abort() == AbortPolicy::Finish {
            return Poll::Pending;
        }
        match &exchange.leader {
            Some(leader) => leader.poll_not_awaited(cx),
            None => Poll::Ready(()),
        }
    }

    /// Decides on the head at the front of what was received. Nothing is decided while that is not
    /// whole, nor while the rest is missing of a response that has at most `most` bytes.
    fn try_step(&mut self, most: usize) -> Result<HeadProgress, AnswerReason> {
        let decided = self.decided.take();
        let is_decided = decided.is_some();
        let received = decided.unwrap_or_else(|| self.parties.from_hop.take_received());
        let mut lines = LineBuffer::new();
        let exchange = &self.parties.exchange;
        let (method, heads) = (exchange.request.method, exchange.settings.response_heads);
        let (step, accepted) = match received.head(method, &heads, &mut lines) {
            Ok(Some(head)) if head.lacks_rest(most) => (Ok(HeadProgress::RestMissing), None),
            Ok(Some(head)) => {
                let head = head.in_place_of(self.former.unwrap_or_default());
                (
                    self.judge(&head).map(HeadProgress::Step),
                    Some(head.acceptance()),
                )
            }
            Ok(None) => (Ok(HeadProgress::HeadMissing), None),
            Err(error) => (Err(self.not_a_head(error)), None),
        };
        if !is_decided {
            self.parties.from_hop.return_received(received, accepted);
        }
        step
    }

    /// Why what was received is no head of a response. One of another node that is too large here
    /// is no fault of that: it adds fields of its own to what the origin sent.
    fn not_a_head(&self, error: HeadError) -> AnswerReason {
        let mut reason = broken(&error);
        let is_too_large = matches!(error, HeadError::TooLarge | HeadError::TooManyFields);
        if is_too_large && self.parties.exchange.lateral.is_some() {
            reason.error = ProxyError::HttpResponseHeaderSectionSize;
        }
        reason
    }
}
