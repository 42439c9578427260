//! The admin's connections: few, and none that stays silent for long ([`super::places`]).
//!
//! A program that opens connections and sends nothing, or never reads the metrics, would otherwise
//! hold file descriptors that clients need.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::places::{Limits, Place, PlaceGuard, Places};
use super::socket::Listening;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{Sleep, sleep, sleep_until};

/// Pause after a failed accept: being out of file descriptors does not pass at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

pub(in crate::admin) struct BoundedListener {
    listener: Accepting,
    places: Arc<Places>,
    limits: Limits,
}

enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl BoundedListener {
    /// Called in the runtime that will accept; `listening` does not block.
    pub(in crate::admin) fn new(listening: Listening, limits: Limits) -> io::Result<Self> {
        Ok(Self {
            listener: match listening {
                Listening::Tcp(listener) => Accepting::Tcp(TcpListener::from_std(listener)?),
                Listening::Unix(listener) => Accepting::Unix(UnixListener::from_std(listener)?),
            },
            places: Arc::new(Places::new(limits.connections_max)),
            limits,
        })
    }

    async fn next(&self) -> io::Result<Stream> {
        Ok(match &self.listener {
            Accepting::Tcp(listener) => Stream::Tcp(listener.accept().await?.0),
            Accepting::Unix(listener) => Stream::Unix(listener.accept().await?.0),
        })
    }
}

impl Listener for BoundedListener {
    type Io = Connection;
    /// The address of a request is not used, only its place.
    type Addr = Place;

    async fn accept(&mut self) -> (Connection, Place) {
        loop {
            match self.next().await {
                Ok(stream) => {
                    // only now: no connection is closed before there is a new one
                    let taken = self.places.take().await;
                    let place = taken.place.clone();
                    let connection = Connection {
                        stream,
                        timer: Box::pin(sleep_until(place.until(&self.limits))),
                        limits: self.limits,
                        taken,
                    };
                    return (connection, place);
                }
                Err(_error) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Place> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// What the bytes go through.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Calls the same function of whichever stream it is.
macro_rules! either {
    ($stream:expr, $call:ident($($argument:expr),*)) => {
        match $stream {
            Stream::Tcp(stream) => Pin::new(stream).$call($($argument),*),
            Stream::Unix(stream) => Pin::new(stream).$call($($argument),*),
        }
    };
}

/// A connection with a place among the few and a limit on each of its waits.
pub(in crate::admin) struct Connection {
    stream: Stream,
    timer: Pin<Box<Sleep>>,
    limits: Limits,
    taken: PlaceGuard,
}

impl Connection {
    /// Returns `result` if bytes moved; fails if none did for too long, or if another connection
    /// needs the place.
    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        is_read: bool,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let place = &self.taken.place;
        if place.gives_way(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        if result.is_ready() {
            place.moved(is_read);
            return result;
        }
        let until = place.until(&self.limits);
        if self.timer.deadline() != until {
            self.timer.as_mut().reset(until);
        }
        let timer = self.timer.as_mut();
        timer.poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = either!(&mut self.stream, poll_read(cx, buffer));
        self.watch(cx, true, result)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = either!(&mut self.stream, poll_write(cx, bytes));
        self.watch(cx, false, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = either!(&mut self.stream, poll_write_vectored(cx, slices));
        self.watch(cx, false, result)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Tcp(stream) => stream.is_write_vectored(),
            Stream::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = either!(&mut self.stream, poll_flush(cx));
        if result.is_ready() {
            self.taken.place.flushed();
        }
        result
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut self.stream, poll_shutdown(cx))
    }
}
