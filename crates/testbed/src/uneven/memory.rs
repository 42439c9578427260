//! What thousands of modem users cost a proxy in memory, and whether it grows while they read.

use super::measurement::Subject;
use crate::client::group::ClientGroup;
use crate::proxy::server::Server;
use crate::record::markdown::ratio;
use crate::record::millis;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use weir_bench::origin::ResponseSpec;

const CLIENTS: usize = 2000;

const SIZE_BYTES: u64 = 1_000_000;

/// 28.8 Kbit/s, four times a second.
const STEP: Duration = Duration::from_millis(250);
const STEP_BYTES: usize = 900;

/// The client's own buffer should be small compared with the proxy's bytes.
const RECEIVE_BUFFER_BYTES: usize = 8 * 1024;

const BEGIN_MAX: Duration = Duration::from_secs(30);

/// After every client has begun: the kernel's buffers fill.
const SETTLE: Duration = Duration::from_secs(5);

const LASTS: Duration = Duration::from_secs(60);

const SAMPLE_EVERY: u32 = 8;

/// The responses that the clients request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kind {
    /// All the same response, which may be stored.
    OneStored,
    /// Each its own, which may not be stored.
    EachPassed,
    /// Each its own, which may be stored: what was read is kept, so this grows to the budget of the
    /// cache by right.
    EachStored,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::OneStored, Kind::EachPassed, Kind::EachStored];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OneStored => "one response, storable",
            Self::EachPassed => "each its own, `no-store`",
            Self::EachStored => "each its own, storable",
        }
    }

    fn spec(self, path: &str, client: usize) -> ResponseSpec {
        let path = match self {
            Self::OneStored => path.to_owned(),
            Self::EachPassed | Self::EachStored => format!("{path}/{client}"),
        };
        ResponseSpec {
            is_storable: self != Self::EachPassed,
            ..ResponseSpec::new(&path, SIZE_BYTES)
        }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) at_ms: u64,
    pub(crate) rss_kib: u64,
    pub(crate) pss_kib: u64,
    /// TCP memory of the whole machine, clients and origin included.
    pub(crate) sockets_kib: u64,
    /// Content taken from the origin.
    pub(crate) taken_bytes: u64,
    /// Content read by the clients.
    pub(crate) read_bytes: u64,
}

impl Sample {
    pub(crate) fn sum_kib(&self) -> u64 {
        self.pss_kib + self.sockets_kib
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    pub(crate) kind: Kind,
    pub(crate) clients: usize,
    /// Before the first client.
    pub(crate) before: Sample,
    /// From when all had begun and the buffers had filled.
    pub(crate) samples: Vec<Sample>,
    /// Clients that were reading at the end.
    pub(crate) reading: usize,
}

impl Memory {
    /// The mean of the last third over that of the first; `None` with less than three samples.
    /// Single samples are of moments: between two steps of the clients TCP holds a tenth more or
    /// less.
    pub(crate) fn growth(&self) -> Option<f64> {
        let third = self.samples.len() / 3;
        let mean = |samples: &[Sample]| {
            let sum: u64 = samples.iter().map(Sample::sum_kib).sum();
            ratio(sum, samples.len() as u64)
        };
        let (first, last) = (
            self.samples.get(..third)?,
            self.samples.get(self.samples.len() - third..)?,
        );
        (third > 0).then(|| mean(last) / mean(first))
    }

    /// The least and the most, KiB; `None` without a sample.
    pub(crate) fn extent_kib(&self) -> Option<(u64, u64)> {
        let sums = || self.samples.iter().map(Sample::sum_kib);
        sums().min().zip(sums().max())
    }
}

pub(crate) fn measure(
    subject: &Subject<'_>,
    server: &Server,
    kind: Kind,
) -> Result<Memory, String> {
    let path = subject.path(&format!("memory-{kind:?}"));
    let begun = Instant::now();
    let sample = |read_bytes: u64| -> Result<Sample, String> {
        let tally = subject.origin.tally(&path)?;
        let memory = server.memory();
        Ok(Sample {
            at_ms: millis(begun.elapsed()),
            rss_kib: memory.rss_kib,
            pss_kib: memory.pss_kib,
            sockets_kib: sockets_kib()?,
            taken_bytes: tally.acknowledged_bytes,
            read_bytes,
        })
    };
    let before = sample(0)?;
    let mut group = ClientGroup::connect(&[subject.address], CLIENTS, RECEIVE_BUFFER_BYTES);
    let spec = |client| kind.spec(&path, client);
    group.ask(subject.version, Duration::ZERO, spec);
    let mut samples = Vec::new();
    let mut begun_all = None;
    let mut next = Instant::now();
    let mut step = 0;
    loop {
        next += STEP;
        group.read(STEP_BYTES);
        let state = group.state();
        if let Some((why, count)) = state.failed.first_key_value() {
            return Err(format!("{count} clients: {why}"));
        }
        if state.begun + state.whole == CLIENTS {
            let since = *begun_all.get_or_insert_with(Instant::now);
            if since.elapsed() >= SETTLE && step % SAMPLE_EVERY == 0 {
                samples.push(sample(state.read_bytes)?);
            }
            if since.elapsed() >= SETTLE + LASTS {
                return Ok(Memory {
                    kind,
                    clients: CLIENTS,
                    before,
                    samples,
                    reading: state.reading,
                });
            }
        } else if begun.elapsed() > BEGIN_MAX {
            let begun = state.begun;
            return Err(format!("only {begun} of {CLIENTS} clients were served"));
        }
        step += 1;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Memory of TCP in the whole machine.
fn sockets_kib() -> Result<u64, String> {
    let text = std::fs::read_to_string("/proc/net/sockstat").map_err(|error| error.to_string())?;
    let pages = tcp_pages(&text).ok_or("`/proc/net/sockstat` has no TCP memory")?;
    let page_kib = rustix::param::page_size() as u64 / 1024;
    Ok(pages * page_kib)
}

/// The number behind `mem` in the line of TCP.
fn tcp_pages(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("TCP:"))?;
    let mut words = line.split_whitespace().skip_while(|&word| word != "mem");
    words.nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_memory_is_read_from_the_tcp_line_only() {
        let text =
            "sockets: used 52\nTCP: inuse 35 orphan 0 tw 5 alloc 35 mem 1142\nUDP: inuse 0 mem 7\n";
        assert_eq!(tcp_pages(text), Some(1142));
        assert_eq!(tcp_pages("UDP: inuse 0 mem 7\n"), None);
    }
}
