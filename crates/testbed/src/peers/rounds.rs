//! The rounds of a measurement: start all proxies, warm up, measure in turn, hold idle connections.

use super::cells::{CELLS, Cell, Store, Work};
use super::{IDLE, Options, Record, Start, run};
use crate::client::metrics;
use crate::origin::Origin;
use crate::process::affinity::Cores;
use crate::proxy::contender::{Contender, WEIR};
use crate::proxy::idle::{self, Idle};
use crate::proxy::server::{self, Place, Server};
use crate::proxy::template::Words;
use crate::record::benchmark::Participants;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

/// Room on disk of each proxy, MiB: more than a whole measurement fills, so that none has to evict.
const DISK_MIB: u32 = 8192;

/// How long a server may use to end what its start began.
const START_REST: Duration = Duration::from_secs(1);

/// Requests that weir answered from its disk.
const DISK_HITS: &str = "weir_disk_hits_total";

/// A server that is measured.
struct Participant {
    contender: &'static Contender,
    store: Store,
    server: Server,
    /// The admin interface of weir with a store on disk.
    admin: Option<SocketAddr>,
}

/// Everything that runs during a measurement. Servers end before their directory goes.
struct Bench {
    participants: Vec<Participant>,
    origin: Origin,
    words: Words,
    cores: Cores,
    life: Duration,
    workplace: Workplace,
}

/// Those that take part, with their stores in memory and on disk.
pub(super) struct Present<'a> {
    pub(super) participants: &'a Participants,
    pub(super) on_disk: &'a [&'static Contender],
}

impl Present<'_> {
    fn all(&self) -> impl Iterator<Item = (&'static Contender, Store)> {
        let in_memory = self.participants.present.iter();
        let in_memory = in_memory.map(|contender| (*contender, Store::Memory));
        let on_disk = self.on_disk.iter();
        in_memory.chain(on_disk.map(|contender| (*contender, Store::Disk)))
    }
}

/// Measures all proxies that are present, into the record.
pub(super) fn fill(record: &mut Record, present: &Present<'_>) -> Result<(), Failure> {
    let options = record.settings.clone();
    let mut bench = Bench::open(record.figures.cores, &options, present.participants)?;
    let cells: Vec<&'static Cell> = CELLS
        .iter()
        .filter(|cell| options.has(cell.option))
        .collect();
    bench.start_all(record, present, &cells);
    for participant in &bench.participants {
        let Participant {
            contender, server, ..
        } = participant;
        for cell in cells.iter().filter(|cell| participant.takes_part_in(cell)) {
            if let Err(trouble) = run::warm_up(contender, server, cell, bench.cores) {
                eprintln!("{}: {}: {trouble}", contender.name, cell.name);
            }
        }
    }
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        bench.round(record, round, options.seconds, &cells);
    }
    // each gets a fresh process for this: memory that the runs left free would hide what
    // connections need
    bench.participants.clear();
    if options.has(IDLE) {
        bench.hold_idle(record, options.idle_connections, present);
    }
    Ok(())
}

impl Participant {
    fn takes_part_in(&self, cell: &Cell) -> bool {
        let has_store = !self.contender.is_cache || self.store == cell.store;
        has_store && self.contender.takes_part_in(cell)
    }

    /// Requests that weir answered from its disk until now; `None` of others.
    fn disk_hits(&self) -> Result<Option<u64>, Failure> {
        let Some(admin) = self.admin else {
            return Ok(None);
        };
        let text = metrics::text(admin).during("read the metrics of weir")?;
        Ok(metrics::sum(&text, DISK_HITS))
    }
}

impl Bench {
    fn open(cores: Cores, options: &Options, participants: &Participants) -> Result<Self, Failure> {
        let workplace = Workplace::make("peers")?;
        let life = life(options);
        let place = Place {
            core: Some(cores.load),
            ..Place::local(life)
        };
        let origin = Origin::start(&workplace.path().join("origin"), &place, None)?;
        Ok(Self {
            participants: Vec::new(),
            words: origin.words(&participants.words, place.host),
            origin,
            cores,
            life,
            workplace,
        })
    }

    fn start(
        &self,
        contender: &'static Contender,
        store: Store,
        suffix: &str,
    ) -> Result<Participant, Failure> {
        let store_suffix = match store {
            Store::Memory => "",
            Store::Disk => "-disk",
        };
        let name = format!("{}{store_suffix}{suffix}", contender.name);
        let directory = self.workplace.path().join(name);
        let place = Place {
            core: Some(self.cores.server),
            ..Place::local(self.life)
        };
        let port = server::take_port()?;
        let mut words = self.words.clone();
        words.set("ADMIN", port);
        words.set("DISK_MIB", DISK_MIB);
        let server = Server::start(contender, &directory, &words, &place, CELLS[0].path)?;
        let has_admin = store == Store::Disk && contender.name == WEIR;
        Ok(Participant {
            contender,
            store,
            server,
            admin: has_admin.then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        })
    }

