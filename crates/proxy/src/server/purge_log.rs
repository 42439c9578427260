//! The log of purges that nodes of a cluster share, as this process follows it.

use crate::cache::invalidate::DURABLE_WAIT;
use crate::cache::purge::{apply, outcome, validate_all};
use crate::cluster::purges::PurgedTarget;
use crate::config::{Config, MembersSource};
use crate::worker::shared::Shared;
use std::future::{Future, ready};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use weir_cluster::Source;
use weir_cluster::etcd::{APPLY_MAX, LogPosition, PurgeLog, PurgeLogSink};
use weir_measure::Metric;
use weir_policy::now::Tick;
use weir_semantics::{PurgeOrder, PurgedTarget as WrittenTarget};

/// Where the position in the log is kept, in the first directory of the store on disk.
const POSITION_FILE: &str = "purge-log";

/// The longest content of that file, bytes.
const POSITION_BYTES_MAX: u64 = 256;

/// The log that is followed.
#[derive(Debug)]
pub(super) struct FollowedLog {
    source: Source,
    node: String,
    pub(super) log: Arc<PurgeLog>,
}

impl FollowedLog {
    /// Follows the log that `config` names; goes on with `before` if that is the same. `None` if
    /// there is no log. `directory` is the first one of the store on disk, if there is one.
    ///
    /// # Errors
    ///
    /// A thread cannot be started.
    pub(super) fn follow(
        config: &Config,
        shared: &Arc<Shared>,
        directory: Option<&Path>,
        before: Option<Arc<Self>>,
    ) -> io::Result<Option<Arc<Self>>> {
        let MembersSource::Of(source) = &config.cluster.source else {
            return Ok(None);
        };
        let (Source::Etcd { endpoints, prefix }, Some(node)) = (source, &config.cluster.node)
        else {
            return Ok(None);
        };
        if let Some(before) = before
            && before.source == *source
            && before.node == *node
        {
            return Ok(Some(before));
        }
        let file = directory.map(|directory| directory.join(POSITION_FILE));
        let position = file.as_deref().and_then(read_position);
        let sink = LogSink {
            shared: Arc::downgrade(shared),
            file,
            hold: APPLY_MAX,
            is_begun: AtomicBool::new(false),
        };
        // what is on disk may be purged, and nothing is served before that is known
        sink.lost(Some(Duration::ZERO));
        let etcd = (&**endpoints, shared.network.resolver().clone());
        let log = PurgeLog::start(etcd, prefix, node, position, Arc::new(sink))?;
        Ok(Some(Arc::new(Self {
            source: source.clone(),
            node: node.clone(),
            log: Arc::new(log),
        })))
    }
}

/// A purge as the log has it.
pub(super) fn written(what: &PurgedTarget) -> String {
    let what = match what {
        PurgedTarget::Invalidated { mode, url } => WrittenTarget::Invalidated {
            mode: mode.as_str(),
            url,
        },
        PurgedTarget::Url(url) => WrittenTarget::Url(url),
        PurgedTarget::All => WrittenTarget::All,
        PurgedTarget::Validate => WrittenTarget::Validate,
    };
    let mut line = String::new();
    PurgeOrder { hold_ms: 0, what }.write(&mut line);
    line
}

/// Applies what the log has.
struct LogSink {
    /// It outlives a proxy that ends.
    shared: Weak<Shared>,
    file: Option<PathBuf>,
    /// How long what is applied is fetched from the origin alone.
    hold: Duration,
    /// It has read the log once.
    is_begun: AtomicBool,
}

