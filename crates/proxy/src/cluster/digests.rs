//! What nodes hold, as far as their digests say: the digest of this node, and those of the others.
//!
//! The digest of this node is made of what its store holds when a member asks for it: nothing on
//! the way of a request is told of what is stored or evicted.

use crate::cluster::members::Cluster;
use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_policy::route::{
    Applied, DigestError, DigestReader, DigestUpdate, DigestVersion, DigestWriter, HoldsIt,
    RESPONSES_MAX, tag_key,
};
use weir_policy::{Digest, Secret};
use weir_store::MemoryStore;

/// What a request for a digest asks for; the version that is known is behind it.
pub(crate) const TARGET: &str = "/weir/digest";

/// The store is walked at most this often.
const WALK_PAUSE: Duration = Duration::from_secs(1);

/// Room of a new digest beyond what is held, so that additions go on for a while: one in so many.
const SPARE_SHARE: u64 = 4;

/// Room of the smallest digest, responses.
const ROOM_MIN: u64 = 4096;

/// Messages that are made at a time; they are not charged yet.
const MADE_AT_ONCE_MAX: u32 = 2;

/// The digests that a process has.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    /// Locked while the store is walked, by threads that nothing waits for, and by no worker.
    own: Mutex<Option<OwnDigest>>,
    own_bytes: AtomicUsize,
    /// Messages that are being made.
    making: AtomicU32,
    /// Of the other nodes, by name. Each is locked for a fraction of a millisecond: workers look
    /// into it.
    others: Mutex<BTreeMap<Box<str>, Arc<Mutex<DigestReader>>>>,
}

/// The digest of another node that is not looked into any more.
#[derive(Debug)]
pub(crate) struct ForgottenDigest(
    #[expect(dead_code, reason = "it is dropped")] Arc<Mutex<DigestReader>>,
);

/// The digest of this node.
#[derive(Debug)]
struct OwnDigest {
    /// Its node's name: a reload may change that.
    node: Box<str>,
    /// The key of its tags: a reload may change the cluster's secret, of which it is made.
    key: Secret,
    writer: DigestWriter,
    walked: Instant,
}

impl Digests {
    /// What a member needs that has `known` of this node's digest. Walks the store: for a thread
    /// that nothing else waits for.
    pub(crate) fn message_for(
        &self,
        cluster: &Cluster,
        store: &MemoryStore,
        known: Option<DigestVersion>,
    ) -> Vec<u8> {
        let mut own = lock(&self.own);
        let digest = own.take().filter(|digest| digest.is_of(cluster));
        let digest = match digest {
            Some(digest) if digest.walked.elapsed() < WALK_PAUSE => digest,
            digest => OwnDigest::walk(digest.map(|digest| digest.writer), cluster, store),
        };
        let bytes = digest.writer.bytes();
        self.own_bytes.store(bytes, Ordering::Relaxed);
        let message = digest.writer.message_for(known);
        *own = Some(digest);
        message
    }

    /// The version of the digest of `node` that is known here.
    pub(crate) fn version(&self, node: &str) -> Option<DigestVersion> {
        let reader = self.reader(node)?;
        lock(&reader).version()
    }

    /// Takes what a message of `node` says: milliseconds, for a thread that nothing waits for.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(crate) fn apply(&self, node: &str, mut update: DigestUpdate) -> Result<(), DigestError> {
        let reader = Arc::clone(lock(&self.others).entry(node.into()).or_default());
        while lock(&reader).apply(&mut update)? == Applied::Part {}
        Ok(())
    }

    /// Whether `node` holds the response of a target; `key_of` makes the key of a store with this
    /// secret.
    pub(crate) fn holds(&self, node: &str, key_of: impl FnOnce(&Secret) -> Digest) -> HoldsIt {
        let Some(reader) = self.reader(node) else {
            return HoldsIt::Unknown;
        };
        let reader = lock(&reader);
        let Some(keys) = reader.keys() else {
            return HoldsIt::Unknown;
        };
        // of the secret that the node had when it began this digest
        reader.holds(tag_key(&keys.tags, key_of(&keys.store).0))
    }

    /// Forgets the digests of nodes for which `is_kept` is `false`: what is left of them, which is
    /// memory that takes milliseconds to give back.
    pub(crate) fn retain(&self, is_kept: impl Fn(&str) -> bool) -> Vec<ForgottenDigest> {
        let mut others = lock(&self.others);
        let gone: Vec<Box<str>> = others
            .keys()
            .filter(|name| !is_kept(name))
            .cloned()
            .collect();
        let gone = gone.iter().filter_map(|name| others.remove(name));
        gone.map(ForgottenDigest).collect()
    }

    /// Bytes of all digests: of this node, and of the others without `node`.
    pub(crate) fn bytes_without(&self, node: &str) -> usize {
        let own = self.own_bytes.load(Ordering::Relaxed);
        let others: Vec<_> = lock(&self.others)
            .iter()
            .filter(|(name, _)| ***name != *node)
            .map(|(_, reader)| Arc::clone(reader))
            .collect();
        own + others
            .iter()
            .map(|reader| lock(reader).bytes())
            .sum::<usize>()
    }

    /// Bytes of all digests.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes_without("")
    }

    fn reader(&self, node: &str) -> Option<Arc<Mutex<DigestReader>>> {
        lock(&self.others).get(node).cloned()
    }
}

