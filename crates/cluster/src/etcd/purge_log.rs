//! The purges of the whole cluster, in one order that a node which was away reads later.
//!
//! A purge is a key under `PREFIXpurges/`, and its place in the order is the revision at which etcd
//! has set it. Each node applies them in that order, and writes `PREFIXapplied/NAME` with the
//! revision up to which it has. A node that begins, or has lost touch, reads the keys that are
//! there and then watches: it does not need etcd's history. The oldest keys are dropped beyond a
//! number; `PREFIXpurges-dropped` has the greatest revision of those. `PREFIXpurge-last` is set
//! with each purge: its revision is that of the last one. `PREFIXpurge-log` has a random name for
//! the log: an etcd that was emptied or replaced has another one.
//!
//! A node that cannot know what it has missed (it has read up to a revision that was dropped since,
//! or of another log) is told so: [`PurgeLogSink::missed`].

use super::announcement::{KEEP_EVERY, LEASE_TTL};
use super::client::Client;
use super::error::EtcdError;
use super::messages::KeyValue;
use super::watch::{Event, Watch};
use crate::retry::Retry;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::Future;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot, watch};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use weir_net::next_hops::HopKey;
use weir_net::resolver::Resolver;

/// The key that is set with each purge, behind the prefix: its revision is that of the last one.
const LAST: &str = "purge-last";

/// Purges that are kept in the log. A node that has missed more validates all that it has stored.
const PURGES_MAX: usize = 1024;

/// Purges that are left when some are dropped.
const PURGES_LEFT: usize = 768;

/// How often a node tries to write which purges are dropped, while others write it, too.
const RAISES_MAX: usize = 8;

/// Purges that are read at once: an answer of etcd has at most 8 MiB here, in base64.
const PAGE: u32 = 64;

/// Bytes of a purge in the log: a page of longer ones could not be read, by no node.
const PURGE_BYTES_MAX: usize = 64 << 10;

/// How often etcd is asked for the last purge of the log: an answer shows that etcd is there, and
/// whether the watch has brought all that there is.
const BEAT: Duration = Duration::from_secs(1);

/// A node has lost touch when the last question that showed it to have all purges was *sent* so
/// long ago: what was purged since it may not know. etcd itself stands still for a second or two
/// when it chooses another leader.
///
/// Purges wait for a node until its lease has ended. Say the node reaches etcd no more from a time
/// on. The last question with an answer was sent before, so that touch is lost by `TOUCH_LIMIT`
/// after it; the lease was kept last `KEEP_EVERY` before at most, and [`SLOW_CALL`], and ends
/// `LEASE_TTL` after that. So the node validates what it has before the others stop waiting.
const TOUCH_LIMIT: Duration = Duration::from_secs(5);

/// How long a call that keeps the lease may take for that to hold.
const SLOW_CALL: Duration = Duration::from_secs(2);

const _: () = assert!(
    TOUCH_LIMIT.as_millis() + KEEP_EVERY.as_millis() + SLOW_CALL.as_millis()
        <= LEASE_TTL.as_millis(),
    "touch is lost before the lease ends"
);

/// How late the loss may be noticed while the machine is busy.
const NOTICE: Duration = Duration::from_secs(1);

/// How often a purge looks whether others have applied it.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Purges of this node that wait to be entered.
const APPENDS_MAX: usize = 16;

/// So long after a purge was entered, each node that follows the log has applied it, or has lost
/// touch: the question that showed it to have all was sent before the purge was entered.
pub const APPLY_MAX: Duration = TOUCH_LIMIT.saturating_add(NOTICE);

/// How far a node has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogPosition {
    /// The random name of the log.
    pub log: String,
    /// Purges up to this revision are applied.
    pub revision: i64,
}

/// What applies purges. Called on the thread of the log.
pub trait PurgeLogSink: Send + Sync {
    /// Applies a purge; ready when it survives a crash.
    fn apply(&self, purge: &str) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// Purges may have been missed that cannot be read any more.
    fn missed(&self);

