//! curl as a client.

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::PATIENCE;

/// A call of curl in the making.
#[derive(Debug)]
pub(crate) struct Curl {
    command: Command,
    folder: TempDir,
}

/// What curl brought.
#[derive(Clone, Debug)]
pub(crate) struct Fetched {
    /// Its exit code; 0 is good.
    pub(crate) exit: i32,
    /// What it complained about.
    pub(crate) stderr: String,
    /// All heads in the order they came, interim responses included.
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
            // -q: without the user's configuration file
            .args(["-q", "-sS", "--max-time"])
            .arg(PATIENCE.as_secs().to_string())
            .arg("-D")
            .arg(folder.path().join("heads"));
        Self { command, folder }
    }

    /// Through a forward proxy.
    pub(crate) fn through(proxy: SocketAddr) -> Self {
        Self::direct().args(&["-x", &format!("http://{proxy}")])
    }

    /// Adds arguments; of those given twice curl takes the last.
    pub(crate) fn args(mut self, arguments: &[&str]) -> Self {
        self.command.args(arguments);
        self
    }

    /// Starts and waits for the end; curl has a limit of its own.
    pub(crate) fn fetch(mut self, urls: &[&str]) -> Fetched {
        let output = self
            .command
            .args(urls)
            .stdin(Stdio::null())
            .output()
            .expect("curl, which is to be installed (Debian: apt-get install curl)");
        let heads = std::fs::read_to_string(self.folder.path().join("heads")).unwrap_or_default();
        Fetched {
            exit: output.status.code().unwrap_or(-1),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            heads: heads
                .split("\r\n\r\n")
                .filter(|head| !head.is_empty())
                .map(str::to_owned)
                .collect(),
            body: output.stdout,
        }
    }
}

impl Fetched {
    /// The content, if curl was content.
    #[track_caller]
    pub(crate) fn content(&self) -> &[u8] {
        assert_eq!(self.exit, 0, "curl: {}", self.stderr);
        &self.body
    }

    /// The status of the last response.
    pub(crate) fn status(&self) -> u16 {
        let head = self.heads.last().expect("a response");
        let status = head.split(' ').nth(1).expect("a status");
        status.parse().expect("digits")
    }

    /// The value of the first field with this name in the last response.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let head = self.heads.last().expect("a response");
        head.split("\r\n").skip(1).find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}
