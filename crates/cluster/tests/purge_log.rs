//! The log of purges in a real etcd: its order, nodes that were away, and logs that are lost.

#[path = "support/etcd.rs"]
mod support;

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::Etcd;
use weir_cluster::etcd::{Client, Entered, Event, LogPosition, PurgeLog, PurgeLogSink};
use weir_cluster::parse_url;
use weir_measure::Counters;
use weir_net::next_hops::HopKey;
use weir_net::resolver::{Resolver, ResolverConfig};

const PATIENCE: Duration = Duration::from_secs(30);

const PREFIX: &str = "/weir/test/";

/// What happened to a node.
#[derive(Debug, Default)]
struct Notes {
    applied: Vec<String>,
    missed: usize,
    /// How many were applied when it was told last that it has missed some.
    applied_before: usize,
    is_lost: bool,
    /// How long there was no touch when that was said last.
    lost_for: Duration,
    position: Option<LogPosition>,
}

#[derive(Debug, Default)]
struct Sink(Mutex<Notes>);

impl Sink {
    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.0.lock().expect("no panic")
    }

    fn wait(&self, what: &str, wanted: impl Fn(&Notes) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !wanted(&self.notes()) {
            assert!(Instant::now() < until, "never {what}: {:?}", self.notes());
            std::thread::yield_now();
        }
    }
}

impl PurgeLogSink for Sink {
    fn apply(&self, purge: &str) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.notes().applied.push(purge.to_owned());
        Box::pin(ready(()))
    }

    fn missed(&self) {
        let mut notes = self.notes();
        notes.missed += 1;
        notes.applied_before = notes.applied.len();
    }

    fn lost(&self, ago: Option<Duration>) {
        let mut notes = self.notes();
        notes.is_lost = ago.is_some();
        notes.lost_for = ago.unwrap_or(notes.lost_for);
    }

    fn reached(&self, position: &LogPosition) {
        self.notes().position = Some(position.clone());
    }
}

struct Node {
    sink: Arc<Sink>,
    log: PurgeLog,
}

fn resolver() -> Resolver {
    let config = ResolverConfig::default();
    Resolver::start(config, Arc::new(Counters::new())).expect("a thread")
}

fn hop(etcd: &Etcd) -> [HopKey; 1] {
    [parse_url(&etcd.url()).expect("a URL")]
}

impl Node {
    fn start(etcd: &Etcd, name: &str, position: Option<LogPosition>) -> Self {
        let sink = Arc::new(Sink::default());
        let followed = Arc::clone(&sink) as Arc<dyn PurgeLogSink>;
        let log = PurgeLog::start((&hop(etcd), resolver()), PREFIX, name, position, followed);
        let log = log.expect("a thread");
        Self { sink, log }
    }

    /// It has read what there was.
    fn settle(&self) {
        self.sink.wait("settled", |notes| {
            !notes.is_lost && notes.position.is_some()
        });
    }

    fn enter(&self, purge: &str, members: &[&str], wait: Duration) -> Result<Entered, String> {
        let members = members.iter().map(|name| (*name).to_owned()).collect();
        let until = tokio::time::Instant::now() + wait;
        block_on(self.log.enter(purge.to_owned(), members, until))
    }

    fn position(&self) -> Option<LogPosition> {
        self.sink.notes().position.clone()
    }

