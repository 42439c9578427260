//! A proxy with a store on disk, the machine it runs on, and the origin.

use super::faulty_files::{FaultyFiles, ReadFault};
use crate::support::{Representation, Response, Running, ScriptedOrigin, span};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use weir_disk::files::simulated::SimulatedFiles;
use weir_disk::files::{Files, SystemFiles};
use weir_measure::Metric;
use weir_policy::fetch::AbortKind;
use weir_proxy::config::{ByteSize, Config, Directory};

/// The store's size where a test does not say: sixteen segments of a mebibyte hold the largest
/// response of the tests.
pub(super) const STORE_BYTES: u64 = 64 << 20;

/// What is larger goes to disk as it arrives. The smaller ones of a test are fewer bytes than this
/// together.
const AT_ONCE_BYTES: u64 = 1 << 20;

/// A machine that can be restarted.
pub(super) struct DiskSetup {
    pub(super) origin: ScriptedOrigin,
    machine: Machine,
    change: Box<dyn Fn(&mut Config)>,
    proxy: Option<Running>,
}

/// Where the files are.
enum Machine {
    /// In memory, and they misbehave on command.
    Simulated(SimulatedFiles),
    /// In a folder of this machine: with a kernel that sends them.
    Real(TempDir),
    /// The same, and they are badly read on command.
    Faulty(TempDir, FaultyFiles),
}

impl Machine {
    fn files(&self) -> Arc<dyn Files> {
        match self {
            Self::Simulated(files) => Arc::new(files.clone()),
            Self::Real(_) => Arc::new(SystemFiles),
            Self::Faulty(_, files) => Arc::new(files.clone()),
        }
    }

    fn store(&self) -> PathBuf {
        match self {
            Self::Simulated(_) => "/store".into(),
            Self::Real(folder) | Self::Faulty(folder, _) => folder.path().join("store"),
        }
    }
}

impl DiskSetup {
    /// On both kinds of machine.
    pub(super) fn each(test: impl Fn(Self)) {
        test(Self::simulated(|_| {}));
        test(Self::real(|_| {}));
    }

    /// One whose files misbehave on command.
    pub(super) fn simulated(change: impl Fn(&mut Config) + 'static) -> Self {
        Self::new(Machine::Simulated(SimulatedFiles::new(1)), change)
    }

    /// One with files of this machine.
    pub(super) fn real(change: impl Fn(&mut Config) + 'static) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Self::new(Machine::Real(folder), change)
    }

    /// One with files of this machine that are badly read on command.
    pub(super) fn faulty(change: impl Fn(&mut Config) + 'static) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let files = FaultyFiles::default();
        Self::new(Machine::Faulty(folder, files), change)
    }

    fn new(machine: Machine, change: impl Fn(&mut Config) + 'static) -> Self {
        let mut setup = Self {
            origin: ScriptedOrigin::new(),
            machine,
            change: Box::new(change),
            proxy: None,
        };
        setup.start(0);
        setup
    }

    /// A proxy on this machine, if it starts.
    pub(super) fn another(&self, later_s: i64) -> Result<Running, String> {
        let directory = Directory {
            path: self.machine.store(),
            size: Some(ByteSize::from_bytes(STORE_BYTES)),
        };
        let running = Running::gateway_on(
            self.origin.address(),
            &self.machine.files(),
            later_s,
            |config| {
                config.fetch.abort = AbortKind::Stop;
                config.fetch.half_closed = span("1ms");
                config.disk.enabled = true;
                config.disk.directories = vec![directory];
                (self.change)(config);
            },
        );
        // as an operator is told: what it is, and what to do
        running.map_err(|error| {
            format!(
                "{error}\nhint: {}",
                error.hint.as_deref().unwrap_or_default()
            )
        })
    }

    fn start(&mut self, later_s: i64) {
        let proxy = self.another(later_s).expect("a proxy");
        // what is stored is found from now on
        proxy.wait_for(Metric::DiskLoading, 0);
        self.proxy = Some(proxy);
    }

    pub(super) fn proxy(&self) -> &Running {
        self.proxy.as_ref().expect("it runs")
    }

    /// The files of a simulated machine.
    pub(super) fn files(&self) -> &SimulatedFiles {
        match &self.machine {
            Machine::Simulated(files) => files,
            Machine::Real(_) | Machine::Faulty(..) => panic!("not simulated"),
        }
    }

    fn faulty_files(&self) -> &FaultyFiles {
        match &self.machine {
            Machine::Faulty(_, files) => files,
            Machine::Real(_) | Machine::Simulated(_) => panic!("not faulty"),
        }
    }

    /// What is wrong with reading from now on.
    pub(super) fn fault(&self, fault: ReadFault) {
        self.faulty_files().set(fault);
    }

    /// The device takes nothing for a time.
    pub(super) fn hold_writes(&self, holds: bool) {
        self.faulty_files().hold_writes(holds);
    }

    pub(super) fn wait_until_a_read_hangs(&self) {
        self.faulty_files().wait_until_one_hangs();
    }

    /// Stops it as an operator would, and starts it again with this fault; what is stored may not
    /// be found yet.
    pub(super) fn restart_with(&mut self, fault: ReadFault) {
        let proxy = self.proxy.take().expect("it runs");
        proxy.stop().join().expect("no panic");
        self.fault(fault);
        self.proxy = Some(self.another(0).expect("a proxy"));
    }

