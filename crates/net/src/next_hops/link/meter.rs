//! One link as all workers share it.

use super::save_signal::SaveSignal;
use crate::clock::Clock;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_policy::budget::{
    Admission, BackgroundRoom, Class, CountedBytes, Link, LinkReport, LinkRules, Permit, SavedLink,
    SpentNow, Transfer, WindowWork,
};
use weir_policy::{Now, Tick};

/// A link, and what was counted of it.
pub struct LinkMeter {
    name: Arc<str>,
    /// Locked for a decision, never across an await.
    link: Mutex<Link>,
    clock: Clock,
    saves: Arc<SaveSignal>,
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    refused: AtomicU64,
    waited_ms: AtomicU64,
    /// Something was refused since its quota is spent, and those who watch it know.
    is_spent_seen: AtomicBool,
}

/// What was counted of a link since the process began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Bytes read from next hops behind it.
    pub received_bytes: u64,
    /// Bytes written to them.
    pub sent_bytes: u64,
    /// Requests that were not sent since its quota was spent.
    pub refused: u64,
    /// How long transfers waited for it, all together, milliseconds.
    pub waited_ms: u64,
}

/// A link that has spent its quota.
#[derive(Clone, Debug)]
pub struct SpentLink {
    /// The link.
    pub link: Arc<LinkMeter>,
    /// What follows, and until when.
    pub now: SpentNow,
}

impl SpentLink {
    /// Counts a request that is sent to no next hop for that reason.
    pub fn refuse(&self) {
        self.link.refused.fetch_add(1, Ordering::Relaxed);
        self.link.spent_seen();
    }
}

impl fmt::Debug for LinkMeter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkMeter")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl LinkMeter {
    /// The link called `name`; `saves` is told when its state is to be written.
    #[must_use]
    pub fn new(name: &str, link: Link, clock: Clock, saves: Arc<SaveSignal>) -> Self {
        Self {
            name: name.into(),
            link: Mutex::new(link),
            clock,
            saves,
            received_bytes: AtomicU64::new(0),
            sent_bytes: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            waited_ms: AtomicU64::new(0),
            is_spent_seen: AtomicBool::new(false),
        }
    }

    /// What messages call it.
    #[must_use]
    pub const fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Has it go on with other rules.
    pub fn set_rules(&self, rules: LinkRules) {
        let now = self.clock.now();
        self.lock().set_rules(rules, now);
        self.saves.due();
    }

    /// Why no request may be sent over it now, if none may.
    #[must_use]
    pub fn spent(self: &Arc<Self>) -> Option<SpentLink> {
        let Admission::Spent(now) = self.look() else {
            return None;
        };
        let link = Arc::clone(self);
        Some(SpentLink { link, now })
    }

    /// Whether a request may be sent over it now.
    #[must_use]
    pub fn look(&self) -> Admission {
        let now = self.clock.now();
        self.lock().admit(now)
    }

    /// What it has for transfers that no client waits for.
    #[must_use]
    pub fn background(&self) -> BackgroundRoom {
        let now = self.clock.now();
        self.lock().background(now)
    }

    /// What is done over it for no client.
    #[must_use]
    pub fn window_work(&self) -> WindowWork {
        let now = self.clock.now();
        self.lock().window_work(now)
    }

    /// A popular stored response is validated over it for no client.
    pub fn refreshed(&self) {
        let now = self.clock.now();
        self.lock().refreshed(now);
    }

    /// The state to be written now, if there is one. [`Self::saved`] is to be called next.
    #[must_use]
    pub fn to_save(&self) -> Option<SavedLink> {
        let now = self.clock.now();
        self.lock().to_save(now)
    }

    /// The state with this sequence is written, or cannot be.
    pub fn saved(&self, sequence: u64) {
        self.lock().saved(sequence);
    }

    /// The last state to be written.
    #[must_use]
    pub fn close(&self) -> Option<SavedLink> {
        let now = self.clock.now();
        self.lock().close(now)
    }

    /// What operators see of it.
    #[must_use]
    pub fn report(&self) -> (LinkCounts, LinkReport) {
        let now = self.clock.now();
        let report = self.lock().report(now);
        if report.quota.is_none_or(|quota| !quota.is_spent) {
            self.is_spent_seen.store(false, Ordering::Relaxed);
        }
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let counts = LinkCounts {
            received_bytes: of(&self.received_bytes),
            sent_bytes: of(&self.sent_bytes),
            refused: of(&self.refused),
            waited_ms: of(&self.waited_ms),
        };
        (counts, report)
    }

    /// How many bytes of `transfer` may be moved now, of `wanted`; the class that it is of.
    pub(super) fn permit(&self, transfer: &Transfer, wanted: u64) -> (Class, Permit) {
        let now = self.clock.now();
        let mut link = self.lock();
        let class = link.class(now, transfer);
        let permit = link.permit(now, class, wanted);
        let is_to_be_saved = link.is_to_be_saved();
        drop(link);
        if is_to_be_saved {
            self.saves.due();
        }
        if matches!(permit, Permit::Spent(_)) {
            self.spent_seen();
        }
        (class, permit)
    }

    /// So many bytes of `transfer` were read, of them `granted` by a grant.
    pub(super) fn received(&self, transfer: &mut Transfer, bytes: u64, granted: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.used(transfer, bytes, granted);
    }

    /// So many bytes of `transfer` were written, of them `granted` by a grant.
    pub(super) fn sent(&self, transfer: &mut Transfer, bytes: u64, granted: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.used(transfer, bytes, granted);
    }

    fn used(&self, transfer: &mut Transfer, bytes: u64, granted: u64) {
        let now = self.clock.now();
        let mut link = self.lock();
        link.used(now, bytes, granted);
        link.moved(now, transfer, bytes);
    }

    /// Bytes were written that are not counted.
    pub(super) fn sent_uncounted(&self, bytes: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What was granted is not used.
    pub(super) fn give_back(&self, class: Class, bytes: u64) {
        self.lock().give_back(class, bytes);
    }

    /// The kernel may take so many bytes of a new connection before they are read.
    pub(super) fn opened(&self, window_bytes: u64) {
        self.lock().opened(window_bytes);
    }

    /// The kernel may take so many bytes more of one.
    pub(super) fn widened(&self, window_bytes: u64) {
        self.lock().widened(window_bytes);
    }

    /// The widest window that a connection should have now, bytes.
    pub(super) fn widest_window(&self) -> Option<u64> {
        let now = self.clock.now();
        self.lock().widest_window(now)
    }

    /// It may not any more.
    pub(super) fn closed(&self, window_bytes: u64) {
        self.lock().closed(window_bytes);
    }

    /// Whether bytes that are sent are counted, and whether there is a quota.
    pub(crate) fn counts(&self) -> (bool, bool) {
        let link = self.lock();
        let rules = link.rules();
        (rules.count == CountedBytes::Both, rules.quota.is_some())
    }

    /// A transfer waited for it since `since`.
    pub(super) fn waited(&self, since: Tick) {
        let ms = self.now().tick.ms_since(since);
        self.waited_ms.fetch_add(ms, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Something is refused since the quota is spent: those who watch the link are woken once.
    fn spent_seen(&self) {
        if !self.is_spent_seen.swap(true, Ordering::Relaxed) {
            self.saves.due();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
