//! Clients: each sends one request after the other on a connection that stays open, and checks
//! every byte.

use super::latency::micros;
use super::mix;
use crate::client::get::connect;
use crate::client::transfer::{CUT, Transfer};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_bench::origin::ResponseSpec;
use weir_workload::Chance;

pub(crate) const CONNECTIONS_MAX: usize = 1000;

const SILENCE_MAX: Duration = Duration::from_secs(30);

/// The requests of the clients of one proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestPlan<'a> {
    pub(crate) to: SocketAddr,
    /// Begins every path, so that the origin's tally distinguishes experiments.
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

/// Which responses are requested, and until when.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sequence {
    /// Each once, in order.
    All,
    /// As the mix says, so long.
    Random(u64, Duration),
    /// So many of them, as chance has it, each by one request.
    Sample(u64, u64),
}

/// What the clients received.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedTotals {
    pub(crate) responses: u64,
    pub(crate) content_bytes: u64,
    pub(crate) times_us: Vec<u32>,
    pub(crate) took: Duration,
}

impl RequestPlan<'_> {
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

    fn spec(&self, number: u64) -> ResponseSpec {
        ResponseSpec::new(
            &format!("{}/{number}", self.prefix),
            self.size_bytes(number),
        )
    }

    /// Sends a sequence of requests.
    ///
    /// # Errors
    /// The first response that is not what it should be.
    pub(crate) fn send(&self, sequence: Sequence) -> Result<ReceivedTotals, String> {
        let begun = Instant::now();
        let asked = AtomicU64::new(0);
        let parts: Vec<Result<ReceivedTotals, String>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.connections)
                .map(|client| {
                    let asked = &asked;
                    scope.spawn(move || self.one(sequence, client, asked, begun))
                })
                .collect();
            let joined = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
            joined
                .map(|part| part.unwrap_or_else(|_| Err("a client broke".to_owned())))
                .collect()
        });
        let mut all = ReceivedTotals {
            took: begun.elapsed(),
            ..ReceivedTotals::default()
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
        sequence: Sequence,
        client: u64,
        asked: &AtomicU64,
        begun: Instant,
    ) -> Result<ReceivedTotals, String> {
        let mut chance = match sequence {
            Sequence::Random(seed, _) | Sequence::Sample(seed, _) => Chance::new(seed, client),
            Sequence::All => Chance::new(0, client),
        };
        let next = |chance: &mut Chance| {
            let turn = || asked.fetch_add(1, Ordering::Relaxed);
            match sequence {
                Sequence::All => Some(turn()).filter(|number| *number < self.count),
                Sequence::Random(_, length) => {
                    (begun.elapsed() < length).then(|| mix::next(chance, self.count))
                }
                Sequence::Sample(_, requests) => {
                    (turn() < requests).then(|| chance.below(self.count))
                }
            }
        };
        let mut received = ReceivedTotals::default();
        let mut connection: Option<TcpStream> = None;
        let mut buffer = vec![0; 64 * 1024];
        while let Some(number) = next(&mut chance) {
            let spec = self.spec(number);
            let since = Instant::now();
            let stream = self.get(connection.take(), &spec, &mut buffer);
            connection = Some(stream.map_err(|error| format!("{spec}: {error}"))?);
            received.times_us.push(micros(since.elapsed()));
            received.responses += 1;
            received.content_bytes += spec.size_bytes;
        }
        Ok(received)
    }

    /// One request; a connection that the proxy closed between two is opened again.
    fn get(
        &self,
        connection: Option<TcpStream>,
        spec: &ResponseSpec,
        buffer: &mut [u8],
    ) -> Result<TcpStream, String> {
        if let Some(stream) = connection {
            match exchange(stream, spec, buffer) {
                Err(ExchangeError::ClosedBefore) => {}
                Err(ExchangeError::Wrong(what)) => return Err(what),
                Ok(stream) => return Ok(stream),
            }
        }
        let stream = connect(self.to).map_err(|error| error.to_string())?;
        let limited = stream.set_read_timeout(Some(SILENCE_MAX));
        limited.map_err(|error| error.to_string())?;
        exchange(stream, spec, buffer).map_err(|trouble| match trouble {
            ExchangeError::ClosedBefore => "closed without a response".to_owned(),
            ExchangeError::Wrong(what) => what,
        })
    }
}

enum ExchangeError {
    /// Nothing of a response came.
    ClosedBefore,
    Wrong(String),
}

fn exchange(
    stream: TcpStream,
    spec: &ResponseSpec,
    buffer: &mut [u8],
) -> Result<TcpStream, ExchangeError> {
    let mut transfer = Transfer::ask(stream, spec).map_err(|_| ExchangeError::ClosedBefore)?;
    while !transfer.is_whole() {
        let what = match transfer.read(buffer) {
            Ok(0) => "silence".to_owned(),
            Ok(_) => continue,
            Err(what) if what == CUT && transfer.is_unanswered() => {
                return Err(ExchangeError::ClosedBefore);
            }
            Err(what) => what,
        };
        let (read, size) = (transfer.read_bytes(), spec.size_bytes);
        return Err(ExchangeError::Wrong(format!(
            "{what} after {read} of {size} bytes"
        )));
    }
    Ok(transfer.into_stream())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::in_threads;

    #[test]
    fn clients_receive_the_whole_content_of_all_responses() {
        let (_origin, to) = in_threads();
        let ask = RequestPlan {
            to,
            prefix: "/a",
            sizes: Sizes::Mix(1),
            count: 50,
            connections: 3,
        };
        let received = ask.send(Sequence::All).expect("an origin");
        assert_eq!(received.responses, 50);
        assert_eq!(received.content_bytes, ask.all_bytes());
        assert_eq!(received.times_us.len(), 50);
        let sample = ask.send(Sequence::Sample(2, 7)).expect("an origin");
        assert_eq!(sample.responses, 7);
    }
}
