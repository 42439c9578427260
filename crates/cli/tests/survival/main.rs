//! What is on disk survives a process that is killed, and nothing else does: the real binary,
//! killed by SIGKILL, with an origin whose every byte can be checked.
//!
//! `make torture` runs the same with more rounds, and 20 MB where it is 3 here:
//! `WEIR_TORTURE_ROUNDS`, `WEIR_TORTURE_SEED`, `WEIR_TORTURE_LARGE`.

#[path = "../support/mod.rs"]
mod support;

mod admission;
mod damage;
mod device;
mod directories;
mod full;
mod killed;
mod link;
mod mount;
mod online;
mod owner;
mod purged;
mod scrub;
mod truth;

use std::path::Path;
use support::{Config, RawClient, Reply, Weir};
use tempfile::TempDir;
use truth::TruthOrigin;

/// An origin, a place for the store, and what is served from there.
struct Parts {
    origin: TruthOrigin,
    place: TempDir,
    size: &'static str,
}

impl Parts {
    fn new() -> Self {
        Self::with_size("256MiB")
    }

    fn with_size(size: &'static str) -> Self {
        Self {
            origin: TruthOrigin::start(),
            place: tempfile::tempdir().expect("a temporary folder"),
            size,
        }
    }

    /// A gateway with little memory, so that most hits come from disk.
    fn config(&self) -> Config {
        Config::gateway(&[&self.origin.url()])
            .set("cache.memory", "\"8MiB\"")
            .set("cache.largest_response", "\"1MiB\"")
            .set("disk.enabled", "true")
            .set("disk.directories", &self.directory())
    }

    fn directory(&self) -> String {
        let path = self.place.path().display();
        format!("[{{ path = \"{path}\", size = \"{}\" }}]", self.size)
    }

    fn path(&self) -> &Path {
        self.place.path()
    }

    fn serve(&self) -> Weir {
        Weir::serve(&self.config())
    }

    /// Asks for a target, and checks every byte; the version that came, and the whole reply.
    #[track_caller]
    fn get(&self, weir: &Weir, target: &str) -> (u64, Reply) {
        let mut client = RawClient::connect(weir.address());
        client.send(request("GET", target));
        let reply = client.reply();
        (truth::check(target, &reply), reply)
    }
}

/// Waits until so many responses are on disk, and nothing is on its way there.
fn wait_for_entries(weir: &Weir, entries: u64) {
    weir.until("were all on disk", |metrics| {
        metrics.count("weir_disk_entries") >= entries
            && metrics.count("weir_disk_queued_bytes") == 0
    });
}

/// Waits until the whole index is there.
fn wait_until_loaded(weir: &Weir) {
    weir.until("was the index loaded", |metrics| {
        metrics.count("weir_disk_loading") == 0
    });
}

/// The host of all targets: the port a process listens on is another one after each start.
const HOST: &str = "a.example";

/// A request without content, in origin-form.
fn request(method: &str, target: &str) -> String {
    let length = if method == "GET" {
        ""
    } else {
        "Content-Length: 0\r\n"
    };
    format!("{method} {target} HTTP/1.1\r\nHost: {HOST}\r\n{length}\r\n")
}

/// A number from the environment, for `make torture`.
fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(value) => value
            .parse()
            .unwrap_or_else(|_| panic!("{name}={value} is no number")),
        Err(_) => default,
    }
}
