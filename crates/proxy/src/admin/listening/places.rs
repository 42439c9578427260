//! The connections of the admin interface: how many, how long each may wait for its client, and
//! which one is closed for a new one.
//!
//! A client that sends half a head 32 times must not lock the operator out: before a head is
//! complete there is no token to distinguish them by. So a connection that waits for a head has
//! little time. When all places are taken, the connection that has waited longest for its head is
//! closed. If none waits for a head, it is the one that has waited longest for its client: to send
//! content, to read a response, to send the next request. A connection whose purge or reload is
//! under way is kept.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::extract::Request;
use axum::extract::connect_info::Connected;
use axum::middleware::Next;
use axum::response::Response;
use axum::serve::IncomingStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::listener::BoundedListener;

/// How long to wait for a connection that should close before another one is closed.
const GIVE_WAY_LIMIT: Duration = Duration::from_millis(200);

/// What bounds the admin's connections.
#[derive(Clone, Copy, Debug)]
pub(in crate::admin) struct Limits {
    /// Connections open at once.
    pub(in crate::admin) connections_max: usize,
    /// From the first moment of a connection, or the first byte of a later request, to the end of
    /// the head.
    pub(in crate::admin) head: Duration,
    /// Longest silence of a connection otherwise, reading or writing.
    pub(in crate::admin) silence: Duration,
}

impl Limits {
    /// Those of the admin interface. A head fits one packet, and the operator is near: half of what
    /// the proxy gives its clients.
    pub(in crate::admin) const DEFAULT: Self = Self {
        connections_max: 32,
        head: Duration::from_secs(5),
        silence: Duration::from_secs(30),
    };
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The end of a head.
    Head,
    /// The rest of a request.
    Request,
    /// The proxy: the request is carried out.
    Work,
    /// Its client, to take the answer.
    Answer,
    /// The next request.
    Idle,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// When it began to wait; a head that is received byte by byte does not restart the wait.
    since: Instant,
    gives_way: bool,
    /// The task that drives the connection.
    driver: Option<Waker>,
}

/// The place of one connection.
#[derive(Clone, Debug)]
pub(in crate::admin) struct Place(Arc<Mutex<State>>);

