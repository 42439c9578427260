//! curl as a client.

use super::{PATIENCE, Reply, start_program};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A call of curl in the making.
#[derive(Debug)]
pub(crate) struct Curl {
    command: Command,
    folder: TempDir,
}

/// curl at work.
#[derive(Debug)]
pub(crate) struct Running {
    child: Option<Child>,
    folder: TempDir,
}

/// What curl brought.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    /// Its exit code; 0 is good.
    pub(crate) exit: i32,
    /// What it complained about.
    pub(crate) stderr: String,
    /// All heads in the order they came: of the tunnel, of interim responses, the final one.
    pub(crate) heads: Vec<String>,
    /// What it wrote to its output.
    pub(crate) body: Vec<u8>,
}

impl Curl {
    /// Without a proxy, whatever the environment says.
    pub(crate) fn direct() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("curl");
        for name in ["http_proxy", "https_proxy", "all_proxy", "no_proxy"] {
            command.env_remove(name).env_remove(name.to_uppercase());
        }
        command
            // -q: not the configuration file of the user
            .args(["-q", "-sS", "--max-time"])
            .arg(PATIENCE.as_secs().to_string())
            .arg("-D")
            .arg(folder.path().join("heads"));
        Self { command, folder }
    }

    /// Through a forward proxy.
    pub(crate) fn through(proxy: SocketAddr) -> Self {
        Self::direct().args(["-x", &format!("http://{proxy}")])
    }

    /// Adds arguments.
    pub(crate) fn args<const N: usize>(mut self, arguments: [&str; N]) -> Self {
        self.command.args(arguments);
        self
    }

    /// Adds a field line.
    pub(crate) fn field(self, line: &str) -> Self {
        self.args(["-H", line])
    }

    /// Starts and waits for the end.
    pub(crate) fn fetch(self, url: &str) -> Fetched {
        self.start(url).finish()
    }

    /// Starts.
    pub(crate) fn start(mut self, url: &str) -> Running {
        self.command
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Running {
            child: Some(start_program(&mut self.command, "curl")),
            folder: self.folder,
        }
    }
}

impl Running {
    /// Waits for the end; curl has a limit of its own.
    pub(crate) fn finish(mut self) -> Fetched {
        let child = self.child.take().expect("taken once");
        let output = child.wait_with_output().expect("curl ends");
        let heads = std::fs::read_to_string(self.folder.path().join("heads")).unwrap_or_default();
        Fetched {
            exit: output.status.code().unwrap_or(-1),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            heads: heads
                .split("\r\n\r\n")
                .filter(|head| !head.is_empty())
                .map(|head| head.replace('\r', ""))
                .collect(),
            body: output.stdout,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ended_already = child.kill();
            let _ = child.wait();
        }
    }
}

impl Fetched {
    /// The final response; fails if curl did.
    #[track_caller]
    pub(crate) fn reply(self) -> Reply {
        assert_eq!(self.exit, 0, "curl: {}", self.stderr);
        let head = self.heads.last().expect("a response").clone();
        let body = self.body;
        Reply { head, body }
    }
}
