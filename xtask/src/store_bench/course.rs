//! The course of a measurement, one proxy after the other: fill its store with misses, ask for what is in it, and, in another
//! store, kill it and start it again.

use super::device::{self, Traffic};
use super::latency::{Latency, quantiles};
use super::load::{Ask, Course, Received, Sizes};
use super::options::Options;
use super::record::{Record, Row};
use super::{mix, restart};
use crate::bed::affinity::{self, Cores};
use crate::bed::contender::Contender;
use crate::bed::server::{self, Place, Server};
use crate::bed::template::Words;
use crate::bed::workplace::Workplace;
use crate::failure::{During, Failure};
use crate::uneven::origin::{self, Origin, READY};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(3 * 3600);

/// A store has this many times the room of what is put into it: nobody has to evict.
const ROOM_TIMES: u64 = 3;
const ROOM_MIB_MIN: u64 = 1024;

/// What filling a store cost.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Fill {
    pub(crate) responses: u64,
    pub(crate) content_bytes: u64,
    pub(crate) took_ms: u64,
    pub(crate) cpu_us: u64,
    pub(crate) process: Traffic,
    pub(crate) device: Option<Traffic>,
}

/// What asking for what is stored cost.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Hits {
    pub(crate) responses: u64,
    pub(crate) content_bytes: u64,
    pub(crate) took_ms: u64,
    pub(crate) cpu_us: u64,
    pub(crate) latency: Latency,
    /// Requests that the origin got meanwhile.
    pub(crate) fetches: u64,
    pub(crate) process: Traffic,
    pub(crate) device: Option<Traffic>,
    pub(crate) rss_kib: u64,
}

/// Where and with what proxies are started.
pub(crate) struct Field<'a> {
    pub(crate) words: &'a Words,
    pub(crate) cores: Cores,
    pub(crate) origin: Origin,
    workplace: Workplace,
    within: Vec<String>,
}

/// Measures everybody who is present, into the record.
pub(crate) fn run(
    record: &mut Record,
    options: &Options,
    words: &Words,
    present: &[&'static Contender],
    cores: Cores,
) -> Result<(), Failure> {
    // load, origin and all that is started from here stay there; the server alone is sent to its own core
    affinity::stay_on(cores.load)?;
    let workplace = Workplace::make("store-bench")?;
    let place = origin::Place {
        hosts: &[Ipv4Addr::LOCALHOST],
        within: &[],
        send_buffer_bytes: None,
        life: LIFE,
    };
    let mut origin = Origin::launch(&workplace.path().join("origin"), &place)?;
    origin.wait_until_it_answers()?;
    let group = Group::make(options.cgroup_mib)?;
    let field = Field {
        words,
        cores,
        origin,
        workplace,
        within: group.as_ref().map_or_else(Vec::new, Group::within),
    };
    for contender in present {
        eprintln!("{}", contender.name);
        let mut row = Row::new(contender.name);
        let mut trouble = |what: &str, failure: String| {
            eprintln!("  {what}: {failure}");
            record
                .troubles
                .push(format!("{} ({what}): {failure}", contender.name));
        };
        if let Err(failure) = field.fill_and_hit(contender, options, &mut row) {
            trouble("fill and hits", failure.to_string());
        }
        if options.responses > 0 {
            match restart::measure(&field, contender, options) {
                Ok(restart) => row.restart = Some(restart),
                Err(failure) => trouble("restart", failure.to_string()),
            }
        }
        eprintln!("  {row:?}");
        record.rows.push(row);
    }
    Ok(())
}

impl Field<'_> {
    fn fill_and_hit(
        &self,
        contender: &'static Contender,
        options: &Options,
        row: &mut Row,
    ) -> Result<(), Failure> {
        let working_set = (options.memory_mib * options.times) << 20;
        let directory = self.directory(contender, "hits");
        let server = self.start(contender, &directory, options.memory_mib, working_set)?;
        let prefix = format!("/{}/hits", contender.name);
        let ask = Ask {
            to: server.address(),
            prefix: &prefix,
            sizes: Sizes::Mix(options.seed),
            count: mix::count(options.seed, working_set),
            connections: options.connections,
        };
        let (received, cost) = self.watch(&server, &ask, Course::All)?;
        row.fill = Some(Fill {
            responses: received.responses,
            content_bytes: received.content_bytes,
            took_ms: millis(received.took),
            cpu_us: cost.cpu_us,
            process: cost.process,
            device: cost.device,
        });
        let before = self.origin.tally(&prefix)?.fetches;
        let length = Duration::from_secs(options.seconds);
        let (received, cost) = self.watch(&server, &ask, Course::Random(options.seed, length))?;
        row.hits = Some(Hits {
            responses: received.responses,
            content_bytes: received.content_bytes,
            took_ms: millis(received.took),
            cpu_us: cost.cpu_us,
            fetches: self.origin.tally(&prefix)?.fetches - before,
            latency: quantiles(received.times_us),
            process: cost.process,
            device: cost.device,
            rss_kib: server.memory().rss_kib,
        });
        Ok(())
    }

    pub(crate) fn directory(&self, contender: &Contender, name: &str) -> PathBuf {
        self.workplace.path().join(name).join(contender.name)
    }

    /// Starts a proxy whose store has room for `bytes`; it answers when this returns.
    fn start(
        &self,
        contender: &'static Contender,
        directory: &Path,
        memory_mib: u64,
        bytes: u64,
    ) -> Result<Server, Failure> {
        let (mut server, _) = self.launch(contender, directory, memory_mib, bytes)?;
        server.wait_until_it_answers(READY)?;
        Ok(server)
    }

    /// Starts a proxy; also the port of its admin interface, if it has one.
    pub(crate) fn launch(
        &self,
        contender: &'static Contender,
        directory: &Path,
        memory_mib: u64,
        bytes: u64,
    ) -> Result<(Server, u16), Failure> {
        let mut words = self.words.clone();
        let admin = server::free_port()?;
        let address = self.origin.address();
        words.set("ADMIN", admin);
        words.set("ORIGIN", address);
        words.set("ORIGIN_HOST", address.ip());
        words.set("ORIGIN_PORT", address.port());
        words.set("MEMORY_MIB", memory_mib);
        words.set("MEMORY_BYTES", memory_mib << 20);
        words.set("DISK_MIB", ((bytes * ROOM_TIMES) >> 20).max(ROOM_MIB_MIN));
        let place = Place {
            host: Ipv4Addr::LOCALHOST,
            core: Some(self.cores.server),
            within: &self.within,
            life: LIFE,
        };
        Ok((Server::launch(contender, directory, &words, &place)?, admin))
    }

    /// Goes through a course and says what it cost; what was written is on the device when it returns.
    pub(crate) fn watch(
        &self,
        server: &Server,
        ask: &Ask<'_>,
        course: Course,
    ) -> Result<(Received, Cost), Failure> {
        let now = || Cost {
            cpu_us: server.cpu_time().user_us + server.cpu_time().system_us,
            process: device::of_processes(server.id()),
            device: device::of_device(self.workplace.path()),
        };
        rustix::fs::sync();
        let before = now();
        let received = ask.go(course).map_err(Failure::Outside)?;
        let cpu_us = now().cpu_us;
        rustix::fs::sync();
        let after = now();
        let device = after.device.zip(before.device);
        let cost = Cost {
            cpu_us: cpu_us.saturating_sub(before.cpu_us),
            process: after.process - before.process,
            device: device.map(|(after, before)| after - before),
        };
        Ok((received, cost))
    }
}

