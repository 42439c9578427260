//! Clients that open a connection, send some requests on it, one after the other, and close it.

use super::machines::{Machines, Members};
use super::{SIZE_BYTES, TARGETS};
use crate::client::get::{connect, get};
use crate::process::affinity;
use std::sync::atomic::{AtomicU64, Ordering};
use weir_bench::origin::content_of;
use weir_workload::Chance;
use xtask::failure::Failure;

const CLIENTS: u64 = 8;

/// Failures of which the reason is told.
const TOLD_MAX: usize = 5;

/// What clients do in one run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connections {
    pub(super) count: u64,
    pub(super) requests_each: u64,
    pub(super) seed: u64,
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// Connections on which each response came whole, with every byte right.
    pub(super) unbroken: u64,
    /// Why others failed; of the first ones.
    pub(super) failures: Vec<String>,
}

impl Connections {
    /// Sends all requests from the machine of the clients.
    pub(super) fn run(
        &self,
        machines: &Machines,
        members: &Members,
        core: usize,
    ) -> Result<Served, Failure> {
        let next = AtomicU64::new(0);
        // threads are in the network of the thread that starts them
        let clients = || {
            std::thread::scope(|scope| {
                let start = |client| {
                    let next = &next;
                    scope.spawn(move || self.client(members, (client, core), next))
                };
                let threads: Vec<_> = (0..CLIENTS).map(start).collect();
                let ends = threads.into_iter().map(|thread| {
                    let panicked = |_| Err(Failure::Refused("a client panicked".to_owned()));
                    thread.join().unwrap_or_else(panicked)
                });
                ends.collect::<Result<Vec<Served>, Failure>>()
            })
        };
        let mut all = Served::default();
        for served in machines.client.inside(clients)?? {
            all.unbroken += served.unbroken;
            let room = TOLD_MAX.saturating_sub(all.failures.len());
            all.failures.extend(served.failures.into_iter().take(room));
        }
        Ok(all)
    }

    fn client(
        &self,
        members: &Members,
        (client, core): (u64, usize),
        next: &AtomicU64,
    ) -> Result<Served, Failure> {
        affinity::stay_on(core)?;
        let mut chance = Chance::new(self.seed, client);
        let mut served = Served::default();
        while next.fetch_add(1, Ordering::Relaxed) < self.count {
            match self.serve(members, &mut chance) {
                Ok(()) => served.unbroken += 1,
                Err(why) => served.failures.push(why),
            }
        }
        Ok(served)
    }

    /// One connection, from its begin to its end.
    fn serve(&self, members: &Members, chance: &mut Chance) -> Result<(), String> {
        let failed = |error: std::io::Error| error.to_string();
        let mut stream = connect(members.service).map_err(failed)?;
        for number in 0..self.requests_each {
            let target = members.target(chance.below(TARGETS));
            let answer = get(&mut stream, &target);
            let answer = answer.map_err(|error| format!("request {number}: {error}"))?;
            if answer.status != 200 || answer.body.len() as u64 != SIZE_BYTES {
                let (status, bytes) = (answer.status, answer.body.len());
                return Err(format!("request {number}: status {status}, {bytes} bytes"));
            }
            if let Some(place) = content_of(&target).differs_at(0, &answer.body) {
                return Err(format!("request {number}: wrong content at {place}"));
            }
        }
        Ok(())
    }
}
