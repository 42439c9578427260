//! Chromium as a client.

use super::{Issued, start_program};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Display;
use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tempfile::TempDir;

/// A browser that has never run here takes seconds to start, and a loaded machine does the rest.
const LIMIT: Duration = Duration::from_secs(120);

/// A start of headless Chromium in the making: its profile is new, so that its own cache is empty.
#[derive(Debug)]
pub(crate) struct Chromium {
    command: Command,
    _profile: TempDir,
}

impl Chromium {
    /// Without a proxy, whatever the environment says.
    pub(crate) fn direct() -> Self {
        Self::new("no-proxy-server")
    }

    /// Through a proxy, for this machine too.
    pub(crate) fn through(url: &str) -> Self {
        Self::new("proxy-bypass-list=<-loopback>").arg("proxy-server", url)
    }

    fn new(option: &str) -> Self {
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("chromium");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
                "--timeout=60000",
            ])
            .arg(format!("--{option}"))
            .arg(format!("--user-data-dir={}", profile.path().display()));
        Self {
            command,
            _profile: profile,
        }
    }

    fn arg(mut self, name: &str, value: impl Display) -> Self {
        self.command.arg(format!("--{name}={value}"));
        self
    }

    /// Goes to `address` for `host`.
    pub(crate) fn host(self, host: &str, address: impl Display) -> Self {
        self.arg("host-resolver-rules", format!("MAP {host} {address}"))
    }

    /// Takes the keys of these certificates as they are.
    pub(crate) fn trust(self, certificates: &[&Issued]) -> Self {
        let digests = certificates.iter().map(|issued| key_digest(issued));
        let digests = digests.collect::<Vec<_>>().join(",");
        self.arg("ignore-certificate-errors-spki-list", digests)
    }

    /// The page at `url` as the browser has it when everything is loaded.
    pub(crate) fn page(mut self, url: &str) -> String {
        self.command
            .args(["--dump-dom", url])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = start_program(&mut self.command, "chromium");
        let mut stdout = child.stdout.take().expect("it is piped");
        let (sender, shown) = mpsc::channel();
        std::thread::spawn(move || {
            let mut page = String::new();
            let read = stdout.read_to_string(&mut page);
            // the page is not waited for any more: it was too late
            let _ = sender.send(read.map(|_| page));
        });
        let shown = shown.recv_timeout(LIMIT);
        if shown.is_err() {
            let _ended_already = child.kill();
        }
        let status = child.wait().expect("it ends");
        let page = shown.expect("the browser ends in time");
        assert!(status.success(), "{status}");
        page.expect("a page is UTF-8")
    }
}

/// SHA-256 of the public key of a certificate, in Base64, as `openssl` has it.
fn key_digest(issued: &Issued) -> String {
    let chain = issued.chain.to_string_lossy();
    let key = openssl(&["x509", "-noout", "-pubkey", "-in", &chain], b"");
    let key = openssl(&["pkey", "-pubin", "-outform", "der"], &key);
    STANDARD.encode(openssl(&["dgst", "-sha256", "-binary"], &key))
}

fn openssl(arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("openssl");
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = start_program(&mut command, "openssl");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "openssl {arguments:?}");
    output.stdout
}
