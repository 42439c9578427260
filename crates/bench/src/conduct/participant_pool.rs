//! The connections to the master, and the messages they bring.

use super::line::{self, LineReader, LineWriter};
use super::message::{Hello, Role, ToMaster, ToParticipant};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

/// Connections at most; later ones are closed. Far more than a test bed has machines.
const CONNECTIONS_MAX: usize = 256;

/// The participants, and connections that have not sent their hello.
#[derive(Debug)]
pub(super) struct ParticipantPool {
    members: Vec<Member>,
    sender: Sender<(usize, PoolEvent)>,
    heard: Receiver<(usize, PoolEvent)>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Member {
    writer: LineWriter,
    pub(super) address: SocketAddr,
    /// Once it sent its hello and was admitted.
    pub(super) hello: Option<Hello>,
    pub(super) last_heard: Instant,
    /// It has ended, or was refused.
    pub(super) is_gone: bool,
}

/// What came over a connection.
#[derive(Debug)]
pub(super) enum PoolEvent {
    Said(Box<ToMaster>),
    /// The connection has ended, and why.
    Gone(String),
}

impl ParticipantPool {
    pub(super) fn new() -> Self {
        let (sender, heard) = mpsc::channel();
        Self {
            members: Vec::new(),
            sender,
            heard,
        }
    }

    /// Accepts the connections of a non-blocking listener.
    pub(super) fn accept(&mut self, listener: &TcpListener) -> io::Result<()> {
        loop {
            match listener.accept() {
                Ok((stream, address)) if self.members.len() < CONNECTIONS_MAX => {
                    self.add(stream, address)?;
                }
                Ok(_too_many) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // it disconnected before it was accepted
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn add(&mut self, stream: TcpStream, address: SocketAddr) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        let (lines, writer) = line::both(stream)?;
        let (index, sender) = (self.members.len(), self.sender.clone());
        std::thread::Builder::new()
            .name(format!("weir-member-{index}"))
            .spawn(move || listen(lines, index, &sender))?;
        self.members.push(Member {
            writer,
            address,
            hello: None,
            last_heard: Instant::now(),
            is_gone: false,
        });
        Ok(())
    }

    /// The next message, if one comes within that time.
    pub(super) fn hear(&mut self, within: Duration) -> Option<(usize, PoolEvent)> {
        let (from, heard) = self.heard.recv_timeout(within).ok()?;
        self.members[from].last_heard = Instant::now();
        self.members[from].is_gone |= matches!(heard, PoolEvent::Gone(_));
        Some((from, heard))
    }

    pub(super) fn member(&self, index: usize) -> &Member {
        &self.members[index]
    }

    pub(super) fn admit(&mut self, index: usize, hello: Hello) {
        self.members[index].hello = Some(hello);
    }

    /// Sends the reason of the refusal, and ends the connection.
    pub(super) fn refuse(&mut self, index: usize, why: &str) {
        let why = why.to_owned();
        let member = &mut self.members[index];
        // a closed connection needs no answer
        let _ = member.writer.send(&ToParticipant::Refused { why });
        member.hello = None;
        member.is_gone = true;
    }

    /// The admitted participants of this role, in the order in which they joined.
    pub(super) fn members(&self, role: Role) -> Vec<usize> {
        (0..self.members.len())
            .filter(|&index| !self.members[index].is_gone && self.has_role(index, role))
            .collect()
    }

    /// Whether this one was admitted with this role.
    pub(super) fn has_role(&self, index: usize, role: Role) -> bool {
        let hello = self.members[index].hello.as_ref();
        hello.is_some_and(|hello| hello.role == role)
    }

    /// All of them, origins first.
    pub(super) fn all(&self) -> Vec<usize> {
        let mut all = self.members(Role::Origin);
        all.extend(self.members(Role::Clients));
        all
    }

    /// Its name, and where it is.
    pub(super) fn name(&self, index: usize) -> String {
        let member = &self.members[index];
        match &member.hello {
            Some(hello) => format!("{} `{}` ({})", hello.role, hello.name, member.address.ip()),
            None => format!("someone at {}", member.address),
        }
    }

    pub(super) fn send(&self, index: usize, message: &ToParticipant) -> io::Result<()> {
        self.members[index].writer.send(message)
    }
}

/// Passes on messages until the connection ends.
fn listen(mut lines: LineReader, index: usize, sender: &Sender<(usize, PoolEvent)>) {
    loop {
        let (heard, is_last) = match lines.read() {
            Ok(message) => (PoolEvent::Said(Box::new(message)), false),
            Err(error) => (PoolEvent::Gone(error.to_string()), true),
        };
        // the receiver is dropped when the run is over
        if sender.send((index, heard)).is_err() || is_last {
            return;
        }
    }
}
