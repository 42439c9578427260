//! One attack after the other, each on a weir of its own.

use super::attacker::Report;
use super::attacks::{ATTACKS, Attack, NOTHING, STORED, STORED_SMALL};
use super::others::{Others, PATH};
use super::role::ROLE;
use super::{Record, ResponseTimes, Run, tls};
use crate::client::get;
use crate::origin::Origin;
use crate::peers::tls::certificate;
use crate::process::affinity::Cores;
use crate::process::guarded;
use crate::proxy::server::{Place, Server, take_port};
use crate::proxy::template::Words;
use crate::record::benchmark::Participants;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use xtask::failure::{During, Failure};
use xtask::program;
use xtask::workplace::Workplace;

/// Between two looks at the memory.
const LOOK: Duration = Duration::from_millis(50);

/// A server that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(2 * 3600);

/// What all attacks have.
struct Bench {
    words: Words,
    cores: Cores,
    hello: PathBuf,
    seconds: u32,
    share: u32,
    _origin: Origin,
    _stalled: Stalled,
    workplace: Workplace,
}

/// Runs the attacks, into the record.
pub(super) fn fill(record: &mut Record, participants: &mut Participants) -> Result<(), Failure> {
    let options = record.settings.clone();
    let bench = Bench::open(record, participants)?;
    let is_chosen =
        |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        for attack in ATTACKS.iter().filter(|attack| is_chosen(attack.name)) {
            let place = format!("{}, round {round}", attack.name);
            if let Some(run) = record.kept(place, bench.attack(round, attack)) {
                eprintln!("  {}", run.summary());
                record.figures.runs.push(run);
            }
        }
    }
    Ok(())
}

impl Bench {
    fn open(record: &Record, participants: &mut Participants) -> Result<Self, Failure> {
        let workplace = Workplace::make("attack")?;
        let cores = record.figures.cores;
        let place = Place {
            core: Some(cores.load),
            ..Place::local(LIFE)
        };
        let origin = Origin::start(&workplace.path().join("origin"), &place, None)?;
        certificate::make(&workplace.path().join("keys"), &mut participants.words)?;
        let hello = workplace.path().join("hello");
        std::fs::write(&hello, tls::client_hello()?).during("keep a ClientHello")?;
        let stalled = Stalled::start()?;
        let mut words = origin.words(&participants.words, place.host);
        words.set("STALLED", stalled.address);
        Ok(Self {
            words,
            cores,
            hello,
            seconds: record.settings.seconds,
            share: record.settings.share,
            _origin: origin,
            _stalled: stalled,
            workplace,
        })
    }

    fn attack(&self, round: u32, attack: &Attack) -> Result<Run, Failure> {
        let directory = self
            .workplace
            .path()
            .join(format!("{}-{round}", attack.name));
        let place = Place {
            core: Some(self.cores.server),
            ..Place::local(LIFE)
        };
        let mut words = self.words.clone();
        let port = take_port()?;
        words.set("TLS_PORT", port);
        let server = Server::start(&super::CONTENDERS[0], &directory, &words, &place, PATH)?;
        for path in [STORED, STORED_SMALL] {
            let stored = get::get_once(server.address(), path);
            let stored = stored.during("have a response stored")?;
            if stored.status != 200 {
                let status = stored.status;
                return Err(Failure::Outside(format!("{path} has status {status}")));
            }
        }
        let by_tls = SocketAddr::from((place.host, port));
        tls::handshake(by_tls)?;
        let mut others = Others::connect(server.address())?;
        let to = (server.address(), by_tls);
        let before = self.phase(&NOTHING, to, &server, &mut others)?;
        let before_kib = server.memory().rss_kib;
        let during = self.phase(attack, to, &server, &mut others)?;
        Ok(Run {
            round,
            attack: attack.name.to_owned(),
            attacker: during.attacker,
            before_us: before.used_us,
            during_us: during.used_us,
            before_kib,
            during_max_kib: during.max_kib.max(before_kib),
            middle_kib: during.middle_kib,
            end_kib: during.end_kib,
            others_before: before.others,
            others_during: during.others,
        })
    }

