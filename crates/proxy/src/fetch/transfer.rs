//! A fetch: one transfer from a next hop into an in-flight response, a task of its own.
//!
//! It belongs to no client. It takes as much as its readers may be ahead of (`weir_policy::fetch`),
//! sizes the kernel's buffer accordingly, and when the last reader has left asks the policy whether
//! to go on. What it brings is in [`InFlightResponse`]; its connection goes back to the pool when
//! the response was whole, and is closed where it was not: HTTP/1.1 has no other way to stop a
//! response (RFC 9112 §9.3).

use crate::fetch::in_flight::InFlightResponse;
use crate::settings::Settings;
use crate::worker::core::{SCRATCH_BYTES, Worker};
use crate::worker::demand::Allowance;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use weir_measure::{Aborted, Label as _, Metric};
use weir_net::flow::{self, NextHopFlow};
use weir_net::next_hops;
use weir_net::next_hops::Connection;
use weir_net::{Deadline, Party};
use weir_policy::Tick;
use weir_policy::fetch::{Abort, FetchEnd, FetchId, ReadPermit, Stop, judge};
use weir_wire::{BodyEvent, BodyLength, BodyReader};

/// What a fetch begins with: the response head has been read, and what came with it.
pub(crate) struct Begun {
    pub(crate) in_flight: Arc<InFlightResponse>,
    pub(crate) id: FetchId,
    pub(crate) body: BodyLength,
    /// Bytes behind the head.
    pub(crate) first: Vec<u8>,
    pub(crate) hop_keeps_alive: bool,
}

/// A fetch under way.
struct Fetch {
    worker: Rc<Worker>,
    settings: Arc<Settings>,
    in_flight: Arc<InFlightResponse>,
    id: FetchId,
    connection: Option<Connection>,
    flow: NextHopFlow,
    reader: BodyReader,
    deadline: Deadline,
    silence: Duration,
    hop_keeps_alive: bool,
    /// How it ended, once it has.
    end: Option<FetchEnd>,
    /// When the round trip was looked at.
    looked: Option<Tick>,
    /// Its share of the budget of background bytes.
    background: Allowance,
}

/// A transfer that has begun, with what came with the head; to be spawned.
pub(crate) struct Ready(Box<Fetch>);

/// Begins the transfer: what came with the head is there for readers when this returns.
pub(crate) fn begin(
    worker: &Rc<Worker>,
    settings: &Arc<Settings>,
    connection: Connection,
    begun: Begun,
) -> Ready {
    let silence = settings.config.limits.next_hop_silence.as_duration();
    let base = flow::first_window(begun.in_flight.read_ahead, worker.now());
    let mut fetch = Box::new(Fetch {
        worker: Rc::clone(worker),
        settings: Arc::clone(settings),
        flow: NextHopFlow::of(&connection.stream, base.unwrap_or(0)),
        in_flight: begun.in_flight,
        id: begun.id,
        connection: Some(connection),
        reader: BodyReader::lenient(begun.body, settings.response_heads),
        deadline: Deadline::new(silence),
        silence,
        hop_keeps_alive: begun.hop_keeps_alive,
        end: None,
        looked: None,
        background: Allowance::default(),
    });
    worker.counters().inc(Metric::FetchesUnderWay);
    fetch.accept(&begun.first);
    Ready(fetch)
}

impl Ready {
    /// Whether the next hop broke its response in the very bytes that came with its head.
    pub(crate) fn is_cut(&self) -> bool {
        self.0.end == Some(FetchEnd::Cut)
    }

    /// Goes on as a task of this worker.
    pub(crate) fn spawn(self) {
        let mut fetch = self.0;
        if fetch.end.is_none() {
            tokio::task::spawn_local(async move {
                poll_fn(|cx| fetch.poll(cx)).await;
            });
        }
    }
}

