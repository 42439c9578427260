//! Sends a request of a module's own, and receives the response to it: no module sees it, and no
//! cache.
//!
//! The next hop is trusted no more than that of a client: a response is received within the limits
//! of the settings, the time that the module gives, and the content that it takes.

use super::own_request::JudgedRequest;
use crate::exchange::attempts::check_link;
use crate::modules::own_work::OwnPlace;
use crate::settings::Settings;
use crate::worker::core::Worker;
use std::future::poll_fn;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use weir_extend::{FetchError, Fields, OwnResponse};
use weir_net::http::{ConnectionNeed, ContentEnd, NextHopStream, RequestSender, ResponseReceiver};
use weir_net::next_hops::{ConnectionRules, Destination};
use weir_policy::retry::{BodySent, FailedAttempt, may_retry};
use weir_semantics::ProxyError;
use weir_wire::{BodyLength, LineBuffer};

/// Interim responses that are skipped, as many as are passed on to a client.
const INTERIM_MAX: u32 = 32;

/// Sends `request` and receives the whole response.
pub(super) async fn run(
    worker: Rc<Worker>,
    settings: Arc<Settings>,
    request: JudgedRequest,
    mut place: OwnPlace,
) -> Result<OwnResponse, FetchError> {
    let destination = request.destination(&settings, worker.network())?;
    let at = (&destination, &settings.connections);
    run_at(&worker, &settings, &request, at, &mut place).await
}

/// The same at a destination that was judged, on a connection as these rules have it.
pub(super) async fn run_at(
    worker: &Rc<Worker>,
    settings: &Arc<Settings>,
    request: &JudgedRequest,
    (destination, rules): (&Destination, &Arc<ConnectionRules>),
    place: &mut OwnPlace,
) -> Result<OwnResponse, FetchError> {
    let mut need = ConnectionNeed::Any;
    loop {
        check_link(rules, destination).map_err(|reason| {
            reason.spent.iter().for_each(|spent| spent.refuse());
            FetchError::Unreachable
        })?;
        let opened = NextHopStream::open(worker.net(), rules, destination, need).await;
        let mut hop = opened.map_err(|failure| match failure.error {
            ProxyError::DestinationIpProhibited => FetchError::Forbidden,
            _ => FetchError::Unreachable,
        })?;
        let reused = hop.facts().reused;
        match talk(worker, settings, request, &mut hop, place).await {
            Ok(response) => {
                hop.release(worker.net(), destination.read_ahead.bytes());
                return Ok(response);
            }
            Err(Failure::Unanswered) => {
                let attempt = FailedAttempt {
                    method: request.method,
                    body: match request.content.is_empty() {
                        true => BodySent::None,
                        false => BodySent::Replayable,
                    },
                    connection_was_reused: reused,
                    shared_connection_broke: hop.has_shared_connection_broken(),
                    is_unprocessed: hop.is_unprocessed(),
                    response_begun: false,
                    is_retry: need.is_fresh(),
                };
                if may_retry(&attempt).is_err() {
                    return Err(FetchError::Unreachable);
                }
                need = hop.repetition_need();
            }
            Err(Failure::Ended(error)) => return Err(error),
        }
    }
}

/// Why there is no response.
enum Failure {
    /// The next hop closed the connection without a byte of one.
    Unanswered,
    /// Whatever follows is of no use.
    Ended(FetchError),
}

impl From<FetchError> for Failure {
    fn from(error: FetchError) -> Self {
        Self::Ended(error)
    }
}

async fn talk(
    worker: &Worker,
    settings: &Settings,
    request: &JudgedRequest,
    hop: &mut NextHopStream,
    place: &mut OwnPlace,
) -> Result<OwnResponse, Failure> {
    let (mut to_hop, from_hop) = hop.split();
    let length = request.content.len() as u64;
    to_hop.begin(request.head.clone(), BodyLength::Exact(length), false);
    let mut talk = Talk {
        worker,
        settings,
        request,
        to_hop,
        from_hop,
        place,
        sent: 0,
        is_sending: true,
        interim: 0,
        response: None,
    };
    poll_fn(|cx| talk.poll(cx)).await
}

/// One request and its response, under way.
struct Talk<'t> {
    worker: &'t Worker,
    settings: &'t Settings,
    request: &'t JudgedRequest,
    to_hop: RequestSender<'t>,
    from_hop: ResponseReceiver<'t>,
    place: &'t mut OwnPlace,
    /// Bytes of the content that were sent.
    sent: usize,
    /// The request is not sent to its end, and the next hop takes it.
    is_sending: bool,
    interim: u32,
    /// Once its head was received.
    response: Option<OwnResponse>,
}

