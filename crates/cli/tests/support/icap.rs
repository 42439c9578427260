//! Programs that speak ICAP: `weir icap`, c-icap and Squid.

use super::{PATIENCE, start_program};
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// A running `weir icap`; it is killed when dropped.
#[derive(Debug)]
pub(crate) struct WeirIcap {
    child: Child,
    folder: TempDir,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl WeirIcap {
    /// Starts one with this config file.
    pub(crate) fn serve(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("weir.toml"), config).expect("a file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["icap", "--config", "weir.toml", "--listen", "127.0.0.1:0"])
            .current_dir(folder.path())
            .env_remove("RUST_BACKTRACE")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built with this test");
        let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut lines = stderr.lines().map_while(Result::ok);
        let service = lines.find_map(|line| {
            let rest = line.trim().strip_prefix("icap://")?.to_owned();
            rest.split('/').next()?.parse().ok()
        });
        let address = service.expect("it says where it listens");
        // what it says later must not fill the pipe
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            folder,
            address,
        }
    }

    /// Asks it to end, and waits; whether it did so well.
    pub(crate) fn stop(mut self) -> bool {
        let asked = Command::new("kill")
            .arg(self.child.id().to_string())
            .status();
        assert!(asked.is_ok_and(|status| status.success()));
        self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for WeirIcap {
    fn drop(&mut self) {
        let _ended_already = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nothing listens at, for a program that cannot say which one it got.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
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
        let port = free_port();
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
        let started = Self {
            child: start_program(&mut command, program),
            folder,
            // killed, they would leave shared memory behind
            signal: "-TERM",
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(started.address).is_err() {
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
        Self(Program::start("c-icap", &["-N", "-f"], C_ICAP))
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
    /// Starts one that has messages adapted as `lines` of its config say.
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

    /// Why it does not work, if it does not.
    pub(crate) fn errors(&self) -> String {
        std::fs::read_to_string(self.0.folder.path().join("cache.log")).unwrap_or_default()
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
