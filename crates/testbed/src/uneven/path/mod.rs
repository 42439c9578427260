//! One fast client on a long path: what pacing by the reader costs where round trips are long.
//!
//! Two network namespaces are joined by a link in user space ([`link`]), so that the kernels' own
//! TCP sees the delay. Weir runs twice in one of them, with its default read-ahead and with
//! `read_ahead = "unbounded"`, and serves downloads in turn; the client is across the link first,
//! then the origin is.

mod link;
mod tun;

pub(crate) use link::{Rules, Traffic};

use crate::client::get;
use crate::client::reader::Reader;
use crate::origin::{Origin, READY};
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server};
use crate::proxy::template::Words;
use crate::record::markdown::{median, ratio};
use crate::record::millis;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_bench::origin::ResponseSpec;
use xtask::failure::{During, Failure};
use xtask::namespace::Namespace;

/// Each way.
const RULES: Rules = Rules {
    delay_ms: 50,
    rate_bytes_s: 25_000_000,
    queue_bytes: 2_500_000,
};

const SIZE_BYTES: u64 = 100_000_000;

/// When the ramp at the beginning is looked at.
const EARLY_BYTES: u64 = 5_000_000;

const DOWNLOAD_MAX: Duration = Duration::from_secs(60);

const NEAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

/// Where the long path is, as the proxy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Side {
    Client,
    /// And each download is the first of its connection.
    NextHop,
    /// And the connection has carried a download before.
    NextHopAgain,
}

pub(crate) const SIDES: [Side; 3] = [Side::Client, Side::NextHop, Side::NextHopAgain];

impl Side {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Client => "the client",
            Self::NextHop => "the next hop",
            Self::NextHopAgain => "the next hop, connection used before",
        }
    }
}

/// The server of a download, and its read-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DownloadKind {
    /// Without a proxy.
    Direct,
    Default,
    Unbounded,
}

/// One download.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Download {
    pub(crate) side: Side,
    #[serde(rename = "way")]
    pub(crate) kind: DownloadKind,
    pub(crate) pair: u32,
    pub(crate) size_bytes: u64,
    pub(crate) duration_ms: u64,
    /// From the first step of connecting until so much had arrived.
    pub(crate) early_bytes: u64,
    pub(crate) early_ms: u64,
    pub(crate) trouble: Option<String>,
}

impl Download {
    pub(crate) fn mb_per_s(&self) -> f64 {
        ratio(self.size_bytes, self.duration_ms) / 1000.0
    }
}

/// Everything about the long path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LongPath {
    pub(crate) rules: Rules,
    /// How long connecting took across the link.
    pub(crate) round_trip_us: u64,
    pub(crate) congestion_control: String,
    pub(crate) downloads: Vec<Download>,
    /// Near to far, far to near.
    pub(crate) traffic: Vec<Traffic>,
}

impl LongPath {
    /// Of the downloads that were not cut; `None` without any.
    pub(crate) fn median(
        &self,
        side: Side,
        kind: DownloadKind,
        number: impl Fn(&Download) -> f64,
    ) -> Option<f64> {
        let sound = self.downloads.iter().filter(|one| one.trouble.is_none());
        let these = sound.filter(|one| one.side == side && one.kind == kind);
        median(these.map(number))
    }

    /// Speed with the default read-ahead over that without a bound, medians.
    pub(crate) fn speed_ratio(&self, side: Side) -> Option<f64> {
        let bounded = self.median(side, DownloadKind::Default, Download::mb_per_s)?;
        let unbounded = self.median(side, DownloadKind::Unbounded, Download::mb_per_s)?;
        Some(bounded / unbounded)
    }
}

/// Two networks and the link between them.
#[derive(Debug)]
struct Net {
    near: Namespace,
    far: Namespace,
    is_over: Arc<AtomicBool>,
    carriers: Vec<JoinHandle<std::io::Result<Traffic>>>,
}

impl Net {
    fn make() -> Result<Self, Failure> {
        let (near, far) = (Namespace::make()?, Namespace::make()?);
        let near_end = tun::interface(&near, "path0", NEAR, FAR)?;
        let far_end = tun::interface(&far, "path0", FAR, NEAR)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let carry = |from: &File, to: &File| -> Result<_, Failure> {
            let (from, to) = (from.try_clone(), to.try_clone());
            let (from, to) = (from.during("share a link")?, to.during("share a link")?);
            let is_over = Arc::clone(&is_over);
            Ok(std::thread::spawn(move || {
                // a late packet makes the path longer; where the priority may not be raised, it
                // stays
                let _ = rustix::process::nice(-10);
                link::carry(&from, &to, RULES, &is_over)
            }))
        };
        let carriers = vec![carry(&near_end, &far_end)?, carry(&far_end, &near_end)?];
        Ok(Self {
            near,
            far,
            is_over,
            carriers,
        })
    }