    fn applied(&self) -> Vec<String> {
        self.sink.notes().applied.clone()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

#[test]
fn each_node_applies_each_purge_in_order_and_the_answer_names_those_that_have() {
    let etcd = Etcd::start();
    let (a, b) = (Node::start(&etcd, "a", None), Node::start(&etcd, "b", None));
    a.settle();
    b.settle();
    let mut last = 0;
    for number in 0..10 {
        let node = [&a, &b][number % 2];
        let entered = node.enter(&format!("purge {number}"), &["a", "b"], PATIENCE);
        let entered = entered.expect("it is entered");
        assert!(entered.revision > last, "{entered:?}");
        assert_eq!(entered.applied, ["a", "b"]);
        assert!(entered.behind.is_empty());
        last = entered.revision;
    }
    let all: Vec<String> = (0..10).map(|number| format!("purge {number}")).collect();
    assert_eq!((a.applied(), b.applied()), (all.clone(), all));
}

#[test]
fn node_that_was_away_applies_what_it_has_missed_and_is_named_until_it_has() {
    let etcd = Etcd::start();
    let (a, b) = (Node::start(&etcd, "a", None), Node::start(&etcd, "b", None));
    a.settle();
    b.settle();
    let position = b.position();
    drop(b);
    let short = Duration::from_millis(500);
    let entered = a.enter("one", &["b"], short).expect("it is entered");
    assert_eq!((entered.applied.len(), entered.behind.len()), (0, 0));
    // it is no member any more
    let entered = a.enter("two", &[], short).expect("it is entered");
    assert_eq!(entered.behind, ["b"]);
    let b = Node::start(&etcd, "b", position);
    b.settle();
    assert_eq!(b.applied(), ["one", "two"]);
    assert_eq!(b.sink.notes().missed, 0);
    let entered = a.enter("three", &["b"], PATIENCE).expect("it is entered");
    assert_eq!(entered.applied, ["b"]);
}

#[test]
fn history_that_etcd_has_compacted_is_not_needed() {
    let etcd = Etcd::start();
    let a = Node::start(&etcd, "a", None);
    a.settle();
    let position = a.position();
    let entered = a.enter("one", &["a"], PATIENCE).expect("it is entered");
    let revision = entered.revision;
    etcd.post("kv/compaction", &format!("{{\"revision\":\"{revision}\"}}"));
    let late = Node::start(&etcd, "late", position);
    late.settle();
    assert_eq!(late.applied(), ["one"]);
    assert_eq!(late.sink.notes().missed, 0);
}

#[test]
fn node_that_cannot_know_what_it_has_missed_is_told_so() {
    let mut etcd = Etcd::start();
    let a = Node::start(&etcd, "a", None);
    a.settle();
    assert_eq!(a.sink.notes().missed, 1, "it does not know how it was left");
    let position = a.position().expect("a position");
    let missed = |position: LogPosition| {
        let Node { sink, log: _log } = Node::start(&etcd, "x", Some(position));
        sink.wait("settled", |notes| {
            !notes.is_lost && notes.position.is_some()
        });
        sink.notes().missed
    };
    assert_eq!(missed(position.clone()), 0);
    // entries are dropped that it had not read
    let client = Client::new(&hop(&etcd), resolver());
    let dropped = (position.revision + 1).to_string();
    block_on(client.put("/weir/test/purges-dropped", dropped.as_bytes(), None)).expect("etcd");
    assert_eq!(missed(position.clone()), 1);
    // the log is another one, or an older one
    let other = LogPosition {
        log: "another".into(),
        ..position.clone()
    };
    assert_eq!(missed(other), 1);
    let ahead = LogPosition {
        revision: position.revision + 1_000_000,
        ..position
    };
    assert_eq!(missed(ahead), 1);
    // and one that is lost while it is followed
    etcd.lose_all();
    etcd.start_again();
    a.sink.wait("told", |notes| notes.missed == 2);
    a.settle();
}

#[test]
fn purge_is_not_entered_while_etcd_is_away_and_touch_is_lost_and_found() {
    let mut etcd = Etcd::start();
    let a = Node::start(&etcd, "a", None);
    a.settle();
    etcd.kill();
    let entered = a.enter("one", &["a"], Duration::from_secs(2));
    let why = entered.expect_err("there is no etcd");
    assert!(why.contains("etcd"), "{why}");
    a.sink.wait("lost", |notes| notes.is_lost);
    etcd.start_again();
    a.settle();
    assert_eq!(a.sink.notes().missed, 1, "that at its start");
    let entered = a.enter("two", &["a"], PATIENCE).expect("it is entered");
    assert_eq!(entered.applied, ["a"]);
    assert_eq!(a.applied().last().map(String::as_str), Some("two"));
}

/// A lease lasts 10 s from when it was kept last: without it, no purge waits for the node.
#[test]
fn touch_is_lost_before_the_lease_ends_whether_etcd_refuses_or_is_silent() {
    let check = |silence: fn(&mut Etcd)| {
        let mut etcd = Etcd::start();
        let a = Node::start(&etcd, "a", None);
        a.settle();
        let began = Instant::now();
        silence(&mut etcd);
        a.sink.wait("lost", |notes| notes.is_lost);
        let lost_for = a.sink.notes().lost_for;
        assert!(lost_for >= Duration::from_secs(5), "{lost_for:?}");
        assert!(lost_for < Duration::from_secs(10), "{lost_for:?}");
        assert!(began.elapsed() < Duration::from_secs(10));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| check(Etcd::kill));
        scope.spawn(|| check(|etcd| etcd.stand_still()));
    });
}

