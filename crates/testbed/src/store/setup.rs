//! An origin, proxies with stores on disk before it, and what requests cost them.

use super::latency::{Latency, quantiles};
use super::load::{RequestPlan, Sequence, Sizes};
use super::{Options, Record, Row, mix};
use crate::origin::{Origin, READY};
use crate::process::affinity::Cores;
use crate::process::cgroup::ControlGroup;
use crate::process::usage::{self, Traffic};
use crate::proxy::contender::Contender;
use crate::proxy::server::{self, Place, Server};
use crate::proxy::template::Words;
use crate::record::millis;
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::failure::Failure;
use xtask::workplace::Workplace;

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(3 * 3600);

/// A store is so many times larger than what is put into it: no proxy has to evict.
const ROOM_TIMES: u64 = 3;
const ROOM_MIB_MIN: u64 = 1024;

/// What clients received, and what it cost the proxy.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Load {
    pub(crate) responses: u64,
    pub(crate) content_bytes: u64,
    pub(crate) took_ms: u64,
    pub(crate) cpu_us: u64,
    pub(crate) process: Traffic,
    pub(crate) device: Option<Traffic>,
}

/// What requests for stored responses cost.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Hits {
    #[serde(flatten)]
    pub(crate) load: Load,
    pub(crate) latency: Latency,
    /// Requests that the origin got meanwhile.
    pub(crate) fetches: u64,
    pub(crate) rss_kib: u64,
}

/// Where and with what proxies are started.
pub(crate) struct Setup<'a> {
    words: &'a Words,
    cores: Cores,
    pub(crate) origin: Origin,
    workplace: Workplace,
}

/// A proxy that is measured, and its figures so far.
pub(crate) struct MeasuredProxy {
    pub(crate) contender: &'static Contender,
    pub(super) row: Row,
    group: Option<ControlGroup>,
    /// With a full store; nothing once that failed.
    pub(super) server: Option<Server>,
}

impl MeasuredProxy {
    pub(super) fn new(contender: &'static Contender, cgroup_mib: u64) -> Result<Self, Failure> {
        let group = match cgroup_mib {
            0 => None,
            mib => Some(ControlGroup::of_memory(
                &format!("store-bench-{}", contender.name),
                mib,
            )?),
        };
        Ok(Self {
            contender,
            row: Row {
                contender: contender.name.to_owned(),
                ..Row::default()
            },
            group,
            server: None,
        })
    }

    /// It takes no further part in what failed.
    pub(super) fn fail(&mut self, record: &mut Record, what: &str, failure: &Failure) {
        let name = self.contender.name;
        eprintln!("  {what}: {failure}");
        let troubles = &mut record.figures.troubles;
        troubles.push(format!("{name} ({what}): {failure}"));
        self.server = None;
    }

    fn prefix(&self) -> String {
        format!("/{}/hits", self.contender.name)
    }
}

impl<'a> Setup<'a> {
    /// Starts the origin.
    pub(super) fn start(words: &'a Words, cores: Cores) -> Result<Self, Failure> {
        let workplace = Workplace::make("store-bench")?;
        let directory = workplace.path().join("origin");
        Ok(Self {
            words,
            cores,
            origin: Origin::start(&directory, &Place::local(LIFE), None)?,
            workplace,
        })
    }

    /// Fills the store of a proxy, and keeps it running.
    pub(super) fn fill(&self, proxy: &mut MeasuredProxy, options: &Options) -> Result<(), Failure> {
        let working_set = working_set_bytes(options);
        let directory = self.directory(proxy.contender, "hits");
        let (mut server, _) = self.launch(proxy, &directory, options.memory_mib, working_set)?;
        server.wait_until_it_answers(READY)?;
        let prefix = proxy.prefix();
        let ask = all_of_the_mix(&server, &prefix, options);
        proxy.row.fill = Some(self.watch(&server, &ask, Sequence::All)?.0);
        proxy.server = Some(server);
        Ok(())
    }

    /// One round: each has requests of its own, the same for all.
    pub(super) fn hit(
        &self,
        proxy: &mut MeasuredProxy,
        options: &Options,
        round: u64,
    ) -> Result<(), Failure> {
        let Some(server) = &proxy.server else {
            return Ok(());
        };
        let prefix = proxy.prefix();
        let ask = all_of_the_mix(server, &prefix, options);
        let before = self.origin.tally(&prefix)?.fetches;
        let length = Duration::from_secs(options.seconds);
        let sequence = Sequence::Random(options.seed.wrapping_add(round - 1), length);
        let (load, times_us) = self.watch(server, &ask, sequence)?;
        proxy.row.hits.push(Hits {
            load,
            latency: quantiles(times_us),
            fetches: self.origin.tally(&prefix)?.fetches - before,
            rss_kib: server.memory().rss_kib,
        });
        Ok(())
    }

    pub(crate) fn directory(&self, contender: &Contender, name: &str) -> PathBuf {
        self.workplace.path().join(name).join(contender.name)
    }

    /// Starts a proxy whose store has room for `bytes`; also the port of its admin interface, if it
    /// has one.
    pub(crate) fn launch(
        &self,
        proxy: &MeasuredProxy,
        directory: &Path,
        memory_mib: u64,
        bytes: u64,
    ) -> Result<(Server, u16), Failure> {
        let mut words = self.origin.words(self.words, Ipv4Addr::LOCALHOST);
        let admin = server::take_port()?;
        words.set("ADMIN", admin);
        words.set("MEMORY_MIB", memory_mib);
        words.set("MEMORY_BYTES", memory_mib << 20);
        words.set("DISK_MIB", ((bytes * ROOM_TIMES) >> 20).max(ROOM_MIB_MIN));
        let within = proxy
            .group
            .as_ref()
            .map_or_else(Vec::new, ControlGroup::within);
        let place = Place {
            core: Some(self.cores.server),
            within: &within,
            ..Place::local(LIFE)
        };
        let server = Server::launch(proxy.contender, directory, &words, &place)?;
        Ok((server, admin))
    }

    /// Sends a sequence of requests; also their response times. What was written is on the device
    /// when it returns.
    pub(crate) fn watch(
        &self,
        server: &Server,
        ask: &RequestPlan<'_>,
        sequence: Sequence,
    ) -> Result<(Load, Vec<u32>), Failure> {
        let traffic = || {
            rustix::fs::sync();
            let device = usage::device_traffic(self.workplace.path());
            (usage::traffic(server.id()), device)
        };
        let before = traffic();
        let cpu_before = server.cpu_time();
        let received = ask.send(sequence).map_err(Failure::Outside)?;
        let cpu = server.cpu_time() - cpu_before;
        let after = traffic();
        let device = after.1.zip(before.1);
        let load = Load {
            responses: received.responses,
            content_bytes: received.content_bytes,
            took_ms: millis(received.took),
            cpu_us: cpu.sum_us(),
            process: after.0 - before.0,
            device: device.map(|(after, before)| after - before),
        };
        Ok((load, received.times_us))
    }
}

fn working_set_bytes(options: &Options) -> u64 {
    (options.memory_mib * options.times) << 20
}

fn all_of_the_mix<'a>(server: &Server, prefix: &'a str, options: &Options) -> RequestPlan<'a> {
    RequestPlan {
        to: server.address(),
        prefix,
        sizes: Sizes::Mix(options.seed),
        count: mix::count(options.seed, working_set_bytes(options)),
        connections: options.connections,
    }
}
