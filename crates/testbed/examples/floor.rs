//! The floor: the least a server on epoll can do for a request, to set everybody's cost against.
//!
//! One thread, level-triggered epoll, `httparse` for the request head, a fixed answer; no timers,
//! no limits, no log, no runtime. A cache that answers from memory has to do more than this and
//! cannot do less.
//!
//! ```text
//! cargo run --release -p weir-testbed --example floor -- --port 8080 [--size 1024]
//! ```

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;

/// The key of the listener among the events; connections count from 1.
const LISTENER: u64 = 0;

/// Lent to whichever connection is readable: an idle one owns no buffer.
const SCRATCH_BYTES: usize = 64 * 1024;

const FIELDS_MAX: usize = 64;

const EVENTS_MAX: usize = 256;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((port, size)) = options(&arguments) else {
        eprintln!("error: bad usage\nhint: floor --port PORT [--size BYTES]");
        return ExitCode::from(2);
    };
    match serve(port, &answer(size)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot serve port {port}: {error}");
            ExitCode::from(3)
        }
    }
}

fn options(arguments: &[String]) -> Option<(u16, usize)> {
    let (mut port, mut size) = (None, 1024);
    for pair in arguments.chunks(2) {
        match pair {
            [name, value] if name == "--port" => port = Some(value.parse().ok()?),
            [name, value] if name == "--size" => size = value.parse().ok()?,
            _ => return None,
        }
    }
    Some((port?, size))
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

fn serve(port: u16, answer: &[u8]) -> io::Result<()> {
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
                if connection.ready(&mut scratch, answer).is_err() {
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
    fn ready(&mut self, scratch: &mut [u8], answer: &[u8]) -> io::Result<()> {
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
            let (count, consumed) = requests(&scratch[..length])?;
            self.partial.extend_from_slice(&scratch[consumed..length]);
            return self.answer(count, answer);
        }
        self.partial.extend_from_slice(&scratch[..length]);
        let (count, consumed) = requests(&self.partial)?;
        self.partial.drain(..consumed);
        self.answer(count, answer)
    }

    fn answer(&mut self, count: usize, answer: &[u8]) -> io::Result<()> {
        match count {
            0 => Ok(()),
            1 => self.send(answer),
            _ => self.send(&answer.repeat(count)),
        }
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

/// How many whole request heads `bytes` begins with, and how long they are.
fn requests(bytes: &[u8]) -> io::Result<(usize, usize)> {
    let (mut count, mut consumed) = (0, 0);
    while consumed < bytes.len() {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        match httparse::Request::new(&mut fields).parse(&bytes[consumed..]) {
            Ok(httparse::Status::Complete(length)) => {
                count += 1;
                consumed += length;
            }
            Ok(httparse::Status::Partial) => break,
            Err(_) => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
    Ok((count, consumed))
}