    /// Whether this node has lost touch with the log; if so, so long ago.
    fn lost(&self, ago: Option<Duration>);

    /// All purges up to there are applied: what is stored from now on need not know of them.
    fn reached(&self, position: &LogPosition);
}

/// What became of a purge that was to be entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entered {
    /// Its place in the order.
    pub revision: i64,
    /// The members that have applied it, by name.
    pub applied: Vec<String>,
    /// Other nodes that have followed the log once, and have not applied it.
    pub behind: Vec<String>,
}

/// The purges that were read from the log.
struct Entries {
    entries: Vec<KeyValue>,
    /// The revision at which the first of them were read.
    head: i64,
    /// There are no more: nothing has dropped old ones for long otherwise.
    is_whole: bool,
}

/// Whether this node has touch with the log.
struct Touch<'s> {
    sink: &'s dyn PurgeLogSink,
    /// It had all purges that were entered by then.
    had_all: Cell<Instant>,
    is_lost: Cell<bool>,
    found: Notify,
}

impl<'s> Touch<'s> {
    /// It is lost at first.
    fn new(sink: &'s dyn PurgeLogSink) -> Self {
        sink.lost(Some(Duration::ZERO));
        Self {
            sink,
            had_all: Cell::new(Instant::now()),
            is_lost: Cell::new(true),
            found: Notify::new(),
        }
    }

    fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    /// A question that was sent then was answered: this node has all purges.
    fn has_all(&self, sent: Instant) {
        self.had_all.set(sent);
        // an answer that was under way for too long shows nothing of now
        if sent.elapsed() < TOUCH_LIMIT && self.is_lost.replace(false) {
            self.sink.lost(None);
            self.found.notify_one();
        }
    }

    /// Ends touch when its time is over, whatever else waits; for ever.
    async fn end_in_time(&self) {
        loop {
            if self.is_lost() {
                self.found.notified().await;
            }
            sleep_until(self.had_all.get() + TOUCH_LIMIT).await;
            let ago = self.had_all.get().elapsed();
            if ago >= TOUCH_LIMIT && !self.is_lost.replace(true) {
                self.sink.lost(Some(ago));
            }
        }
    }
}

struct Append {
    purge: String,
    members: Vec<String>,
    until: Instant,
    reply: oneshot::Sender<Result<Entered, String>>,
}

/// A thread that follows the log. It ends soon after this is dropped.
#[derive(Debug)]
pub struct PurgeLog {
    appends: mpsc::Sender<Append>,
    _alive: watch::Sender<()>,
}

impl PurgeLog {
    /// Follows the log of the cluster with this prefix, as the node `name`, from `position` on: of
    /// `None`, from its end on.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start(
        (endpoints, resolver): (&[HopKey], Resolver),
        prefix: &str,
        name: &str,
        position: Option<LogPosition>,
        sink: Arc<dyn PurgeLogSink>,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (appends, entering) = mpsc::channel(APPENDS_MAX);
        let (alive, mut ended) = watch::channel(());
        let log = Arc::new(Log {
            client: Client::new(endpoints, resolver),
            prefix: prefix.to_owned(),
            name: name.to_owned(),
        });
        let run = move || {
            let tasks = LocalSet::new();
            let all = tasks.run_until(async {
                tokio::select! {
                    () = async { while ended.changed().await.is_ok() {} } => {}
                    () = log.follow(position, &*sink) => {}
                    () = enter_all(&log, entering) => {}
                }
            });
            runtime.block_on(all);
        };
        thread::Builder::new()
            .name("weir-purge-log".into())
            .spawn(run)?;
        Ok(Self {
            appends,
            _alive: alive,
        })
    }

    /// Enters `purge`, and waits until `members` have applied it, or until then.
    ///
    /// # Errors
    ///
    /// Why it is not known to be in the log.
    pub async fn enter(
        &self,
        purge: String,
        members: Vec<String>,
        until: Instant,
    ) -> Result<Entered, String> {
        if purge.len() > PURGE_BYTES_MAX {
            return Err(format!("it is longer than {PURGE_BYTES_MAX} bytes"));
        }
        let (reply, entered) = oneshot::channel();
        let append = Append {
            purge,
            members,
            until,
            reply,
        };
        if self.appends.try_send(append).is_err() {
            return Err("too many purges are entered at once".into());
        }
        // a little longer: what was entered by then is said
        match timeout_at(until + BEAT, entered).await {
            Ok(Ok(entered)) => entered,
            Ok(Err(_)) => Err("the proxy ends".into()),
            Err(_) => Err("etcd did not answer in time".into()),
        }
    }
}

