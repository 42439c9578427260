//! The floor: the least a server on epoll can do for a request, to compare the cost of proxies
//! with.
//!
//! One thread, level-triggered epoll, `httparse` for the request head, answers that were made
//! beforehand; no timers, no limits, no log, no runtime. A cache that answers from memory has to do
//! more than this and cannot do less.

use clap::Args;
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use xtask::failure::{During, Failure};

/// The command that makes a process the floor.
pub(crate) const ROLE: &str = "floor";

/// The key of the listener among the events; connections count from 1.
const LISTENER: u64 = 0;

/// Lent to whichever connection is readable: an idle one owns no buffer.
const SCRATCH_BYTES: usize = 64 * 1024;

const FIELDS_MAX: usize = 64;

const EVENTS_MAX: usize = 256;

/// Options of the process that is the floor.
#[derive(Args, Debug)]
pub(crate) struct Options {
    port: u16,
    /// Bytes of content of every answer
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// Answer as the site of `bench-speed` does
    #[arg(long)]
    pub(crate) site: bool,
}

/// Serves until the process is ended; by number in the path, if there are `answers`.
pub(crate) fn run(options: &Options, answers: Option<Vec<Vec<u8>>>) -> Result<(), Failure> {
    let answers = answers.unwrap_or_else(|| vec![answer(options.size)]);
    let port = options.port;
    serve(port, &answers).during(format_args!("serve port {port}"))
}

/// As many fields as a plain hit has.
fn answer(size: usize) -> Vec<u8> {
    let mut answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\
         Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nCache-Control: max-age=3600\r\nAge: 1\r\n\
         Via: 1.1 floor\r\nCache-Status: floor; hit\r\n\r\n"
    )
    .into_bytes();
    answer.resize(answer.len() + size, b'x');
    answer
}

struct Connection {
    stream: TcpStream,
    /// A request head that is not whole yet.
    partial: Vec<u8>,
    /// What the socket did not take yet.
    unsent: Vec<u8>,
}

fn serve(port: u16, answers: &[Vec<u8>]) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(
        &epoll,
        &listener,
        epoll::EventData::new_u64(LISTENER),
        epoll::EventFlags::IN,
    )?;
    let mut connections: BTreeMap<u64, Connection> = BTreeMap::new();
    let mut next_key = LISTENER + 1;
    let mut scratch = vec![0; SCRATCH_BYTES];
    let mut events = Vec::with_capacity(EVENTS_MAX);
    loop {
        events.clear();
        match epoll::wait(&epoll, spare_capacity(&mut events), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let key = event.data.u64();
            if key == LISTENER {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true)?;
                    let data = epoll::EventData::new_u64(next_key);
                    epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
                    let connection = Connection {
                        stream,
                        partial: Vec::new(),
                        unsent: Vec::new(),
                    };
                    connections.insert(next_key, connection);
                    next_key += 1;
                }
            } else if let Some(connection) = connections.get_mut(&key) {
                let waited = !connection.unsent.is_empty();
                if connection.ready(&mut scratch, answers).is_err() {
                    // closing the socket takes it out of the epoll set
                    connections.remove(&key);
                } else if waited == connection.unsent.is_empty() {
                    let flags = if waited {
                        epoll::EventFlags::IN
                    } else {
                        epoll::EventFlags::OUT
                    };
                    epoll::modify(&epoll, &connection.stream, event.data, flags)?;
                }
            }
        }
    }
}

impl Connection {
    /// Answers every whole request that has arrived.
    ///
    /// # Errors
    /// The connection is over, in whatever way.
    fn ready(&mut self, scratch: &mut [u8], answers: &[Vec<u8>]) -> io::Result<()> {
        if !self.unsent.is_empty() {
            let unsent = std::mem::take(&mut self.unsent);
            return self.send(&unsent);
        }
        let length = match self.stream.read(scratch) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        if self.partial.is_empty() {
            let consumed = self.answer(&scratch[..length], answers)?;
            self.partial.extend_from_slice(&scratch[consumed..length]);
            return Ok(());
        }
        self.partial.extend_from_slice(&scratch[..length]);
        let mut partial = std::mem::take(&mut self.partial);
        let consumed = self.answer(&partial, answers)?;
        partial.drain(..consumed);
        self.partial = partial;
        Ok(())
    }

    /// Answers all whole request heads that `bytes` begins with; says how long they are.
    fn answer(&mut self, bytes: &[u8], answers: &[Vec<u8>]) -> io::Result<usize> {
        let mut consumed = 0;
        while consumed < bytes.len() {
            let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
            let mut request = httparse::Request::new(&mut fields);
            match request.parse(&bytes[consumed..]) {
                Ok(httparse::Status::Complete(length)) => consumed += length,
                Ok(httparse::Status::Partial) => break,
                Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
            let answer = if answers.len() > 1 {
                answers.get(number_in(request.path.unwrap_or_default()))
            } else {
                answers.first()
            };
            let answer = answer.ok_or(io::ErrorKind::InvalidInput)?;
            if self.unsent.is_empty() {
                self.send(answer)?;
            } else {
                self.unsent.extend_from_slice(answer);
            }
        }
        Ok(consumed)
    }

    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.write(&bytes[sent..]) {
                Ok(length) => sent += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unsent.extend_from_slice(&bytes[sent..]);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The first number in a path.
fn number_in(path: &str) -> usize {
    let digits = path.bytes().skip_while(|byte| !byte.is_ascii_digit());
    let digits = digits.take_while(u8::is_ascii_digit);
    digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}