    /// Asks for `what`, which the origin sends if it is asked, whole or the rest of it. Every byte
    /// that comes is compared.
    pub(super) fn ask_either(&self, what: &Representation) -> Either {
        let mut client = self.proxy().client();
        client.send(what.get("Connection: close\r\n"));
        let either = std::thread::scope(|scope| {
            let reading = scope.spawn(|| {
                let head = client.read_head();
                assert_eq!(head.status(), 200, "{head:?}");
                let (content, _) = client.read_to_end();
                what.check(0, &content);
                Either {
                    is_whole: content.len() as u64 == what.length,
                    is_from_disk: head.cache_status().contains("detail=disk"),
                }
            });
            while !reading.is_finished() {
                if self.origin.is_touched() {
                    let mut hop = self.origin.accept();
                    let asked = hop.read_head();
                    // the rest of what could not be read
                    match asked.field("range").and_then(first_byte) {
                        Some(from) => hop.send(what.part(from, what.length)),
                        None => hop.send(what.whole()),
                    }
                }
                std::thread::yield_now();
            }
            reading.join().expect("no panic")
        });
        self.rest();
        either
    }

    /// Where the store's files are.
    pub(super) fn store(&self) -> PathBuf {
        self.machine.store()
    }

    /// Stops it as an operator would, and starts it again.
    pub(super) fn restart(&mut self) {
        self.restart_later(0);
    }

    /// The same, with a wall clock that stands so many seconds after that at the first start.
    pub(super) fn restart_later(&mut self, later_s: i64) {
        self.stop();
        self.start(later_s);
    }

    /// Stops it as an operator would.
    pub(super) fn stop(&mut self) {
        let proxy = self.proxy.take().expect("it runs");
        proxy.stop().join().expect("no panic");
    }

    /// Starts what was stopped.
    pub(super) fn begin_again(&mut self) {
        self.start(0);
    }

    /// The process is killed, and started again: everything it has written is there, and nothing
    /// else.
    pub(super) fn kill(&mut self) {
        self.kill_then(|_| {});
    }

    /// The same, and between the two `change` does something to the files.
    pub(super) fn kill_then(&mut self, change: impl FnOnce(&SimulatedFiles)) {
        let files = self.files().clone();
        files.kill();
        // what it would still write goes nowhere
        self.proxy = None;
        change(&files);
        self.start(0);
    }

    /// The origin is asked for one of these, and sends it whole.
    pub(super) fn answer_one_of(&self, all: &[&Representation]) {
        let mut hop = self.origin.accept();
        let asked = hop.read_head();
        let path = asked.start_line().split(' ').nth(1);
        let what = all.iter().find(|what| Some(what.path.as_str()) == path);
        hop.send(what.expect("it is one of them").whole());
    }

    /// Until what was fetched is stored.
    pub(super) fn rest(&self) {
        self.proxy().wait_for(Metric::RequestsInFlight, 0);
        self.proxy().wait_for(Metric::FetchesUnderWay, 0);
    }

    /// So many responses were written since the start.
    pub(super) fn written(&self, count: u64) {
        self.proxy().wait_for_at_least(Metric::DiskStored, count);
    }

    /// Asks for `what`, which the origin sends whole; until it is on disk.
    pub(super) fn store_whole(&self, what: &Representation) {
        let before = self.proxy().count(Metric::DiskStored);
        self.fetch_whole(what);
        self.written(before + 1);
        if what.length > AT_ONCE_BYTES {
            self.given_back();
        }
    }

    /// Memory has no content of what went to disk as it arrived.
    pub(super) fn given_back(&self) {
        self.proxy()
            .wait_for_at_most(Metric::StoreUsedBytes, AT_ONCE_BYTES);
    }

    /// Asks for `what`, which the origin sends whole.
    pub(super) fn fetch_whole(&self, what: &Representation) {
        let mut client = self.proxy().client();
        client.send(what.get(""));
        let response = std::thread::scope(|scope| {
            let reading = scope.spawn(|| client.read_response());
            let mut hop = self.origin.accept();
            hop.read_head();
            hop.send(what.whole());
            reading.join().expect("no panic")
        });
        what.check_whole(&response);
        self.rest();
    }

    /// All of it is there, and comes from disk.
    pub(super) fn hit_on_disk(&self, what: &Representation) {
        let response = self.hit(what, "");
        what.check_whole(&response);
        assert!(is_from_disk(&response), "{:?}", response.head);
    }

    /// A hit for a request with these fields.
    pub(super) fn hit(&self, what: &Representation, fields: &str) -> Response {
        let response = self.proxy().client().ask(what.get(fields));
        let verdict = response.verdict();
        assert!(
            verdict == "hit" || verdict == "hit;detail=disk",
            "{verdict}"
        );
        self.origin.expect_untouched();
        response
    }

    /// The segments of a simulated machine.
    pub(super) fn segments(&self) -> Vec<PathBuf> {
        let mut paths = self.files().paths();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "seg"));
        paths.sort();
        paths
    }

    /// Where the bytes `needle` stand on a simulated machine.
    pub(super) fn find(&self, needle: &[u8]) -> (PathBuf, usize) {
        let found = self.segments().into_iter().find_map(|path| {
            let content = self.files().content(&path).expect("a file");
            let at = content
                .windows(needle.len())
                .position(|window| window == needle)?;
            Some((path, at))
        });
        found.expect("it is in no segment")
    }

    /// Flips a bit of the byte at `at` behind everybody's back.
    pub(super) fn flip(&self, path: &Path, at: usize) {
        self.files()
            .damage(path, |content| content[at] ^= 1)
            .expect("a file");
    }
}

/// How a request was answered.
pub(super) struct Either {
    /// Not cut.
    pub(super) is_whole: bool,
    pub(super) is_from_disk: bool,
}

/// Whether a hit says that it came from disk.
pub(super) fn is_from_disk(response: &Response) -> bool {
    response.head.cache_status().contains("detail=disk")
}

/// The first byte of a range.
fn first_byte(range: &str) -> Option<u64> {
    let (first, _) = range.strip_prefix("bytes=")?.split_once('-')?;
    first.parse().ok()
}