impl Fetch {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.end.is_some() {
                return Poll::Ready(());
            }
            let most = match self.in_flight.permit(&self.worker, self.id, cx.waker()) {
                ReadPermit::UpTo(most) => most,
                ReadPermit::Wait => {
                    // readers keep it waiting, not the next hop
                    self.deadline.moved();
                    return Poll::Pending;
                }
                // switched off meanwhile
                ReadPermit::Background if self.worker.shared.background.is_nothing() => {
                    self.finish(FetchEnd::Stopped, false);
                    continue;
                }
                ReadPermit::Background if self.in_flight.is_kept() => {
                    ready!(self.poll_background(cx))
                }
                ReadPermit::Unread | ReadPermit::Background if self.in_flight.is_awaited() => {
                    return Poll::Pending;
                }
                // one that goes on is judged anew when it turns out to be for nobody
                ReadPermit::Unread | ReadPermit::Background => {
                    self.judge();
                    continue;
                }
                // what follows is there, or another fetch brings it
                ReadPermit::Complete => {
                    self.finish(FetchEnd::Whole, false);
                    continue;
                }
                ReadPermit::Yield => {
                    self.finish(FetchEnd::Stopped, false);
                    continue;
                }
            };
            ready!(self.poll_read(cx, most));
        }
    }

    /// Reads once, at most `most` bytes.
    fn poll_read(&mut self, cx: &mut Context<'_>, most: u64) -> Poll<()> {
        self.adjust();
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch();
        let most = usize::try_from(most).map_or(scratch.len(), |most| most.min(scratch.len()));
        let mut buffer = ReadBuf::new(&mut scratch[..most.max(1)]);
        let Some(connection) = &mut self.connection else {
            return Poll::Ready(());
        };
        match Pin::new(&mut connection.stream).poll_read(cx, &mut buffer) {
            Poll::Pending => {
                self.deadline.wait_for(Party::NextHop, self.silence);
                if self.deadline.poll_passed(cx).is_ready() {
                    self.finish(FetchEnd::Cut, false);
                    return Poll::Ready(());
                }
                Poll::Pending
            }
            Poll::Ready(Err(_)) => {
                self.finish(FetchEnd::Cut, false);
                Poll::Ready(())
            }
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                self.at_eof();
                Poll::Ready(())
            }
            Poll::Ready(Ok(())) => {
                self.deadline.moved();
                let bytes = buffer.filled();
                self.background.spend(bytes.len() as u64);
                worker
                    .counters()
                    .add(Metric::BytesFromNextHops, bytes.len() as u64);
                self.accept(bytes);
                Poll::Ready(())
            }
        }
    }

    fn at_eof(&mut self) {
        let end = if self.reader.at_eof().is_ok() {
            FetchEnd::Whole
        } else {
            FetchEnd::Cut
        };
        self.finish(end, false);
    }

    /// Decodes what was read, hands it to the readers, and enters it into the accounts.
    fn accept(&mut self, input: &[u8]) {
        let content = self.decode(input);
        let overhead = input.len() as u64 - content;
        let counters = self.worker.counters();
        counters.add(Metric::BodyBytesFromNextHops, content);
        counters.add(Metric::OverheadFromNextHops, overhead);
    }

    /// How many bytes of `input` are content.
    fn decode(&mut self, input: &[u8]) -> u64 {
        let mut rest = input;
        let mut content = 0;
        loop {
            let Ok(step) = self.reader.step(rest) else {
                self.finish(FetchEnd::Cut, false);
                return content;
            };
            rest = &rest[step.consumed..];
            match step.event {
                BodyEvent::NeedMore => break,
                BodyEvent::Data(data) => {
                    content += data.len() as u64;
                    if self.in_flight.push(&self.worker, self.id, data) < data.len() {
                        // as where the rest of it comes later: it is not asked for
                        self.finish(FetchEnd::Whole, false);
                        return content;
                    }
                }
                BodyEvent::End => {
                    // bytes behind the response belong to nothing we asked for, and after a repair
                    // its end may be another for the next hop
                    let is_clean = rest.is_empty() && !self.reader.is_repaired();
                    self.finish(FetchEnd::Whole, is_clean);
                    return content;
                }
            }
        }
        self.in_flight.announce();
        content
    }

    /// Nobody reads: goes on, or not.
    fn judge(&mut self) {
        let shared = &self.worker.shared;
        let free = shared.background.free(self.worker.now());
        let again = shared.popularity.again(self.in_flight.key());
        let unread = self.in_flight.unread(self.id, again, free);
        let verdict = match judge(&self.settings.abort, &unread) {
            // it would wait for ever
            Abort::GoOn(_) if shared.background.is_nothing() => Abort::Stop(Stop::NoBudget),
            verdict => verdict,
        };
        if matches!(verdict, Abort::Stop(_)) && !self.in_flight.end_unread(&self.worker, self.id) {
            // somebody came while it was judged
            return;
        }
        if let Some(fate) = Aborted::from_word(verdict.as_str()) {
            self.worker.counters().inc(Metric::FetchesAbandoned(fate));
        }
        match verdict {
            Abort::GoOn(_) => self.in_flight.go_on(self.id),
            Abort::Stop(_) => self.finish(FetchEnd::Stopped, false),
        }
    }

    /// Takes from the background's budget, if what it took before is used up; waits for it if there
    /// is none.
    fn poll_background(&mut self, cx: &mut Context<'_>) -> Poll<u64> {
        let to_come = self.in_flight.to_come(self.id).unwrap_or(u64::MAX);
        let wanted = to_come.clamp(1, SCRATCH_BYTES as u64);
        let worker = &self.worker;
        let budget = &worker.shared.background;
        self.background.poll(budget, || worker.now(), wanted, cx)
    }

    /// Fits the kernel's buffer to the readers.
    fn adjust(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        let now = self.worker.now();
        let mut next_hop_us = None;
        if self
            .looked
            .is_none_or(|at| now.tick.ms_since(at) >= flow::LOOK_MS)
        {
            self.looked = Some(now.tick);
            next_hop_us = flow::tcp_info(&connection.stream).map(|info| info.rtt_us);
            if let Some(next_hop_us) = next_hop_us {
                self.flow.look(&connection.stream, next_hop_us);
            }
        }
        let (window, to_come) = self.in_flight.window(self.id, next_hop_us);
        self.flow.set_window(&connection.stream, window, to_come);
    }

    fn finish(&mut self, end: FetchEnd, clean: bool) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(end);
        self.background.end(&self.worker.shared.background);
        let counters = self.worker.counters();
        counters.dec(Metric::FetchesUnderWay);
        if end == FetchEnd::Cut {
            counters.inc(Metric::NextHopErrors);
        }
        let trailers = if end == FetchEnd::Whole {
            self.reader.trailers()
        } else {
            &[]
        };
        self.in_flight.end(&self.worker, self.id, end, trailers);
        if let Some(connection) = self.connection.take()
            && end == FetchEnd::Whole
            && clean
            && self.hop_keeps_alive
            // what the next hop was offered it may send to whoever uses the connection next
            && u64::from(self.flow.settle(&connection.stream)) <= self.in_flight.read_ahead.bytes()
        {
            next_hops::check_in(self.worker.net(), connection);
        }
    }
}

impl Drop for Fetch {
    /// A panic, or the end of the proxy: who reads must not wait for ever.
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.worker.counters().inc(Metric::Panics);
        }
        self.finish(FetchEnd::Cut, false);
    }
}
