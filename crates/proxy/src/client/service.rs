//! The proxy as the service that the workers of the network run.

use crate::client::{connection, http2, proxied, tls};
use crate::exchange::next_hop::keep_ready;
use crate::log::client::{HttpVersions, ListenerFacts};
use crate::worker::core::Worker;
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use weir_net::workers::{Accepted, Service};

/// Unused memory is given back each so many seconds: it takes the allocator about as long as a hit
/// for each mebibyte in use.
const GIVE_BACK_S: u32 = 5;

pin_project! {
    /// A connection that is served.
    #[project = ServingProjection]
    enum Serving<F> {
        /// In clear.
        Clear {
            #[pin]
            connection: F,
        },
        /// Of a listener with TLS, behind balancers, or where HTTP/2 may be spoken in clear; boxed,
        /// so that other connections are no larger for it.
        Boxed {
            connection: Pin<Box<dyn Future<Output = ()>>>,
        },
    }
}

impl<F: Future<Output = ()>> Future for Serving<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.project() {
            ServingProjection::Clear { connection } => connection.poll(cx),
            ServingProjection::Boxed { connection } => connection.as_mut().poll(cx),
        }
    }
}

impl Service for Worker {
    type Listener = ListenerFacts;

    fn serve(self: Rc<Self>, client: Accepted<ListenerFacts>) -> impl Future<Output = ()> {
        if !client.listener.balancers.is_empty() {
            return Serving::Boxed {
                connection: Box::pin(proxied::serve(client, self)),
            };
        }
        match (client.listener.is_tls(), client.listener.versions) {
            (false, HttpVersions::Http1) => Serving::Clear {
                connection: connection::serve(client.into(), self, None),
            },
            (false, _) => Serving::Boxed {
                connection: Box::pin(http2::serve_clear(client, self)),
            },
            (true, _) => Serving::Boxed {
                connection: Box::pin(tls::serve(client, self)),
            },
        }
    }

    fn tick(&self) {
        self.shared.heartbeats.beat(self.net().index());
        keep_ready(self);
        self.shared.hand_offs.expire();
        self.top.borrow_mut().tick();
        self.forget_unused_modules();
        self.settings().membership.tick(self.now().tick);
        let ticks = self.ticks.get().wrapping_add(1);
        self.ticks.set(ticks);
        if ticks.is_multiple_of(GIVE_BACK_S) {
            (self.shared.give_back_memory)();
        }
    }
}
