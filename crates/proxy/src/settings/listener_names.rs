//! What rules and the access log call the listeners, by the addresses that these are configured
//! with: a connection knows the address of its listener, and a reload that names a listener changes
//! what the connections are called that it has accepted before.

use crate::config::Listener;
use crate::log::client::ListenerFacts;
use std::net::SocketAddr;

/// The names of all listeners of a configuration.
pub(crate) struct ListenerNames {
    known: Vec<ListenerName>,
}

struct ListenerName {
    address: SocketAddr,
    /// Its name, its address if it has none.
    text: Box<str>,
    /// Whether it is a name that the operator has given.
    is_given: bool,
}

impl ListenerNames {
    /// Those of a configuration.
    pub(super) fn new(listeners: &[Listener]) -> Self {
        let name = |listener: &Listener| ListenerName {
            address: listener.address,
            text: listener.name_or_address().into(),
            is_given: listener.name.is_some(),
        };
        Self {
            known: listeners.iter().map(name).collect(),
        }
    }

    /// What rules call a listener; what they called it when it was opened, if the configuration has
    /// it no more. `None` of a request that came to no listener for clients.
    pub(crate) fn of<'a>(&'a self, listener: &'a ListenerFacts) -> Option<&'a str> {
        match self.find(listener) {
            Some(known) => Some(&known.text),
            None => listener.name.as_deref(),
        }
    }

    /// The name that the operator has given it.
    pub(crate) fn given<'a>(&'a self, listener: &'a ListenerFacts) -> Option<&'a str> {
        match self.find(listener) {
            Some(known) => known.is_given.then_some(&*known.text),
            None => listener.name.as_deref().filter(|_| listener.is_named),
        }
    }

    fn find(&self, listener: &ListenerFacts) -> Option<&ListenerName> {
        let address = listener.address?;
        self.known.iter().find(|known| known.address == address)
    }
}
