//! Fetching what is missing of an in-flight response, for a reader that has come to a missing
//! range.
//!
//! The request is the reader's own, with Range for the missing range and If-Range for the validator
//! of what is there (RFC 9110 §13.1.5): it brings the part, or shows that the response has changed.
//! Then nothing is mixed: a reader that needs more than is there is cut.

use crate::exchange::download::{HopFailure, ResponseOutcome};
use crate::exchange::forward::{self, BackgroundResult};
use crate::exchange::module_calls;
use crate::exchange::next_hop::NextHop;
use crate::exchange::state::{Plan, RequestState};
use crate::fetch::in_flight::InFlightResponse;
use crate::fetch::transfer;
use crate::log::report;
use crate::request::answer::AnswerReason;
use crate::send::heads::{ServedForm, stored_fields};
use crate::worker::core::Worker;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use weir_measure::Metric;
use weir_policy::fetch::{AbortPolicy, ByteSpan, FetchEnd, FetchId, ReadPermit};
use weir_policy::transaction::Covers;
use weir_policy::{Command, Event, Forwarding, Now, Transaction};
use weir_semantics::{
    ByteRange, ContentRange, FieldLine, Fits, ProxyError, RequestedPart, ResponseFacts, combines,
    line_named,
};
use weir_store::{InFlightContent, StoredResponse};
use weir_wire::{BodyLength, LineBuffer};

/// The range that a request to the next hop is for.
#[derive(Clone, Debug)]
pub(crate) struct MissingRange {
    /// The bytes that are missing; `to` is `u64::MAX` if the end is not known.
    pub(crate) span: ByteSpan,
    /// The in-flight response that they are missing in, if it is one.
    pub(crate) into: Option<(Arc<InFlightResponse>, FetchId)>,
}

impl MissingRange {
    /// Whether it is for one client alone: nothing of it is stored, so that no rule of storing
    /// applies.
    pub(crate) fn is_for_one(&self) -> bool {
        self.into
            .as_ref()
            .is_some_and(|(in_flight, _)| in_flight.is_for_one())
    }

