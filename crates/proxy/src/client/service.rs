//! The proxy as the service that the workers of the network run.

use crate::client::connection::{self, ServedConnection};
use crate::client::protocol::{self, DetectedProtocol};
use crate::client::{http2, proxied};
use crate::exchange::next_hop::keep_ready;
use crate::log::client::{HttpVersions, ListenerFacts};
use crate::worker::core::Worker;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use weir_net::workers::{Accepted, Service};

/// Unused memory is given back each so many seconds: it takes the allocator about as long as a hit
/// for each mebibyte in use.
const GIVE_BACK_S: u32 = 5;

/// Maximum size of a served connection, bytes. The runtime's task has 104 bytes of its own and is
/// aligned to 128, so a larger one takes a block of 512 bytes from the allocator instead of 256.
const CONNECTION_BYTES_MAX: usize = 256 - 104;

/// A connection that is served.
enum Serving {
    /// What it speaks is not known: of a listener with TLS, behind balancers, or where HTTP/2 may
    /// be spoken in clear. Boxed, as HTTP/2 is, so that other connections are no larger for it, and
    /// what was needed to begin is given back.
    Detecting(Pin<Box<dyn Future<Output = DetectedProtocol>>>, Rc<Worker>),
    /// It speaks HTTP/1.1.
    Http1(ServedConnection),
    /// It speaks HTTP/2.
    Http2(Pin<Box<dyn Future<Output = ()>>>),
}

const _: () = assert!(size_of::<Serving>() <= CONNECTION_BYTES_MAX);

impl Future for Serving {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let next = match &mut *self {
                Self::Http1(connection) => return Pin::new(connection).poll(cx),
                Self::Http2(connection) => return connection.as_mut().poll(cx),
                Self::Detecting(detection, worker) => match ready!(detection.as_mut().poll(cx)) {
                    DetectedProtocol::Ended => return Poll::Ready(()),
                    DetectedProtocol::Http1(client) => {
                        Self::Http1(connection::serve(client, Rc::clone(worker), None))
                    }
                    DetectedProtocol::Http2(client) => {
                        Self::Http2(Box::pin(http2::serve(client, Rc::clone(worker))))
                    }
                },
            };
            *self = next;
        }
    }
}

impl Service for Worker {
    type Listener = ListenerFacts;

    fn serve(self: Rc<Self>, client: Accepted<ListenerFacts>) -> impl Future<Output = ()> {
        let listener = &client.listener;
        let has_balancers = !listener.balancers.is_empty();
        if !has_balancers && !listener.is_tls() && listener.versions == HttpVersions::Http1 {
            return Serving::Http1(connection::serve(client.into(), self, None));
        }
        let worker = Rc::clone(&self);
        let detection: Pin<Box<dyn Future<Output = DetectedProtocol>>> = match has_balancers {
            true => Box::pin(proxied::begin(client, worker)),
            false => Box::pin(protocol::detect(client, worker)),
        };
        Serving::Detecting(detection, self)
    }

    fn tick(&self) {
        self.shared.heartbeats.beat(self.net().index());
        keep_ready(self);
        self.shared.hand_offs.expire();
        self.top.borrow_mut().tick();
        self.forget_unused_modules();
        self.content_in_queues.forget_sent();
        self.deferred_stores.tick();
        self.write_behind.give_back();
        self.shared.tell_of_memory_file();
        self.settings().membership.tick(self.now().tick);
        let ticks = self.ticks.get().wrapping_add(1);
        self.ticks.set(ticks);
        if ticks.is_multiple_of(GIVE_BACK_S) {
            (self.shared.give_back_memory)();
        }
    }
}
