//! A real etcd, on a loopback address of its own: no other program takes its port while it is away.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long it may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running etcd; it is killed when dropped.
#[derive(Debug)]
pub(crate) struct Etcd {
    child: Option<Child>,
    folder: TempDir,
    /// Where it answers.
    pub(crate) address: SocketAddr,
    peers: SocketAddr,
}

impl Etcd {
    /// Starts one without any key.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ip = own_address();
        let own = || SocketAddr::from((ip, xtask::ports::take().expect("a port")));
        let mut etcd = Self {
            child: None,
            folder,
            address: own(),
            peers: own(),
        };
        etcd.start_again();
        etcd
    }

    /// Starts it at the same address, with the keys that it had.
    pub(crate) fn start_again(&mut self) {
        assert!(self.child.is_none(), "it runs");
        let (clients, peers) = (self.url(), format!("http://{}", self.peers));
        let log = std::fs::File::create(self.folder.path().join("log")).expect("a file");
        let mut command = Command::new("etcd");
        command
            .arg("--data-dir")
            .arg(self.folder.path().join("data"))
            .args(["--listen-client-urls", &clients])
            .args(["--advertise-client-urls", &clients])
            .args(["--listen-peer-urls", &peers])
            .args(["--initial-advertise-peer-urls", &peers])
            .args(["--initial-cluster", &format!("default={peers}")])
            // a disk that is slow on a loaded machine is no reason to lose the leader
            .args(["--election-timeout", "3000", "--heartbeat-interval", "300"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("cannot start etcd: {error}; it is in Debian's package `etcd-server`")
        });
        self.child = Some(child);
        let until = Instant::now() + PATIENCE;
        while !self.is_healthy() {
            let child = self.child.as_mut().expect("it was started");
            let ended = child.try_wait().expect("it can be waited for");
            let log = || std::fs::read_to_string(self.folder.path().join("log"));
            assert!(ended.is_none(), "etcd has ended: {:?}", log());
            assert!(Instant::now() < until, "etcd does not answer: {:?}", log());
            std::thread::yield_now();
        }
    }

    /// Kills it outright; its keys are on disk.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it can be waited for");
        }
    }

    /// Stops it: connections are accepted, and nothing is answered.
    pub(crate) fn stand_still(&self) {
        let id = self.child.as_ref().expect("it runs").id().to_string();
        let stopped = Command::new("kill").args(["-STOP", &id]).status();
        assert!(
            stopped.is_ok_and(|status| status.success()),
            "it is stopped"
        );
    }

    /// Kills it, and everything that it knew.
    pub(crate) fn lose_all(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.folder.path().join("data")).expect("its data");
    }

    /// Where it answers, as a URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn is_healthy(&self) -> bool {
        let answer = self.ask("GET", "/health", "");
        answer.is_ok_and(|answer| answer.contains("\"true\""))
    }

    /// Posts a JSON object to a call of its gateway; the whole answer.
    pub(crate) fn post(&self, call: &str, json: &str) -> String {
        let answer = self.ask("POST", &format!("/v3/{call}"), json);
        let answer = answer.expect("etcd answers");
        assert!(answer.starts_with("HTTP/1.1 200"), "{call}: {answer}");
        answer
    }

    fn ask(&self, method: &str, path: &str, content: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{content}",
            content.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An address of the loopback that is of this process and this call alone, as far as 21 bits of
/// the process's number tell.
pub(crate) fn own_address() -> Ipv4Addr {
    static CALLS: AtomicU8 = AtomicU8::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // 127.0.0.1 and what begins so is used by others
    Ipv4Addr::new(127, 128 | (high << 3 & 0x78) | (call & 7), middle, low)
}
