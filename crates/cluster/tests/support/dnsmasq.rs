//! A real name server whose records change.

use super::etcd::own_address;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A running dnsmasq, on a loopback address of its own; it is killed when dropped.
#[derive(Debug)]
pub(crate) struct Dnsmasq {
    child: Option<Child>,
    folder: TempDir,
    /// Where it answers.
    pub(crate) address: SocketAddr,
}

impl Dnsmasq {
    /// Starts one for `weir.test` without any record.
    pub(crate) fn start() -> Self {
        let port = xtask::ports::take().expect("a port");
        let address = SocketAddr::from((own_address(), port));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut dnsmasq = Self {
            child: None,
            folder,
            address,
        };
        dnsmasq.set("");
        dnsmasq
    }

    /// Starts it anew with these lines, such as `host-record=a.weir.test,127.0.0.1`.
    pub(crate) fn set(&mut self, records: &str) {
        self.kill();
        let (ip, port) = (self.address.ip(), self.address.port());
        let text = format!(
            "listen-address={ip}\nport={port}\nbind-interfaces\nno-hosts\nno-resolv\n\
             local=/weir.test/\nuser=root\npid-file=\n{records}"
        );
        let path = self.folder.path().join("dnsmasq.conf");
        std::fs::write(&path, text).expect("a file");
        let mut command = Command::new("dnsmasq");
        command
            .arg("--keep-in-foreground")
            .arg(format!("--conf-file={}", path.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("cannot start dnsmasq: {error}; it is in Debian's package `dnsmasq-base`")
        });
        self.child = Some(child);
    }

    /// Kills it outright.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it can be waited for");
        }
    }
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        self.kill();
    }
}
