//! Weir under callgrind, and the requests of a case.

use super::case::{Case, FOLLOWER_DELAYS};
use super::receive::{self, Received};
use crate::instructions::callgrind::{self, ByThread, ThreadWork};
use crate::instructions::counted;
use crate::origin::Origin;
use crate::process::usage;
use crate::proxy::server::{self, Server};
use crate::proxy::template::Words;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::failure::{During, Failure};

/// Requests before anything is counted.
const WARM_UP: u32 = 5;

/// Followers of each fetch, of which the second count has more.
const FOLLOWERS: [usize; 2] = [1, 3];

/// Requests a second that are begun under TLS, at most: weir waits by then, each time, also where
/// the machine is busy.
const TLS_RATE: &str = "30/s";

/// How long weir is watched while it has nothing to do.
const IDLE: Duration = Duration::from_secs(5);

/// Requests, and what they cost.
#[derive(Debug)]
pub(super) struct Counted {
    pub(super) requests: u64,
    /// Of the busiest thread.
    pub(super) work: ThreadWork,
}

/// What is done between two dumps.
#[derive(Debug, Default)]
struct Part {
    by_thread: ByThread,
    took: Duration,
}

/// What the thread of the requests does without any.
#[derive(Clone, Copy, Debug)]
pub(super) struct IdleWork {
    work: ThreadWork,
    took: Duration,
}

impl IdleWork {
    pub(super) fn count(words: &Words, directory: &Path) -> Result<Self, Failure> {
        let mut weir = Weir::start(Case::Hit, words, directory)?;
        let mut client = Case::Hit.connect(weir.address)?;
        let busy = weir.part(|weir| weir.ask(&mut client, WARM_UP))?;
        let idle = weir.part(|_| {
            std::thread::sleep(IDLE);
            Ok(())
        })?;
        weir.end(WARM_UP.into())?;
        let thread = callgrind::busiest_thread(&ByThread::new(), &busy.by_thread);
        let work = idle.by_thread.get(thread.unwrap_or_default());
        Ok(Self {
            work: work.copied().unwrap_or_default(),
            took: idle.took,
        })
    }

    /// The same in this time.
    fn during(self, time: Duration) -> ThreadWork {
        let took = self.took.as_millis().max(1);
        let part = |count: u64| {
            let count = u128::from(count) * time.as_millis() / took;
            u64::try_from(count).unwrap_or(u64::MAX)
        };
        ThreadWork {
            instructions: part(self.work.instructions),
            system_calls: part(self.work.system_calls),
            clock_readings: part(self.work.clock_readings),
            allocations: part(self.work.allocations),
        }
    }
}

/// Counts so many requests of a case; files go below `directory`.
pub(super) fn count(
    (case, requests): (Case, u32),
    words: &Words,
    idle: IdleWork,
    directory: &Path,
) -> Result<Counted, Failure> {
    let start = || Weir::start(case, words, directory);
    let (fewer, more, requests) = match case {
        Case::Follower => share_in_time(requests, start)?,
        Case::TlsHit => start()?.ask_twice_by_tls(requests)?,
        Case::Hit | Case::LargeHit | Case::Forward => {
            let mut weir = start()?;
            let mut client = case.connect(weir.address)?;
            weir.part(|weir| weir.ask(&mut client, WARM_UP))?;
            let part = weir.part(|weir| weir.ask(&mut client, requests))?;
            weir.end((WARM_UP + requests).into())?;
            (Part::default(), part, requests)
        }
    };
    let longer = more.took.saturating_sub(fewer.took);
    let work = callgrind::busiest(&fewer.by_thread, &more.by_thread);
    Ok(Counted {
        requests: requests.into(),
        work: work.beyond(idle.during(longer)),
    })
}

/// Shares fetches that take longer and longer, until all followers come before the response.
fn share_in_time<'d>(
    rounds: u32,
    start: impl Fn() -> Result<Weir<'d>, Failure>,
) -> Result<(Part, Part, u32), Failure> {
    for delay in FOLLOWER_DELAYS {
        if let Some(shared) = start()?.share(rounds, delay)? {
            return Ok(shared);
        }
    }
    let what = "followers come behind the response: this machine is too busy";
    Err(Failure::Outside(what.to_owned()))
}

/// A weir under callgrind, and its origin.
struct Weir<'d> {
    case: Case,
    origin: Origin,
    server: Server,
    address: SocketAddr,
    directory: &'d Path,
    /// Dumps so far.
    dumps: u32,
    /// To be checked at the end.
    received: Vec<Received>,
}

impl<'d> Weir<'d> {
    fn start(case: Case, words: &Words, directory: &'d Path) -> Result<Self, Failure> {
        let mut words = words.clone();
        let tls_port = server::take_port()?;
        words.set("TLS_PORT", tls_port);
        let callgrind = callgrind::command(directory);
        let (origin, server) = counted::start(case.weir(), directory, &words, &callgrind)?;
        let address = match case {
            Case::TlsHit => (Ipv4Addr::LOCALHOST, tls_port).into(),
            _ => server.address(),
        };
        Ok(Self {
            case,
            origin,
            server,
            address,
            directory,
            dumps: 0,
            received: Vec::new(),
        })
    }

