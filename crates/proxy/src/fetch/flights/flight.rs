//! One flight: who leads, who waits, and how it ends.

use super::{Boarded, Flights, Terms};
use crate::fetch::in_flight::InFlightResponse;
use crate::fetch::waiting::Woken;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use weir_policy::Digest;

/// Requests that ask the next hop for one flight: the first, and one more if that fails before a
/// response head. If both fail, those who waited each ask for themselves: why a request failed may
/// lie in its own fields, and who sends two such requests must not deny the target to others.
const LEADERS_MAX: u32 = 2;

/// One target, or one variant of it, that is being asked for.
#[derive(Debug)]
pub(crate) struct Flight {
    key: Digest,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// Requests that have asked so far, but for those whose client left.
    leaders: u32,
    /// Who waits; a place is its follower's until it leaves.
    waiting: Vec<Option<Waker>>,
    free: Vec<usize>,
    /// Who asks though its own client has gone: to be woken when nobody waits any more.
    deserted: Option<Waker>,
}

#[derive(Debug)]
enum Stage {
    /// Somebody asks the next hop.
    Asking,
    /// Nobody does any more: one of those who wait may.
    Vacant,
    /// There is a response head.
    Arriving(Arc<InFlightResponse>),
    /// There is nothing more to wait for.
    Over(Over),
}

#[derive(Debug)]
enum Over {
    Stored,
    /// The response is not for others, or those who asked failed.
    Alone,
}

/// How waiting ended.
pub(crate) enum Landed {
    /// The one who asked failed before a response head: this request asks next.
    Lead(Leading),
    /// The response is arriving.
    Read(Arc<InFlightResponse>),
    /// It is stored: look again.
    Stored,
    /// It is not for others, or all who asked failed: go alone.
    Alone,
}

impl Flight {
    pub(super) fn asking(key: Digest) -> Self {
        Self::new(key, Stage::Asking)
    }

    pub(super) fn in_flight(key: Digest, in_flight: &Arc<InFlightResponse>) -> Self {
        Self::new(key, Stage::Arriving(Arc::clone(in_flight)))
    }

    fn new(key: Digest, stage: Stage) -> Self {
        Self {
            key,
            state: Mutex::new(State {
                stage,
                leaders: 1,
                waiting: Vec::new(),
                free: Vec::new(),
                deserted: None,
            }),
        }
    }

    pub(super) fn key(&self) -> Digest {
        self.key
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a request on, if there is a place for it and the flight is one for it.
    pub(super) fn board(
        self: &Arc<Self>,
        flights: &Arc<Flights>,
        terms: &Terms<'_>,
    ) -> Option<Boarded> {
        let mut state = self.lock();
        match &state.stage {
            Stage::Asking | Stage::Vacant => {
                if state.waiting.len() - state.free.len() >= terms.followers_max {
                    return None;
                }
                let place = state.take_place();
                drop(state);
                Some(Boarded::Follow(Following {
                    flights: Arc::clone(flights),
                    flight: Arc::clone(self),
                    place,
                    leads: terms.leads,
                }))
            }
            Stage::Arriving(in_flight) => {
                let in_flight = Arc::clone(in_flight);
                drop(state);
                in_flight
                    .is_for(terms.selecting)
                    .then(|| Boarded::Read(Arc::clone(self), in_flight))
            }
            Stage::Over(_) => None,
        }
    }

    /// The response, once it arrives.
    pub(crate) fn landed(&self) -> Option<Arc<InFlightResponse>> {
        match &self.lock().stage {
            Stage::Arriving(in_flight) => Some(Arc::clone(in_flight)),
            Stage::Asking | Stage::Vacant | Stage::Over(_) => None,
        }
    }

    /// Whether somebody is on it who does not read yet.
    pub(crate) fn is_awaited(&self) -> bool {
        self.lock().is_awaited()
    }

    /// Moves on and wakes everybody, without the lock.
    fn land(&self, stage: Stage) {
        let mut state = self.lock();
        state.stage = stage;
        let woken = state.take_wakers();
        drop(state);
        drop(woken);
    }
}

impl State {
    fn take_place(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            self.waiting.len() - 1
        })
    }

    fn is_awaited(&self) -> bool {
        self.waiting.len() > self.free.len()
    }

    fn take_wakers(&mut self) -> Woken {
        let wakers = self.waiting.iter_mut().filter_map(Option::take);
        wakers.collect()
    }
}