    /// Whether a 206 has the requested range, and is of the same representation as `stored` (RFC
    /// 9111 §3.4).
    pub(crate) fn fits(
        &self,
        stored: &StoredResponse,
        facts: &ResponseFacts,
        fields: &[FieldLine<'_>],
        body: BodyLength,
    ) -> Fits {
        if !is_as_long_as_it_says(facts, body) {
            return Fits::Other;
        }
        let mut lines = LineBuffer::new();
        let own = stored_fields(&stored.head, &mut lines);
        let asked = RequestedPart {
            entity_tag: stored.validators().entity_tag,
            content_encoding: line_named(own, "content-encoding"),
            complete_length: stored.complete_length(),
            asked: ByteRange {
                first: self.span.from,
                last: match self.span.to {
                    u64::MAX => u64::MAX,
                    to => to - 1,
                },
            },
        };
        combines(&asked, facts, fields)
    }
}

/// Whether the content of a 206 has the length that its Content-Range says, as far as its head
/// tells.
pub(crate) fn is_as_long_as_it_says(facts: &ResponseFacts, body: BodyLength) -> bool {
    match (facts.content_range, body) {
        (Some(ContentRange::Part { range, .. }), BodyLength::Exact(bytes)) => {
            bytes == range.length()
        }
        _ => true,
    }
}

/// The result of a range request whose response is no part: another representation, or an error.
pub(crate) fn refused(status: u16) -> ResponseOutcome {
    if status < 400 || matches!(status, 404 | 410) {
        return ResponseOutcome::ForwardAgain;
    }
    let reason = AnswerReason::new(
        ProxyError::HttpProtocolError,
        format!("the next hop answers {status} where a part was asked for"),
    );
    ResponseOutcome::Failed(HopFailure::Broken(reason))
}

/// The first missing range of a stored part within the span of the request.
pub(crate) fn first_missing(
    exchange: &RequestState,
    stored: &StoredResponse,
    now: Now,
) -> Option<MissingRange> {
    let present = stored.body.present();
    let span = if stored.body.complete_length().is_some() {
        let wanted = exchange.form_of(stored, now.wall).span(stored)?;
        present.first_missing(wanted)?
    } else {
        // as if it had no end
        let endless = InFlightContent::new(Some(u64::MAX), Some(&stored.body)).finish();
        let wanted = exchange.form_of(&stored.with_body(endless), now.wall);
        let rest = ByteSpan {
            from: present.run_end(0),
            to: u64::MAX,
        };
        let missing = match wanted {
            // one that is counted from the end begins at an unknown place
            ServedForm::Part(range) if range.first < u64::MAX / 2 => {
                let to = range.last.saturating_add(1);
                ByteSpan::new(range.first, to).and_then(|span| present.first_missing(span))
            }
            _ => None,
        };
        // if nothing is missing, the response shows at least which representation it is of
        missing.unwrap_or(rest)
    };
    Some(MissingRange { span, into: None })
}

/// Starts fetching `span` of `in_flight`, which counts as begun.
pub(crate) fn spawn(
    exchange: &RequestState,
    in_flight: &Arc<InFlightResponse>,
    fetch: FetchId,
    span: ByteSpan,
) {
    let worker = Rc::clone(&exchange.worker);
    let pending = Pending {
        worker: Rc::clone(&worker),
        in_flight: Arc::clone(in_flight),
        fetch,
        finishes: exchange.abort() == AbortPolicy::Finish,
        begun: false,
    };
    let (tx, forwarding) = completing(&worker, exchange, in_flight);
    let plan = Plan::Forward {
        forwarding,
        stored: None,
    };
    let mut exchange = exchange.in_background(tx, plan);
    exchange.missing = Some(Box::new(MissingRange {
        span,
        into: Some((Arc::clone(in_flight), fetch)),
    }));
    tokio::task::spawn_local(async move {
        // boxed: the task's memory is held only while it runs
        Box::pin(run(pending, exchange, forwarding)).await;
    });
}

/// A transaction that completes what is arriving.
fn completing(
    worker: &Worker,
    exchange: &RequestState,
    in_flight: &InFlightResponse,
) -> (Transaction, Forwarding) {
    let now = worker.now();
    let rules = &exchange.settings.rules;
    let mut tx = Transaction::new(*exchange.tx.request(), now);
    let _ = tx.handle(now, rules, Event::Request { unshared: false });
    let part = Event::FoundPart(&in_flight.response.facts, Covers::Lacking);
    let forwarding = match tx.handle(now, rules, part).first() {
        Some(Command::Forward(forwarding)) => forwarding,
        _ => Forwarding {
            validate: false,
            complete: true,
        },
    };
    (tx, forwarding)
}

async fn run(mut pending: Pending, mut exchange: RequestState, forwarding: Forwarding) {
    let result = {
        let mut asking = pin!(ask(&pending, &mut exchange, forwarding));
        let mut unneeded = pin!(pending.unneeded());
        poll_fn(|cx| match asking.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Ok(result)),
            Poll::Pending => unneeded.as_mut().poll(cx).map(Err),
        })
        .await
    };
    if result.is_err() {
        module_calls::over_in_background(&exchange);
    }
    report::count_next_hop(pending.worker.counters(), &exchange.log);
    exchange.count_heavy_hitters_in_background();
    match result {
        Ok(Some(BackgroundResult::Answered(
            connection,
            ResponseOutcome::FetchStarted(arrived),
        ))) => {
            pending.begun = true;
            pending.in_flight.confirmed(pending.fetch);
            transfer::begin(&pending.worker, &exchange, connection, arrived.target).spawn();
        }
        Ok(Some(BackgroundResult::Answered(_, ResponseOutcome::ForwardAgain))) => {
            pending.end(FetchEnd::Changed)
        }
        Ok(Some(BackgroundResult::Answered(_, ResponseOutcome::NotShared))) => {
            pending.end(FetchEnd::NotShared)
        }
        Ok(_) => pending.end(FetchEnd::Cut),
        Err(end) => pending.end(end),
    }
}

/// Sends the request, and receives the response head.
async fn ask(
    pending: &Pending,
    exchange: &mut RequestState,
    forwarding: Forwarding,
) -> Option<BackgroundResult> {
    let next_hop = NextHop::of(exchange).ok()?;
    let response = Arc::clone(&pending.in_flight.response);
    Some(forward::in_background(exchange, next_hop, forwarding, Some(&response)).await)
}

/// A fetch that counts as begun, and has not.
struct Pending {
    worker: Rc<Worker>,
    in_flight: Arc<InFlightResponse>,
    fetch: FetchId,
    /// It continues without readers, too.
    finishes: bool,
    begun: bool,
}

impl Pending {
    /// Ready once no reader needs it any more, or another reader needs its place: there is nothing
    /// to judge it by before its head. Says how it ends then.
    async fn unneeded(&self) -> FetchEnd {
        poll_fn(
            |cx| match self.in_flight.permit(&self.worker, self.fetch, cx.waker()) {
                ReadPermit::Complete => Poll::Ready(FetchEnd::Met),
                ReadPermit::Unread if self.finishes => Poll::Pending,
                ReadPermit::Unread | ReadPermit::Yield => Poll::Ready(FetchEnd::Stopped),
                ReadPermit::UpTo(_) | ReadPermit::Wait | ReadPermit::Background => Poll::Pending,
            },
        )
        .await
    }

    fn end(&mut self, end: FetchEnd) {
        self.begun = true;
        self.in_flight.end(&self.worker, self.fetch, end, &[]);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.worker.counters().inc(Metric::Panics);
        }
        if !self.begun {
            self.end(FetchEnd::Cut);
        }
    }
}
