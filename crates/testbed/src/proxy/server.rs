//! A server under measurement: its directory, its config, its process, and when it is ready.

use super::contender::Contender;
use super::template::Words;
use crate::client::get as client;
use crate::process::guarded::{self, GuardedProcess};
use crate::process::usage::{self, CpuTime, Memory};
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use xtask::failure::{During, Failure};
use xtask::{ports, root};

/// The slowest of them formats its disk at the first start.
const START_MAX: Duration = Duration::from_secs(20);

/// The same within another command: callgrind takes fifty times as long, also to compile a filter.
const START_WITHIN_MAX: Duration = Duration::from_secs(180);

const POLL: Duration = Duration::from_millis(50);

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    address: SocketAddr,
    guarded: GuardedProcess,
    output: PathBuf,
    start_max: Duration,
}

/// Where and how a server runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// The address it listens on and is reached at, the word `HOST` in its files.
    pub(crate) host: Ipv4Addr,
    /// The core it is confined to; `None` is any.
    pub(crate) core: Option<usize>,
    /// A command that its command is handed to, such as one that enters a namespace first; empty
    /// for none.
    pub(crate) within: &'a [String],
    /// How long it may run at most.
    pub(crate) life: Duration,
}

impl Place<'_> {
    /// On loopback, on any core.
    pub(crate) const fn local(life: Duration) -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST,
            core: None,
            within: &[],
            life,
        }
    }
}

impl Server {
    /// Starts a contender, and waits until it answers a request for `path` with 200.
    pub(crate) fn start(
        contender: &Contender,
        directory: &Path,
        words: &Words,
        place: &Place<'_>,
        path: &str,
    ) -> Result<Self, Failure> {
        let mut server = Self::launch(contender, directory, words, place)?;
        server.wait_until_it_answers(path)?;
        Ok(server)
    }

    /// Prepares a contender's directory and starts it. It answers some time later.
    pub(crate) fn launch(
        contender: &Contender,
        directory: &Path,
        words: &Words,
        place: &Place<'_>,
    ) -> Result<Self, Failure> {
        // some servers give up root, and then still write here
        for made in contender
            .directories
            .iter()
            .map(|name| directory.join(name))
        {
            make_open_directory(&made)?;
        }
        make_open_directory(directory)?;
        let mut words = words.clone();
        let port = take_port()?;
        words.set("HOST", place.host);
        words.set("PORT", port);
        words.set("DIR", directory.display());
        for file in contender.files {
            let from = file_of_peers(contender.folder, file);
            let name = from.file_name().unwrap_or_default().to_owned();
            write_template(&from, &directory.join(name), &words)?;
        }
        let mut arguments = place.within.to_vec();
        arguments.extend(contender.command_line(&words)?);
        let mut command = guarded::command(&arguments, place.life);
        let address = SocketAddr::from((place.host, port));
        let mut server = Self::spawn(contender.name, &mut command, directory, address, place.core)?;
        if !place.within.is_empty() {
            server.start_max = START_WITHIN_MAX;
        }
        Ok(server)
    }

