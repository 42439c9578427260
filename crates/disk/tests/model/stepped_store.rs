//! A store, what was done to it, and what it may therefore say.

mod end;

use super::content::{Meta, block, content, digest};
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use weir_disk::files::Files;
use weir_disk::files::simulated::{Fault, Plan, Random, SimulatedFiles};
use weir_disk::stepped::{self, SteppedDirectory};
use weir_disk::{
    DirectoryConfig, Disk, DiskConfig, Extent, LoadedRecord, NewRecord, Notice, PendingRecord,
    ReadError, RecordWriter, Ticket,
};
use weir_policy::page_cache::ReadPath;

pub(super) const KEYS: u64 = 12;

/// Bytes of a directory: eight segments.
const BYTES: u64 = 8 * 32 * 1024;

/// What may go wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nature {
    pub(super) crashes: bool,
    pub(super) faults: bool,
    pub(super) directories: u64,
}

impl Default for Nature {
    fn default() -> Self {
        Self {
            crashes: false,
            faults: false,
            directories: 1,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Stored {
    representation: u64,
    at: u32,
    life: u32,
}

/// A purge that was answered.
#[derive(Clone, Copy, Debug, Default)]
struct Purge {
    generation: u64,
    at: u32,
    life: u32,
}

impl Purge {
    fn covers(&self, generation: u64, stored: &Stored) -> bool {
        stored.at <= self.at || (stored.life == self.life && generation <= self.generation)
    }
}

/// What is known of a key.
#[derive(Debug, Default)]
struct Known {
    /// Stored at any time, by generation. One that left no trace on the device before a kill is
    /// given out again.
    stored: HashMap<u64, Stored>,
    /// Nothing that was stored or asked for before may be found, ever again.
    purged: Purge,
    /// Nothing up to here may be found until the store is opened again.
    least: u64,
    /// Nor these, which were forgotten. What was on its way then may still come.
    forgotten: HashSet<u64>,
    /// The newest that was found or handed over to be written, and when: no older one may be found
    /// unless it was stored later.
    seen: (u64, u32),
    /// Generations that wait to be written, and when they were handed over.
    waiting: Vec<(u64, u32)>,
}

struct OpenRecord {
    key: u64,
    representation: u64,
    ticket: Ticket,
    at: u64,
    writer: RecordWriter,
}

pub(super) struct SteppedStore {
    pub(super) files: SimulatedFiles,
    nature: Nature,
    random: Random,
    pub(super) disk: Option<Arc<Disk>>,
    stepped: Vec<SteppedDirectory>,
    known: Vec<Known>,
    open_records: Vec<OpenRecord>,
    committed: Vec<(u64, u64, PendingRecord)>,
    /// Extents that are still being sent.
    held: Vec<(u64, u64, Extent)>,
    late: Option<Ticket>,
    now_ms: u64,
    /// Counts what was done.
    time: u32,
    /// Counts processes.
    life: u32,
    /// Something went wrong since the store was made.
    pub(super) is_unlucky: bool,
    pub(super) hits: u64,
    pub(super) misses: u64,
    pub(super) notices: Arc<Mutex<Vec<Notice>>>,
    context: String,
}

/// Polls a future that is ready, or never will be.
fn poll<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

impl SteppedStore {
    pub(super) fn new(seed: u64, nature: Nature) -> Self {
        let mut store = Self {
            files: SimulatedFiles::new(seed),
            nature,
            random: Random(seed ^ 0x5eed),
            disk: None,
            stepped: Vec::new(),
            known: (0..KEYS).map(|_| Known::default()).collect(),
            open_records: Vec::new(),
            committed: Vec::new(),
            held: Vec::new(),
            late: None,
            now_ms: 0,
            time: 0,
            life: 0,
            is_unlucky: false,
            hits: 0,
            misses: 0,
            notices: Arc::default(),
            context: format!("seed {seed} of {nature:?}"),
        };
        store.open();
        store
    }

    pub(super) fn disk(&self) -> Arc<Disk> {
        Arc::clone(self.disk.as_ref().unwrap())
    }

    pub(super) fn directory_path(number: u64) -> PathBuf {
        PathBuf::from(format!("/store{number}"))
    }

    pub(super) fn config(&self) -> DiskConfig {
        let directories = (0..self.nature.directories).map(|number| DirectoryConfig {
            path: Self::directory_path(number),
            bytes: BYTES,
        });
        DiskConfig {
            segment_bytes: 32 * 1024,
            // so few that some leave within the operations of a seed
            segments_min: 8,
            segment_bytes_min: 32 * 1024,
            queue_bytes_max: 64 * 1024,
            ..DiskConfig::new(directories.collect())
        }
    }

    /// Opens the store; if that does not work because of a fault that was planned, the fault is
    /// over.
    pub(super) fn open(&mut self) {
        let files: Arc<dyn Files> = Arc::new(self.files.clone());
        let notices = Arc::clone(&self.notices);
        let log: weir_disk::NoticeHandler = Arc::new(move |notice| {
            assert!(!notice.to_string().is_empty());
            notices.lock().unwrap().push(notice);
        });
        let opened = stepped::open(&self.config(), &files, &log).or_else(|error| {
            assert!(self.is_unlucky, "{}: {error}", self.context);
            self.files.plan(Plan::default());
            stepped::open(&self.config(), &files, &log)
        });
        let (disk, stepped) = opened.unwrap_or_else(|error| panic!("{}: {error}", self.context));
        self.life += 1;
        self.disk = Some(disk);
        self.stepped = stepped;
        self.set_clock();
        self.choose_way();
        for known in &mut self.known {
            known.least = 0;
            known.forgotten.clear();
            known.seen = (0, 0);
            known.waiting.clear();
        }
    }

    pub(super) fn let_pass(&mut self, ms: u64) {
        self.now_ms += ms;
        self.set_clock();
    }

    /// In every other process most reads go past the page cache: none lives long enough to learn
    /// that they had better.
    fn choose_way(&self) {
        let read_path =
            [ReadPath::Through, ReadPath::Past][usize::try_from(self.life % 2).unwrap()];
        for directory in &self.stepped {
            directory.read(read_path);
        }
    }

    fn set_clock(&self) {
        for directory in &self.stepped {
            directory.set_clock_ms(self.now_ms);
        }
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    fn length(&mut self, end: u64) -> usize {
        usize::try_from(self.random.below(end)).unwrap()
    }

    /// Does something.
    pub(super) fn act(&mut self) {
        self.time += 1;
        let key = self.below(KEYS);
        match self.below(32) {
            0..=7 => self.append(key),
            8 => self.begin(key),
            9..=11 => self.go_on(),
            12..=17 => self.get(key),
            18 => self.purge(key),
            19 if self.below(4) == 0 => self.purge_all(),
            20 => self.forget(key),
            21..=26 => self.step(),
            27..=28 => {
                self.load_one();
            }
            29 if self.below(3) == 0 => self.reopen(),
            30 => self.read_held(),
            31 if self.nature.faults => self.plan_faults(),
            _ => self.step(),
        }
    }

    /// Everything is written, loaded, checked and asked for.
    pub(super) fn settle(&mut self) {
        self.files.plan(Plan::default());
        self.open_records.clear();
        for _ in 0..3 {
            self.now_ms += 100_000;
            self.step();
        }
        while self.load_one() {}
        self.check();
        self.get_all();
        self.reopen();
        while self.load_one() {}
        self.files.plan(Plan::default());
        self.get_all();
        self.check();
    }

    pub(super) fn get_all(&mut self) {
        for key in 0..KEYS {
            self.get(key);
        }
    }

    fn check(&self) {
        if let Err(error) = self.disk().check() {
            // the device may have swallowed what it said it wrote
            assert!(self.is_unlucky, "{}: {error}", self.context);
        }
        let used = self.disk().usage();
        assert!(used.bytes <= used.bytes_max, "{}: {used:?}", self.context);
        assert_eq!(used.queue_bytes, 0, "{}", self.context);
        assert!(
            self.is_unlucky || used.damaged == 0,
            "{}: {used:?}",
            self.context
        );
    }

    fn ticket(&mut self) -> Ticket {
        let ticket = self.disk().ticket();
        match self.below(8) {
            0 => {
                let other = self.disk().ticket();
                self.late.replace(ticket).unwrap_or(other)
            }
            _ => ticket,
        }
    }

    pub(super) fn append(&mut self, key: u64) {
        let ticket = self.ticket();
        let generation = ticket.number();
        let representation = generation;
        let mut body = Vec::new();
        let mut from = self.below(2) * self.below(1000);
        for _ in 0..self.below(4) {
            let len = self.length(2000);
            body.push(block(key, representation, from, len));
            from += len as u64 + self.below(3) / 2 * self.below(500);
        }
        let meta = Meta {
            key,
            representation,
            generation,
        };
        let new = NewRecord {
            key: digest(key),
            ticket,
            meta: meta.encode(),
            body,
        };
        if self.disk().append(new).is_ok() {
            assert!(self.disk().may_hold(digest(key)), "{}", self.context);
            self.stored(key, generation, representation);
        }
    }

    fn stored(&mut self, key: u64, generation: u64, representation: u64) {
        let key = usize::try_from(key).unwrap();
        // a generation that left no trace on the device before a kill is given out again
        self.known[key].forgotten.remove(&generation);
        self.time += 1;
        let stored = Stored {
            representation,
            at: self.time,
            life: self.life,
        };
        self.known[key].stored.insert(generation, stored);
        self.known[key].waiting.push((generation, self.time));
    }

    fn begin(&mut self, key: u64) {
        let ticket = self.ticket();
        if self.open_records.len() < 3
            && let Ok(writer) = self.disk().begin(digest(key), ticket, None)
        {
            self.open_records.push(OpenRecord {
                key,
                representation: ticket.number(),
                ticket,
                at: 0,
                writer,
            });
        }
    }

    /// More of a large response, or its end.
    fn go_on(&mut self) {
        let Some(mut one) = self.open_records.pop() else {
            return;
        };
        for _ in 0..self.below(4) {
            let len = self.length(5000);
            let next = block(one.key, one.representation, one.at, len);
            if one.writer.push(one.at, next.bytes).is_err() {
                return;
            }
            one.at += len as u64 + self.below(4) / 3 * 100;
        }
        for extent in one.writer.written() {
            self.read_extent(one.key, one.representation, &extent);
        }
        match self.below(6) {
            0 => drop(one),
            1..=2 => self.commit(one),
            3 => {
                if one.writer.flush().is_ok() {
                    self.open_records.insert(0, one);
                }
            }
            _ => self.open_records.insert(0, one),
        }
    }

    fn commit(&mut self, one: OpenRecord) {
        let (key, generation) = (one.key, one.ticket.number());
        let mut representation = one.representation;
        let mut inherited = Vec::new();
        if one.at == 0
            && let Some(there) = self.peek(key)
        {
            // the validators were refreshed: another head, the same content
            representation = Meta::decode(&there.meta).unwrap().representation;
            inherited = there.extents;
        }
        let meta = Meta {
            key,
            representation,
            generation,
        };
        if let Ok(committed) = one.writer.commit(meta.encode(), &inherited) {
            self.stored(key, generation, representation);
            self.committed.push((key, representation, committed));
        }
    }

    /// What is stored under a key; whatever it is, it is checked.
    fn peek(&mut self, key: u64) -> Option<LoadedRecord> {
        let candidate = self.disk().find(digest(key))?;
        match poll(self.disk().load(candidate)).unwrap() {
            Ok(loaded) => {
                self.judge(key, &loaded);
                let is_newest = self.disk().is_newest(digest(key), loaded.record);
                let waiting = &self.known[usize::try_from(key).unwrap()].waiting;
                assert_eq!(is_newest, waiting.is_empty(), "{}", self.context);
                Some(loaded)
            }
            Err(error) => {
                let excused = self.is_unlucky || error == ReadError::Gone;
                assert!(excused, "{}: {error:?}", self.context);
                None
            }
        }
    }

    pub(super) fn get(&mut self, key: u64) {
        let Some(loaded) = self.peek(key) else {
            self.misses += 1;
            return;
        };
        self.hits += 1;
        let representation = Meta::decode(&loaded.meta).unwrap().representation;
        for extent in &loaded.extents {
            self.read_extent(key, representation, extent);
        }
        if self.held.len() < 4 {
            let held = loaded
                .extents
                .into_iter()
                .map(|it| (key, representation, it));
            self.held.extend(held.take(1));
        }
    }

    fn judge(&mut self, key: u64, loaded: &LoadedRecord) {
        let context = &self.context;
        assert_eq!(loaded.key, digest(key), "{context}");
        let meta = Meta::decode(&loaded.meta);
        let meta = meta.unwrap_or_else(|| panic!("{context}: meta of key {key} is damaged"));
        assert_eq!(
            (meta.key, meta.generation),
            (key, loaded.ticket.number()),
            "{context}"
        );
        let known = &mut self.known[usize::try_from(key).unwrap()];
        let generation = meta.generation;
        let Some(stored) = known.stored.get(&generation) else {
            panic!("{context}: key {key} was never stored at {generation}");
        };
        assert_eq!(stored.representation, meta.representation, "{context}");
        let here = format!("{context}: key {key} of {generation}");
        let purged = known.purged;
        assert!(
            !purged.covers(generation, stored),
            "{here} was purged: {purged:?}"
        );
        assert!(
            generation > known.least,
            "{here} was purged at {}",
            known.least
        );
        assert!(
            !known.forgotten.contains(&generation),
            "{here} was forgotten"
        );
        // an older one may be stored late, if the newer one has left
        let (seen, seen_at) = known.seen;
        assert!(
            generation >= seen || stored.at > seen_at,
            "{here} came back after {seen}"
        );
        known.seen = (generation, self.time);
        if let Some(inline) = &loaded.inline {
            let meant = content(key, meta.representation, 0, inline.len());
            assert!(**inline == *meant, "{context}: key {key}, inline");
        }
        let ascends = loaded.extents.is_sorted_by(|a, b| a.to() <= b.from);
        assert!(ascends, "{context}: {:?}", loaded.extents);
    }

    fn read_extent(&mut self, key: u64, representation: u64, extent: &Extent) {
        let mut at = extent.from;
        while at < extent.to() {
            let Ok(bytes) = poll(extent.read(at)).unwrap() else {
                assert!(self.is_unlucky || extent.is_retired(), "{}", self.context);
                return;
            };
            let meant = content(key, representation, at, bytes.len());
            assert!(*bytes == *meant, "{}: key {key} at {at}", self.context);
            at += bytes.len() as u64;
        }
    }

    fn read_held(&mut self) {
        for (key, representation, extent) in std::mem::take(&mut self.held) {
            self.read_extent(key, representation, &extent);
        }
        for (key, representation, committed) in std::mem::take(&mut self.committed) {
            match committed.extents() {
                Some(Ok(extents)) => {
                    for extent in extents {
                        self.read_extent(key, representation, &extent);
                    }
                }
                Some(Err(_)) => {}
                None => self.committed.push((key, representation, committed)),
            }
        }
    }

    pub(super) fn purge(&mut self, key: u64) {
        let disk = self.disk();
        let before = disk.ticket().number();
        let known = &mut self.known[usize::try_from(key).unwrap()];
        let purging = disk.purge(digest(key));
        known.least = before;
        let mut purging = pin!(purging);
        if self.below(3) == 0 {
            self.get(key);
        }
        self.step();
        let result = purging
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        match result {
            Poll::Ready(Ok(())) => {
                self.known[usize::try_from(key).unwrap()].purged = self.purge_of(before);
            }
            Poll::Ready(Err(error)) => assert!(self.is_unlucky, "{}: {error}", self.context),
            Poll::Pending => panic!("{}: a purge was not answered", self.context),
        }
    }

    /// A purge of now; what is stored from here on is behind it.
    fn purge_of(&self, generation: u64) -> Purge {
        Purge {
            generation,
            at: self.time,
            life: self.life,
        }
    }

    pub(super) fn purge_all(&mut self) {
        let disk = self.disk();
        let before = disk.ticket().number();
        let purging = disk.purge_all();
        for known in &mut self.known {
            known.least = before;
        }
        self.step();
        if poll(purging).unwrap().is_ok() {
            let purge = self.purge_of(before);
            for known in &mut self.known {
                known.purged = purge;
            }
        } else {
            assert!(self.is_unlucky, "{}", self.context);
        }
    }

    fn forget(&mut self, key: u64) {
        self.step();
        let disk = self.disk();
        let index = usize::try_from(key).unwrap();
        if self.below(3) == 0 {
            self.append(key);
            let ticket = disk.ticket();
            let journaled = disk.usage().purged;
            disk.forget_older(digest(key), ticket);
            self.known[index].least = ticket.number();
            self.step();
            assert_eq!(disk.usage().purged, journaled, "{}", self.context);
        } else if self.below(2) == 0 {
            disk.forget_key(digest(key));
            let known = &mut self.known[index];
            known.forgotten.extend(known.stored.keys());
        } else if let Some(there) = self.peek(key) {
            disk.forget(digest(key), there.record);
            self.known[index].forgotten.insert(there.ticket.number());
        }
    }

    /// Writers write all that waits.
    pub(super) fn step(&mut self) {
        self.now_ms += self.below(1200);
        self.set_clock();
        for directory in &mut self.stepped {
            directory.write();
        }
        for known in &mut self.known {
            // written, or lost: then the older ones are forgotten
            for (generation, at) in known.waiting.drain(..) {
                if generation > known.seen.0 {
                    known.seen = (generation, at);
                }
            }
        }
    }

    pub(super) fn load_one(&mut self) -> bool {
        let mut is_loading = false;
        for directory in &mut self.stepped {
            is_loading |= directory.load();
        }
        is_loading
    }

    /// Verifies everything as the background scrub does; the bytes that it would have rested for.
    pub(super) fn scrub(&self) -> u64 {
        let rested = self.stepped.iter().map(|directory| {
            let rested_bytes = directory.scrub();
            rested_bytes.unwrap_or_else(|| panic!("{}", self.context))
        });
        rested.sum()
    }

    fn plan_faults(&mut self) {
        let kinds = [
            Fault::Device,
            Fault::NoSpace,
            Fault::Interrupted,
            Fault::Short,
            Fault::Torn,
        ];
        let seed = self.random.next();
        let plan = match self.below(5) {
            0 => Plan::default(),
            1 => Plan {
                one_in: 1 + self.below(30),
                seed,
                ..Plan::default()
            },
            2 => Plan {
                nth: Some((self.below(20), kinds[self.length(5)])),
                lasting: self.below(4) == 0,
                ..Plan::default()
            },
            3 => Plan {
                indirect: true,
                ..Plan::default()
            },
            _ => Plan {
                uncached: true,
                ..Plan::default()
            },
        };
        self.plan(plan);
    }

    pub(super) fn plan(&mut self, plan: Plan) {
        self.is_unlucky |= plan.nth.is_some() || plan.one_in > 0;
        self.files.plan(plan);
    }

    /// The process ends, one way or another, and a new one begins.
    pub(super) fn reopen(&mut self) {
        let ways = if self.nature.crashes { 4 } else { 2 };
        match self.below(ways) {
            0 => self.close(),
            1 => self.end(false),
            2 => self.end(true),
            _ => {
                let nth = Some((self.below(6), Fault::Stop));
                self.plan(Plan {
                    nth,
                    ..Plan::default()
                });
                self.step();
                self.end(true);
            }
        }
        self.open();
    }
}
