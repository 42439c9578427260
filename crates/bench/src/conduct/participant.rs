//! Participants: the same code in a process of its own and on a thread of `weir bench run`.

use super::interrupt::Interrupt;
use super::line::{self, LineReader, LineWriter};
use super::message::{Hello, PROTOCOL, Role, ToMaster, ToParticipant};
use super::shaping::Shaping;
use super::{ARRIVAL_MAX, client_role, origin_role};
use crate::failure::Failure;
use crate::record::host;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How a participant joins its master.
#[derive(Clone, Debug)]
pub struct JoinSettings {
    /// Where it listens.
    pub master: SocketAddr,
    /// The participant's name, one for each participant.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// How long the master is waited for.
    pub within: Duration,
}

/// The settings of a participant that runs clients.
#[derive(Clone, Debug)]
pub struct ClientRole {
    /// At least 1; each is a loop of its own.
    pub threads: u32,
    /// Where single requests are written to, and of how many one.
    pub samples: Option<(PathBuf, u32)>,
    /// What shapes links, where the scenario has any.
    pub shaping: Shaping,
}

/// The settings of a participant that runs origins.
#[derive(Clone, Copy, Debug)]
pub struct OriginRole {
    /// At least 1.
    pub threads: u32,
    /// Where it listens; the address by which the master is reached, and free ports, if not given.
    /// With a port, servers that have one each count up from it; servers that have an address each
    /// count up from its address.
    pub listen: Option<SocketAddr>,
}

/// Between two attempts to reach a master that is not there yet.
const RETRY: Duration = Duration::from_millis(200);

/// How long the master may say nothing before it starts the run: it may wait for others for as long
/// as its operator likes.
const TASK_MAX: Duration = Duration::from_secs(24 * 3600);

impl JoinSettings {
    /// The defaults for one that joins this master.
    #[must_use]
    pub fn new(master: SocketAddr, name: String, version: &str) -> Self {
        Self {
            master,
            name,
            version: version.to_owned(),
            within: ARRIVAL_MAX,
        }
    }

    /// Takes part as clients until the run is over.
    ///
    /// # Errors
    /// The master cannot be reached, refuses us or disconnects, or we cannot do its task.
    pub fn run_clients(&self, clients: &ClientRole, interrupt: &Interrupt) -> Result<(), Failure> {
        let session = self.join(Role::Clients, clients.threads, interrupt)?;
        let done = client_role::run(&session, clients);
        session.finish(done)
    }

    /// Takes part as an origin until the run is over.
    ///
    /// # Errors
    /// As for clients.
    pub fn run_origin(&self, origin: &OriginRole, interrupt: &Interrupt) -> Result<(), Failure> {
        let session = self.join(Role::Origin, origin.threads, interrupt)?;
        let done = origin_role::run(&session, origin);
        session.finish(done)
    }

    fn join<'i>(
        &self,
        role: Role,
        threads: u32,
        interrupt: &'i Interrupt,
    ) -> Result<MasterSession<'i>, Failure> {
        let failure = |error: io::Error| {
            Failure::outside(format!("cannot join the master at {}", self.master), error)
        };
        let stream = self.reach(interrupt)?;
        let near = stream.local_addr().map_err(failure)?.ip();
        let (lines, writer) = line::both(stream).map_err(failure)?;
        let hello = Hello {
            protocol: PROTOCOL,
            role,
            name: self.name.clone(),
            version: self.version.clone(),
            threads,
            host: host::look(),
            wall_ms: jiff::Timestamp::now().as_millisecond(),
        };
        writer.send(&ToMaster::Hello(hello)).map_err(failure)?;
        let (sender, said) = mpsc::sync_channel(MESSAGES_MAX);
        std::thread::Builder::new()
            .name("weir-master".into())
            .spawn(move || listen(lines, &sender))
            .map_err(failure)?;
        Ok(MasterSession {
            writer,
            said,
            near,
            interrupt,
        })
    }

    /// It may be started after us.
    fn reach(&self, interrupt: &Interrupt) -> Result<TcpStream, Failure> {
        let until = Instant::now() + self.within;
        loop {
            let error = match TcpStream::connect_timeout(&self.master, self.within.max(RETRY)) {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if Instant::now() >= until || interrupt.is_set() {
                let what = format!("cannot join the master at {}", self.master);
                return Err(Failure::outside(what, error).with_hint(
                    "start it with `weir bench master SCENARIO --proxy ADDR --listen ADDR:PORT`",
                ));
            }
            std::thread::sleep(RETRY);
        }
    }
}

/// Messages of the master that are not looked at yet.
const MESSAGES_MAX: usize = 16;

/// A participant's connection to its master.
#[derive(Debug)]
pub(super) struct MasterSession<'i> {
    writer: LineWriter,
    said: Receiver<io::Result<ToParticipant>>,
    /// Our address as the master reaches it.
    pub(super) near: IpAddr,
    pub(super) interrupt: &'i Interrupt,
}

impl MasterSession<'_> {
    pub(super) fn send(&self, message: &ToMaster) -> Result<(), Failure> {
        self.writer.send(message).map_err(|error| {
            Failure::outside("cannot go on", format!("the master has gone: {error}"))
        })
    }

    /// The next message that is no ping, if there is one within that time.
    pub(super) fn hear(&self, within: Duration) -> Result<Option<ToParticipant>, Failure> {
        let gone = |why: &dyn std::fmt::Display| {
            Failure::outside("cannot go on", format!("the master has gone: {why}"))
        };
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok(Ok(ToParticipant::Ping)) => self.send(&ToMaster::Pong)?,
                Ok(Ok(ToParticipant::Refused { why })) => {
                    return Err(Failure::outside(
                        "cannot take part",
                        format!("the master refuses us: {why}"),
                    ));
                }
                Ok(Ok(message)) => return Ok(Some(message)),
                Ok(Err(error)) => return Err(gone(&error)),
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(gone(&"it says no more")),
            }
        }
    }

    /// The next message; interrupts are looked for.
    pub(super) fn wait(&self) -> Result<ToParticipant, Failure> {
        let until = Instant::now() + TASK_MAX;
        while Instant::now() < until {
            if let Some(message) = self.hear(RETRY)? {
                return Ok(message);
            }
            if self.interrupt.is_set() {
                return Err(Failure::outside("cannot take part", "interrupted"));
            }
        }
        Err(Failure::outside(
            "cannot take part",
            "the master has not started the run for a day",
        ))
    }

    /// The instant of the start; `None` if there will be none.
    pub(super) fn wait_for_go(&self) -> Result<Option<Instant>, Failure> {
        match self.wait()? {
            ToParticipant::Go { in_us } => Ok(Some(Instant::now() + Duration::from_micros(in_us))),
            ToParticipant::Stop => Ok(None),
            other => Err(out_of_turn(&other)),
        }
    }

    /// Reports a failure to the master.
    fn finish(self, done: Result<(), Failure>) -> Result<(), Failure> {
        if let Err(failure) = &done {
            // the master may have ended
            let _ = self.writer.send(&ToMaster::Failed(failure.clone()));
        }
        done
    }
}

pub(super) fn out_of_turn(message: &ToParticipant) -> Failure {
    let word = serde_json::to_value(message).unwrap_or_default();
    let cause = format!("the master spoke out of turn: {}", word["message"]);
    Failure::outside("cannot take part", cause)
}

fn listen(mut lines: LineReader, sender: &mpsc::SyncSender<io::Result<ToParticipant>>) {
    loop {
        let read = lines.read();
        let is_last = read.is_err();
        if sender.send(read).is_err() || is_last {
            return;
        }
    }
}
