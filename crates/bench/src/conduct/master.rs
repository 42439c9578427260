//! The master: it admits participants, starts the run and ends it.

use super::interrupt::Interrupt;
use super::message::{Hello, PROTOCOL, Role, ToMaster};
use super::participant_pool::{ParticipantPool, PoolEvent};
use super::plan::RunPlan;
use super::run::Run;
use super::run_outcome::{Participant, RunOutcome};
use super::{ARRIVAL_MAX, CLOCKS_APART_MAX};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::usage::ProxyProcess;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

/// The participants that the master waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedParticipants {
    /// Hosts of servers, at least 1.
    pub origins: u32,
    /// Hosts of clients, at least 1.
    pub clients: u32,
    /// How long.
    pub within: Duration,
}

impl Default for ExpectedParticipants {
    fn default() -> Self {
        Self {
            origins: 1,
            clients: 1,
            within: ARRIVAL_MAX,
        }
    }
}

/// How often the master looks at its sockets, its signals and its clock.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A master that can be joined.
#[derive(Debug)]
pub struct Master {
    listener: TcpListener,
    address: SocketAddr,
    expected: ExpectedParticipants,
}

impl Master {
    /// Listens for participants.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn bind(address: SocketAddr, expected: ExpectedParticipants) -> Result<Self, Failure> {
        let failure = |error: std::io::Error| {
            Failure::outside(format!("cannot wait for participants on {address}"), error)
        };
        let listener = TcpListener::bind(address).map_err(failure)?;
        listener.set_nonblocking(true).map_err(failure)?;
        let address = listener.local_addr().map_err(failure)?;
        Ok(Self {
            listener,
            address,
            expected,
        })
    }

    /// Where participants connect to.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Conducts the run. Once it has started, this returns what there is, whatever happens.
    ///
    /// # Errors
    /// There is no process of the plan's id, not all came, a participant could not prepare, or it
    /// was interrupted before the start.
    pub fn conduct(
        self,
        plan: &RunPlan,
        interrupt: &Interrupt,
        progress: &mut Progress<'_>,
    ) -> Result<RunOutcome, Failure> {
        // before the wait for participants
        let process = plan.proxy_pid.map(ProxyProcess::find).transpose()?;
        let mut pool = ParticipantPool::new();
        self.assemble(&mut pool, interrupt, progress)?;
        drop(self.listener);
        let participants = pool.all().into_iter().filter_map(|index| {
            let hello = pool.member(index).hello.as_ref()?;
            Some(Participant {
                role: hello.role,
                name: hello.name.clone(),
                version: hello.version.clone(),
                host: hello.host.clone(),
            })
        });
        let gathered = RunOutcome::begun(participants.collect());
        Run::new(pool, plan, interrupt, process).run(gathered, progress)
    }

    /// Waits until all have come.
    fn assemble(
        &self,
        pool: &mut ParticipantPool,
        interrupt: &Interrupt,
        progress: &mut Progress<'_>,
    ) -> Result<(), Failure> {
        let what = "cannot start the run";
        let until = Instant::now() + self.expected.within;
        loop {
            pool.accept(&self.listener)
                .map_err(|error| Failure::outside(what, error))?;
            match pool.hear(POLL_INTERVAL) {
                Some((from, PoolEvent::Said(message))) => match *message {
                    ToMaster::Hello(hello) => self.receive(pool, from, hello, progress),
                    _ => pool.refuse(from, "the first message has to be `hello`"),
                },
                Some((from, PoolEvent::Gone(why))) if pool.member(from).hello.is_some() => {
                    progress.say(&format!("{} has gone: {why}", pool.name(from)));
                }
                _ => {}
            }
            if self.missing(pool) == (0, 0) {
                return Ok(());
            }
            if interrupt.is_set() {
                return Err(Failure::outside(what, "interrupted"));
            }
            if Instant::now() >= until {
                return Err(self.missing_participants(pool));
            }
        }
    }

    fn receive(
        &self,
        pool: &mut ParticipantPool,
        from: usize,
        hello: Hello,
        progress: &mut Progress<'_>,
    ) {
        match self.objection(pool, &hello) {
            Some(why) => {
                pool.refuse(from, &why);
                let address = pool.member(from).address;
                progress.say(&format!(
                    "refused {} `{}` ({address}): {why}",
                    hello.role, hello.name
                ));
            }
            None => {
                pool.admit(from, hello);
                progress.joined(&pool.name(from));
            }
        }
    }

    fn objection(&self, pool: &ParticipantPool, hello: &Hello) -> Option<String> {
        if hello.protocol != PROTOCOL {
            return Some(format!(
                "it speaks version {} of the protocol and the master version {PROTOCOL}: use the same weir everywhere",
                hello.protocol
            ));
        }
        let apart_ms = jiff::Timestamp::now()
            .as_millisecond()
            .abs_diff(hello.wall_ms);
        if u128::from(apart_ms) > CLOCKS_APART_MAX.as_millis() {
            return Some(format!(
                "its wall clock is {apart_ms} ms from the master's, and at most {} ms are allowed, or fresh responses would \
                 pass for stale ones: let both follow NTP",
                CLOCKS_APART_MAX.as_millis()
            ));
        }
        if hello.threads == 0 {
            return Some("it has no thread".into());
        }
        let wanted = match hello.role {
            Role::Origin => self.expected.origins,
            Role::Clients => self.expected.clients,
        };
        let there = pool.members(hello.role);
        if there.len() >= usize::try_from(wanted).unwrap_or(usize::MAX) {
            return Some(format!(
                "all {wanted} participants with the role {} are there",
                hello.role
            ));
        }
        let same_name = there
            .iter()
            .filter_map(|&index| pool.member(index).hello.as_ref());
        let same_name = same_name.filter(|other| other.name == hello.name).count();
        (same_name > 0).then(|| format!("the name `{}` is taken: use --name", hello.name))
    }

    /// How many origins and clients are not there yet.
    fn missing(&self, pool: &ParticipantPool) -> (usize, usize) {
        let missing = |wanted: u32, role| {
            usize::try_from(wanted)
                .unwrap_or(usize::MAX)
                .saturating_sub(pool.members(role).len())
        };
        (
            missing(self.expected.origins, Role::Origin),
            missing(self.expected.clients, Role::Clients),
        )
    }

    fn missing_participants(&self, pool: &ParticipantPool) -> Failure {
        let (origins, clients) = self.missing(pool);
        let ExpectedParticipants {
            origins: all_origins,
            clients: all_clients,
            within,
        } = self.expected;
        let came: Vec<String> = pool
            .all()
            .into_iter()
            .map(|index| pool.name(index))
            .collect();
        let came = match came.as_slice() {
            [] => "no participant joined".to_owned(),
            came => format!("there are {}", came.join(", ")),
        };
        Failure::outside(
            "cannot start the run",
            format!(
                "after {} s {origins} of {all_origins} origins and {clients} of {all_clients} clients are missing; {came}",
                within.as_secs()
            ),
        )
        .with_hint(format!(
            "on the other machines: `weir bench origin --master {0}` and `weir bench clients --master {0}`, with an address of this \
             machine that they can reach; --wait gives them longer",
            self.address
        ))
    }
}