#[test]
fn oldest_purges_are_dropped_and_what_was_dropped_is_known() {
    let etcd = Etcd::start();
    let client = Client::new(&hop(&etcd), resolver());
    block_on(async {
        for number in 0..1024 {
            let key = format!("/weir/test/purges/x-{number:04}");
            client.put(&key, b"old", None).await.expect("etcd");
        }
    });
    // of a node that has not applied the last that are dropped, and of one that has
    let before = block_on(client.range(&format!("{PREFIX}purges/x-0256"), b"", 1)).expect("etcd");
    let last = before.kvs[0].mod_revision;
    for (name, applied) in [("lagging", last - 1), ("away", last)] {
        let key = format!("{PREFIX}applied/{name}");
        block_on(client.put(&key, applied.to_string().as_bytes(), None)).expect("etcd");
    }
    let a = Node::start(&etcd, "a", None);
    a.settle();
    let until = Instant::now() + PATIENCE;
    let entered = a.enter("new", &["a"], PATIENCE).expect("it is entered");
    assert_eq!(entered.behind, ["away", "lagging"]);
    loop {
        let left = block_on(client.range("/weir/test/purges/", b"", 0)).expect("etcd");
        if left.kvs.len() == 768 {
            assert!(
                left.kvs
                    .iter()
                    .any(|entry| entry.mod_revision == entered.revision)
            );
            assert_eq!(
                left.kvs.iter().find(|entry| entry.key.ends_with(b"x-0256")),
                None
            );
            break;
        }
        assert!(Instant::now() < until, "{} are left", left.kvs.len());
    }
    let dropped = block_on(client.range("/weir/test/purges-dropped", b"", 1)).expect("etcd");
    assert_eq!(dropped.kvs.len(), 1);
    loop {
        let entered = a.enter("newer", &["a"], PATIENCE).expect("it is entered");
        if entered.behind == ["away"] {
            break;
        }
        assert!(Instant::now() < until, "{entered:?}");
    }
}

/// Two nodes drop purges at once.
#[test]
fn what_was_dropped_is_never_less_than_before() {
    let etcd = Etcd::start();
    let client = Client::new(&hop(&etcd), resolver());
    let key = format!("{PREFIX}purges-dropped");
    let nodes = [Node::start(&etcd, "a", None), Node::start(&etcd, "b", None)];
    for node in &nodes {
        node.settle();
    }
    block_on(async {
        for number in 0..1024 {
            let key = format!("{PREFIX}purges/x-{number:04}");
            client.put(&key, b"old", None).await.expect("etcd");
        }
    });
    std::thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(|| node.enter("new", &["a", "b"], PATIENCE).expect("entered"));
        }
    });
    let until = Instant::now() + PATIENCE;
    while block_on(client.range(&format!("{PREFIX}purges/"), b"", 0))
        .expect("etcd")
        .kvs
        .len()
        > 770
    {
        assert!(Instant::now() < until, "none is dropped");
    }
    let end = "9223372036854775807";
    block_on(client.put(&key, end.as_bytes(), None)).expect("etcd");
    block_on(async {
        let mut dropped = 0;
        let mut watch = client.watch(&key, 1).await.expect("etcd");
        while dropped < i64::MAX {
            for event in watch.next().await.expect("etcd").events {
                let Event::Put(entry) = event else { continue };
                let now = String::from_utf8(entry.value).expect("a number");
                let now: i64 = now.parse().expect("a number");
                assert!(now >= dropped, "{now} after {dropped}");
                dropped = now;
            }
        }
    });
}

/// It is about to say that it has applied them.
#[test]
fn node_that_has_missed_purges_applies_those_that_are_still_there() {
    let etcd = Etcd::start();
    let a = Node::start(&etcd, "a", None);
    a.settle();
    for purge in ["one", "two"] {
        a.enter(purge, &["a"], PATIENCE).expect("it is entered");
    }
    let late = Node::start(&etcd, "late", None);
    late.settle();
    assert_eq!(late.applied(), ["one", "two"]);
    let notes = late.sink.notes();
    assert_eq!((notes.missed, notes.applied_before), (1, 0));
}

/// Nothing has dropped the oldest ones: whatever wrote them, it was no node.
#[test]
fn node_is_told_that_it_may_have_missed_purges_if_there_are_more_than_it_reads() {
    let etcd = Etcd::start();
    let a = Node::start(&etcd, "a", None);
    a.settle();
    let position = a.position();
    drop(a);
    let client = Client::new(&hop(&etcd), resolver());
    block_on(async {
        for number in 0..2300 {
            let key = format!("{PREFIX}purges/x-{number:04}");
            client.put(&key, b"one", None).await.expect("etcd");
        }
    });
    let late = Node::start(&etcd, "late", position);
    late.settle();
    assert_eq!(late.sink.notes().missed, 1);
}
