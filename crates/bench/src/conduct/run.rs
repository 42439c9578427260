//! A run, once all participants are there.

use super::interrupt::Interrupt;
use super::master::POLL_INTERVAL;
use super::message::{ClientTask, OriginTask, Role, ToMaster, ToParticipant};
use super::participant_pool::{ParticipantPool, PoolEvent};
use super::plan::RunPlan;
use super::run_outcome::RunOutcome;
use super::{PREPARATION_MAX, SILENCE_MAX, START_DELAY, STOP_MAX};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::usage::ProxyProcess;
use std::collections::HashSet;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

/// A run under way.
#[derive(Debug)]
pub(super) struct Run<'r> {
    pool: ParticipantPool,
    plan: &'r RunPlan,
    interrupt: &'r Interrupt,
    /// The proxy's, if it is watched.
    process: Option<ProxyProcess>,
    /// The participants whose result is outstanding.
    outstanding: HashSet<usize>,
    /// When the master sent `stop` to all, if the run is ended early.
    stopped_at: Option<Instant>,
    /// The work between `go` and the start.
    preparation: Duration,
}

impl<'r> Run<'r> {
    pub(super) fn new(
        pool: ParticipantPool,
        plan: &'r RunPlan,
        interrupt: &'r Interrupt,
        process: Option<ProxyProcess>,
    ) -> Self {
        let outstanding = pool.all().into_iter().collect();
        Self {
            pool,
            plan,
            interrupt,
            process,
            outstanding,
            stopped_at: None,
            preparation: Duration::ZERO,
        }
    }

    /// From the tasks to the last result.
    pub(super) fn run(
        mut self,
        mut gathered: RunOutcome,
        progress: &mut Progress<'_>,
    ) -> Result<RunOutcome, Failure> {
        let servers = self.prepare_origins(progress)?;
        let shares = self.prepare_clients(servers, progress)?;
        if let Some(process) = &mut self.process {
            process.look()?;
        }
        let start_at = self.start()?;
        gathered.started = SystemTime::now() + start_at.saturating_duration_since(Instant::now());
        let usage = self.process.take();
        let usage = usage.map(|process| process.watch(start_at)).transpose()?;
        progress.begin(start_at, shares);
        self.until_clients_are_done(&mut gathered, progress);
        gathered.seconds = start_at.elapsed().as_secs_f64();
        if let Some(usage) = usage {
            (gathered.usage, gathered.usage_warnings) = usage.stop();
        }
        self.until_origins_have_counted(&mut gathered, progress);
        progress.end();
        Ok(gathered)
    }

    /// The address of every server.
    fn prepare_origins(&mut self, progress: &mut Progress<'_>) -> Result<Vec<SocketAddr>, Failure> {
        progress.state("preparing the origin");
        let origins = self.pool.members(Role::Origin);
        let task = ToParticipant::Serve(Box::new(OriginTask {
            scenario: self.plan.scenario.to_toml(),
            seed: self.plan.seed,
            shares: self.shares(),
            mode: self.plan.mode,
        }));
        for &origin in &origins {
            self.tell(origin, &task)?;
        }
        let mut answers = self.until_ready(&origins)?;
        answers.sort_by_key(|(origin, _)| *origin);
        let count = answers
            .iter()
            .map(|(_, servers)| servers.len())
            .min()
            .unwrap_or(0);
        // each origin can be every server; they take turns
        let one_of = |server: usize| answers[server % answers.len()].1[server];
        Ok((0..count).map(one_of).collect())
    }

    /// How many threads there are.
    fn prepare_clients(
        &mut self,
        servers: Vec<SocketAddr>,
        progress: &mut Progress<'_>,
    ) -> Result<u32, Failure> {
        progress.state("preparing the clients");
        progress.expect(&self.plan.scenario, self.plan.seed);
        let clients = self.pool.members(Role::Clients);
        let shares = self.shares();
        let nowhere = || Failure::outside("cannot start the run", "the origin has no server");
        let proxy = match self.plan.proxy {
            Some(proxy) => proxy,
            None => *servers.first().ok_or_else(nowhere)?,
        };
        let mut first_share = 0;
        for &member in &clients {
            let task = ClientTask {
                scenario: self.plan.scenario.to_toml(),
                seed: self.plan.seed,
                first_share,
                shares,
                proxy,
                mode: self.plan.mode,
                servers: servers.clone(),
            };
            first_share += self.threads(member);
            self.tell(member, &ToParticipant::Ask(Box::new(task)))?;
        }
        self.until_ready(&clients)?;
        Ok(shares)
    }

