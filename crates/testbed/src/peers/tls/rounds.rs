//! The rounds of a measurement: start all proxies, warm up, measure in turn, hold idle connections.

use super::h2load::{self, Protocol};
use super::handshakes::{self, Kind};
use super::{CASES, Case, Handshakes, Options, Record, Run, certificate, held};
use crate::origin::Origin;
use crate::process::affinity::Cores;
use crate::process::usage::CpuTime;
use crate::proxy::contender::Contender;
use crate::proxy::idle::Idle;
use crate::proxy::server::{Place, Server, take_port};
use crate::proxy::template::Words;
use crate::record::benchmark::Participants;
use std::net::SocketAddr;
use std::time::Duration;
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

/// A proxy with a listener in clear and one under TLS.
struct Proxy {
    contender: &'static Contender,
    server: Server,
    tls: SocketAddr,
}

/// Everything that runs during a measurement. Servers end before their directory goes.
struct Bench {
    proxies: Vec<Proxy>,
    origin: Origin,
    words: Words,
    cores: Cores,
    life: Duration,
    workplace: Workplace,
}

/// Measures all proxies that are present, into the record.
pub(super) fn fill(record: &mut Record, participants: &mut Participants) -> Result<(), Failure> {
    let options = record.settings.clone();
    let mut bench = Bench::open(record.figures.cores, &options, participants)?;
    for contender in &participants.present {
        let started = bench.start(contender, "");
        if let Some(proxy) = record.kept(contender.name, started) {
            bench.proxies.push(proxy);
        }
    }
    for round in 1..=options.rounds {
        eprintln!("round {round} of {}", options.rounds);
        bench.round(record, round, options.seconds);
    }
    // each gets a fresh process for this: memory that the runs left free would hide what
    // connections need
    bench.proxies.clear();
    if options.idle_connections > 0 {
        for contender in &participants.present {
            bench.hold_idle(record, contender, options.idle_connections);
        }
    }
    Ok(())
}

impl Bench {
    fn open(
        cores: Cores,
        options: &Options,
        participants: &mut Participants,
    ) -> Result<Self, Failure> {
        let workplace = Workplace::make("tls")?;
        let life = life(options);
        let place = Place {
            core: Some(cores.load),
            ..Place::local(life)
        };
        let origin = Origin::start(&workplace.path().join("origin"), &place, None)?;
        certificate::make(&workplace.path().join("keys"), &mut participants.words)?;
        Ok(Self {
            proxies: Vec::new(),
            words: origin.words(&participants.words, place.host),
            origin,
            cores,
            life,
            workplace,
        })
    }

    fn start(&self, contender: &'static Contender, suffix: &str) -> Result<Proxy, Failure> {
        let name = format!("{}{suffix}", contender.name);
        let directory = self.workplace.path().join(name);
        let place = Place {
            core: Some(self.cores.server),
            ..Place::local(self.life)
        };
        let mut words = self.words.clone();
        let port = take_port()?;
        words.set("TLS_PORT", port);
        let server = Server::start(contender, &directory, &words, &place, CASES[0].path)?;
        let tls = SocketAddr::from((place.host, port));
        let proxy = Proxy {
            contender,
            server,
            tls,
        };
        for case in &CASES {
            // a protocol that it does not speak is told by each run of it
            let _stored = h2load::run((tls, case.protocol), case.path, 1, self.cores.load);
        }
        Ok(proxy)
    }

    fn round(&self, record: &mut Record, round: u32, seconds: u32) {
        for case in &CASES {
            for proxy in &self.proxies {
                let name = proxy.contender.name;
                let place = format!("{name}, round {round}, {}", case.name);
                if let Some(run) = record.kept(place, self.run(round, proxy, case, seconds)) {
                    eprintln!("  {}", run.summary());
                    record.figures.runs.push(run);
                }
            }
        }
        for kind in Kind::ALL {
            for proxy in &self.proxies {
                let name = proxy.contender.name;
                let place = format!("{name}, round {round}, {} handshakes", kind.name());
                if let Some(run) = record.kept(place, self.shake(round, proxy, kind, seconds)) {
                    eprintln!("  {}", run.summary());
                    record.figures.handshakes.push(run);
                }
            }
        }
    }

    fn run(&self, round: u32, proxy: &Proxy, case: &Case, seconds: u32) -> Result<Run, Failure> {
        let (path, _) = case.path.split_once('?').unwrap_or((case.path, ""));
        let fetches = || Ok::<_, Failure>(self.origin.tally(path)?.fetches);
        let (seen_before, used_before) = (fetches()?, proxy.server.cpu_time());
        let to = (proxy.tls, case.protocol);
        let report = h2load::run(to, case.path, seconds, self.cores.load)?;
        let CpuTime { user_us, system_us } = proxy.server.cpu_time() - used_before;
        let fetched = fetches()? - seen_before;
        let trouble = if report.responses == 0 || report.errors > 0 {
            let (responses, errors) = (report.responses, report.errors);
            Some(format!("{responses} responses, {errors} errors"))
        } else if report.bytes < report.responses * case.body_bytes {
            let (bytes, responses) = (report.bytes, report.responses);
            Some(format!("only {bytes} bytes in {responses} responses"))
        } else if fetched > 0 {
            Some(format!("{fetched} of the hits were asked of the origin"))
        } else {
            None
        };
        Ok(Run {
            round,
            contender: proxy.contender.name.to_owned(),
            case: case.name.to_owned(),
            h2load: report,
            user_us,
            system_us,
            trouble,
        })
    }

    fn shake(
        &self,
        round: u32,
        proxy: &Proxy,
        kind: Kind,
        seconds: u32,
    ) -> Result<Handshakes, Failure> {
        let used_before = proxy.server.cpu_time();
        let count = handshakes::run(proxy.tls, kind, seconds, self.cores.load)?;
        let CpuTime { user_us, system_us } = proxy.server.cpu_time() - used_before;
        Ok(Handshakes {
            round,
            contender: proxy.contender.name.to_owned(),
            kind: kind.name().to_owned(),
            count,
            user_us,
            system_us,
        })
    }

    fn hold_idle(&self, record: &mut Record, contender: &'static Contender, connections: u32) {
        let name = contender.name;
        if record.left_out.contains_key(name) {
            return;
        }
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let alpn = protocol.alpn();
            let idle = self.idle(contender, (protocol, connections));
            if let Some(idle) = record.kept(format!("{name} (idle, {alpn})"), idle) {
                let bytes = idle.bytes_per_connection();
                let trouble = idle.trouble.as_deref().unwrap_or_default();
                eprintln!("  idle {name:<9} {alpn:<9} {bytes} bytes a connection {trouble}");
                match protocol {
                    Protocol::Http1 => record.figures.idle_http1.push(idle),
                    Protocol::Http2 => record.figures.idle_http2.push(idle),
                }
            }
        }
    }

    fn idle(
        &self,
        contender: &'static Contender,
        (protocol, connections): (Protocol, u32),
    ) -> Result<Idle, Failure> {
        let suffix = match protocol {
            Protocol::Http1 => "-idle-1",
            Protocol::Http2 => "-idle-2",
        };
        let proxy = self.start(contender, suffix)?;
        let server = (&proxy.server, proxy.tls);
        let path = CASES[0].path;
        held::measure(contender.name, server, (protocol, connections), path)
            .during(format_args!("hold connections of {}", contender.name))
    }
}

/// Generous: a child that is still there after this has been forgotten.
fn life(options: &Options) -> Duration {
    let runs = u64::from(options.rounds) * u64::from(options.seconds + 2) * 30;
    Duration::from_secs(900 + runs)
}
