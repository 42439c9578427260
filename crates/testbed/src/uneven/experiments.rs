//! The schedule of a measurement: start all proxies, one experiment after the other, then the
//! experiments that need servers of their own.

use super::measurement::{Measurement, Subject};
use super::{Experiment, Record};
use super::{abort, herd, join, memory, path, read_ahead};
use crate::client::http2::ClientVersion;
use crate::origin::{Origin, READY};
use crate::proxy::contender::{Contender, WEIR};
use crate::proxy::server::{Place, Server};
use crate::proxy::template::Words;
use crate::record::benchmark::Participants;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;
use xtask::failure::Failure;
use xtask::workplace::Workplace;

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(3 * 3600);

/// The origin's `SO_SNDBUF`: bytes that wait in its own kernel are not on their way yet, and should
/// be few.
pub(crate) const SEND_BUFFER_BYTES: usize = 32 * 1024;

/// The proxies whose memory is measured: weir's, and that of the one with the least.
const MEMORY_OF: [&str; 2] = [WEIR, Contender::NGINX.name];

/// Measures all proxies that are present, into the record.
pub(super) fn run(record: &mut Record, participants: &Participants) -> Result<(), Failure> {
    let Participants { present, words, .. } = participants;
    let workplace = Workplace::make("uneven")?;
    let directory = workplace.path();
    let experiments = record.settings.experiments.clone();
    let wants = |experiment| experiments.contains(&experiment);
    let together = [
        Experiment::Abort,
        Experiment::ReadAhead,
        Experiment::Join,
        Experiment::Herd,
    ];
    if together.into_iter().any(wants) {
        Setup::open(directory, words, present, record, "together")?.go(record, wants);
    }
    if wants(Experiment::Memory) {
        let is_of_memory = |contender: &&&Contender| MEMORY_OF.contains(&contender.name);
        for contender in present.iter().filter(is_of_memory) {
            for kind in memory::KINDS {
                // a fresh process each time: memory that was left free would hide what the clients
                // need
                let name = format!("memory-{kind:?}");
                Setup::open(directory, words, &[contender], record, &name)?
                    .look_at_memory(record, kind);
            }
        }
    }
    let weir = present.iter().find(|contender| contender.name == WEIR);
    let has_path = wants(Experiment::Path) && !record.settings.http2;
    if let Some(weir) = weir.filter(|_| has_path) {
        eprintln!("a long path");
        let path = path::measure(weir, directory, words, record.settings.pairs, LIFE);
        record.figures.path = record.kept(format!("{WEIR} (long path)"), path);
    }
    Ok(())
}

/// Servers that run at the same time, and their origin.
struct Setup {
    version: ClientVersion,
    servers: Vec<(&'static Contender, Server)>,
    origin: Origin,
}

impl Setup {
    /// Starts all proxies; one that does not start is left out.
    fn open(
        directory: &Path,
        words: &Words,
        present: &[&'static Contender],
        record: &mut Record,
        name: &str,
    ) -> Result<Self, Failure> {
        let directory = directory.join(name);
        let place = Place::local(LIFE);
        let mut origin = Origin::start(&directory.join("origin"), &place, Some(SEND_BUFFER_BYTES))?;
        if record.settings.http2 {
            origin.speak_http2(SEND_BUFFER_BYTES)?;
        }
        let mut servers = Vec::new();
        // one address for this process, one for each proxy
        let hosts = (1..=u8::MAX).map(|number| Ipv4Addr::new(127, 0, 1, number));
        for (contender, host) in present.iter().zip(hosts) {
            let mut words = origin.words(words, host);
            words.set("FETCH", "");
            words.set("HTTP2", record.settings.http2);
            let directory = directory.join(contender.name);
            let server = Server::start(contender, &directory, &words, &place, READY);
            if let Some(server) = record.kept(format!("{} ({name})", contender.name), server) {
                servers.push((*contender, server));
            }
        }
        let version = match record.settings.http2 {
            true => ClientVersion::Http2,
            false => ClientVersion::Http1,
        };
        Ok(Self {
            version,
            servers,
            origin,
        })
    }

    fn subjects(&self) -> impl Iterator<Item = Subject<'_>> {
        self.servers.iter().map(|(contender, server)| Subject {
            contender,
            address: server.address(),
            origin: &self.origin,
            version: self.version,
            may_change_content: false,
        })
    }

    fn go(&self, record: &mut Record, wants: impl Fn(Experiment) -> bool) {
        let figures = &mut record.figures;
        if wants(Experiment::Abort) {
            eprintln!("a client leaves, another comes");
            figures.aborts = self.at_once(abort::first);
            figures.seconds = self.at_once(abort::second);
        }
        if wants(Experiment::ReadAhead) {
            for kind in read_ahead::KINDS {
                eprintln!("ahead of a client: {kind:?}");
                let leads = self.in_turn(|subject| read_ahead::measure(subject, kind));
                figures.leads.extend(leads);
            }
        }
        if wants(Experiment::Join) {
            eprintln!("a fast reader joins a slow one");
            figures.joins = self.in_turn(join::measure);
        }
        if wants(Experiment::Herd) {
            for clients in herd::CLIENTS {
                eprintln!("{clients} clients want the same");
                let herds = self.in_turn(|subject| herd::measure(subject, clients));
                figures.herds.extend(herds);
            }
        }
    }

    /// For light experiments: all proxies at the same time.
    fn at_once<T: Send + std::fmt::Debug>(
        &self,
        experiment: impl Fn(&Subject<'_>) -> Result<T, String> + Sync,
    ) -> Vec<Measurement<T>> {
        let experiment = &experiment;
        std::thread::scope(|scope| {
            let start = |subject| (subject, scope.spawn(move || experiment(&subject)));
            let running: Vec<_> = self.subjects().map(start).collect();
            let ended = running.into_iter().map(|(subject, thread)| {
                let outcome = thread.join().unwrap_or(Err("it broke".to_owned()));
                with_line(&subject, outcome)
            });
            ended.collect()
        })
    }

    /// One after the other.
    fn in_turn<T: std::fmt::Debug>(
        &self,
        experiment: impl Fn(&Subject<'_>) -> Result<T, String>,
    ) -> Vec<Measurement<T>> {
        let measure = |subject| with_line(&subject, experiment(&subject));
        self.subjects().map(measure).collect()
    }

    fn look_at_memory(&self, record: &mut Record, kind: memory::Kind) {
        for ((_, server), subject) in self.servers.iter().zip(self.subjects()) {
            let name = subject.contender.name;
            eprintln!("memory of {name}: {}", kind.name());
            let outcome = memory::measure(&subject, server, kind);
            let memories = &mut record.figures.memories;
            memories.push(Measurement::new(name, outcome));
        }
    }
}

/// The measurement of an outcome; prints a line about it.
fn with_line<T: std::fmt::Debug>(
    subject: &Subject<'_>,
    outcome: Result<T, String>,
) -> Measurement<T> {
    let name = subject.contender.name;
    match &outcome {
        Ok(figures) => eprintln!("  {name}: {figures:?}"),
        Err(trouble) => eprintln!("  {name}: {trouble}"),
    }
    Measurement::new(name, outcome)
}