    fn threads(&self, member: usize) -> u32 {
        let hello = self.pool.member(member).hello.as_ref();
        hello.map_or(0, |hello| hello.threads)
    }

    fn shares(&self) -> u32 {
        let clients = self.pool.members(Role::Clients);
        clients.into_iter().map(|member| self.threads(member)).sum()
    }

    /// Waits for `ready` of all of them.
    fn until_ready(&mut self, members: &[usize]) -> Result<Vec<(usize, Vec<SocketAddr>)>, Failure> {
        let mut ready = Vec::new();
        let mut longest_us = 0;
        let mut is_it = |from, message| {
            if let ToMaster::Ready { servers, takes_us } = message {
                longest_us = longest_us.max(takes_us);
                ready.push((from, servers));
                return true;
            }
            false
        };
        self.until_all(members, PREPARATION_MAX, "prepare", &mut is_it)?;
        let longest = Duration::from_micros(longest_us).min(PREPARATION_MAX);
        self.preparation = self.preparation.max(longest);
        Ok(ready)
    }

    /// Waits until each of them has sent a message that `is_it` accepts. Before the start, a
    /// disconnect of a participant ends the run.
    fn until_all(
        &mut self,
        members: &[usize],
        within: Duration,
        to: &str,
        mut is_it: impl FnMut(usize, ToMaster) -> bool,
    ) -> Result<(), Failure> {
        let what = "cannot start the run";
        let until = Instant::now() + within;
        let mut waiting: Vec<usize> = members.to_vec();
        while !waiting.is_empty() {
            match self.pool.hear(POLL_INTERVAL) {
                Some((from, PoolEvent::Said(message))) => match *message {
                    ToMaster::Failed(failure) => {
                        return Err(Failure {
                            what: what.to_owned(),
                            cause: format!("{} {failure}", self.pool.name(from)),
                            ..failure
                        });
                    }
                    message => {
                        if is_it(from, message) {
                            waiting.retain(|&member| member != from);
                        }
                    }
                },
                Some((from, PoolEvent::Gone(why))) if self.pool.member(from).hello.is_some() => {
                    let cause = format!("{} has gone: {why}", self.pool.name(from));
                    return Err(Failure::outside(what, cause));
                }
                _ => {}
            }
            if self.interrupt.is_set() {
                return Err(Failure::outside(what, "interrupted"));
            }
            if Instant::now() >= until {
                let names: Vec<String> = waiting
                    .iter()
                    .map(|&member| self.pool.name(member))
                    .collect();
                let cause = format!(
                    "after {} s still waiting for {} to {to}",
                    within.as_secs(),
                    names.join(", ")
                );
                return Err(Failure::outside(what, cause));
            }
        }
        Ok(())
    }

    /// All start at the instant that is returned.
    fn start(&mut self) -> Result<Instant, Failure> {
        let members = self.pool.all();
        let mut round_trips = Vec::with_capacity(members.len());
        for &member in &members {
            let sent = Instant::now();
            self.tell(member, &ToParticipant::Ping)?;
            let is_it = |from, message| from == member && message == ToMaster::Pong;
            self.until_all(&[member], SILENCE_MAX, "answer", is_it)?;
            round_trips.push(sent.elapsed());
        }
        let longest = round_trips.iter().max().copied().unwrap_or_default();
        let start_at = Instant::now() + START_DELAY + 2 * self.preparation + longest;
        for (&member, round_trip) in members.iter().zip(&round_trips) {
            let ahead = start_at.saturating_duration_since(Instant::now());
            let ahead = ahead.saturating_sub(*round_trip / 2);
            let in_us = u64::try_from(ahead.as_micros()).unwrap_or(u64::MAX);
            self.tell(member, &ToParticipant::Go { in_us })?;
        }
        Ok(start_at)
    }

