//! A server that sends what was made beforehand: a cache without anything that decides.
//!
//! `httparse` reads the request head; nothing is decided by it but, with several answers, which of
//! them is sent.

use super::event_loop::{self, Handler, Poll};
use clap::{Args, ValueEnum};
use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::net::{SendFlags, send};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::path::Path;
use xtask::failure::{During, Failure};

/// The command that makes a process such a server.
pub(crate) const ROLE: &str = "bare-answers";

/// Bytes of a request head, or of requests that wait for the answer before them.
const PARTIAL_BYTES_MAX: usize = 64 * 1024;

const FIELDS_MAX: usize = 64;

/// Options of the process that is such a server.
#[derive(Args, Debug)]
pub(crate) struct Options {
    port: u16,
    /// Bytes of content of every answer
    #[arg(long, default_value_t = 1024)]
    size: usize,
    /// How answers are sent
    #[arg(long, value_enum, default_value_t = Method::Write)]
    by: Method,
    /// Answer as the site of `bench-speed` does
    #[arg(long)]
    pub(crate) site: bool,
}

/// How an answer gets to the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    /// One `write` of head and content that lie together in memory
    Write,
    /// One `writev` of a head and of content elsewhere in memory
    Writev,
    /// `sendfile` of a file in the work directory, which the page cache holds
    Sendfile,
    /// `sendfile` of memory: a file that is on no disk (`memfd_create`)
    Memfd,
}

/// The name of the file that is sent, in the work directory.
const FILE: &str = "content";

/// Serves until the process is ended; by number in the path, if there are `answers`.
pub(crate) fn run(options: &Options, answers: Option<Vec<Vec<u8>>>) -> Result<(), Failure> {
    let Options { port, size, by, .. } = *options;
    let answers = match answers {
        Some(answers) => answers.into_iter().map(Answer::Whole).collect(),
        None => vec![Answer::make(by, size, Path::new(FILE)).during("make the answer")?],
    };
    let listener = TcpListener::bind(("127.0.0.1", port));
    listener
        .and_then(|listener| event_loop::serve(&listener, &mut Server::of(answers)))
        .during(format_args!("serve port {port}"))
}

/// What is sent, by the method that it is for.
#[derive(Debug)]
enum Answer {
    Whole(Vec<u8>),
    Parts(Vec<u8>, Vec<u8>),
    /// The head, and a file with so many bytes of content.
    File(Vec<u8>, File, u64),
}

impl Answer {
    fn make(by: Method, size: usize, path: &Path) -> io::Result<Self> {
        let mut head = head(size);
        let content = vec![b'x'; size];
        let file = match by {
            Method::Write => {
                head.extend_from_slice(&content);
                return Ok(Self::Whole(head));
            }
            Method::Writev => return Ok(Self::Parts(head, content)),
            // written in one piece, so that the page cache can hold it in large folios
            Method::Sendfile => {
                std::fs::write(path, &content)?;
                File::open(path)?
            }
            Method::Memfd => {
                let mut file = File::from(memfd_create("content", MemfdFlags::CLOEXEC)?);
                file.write_all(&content)?;
                file
            }
        };
        let size = u64::try_from(size).unwrap_or(u64::MAX);
        Ok(Self::File(head, file, size))
    }

    /// Sends on from `position`, which it moves, until all is sent (`Break`) or there is no room.
    fn send(&self, mut stream: &TcpStream, position: &mut u64) -> io::Result<ControlFlow<()>> {
        while *position < self.bytes() {
            let begin = usize::try_from(*position).unwrap_or(usize::MAX);
            let result = match self {
                Self::Whole(bytes) => stream.write(&bytes[begin..]),
                Self::Parts(head, content) if begin < head.len() => {
                    let parts = [IoSlice::new(&head[begin..]), IoSlice::new(content)];
                    stream.write_vectored(&parts)
                }
                Self::Parts(head, content) => stream.write(&content[begin - head.len()..]),
                Self::File(head, ..) if begin < head.len() => send(
                    stream,
                    &head[begin..],
                    SendFlags::MORE | SendFlags::NOSIGNAL,
                )
                .map_err(io::Error::from),
                Self::File(head, file, size) => {
                    let mut offset = *position - length(head);
                    let rest = usize::try_from(size - offset).unwrap_or(usize::MAX);
                    sendfile(stream, file, Some(&mut offset), rest).map_err(io::Error::from)
                }
            };
            match event_loop::sent(result)? {
                Some(sent) => *position += u64::try_from(sent).unwrap_or_default(),
                None => return Ok(ControlFlow::Continue(())),
            }
        }
        Ok(ControlFlow::Break(()))
    }

    fn bytes(&self) -> u64 {
        match self {
            Self::Whole(bytes) => length(bytes),
            Self::Parts(head, content) => length(head) + length(content),
            Self::File(head, _, size) => length(head) + size,
        }
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// As many fields as a plain hit has.
fn head(size: usize) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {size}\r\n\
         Date: Thu, 01 Jan 2026 00:00:00 GMT\r\nCache-Control: max-age=3600\r\nAge: 1\r\n\
         Via: 1.1 bare\r\nCache-Status: bare; hit\r\n\r\n"
    )
    .into_bytes()
}

struct Server {
    answers: Vec<Answer>,
    connections: BTreeMap<u64, Connection>,
    next_key: u64,
}

struct Connection {
    stream: TcpStream,
    /// A request head that is not whole yet, and requests that wait for the answer before them.
    partial: Vec<u8>,
    /// The answer that is being sent, and how much of it is sent.
    unsent: Option<(usize, u64)>,
}

