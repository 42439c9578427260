//! HAProxy: a balancer in front of Weir, or a next hop behind it.

use super::start_program;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running HAProxy; it ends when dropped.
#[derive(Debug)]
pub(crate) struct HaProxy {
    child: Child,
    _folder: TempDir,
    pub(crate) address: SocketAddr,
}

impl HaProxy {
    /// One with these sections behind `defaults`; the address that it listens at is `fd@0`.
    pub(crate) fn start(sections: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let config = format!(
            "defaults\n timeout connect 30s\n timeout client 30s\n timeout server 30s\n{sections}"
        );
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, config).expect("a file");
        let mut command = Command::new("haproxy");
        command
            .arg("-db")
            .arg("-f")
            .arg(&file)
            // the listener is its file descriptor 0
            .stdin(Stdio::from(OwnedFd::from(listener)))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self {
            child: start_program(&mut command, "haproxy"),
            _folder: folder,
            address,
        }
    }

    /// Its URL.
    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