impl Talk<'_> {
    /// Sends and receives: either side may be first.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<OwnResponse, Failure>> {
        self.poll_send(cx)?;
        loop {
            let is_whole = match &mut self.response {
                None => {
                    ready!(self.poll_head(cx))?;
                    self.take_buffered()?
                }
                Some(_) => ready!(self.poll_content(cx))?,
            };
            if is_whole {
                return Poll::Ready(Ok(self.response.take().unwrap_or_default()));
            }
        }
    }

    /// A next hop that takes no more may have answered already: that is read all the same, unless
    /// it was sent nothing.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<(), Failure> {
        while self.is_sending {
            let rest = &self.request.content[self.sent..];
            match self.to_hop.poll_send(cx, &[rest], Some(&[])) {
                Poll::Pending => break,
                Poll::Ready(Ok(count)) => {
                    self.sent += count;
                    self.is_sending = !self.to_hop.is_complete();
                }
                Poll::Ready(Err(_)) if self.to_hop.link_spent().is_some() => {
                    return Err(FetchError::Unreachable.into());
                }
                Poll::Ready(Err(_)) if self.to_hop.sent_bytes() == 0 => {
                    return Err(Failure::Unanswered);
                }
                Poll::Ready(Err(_)) => self.is_sending = false,
            }
        }
        Ok(())
    }

    /// Receives heads, up to the final one.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        while self.response.is_none() {
            let limits = self.settings.response_heads;
            if self.from_hop.is_worth_reading(&limits) && self.try_head()? {
                continue;
            }
            let mut scratch = self.worker.scratch();
            match ready!(self.from_hop.poll_receive_head(cx, &mut scratch)) {
                Ok(1..) => {}
                Ok(0) | Err(_) if !self.from_hop.has_received() && self.interim == 0 => {
                    return Poll::Ready(Err(Failure::Unanswered));
                }
                Ok(0) | Err(_) => return Poll::Ready(Err(FetchError::Unreachable.into())),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Takes a head from the front of what was received; whether there was a whole one.
    fn try_head(&mut self) -> Result<bool, FetchError> {
        let received = self.from_hop.take_received();
        let mut lines = LineBuffer::new();
        let limits = self.settings.response_heads;
        let parsed = received.head(self.request.method, &limits, &mut lines);
        let Some(found) = parsed.map_err(|_| FetchError::Unreachable)? else {
            self.from_hop.return_received(received, None);
            return Ok(false);
        };
        let head = &found.head;
        match head.status {
            // the request did not ask for another protocol
            101 => return Err(FetchError::Unreachable),
            ..200 => {
                self.interim += 1;
                if self.interim > INTERIM_MAX {
                    return Err(FetchError::Unreachable);
                }
            }
            status => {
                let length = found.length.map_err(|_| FetchError::Unreachable)?;
                if let BodyLength::Exact(bytes) = length
                    && bytes > self.request.content_bytes_max as u64
                {
                    return Err(FetchError::TooLarge);
                }
                let lines = head.fields.iter();
                self.response = Some(OwnResponse {
                    status,
                    fields: Fields::received(lines.map(|line| (line.name, line.value))),
                    content: Vec::new(),
                });
            }
        }
        let accepted = found.acceptance();
        self.from_hop.return_received(received, Some(accepted));
        Ok(true)
    }

    /// Takes the content that was received with the head; whether that is all.
    fn take_buffered(&mut self) -> Result<bool, FetchError> {
        let mut taking = Taking::of(&mut self.response, self.place, self.request);
        let read = self.from_hop.take_buffered(|data| taking.take(data));
        taking.result(read.end)
    }

    /// Receives content once; whether that was all of it.
    fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, FetchError>> {
        let mut scratch = self.worker.scratch();
        let mut taking = Taking::of(&mut self.response, self.place, self.request);
        let take = |_: &mut Context<'_>, data: &[u8]| taking.take(data);
        let read = ready!(self.from_hop.poll_content(cx, &mut scratch, take));
        let read = read.map_err(|_| FetchError::Unreachable)?;
        Poll::Ready(taking.result(read.end))
    }
}

/// Takes content, as much as the module takes.
struct Taking<'t> {
    content: Option<&'t mut Vec<u8>>,
    place: &'t mut OwnPlace,
    content_bytes_max: usize,
    refused: Option<FetchError>,
}

impl<'t> Taking<'t> {
    fn of(
        response: &'t mut Option<OwnResponse>,
        place: &'t mut OwnPlace,
        request: &JudgedRequest,
    ) -> Self {
        Self {
            content: response.as_mut().map(|response| &mut response.content),
            place,
            content_bytes_max: request.content_bytes_max,
            refused: None,
        }
    }

    fn take(&mut self, data: &[u8]) -> ControlFlow<()> {
        let Some(content) = &mut self.content else {
            return ControlFlow::Break(());
        };
        if content.len() + data.len() > self.content_bytes_max {
            self.refused = Some(FetchError::TooLarge);
        } else if !self.place.hold(data.len()) {
            self.refused = Some(FetchError::TooMany);
        } else {
            content.extend_from_slice(data);
            return ControlFlow::Continue(());
        }
        ControlFlow::Break(())
    }

    /// Whether the content is whole.
    fn result(self, end: ContentEnd) -> Result<bool, FetchError> {
        match (self.refused, end) {
            (Some(refused), _) => Err(refused),
            (None, ContentEnd::More) => Ok(false),
            (None, ContentEnd::Whole) => Ok(true),
            (None, ContentEnd::Stopped | ContentEnd::BrokenFraming) => Err(FetchError::Unreachable),
        }
    }
}
