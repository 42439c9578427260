//! Everybody who has connected to the master, and what they say.

use super::line::{self, Lines, Outlet};
use super::message::{Hello, Role, ToMaster, ToParticipant};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Connections that are looked at; whoever comes later is closed. Far more than anybody has
/// machines.
const CONNECTIONS_MAX: usize = 256;

/// Those who take part, and those who have not said who they are.
#[derive(Debug)]
pub(super) struct Crew {
    guests: Vec<Guest>,
    sender: Sender<(usize, Heard)>,
    heard: Receiver<(usize, Heard)>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Guest {
    outlet: Outlet,
    pub(super) address: SocketAddr,
    /// Once it said who it is and was let in.
    pub(super) hello: Option<Hello>,
    pub(super) last_heard: Instant,
    /// It has ended, or was told to go.
    pub(super) is_gone: bool,
}

/// What came over a connection.
#[derive(Debug)]
pub(super) enum Heard {
    Said(Box<ToMaster>),
    /// It will say no more, and why.
    Gone(String),
}

impl Crew {
    pub(super) fn new() -> Self {
        let (sender, heard) = mpsc::channel();
        Self {
            guests: Vec::new(),
            sender,
            heard,
        }
    }

    /// Lets in who has connected to a listener that does not block.
    pub(super) fn accept(&mut self, listener: &TcpListener) -> io::Result<()> {
        loop {
            match listener.accept() {
                Ok((stream, address)) if self.guests.len() < CONNECTIONS_MAX => {
                    self.add(stream, address)?;
                }
                Ok(_too_many) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // it has gone before it was accepted
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn add(&mut self, stream: TcpStream, address: SocketAddr) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        let (lines, outlet) = line::both(stream)?;
        let (index, sender) = (self.guests.len(), self.sender.clone());
        std::thread::Builder::new()
            .name(format!("weir-guest-{index}"))
            .spawn(move || listen(lines, index, &sender))?;
        self.guests.push(Guest {
            outlet,
            address,
            hello: None,
            last_heard: Instant::now(),
            is_gone: false,
        });
        Ok(())
    }

    /// What is said next, if anything is within that time.
    pub(super) fn hear(&mut self, within: Duration) -> Option<(usize, Heard)> {
        let (from, heard) = self.heard.recv_timeout(within).ok()?;
        self.guests[from].last_heard = Instant::now();
        self.guests[from].is_gone |= matches!(heard, Heard::Gone(_));
        Some((from, heard))
    }

    pub(super) fn guest(&self, index: usize) -> &Guest {
        &self.guests[index]
    }

    pub(super) fn admit(&mut self, index: usize, hello: Hello) {
        self.guests[index].hello = Some(hello);
    }

    /// Says why it is not wanted, and ends the connection.
    pub(super) fn refuse(&mut self, index: usize, why: &str) {
        let why = why.to_owned();
        let guest = &mut self.guests[index];
        // whoever is gone needs no answer
        let _ = guest.outlet.send(&ToParticipant::Refused { why });
        guest.hello = None;
        guest.is_gone = true;
    }

    /// The admitted of this role who are still there, in the order they came.
    pub(super) fn members(&self, role: Role) -> Vec<usize> {
        let has_role = |guest: &Guest| {
            let hello = guest.hello.as_ref();
            !guest.is_gone && hello.is_some_and(|hello| hello.role == role)
        };
        (0..self.guests.len())
            .filter(|&index| has_role(&self.guests[index]))
            .collect()
    }

    /// All of them, origins first.
    pub(super) fn all(&self) -> Vec<usize> {
        let mut all = self.members(Role::Origin);
        all.extend(self.members(Role::Clients));
        all
    }

    /// Its name, and where it is.
    pub(super) fn name(&self, index: usize) -> String {
        let guest = &self.guests[index];
        match &guest.hello {
            Some(hello) => format!("{} `{}` ({})", hello.role, hello.name, guest.address.ip()),
            None => format!("someone at {}", guest.address),
        }
    }

    pub(super) fn send(&self, index: usize, message: &ToParticipant) -> io::Result<()> {
        self.guests[index].outlet.send(message)
    }
}

/// Passes on what is said until there is no more.
fn listen(mut lines: Lines, index: usize, sender: &Sender<(usize, Heard)>) {
    loop {
        let (heard, is_last) = match lines.read() {
            Ok(message) => (Heard::Said(Box::new(message)), false),
            Err(error) => (Heard::Gone(error.to_string()), true),
        };
        // nobody listens any more when the run is over
        if sender.send((index, heard)).is_err() || is_last {
            return;
        }
    }
}