    pub(crate) fn spawn(
        name: &str,
        command: &mut Command,
        directory: &Path,
        address: SocketAddr,
        core: Option<usize>,
    ) -> Result<Self, Failure> {
        let output = directory.join("output");
        command.current_dir(directory);
        let guarded = GuardedProcess::spawn_logged(core, command, &output)?;
        Ok(Self {
            name: name.to_owned(),
            address,
            guarded,
            output,
            start_max: START_MAX,
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The root of its process tree.
    pub(crate) fn id(&self) -> u32 {
        self.guarded.id()
    }

    /// Ends it as a crash would: without a signal that it can handle.
    pub(crate) fn kill(&mut self) {
        self.guarded.kill();
    }

    /// What `act` does while the program is stopped: it finds all of that at once.
    pub(crate) fn while_stopped<T>(&self, act: impl FnOnce() -> T) -> T {
        self.guarded.stop(true);
        let done = act();
        self.guarded.stop(false);
        done
    }

    /// Sends SIGTERM, and waits for its end so long at most.
    pub(crate) fn end(&mut self, limit: Duration) {
        self.guarded.end(limit);
    }

    pub(crate) fn cpu_time(&self) -> CpuTime {
        usage::cpu_time(self.guarded.id())
    }

    pub(crate) fn memory(&self) -> Memory {
        usage::memory(self.guarded.id())
    }

    pub(crate) fn anonymous_kib(&self) -> u64 {
        usage::anonymous_kib(self.guarded.id())
    }

    pub(crate) fn wait_until_it_answers(&mut self, path: &str) -> Result<(), Failure> {
        let is_there =
            |address| client::get_once(address, path).is_ok_and(|answer| answer.status == 200);
        self.wait_until(is_there)
    }

    /// Waits until it answers something: before its origin is there, that is an error.
    pub(crate) fn wait_until_it_listens(&mut self) -> Result<(), Failure> {
        self.wait_until(|address| client::get_once(address, "/").is_ok())
    }

    /// Waits until it takes connections: not every server answers requests for content.
    pub(crate) fn wait_until_it_accepts(&mut self) -> Result<(), Failure> {
        self.wait_until(|address| client::connect(address).is_ok())
    }

    /// Waits until the admin interface of a weir answers, which it opens last: all of its listeners
    /// are open then.
    pub(crate) fn wait_until_it_is_whole(&mut self, admin: SocketAddr) -> Result<(), Failure> {
        self.wait_until(|_| is_healthy(admin))
    }

    fn wait_until(&mut self, is_there: impl Fn(SocketAddr) -> bool) -> Result<(), Failure> {
        let deadline = Instant::now() + self.start_max;
        loop {
            let is_there = is_there(self.address);
            // first: another program may answer at an address that it could not get
            if let Some(how) = self.guarded.ended() {
                return Err(self.failed_to_start(&format!("ended at its start ({how})")));
            }
            if is_there {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(self.failed_to_start("does not answer"));
            }
            std::thread::sleep(POLL);
        }
    }

    fn failed_to_start(&self, what: &str) -> Failure {
        let said = fs::read_to_string(&self.output).unwrap_or_default();
        let lines: Vec<&str> = said.lines().collect();
        let last = lines[lines.len().saturating_sub(5)..].join(" | ");
        Failure::Outside(format!("{} {what}; it said: {last}", self.name))
    }
}

/// A port for a program that must be told which, as [`ports::take`] gives it.
pub(crate) fn take_port() -> Result<u16, Failure> {
    ports::take().during("find a free port")
}

/// Whether a weir says at its admin interface, which answers only a request that names it, that it
/// serves.
fn is_healthy(admin: SocketAddr) -> bool {
    let answer = client::connect(admin)
        .and_then(|mut stream| client::get_of(&mut stream, &admin.to_string(), "/healthz"));
    answer.is_ok_and(|answer| answer.status == 200)
}

/// A file of a folder below `peers/`, or of `peers/` if the folder has none of that name.
pub(crate) fn file_of_peers(folder: &str, file: &str) -> PathBuf {
    let peers = root::directory().join("peers");
    let own = peers.join(folder).join(file);
    if own.is_file() { own } else { peers.join(file) }
}

pub(crate) fn write_template(from: &Path, to: &Path, words: &Words) -> Result<(), Failure> {
    let text = fs::read_to_string(from).during(format_args!("read `{}`", from.display()))?;
    fs::write(to, words.fill(&text)?).during(format_args!("write `{}`", to.display()))
}

fn make_open_directory(path: &Path) -> Result<(), Failure> {
    let made = fs::create_dir_all(path);
    made.and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o777)))
        .during(format_args!("make `{}`", path.display()))
}