    fn until_clients_are_done(&mut self, gathered: &mut RunOutcome, progress: &mut Progress<'_>) {
        while self.has_outstanding(Role::Clients) {
            self.step(gathered, progress);
            if self.interrupt.is_set() && !gathered.is_interrupted {
                gathered.is_interrupted = true;
                progress.state("interrupted: gathering what there is");
                self.stop(Role::Clients);
            }
            if !gathered.lost.is_empty() && self.stopped_at.is_none() {
                progress.state("a participant was lost: gathering what there is");
                self.stop(Role::Clients);
            }
            if self.stopped_at.is_some_and(|at| at.elapsed() > STOP_MAX) {
                self.give_up(Role::Clients, gathered);
            }
        }
    }

    fn until_origins_have_counted(
        &mut self,
        gathered: &mut RunOutcome,
        progress: &mut Progress<'_>,
    ) {
        self.stop(Role::Origin);
        let stopped_at = Instant::now();
        while self.has_outstanding(Role::Origin) {
            self.step(gathered, progress);
            if stopped_at.elapsed() > STOP_MAX {
                self.give_up(Role::Origin, gathered);
            }
        }
    }

    /// Handles one message, and looks for participants that are silent.
    fn step(&mut self, gathered: &mut RunOutcome, progress: &mut Progress<'_>) {
        match self.pool.hear(POLL_INTERVAL) {
            Some((from, PoolEvent::Said(message))) => self.take(from, *message, gathered, progress),
            Some((from, PoolEvent::Gone(why))) => self.lose(from, &why, gathered),
            None => {}
        }
        let silent: Vec<usize> = self
            .outstanding
            .iter()
            .copied()
            .filter(|&member| self.pool.member(member).last_heard.elapsed() > SILENCE_MAX)
            .collect();
        for member in silent {
            let why = format!("it has said nothing for {} s", SILENCE_MAX.as_secs());
            self.lose(member, &why, gathered);
        }
        progress.tick();
    }

    fn take(
        &mut self,
        from: usize,
        message: ToMaster,
        gathered: &mut RunOutcome,
        progress: &mut Progress<'_>,
    ) {
        match message {
            ToMaster::Second { second } => progress.second(&second),
            ToMaster::Result(result) => {
                if self.outstanding.remove(&from) {
                    gathered.add_clients(*result);
                }
            }
            ToMaster::Counted(result) => {
                if self.outstanding.remove(&from) {
                    gathered.add_origin(&result);
                }
            }
            ToMaster::Failed(failure) => self.lose(from, &failure.to_string(), gathered),
            ToMaster::Served { .. } | ToMaster::Pong => {}
            ToMaster::Hello(_) | ToMaster::Ready { .. } => {
                self.lose(from, "it spoke out of turn", gathered);
            }
        }
    }

    /// A participant with a result may leave; others end the run.
    fn lose(&mut self, member: usize, why: &str, gathered: &mut RunOutcome) {
        if self.outstanding.remove(&member) {
            let name = self.pool.name(member);
            gathered
                .lost
                .push(format!("The participant {name} was lost: {why}."));
        }
    }

    fn give_up(&mut self, role: Role, gathered: &mut RunOutcome) {
        for member in self.pool.members(role) {
            let why = format!(
                "it did not say what it had counted within {} s",
                STOP_MAX.as_secs()
            );
            self.lose(member, &why, gathered);
        }
        // disconnected ones as well
        self.outstanding
            .retain(|&member| !self.pool.has_role(member, role));
    }

    fn has_outstanding(&self, role: Role) -> bool {
        let mut outstanding = self.outstanding.iter();
        outstanding.any(|&member| self.pool.has_role(member, role))
    }

    fn stop(&mut self, role: Role) {
        if role == Role::Clients {
            self.stopped_at = Some(Instant::now());
        }
        for member in self.pool.members(role) {
            // its reader notices a closed connection
            let _ = self.pool.send(member, &ToParticipant::Stop);
        }
    }

    fn tell(&self, member: usize, message: &ToParticipant) -> Result<(), Failure> {
        self.pool.send(member, message).map_err(|error| {
            let cause = format!("{} has gone: {error}", self.pool.name(member));
            Failure::outside("cannot start the run", cause)
        })
    }
}
