//! What a service manager is told, by its own protocol. The manager is a socket of the test: there
//! is no systemd in a container.

use crate::support::{Config, PATIENCE, Signal, Weir};
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use tempfile::TempDir;

struct Manager {
    socket: UnixDatagram,
    folder: TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = UnixDatagram::bind(folder.path().join("notify")).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self { socket, folder }
    }

    fn serve(&self, watchdog_us: &str) -> Weir {
        let path = self.folder.path().join("notify");
        let path = path.to_str().expect("a name");
        let variables = [("NOTIFY_SOCKET", path), ("WATCHDOG_USEC", watchdog_us)];
        Weir::serve_in(&Config::forward(), &variables)
    }

    /// The next message that is no sign of life.
    fn told(&self) -> String {
        loop {
            let message = self.message();
            if message != "WATCHDOG=1\n" {
                return message;
            }
        }
    }

    fn message(&self) -> String {
        let mut bytes = [0; 512];
        let length = loop {
            match self.socket.recv(&mut bytes) {
                // by what stops all processes for a while (signal(7), of sockets with a timeout)
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                received => break received.expect("a message"),
            }
        };
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }
}

#[test]
fn service_manager_is_told_of_start_reload_and_stop() {
    let manager = Manager::new();
    let mut weir = manager.serve("0");
    assert_eq!(manager.told(), "READY=1\n");
    weir.signal(Signal::HangUp);
    let reloading = manager.told();
    let time = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
    let time = time.and_then(|time| time.trim_end().parse::<u64>().ok());
    assert!(time.is_some(), "{reloading}");
    assert_eq!(manager.told(), "READY=1\n");
    weir.stop();
    assert_eq!(manager.told(), "STOPPING=1\n");
}

#[test]
fn watchdog_hears_of_a_proxy_whose_workers_turn_again_and_again() {
    let manager = Manager::new();
    let mut weir = manager.serve("6000000");
    assert_eq!(manager.told(), "READY=1\n");
    for _ in 0..3 {
        assert_eq!(manager.message(), "WATCHDOG=1\n");
    }
    weir.stop();
    assert_eq!(manager.told(), "STOPPING=1\n");
}