struct Log {
    client: Client,
    prefix: String,
    name: String,
}

impl Log {
    fn key(&self, rest: &str) -> String {
        format!("{}{rest}", self.prefix)
    }

    /// Follows the log for ever.
    async fn follow(&self, mut position: Option<LogPosition>, sink: &dyn PurgeLogSink) {
        let touch = Touch::new(sink);
        let follow = async {
            let mut retry = Retry::default();
            loop {
                let result = async {
                    let watch = self.catch_up(&mut position, &touch).await?;
                    retry = Retry::default();
                    self.watch(watch, &mut position, &touch).await
                };
                let _ended: Result<(), EtcdError> = result.await;
                retry.wait().await;
            }
        };
        tokio::select! {
            () = follow => {}
            () = touch.end_in_time() => {}
        }
    }

    /// Applies what there is beyond `position`, and begins to watch.
    async fn catch_up(
        &self,
        position: &mut Option<LogPosition>,
        touch: &Touch<'_>,
    ) -> Result<Watch, EtcdError> {
        let sink = touch.sink;
        let log = self.log_name().await?;
        let sent = Instant::now();
        let Entries {
            mut entries,
            head,
            is_whole,
        } = self.entries().await?;
        // behind the entries: what was dropped between is known to be
        let (dropped, _) = self.dropped().await?;
        let known = position.as_ref().filter(|known| known.log == log);
        let from = match known {
            Some(known) if is_whole && (dropped..=head).contains(&known.revision) => known.revision,
            _ => {
                sink.missed();
                // what is there is applied all the same: this node is about to say that it has, and
                // must not fetch it from one that has not
                0
            }
        };
        entries.retain(|entry| entry.mod_revision > from);
        entries.sort_by_key(|entry| entry.mod_revision);
        for entry in &entries {
            apply(entry, sink).await;
        }
        let reached = LogPosition {
            log,
            revision: head,
        };
        // what was applied stays known if etcd fails now
        *position = Some(reached.clone());
        self.tell(&reached, sink).await?;
        let watch = self.client.watch(&self.key("purges/"), head + 1).await?;
        touch.has_all(sent);
        Ok(watch)
    }

    /// Applies purges as they come, until etcd is not there, or the watch does not bring them.
    async fn watch(
        &self,
        mut watch: Watch,
        position: &mut Option<LogPosition>,
        touch: &Touch<'_>,
    ) -> Result<(), EtcdError> {
        let mut beat = Instant::now() + BEAT;
        // a question whose last purge the watch has not brought yet
        let mut asked: Option<(Instant, i64)> = None;
        loop {
            let reached = position.as_ref().map_or(0, |position| position.revision);
            if let Some((sent, _)) = asked.take_if(|(_, last)| *last <= reached) {
                touch.has_all(sent);
            }
            // purges that come without a pause leave the questions their turn
            let next = if Instant::now() < beat {
                timeout_at(beat, watch.next()).await.ok()
            } else {
                None
            };
            let Some(events) = next else {
                let sent = Instant::now();
                let last = self.last(position.as_ref()).await?;
                asked.get_or_insert((sent, last));
                beat = Instant::now() + BEAT;
                if touch.is_lost() && last > reached {
                    return Err(EtcdError::Ended("it does not bring all purges".into()));
                }
                continue;
            };
            let events = events?;
            let mut is_new = false;
            for event in &events.events {
                if let Event::Put(entry) = event {
                    apply(entry, touch.sink).await;
                    is_new = true;
                }
            }
            if let Some(position) = position.as_mut().filter(|_| is_new) {
                position.revision = position.revision.max(events.header.revision);
                self.tell(position, touch.sink).await?;
            }
        }
    }

