//! `feed`: has responses stored, validated or purged as a feed says.
//!
//! ```toml
//! [[module]]
//! name = "news"
//! kind = "feed"
//! options.url = "http://cms.example/weir.txt"
//! options.mode = "gateway"
//! options.period_s = 30
//! ```
//!
//! It is called at no hook: one worker reads the feed in each period.

mod entries;
mod source;

use crate::options::{number_in, one_of, text, texts};
use entries::{Action, Entry, FeedError};
use source::Source;
use std::collections::HashSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;
use weir_extend::{
    Exchange, Fields, Hooks, Host, ListenerMode, LoadError, LogLevel, Module, ModuleKind,
    ModuleMetric, Options, Pending, StoredError, StoredTarget,
};

const OPTIONS: [&str; 5] = ["fields", "file", "mode", "period_s", "url"];

/// How often the feed is read, in seconds.
const PERIOD_S: u32 = 60;

/// Entries that are under way at one time: a feed must not take the next hops from clients.
const UNDER_WAY_MAX: usize = 4;

/// Failed entries of one reading that are logged; all are counted.
const LOGGED_MAX: u32 = 5;

pub(crate) struct Feed;

impl ModuleKind for Feed {
    fn name(&self) -> &'static str {
        "feed"
    }

    fn load(&self, mut options: Options) -> Result<Arc<dyn Module>, LoadError> {
        let (url, file) = (text(&mut options, "url")?, text(&mut options, "file")?);
        let is_gateway = one_of(&mut options, "mode", ["forward", "gateway"])?;
        let period_s = number_in(&mut options, "period_s", PERIOD_S, (1, 86_400))?;
        let fields = read_fields(&texts(&mut options, "fields")?)?;
        options.finish(&OPTIONS)?;
        let source = match (url, file) {
            (Some(url), None) => Source::Url(url),
            (None, Some(path)) => Source::File(path.into()),
            _ => {
                let what = "there is no feed, or there are two";
                let hint = "give `url`, such as \"http://a.example/feed\", or `file`";
                return Err(LoadError::new("url", what, hint));
            }
        };
        Ok(Arc::new(FeedModule(Arc::new(Shared {
            source,
            mode: match is_gateway {
                true => ListenerMode::Gateway,
                false => ListenerMode::Forward,
            },
            fields,
            period: Duration::from_secs(period_s.into()),
            done: Mutex::default(),
            counts: Counts::default(),
        }))))
    }
}

/// The fields of the requests, which select a variant.
fn read_fields(lines: &[String]) -> Result<Fields, LoadError> {
    let mut fields = Fields::default();
    for (index, line) in lines.iter().enumerate() {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let added = fields.add(name.trim(), value.trim().as_bytes());
        added.map_err(|error| {
            let what = format!("`{line}`: {error}");
            LoadError::new(format!("fields[{index}]"), what, "write `NAME: VALUE`")
        })?;
    }
    Ok(fields)
}

struct Shared {
    source: Source,
    mode: ListenerMode,
    fields: Fields,
    period: Duration,
    /// Entries of the feed that were done and are not done again as long as they stand in it.
    done: Mutex<HashSet<Entry>>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    fetched: AtomicU64,
    expired: AtomicU64,
    deleted: AtomicU64,
    failed: AtomicU64,
}

impl Shared {
    /// Reads the feed and does what it says.
    async fn read(&self, host: &Rc<dyn Host>) -> Result<(), FeedError> {
        let entries = entries::parse(&self.source.read(host).await?)?;
        let todo: Vec<Entry> = {
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            let listed: HashSet<&Entry> = entries.iter().collect();
            done.retain(|entry| listed.contains(entry));
            let is_new = |entry: &&Entry| !done.contains(*entry);
            entries.iter().filter(is_new).cloned().collect()
        };
        let mut logged = 0;
        let mut entries = todo.into_iter();
        let mut under_way: Vec<(Entry, Pending<Result<(), StoredError>>)> = Vec::new();
        loop {
            let free = UNDER_WAY_MAX - under_way.len();
            let begun = entries.by_ref().take(free);
            under_way.extend(begun.map(|it| (it.clone(), self.begin(&it, host))));
            if under_way.is_empty() {
                return Ok(());
            }
            let (entry, result) = next(&mut under_way).await;
            if let (Err(error), true) = (&result, logged < LOGGED_MAX) {
                logged += 1;
                let line = format!("{:?} {}: {error}", entry.action, entry.url);
                host.log(LogLevel::Warning, &line);
            }
            self.note(entry, result.is_ok());
        }
    }