    /// Does something, and dumps what weir did meanwhile.
    fn part(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<Part, Failure> {
        let begun = Instant::now();
        work(self)?;
        let took = begun.elapsed();
        self.dumps += 1;
        // behind the program that guards it
        let process = usage::tree(self.server.id()).last().copied();
        callgrind::dump(process.unwrap_or_default())?;
        let by_thread = callgrind::read_dump(self.directory, self.dumps)?;
        Ok(Part { by_thread, took })
    }

    /// Ends weir, and checks all that came of so many requests.
    fn end(mut self, requests: u64) -> Result<(), Failure> {
        let case = self.case;
        let fetches = self.origin.tally(case.path())?.fetches;
        self.server.end(counted::END_MAX);
        self.received.iter().try_for_each(Received::check)?;
        let expected = case.fetches(requests);
        if fetches == expected {
            return Ok(());
        }
        let name = case.name();
        Err(Failure::Refused(format!(
            "{name}: {fetches} of {requests} requests reached the origin, not {expected}"
        )))
    }

    /// One request after the other, on one connection.
    fn ask(&mut self, client: &mut TcpStream, requests: u32) -> Result<(), Failure> {
        let spec = self.case.spec();
        for _ in 0..requests {
            receive::ask(client, &spec)?;
            let received = match self.received.len() {
                // while it is fetched, weir waits for a client that does not read
                0 => receive::read(client, &spec)?,
                _ => receive::receive(client, &spec)?,
            };
            if self.received.last() != Some(&received) {
                self.received.push(received);
            }
        }
        Ok(())
    }

    /// As many fetches with one follower each as with three; how many followers more these are.
    /// `None` if a follower came too late.
    fn share(mut self, rounds: u32, delay: Duration) -> Result<Option<(Part, Part, u32)>, Failure> {
        let [few, many] = FOLLOWERS;
        let clients = (0..=many).map(|_| self.case.connect(self.address));
        let mut clients = clients.collect::<Result<Vec<_>, _>>()?;
        let delayed = |rounds| (rounds, delay);
        self.part(|weir| weir.share_each(&mut clients, delayed(0..WARM_UP)))?;
        let first = WARM_UP..WARM_UP + rounds;
        let second = first.end..first.end + rounds;
        let fetches = second.end.into();
        let fewer = self.part(|weir| weir.share_each(&mut clients[..=few], delayed(first)))?;
        let more = self.part(|weir| weir.share_each(&mut clients, delayed(second)))?;
        let collapsed = self.received.iter().filter(|it| it.is_collapsed);
        let collapsed = collapsed.count();
        let expected = WARM_UP as usize * many + rounds as usize * (few + many);
        if collapsed < expected {
            return Ok(None);
        }
        self.end(fetches)?;
        let followers = u32::try_from(many - few).unwrap_or(1);
        Ok(Some((fewer, more, rounds * followers)))
    }

    /// Fetches of these numbers, each shared by all clients: one after the other, all but the first
    /// join it.
    fn share_each(
        &mut self,
        clients: &mut [TcpStream],
        (rounds, delay): (std::ops::Range<u32>, Duration),
    ) -> Result<(), Failure> {
        for round in rounds {
            let spec = self.case.shared(round, delay);
            for client in &mut *clients {
                receive::ask(client, &spec)?;
                receive::wait_until_read(client)?;
            }
            for client in &mut *clients {
                self.received.push(receive::receive(client, &spec)?);
            }
        }
        Ok(())
    }

    /// A connection with few requests and one with more; how many more.
    fn ask_twice_by_tls(mut self, requests: u32) -> Result<(Part, Part, u32), Failure> {
        self.part(|weir| weir.ask_by_tls(WARM_UP))?;
        let fewer = self.part(|weir| weir.ask_by_tls(WARM_UP))?;
        let more = self.part(|weir| weir.ask_by_tls(WARM_UP + requests))?;
        self.end((WARM_UP * 3 + requests).into())?;
        Ok((fewer, more, requests))
    }

    /// One request after the other, by curl: it is named as many times, and only fragments differ,
    /// which are not sent.
    fn ask_by_tls(&mut self, requests: u32) -> Result<(), Failure> {
        let spec = self.case.spec();
        let mut curl = Command::new("curl");
        curl.args([
            "--silent",
            "--show-error",
            "--fail",
            "--insecure",
            "--http1.1",
            "--rate",
            TLS_RATE,
        ]);
        for line in ["Host: origin.example", "User-Agent:", "Accept:"] {
            curl.args(["--header", line]);
        }
        curl.args(["--write-out", "%{stderr}%{http_code} %{num_connects}\\n"]);
        curl.arg(format!("https://{}{spec}#[1-{requests}]", self.address));
        let done = curl.output().during("run curl")?;
        let said = String::from_utf8_lossy(&done.stderr);
        let with = |connections: &str| said.lines().filter(|line| *line == connections).count();
        let (made, reused) = (with("200 1"), with("200 0"));
        let size = usize::try_from(spec.size_bytes).unwrap_or(usize::MAX);
        let is_whole = done.stdout.len() == size * requests as usize;
        if made != 1 || made + reused != requests as usize || !is_whole {
            let last = said.lines().last().unwrap_or_default();
            return Err(Failure::Refused(format!(
                "curl does not get {requests} responses by one connection: {last}"
            )));
        }
        let bodies = done.stdout.chunks(size);
        let received = bodies.map(|body| Received::by_other(&spec, body));
        self.received.extend(received);
        Ok(())
    }
}
