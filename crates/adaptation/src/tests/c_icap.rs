//! The client against c-icap and its echo service.

use super::play::{PATIENCE, Played, Script, play};
use crate::client::Icap;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;
use weir_extend::{Module, ModuleKind, OptionValue, Options};

/// Where Debian keeps the services of c-icap.
const SERVICES: &str = "/usr/lib/x86_64-linux-gnu/c_icap";

/// c-icap as a process. It is ended when this is dropped.
struct CIcap(Child);

impl Drop for CIcap {
    fn drop(&mut self) {
        // it serves in a process of its own
        if let Some(group) = Pid::from_raw(self.0.id().cast_signed()) {
            // killed, it would leave shared memory behind
            let _ = kill_process_group(group, Signal::TERM);
        }
        let _ = self.0.wait();
    }
}

impl CIcap {
    /// Starts it in `folder`, with its echo service at a port.
    fn start(folder: &Path, port: u16) -> Self {
        let at = |name: &str| folder.join(name).display().to_string();
        let config = format!(
            "PidFile {}\nCommandsSocket {}\nServerLog {}\nPort 127.0.0.1:{port}\n\
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
        let server = Self(child);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < PATIENCE, "c-icap does not listen");
            std::thread::yield_now();
        }
        server
    }
}

/// A port that nothing listens at.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

fn client(port: u16) -> Arc<dyn Module> {
    let service = format!("icap://127.0.0.1:{port}/echo");
    let options = BTreeMap::from([("service".to_owned(), OptionValue::Text(service))]);
    Icap.load(Options::new(options)).expect("it is loaded")
}

#[test]
fn c_icap_echoes_what_it_gets_by_204_and_by_200() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = free_port();
    let _server = CIcap::start(folder.path(), port);
    let client = client(port);
    for bytes in [0, 1, 1023, 1024, 1025, 70_000, 262_145, 1_000_000] {
        let content: Vec<u8> = (0..bytes)
            .map(|at: usize| b'a' + u8::try_from(at % 23).unwrap_or(0))
            .collect();
        for script in [Script::response(&content), Script::post(&content)] {
            for script in [script.clone(), script.without_length()] {
                let found = play(&client, &script);
                assert!(found.content() == content, "{bytes}");
            }
        }
    }
    assert_eq!(client.state(), "CI0001-XXXXXXXXX");
    assert!(client.notes()[0].contains("Echo demo service"));
}

#[test]
fn c_icap_that_is_killed_and_started_again_serves_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let port = free_port();
    let server = CIcap::start(folder.path(), port);
    let client = client(port);
    let script = Script::response(b"some content");
    assert_eq!(play(&client, &script).content(), b"some content");
    drop(server);
    for _ in 0..3 {
        assert_eq!(play(&client, &script), Played::Failed(false));
    }
    let _server = CIcap::start(folder.path(), port);
    assert_eq!(play(&client, &script).content(), b"some content");
}
