//! Clients: each asks on a connection that stays open, for one response after the other, and checks
//! every byte.

use super::latency::micros;
use super::mix::{self, Chance};
use crate::client::incoming::{Incoming, request};
use crate::origin::target;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub(crate) const CONNECTIONS_MAX: usize = 1000;

const SILENCE_MAX: Duration = Duration::from_secs(30);

/// What the clients of one proxy ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) to: SocketAddr,
    /// Begins every path, so that the origin's tally tells experiments apart.
    pub(crate) prefix: &'a str,
    pub(crate) sizes: Sizes,
    /// Responses there are.
    pub(crate) count: u64,
    pub(crate) connections: u64,
}

/// How large responses are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sizes {
    /// Of the mix, by this seed.
    Mix(u64),
    /// All the same.
    Each(u64),
}

/// Which responses, and until when.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Course {
    /// Each once, in order.
    All,
    /// As the mix says, so long.
    Random(u64, Duration),
    /// So many of them, as chance has it, each by one request.
    Sample(u64, u64),
}

/// What the clients received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    pub(crate) responses: u64,
    pub(crate) content_bytes: u64,
    pub(crate) times_us: Vec<u32>,
    pub(crate) took: Duration,
}

impl Ask<'_> {
    fn size_bytes(&self, number: u64) -> u64 {
        match self.sizes {
            Sizes::Mix(seed) => mix::size_bytes(seed, number),
            Sizes::Each(bytes) => bytes,
        }
    }

    /// Content of all responses.
    #[cfg(test)]
    pub(crate) fn all_bytes(&self) -> u64 {
        (0..self.count).map(|number| self.size_bytes(number)).sum()
    }

    fn target(&self, number: u64) -> (String, u64) {
        let size = self.size_bytes(number);
        (
            target(&format!("{}/{number}", self.prefix), size, None, true),
            size,
        )
    }

    /// Goes through a course.
    ///
    /// # Errors
    /// The first response that is not what it should be.
    pub(crate) fn go(&self, course: Course) -> Result<Received, String> {
        let begun = Instant::now();
        let asked = AtomicU64::new(0);
        let parts: Vec<Result<Received, String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.connections)
                .map(|client| {
                    let asked = &asked;
                    scope.spawn(move || self.one(course, client, asked, begun))
                })
                .collect();
            let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined
                .map(|part| part.unwrap_or_else(|_| Err("a client broke".to_owned())))
                .collect()
        });
        let mut all = Received {
            took: begun.elapsed(),
            ..Received::default()
        };
        for part in parts {
            let part = part?;
            all.responses += part.responses;
            all.content_bytes += part.content_bytes;
            all.times_us.extend(part.times_us);
        }
        Ok(all)
    }

    fn one(
        &self,
        course: Course,
        client: u64,
        asked: &AtomicU64,
        begun: Instant,
    ) -> Result<Received, String> {
        let mut chance = match course {
            Course::Random(seed, _) | Course::Sample(seed, _) => Chance::new(seed, client),
            Course::All => Chance::new(0, client),
        };
        let next = |chance: &mut Chance| {
            let turn = || asked.fetch_add(1, Ordering::Relaxed);
            match course {
                Course::All => Some(turn()).filter(|number| *number < self.count),
                Course::Random(_, length) => {
                    (begun.elapsed() < length).then(|| mix::next(chance, self.count))
                }
                Course::Sample(_, requests) => {
                    (turn() < requests).then(|| chance.below(self.count))
                }
            }
        };
        let mut received = Received::default();
        let mut connection = None;
        let mut buffer = vec![0; 64 * 1024];
        while let Some(number) = next(&mut chance) {
            let (target, size) = self.target(number);
            let since = Instant::now();
            self.get(&mut connection, &target, size, &mut buffer)
                .map_err(|error| format!("{target}: {error}"))?;
            received.times_us.push(micros(since.elapsed()));
            received.responses += 1;
            received.content_bytes += size;
        }
        Ok(received)
    }

    /// One request; a connection that the proxy closed between two is opened anew.
    fn get(
        &self,
        connection: &mut Option<TcpStream>,
        target: &str,
        size: u64,
        buffer: &mut [u8],
    ) -> Result<(), String> {
        if let Some(stream) = connection {
            match exchange(stream, target, size, buffer) {
                Err(Trouble::ClosedBefore) => *connection = None,
                Err(Trouble::Wrong(what)) => return Err(what),
                Ok(()) => return Ok(()),
            }
        }
        let mut stream = open(self.to).map_err(|error| error.to_string())?;
        let done = exchange(&mut stream, target, size, buffer);
        *connection = Some(stream);
        done.map_err(|trouble| match trouble {
            Trouble::ClosedBefore => "closed without a response".to_owned(),
            Trouble::Wrong(what) => what,
        })
    }
}

enum Trouble {
    /// Nothing of a response came.
    ClosedBefore,
    Wrong(String),
}

fn open(to: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, SILENCE_MAX)?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.set_write_timeout(Some(SILENCE_MAX))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn exchange(
    stream: &mut TcpStream,
    target: &str,
    size: u64,
    buffer: &mut [u8],
) -> Result<(), Trouble> {
    if stream.write_all(request(target).as_bytes()).is_err() {
        return Err(Trouble::ClosedBefore);
    }
    let mut incoming = Incoming::new(target, size);
    let mut is_first = true;
    while !incoming.is_whole() {
        match stream.read(buffer) {
            Ok(0) if is_first => return Err(Trouble::ClosedBefore),
            Ok(0) => {
                let read = incoming.read_bytes();
                return Err(Trouble::Wrong(format!("cut after {read} of {size} bytes")));
            }
            Ok(length) => incoming.take(&buffer[..length]).map_err(Trouble::Wrong)?,
            Err(error) if is_first && error.kind() == std::io::ErrorKind::ConnectionReset => {
                return Err(Trouble::ClosedBefore);
            }
            Err(error) => return Err(Trouble::Wrong(error.to_string())),
        }
        is_first = false;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::in_thread;

    #[test]
    fn clients_receive_the_whole_content_of_all_responses() {
        let ask = Ask {
            to: in_thread(),
            prefix: "/a",
            sizes: Sizes::Mix(1),
            count: 50,
            connections: 3,
        };
        let received = ask.go(Course::All).expect("an origin");
        assert_eq!(received.responses, 50);
        assert_eq!(received.content_bytes, ask.all_bytes());
        assert_eq!(received.times_us.len(), 50);
        let sample = ask.go(Course::Sample(2, 7)).expect("an origin");
        assert_eq!(sample.responses, 7);
    }
}