/// What a course cost a proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    cpu_us: u64,
    process: Traffic,
    device: Option<Traffic>,
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A control group that limits memory, page cache included; removed when dropped.
struct Group(PathBuf);

impl Group {
    /// `None` without a limit.
    fn make(limit_mib: u64) -> Result<Option<Self>, Failure> {
        if limit_mib == 0 {
            return Ok(None);
        }
        let own = std::fs::read_to_string("/proc/self/cgroup").during("read the control groups")?;
        let (parent, knob) = parent_group(&own).ok_or_else(|| {
            Failure::Outside("there is no control group for memory; try `--cgroup 0`".to_owned())
        })?;
        let path = parent.join(format!("weir-store-bench-{}", std::process::id()));
        std::fs::create_dir(&path).during(format_args!("make `{}`", path.display()))?;
        let group = Self(path);
        let bytes = (limit_mib << 20).to_string();
        std::fs::write(group.0.join(knob), bytes).during("limit the memory of a control group")?;
        Ok(Some(group))
    }

    /// Enters the group, then becomes the command.
    fn within(&self) -> Vec<String> {
        let enter = format!(
            "echo $$ > '{}/cgroup.procs' && exec \"$@\"",
            self.0.display()
        );
        ["sh", "-c", &enter, "sh"].map(str::to_owned).to_vec()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // an empty group that stays behind does no harm
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Where a group can be made, and the file that takes its limit: of version 1 or 2.
fn parent_group(own: &str) -> Option<(PathBuf, &'static str)> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
        if controllers.split(',').any(|name| name == "memory") {
            let root = Path::new("/sys/fs/cgroup/memory");
            return Some((root.join(path), "memory.limit_in_bytes"));
        }
        let root = Path::new("/sys/fs/cgroup").join(path);
        let has_memory = controllers.is_empty() && root.join("memory.max").exists();
        has_memory.then_some((root, "memory.max"))
    })
}
