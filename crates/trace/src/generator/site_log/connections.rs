//! The connections of clients: which pages they load, and when.

use super::page_law::Pages;
use super::profile::SiteProfile;
use super::visits::Visits;
use weir_workload::{Chance, microseconds, whole};

/// A request of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlannedRequest {
    /// Since the trace began, microseconds.
    pub(super) at_us: u64,
    pub(super) target: u32,
    pub(super) is_page: bool,
}

/// Connections, in the order in which they begin.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    law: TimeLaw,
    chance: Chance,
    /// When the next one begins, microseconds.
    begins_us: u64,
    /// When each client may begin its next one, microseconds.
    clients: Vec<u64>,
}

/// Bounds of times, in microseconds, and means.
#[derive(Clone, Copy, Debug)]
struct TimeLaw {
    connections_per_s: f64,
    further_pages: f64,
    next_page_us: [u64; 2],
    image_us: [u64; 2],
    next_connection_us: u64,
}

impl Connections {
    pub(super) fn new(profile: &SiteProfile, chance: Chance) -> Self {
        let law = &profile.connections;
        let mut connections = Self {
            law: TimeLaw {
                connections_per_s: profile.time.connections_per_s,
                further_pages: law.pages - 1.0,
                next_page_us: law.next_page_s.map(microseconds),
                image_us: law.image_s.map(microseconds),
                next_connection_us: microseconds(law.next_connection_min_s),
            },
            chance,
            begins_us: 0,
            clients: vec![0; law.clients.max(1) as usize],
        };
        connections.schedule();
        connections
    }

    /// When the next one begins, microseconds.
    pub(super) const fn begins_us(&self) -> u64 {
        self.begins_us
    }

    /// The requests of the next one, in order of time, and the number of its client.
    pub(super) fn plan(
        &mut self,
        pages: &Pages,
        visits: &mut Visits,
    ) -> (usize, Vec<PlannedRequest>) {
        let mut requests = Vec::new();
        let mut at_us = self.begins_us;
        for _ in 0..=self.further_pages() {
            if !requests.is_empty() {
                at_us += self.between(self.law.next_page_us);
            }
            at_us = self.load(visits.draw(), at_us, pages, visits, &mut requests);
        }
        let client = self.client();
        self.clients[client] = at_us + self.law.next_connection_us;
        self.schedule();
        (client, requests)
    }

    /// Loads a page at this time, without the images that the connection has loaded; returns when
    /// its last request is made.
    fn load(
        &mut self,
        page: usize,
        at_us: u64,
        pages: &Pages,
        visits: &mut Visits,
        requests: &mut Vec<PlannedRequest>,
    ) -> u64 {
        let is_new = |image: &u32| requests.iter().all(|earlier| earlier.target != *image);
        let images: Vec<u32> = pages.images(page).filter(is_new).collect();
        visits.save(pages.requests(page) - 1 - images.len() as u64, pages);
        let mut times: Vec<u64> = images
            .iter()
            .map(|_| at_us + self.between(self.law.image_us))
            .collect();
        times.sort_unstable();
        requests.push(PlannedRequest {
            at_us,
            target: pages.target(page),
            is_page: true,
        });
        let planned = times.iter().zip(images);
        requests.extend(planned.map(|(at_us, target)| PlannedRequest {
            at_us: *at_us,
            target,
            is_page: false,
        }));
        times.last().copied().unwrap_or(at_us)
    }

    /// Draws how many pages follow the first one.
    fn further_pages(&mut self) -> u32 {
        let mean = self.law.further_pages;
        if mean <= 0.0 {
            return 0;
        }
        let drawn = libm::log(1.0 - self.chance.unit()) / libm::log(mean / (1.0 + mean));
        whole::<u32>(drawn).min(FURTHER_PAGES_MAX)
    }

    /// A client that may begin a connection now: one by chance, or the next one that may. If none
    /// may, there is one client more.
    fn client(&mut self) -> usize {
        let count = self.clients.len();
        let first = self.chance.below(count as u64);
        let first = usize::try_from(first).unwrap_or(0);
        let mut all = (first..count).chain(0..first);
        let free = all.find(|client| self.clients[*client] <= self.begins_us);
        free.unwrap_or_else(|| {
            self.clients.push(0);
            count
        })
    }

    /// The time until the next connection begins, of a Poisson process.
    fn schedule(&mut self) {
        let gap_s = -libm::log(1.0 - self.chance.unit()) / self.law.connections_per_s;
        self.begins_us += microseconds(gap_s);
    }

    fn between(&mut self, [low, high]: [u64; 2]) -> u64 {
        low + self.chance.below(high.saturating_sub(low))
    }
}

/// A bound on what a profile with a mistake can cost.
const FURTHER_PAGES_MAX: u32 = 1000;