impl PurgeLogSink for LogSink {
    fn apply(&self, purge: &str) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let order = PurgeOrder::read(purge.trim_end_matches('\n'));
        let (Some(shared), Some(order)) = (self.shared.upgrade(), order) else {
            return Box::pin(ready(()));
        };
        let what = match order.what {
            WrittenTarget::Invalidated { url, .. } | WrittenTarget::Url(url) => {
                PurgedTarget::Url(url.to_owned())
            }
            WrittenTarget::All => PurgedTarget::All,
            WrittenTarget::Validate => PurgedTarget::Validate,
        };
        // another node may be behind: then it has lost touch by the end of the hold, and validates
        let purges = apply(&shared, &what, self.hold).unwrap_or_default();
        let counters = shared.common_counters();
        counters.add_shared(Metric::PurgeLogApplied, 1);
        let removed: usize = purges.iter().map(|purge| purge.removed).sum();
        counters.add_shared(Metric::Purged, removed as u64);
        Box::pin(async move {
            let until = Instant::now() + DURABLE_WAIT;
            outcome(&shared, purges, until).await;
        })
    }

    fn missed(&self) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        // before it is written that the log was read
        if let Some((file, demand)) = validate_all(&shared) {
            // a failure is reported there, and keeps the position in the log where it was
            let _kept = file.write_now(demand);
        }
        // without a disk there is nothing that an earlier process has stored; this one may have,
        // while etcd was away
        if !self.is_begun.swap(true, Ordering::Relaxed) && self.file.is_none() {
            return;
        }
        shared
            .common_counters()
            .add_shared(Metric::PurgeLogMissed, 1);
    }

    fn lost(&self, ago: Option<Duration>) {
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let now = shared.clock().now().tick;
        let when = ago.map(|ago| {
            let ms = u64::try_from(ago.as_millis()).unwrap_or(u64::MAX);
            Tick(now.0.saturating_sub(ms))
        });
        shared.settings.load().membership.valid_since.lost(when);
        if when.is_some() {
            // no newcomer waits for a response to a request from before
            shared.collapsed.forget_all();
        }
        let line = match ago {
            Some(ago) if !ago.is_zero() => {
                "touch with the log of purges is lost: what was stored before is validated until it is back"
            }
            Some(_) => return,
            None => "all purges of the log are applied",
        };
        (shared.say)(&format!("cluster: {line}"));
    }

    fn reached(&self, position: &LogPosition) {
        self.is_begun.store(true, Ordering::Relaxed);
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let valid_since = shared
            .settings
            .load()
            .membership
            .valid_since
            .file
            .get()
            .cloned();
        if valid_since.is_some_and(|kept| !kept.write_if_due()) {
            // the next process has to find that it has missed what is before this position
            return;
        }
        if let Some(file) = &self.file
            && let Err(error) = write_position(file, position)
        {
            let file = file.display();
            (shared.say)(&format!("cluster: cannot write `{file}`: {error}"));
        }
    }
}

/// The position in the file, if there is one.
fn read_position(file: &Path) -> Option<LogPosition> {
    let is_small = std::fs::metadata(file).ok()?.len() <= POSITION_BYTES_MAX;
    let text = is_small
        .then(|| std::fs::read_to_string(file).ok())
        .flatten()?;
    let (log, revision) = text.trim_end().split_once(' ')?;
    Some(LogPosition {
        log: log.to_owned(),
        revision: revision.parse().ok()?,
    })
}

/// Writes a new file in the place of the one before: after a crash there is one of the two, and
/// purges that are applied twice do no harm.
fn write_position(file: &Path, position: &LogPosition) -> io::Result<()> {
    let new = file.with_extension("new");
    std::fs::write(&new, format!("{} {}\n", position.log, position.revision))?;
    std::fs::rename(new, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_is_read_as_it_was_written_and_damage_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(POSITION_FILE);
        assert_eq!(read_position(&file), None);
        let position = LogPosition {
            log: "0123abcd".into(),
            revision: 42,
        };
        write_position(&file, &position).expect("a file");
        assert_eq!(read_position(&file), Some(position));
        for damaged in ["", "0123abcd", "0123abcd x\n", &"x 1".repeat(100)] {
            std::fs::write(&file, damaged).expect("a file");
            assert_eq!(read_position(&file), None, "{damaged:?}");
        }
    }
}
