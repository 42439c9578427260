//! A store with many small responses is killed and started again.

use super::Options;
use super::load::{RequestPlan, Sequence, Sizes};
use super::setup::{MeasuredProxy, Setup};
use crate::client::metrics;
use crate::origin::READY;
use crate::proxy::contender::WEIR;
use crate::record::millis;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use xtask::failure::{During, Failure};

/// Content of each response.
const SIZE_BYTES: u64 = 1000;

/// What a response may take on disk: a file of its own takes a page at least.
const STORED_BYTES: u64 = 4096;

/// Responses that are requested at once after the start.
const SAMPLE: u64 = 500;

/// What was stored in the last second may be lost; that is not what is measured here.
const SETTLE: Duration = Duration::from_secs(3);

const START_MAX: Duration = Duration::from_secs(120);
const LOAD_MAX: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(2);

/// What a restart after a kill looked like.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Restart {
    pub(crate) responses: u64,
    /// From the start of the process until a connection was accepted.
    pub(crate) accepted_ms: u64,
    /// Of requests for stored responses sent at once then, how many, and how many of these went to
    /// the origin.
    pub(crate) sample: u64,
    pub(crate) sample_fetches: u64,
    /// The same once it was running for a while.
    pub(crate) later_fetches: u64,
    /// From the start of the process until the index was full; only weir says so.
    pub(crate) loaded_ms: Option<u64>,
    /// Memory of the index, and responses in it; only weir says so.
    pub(crate) index_bytes: Option<u64>,
    pub(crate) entries: Option<u64>,
}

/// Fills a store, kills its proxy, starts it again.
pub(crate) fn measure(
    setup: &Setup<'_>,
    proxy: &MeasuredProxy,
    options: &Options,
) -> Result<Restart, Failure> {
    let name = proxy.contender.name;
    let directory = setup.directory(proxy.contender, "restart");
    let bytes = options.responses * STORED_BYTES;
    let prefix = format!("/{name}/restart");
    let ask = |to| RequestPlan {
        to,
        prefix: &prefix,
        sizes: Sizes::Each(SIZE_BYTES),
        count: options.responses,
        connections: options.connections,
    };
    let (mut server, _) = setup.launch(proxy, &directory, options.memory_mib, bytes)?;
    server.wait_until_it_answers(READY)?;
    ask(server.address())
        .send(Sequence::All)
        .map_err(Failure::Outside)?;
    std::thread::sleep(SETTLE);
    server.kill();
    drop(server);

    let begun = Instant::now();
    let (server, admin) = setup.launch(proxy, &directory, options.memory_mib, bytes)?;
    wait_until(START_MAX, || TcpStream::connect(server.address()).is_ok())
        .during(format_args!("connect to {name}"))?;
    let accepted_ms = millis(begun.elapsed());
    let fetches = |seed| -> Result<u64, Failure> {
        let before = setup.origin.tally(&prefix)?.fetches;
        ask(server.address())
            .send(Sequence::Sample(seed, SAMPLE))
            .map_err(Failure::Outside)?;
        Ok(setup.origin.tally(&prefix)?.fetches - before)
    };
    let sample_fetches = fetches(options.seed)?;
    let mut restart = Restart {
        responses: options.responses,
        accepted_ms,
        sample: SAMPLE,
        sample_fetches,
        later_fetches: 0,
        loaded_ms: None,
        index_bytes: None,
        entries: None,
    };
    if name == WEIR {
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, admin));
        let value = |name: &str| {
            metrics::text(admin)
                .ok()
                .and_then(|text| metrics::sum(&text, name))
        };
        wait_until(LOAD_MAX, || value("weir_disk_loading") == Some(0))
            .during("wait for the index of weir")?;
        restart.loaded_ms = Some(millis(begun.elapsed()));
        restart.index_bytes = value("weir_disk_index_bytes");
        restart.entries = value("weir_disk_entries");
    } else {
        std::thread::sleep(SETTLE);
    }
    restart.later_fetches = fetches(options.seed + 1)?;
    Ok(restart)
}

fn wait_until(limit: Duration, mut is_so: impl FnMut() -> bool) -> Result<(), String> {
    let deadline = Instant::now() + limit;
    while !is_so() {
        if Instant::now() > deadline {
            return Err(format!("not within {} s", limit.as_secs()));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
