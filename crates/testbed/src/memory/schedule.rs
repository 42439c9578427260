//! The schedule of a measurement: at rest, under load, at rest again.

use super::clients::{self, ReceivedTotals};
use super::slow_disk::SlowDisk;
use super::{CONTENDERS, Options, REST_SLACK_KIB};
use crate::client::metrics;
use crate::origin::{Origin, READY};
use crate::process::usage;
use crate::proxy::server::{self, Place, Server};
use crate::proxy::template::Words;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(2 * 3600);

/// Room of the store on the slow disk: less than is requested, so that it evicts too.
const STORE_MIB: u64 = 3 * 1024;

const SAMPLE_EVERY: Duration = Duration::from_millis(500);

/// How long memory may take to return.
const REST: Duration = Duration::from_secs(20);

/// The metrics that are read at the end.
const COUNTED: [&str; 5] = [
    "weir_passed_through_total",
    "weir_continued_responses_total",
    "weir_disk_cut_responses_total",
    "weir_disk_written_bytes_total",
    "weir_store_used_bytes",
];

/// What was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measurement {
    /// Resident memory before the first client, KiB.
    pub(crate) before_kib: u64,
    /// The most there was, by the kernel's account, KiB.
    pub(crate) peak_kib: u64,
    /// Some time after the last client had left, KiB.
    pub(crate) after_kib: u64,
    /// Twice a second, under load, KiB.
    pub(crate) samples_kib: Vec<u64>,
    pub(crate) received: ReceivedTotals,
    /// Numbers of the proxy at the end, summed over labels.
    pub(crate) counts: BTreeMap<String, u64>,
}

pub(super) fn run(options: &Options, words: &Words) -> Result<Measurement, Failure> {
    let workplace = Workplace::make("memory")?;
    let disk = SlowDisk::make(workplace.path(), STORE_MIB + 512, options.disk_mb_s)?;
    let local = Place::local(LIFE);
    let origin = Origin::start(&workplace.path().join("origin"), &local, None)?;
    let admin = server::take_port()?;
    let mut words = origin.words(words, local.host);
    words.set("ADMIN", admin);
    words.set("MEMORY_MIB", options.memory_mib);
    words.set("DISK", disk.path().join("store").display());
    words.set("DISK_MIB", STORE_MIB);
    let within = disk.within();
    let place = Place {
        within: &within,
        ..local
    };
    let directory = workplace.path().join("weir");
    let server = Server::start(&CONTENDERS[0], &directory, &words, &place, READY)?;
    let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, admin));
    watch(options, &server, admin)
}

fn watch(options: &Options, server: &Server, admin: SocketAddr) -> Result<Measurement, Failure> {
    let id = process(server)?;
    let rss_kib = || usage::memory(id).rss_kib;
    let before_kib = rss_kib();
    let stop = AtomicBool::new(false);
    let mut samples_kib = Vec::new();
    let received = std::thread::scope(|scope| {
        let groups = [true, false].map(|is_fast| {
            let (to, stop) = (server.address(), &stop);
            scope.spawn(move || clients::run(to, options, is_fast, stop))
        });
        let until = Instant::now() + Duration::from_secs(options.seconds);
        while Instant::now() < until && usage::is_running(id) {
            std::thread::sleep(SAMPLE_EVERY);
            samples_kib.push(rss_kib());
        }
        stop.store(true, Ordering::Relaxed);
        let mut received = ReceivedTotals::default();
        for group in groups {
            match group.join() {
                Ok(its) => received.add(its),
                Err(_) => return Err(Failure::Outside("a thread of clients ended".to_owned())),
            }
        }
        Ok(received)
    })?;
    if !usage::is_running(id) {
        return Err(Failure::Refused("the proxy ended under load".to_owned()));
    }
    let peak_kib = usage::peak_rss_kib(id);
    let near_kib = before_kib + REST_SLACK_KIB;
    let until = Instant::now() + REST;
    while Instant::now() < until && rss_kib() > near_kib {
        std::thread::sleep(SAMPLE_EVERY);
    }
    Ok(Measurement {
        before_kib,
        peak_kib,
        after_kib: rss_kib(),
        samples_kib,
        received,
        counts: counts(admin)?,
    })
}

/// The proxy itself, below the processes that guard it.
fn process(server: &Server) -> Result<u32, Failure> {
    let tree = usage::tree(server.id());
    let is_weir = |id: &&u32| {
        let exe = std::fs::read_link(Path::new("/proc").join(id.to_string()).join("exe"));
        exe.is_ok_and(|path| path.file_name().is_some_and(|name| name == "weir"))
    };
    let found = tree.iter().find(is_weir).copied();
    found.ok_or_else(|| Failure::Outside("the proxy's process is not found".to_owned()))
}

fn counts(admin: SocketAddr) -> Result<BTreeMap<String, u64>, Failure> {
    let text = metrics::text(admin).during("ask the proxy for its metrics")?;
    let count = |name: &str| {
        let sum = metrics::sum(&text, name).ok_or_else(|| format!("there is no `{name}`"));
        Ok((name.to_owned(), sum.during("read the proxy's metrics")?))
    };
    COUNTED.into_iter().map(count).collect()
}