/// The one who asks the next hop. If it goes without a word, it has failed, and another one may
/// ask.
#[derive(Debug)]
pub(crate) struct Leading {
    flights: Arc<Flights>,
    flight: Arc<Flight>,
    done: bool,
}

impl Leading {
    pub(super) fn new(flights: Arc<Flights>, flight: Arc<Flight>) -> Self {
        Self {
            flights,
            flight,
            done: false,
        }
    }

    /// Whether others wait for the answer.
    pub(crate) fn is_awaited(&self) -> bool {
        self.flight.is_awaited()
    }

    /// Ready once nobody else waits for the answer.
    pub(crate) fn poll_deserted(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.flight.lock();
        if state.is_awaited() {
            state.deserted = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    /// The response head is there, and its content is arriving: followers read it, and newcomers
    /// may. Yields the flight, to be removed when nothing is arriving any more.
    pub(crate) fn in_flight(mut self, in_flight: &Arc<InFlightResponse>) -> Arc<Flight> {
        self.done = true;
        self.flights.mark_shared(self.flight.key);
        self.flight.land(Stage::Arriving(Arc::clone(in_flight)));
        Arc::clone(&self.flight)
    }

    /// The response is stored already.
    pub(crate) fn stored(self) {
        self.flights.mark_shared(self.flight.key);
        self.end(Over::Stored);
    }

    /// The response is for the one who asked only.
    pub(crate) fn alone(self) {
        self.end(Over::Alone);
    }

    /// There was no usable response: of all who wait one asks, or each for itself.
    pub(crate) fn failed(self) {
        drop(self);
    }

    /// The client of the one who asked has left, and nothing is known of the next hop.
    pub(crate) fn left(self) {
        self.flight.lock().leaders -= 1;
    }

    fn end(mut self, over: Over) {
        self.done = true;
        self.flights.remove(&self.flight);
        self.flight.land(Stage::Over(over));
    }
}

impl Drop for Leading {
    /// It failed: the next one may ask, or each goes alone.
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let mut state = self.flight.lock();
        let ends = !state.is_awaited() || state.leaders >= LEADERS_MAX;
        state.stage = if ends {
            Stage::Over(Over::Alone)
        } else {
            Stage::Vacant
        };
        let woken = state.take_wakers();
        drop(state);
        drop(woken);
        if ends {
            self.flights.remove(&self.flight);
        }
    }
}

/// A request that waits for another one's response head; it is on the flight until it is dropped.
pub(crate) struct Following {
    flights: Arc<Flights>,
    flight: Arc<Flight>,
    place: usize,
    leads: bool,
}

impl Following {
    /// The flight it is on.
    pub(crate) fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }
}

impl Future for Following {
    type Output = Landed;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Landed> {
        let mut state = self.flight.lock();
        match &state.stage {
            Stage::Vacant if self.leads => {
                state.stage = Stage::Asking;
                state.leaders += 1;
                drop(state);
                Poll::Ready(Landed::Lead(Leading::new(
                    Arc::clone(&self.flights),
                    Arc::clone(&self.flight),
                )))
            }
            Stage::Vacant => Poll::Ready(Landed::Alone),
            Stage::Asking => {
                let place = &mut state.waiting[self.place];
                if !place
                    .as_ref()
                    .is_some_and(|known| known.will_wake(cx.waker()))
                {
                    *place = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            Stage::Arriving(in_flight) => Poll::Ready(Landed::Read(Arc::clone(in_flight))),
            Stage::Over(Over::Stored) => Poll::Ready(Landed::Stored),
            Stage::Over(Over::Alone) => Poll::Ready(Landed::Alone),
        }
    }
}

impl Drop for Following {
    /// Gives its place back. The last one tells the one who goes on for its sake, and ends a vacant
    /// flight.
    fn drop(&mut self) {
        let mut state = self.flight.lock();
        state.waiting[self.place] = None;
        state.free.push(self.place);
        if state.is_awaited() {
            return;
        }
        if let Some(leader) = state.deserted.take() {
            leader.wake();
        }
        if matches!(state.stage, Stage::Vacant) {
            state.stage = Stage::Over(Over::Alone);
            drop(state);
            self.flights.remove(&self.flight);
        }
    }
}
