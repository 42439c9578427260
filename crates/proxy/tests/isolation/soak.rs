//! All of them at once: clients, clock, purges, restarts.

use super::client::{Client, POPULAR, Tally, URLS, find};
use super::origin::Origin;
use super::purge_log::Purged;
use super::random::{Dice, PRIVATE};
use super::responses::{Kind, written};
use super::topology::{Place, Topology};
use crate::support::Running;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, mpsc};
use weir_measure::Metric;

/// Clients at once.
const CLIENTS: usize = 12;

/// The proxies are started so many times, each time with what is on disk.
const LIVES: usize = 3;

/// Requests of a client between two looks at the clock.
const TURN: usize = 20;

pub(crate) struct Soak {
    seed: u64,
    topology: Topology,
    origin: Origin,
    purged: Arc<Purged>,
    folder: tempfile::TempDir,
    dice: Dice,
    passed_ms: u64,
    tally: Tally,
    wrong: BTreeMap<Kind, String>,
}

impl Soak {
    pub(crate) fn new(seed: u64, topology: Topology) -> Self {
        Self {
            seed,
            topology,
            origin: Origin::start(seed),
            purged: Arc::new(Purged::none()),
            folder: tempfile::tempdir().expect("a temporary folder"),
            dice: Dice::new(seed, 0x736f_616b),
            passed_ms: 0,
            tally: Tally::default(),
            wrong: BTreeMap::new(),
        }
    }

    /// Asks so many times.
    pub(crate) fn run(mut self, requests: usize) -> Tally {
        let (mut on_disk, mut text) = (None, String::new());
        for life in 0..LIVES {
            let proxies = self.start();
            let each = requests / LIVES / CLIENTS;
            self.live(&proxies, life, each);
            self.topology.check_use(&proxies);
            for proxy in proxies {
                assert_eq!(proxy.count(Metric::Panics), 0, "something panicked");
                assert!(proxy.stop().join().expect("no panic"), "it did not finish");
            }
            on_disk = on_disk.or(private_bytes(self.folder.path()));
        }
        for (kind, wrong) in &self.wrong {
            let _ = write!(text, "\n{kind:?}: {wrong}");
        }
        if let Some(on_disk) = on_disk {
            let _ = write!(text, "\non disk: {on_disk}");
        }
        assert!(text.is_empty(), "WEIR_ISOLATION_SEED={}{text}", self.seed);
        self.tally
    }

    fn start(&self) -> Vec<Running> {
        self.topology.start(&Place {
            origin: self.origin.address(),
            folder: self.folder.path(),
            later_s: i64::try_from(self.passed_ms / 1000).expect("some days"),
        })
    }

    /// Each client asks `each` times; meanwhile time passes, and operators purge.
    fn live(&mut self, proxies: &[Running], life: usize, each: usize) {
        let (seed, topology) = (self.seed, self.topology);
        let asked = topology.asked(proxies);
        let purged = Arc::clone(&self.purged);
        std::thread::scope(|scope| {
            let (turns, taken) = mpsc::channel();
            let clients: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let (turns, purged) = (turns.clone(), &purged);
                    let address = asked[number % asked.len()].address();
                    scope.spawn(move || {
                        let number = (life * CLIENTS + number) as u64;
                        let mut client = Client::new(purged, address, topology, seed, number);
                        for asked in 0..each {
                            client.ask();
                            if asked % TURN == 0 {
                                // there is no listener when the test is over
                                let _ = turns.send(());
                            }
                        }
                        (client.tally, client.wrong)
                    })
                })
                .collect();
            drop(turns);
            for () in taken {
                self.turn(proxies);
            }
            for client in clients {
                match client.join() {
                    Ok((tally, wrong)) => {
                        self.tally.add(&tally);
                        self.wrong.extend(wrong);
                    }
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
    }

    /// Purges at one of the nodes, since that is for all, or at all proxies one after the other.
    fn purge(&mut self, proxies: &[Running], purge: impl Fn(&Running)) {
        if self.topology.shares_purges() {
            let node = self.dice.below(proxies.len() as u64);
            purge(&proxies[usize::try_from(node).expect("small")]);
        } else {
            proxies.iter().for_each(purge);
        }
    }

    fn turn(&mut self, proxies: &[Running]) {
        let ms = self.dice.below(1500);
        for proxy in proxies {
            proxy.clock.advance_ms(ms);
        }
        self.passed_ms += ms;
        if self.dice.percent(10) {
            // half of them where a fetch is likely to be under way
            let urls = if self.dice.percent(50) { POPULAR } else { URLS };
            let path = self.dice.below(urls);
            let version = self.origin.change(path);
            let url = format!("http://a.example{}", written(path));
            self.purge(proxies, |proxy| {
                proxy.purge(&url);
            });
            self.purged.note(path, version);
        }
        if self.dice.below(300) == 0 {
            let versions: Vec<_> = (0..URLS).map(|path| self.origin.change(path)).collect();
            self.purge(proxies, Running::purge_all);
            for (path, version) in (0..URLS).zip(versions) {
                self.purged.note(path, version);
            }
        }
    }
}

/// A file below `folder` with a token in it, and where.
fn private_bytes(folder: &Path) -> Option<String> {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if let Some(found) = private_bytes(&path) {
                return Some(found);
            }
            continue;
        }
        let bytes = std::fs::read(&path).expect("a file");
        if let Some(at) = find(&bytes, PRIVATE.as_bytes()) {
            let around = &bytes[at.saturating_sub(200)..bytes.len().min(at + 100)];
            return Some(format!(
                "{}: {}",
                path.display(),
                String::from_utf8_lossy(around)
            ));
        }
    }
    None
}
