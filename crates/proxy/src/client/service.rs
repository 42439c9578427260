//! The proxy as the service that the workers of the network run.

use crate::client::connection;
use crate::exchange::next_hop::keep_ready;
use crate::log::client::ListenerFacts;
use crate::worker::core::Worker;
use std::rc::Rc;
use weir_net::workers::{Accepted, Service};

/// Unused memory is given back each so many seconds: it takes the allocator about as long as a hit
/// for each mebibyte in use.
const GIVE_BACK_S: u32 = 5;

impl Service for Worker {
    type Listener = ListenerFacts;

    fn serve(self: Rc<Self>, client: Accepted<ListenerFacts>) -> impl Future<Output = ()> {
        connection::serve(client, self, None)
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