impl Place {
    pub(in crate::admin) fn new() -> Self {
        Self(Arc::new(Mutex::new(State {
            stage: Stage::Head,
            since: Instant::now(),
            gives_way: false,
            driver: None,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, stage: Stage) {
        let mut state = self.lock();
        state.stage = stage;
        state.since = Instant::now();
    }

    /// The request counts as carried out as long as the result lives.
    pub(in crate::admin) fn works(&self) -> Working {
        self.enter(Stage::Work);
        Working(self.clone())
    }

    /// Whether the connection must close for another one; if not, its driver is woken when it must.
    pub(in crate::admin) fn gives_way(&self, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        if !state.gives_way {
            state.driver = Some(cx.waker().clone());
        }
        state.gives_way
    }

    /// Bytes were read or written.
    pub(in crate::admin) fn moved(&self, is_read: bool) {
        let mut state = self.lock();
        match state.stage {
            Stage::Head => return,
            Stage::Idle if is_read => state.stage = Stage::Head,
            Stage::Idle | Stage::Request | Stage::Work | Stage::Answer => {}
        }
        state.since = Instant::now();
    }

    /// The kernel has accepted what was written.
    pub(in crate::admin) fn flushed(&self) {
        let mut state = self.lock();
        if state.stage == Stage::Answer {
            state.stage = Stage::Idle;
            state.since = Instant::now();
        }
    }

    /// Until when it may wait.
    pub(in crate::admin) fn until(&self, limits: &Limits) -> Instant {
        let state = self.lock();
        let limit = match state.stage {
            Stage::Head => limits.head,
            Stage::Request | Stage::Work | Stage::Answer | Stage::Idle => limits.silence,
        };
        state.since + limit
    }
}

/// A purge or reload under way.
pub(in crate::admin) struct Working(Place);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.enter(Stage::Answer);
    }
}

impl Connected<IncomingStream<'_, BoundedListener>> for Place {
    fn connect_info(stream: IncomingStream<'_, BoundedListener>) -> Self {
        stream.remote_addr().clone()
    }
}

/// Notes that the head of a request is there, and when it is answered.
pub(in crate::admin) async fn follow(
    ConnectInfo(place): ConnectInfo<Place>,
    request: Request,
    next: Next,
) -> Response {
    place.enter(Stage::Request);
    let response = next.run(request).await;
    place.enter(Stage::Answer);
    response
}

/// All places.
#[derive(Debug)]
pub(in crate::admin) struct Places {
    max: usize,
    taken: Mutex<Vec<Place>>,
    left: Notify,
}

impl Places {
    pub(in crate::admin) fn new(max: usize) -> Self {
        Self {
            max,
            taken: Mutex::default(),
            left: Notify::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a newcomer, for which another may have to give way.
    pub(in crate::admin) async fn take(self: &Arc<Self>) -> PlaceGuard {
        loop {
            {
                let mut taken = self.lock();
                if taken.len() < self.max {
                    let place = Place::new();
                    taken.push(place.clone());
                    return PlaceGuard {
                        place,
                        places: Arc::clone(self),
                    };
                }
            }
            self.ask_one_to_give_way();
            let _late = timeout(GIVE_WAY_LIMIT, self.left.notified()).await;
        }
    }

    fn ask_one_to_give_way(&self) {
        let taken = self.lock();
        let waits_longest = taken
            .iter()
            .filter_map(|place| {
                let state = place.lock();
                let may = state.stage != Stage::Work && !state.gives_way;
                may.then_some(((state.stage != Stage::Head, state.since), place))
            })
            .min_by_key(|(order, _)| *order);
        let Some((_, place)) = waits_longest else {
            return;
        };
        let driver = {
            let mut state = place.lock();
            state.gives_way = true;
            state.driver.take()
        };
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}

/// A place that is taken until this is dropped.
pub(in crate::admin) struct PlaceGuard {
    pub(in crate::admin) place: Place,
    places: Arc<Places>,
}

impl Drop for PlaceGuard {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.retain(|place| !Arc::ptr_eq(&place.0, &self.place.0));
        drop(taken);
        self.places.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits::DEFAULT;

    #[tokio::test(start_paused = true)]
    async fn later_bytes_of_a_head_do_not_extend_its_time_limit() {
        let place = Place::new();
        let began = Instant::now();
        for _ in 0..10 {
            tokio::time::advance(Duration::from_secs(1)).await;
            place.moved(true);
        }
        assert_eq!(place.until(&LIMITS), began + LIMITS.head);
    }

    #[tokio::test(start_paused = true)]
    async fn first_byte_of_a_later_head_starts_its_time_limit() {
        let place = Place::new();
        place.enter(Stage::Answer);
        place.flushed();
        tokio::time::advance(Duration::from_secs(20)).await;
        let idle_since = Instant::now() - Duration::from_secs(20);
        assert_eq!(place.until(&LIMITS), idle_since + LIMITS.silence);
        place.moved(true);
        assert_eq!(place.until(&LIMITS), Instant::now() + LIMITS.head);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_awaiting_a_head_longest_yields_first_a_working_one_never() {
        let places = Arc::new(Places::new(4));
        let mut taken = Vec::new();
        for _ in 0..4 {
            taken.push(places.take().await);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        taken[0].place.enter(Stage::Idle);
        let working = taken[3].place.works();
        let cx = Context::from_waker(Waker::noop());
        let mut order = Vec::new();
        for _ in 0..4 {
            places.ask_one_to_give_way();
            let gone = (0..4).filter(|at| taken[*at].place.gives_way(&cx));
            order.push(gone.collect::<Vec<_>>());
        }
        let expected = [vec![1], vec![1, 2], vec![0, 1, 2], vec![0, 1, 2]];
        assert_eq!(order, expected);
        drop(working);
        places.ask_one_to_give_way();
        assert!(taken[3].place.gives_way(&cx));
    }
}
