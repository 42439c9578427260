//! c-icap as a process with its echo service. The tests of the proxy use this file, too.

use rustix::process::{Pid, Signal, kill_process_group};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where Debian keeps the services of c-icap.
const SERVICES: &str = "/usr/lib/x86_64-linux-gnu/c_icap";

/// Longer than a start or an end takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// c-icap as a process. It is ended when this is dropped.
pub(crate) struct CIcap {
    child: Child,
    address: SocketAddr,
}

impl CIcap {
    /// Starts it in `folder`, at an address that nothing listens at.
    pub(crate) fn start(folder: &Path, address: SocketAddr) -> Self {
        let at = |name: &str| folder.join(name).display().to_string();
        let config = format!(
            "PidFile {}\nCommandsSocket {}\nServerLog {}\nPort {address}\n\
             StartServers 1\nMaxServers 1\nThreadsPerChild 20\nKeepAliveTimeout 60\n\
             ModulesDir {SERVICES}\nServicesDir {SERVICES}\nService echo srv_echo.so\n",
            at("pid"),
            at("ctl"),
            at("log"),
        );
        std::fs::write(folder.join("c-icap.conf"), config).expect("a file");
        let child = Command::new("c-icap")
            .args(["-N", "-f", &at("c-icap.conf")])
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("`cargo xtask need c-icap` installs it");
        let server = Self { child, address };
        server.wait_until(true);
        server
    }

    /// Ends it by `signal`; nothing listens behind that.
    pub(crate) fn end(&mut self, signal: Signal) {
        // it serves in a process of its own
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(group, signal);
        }
        let _ = self.child.wait();
        if !std::thread::panicking() {
            self.wait_until(false);
        }
    }

    /// Waits until it listens, or does not any more: its other process may end later.
    fn wait_until(&self, listens: bool) {
        let begun = Instant::now();
        while TcpStream::connect(self.address).is_ok() != listens {
            assert!(begun.elapsed() < PATIENCE, "c-icap listens: {}", !listens);
            std::thread::yield_now();
        }
    }
}

impl Drop for CIcap {
    fn drop(&mut self) {
        // killed, it would leave shared memory behind
        self.end(Signal::TERM);
    }
}

/// An address that nothing listens at, and that no other test gets.
pub(crate) fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], xtask::ports::take().expect("a port")))
}