    /// Starts those that take part in one of the kinds. One that does not start is left out; the
    /// others go on.
    fn start_all(&mut self, record: &mut Record, present: &Present<'_>, cells: &[&Cell]) {
        for (contender, store) in present.all() {
            let is_asked = |cell: &&&Cell| {
                let has_store = !contender.is_cache || store == cell.store;
                has_store && contender.takes_part_in(cell)
            };
            if !cells.iter().any(|cell| is_asked(&cell)) {
                continue;
            }
            let started = self.start(contender, store, "");
            if let Some(participant) = record.kept(called(contender, store), started) {
                self.participants.push(participant);
            }
        }
    }

    fn round(&self, record: &mut Record, round: u32, seconds: u32, cells: &[&Cell]) {
        for cell in cells {
            for participant in &self.participants {
                if !participant.takes_part_in(cell) {
                    continue;
                }
                let name = participant.contender.name;
                let place = format!("{name}, round {round}, {}", cell.name);
                let run = self.run(participant, round, seconds, cell);
                if let Some(run) = record.kept(place, run) {
                    eprintln!("  {}", run.summary());
                    record.figures.runs.push(run);
                }
            }
        }
    }

    /// A run; hits that are to be from disk have to come from there.
    fn run(
        &self,
        participant: &Participant,
        round: u32,
        seconds: u32,
        cell: &Cell,
    ) -> Result<run::Run, Failure> {
        let Participant {
            contender, server, ..
        } = participant;
        let before = participant.disk_hits()?;
        let how = (seconds, self.cores);
        let mut run = run::measure(round, contender, server, &self.origin, cell, how)?;
        let hits = participant.disk_hits()?.zip(before);
        let hits = hits.map(|(after, before)| after - before);
        if let (Work::Hit, Some(hits)) = (cell.work, hits)
            && hits < run.wrk.requests
        {
            let requests = run.wrk.requests;
            let trouble = format!("only {hits} of {requests} responses came from disk");
            run.trouble.get_or_insert(trouble);
        }
        Ok(run)
    }

    fn idle(
        &self,
        record: &mut Record,
        (contender, store): (&'static Contender, Store),
        connections: u32,
    ) -> Result<Idle, Failure> {
        let participant = self.start(contender, store, "-idle")?;
        std::thread::sleep(START_REST);
        let memory = participant.server.memory();
        record.figures.starts.push(Start {
            contender: called(contender, store),
            anonymous_kib: participant.server.anonymous_kib(),
            pss_kib: memory.pss_kib,
            rss_kib: memory.rss_kib,
        });
        let cell = &CELLS[0];
        run::warm_up(contender, &participant.server, cell, self.cores)
            .during(format_args!("warm up {}", contender.name))?;
        let name = called(contender, store);
        Ok(idle::measure(
            &name,
            &participant.server,
            connections,
            cell.path,
        ))
    }

    /// All caches with their store in memory; weir alone with one on disk, too, which is more
    /// memory of its own.
    fn hold_idle(&self, record: &mut Record, connections: u32, present: &Present<'_>) {
        for (contender, store) in present.all() {
            let name = called(contender, store);
            let is_asked = store == Store::Memory || contender.name == WEIR;
            if !contender.is_cache || !is_asked || record.left_out.contains_key(&name) {
                continue;
            }
            let idle = self.idle(record, (contender, store), connections);
            if let Some(idle) = record.kept(format!("{name} (idle)"), idle) {
                let trouble = idle.trouble.as_deref().unwrap_or_default();
                let bytes = idle.bytes_per_connection();
                eprintln!("  idle {name:<14} {bytes} bytes a connection {trouble}");
                record.figures.idle.push(idle);
            }
        }
    }
}

/// A contender in tables where its store is not said by the table.
fn called(contender: &Contender, store: Store) -> String {
    match store {
        Store::Memory => contender.name.to_owned(),
        Store::Disk => format!("{}{}", contender.name, super::ON_DISK_SUFFIX),
    }
}

/// Generous: a child that is still there after this has been forgotten.
fn life(options: &Options) -> Duration {
    let runs = u64::from(options.rounds) * u64::from(options.seconds + 1) * 80;
    Duration::from_secs(900 + runs)
}