/// A message that is being made, until this is dropped.
#[derive(Debug)]
pub(crate) struct Making(Arc<Digests>);

impl Making {
    /// One more; `None` if there are as many as may be.
    pub(crate) fn begin(digests: &Arc<Digests>) -> Option<Self> {
        let making = digests.making.fetch_add(1, Ordering::Relaxed);
        // it is taken out of the count again where there are too many
        let made = Self(Arc::clone(digests));
        (making < MADE_AT_ONCE_MAX).then_some(made)
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.0.making.fetch_sub(1, Ordering::Relaxed);
    }
}

impl OwnDigest {
    /// Whether it is of this node with this secret.
    fn is_of(&self, cluster: &Cluster) -> bool {
        *self.node == *cluster.own_name() && self.key.0 == cluster.digest_key().0
    }

    /// The digest of what `store` holds now: `writer`, as far as it can be added to.
    fn walk(writer: Option<DigestWriter>, cluster: &Cluster, store: &MemoryStore) -> Self {
        let mut held = 0;
        let mut writer = writer;
        store.tags(|tag| {
            held += 1;
            if let Some(writer) = &mut writer {
                writer.add(cluster.digest_key_of(tag));
            }
        });
        let known = writer.map(|mut writer| {
            writer.note_held(held);
            writer
        });
        let writer = known.filter(|writer| !writer.is_outdated());
        let writer = writer.unwrap_or_else(|| begin(cluster, store, held));
        Self {
            node: cluster.own_name().into(),
            key: *cluster.digest_key(),
            writer,
            walked: Instant::now(),
        }
    }
}

/// A new epoch, for a store that held so many responses.
fn begin(cluster: &Cluster, store: &MemoryStore, held: u64) -> DigestWriter {
    // no other digest of this node has it
    let epoch = RandomState::new().build_hasher().finish();
    let room = (held + held / SPARE_SHARE).clamp(ROOM_MIN, RESPONSES_MAX);
    let key = cluster.seal_digest(epoch, *store.secret());
    let mut writer = DigestWriter::new(epoch, key, room);
    let mut held = 0;
    store.tags(|tag| {
        held += 1;
        writer.add(cluster.digest_key_of(tag));
    });
    writer.note_held(held);
    writer
}

/// The version that is known, of the target of a request for a digest; `None` if it is none.
pub(crate) fn known_of(target: &str) -> Option<Option<DigestVersion>> {
    let rest = target.strip_prefix(TARGET)?;
    if rest.is_empty() {
        return Some(None);
    }
    let (epoch, additions) = rest.strip_prefix('?')?.split_once('-')?;
    Some(Some(DigestVersion {
        epoch: epoch.parse().ok()?,
        additions: additions.parse().ok()?,
    }))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A worker waits for no walk of the store: it asks for bytes and versions while one goes on.
    #[test]
    fn bytes_are_known_while_the_digest_of_this_node_is_made() {
        let digests = Arc::new(Digests::default());
        let made = lock(&digests.own);
        let (sender, receiver) = std::sync::mpsc::channel();
        let asking = Arc::clone(&digests);
        std::thread::spawn(move || sender.send((asking.bytes(), asking.version("b"))));
        let known = receiver.recv_timeout(Duration::from_secs(20));
        assert_eq!(known, Ok((0, None)));
        drop(made);
    }

    #[test]
    fn target_of_a_request_says_which_version_is_known() {
        let check = |target: &str, expected| assert_eq!(known_of(target), expected, "{target}");
        let version = DigestVersion {
            epoch: u64::MAX,
            additions: 12,
        };
        check("/weir/digest", Some(None));
        check("/weir/digest?18446744073709551615-12", Some(Some(version)));
        for other in [
            "/",
            "/weir/digests",
            "/weir/digest?",
            "/weir/digest?1",
            "/weir/digest?1-x",
        ] {
            check(other, None);
        }
    }
}