impl Server {
    fn of(answers: Vec<Answer>) -> Self {
        Self {
            answers,
            connections: BTreeMap::new(),
            next_key: 0,
        }
    }
}

impl Handler for Server {
    fn accept(&mut self, poll: &Poll, stream: TcpStream) -> io::Result<()> {
        let key = self.next_key;
        self.next_key += 1;
        poll.add(&stream, key)?;
        let connection = Connection {
            stream,
            partial: Vec::new(),
            unsent: None,
        };
        self.connections.insert(key, connection);
        Ok(())
    }

    fn ready(&mut self, _: &Poll, key: u64, scratch: &mut [u8]) {
        if let Some(connection) = self.connections.get_mut(&key)
            && connection.ready(scratch, &self.answers).is_err()
        {
            // closing the socket takes it out of the epoll set
            self.connections.remove(&key);
        }
    }
}

impl Connection {
    /// Sends what was not sent, and answers every whole request that has arrived.
    ///
    /// # Errors
    /// The connection is over, in whatever way.
    fn ready(&mut self, scratch: &mut [u8], answers: &[Answer]) -> io::Result<()> {
        if let Some((number, position)) = self.unsent {
            self.send(number, position, answers)?;
            self.answer_partial(answers)?;
        }
        while let Some(read) = event_loop::read(&self.stream, scratch)? {
            let bytes = &scratch[..read];
            if self.partial.is_empty() {
                let consumed = self.answer(bytes, answers)?;
                self.keep(&bytes[consumed..])?;
            } else {
                self.keep(bytes)?;
                self.answer_partial(answers)?;
            }
            // less than there was room for: nothing else has arrived
            if read < scratch.len() {
                break;
            }
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.partial.len() + bytes.len() > PARTIAL_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.partial.extend_from_slice(bytes);
        Ok(())
    }

    fn answer_partial(&mut self, answers: &[Answer]) -> io::Result<()> {
        let mut partial = std::mem::take(&mut self.partial);
        let consumed = self.answer(&partial, answers)?;
        partial.drain(..consumed);
        self.partial = partial;
        Ok(())
    }

    /// Answers whole request heads that `bytes` begins with, as long as answers are sent whole;
    /// says how long they are.
    fn answer(&mut self, bytes: &[u8], answers: &[Answer]) -> io::Result<usize> {
        let mut consumed = 0;
        while consumed < bytes.len() && self.unsent.is_none() {
            let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
            let mut request = httparse::Request::new(&mut fields);
            match request.parse(&bytes[consumed..]) {
                Ok(httparse::Status::Complete(length)) => consumed += length,
                Ok(httparse::Status::Partial) => break,
                Err(_) => return Err(io::ErrorKind::InvalidData.into()),
            }
            let number = match answers.len() {
                1 => 0,
                _ => number_in(request.path.unwrap_or_default()),
            };
            self.send(number, 0, answers)?;
        }
        Ok(consumed)
    }

    fn send(&mut self, number: usize, mut position: u64, answers: &[Answer]) -> io::Result<()> {
        let answer = answers.get(number).ok_or(io::ErrorKind::InvalidInput)?;
        let is_whole = answer.send(&self.stream, &mut position)?.is_break();
        self.unsent = (!is_whole).then_some((number, position));
        Ok(())
    }
}

/// The first number in a path.
fn number_in(path: &str) -> usize {
    let digits = path.bytes().skip_while(|byte| !byte.is_ascii_digit());
    let digits = digits.take_while(u8::is_ascii_digit);
    digits.fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::get;
    use std::io::Read;
    use xtask::workplace::Workplace;

    /// A server in a thread that ends with this process.
    fn start(answers: Vec<Answer>) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        std::thread::spawn(move || event_loop::serve(&listener, &mut Server::of(answers)));
        address
    }

    #[test]
    fn every_method_sends_the_whole_answer_again_and_again() {
        let place = Workplace::make("bare").expect("a directory");
        for by in Method::value_variants() {
            for size in [0, 1024, 3 << 20] {
                let answer = Answer::make(*by, size, &place.path().join("content"));
                let to = start(vec![answer.expect("an answer")]);
                let mut stream = get::connect(to).expect("a server");
                for _ in 0..3 {
                    let answer = get::get(&mut stream, "/").expect("an answer");
                    assert_eq!((answer.status, answer.body.len()), (200, size), "{by:?}");
                    assert!(answer.body.iter().all(|&byte| byte == b'x'), "{by:?}");
                }
            }
        }
    }

    #[test]
    fn pipelined_requests_are_answered_while_the_client_reads_slowly() {
        let size = 1 << 20;
        let answer = Answer::make(Method::Writev, size, Path::new("")).expect("an answer");
        let (to, each) = (start(vec![answer]), head(size).len() + size);
        let mut stream = get::connect(to).expect("a server");
        let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(20);
        for part in request.as_bytes().chunks(50) {
            stream.write_all(part).expect("a server");
        }
        let mut received = vec![0; 20 * each];
        stream.read_exact(&mut received).expect("all answers");
        for answer in received.chunks(each) {
            assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"));
        }
    }

    #[test]
    fn answer_is_chosen_by_the_first_number_in_the_path() {
        let answers = ["a", "b"].map(|body| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{body}");
            Answer::Whole(head.into_bytes())
        });
        let to = start(answers.into());
        let body = |path| get::get_once(to, path).map(|answer| answer.body).ok();
        assert_eq!(body("/hit0.bin"), Some(b"a".to_vec()));
        assert_eq!(body("/hit1.bin"), Some(b"b".to_vec()));
        assert_eq!(body("/hit2.bin"), None);
    }
}
