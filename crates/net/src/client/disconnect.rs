//! Polling for the disconnect of a client in a task that also waits for other things.
//!
//! A reset is a disconnect at once. After a FIN the client may still read: it is served for a
//! limited time without progress, and then counts as disconnected. After a FIN, or the next
//! request, the socket reports nothing more until something is written: behind a request it is
//! looked at from time to time.

use super::watch::{ClientEnd, between_looks, end_of};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// What is known of a client to which nothing is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    /// It is connected, as far as the socket shows.
    #[default]
    Here,
    /// It has sent a FIN: it may still read.
    HalfClosed,
    /// It has sent its next request, which hides a FIN behind it.
    Pipelined,
    /// It has reset the connection.
    Gone,
}

impl Presence {
    /// Looks at the socket; the task is woken when that may have changed.
    fn poll(&mut self, stream: &TcpStream, cx: &mut Context<'_>) -> Self {
        if *self == Self::Here {
            let mut byte = [0];
            *self = match stream.poll_peek(cx, &mut ReadBuf::new(&mut byte)) {
                Poll::Pending => Self::Here,
                Poll::Ready(Ok(0)) => Self::HalfClosed,
                Poll::Ready(Ok(_)) => Self::Pipelined,
                Poll::Ready(Err(_)) => Self::Gone,
            };
        }
        *self
    }
}

/// Waits for the disconnect of a client while there is nothing to send to it.
#[derive(Debug)]
pub struct ClientDisconnect {
    presence: Presence,
    half_closed: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// The next look at a client that has sent its next request.
    look: Option<Pin<Box<Sleep>>>,
}

impl ClientDisconnect {
    /// A client that has closed its sending side counts as disconnected after `half_closed`.
    pub fn new(half_closed: Duration) -> Self {
        Self {
            presence: Presence::Here,
            half_closed,
            timer: None,
            look: None,
        }
    }

    /// Ready once it has disconnected, and from then on.
    pub fn poll(&mut self, stream: &TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        match self.presence.poll(stream, cx) {
            Presence::Gone => Poll::Ready(()),
            Presence::HalfClosed => {
                let after = self.half_closed;
                let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(after)));
                timer.as_mut().poll(cx)
            }
            Presence::Here => Poll::Pending,
            Presence::Pipelined => self.poll_look(stream, cx),
        }
    }

    fn poll_look(&mut self, stream: &TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        let between = between_looks(self.half_closed);
        loop {
            let look = self.look.get_or_insert_with(|| Box::pin(sleep(between)));
            ready!(look.as_mut().poll(cx));
            self.look = None;
            self.presence = match end_of(stream) {
                None => continue,
                Some(ClientEnd::HalfClosed) => Presence::HalfClosed,
                Some(ClientEnd::Reset) => Presence::Gone,
            };
            return self.poll(stream, cx);
        }
    }

    /// Bytes were sent: the time of a half-closed client starts again.
    pub fn moved(&mut self) {
        self.timer = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::io::Write as _;
    use std::net::{Shutdown, TcpStream as ClientStream};
    use tokio::net::TcpListener;
    use tokio::time::{Instant, timeout};

    const HALF_CLOSED: Duration = Duration::from_secs(5);

    /// After how long a client that does this counts as disconnected, if it does within a minute;
    /// time passes at once.
    async fn disconnected_after(act: fn(&mut ClientStream)) -> Option<Duration> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = ClientStream::connect(listener.local_addr().unwrap()).unwrap();
        let (ours, _) = listener.accept().await.unwrap();
        act(&mut client);
        let mut disconnect = ClientDisconnect::new(HALF_CLOSED);
        let began = Instant::now();
        let disconnected = poll_fn(|cx| disconnect.poll(&ours, cx));
        let ended = timeout(Duration::from_mins(1), disconnected).await;
        ended.ok().map(|()| began.elapsed())
    }

    fn pipeline(client: &mut ClientStream) {
        client.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    }

    fn finish(client: &mut ClientStream) {
        client.shutdown(Shutdown::Write).unwrap();
    }

    fn reset(client: &mut ClientStream) {
        rustix::net::connect_unspec(client).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn end_of_a_client_is_noticed_behind_its_next_request_too() {
        assert_eq!(disconnected_after(|_| {}).await, None);
        assert_eq!(disconnected_after(pipeline).await, None);
        let after = disconnected_after(finish).await.expect("an end");
        assert!(after >= HALF_CLOSED && after < HALF_CLOSED * 2, "{after:?}");
        let after = disconnected_after(|client| {
            pipeline(client);
            finish(client);
        });
        let after = after.await.expect("an end");
        assert!(after >= HALF_CLOSED && after < HALF_CLOSED * 2, "{after:?}");
        let resets: [fn(&mut ClientStream); 2] = [reset, |client| {
            pipeline(client);
            reset(client);
        }];
        for act in resets {
            let after = disconnected_after(act).await.expect("an end");
            assert!(after < HALF_CLOSED, "{after:?}");
        }
    }
}