    /// The revision of the last purge in the log that `position` is of.
    async fn last(&self, position: Option<&LogPosition>) -> Result<i64, EtcdError> {
        // the name of the log is beside it
        let range = self.client.range(&self.key("purge-"), b"", 0).await?;
        let find = |rest: &str| {
            let key = self.key(rest);
            range.kvs.iter().find(|entry| text(&entry.key) == key)
        };
        let log = find("purge-log").map(|entry| text(&entry.value));
        let is_of = |position: &LogPosition| {
            Some(&position.log) == log.as_ref() && position.revision <= range.header.revision
        };
        if !position.is_some_and(is_of) {
            return Err(EtcdError::Ended("the log is another one".into()));
        }
        Ok(find(LAST).map_or(0, |entry| entry.mod_revision))
    }

    async fn tell(&self, position: &LogPosition, sink: &dyn PurgeLogSink) -> Result<(), EtcdError> {
        sink.reached(position);
        let key = self.key("applied/") + &self.name;
        let revision = position.revision.to_string();
        self.client.put(&key, revision.as_bytes(), None).await?;
        Ok(())
    }

    /// The purges that are there.
    async fn entries(&self) -> Result<Entries, EtcdError> {
        let prefix = self.key("purges/");
        let first = self.client.range(&prefix, b"", PAGE).await?;
        let (mut entries, mut is_more) = (first.kvs, first.more);
        while is_more && entries.len() <= 2 * PURGES_MAX {
            let mut at = entries
                .last()
                .map(|last| last.key.clone())
                .unwrap_or_default();
            at.push(0);
            let page = self.client.range(&prefix, &at, PAGE).await?;
            is_more = page.more && !page.kvs.is_empty();
            entries.extend(page.kvs);
        }
        Ok(Entries {
            entries,
            head: first.header.revision,
            is_whole: !is_more,
        })
    }

    /// The random name of the log; it is made if there is none.
    async fn log_name(&self) -> Result<String, EtcdError> {
        let key = self.key("purge-log");
        self.client.create(&key, random().as_bytes(), None).await?;
        let range = self.client.range(&key, b"", 1).await?;
        let name = range.kvs.first().map(|entry| text(&entry.value));
        name.ok_or_else(|| EtcdError::Malformed(format!("`{key}` is not there")))
    }

    /// The greatest revision of a purge that was dropped, and the one in which that was written.
    async fn dropped(&self) -> Result<(i64, i64), EtcdError> {
        let key = self.key("purges-dropped");
        let range = self.client.range(&key, b"", 1).await?;
        Ok(range.kvs.first().map_or((0, 0), |entry| {
            let dropped = text(&entry.value).parse().unwrap_or(0);
            (dropped, entry.mod_revision)
        }))
    }

