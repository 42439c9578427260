//! Programs that speak ICAP: `weir icap`, c-icap and Squid.

use super::{PATIENCE, start_program};
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;
use tempfile::TempDir;

/// A running `weir icap`; it is killed when dropped.
#[derive(Debug)]
pub(crate) struct WeirIcap {
    child: Child,
    folder: TempDir,
    /// Lines that it says.
    said: Receiver<String>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl WeirIcap {
    /// Starts one with this config file.
    pub(crate) fn serve(config: &str) -> Self {
        Self::serve_at(config, "127.0.0.1:0")
    }

    /// Starts one that listens there.
    pub(crate) fn serve_at(config: &str, listen: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("weir.toml"), config).expect("a file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["icap", "--config", "weir.toml", "--listen", listen])
            .current_dir(folder.path())
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let (say, said) = channel();
        // what it says later must not fill the pipe
        let lines = stderr.lines().map_while(Result::ok);
        std::thread::spawn(move || lines.for_each(|line| drop(say.send(line))));
        let mut started = Self {
            child,
            folder,
            said,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        // dropped, and so killed, if it does not say so in time
        let line = started.wait_for("icap://");
        let service = line.trim().strip_prefix("icap://");
        let service = service.and_then(|rest| rest.split('/').next()?.parse().ok());
        started.address = service.expect("an address");
        started
    }

    /// The lines of its access log, once there are so many.
    #[track_caller]
    pub(crate) fn access_log_until(&self, count: usize) -> Vec<serde_json::Value> {
        let until = Instant::now() + PATIENCE;
        loop {
            let log = std::fs::read_to_string(self.folder.path().join("access.log"));
            let log = log.unwrap_or_default();
            let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
            let lines = whole.lines().map(serde_json::from_str);
            let lines: Vec<_> = lines.collect::<Result<_, _>>().expect("JSON");
            if lines.len() >= count {
                return lines;
            }
            assert!(Instant::now() < until, "{count} lines in {log}");
            std::thread::yield_now();
        }
    }

    /// Moves the access log away, as a rotation does.
    pub(crate) fn move_access_log(&self) {
        let path = self.folder.path().join("access.log");
        std::fs::rename(&path, path.with_extension("old")).expect("it is there");
    }

    /// Gives it another config file, has it load that, and waits for a line with `part`.
    #[track_caller]
    pub(crate) fn reload(&self, config: &str, part: &str) -> String {
        std::fs::write(self.folder.path().join("weir.toml"), config).expect("a file");
        self.signal("-HUP");
        self.wait_for(part)
    }

    /// The next line with `part`, which it says in time.
    #[track_caller]
    fn wait_for(&self, part: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.said.recv_timeout(left).expect("it says so in time");
            if line.contains(part) {
                return line;
            }
        }
    }

    fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &id]).status();
        assert!(sent.is_ok_and(|status| status.success()));
    }

    /// Asks it to end, and waits; whether it did so well.
    pub(crate) fn stop(mut self) -> bool {
        self.signal("-TERM");
        self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for WeirIcap {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Another server or proxy with processes of its own; all are killed when dropped.
#[derive(Debug)]
struct Program {
    child: Child,
    folder: TempDir,
    address: SocketAddr,
    /// What ends it when it is dropped.
    signal: &'static str,
}

impl Program {
    /// Starts `program` with a config file, in which `PORT` and `FOLDER` are replaced.
    fn start(program: &str, arguments: &[&str], config: &str) -> Self {
        let port = xtask::ports::take().expect("a port");
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Squid, started by root, is another user
        let everyone = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder.path(), everyone).expect("our own folder");
        let config = config.replace("PORT", &port.to_string());
        let config = config.replace("FOLDER", &folder.path().display().to_string());
        std::fs::write(folder.path().join("config"), config).expect("a file");
        let mut command = Command::new(program);
        command
            .args(
                arguments
                    .iter()
                    .map(|it| it.replace("PORT", &port.to_string())),
            )
            .arg(folder.path().join("config"))
            .current_dir(folder.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut started = Self {
            child: start_program(&mut command, program),
            folder,
            // killed, they would leave shared memory behind
            signal: "-TERM",
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(started.address).is_err() {
            let ended = started.child.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "{program} has ended: {ended:?}");
            assert!(Instant::now() < until, "{program} does not listen");
            std::thread::yield_now();
        }
        started
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill")
            .args([self.signal, "--", &group])
            .status();
        let _ = self.child.wait();
    }
}

/// c-icap with its echo service.
#[derive(Debug)]
pub(crate) struct CIcap(Program);

impl CIcap {
    /// Starts one.
    pub(crate) fn start() -> Self {
        let config = [C_ICAP, C_ICAP_LOGS].concat();
        Self(Program::start("c-icap", &["-N", "-f"], &config))
    }

    /// What was adapted by this method, once there are so many.
    #[track_caller]
    pub(crate) fn log_until(&self, method: &str, count: usize) -> Vec<Scanned> {
        log_until(&self.0, method, count)
    }

    /// The echo service.
    pub(crate) fn echo(&self) -> String {
        format!("icap://{}/echo", self.0.address)
    }
}

/// Squid as a proxy.
#[derive(Debug)]
pub(crate) struct Squid(Program);

impl Squid {
    /// Starts one with these further lines of its config.
    pub(crate) fn start(lines: &str) -> Self {
        let config = format!("{SQUID}{lines}");
        // its shared memory has the name of the service
        let arguments = ["-n", "weirPORT", "-N", "-f"];
        Self(Program::start("squid", &arguments, &config))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Ends it at once, and what it does for its clients.
    pub(crate) fn kill(mut self) {
        self.0.signal = "-KILL";
        let shared = format!("weir{}-", self.address().port());
        drop(self);
        // it has left this behind
        for entry in std::fs::read_dir("/dev/shm")
            .into_iter()
            .flatten()
            .flatten()
        {
            if entry.file_name().to_string_lossy().starts_with(&shared) {
                let _gone_already = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Why it does not work, if it does not.
    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(self.0.folder.path().join("cache.log")).unwrap_or_default()
    }
}

/// clamd with one signature, and c-icap with its service `virus_scan`, which asks clamd.
#[derive(Debug)]
pub(crate) struct VirusScanner {
    c_icap: Program,
    _clamd: Program,
    _database: TempDir,
}

/// A message that c-icap has adapted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanned {
    /// Of its answer.
    pub(crate) status: u16,
    /// Bytes of content that it got.
    pub(crate) received: u64,
    /// Bytes of content that it sent back.
    pub(crate) sent: u64,
}

impl VirusScanner {
    /// The signature, a line of a file `.ndb`: a part of EICAR's test file, anywhere.
    pub(crate) const SIGNATURE: &str = "
Eicar-Test:0:*:45494341522d5354414e444152442d414e544956495255532d544553542d46494c45
";

    /// What makes c-icap a scanner, beside where clamd is.
    pub(crate) const LINES: &str = "
Service antivirus virus_scan.so
ServiceAlias scan virus_scan?allow204=on
Module common clamd_mod.so
virus_scan.DefaultEngine clamd
virus_scan.ScanFileTypes TEXT DATA EXECUTABLE ARCHIVE DOCUMENT GIF JPEG MSOFFICE
virus_scan.MaxObjectSize 25M
virus_scan.StartSendPercentDataAfter 25M
";

    /// Starts both.
    pub(crate) fn start() -> Self {
        let database = tempfile::tempdir().expect("a temporary folder");
        let signature = Self::SIGNATURE.trim_start();
        std::fs::write(database.path().join("local.ndb"), signature).expect("a file");
        let folder = database.path().display().to_string();
        let clamd = Program::start("clamd", &["-c"], &CLAMD.replace("DATABASE", &folder));
        let socket = clamd.folder.path().join("clamd.ctl").display().to_string();
        let config = [C_ICAP, C_ICAP_LOGS, C_ICAP_SCANS, Self::LINES, CLAMD_SOCKET].concat();
        let config = config.replace("CLAMD", &socket);
        Self {
            c_icap: Program::start("c-icap", &["-N", "-f"], &config),
            _clamd: clamd,
            _database: database,
        }
    }

    /// The service.
    pub(crate) fn service(&self) -> String {
        format!("icap://{}/scan", self.c_icap.address)
    }

    /// What was adapted by this method, once there are so many.
    #[track_caller]
    pub(crate) fn log_until(&self, method: &str, count: usize) -> Vec<Scanned> {
        log_until(&self.c_icap, method, count)
    }
}

/// What c-icap has adapted by this method, once there are so many.
#[track_caller]
fn log_until(c_icap: &Program, method: &str, count: usize) -> Vec<Scanned> {
    let until = Instant::now() + PATIENCE;
    loop {
        let log = c_icap.folder.path().join("access");
        let log = std::fs::read_to_string(log).unwrap_or_default();
        let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let lines = whole.lines().filter_map(|line| line.strip_prefix(method));
        let found: Vec<Scanned> = lines.map(Scanned::parse).collect();
        if found.len() >= count {
            return found;
        }
        assert!(Instant::now() < until, "{count} of {method} in {log}");
        std::thread::yield_now();
    }
}

impl Scanned {
    /// Reads a line of the log behind its method.
    fn parse(line: &str) -> Self {
        let mut numbers = line.split_whitespace().map(|word| word.parse::<u64>());
        let mut number = || numbers.next().and_then(Result::ok).expect("a number");
        Self {
            status: u16::try_from(number()).expect("a status"),
            received: number(),
            sent: number(),
        }
    }
}

const C_ICAP: &str = "
PidFile FOLDER/pid
CommandsSocket FOLDER/ctl
ServerLog FOLDER/log
Port 127.0.0.1:PORT
StartServers 1
MaxServers 1
ThreadsPerChild 20
ModulesDir /usr/lib/x86_64-linux-gnu/c_icap
ServicesDir /usr/lib/x86_64-linux-gnu/c_icap
Service echo srv_echo.so
";

const SQUID: &str = "
http_port 127.0.0.1:PORT
pid_filename FOLDER/pid
cache_log FOLDER/cache.log
coredump_dir FOLDER
access_log none
pinger_enable off
visible_hostname squid.example
shutdown_lifetime 0 seconds
http_access allow all
";

/// Beside that, for scanning.
const C_ICAP_SCANS: &str = "
TmpDir FOLDER
TemplateDir /usr/share/c_icap/templates/
TemplateDefaultLanguage en
LoadMagicFile /etc/c-icap/c-icap.magic
";

/// Has it log what it adapts.
const C_ICAP_LOGS: &str = "
LogFormat adapted \"%im %is %Ib %Ob\"
AccessLog FOLDER/access adapted
";

/// Behind the line that loads what has this setting.
const CLAMD_SOCKET: &str = "
clamd_mod.ClamdSocket CLAMD
";

/// Its port tells that it is ready; c-icap hands it open files by its socket.
const CLAMD: &str = "
TCPAddr 127.0.0.1
TCPSocket PORT
LocalSocket FOLDER/clamd.ctl
DatabaseDirectory DATABASE
TemporaryDirectory FOLDER
Foreground true
";
