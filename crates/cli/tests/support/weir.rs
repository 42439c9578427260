//! The proxy itself, as a process.

use super::{Config, Metrics, PATIENCE, RawClient, Reply, Terminal};
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Instant;
use tempfile::TempDir;

/// What may be sent to it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    /// Read the config again.
    HangUp,
    /// Drain and end.
    Terminate,
    /// Stand still.
    Stop,
    /// Go on.
    Continue,
}

/// A running `weir serve`; it is killed when dropped.
#[derive(Debug)]
pub(crate) struct Weir {
    child: Child,
    folder: TempDir,
    lines: Receiver<String>,
    said: Vec<String>,
    /// Where it listens for clients, in the order of the config.
    pub(crate) listeners: Vec<SocketAddr>,
    /// Where it listens for other nodes of its cluster.
    pub(crate) peer_listeners: Vec<SocketAddr>,
    /// Where its admin interface listens.
    pub(crate) admin: SocketAddr,
}

/// How to start one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Start<'a> {
    /// Beside `--config`.
    pub(crate) arguments: &'a [&'a str],
    /// Without a config file.
    pub(crate) by_flags_alone: bool,
    /// A limit of the process, as `ulimit` has it; `None`: those that we have.
    pub(crate) limit: Option<(&'static str, u32)>,
    /// With a small file system at this folder, which nothing outside sees.
    pub(crate) small_file_system: Option<&'a Path>,
    /// In a network of its own, which nothing outside sees: see [`Weir::beside`].
    pub(crate) own_network: bool,
    /// Where it says that it runs; `None`: in its folder.
    pub(crate) runtime: Option<&'a Path>,
    /// Where it writes its output; `None`: to a file.
    pub(crate) terminal: Option<&'a Terminal>,
    /// More variables of its environment.
    pub(crate) variables: &'a [(&'a str, &'a str)],
}

/// Mounts a file system of 96 MiB.
const ON_SMALL_FILE_SYSTEM: &str =
    "mount -t tmpfs -o size=96m tmpfs \"$MOUNT_POINT\" && exec \"$0\" \"$@\"";

/// Makes loopback work in a new network, and a place for the names of further ones.
const IN_OWN_NETWORK: &str = "mount -t tmpfs tmpfs /run && ip link set lo up && exec \"$0\" \"$@\"";

impl Weir {
    /// Starts one that comes up.
    pub(crate) fn serve(config: &Config) -> Self {
        Self::start(config, &Start::default())
    }

    /// Starts one that comes up, with more flags.
    pub(crate) fn serve_with(config: &Config, arguments: &[&str]) -> Self {
        Self::start(
            config,
            &Start {
                arguments,
                ..Start::default()
            },
        )
    }

    /// Starts one without a config file.
    pub(crate) fn serve_by_flags(arguments: &[&str]) -> Self {
        Self::start(
            &Config::forward(),
            &Start {
                arguments,
                by_flags_alone: true,
                ..Start::default()
            },
        )
    }

    /// Starts one that writes its output to a terminal.
    pub(crate) fn serve_at(config: &Config, terminal: &Terminal) -> Self {
        Self::start(
            config,
            &Start {
                terminal: Some(terminal),
                ..Start::default()
            },
        )
    }

    /// Starts one that says in `runtime` that it runs.
    pub(crate) fn serve_known_in(config: &Config, runtime: &Path) -> Self {
        Self::start(
            config,
            &Start {
                runtime: Some(runtime),
                ..Start::default()
            },
        )
    }

    /// Starts one with more variables in its environment.
    pub(crate) fn serve_in(config: &Config, variables: &[(&str, &str)]) -> Self {
        Self::start(
            config,
            &Start {
                variables,
                ..Start::default()
            },
        )
    }

    /// Starts one that may have so many files open.
    pub(crate) fn serve_with_open_files(config: &Config, open_files: u32) -> Self {
        Self::serve_with_limit(config, ("-n", open_files))
    }