    fn end(mut self) -> Vec<Traffic> {
        self.is_over.store(true, Ordering::Relaxed);
        let carriers = std::mem::take(&mut self.carriers).into_iter();
        carriers.filter_map(|it| it.join().ok()?.ok()).collect()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// Measures both sides, so many pairs each.
///
/// # Errors
/// Says why there can be no long path here, or what did not start.
pub(crate) fn measure(
    weir: &Contender,
    directory: &Path,
    words: &Words,
    pairs: u32,
    life: Duration,
) -> Result<LongPath, Failure> {
    let net = Net::make()?;
    let control = "/proc/sys/net/ipv4/tcp_congestion_control";
    let control = net.near.inside(|| std::fs::read_to_string(control))?;
    let mut long = LongPath {
        rules: RULES,
        round_trip_us: 0,
        congestion_control: control.unwrap_or_default().trim().to_owned(),
        downloads: Vec::new(),
        traffic: Vec::new(),
    };
    let start = |side| Bench::start(&net, side, weir, directory, words, life);
    let bench = start(Side::Client)?;
    long.round_trip_us = bench.round_trip_us(&net)?;
    bench.go_round(&net, 0..=pairs, &mut long.downloads)?;
    drop(bench);
    for pair in 0..=pairs {
        // processes that have no connection yet
        start(Side::NextHop)?.go_round(&net, pair..=pair, &mut long.downloads)?;
    }
    let mut bench = start(Side::NextHop)?;
    long.round_trip_us = long.round_trip_us.max(bench.round_trip_us(&net)?);
    bench.go_round(&net, 1..=1, &mut Vec::new())?;
    bench.side = Side::NextHopAgain;
    bench.go_round(&net, 2..=1 + pairs, &mut long.downloads)?;
    long.traffic = net.end();
    Ok(long)
}

/// What runs while one side is measured.
struct Bench {
    side: Side,
    origin: Origin,
    bounded: Server,
    /// Or why it did not start: the others are worth measuring without it.
    unbounded: Result<Server, String>,
}

impl Bench {
    fn start(
        net: &Net,
        side: Side,
        weir: &Contender,
        directory: &Path,
        words: &Words,
        life: Duration,
    ) -> Result<Self, Failure> {
        let directory = directory.join(format!("path-{side:?}"));
        let (space, host) = match side {
            Side::Client => (&net.near, NEAR),
            Side::NextHop | Side::NextHopAgain => (&net.far, FAR),
        };
        // the kernel's own send buffer: a small one would be the bottleneck of a long path
        let local = Place::local(life);
        let place = Place {
            host,
            within: &space.command(),
            ..local
        };
        let mut origin = Origin::launch(&directory.join("origin"), &place, None)?;
        space.inside(|| origin.wait_until_it_answers())??;
        let place = Place {
            host: NEAR,
            within: &net.near.command(),
            ..local
        };
        let start = |name: &str, fetch: &str| {
            let mut words = origin.words(words, host);
            words.set("FETCH", fetch);
            words.set("HTTP2", false);
            let mut server = Server::launch(weir, &directory.join(name), &words, &place)?;
            net.near.inside(|| server.wait_until_it_answers(READY))??;
            Ok::<_, Failure>(server)
        };
        let bounded = start("default", "")?;
        let unbounded = start("unbounded", "[fetch]\nread_ahead = \"unbounded\"")
            .map_err(|failure| failure.to_string());
        Ok(Self {
            side,
            origin,
            bounded,
            unbounded,
        })
    }

    fn client_space<'a>(&self, net: &'a Net) -> &'a Namespace {
        match self.side {
            Side::Client => &net.far,
            Side::NextHop | Side::NextHopAgain => &net.near,
        }
    }

    fn round_trip_us(&self, net: &Net) -> Result<u64, Failure> {
        let to = self.origin.address();
        let connected = self.client_space(net).inside(|| {
            let begun = Instant::now();
            get::connect(to)?;
            std::io::Result::Ok(begun.elapsed())
        })?;
        let connected = connected.during("connect across the link")?;
        Ok(u64::try_from(connected.as_micros()).unwrap_or(u64::MAX))
    }

    /// Pairs of which now one, now the other goes first; pair 0 is a direct download.
    fn go_round(
        &self,
        net: &Net,
        pairs: RangeInclusive<u32>,
        downloads: &mut Vec<Download>,
    ) -> Result<(), Failure> {
        let plan = pairs.flat_map(|pair| {
            let kinds: &[DownloadKind] = match (pair, pair % 2) {
                (0, _) => &[DownloadKind::Direct],
                (_, 1) => &[DownloadKind::Default, DownloadKind::Unbounded],
                _ => &[DownloadKind::Unbounded, DownloadKind::Default],
            };
            kinds.iter().map(move |kind| (pair, *kind))
        });
        for (pair, kind) in plan {
            let to = match kind {
                DownloadKind::Direct => Ok(self.origin.address()),
                DownloadKind::Default => Ok(self.bounded.address()),
                DownloadKind::Unbounded => self.unbounded.as_ref().map(Server::address),
            };
            let path = format!("/path/{:?}/{kind:?}/{pair}", self.side);
            let spec = ResponseSpec::new(&path, SIZE_BYTES);
            let space = self.client_space(net);
            let outcome = match to {
                Ok(to) => space.inside(|| download(to, &spec))?,
                Err(why) => Err(why.clone()),
            };
            let (early, whole) = *outcome
                .as_ref()
                .unwrap_or(&(Duration::ZERO, Duration::ZERO));
            let done = Download {
                side: self.side,
                kind,
                pair,
                size_bytes: SIZE_BYTES,
                duration_ms: millis(whole),
                early_bytes: EARLY_BYTES,
                early_ms: millis(early),
                trouble: outcome.err(),
            };
            eprintln!("  {done:?}");
            downloads.push(done);
        }
        Ok(())
    }
}

/// Times to the early mark and to the end.
fn download(to: SocketAddr, spec: &ResponseSpec) -> Result<(Duration, Duration), String> {
    let begun = Instant::now();
    let mut reader = Reader::ask(to, spec, None)?;
    let deadline = begun + DOWNLOAD_MAX;
    let mut until = |bytes| match reader.read_until(bytes, deadline) {
        Ok(true) => Ok(begun.elapsed()),
        Ok(false) => Err(format!("only {} bytes in time", reader.read_bytes())),
        Err(trouble) => Err(trouble),
    };
    Ok((until(EARLY_BYTES)?, until(SIZE_BYTES)?))
}
