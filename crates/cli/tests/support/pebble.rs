//! Pebble, the authority by which implementations of ACME are tested.

use super::{Curl, Dnsmasq, Issued, KeyKind, PATIENCE};
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// A running Pebble, and the name server that it asks; both end when dropped.
pub(crate) struct Pebble {
    child: Option<Child>,
    folder: TempDir,
    /// Where it speaks ACME, and where it is told what to do.
    ports: [u16; 2],
    /// Where it looks whether a name is served, by HTTP and by TLS.
    pub(crate) http_port: u16,
    pub(crate) tls_port: u16,
    /// The certificate of its own server.
    pub(crate) issued: Issued,
    names: Dnsmasq,
}

/// The names that certificates are ordered for.
const NAMES: [&str; 4] = ["a.weir.test", "b.weir.test", "c.weir.test", "d.weir.test"];

impl Pebble {
    /// Starts one that finds all names on this machine, and of whose nonces so many of a hundred
    /// are bad.
    pub(crate) fn start(bad_nonces: u32) -> Self {
        Self::start_with(bad_nonces, 90)
    }

    /// The same, whose certificates are valid for so many days.
    pub(crate) fn start_with(bad_nonces: u32, valid_days: u32) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let issued = Issued::new(folder.path(), "pebble", &["127.0.0.1"], KeyKind::Ecdsa);
        let port = || xtask::ports::take().expect("a port");
        let mut pebble = Self {
            child: None,
            folder,
            ports: [port(), port()],
            http_port: port(),
            tls_port: port(),
            issued,
            names: Dnsmasq::start(),
        };
        pebble.find_at("127.0.0.1");
        pebble.write_config(valid_days);
        pebble.launch(bad_nonces);
        pebble
    }

    fn write_config(&self, valid_days: u32) {
        let [port, management] = self.ports;
        let (chain, key) = (self.issued.chain.display(), self.issued.key.display());
        let (http, tls) = (self.http_port, self.tls_port);
        let valid_s = valid_days * 24 * 3600;
        let text = format!(
            r#"{{"pebble": {{
                "listenAddress": "127.0.0.1:{port}",
                "managementListenAddress": "127.0.0.1:{management}",
                "certificate": "{chain}", "privateKey": "{key}",
                "httpPort": {http}, "tlsPort": {tls}, "ocspResponderURL": "",
                "keyAlgorithm": "ecdsa",
                "profiles": {{"default": {{"description": "x", "validityPeriod": {valid_s}}}}}
            }}}}"#
        );
        std::fs::write(self.folder.path().join("pebble.json"), text).expect("a file");
    }

    /// Starts it again, when it was killed: it remembers nothing.
    pub(crate) fn launch(&mut self, bad_nonces: u32) {
        let program = xtask::need::pebble().expect("Pebble can be had");
        let log = File::create(self.folder.path().join("log")).expect("a file");
        let child = Command::new(program)
            .args(["-config", "pebble.json", "-dnsserver"])
            .arg(self.names.address.to_string())
            .current_dir(self.folder.path())
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_AUTHZREUSE", "0")
            .env("PEBBLE_WFE_NONCEREJECT", bad_nonces.to_string())
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(Stdio::null())
            .spawn();
        self.child = Some(child.expect("it starts"));
        let until = Instant::now() + PATIENCE;
        for port in self.ports {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            while TcpStream::connect(address).is_err() {
                assert!(Instant::now() < until, "Pebble does not listen");
                std::thread::yield_now();
            }
        }
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it can be waited for");
        }
    }

    /// Has it find all names at this address.
    pub(crate) fn find_at(&mut self, address: &str) {
        let records = NAMES.map(|name| format!("host-record={name},{address}\n"));
        self.names.set(&records.concat());
    }

    /// The URL of its directory.
    pub(crate) fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.ports[0])
    }

    /// The certificate that those which it issues lead to, as a file.
    pub(crate) fn root(&self) -> PathBuf {
        let path = self.folder.path().join("root.pem");
        std::fs::write(&path, self.manage("/roots/0", [])).expect("a file");
        path
    }

    /// Has it suggest that a certificate be renewed now.
    pub(crate) fn suggest_renewal(&self, certificate: &str) {
        let window = r#"{"suggestedWindow": {"start": "2020-01-01T00:00:00Z", "end": "2020-01-02T00:00:00Z"}}"#;
        let certificate = certificate.replace('\n', "\\n");
        let window = window.replace('"', "\\\"");
        let json = format!(r#"{{"Certificate": "{certificate}", "ARIResponse": "{window}"}}"#);
        self.manage("/set-renewal-info/", ["--data-binary", &json]);
    }

    /// Certificates that it has issued since it was started.
    pub(crate) fn issued_count(&self) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join("log")).expect("a file");
        log.matches("Issued certificate serial").count()
    }

    fn manage<const N: usize>(&self, path: &str, arguments: [&str; N]) -> String {
        let chain = self.issued.chain.to_string_lossy();
        let curl = Curl::direct().args(["--cacert", &chain]).args(arguments);
        let url = format!("https://127.0.0.1:{}{path}", self.ports[1]);
        curl.fetch(&url).reply().expect(200).text()
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        self.kill();
    }
}