    /// Starts one with this limit, as `ulimit` has it.
    pub(crate) fn serve_with_limit(config: &Config, limit: (&'static str, u32)) -> Self {
        Self::start(
            config,
            &Start {
                limit: Some(limit),
                ..Start::default()
            },
        )
    }

    /// Starts one in a network of its own. That needs root, and `unshare` of Debian's package
    /// util-linux.
    pub(crate) fn serve_in_own_network(config: &Config) -> Self {
        Self::start(
            config,
            &Start {
                own_network: true,
                ..Start::default()
            },
        )
    }

    /// Starts one with a file system of 96 MiB at `folder`. That needs root, and `unshare` of
    /// Debian's package util-linux.
    pub(crate) fn serve_on_small_file_system(config: &Config, folder: &Path) -> Self {
        Self::start(
            config,
            &Start {
                small_file_system: Some(folder),
                ..Start::default()
            },
        )
    }

    /// The same file as it sees it, with what is mounted there.
    pub(crate) fn mounted(&self, file: &Path) -> PathBuf {
        let inside = file.strip_prefix("/").expect("an absolute path");
        let process = Path::new("/proc").join(self.id().to_string());
        process.join("root").join(inside)
    }

    /// A program that sees the same network as this one, started in `folder`.
    pub(crate) fn beside(&self, folder: &Path, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command
            .args(["--net", "--mount", "--target", &self.id().to_string()])
            .arg(format!("--wd={}", folder.display()))
            .arg(program);
        command
    }

    fn start(config: &Config, start: &Start<'_>) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("weir.toml"), config.text()).expect("a file");
        let stdout = std::fs::File::create(folder.path().join("stdout")).expect("a file");
        let stdout = match start.terminal {
            Some(terminal) => Stdio::from(terminal.output()),
            None => Stdio::from(stdout),
        };
        let mut command = match (start.limit, start.small_file_system) {
            (None, None) if start.own_network => {
                let mut unshare = Command::new("unshare");
                // both exec: the handle is the proxy's
                unshare
                    .args(["--net", "--mount", "sh", "-c", IN_OWN_NETWORK])
                    .arg(env!("CARGO_BIN_EXE_weir"));
                unshare
            }
            (None, Some(folder)) => {
                let mut unshare = Command::new("unshare");
                unshare
                    .args(["--mount", "sh", "-c", ON_SMALL_FILE_SYSTEM])
                    .arg(env!("CARGO_BIN_EXE_weir"))
                    .env("MOUNT_POINT", folder);
                unshare
            }
            (None, None) => Command::new(env!("CARGO_BIN_EXE_weir")),
            (Some((which, limit)), _) => {
                let mut shell = Command::new("sh");
                // exec keeps the process id: the handle is the proxy's
                shell
                    .args(["-c", "ulimit \"$0\" \"$1\"; shift; exec \"$@\""])
                    .args([which, &limit.to_string()])
                    .arg(env!("CARGO_BIN_EXE_weir"));
                shell
            }
        };
        let words: &[&str] = match start.by_flags_alone {
            true => &["serve"],
            false => &["serve", "--config", "weir.toml"],
        };
        let mut child = command
            .args(words)
            .args(start.arguments)
            .current_dir(folder.path())
            .env_remove("RUST_BACKTRACE")
            // `weir purge` and `weir reload` find it there, and no other
            .env("XDG_RUNTIME_DIR", start.runtime.unwrap_or(folder.path()))
            .envs(start.variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut weir = Self {
            child,
            folder,
            lines,
            said: Vec::new(),
            listeners: Vec::new(),
            peer_listeners: Vec::new(),
            admin: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        weir.read_addresses();
        weir
    }

    /// The start message tells which ports the system chose.
    fn read_addresses(&mut self) {
        self.wait_for("  try ");
        for line in &self.said {
            let mut words = line.split_whitespace();
            let (kind, url) = (words.next(), words.next().unwrap_or_default());
            let address = url.split_once("://").map(|(_, address)| address.parse());
            match (kind, address) {
                (Some("forward" | "gateway"), Some(Ok(address))) => self.listeners.push(address),
                (Some("peer"), Some(Ok(address))) => self.peer_listeners.push(address),
                (Some("admin"), Some(Ok(address))) => self.admin = address,
                _ => {}
            }
        }
    }

    /// Its first listener.
    pub(crate) fn address(&self) -> SocketAddr {
        self.listeners[0]
    }

    /// The URL of a path at the first listener.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// Its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// A file in its folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What it wrote to stdout so far.
    pub(crate) fn stdout(&self) -> String {
        std::fs::read_to_string(self.file("stdout")).expect("stdout is a file")
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Replaces its config file; it has to be told.
    pub(crate) fn rewrite(&self, text: &str) {
        std::fs::write(self.file("weir.toml"), text).expect("a file");
    }

    /// Kills it outright, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it can be waited for");
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let name = match signal {
            Signal::HangUp => "-HUP",
            Signal::Terminate => "-TERM",
            Signal::Stop => "-STOP",
            Signal::Continue => "-CONT",
        };
        let status = Command::new("kill")
            .args([name, &self.id().to_string()])
            .status()
            .expect("kill is everywhere");
        assert!(status.success(), "the process has gone");
    }

    /// Waits for a line on stderr that holds `part`, and returns it.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.said.push(line.clone());
                    if line.contains(part) {
                        return line;
                    }
                }
                Err(error) => panic!("it never said `{part}` ({error}): {:#?}", self.said),
            }
        }
    }

    /// Waits for the process to end by itself.
    #[track_caller]
    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.said.push(line),
                // stderr ends with the process
                Err(RecvTimeoutError::Disconnected) => {
                    return self.child.wait().expect("it can be waited for");
                }
                Err(RecvTimeoutError::Timeout) => panic!("it does not end: {:#?}", self.said),
            }
        }
    }

    /// Everything it said on stderr, as far as it was waited for.
    pub(crate) fn said(&self) -> String {
        self.said.join("\n")
    }

    /// Asks it to end, and waits.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::Terminate);
        self.wait_for_end()
    }

    /// Asks the admin interface.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Reply {
        ask(&mut RawClient::connect(self.admin), method, path)
    }

    /// All numbers, now.
    pub(crate) fn metrics(&self) -> Metrics {
        Metrics::parse(&self.ask("GET", "/metrics").expect(200).text())
    }

    /// Asks for the numbers until they are as wanted: what is counted behind the last byte of a
    /// response may come a moment after it.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, wanted: impl Fn(&Metrics) -> bool) -> Metrics {
        let mut admin = RawClient::connect(self.admin);
        let until = Instant::now() + PATIENCE;
        loop {
            let metrics = Metrics::parse(&ask(&mut admin, "GET", "/metrics").text());
            if wanted(&metrics) {
                return metrics;
            }
            assert!(Instant::now() < until, "never {what}: {metrics:#?}");
        }
    }

    /// Sends `GET url` in absolute-form by a connection of its own.
    pub(crate) fn get(&self, url: &str) -> Reply {
        RawClient::connect(self.address()).get(url)
    }
}

/// Asks the admin interface on an open connection.
pub(crate) fn ask(admin: &mut RawClient, method: &str, path: &str) -> Reply {
    admin.send(format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    ));
    admin.reply()
}

impl Drop for Weir {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ = self.child.wait();
    }
}