    /// Begins an entry. What is not stored need not be expired or deleted.
    fn begin(&self, entry: &Entry, host: &Rc<dyn Host>) -> Pending<Result<(), StoredError>> {
        let mut target = StoredTarget::new(self.mode, &entry.url);
        target.fields = self.fields.clone();
        let stored = host.stored();
        match entry.action {
            Action::Fetch => {
                let fetched = stored.fetch(target);
                Box::pin(async { fetched.await.map(|_| ()) })
            }
            Action::Expire => {
                let expired = stored.set_expiry(target, Duration::ZERO);
                Box::pin(async { or_absent(expired.await) })
            }
            Action::Delete => {
                let deleted = stored.delete(target);
                Box::pin(async { or_absent(deleted.await.map(|_| ())) })
            }
        }
    }

    /// An entry is done, or has failed: that is tried again in the next period. Fetching is
    /// repeated in each: a fresh response is left as it is.
    fn note(&self, entry: Entry, is_done: bool) {
        let count = match (is_done, entry.action) {
            (false, _) => &self.counts.failed,
            (true, Action::Fetch) => &self.counts.fetched,
            (true, Action::Expire) => &self.counts.expired,
            (true, Action::Delete) => &self.counts.deleted,
        };
        count.fetch_add(1, Relaxed);
        if is_done && entry.action != Action::Fetch {
            let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            done.insert(entry);
        }
    }
}

fn or_absent(result: Result<(), StoredError>) -> Result<(), StoredError> {
    match result {
        Err(StoredError::NotStored) => Ok(()),
        result => result,
    }
}

/// The first of those under way that is ready.
async fn next<K, T>(under_way: &mut Vec<(K, Pending<T>)>) -> (K, T) {
    poll_fn(|cx| {
        for at in 0..under_way.len() {
            if let Poll::Ready(result) = under_way[at].1.as_mut().poll(cx) {
                let (key, _) = under_way.swap_remove(at);
                return Poll::Ready((key, result));
            }
        }
        Poll::Pending
    })
    .await
}

struct FeedModule(Arc<Shared>);

impl Module for FeedModule {
    fn hooks(&self) -> Hooks {
        Hooks::NONE
    }

    fn period(&self) -> Option<Duration> {
        Some(self.0.period)
    }

    fn tick(&self, host: &Rc<dyn Host>) -> Option<Pending<()>> {
        if host.worker() != 0 {
            return None;
        }
        let (shared, host) = (Arc::clone(&self.0), Rc::clone(host));
        Some(Box::pin(async move {
            if let Err(FeedError(what)) = shared.read(&host).await {
                host.log(LogLevel::Error, &format!("the feed is not used: {what}"));
            }
        }))
    }

    fn metrics(&self) -> Vec<ModuleMetric> {
        let counts = &self.0.counts;
        let counted = [
            ("fetched", &counts.fetched),
            ("expired", &counts.expired),
            ("deleted", &counts.deleted),
            ("failed", &counts.failed),
        ];
        let counted = counted.into_iter().map(|(name, value)| ModuleMetric {
            name: name.to_owned(),
            value: value.load(Relaxed),
        });
        counted.collect()
    }

    fn begin(&self, _: &Rc<dyn Host>) -> Box<dyn Exchange> {
        Box::new(Nothing)
    }
}

/// The module is called for no request.
struct Nothing;

impl Exchange for Nothing {}

#[cfg(test)]
mod tests;
