//! The trace as an iterator: sessions begin and request pages, and rows leave in order of arrival.

use super::profile::Profile;
use super::session::Session;
use super::transaction::Transaction;
use super::world::{World, microseconds};
use crate::Row;
use std::collections::BTreeMap;
use weir_workload::whole;

/// Makes the rows of a trace, in order of arrival: the same for the same profile, number of
/// requests and seed, on every machine.
///
/// Its memory grows with the distinct pages and servers, and with the sessions that go on at a
/// time; not with the requests.
#[derive(Clone, Debug)]
pub(crate) struct Maker {
    world: World,
    /// By the time of the next page, and the number of the session.
    sessions: BTreeMap<(u64, u64), Session>,
    /// When the next session begins.
    begins_us: u64,
    /// Sessions a second, at the busiest hour.
    busiest_per_s: f64,
    begun: u64,
    left: u64,
}

impl Maker {
    /// A trace of so many requests.
    pub(crate) fn new(profile: &Profile, left: u64, seed: u64) -> Self {
        let a_session = profile.clients.pages_a_session * profile.requests_a_page();
        let mean_per_s = profile.time.rate_per_s / a_session;
        let mut maker = Self {
            world: World::new(profile, left, seed),
            sessions: BTreeMap::new(),
            begins_us: 0,
            busiest_per_s: mean_per_s * (1.0 + profile.time.daily_swing),
            begun: 0,
            left,
        };
        maker.begin_in_the_middle(mean_per_s);
        maker.schedule();
        maker
    }

    /// Sessions that went on before the trace began: as many as there are on average, each
    /// somewhere between two pages.
    fn begin_in_the_middle(&mut self, mean_per_s: f64) {
        let clients = &self.world.profile.clients;
        let think_s = clients.think.mean().unwrap_or(0.0);
        let going_on = mean_per_s * think_s * clients.pages_a_session * self.swing(0);
        let going_on = whole::<u64>(going_on).min(SESSIONS_MAX);
        for _ in 0..going_on {
            let at_us = microseconds(self.world.chance.unit() * think_s);
            self.begin(at_us);
        }
    }

    fn begin(&mut self, at_us: u64) {
        let clients = &self.world.profile.clients;
        let (population, skew) = (f64::from(clients.population), clients.skew);
        let drawn = population * libm::pow(self.world.chance.unit(), skew);
        let client = self.world.client(whole(drawn));
        self.begun += 1;
        self.sessions
            .insert((at_us, self.begun), Session::new(client));
    }

    /// When the next session begins: those of the busiest hour, of which other hours take a part.
    fn schedule(&mut self) {
        let busiest = 1.0 + self.world.profile.time.daily_swing;
        loop {
            let gap_s = -libm::log(1.0 - self.world.chance.unit()) / self.busiest_per_s;
            self.begins_us += microseconds(gap_s);
            let share = self.swing(self.begins_us) / busiest;
            if self.world.chance.is(share) {
                return;
            }
        }
    }

    /// Sessions that begin at this time, by those that begin on average.
    fn swing(&self, at_us: u64) -> f64 {
        let time = &self.world.profile.time;
        let since_s = at_us as f64 / 1e6 + time.begins_s.rem_euclid(86_400) as f64;
        let turn = (since_s / 3600.0 - time.peak_hour) / 24.0;
        1.0 + time.daily_swing * libm::cos(core::f64::consts::TAU * turn)
    }

    /// The next session begins, or one requests its next page.
    fn advance(&mut self) {
        if self
            .next_page_us()
            .is_none_or(|at_us| self.begins_us < at_us)
        {
            let at_us = self.begins_us;
            self.begin(at_us);
            self.schedule();
        } else if let Some(((at_us, number), mut session)) = self.sessions.pop_first() {
            let end_us = self.world.visit(&mut session, at_us);
            let clients = &self.world.profile.clients;
            let think = clients.think.draw(&mut self.world.chance);
            if self.world.chance.is(1.0 - 1.0 / clients.pages_a_session) {
                let at_us = end_us + microseconds(think);
                self.sessions.insert((at_us, number), session);
            }
        }
    }

    /// No transaction that is generated later arrives before this.
    fn until_us(&self) -> u64 {
        self.next_page_us()
            .map_or(self.begins_us, |at_us| at_us.min(self.begins_us))
    }

    /// When a session requests its next page, if there is one.
    fn next_page_us(&self) -> Option<u64> {
        self.sessions.keys().next().map(|(at_us, _)| *at_us)
    }

    /// Sessions that go on, and transactions that have not left.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.sessions.len() + self.world.pending.len()
    }

    fn leave(&mut self) -> Option<Transaction> {
        loop {
            let until_us = self.until_us();
            let first = self.world.pending.first_entry();
            if let Some(first) = first.filter(|first| first.key().0 <= until_us) {
                return Some(first.remove());
            }
            self.advance();
        }
    }
}

impl Iterator for Maker {
    type Item = Row;

    fn next(&mut self) -> Option<Row> {
        self.left = self.left.checked_sub(1)?;
        let transaction = self.leave()?;
        Some(transaction.row(&self.world.profile, &self.world.metadata))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left).ok();
        (left.unwrap_or(usize::MAX), left)
    }
}

/// Sessions at the beginning; a bound on what a profile with a mistake can cost.
const SESSIONS_MAX: u64 = 1_000_000;