    /// Runs an attacker, and the other clients meanwhile.
    fn phase(
        &self,
        attack: &Attack,
        to: (SocketAddr, SocketAddr),
        server: &Server,
        others: &mut Others,
    ) -> Result<Phase, Failure> {
        let attacker = self.attacker(attack, to)?;
        let length = Duration::from_secs(u64::from(self.seconds));
        let is_over = AtomicBool::new(false);
        let [max_kib, middle_kib, end_kib] = [0; 3].map(AtomicU64::new);
        let used = || server.cpu_time().sum_us();
        let first_us = used();
        let (others, output) = std::thread::scope(|scope| {
            let others =
                scope.spawn(|| others.run(self.cores.load, || !is_over.load(Ordering::Relaxed)));
            scope.spawn(|| {
                let begun = Instant::now();
                while !is_over.load(Ordering::Relaxed) {
                    let now_kib = server.memory().rss_kib;
                    max_kib.fetch_max(now_kib, Ordering::Relaxed);
                    end_kib.store(now_kib, Ordering::Relaxed);
                    if begun.elapsed() < length / 2 {
                        middle_kib.store(now_kib, Ordering::Relaxed);
                    }
                    std::thread::sleep(LOOK);
                }
            });
            let output = guarded::output(self.cores.load, &attacker, length * 2 + LIFE_BESIDE);
            let used_us = used() - first_us;
            is_over.store(true, Ordering::Relaxed);
            let others = others.join().unwrap_or_else(|_| {
                Err(Failure::Outside("the other clients have failed".to_owned()))
            });
            (others, output.map(|(text, _)| (text, used_us)))
        });
        let (text, used_us) = output?;
        Ok(Phase {
            attacker: serde_json::from_str(&text).during("read what the attacker says")?,
            used_us,
            max_kib: max_kib.into_inner(),
            middle_kib: middle_kib.into_inner(),
            end_kib: end_kib.into_inner(),
            others: others?,
        })
    }

    /// The command of the attacker: other clients go first on their core.
    fn attacker(
        &self,
        attack: &Attack,
        (clear, tls): (SocketAddr, SocketAddr),
    ) -> Result<Vec<String>, Failure> {
        let own = program::own()?;
        let words = ["nice", "-n", "5", &own, ROLE, attack.name];
        let mut command: Vec<String> = words.map(str::to_owned).into();
        command.extend([clear.to_string(), tls.to_string()]);
        command.push(self.hello.display().to_string());
        command.extend([self.seconds.to_string(), self.share.to_string()]);
        Ok(command)
    }
}

/// What an attacker, and the other clients beside it, have taken.
struct Phase {
    attacker: Report,
    /// CPU time of weir, microseconds.
    used_us: u64,
    /// Its resident memory, at most, in the middle and at the end.
    max_kib: u64,
    middle_kib: u64,
    end_kib: u64,
    others: ResponseTimes,
}

/// How long an attacker may take to begin and to end.
const LIFE_BESIDE: Duration = Duration::from_secs(20);

/// A next hop that accepts and reads nothing, while this exists.
struct Stalled {
    address: SocketAddr,
    is_over: std::sync::Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stalled {
    fn start() -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").during("listen as a next hop")?;
        let address = listener.local_addr().during("listen as a next hop")?;
        let is_over = std::sync::Arc::new(AtomicBool::new(false));
        let ended = std::sync::Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            let mut connections: Vec<TcpStream> = Vec::new();
            for connection in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                connections.retain(|stream| !has_ended(stream));
                connections.extend(connection);
            }
        });
        Ok(Self {
            address,
            is_over,
            thread: Some(thread),
        })
    }
}

/// Whether weir has ended a connection of which nothing is read: nothing can be written, either.
fn has_ended(stream: &TcpStream) -> bool {
    stream.take_error().is_ok_and(|error| error.is_some())
}

impl Drop for Stalled {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // it accepts this one, and ends
        let _woken = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
