//! The proxy as the service that the workers of the network run.

use crate::client::connection::{self, AcceptedClient};
use crate::client::protocol::{self, DetectedProtocol};
use crate::client::{http2, proxied};
use crate::exchange::next_hop::keep_ready;
use crate::log::client::{HttpVersions, ListenerFacts};
use crate::worker::core::Worker;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use weir_net::workers::{Accepted, Service};

/// Unused memory is given back each so many seconds: it takes the allocator about as long as a hit
/// for each mebibyte in use.
const GIVE_BACK_S: u32 = 5;

pin_project! {
    /// A connection that is served.
    #[project = ServingProjection]
    enum Serving<F> {
        /// What it speaks is not known: of a listener with TLS, behind balancers, or where HTTP/2
        /// may be spoken in clear. Boxed, as HTTP/2 is, so that other connections are no larger for
        /// it, and what was needed to begin is given back.
        Detecting {
            detection: Pin<Box<dyn Future<Output = DetectedProtocol>>>,
            worker: Rc<Worker>,
            http1: fn(AcceptedClient, Rc<Worker>) -> F,
        },
        /// It speaks HTTP/1.1.
        Http1 {
            #[pin]
            connection: F,
        },
        /// It speaks HTTP/2.
        Http2 {
            connection: Pin<Box<dyn Future<Output = ()>>>,
        },
    }
}

impl<F: Future<Output = ()>> Future for Serving<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let next = match self.as_mut().project() {
                ServingProjection::Http1 { connection } => return connection.poll(cx),
                ServingProjection::Http2 { connection } => return connection.as_mut().poll(cx),
                ServingProjection::Detecting {
                    detection,
                    worker,
                    http1,
                } => match ready!(detection.as_mut().poll(cx)) {
                    DetectedProtocol::Ended => return Poll::Ready(()),
                    DetectedProtocol::Http1(client) => Self::Http1 {
                        connection: http1(client, Rc::clone(worker)),
                    },
                    DetectedProtocol::Http2(client) => Self::Http2 {
                        connection: Box::pin(http2::serve(client, Rc::clone(worker))),
                    },
                },
            };
            self.set(next);
        }
    }
}

/// Serves a connection of HTTP/1.1.
fn http1(client: AcceptedClient, worker: Rc<Worker>) -> impl Future<Output = ()> {
    connection::serve(client, worker, None)
}

impl Service for Worker {
    type Listener = ListenerFacts;

    fn serve(self: Rc<Self>, client: Accepted<ListenerFacts>) -> impl Future<Output = ()> {
        let listener = &client.listener;
        let has_balancers = !listener.balancers.is_empty();
        if !has_balancers && !listener.is_tls() && listener.versions == HttpVersions::Http1 {
            return Serving::Http1 {
                connection: http1(client.into(), self),
            };
        }
        let worker = Rc::clone(&self);
        Serving::Detecting {
            detection: match has_balancers {
                true => Box::pin(proxied::begin(client, worker)),
                false => Box::pin(protocol::detect(client, worker)),
            },
            worker: self,
            http1,
        }
    }

    fn tick(&self) {
        self.shared.heartbeats.beat(self.net().index());
        keep_ready(self);
        self.shared.hand_offs.expire();
        self.top.borrow_mut().tick();
        self.forget_unused_modules();
        self.content_in_queues.forget_sent();
        self.settings().membership.tick(self.now().tick);
        let ticks = self.ticks.get().wrapping_add(1);
        self.ticks.set(ticks);
        if ticks.is_multiple_of(GIVE_BACK_S) {
            (self.shared.give_back_memory)();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The runtime has 104 bytes of its own in a task, and rounds up to a multiple of 128.
    const TASK_BYTES: usize = 384 - 104;

    const fn size_of_connection<F>(_: fn(AcceptedClient, Rc<Worker>) -> F) -> usize {
        size_of::<Serving<F>>()
    }

    #[test]
    fn task_of_an_idle_connection_has_384_bytes() {
        let bytes = size_of_connection(http1);
        assert!(bytes <= TASK_BYTES, "{bytes}");
    }
}
