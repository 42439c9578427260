//! The admin's connections: few, and none that stays silent for long.
//!
//! Somebody who opens connections and says nothing, or never reads the metrics, would otherwise hold file
//! descriptors that clients need.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::socket::Listening;
use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// Connections open at once; further ones wait in the listen queue.
const CONNECTIONS_MAX: usize = 32;
/// Longest silence of a connection, reading or writing.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Pause after a failed accept: being out of file descriptors does not pass at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

pub(super) struct Bounded {
    listener: Accepting,
    places: Arc<Semaphore>,
}

enum Accepting {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Bounded {
    /// Called in the runtime that will accept; `listening` does not block.
    pub(super) fn new(listening: Listening) -> io::Result<Self> {
        Ok(Self {
            listener: match listening {
                Listening::Tcp(listener) => Accepting::Tcp(TcpListener::from_std(listener)?),
                Listening::Unix(listener) => Accepting::Unix(UnixListener::from_std(listener)?),
            },
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        })
    }

    async fn next(&self) -> io::Result<Stream> {
        Ok(match &self.listener {
            Accepting::Tcp(listener) => Stream::Tcp(listener.accept().await?.0),
            Accepting::Unix(listener) => Stream::Unix(listener.accept().await?.0),
        })
    }
}

impl Listener for Bounded {
    type Io = Connection;
    /// Nobody asks where a request came from.
    type Addr = ();

    async fn accept(&mut self) -> (Connection, ()) {
        loop {
            // the semaphore is never closed: an error cannot happen, and would only mean no bound
            let place = Arc::clone(&self.places).acquire_owned().await.ok();
            match self.next().await {
                Ok(stream) => {
                    let connection = Connection {
                        stream,
                        silence: Box::pin(sleep(SILENCE_MAX)),
                        _place: place,
                    };
                    return (connection, ());
                }
                Err(_error) => sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
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

/// A connection with a place among the few and a limit on silence.
pub(super) struct Connection {
    stream: Stream,
    silence: Pin<Box<Sleep>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Passes `result` on if something moved, and fails if nothing did for too long.
    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        result: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if result.is_ready() {
            self.silence.as_mut().reset(Instant::now() + SILENCE_MAX);
            return result;
        }
        self.silence
            .as_mut()
            .poll(cx)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let result = either!(&mut self.stream, poll_read(cx, buffer));
        self.watch(cx, result)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = either!(&mut self.stream, poll_write(cx, bytes));
        self.watch(cx, result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = either!(&mut self.stream, poll_write_vectored(cx, slices));
        self.watch(cx, result)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Tcp(stream) => stream.is_write_vectored(),
            Stream::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut self.stream, poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(&mut self.stream, poll_shutdown(cx))
    }
}
