//! The budget of resets of one client of HTTP/2, on all of its connections to a worker.

use std::cell::RefCell;
use std::rc::Rc;
use weir_policy::Tick;
use weir_policy::connections::ClientResets;
use weir_policy::destination::ClientNetwork;

/// What a client has left of the streams that may be reset.
#[derive(Clone)]
pub struct ResetBudget {
    client: ClientNetwork,
    clients: Rc<RefCell<ClientResets>>,
}

impl ResetBudget {
    /// That of `client` among those of `clients`.
    #[must_use]
    pub fn new(client: ClientNetwork, clients: &Rc<RefCell<ClientResets>>) -> Self {
        let clients = Rc::clone(clients);
        Self { client, clients }
    }

    /// Notes a reset; whether the budget permits it. Where several clients share a connection, that
    /// goes on in any case.
    pub fn note(&self, now: Tick) -> bool {
        self.clients.borrow_mut().note(now, self.client)
    }

    /// Whether no stream of the client may be reset now.
    #[must_use]
    pub fn is_exhausted(&self, now: Tick) -> bool {
        self.clients.borrow().is_exhausted(now, self.client)
    }
}
