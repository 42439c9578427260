//! The requests of HTTP/2 that are under way on a worker, and those of each client.
//!
//! Connections have places of their own, and each may have one request without asking for more, as
//! one of HTTP/1.1 does. Beside these a worker has as many requests as its share of the connections
//! that may be open: memory is planned for twice `clients_max` requests, whatever the number of
//! requests on a connection. Of these a client may have as many as are left for others
//! ([`has_share_left`]).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use weir_policy::connections::has_share_left;
use weir_policy::destination::ClientNetwork;

/// The places of one worker that are taken.
#[derive(Default)]
pub(super) struct StreamPlaces {
    taken: Cell<usize>,
    /// The clients that have connections of HTTP/2.
    clients: RefCell<HashMap<ClientNetwork, Weak<ClientStreams>>>,
}

/// The requests of one client on one worker, on all of its connections.
pub struct ClientStreams {
    places: Rc<StreamPlaces>,
    /// `None`: it has no share, as it stands for many.
    client: Option<ClientNetwork>,
    /// Places that it has taken.
    taken: Cell<usize>,
}

impl StreamPlaces {
    /// The requests of `client`; with `None` those of a connection that has requests of many
    /// clients, which cannot be told apart.
    pub(super) fn of(self: &Rc<Self>, client: Option<ClientNetwork>) -> Rc<ClientStreams> {
        let new = || {
            Rc::new(ClientStreams {
                places: Rc::clone(self),
                client,
                taken: Cell::new(0),
            })
        };
        let Some(client) = client else {
            return new();
        };
        let mut clients = self.clients.borrow_mut();
        let known = clients.get(&client).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let made = new();
            clients.insert(client, Rc::downgrade(&made));
            made
        })
    }
}

impl ClientStreams {
    /// A place for one more request on a connection that has `under_way`, where the worker has
    /// `most` beside one of each connection; `None`: there are too many.
    pub fn take(self: &Rc<Self>, under_way: usize, most: usize) -> Option<StreamPlace> {
        if under_way == 0 {
            return Some(StreamPlace { client: None });
        }
        let (all, own) = (&self.places.taken, self.taken.get());
        let has_share = || self.client.is_none() || has_share_left(own, all.get(), most);
        if all.get() >= most || !has_share() {
            return None;
        }
        all.set(all.get() + 1);
        self.taken.set(own + 1);
        Some(StreamPlace {
            client: Some(Rc::clone(self)),
        })
    }
}

impl Drop for ClientStreams {
    fn drop(&mut self) {
        if let Some(client) = self.client {
            self.places.clients.borrow_mut().remove(&client);
        }
    }
}

/// The place of a request of HTTP/2 among those of its worker; given back when dropped.
pub struct StreamPlace {
    /// `None`: that of the connection.
    client: Option<Rc<ClientStreams>>,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        if let Some(client) = &self.client {
            let all = &client.places.taken;
            all.set(all.get() - 1);
            client.taken.set(client.taken.get() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    fn client(places: &Rc<StreamPlaces>, last: u8) -> Rc<ClientStreams> {
        let address = IpAddr::from([192, 0, 2, last]);
        places.of(Some(ClientNetwork::of(address)))
    }

    fn fill(client: &Rc<ClientStreams>, most: usize) -> Vec<StreamPlace> {
        std::iter::from_fn(|| client.take(1, most)).collect()
    }

    #[test]
    fn client_has_as_many_requests_as_are_left_for_others_on_all_its_connections() {
        let places = Rc::new(StreamPlaces::default());
        let (first, again) = (client(&places, 1), client(&places, 1));
        let held = fill(&first, 100);
        assert_eq!(held.len(), 50);
        assert!(again.take(1, 100).is_none());
        // that of the connection itself is beside them
        assert!(again.take(0, 100).is_some());
        let second = client(&places, 2);
        let held_too = fill(&second, 100);
        assert_eq!(held_too.len(), 25);
        drop(held);
        assert_eq!(fill(&again, 100).len(), 38);
        drop(held_too);
        drop((first, again, second));
        assert_eq!(places.taken.get(), 0);
        assert!(places.clients.borrow().is_empty());
    }

    #[test]
    fn all_places_of_a_worker_are_never_exceeded() {
        let places = Rc::new(StreamPlaces::default());
        let held = fill(&places.of(None), 20);
        assert_eq!(held.len(), 20);
        assert!(client(&places, 1).take(1, 20).is_none());
        drop(held);
        let clients: Vec<_> = (0..50).map(|last| client(&places, last)).collect();
        let held: Vec<_> = clients.iter().filter_map(|it| it.take(1, 20)).collect();
        assert_eq!(held.len(), 20);
    }
}
