//! The links toward clients, each as long as a request uses it or its queue is not empty.

use crate::hashing::ByNumber;
use crate::network::link::Link;
use crate::world::Nanos;
use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// The link toward one client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClientLink {
    pub(super) link: Link,
    /// The response that is sent in closed form there, if any.
    pub(super) alone: Option<u32>,
    /// How many are being sent.
    pub(super) sending: u32,
    client: u64,
    /// Requests that are not over.
    users: u32,
    /// It stands among those that are forgotten once their queue is empty.
    is_leaving: bool,
}

/// All that are of interest.
#[derive(Debug, Default)]
pub(super) struct Links {
    all: Vec<ClientLink>,
    by_client: ByNumber<u32>,
    unused: Vec<u32>,
    leaving: VecDeque<u32>,
}

impl Links {
    /// The link toward `client`, which has one more user now.
    pub(super) fn join(&mut self, client: u64, at: Nanos) -> u32 {
        self.forget(at);
        let (all, unused) = (&mut self.all, &mut self.unused);
        let id = *self.by_client.entry(client).or_insert_with(|| {
            let link = ClientLink {
                client,
                ..ClientLink::default()
            };
            if let Some(id) = unused.pop() {
                all[id as usize] = link;
                return id;
            }
            all.push(link);
            u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
        });
        self.all[id as usize].users += 1;
        id
    }

    /// One user of a link more.
    pub(super) fn stay(&mut self, id: u32) {
        self.all[id as usize].users += 1;
    }

    /// One user less.
    pub(super) fn leave(&mut self, id: u32) {
        let link = &mut self.all[id as usize];
        link.users -= 1;
        if link.users == 0 && !link.is_leaving {
            link.is_leaving = true;
            self.leaving.push_back(id);
        }
    }

    /// A link without users and with an empty queue is like a new one.
    fn forget(&mut self, at: Nanos) {
        while let Some(id) = self.leaving.front().copied() {
            let link = &mut self.all[id as usize];
            if link.users == 0 && link.link.free_at > at {
                return;
            }
            link.is_leaving = false;
            self.leaving.pop_front();
            if link.users == 0 {
                debug_assert!(link.sending == 0, "a response is sent without using it");
                self.by_client.remove(&link.client);
                self.unused.push(id);
            }
        }
    }

    /// Requests that are not over.
    #[cfg(test)]
    pub(super) fn users(&self) -> u32 {
        self.all.iter().map(|link| link.users).sum()
    }

    /// How many are known.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.all.len() - self.unused.len()
    }
}

impl Index<u32> for Links {
    type Output = ClientLink;

    fn index(&self, id: u32) -> &ClientLink {
        &self.all[id as usize]
    }
}

impl IndexMut<u32> for Links {
    fn index_mut(&mut self, id: u32) -> &mut ClientLink {
        &mut self.all[id as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_with_queued_packets_is_kept_and_an_empty_one_is_recycled() {
        let mut links = Links::default();
        let (busy, idle) = (links.join(1, 0), links.join(2, 0));
        links[busy].link.free_at = 500;
        links.leave(busy);
        links.leave(idle);
        assert_eq!(links.join(3, 499), 2);
        assert_eq!((links.len(), links.join(1, 499)), (3, busy));
        assert_eq!(links[busy].link.free_at, 500);
        // 1 is used again: only 2 goes
        links.join(3, 500);
        assert_eq!(links.len(), 2);
        links.leave(busy);
        assert_eq!(links.join(4, 501), busy);
        assert_eq!(links[busy].link.free_at, 0);
        assert_eq!(links.join(5, 501), idle);
    }

    #[test]
    fn links_of_clients_that_left_are_recycled() {
        let mut links = Links::default();
        for client in 0..10_000 {
            let link = links.join(client, client);
            links[link].link.free_at = client + 10;
            links.leave(link);
        }
        assert!(links.all.len() <= 13, "{}", links.all.len());
    }
}