    /// Writes that purges up to `revision` are dropped, unless later ones are, too. Whether it is
    /// known to be written: other nodes may drop purges, too, and a smaller number of theirs must
    /// not take the place of a greater one.
    async fn raise_dropped(&self, revision: i64) -> Result<bool, EtcdError> {
        let key = self.key("purges-dropped");
        for _ in 0..RAISES_MAX {
            let (dropped, read) = self.dropped().await?;
            if dropped >= revision {
                return Ok(true);
            }
            let value = revision.to_string();
            let (is_written, _) = self.client.replace(&key, value.as_bytes(), read).await?;
            if is_written {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Enters what this node purges, and answers.
    async fn answer(&self, append: Append) {
        let entered = match timeout_at(append.until, self.enter(&append)).await {
            Ok(Ok(entered)) => Ok(entered),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("etcd did not answer in time".into()),
        };
        let is_entered = entered.is_ok();
        // the operator may not wait any more
        let _ = append.reply.send(entered);
        if is_entered {
            // the next one tries it, too
            let _ = self.drop_oldest().await;
        }
    }

    async fn enter(&self, append: &Append) -> Result<Entered, EtcdError> {
        let key = format!("{}{}-{}", self.key("purges/"), self.name, random());
        let purge = append.purge.as_bytes();
        let last = self.key(LAST);
        let (_, revision) = self.client.create_marked(&key, purge, &last).await?;
        let (mut applied, mut behind) = (Vec::new(), Vec::new());
        // what is entered stays so, whatever comes of the rest
        while Instant::now() + LOOK_EVERY < append.until {
            if let Ok(all) = self.applied().await {
                let members = append.members.iter();
                let members =
                    members.filter(|name| all.get(*name).is_some_and(|at| *at >= revision));
                applied = members.cloned().collect();
                let others = all.into_iter().filter(|(_, at)| *at < revision);
                let others = others.map(|(name, _)| name);
                behind = others
                    .filter(|name| *name != self.name && !append.members.contains(name))
                    .collect();
            }
            if applied.len() == append.members.len() {
                break;
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(Entered {
            revision,
            applied,
            behind,
        })
    }

    /// The revisions that nodes have applied, by name.
    async fn applied(&self) -> Result<BTreeMap<String, i64>, EtcdError> {
        let prefix = self.key("applied/");
        let range = self.client.range(&prefix, b"", 0).await?;
        let applied = range.kvs.iter().filter_map(|entry| {
            let name = text(&entry.key).strip_prefix(&prefix)?.to_owned();
            Some((name, text(&entry.value).parse().ok()?))
        });
        Ok(applied.collect())
    }

    /// Drops the oldest purges if there are too many. Which revisions these are is written first:
    /// a node that reads in between believes that it has missed them.
    async fn drop_oldest(&self) -> Result<(), EtcdError> {
        let mut entries = self.entries().await?.entries;
        if entries.len() <= PURGES_MAX {
            return Ok(());
        }
        entries.sort_by_key(|entry| entry.mod_revision);
        entries.truncate(entries.len() - PURGES_LEFT);
        let last = entries.last().map_or(0, |entry| entry.mod_revision);
        if !self.raise_dropped(last).await? {
            // the next purge tries it again
            return Ok(());
        }
        for entry in entries {
            self.client.delete(&text(&entry.key)).await?;
        }
        self.forget_nodes_before(last).await
    }

    /// Drops what is known of nodes that have not applied the purge of this revision, which was
    /// dropped: whatever they miss, they validate all that they have when they are back. So names
    /// that never come back, such as those of pods, are no more than those of one log.
    async fn forget_nodes_before(&self, revision: i64) -> Result<(), EtcdError> {
        let range = self.client.range(&self.key("applied/"), b"", 0).await?;
        for entry in range.kvs {
            let applied = text(&entry.value).parse::<i64>();
            if applied.is_ok_and(|applied| applied >= revision) {
                continue;
            }
            let key = text(&entry.key);
            self.client.delete_as_read(&key, entry.mod_revision).await?;
        }
        Ok(())
    }
}

/// Enters what this node purges, one beside the other: each waits for the other nodes.
async fn enter_all(log: &Arc<Log>, mut appends: mpsc::Receiver<Append>) {
    let places = Arc::new(Semaphore::new(APPENDS_MAX));
    while let Some(append) = appends.recv().await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let log = Arc::clone(log);
        tokio::task::spawn_local(async move {
            log.answer(append).await;
            drop(place);
        });
    }
}

async fn apply(entry: &KeyValue, sink: &dyn PurgeLogSink) {
    sink.apply(&text(&entry.value)).await;
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A name that no other has.
fn random() -> String {
    let number = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", number(), number())
}
