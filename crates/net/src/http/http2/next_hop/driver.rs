//! Drives a connection of HTTP/2 to a next hop, as long as it lasts.

use super::connection::Connection;
use super::transport::Transport;
use crate::http::http2::piece::Piece;
use crate::next_hops::{IdlePlace, Permit};
use crate::workers::Worker;
use h2::client;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};
use weir_measure::{Metric, NextHopHttp2End};
use weir_policy::connections::Flood;

/// Drives a connection.
pub(super) struct Driver {
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    frames: client::Connection<Transport, Piece>,
    /// A window to be set once the next hop has taken the one before.
    window: Option<u32>,
    /// Requests that the next hop permits at once, as the table knows it.
    streams_max: u32,
    /// Its idle time-out.
    idle: Option<Pin<Box<Sleep>>>,
    /// Why it ends, once it is to.
    closing: Option<NextHopHttp2End>,
    /// Given back when it is closed.
    _permit: Permit,
    /// It is closed for its place, and no other one before that is given back.
    given_up: Option<IdlePlace>,
}

impl Driver {
    pub(super) fn new(
        worker: Rc<Worker>,
        connection: Rc<Connection>,
        frames: client::Connection<Transport, Piece>,
        permit: Permit,
    ) -> Self {
        Self {
            streams_max: connection.streams_max(),
            worker,
            connection,
            frames,
            window: None,
            idle: None,
            closing: None,
            _permit: permit,
            given_up: None,
        }
    }

    /// Drives it to its end.
    pub(super) async fn run(mut self) {
        let end = poll_fn(|cx| self.poll(cx)).await;
        let counters = self.worker.counters();
        counters.inc(Metric::NextHopHttp2Connections(end));
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<NextHopHttp2End> {
        let connection = Rc::clone(&self.connection);
        let (shared, table) = (&connection.shared, &connection.table);
        loop {
            let now = self.worker.now().tick;
            shared.begin_poll(now, cx.waker());
            self.set_window();
            let polled = Pin::new(&mut self.frames).poll(cx);
            if let Some(flood) = shared.flood() {
                return Poll::Ready(flooded(flood));
            }
            shared.settle_windows();
            if shared.take_heard() {
                table.heard(&connection, now);
            }
            // its end may have come with it: the next connection begins with it all the same
            let streams_max = connection.streams_max();
            if streams_max != self.streams_max && self.closing.is_none() && !connection.is_closing()
            {
                self.streams_max = streams_max;
                table.set_peer_max(&connection, streams_max);
            }
            if let Poll::Ready(result) = polled {
                return Poll::Ready(self.ended(result));
            }
            if shared.has_goaway() && self.closing.is_none() {
                self.close(NextHopHttp2End::GoAway);
                continue;
            }
            let idle_timeout = self.poll_idle_timeout(cx);
            if self.closing.is_some() {
                // others that wait for its place do not wait for a next hop that takes no GOAWAY
                return match self.given_up {
                    Some(_) => Poll::Ready(NextHopHttp2End::Idle),
                    None => Poll::Pending,
                };
            }
            if idle_timeout.is_pending() {
                return Poll::Pending;
            }
            let end = match (connection.is_closing(), table.is_draining(&connection)) {
                (true, _) => NextHopHttp2End::Dropped,
                (false, true) => NextHopHttp2End::Silent,
                (false, false) => NextHopHttp2End::Idle,
            };
            self.close(end);
        }
    }

    /// No further requests begin on it.
    fn close(&mut self, end: NextHopHttp2End) {
        self.closing = Some(end);
        self.connection.table.drain(&self.connection);
        self.connection.close();
    }

    /// Has the windows of its streams be as wide as they need.
    fn set_window(&mut self) {
        let connection = &self.connection;
        if let Some(needed) = connection.shared.take_needed_window() {
            let window = connection.table.window(connection, needed);
            self.window = window.or(self.window);
        }
        // the next hop must have taken the one before
        if let Some(window) = self.window
            && self.frames.set_initial_window_size(window).is_ok()
        {
            self.window = None;
        }
    }

    /// Ready once it has been idle for as long as is allowed, or is to be closed now.
    fn poll_idle_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let limits = *self.worker.network().idle_limits();
        loop {
            let now = self.worker.now().tick;
            let timeout_ms = self
                .connection
                .table
                .idle_timeout_ms(&self.connection, now, &limits);
            let Some(ms) = timeout_ms else {
                self.idle = None;
                self.connection.idle.take();
                return Poll::Pending;
            };
            if self.poll_given_up(cx).is_ready() || ms == 0 {
                return Poll::Ready(());
            }
            let until = Instant::now() + Duration::from_millis(ms);
            let idle = self
                .idle
                .get_or_insert_with(|| Box::pin(sleep_until(until)));
            if until < idle.deadline() {
                // another connection has room for what this one was kept for
                idle.as_mut().reset(until);
            }
            if idle.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.idle = None;
        }
    }

    /// It is idle: ready if it is to be closed for its place.
    fn poll_given_up(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.given_up.is_some() {
            return Poll::Ready(());
        }
        let idle = &mut *self.connection.idle.borrow_mut();
        let open = self.worker.network().open_connections();
        let place = idle.get_or_insert_with(|| IdlePlace::begin(open, cx.waker()));
        if !place.is_to_close() {
            return Poll::Pending;
        }
        self.given_up = idle.take();
        let counters = self.worker.counters();
        counters.inc(Metric::ConnectionCacheEvictions);
        Poll::Ready(())
    }

    /// Why it has ended.
    fn ended(&self, result: Result<(), h2::Error>) -> NextHopHttp2End {
        if self.connection.shared.is_foreign() {
            return NextHopHttp2End::Foreign;
        }
        match (self.closing, result) {
            (Some(end), _) => end,
            (None, _) if self.connection.shared.has_goaway() => NextHopHttp2End::GoAway,
            (None, Err(error)) if error.is_library() => NextHopHttp2End::Protocol,
            (None, _) => NextHopHttp2End::Closed,
        }
    }
}

impl Drop for Driver {
    /// A panic, or the end of the worker: it carries nothing any more.
    fn drop(&mut self) {
        self.connection.close();
        self.connection.idle.take();
        self.connection.table.closed(&self.connection);
    }
}

const fn flooded(flood: Flood) -> NextHopHttp2End {
    match flood {
        Flood::Resets => NextHopHttp2End::Resets,
        // field lines are counted of requests alone
        Flood::Control | Flood::FieldLines => NextHopHttp2End::Control,
        Flood::WindowUpdates => NextHopHttp2End::WindowUpdates,
    }
}
