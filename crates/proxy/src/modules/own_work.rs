//! What modules have under way of their own, beside requests of clients: how much that may be.

use super::status::ModuleStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most requests and calls of all modules of the process that are under way at once: each may have
/// a connection.
pub(crate) const OWN_WORK_MAX: usize = 256;

/// Most bytes of content that all of them hold for their modules.
pub(crate) const OWN_CONTENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What all modules have under way.
#[derive(Debug, Default)]
pub(crate) struct OwnWork {
    count: AtomicUsize,
    content_bytes: AtomicUsize,
}

/// The place of one request or call among those under way, and the content that it holds. Dropping
/// it gives both back.
#[derive(Debug)]
pub(crate) struct OwnPlace {
    all: Arc<OwnWork>,
    /// Of the module; `None` for the operator's.
    status: Option<Arc<ModuleStatus>>,
    content_bytes: usize,
}

impl OwnPlace {
    /// A place for a module with this status, which may have `module_max` at once; or for the
    /// operator. `None` if there is none.
    pub(crate) fn take(
        all: &Arc<OwnWork>,
        module: Option<(&Arc<ModuleStatus>, usize)>,
    ) -> Option<Self> {
        if !add(&all.count, 1, OWN_WORK_MAX) {
            return None;
        }
        let mut place = Self {
            all: Arc::clone(all),
            status: None,
            content_bytes: 0,
        };
        if let Some((status, module_max)) = module {
            if !add(status.own_work(), 1, module_max) {
                return None;
            }
            place.status = Some(Arc::clone(status));
        }
        Some(place)
    }

    /// Holds `bytes` more of content; `false` if there is no room for them.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        let has_room = add(&self.all.content_bytes, bytes, OWN_CONTENT_BYTES_MAX);
        if has_room {
            self.content_bytes += bytes;
        }
        has_room
    }
}

impl Drop for OwnPlace {
    fn drop(&mut self) {
        self.all.count.fetch_sub(1, Ordering::Relaxed);
        let content = &self.all.content_bytes;
        content.fetch_sub(self.content_bytes, Ordering::Relaxed);
        if let Some(status) = &self.status {
            status.own_work().fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Adds to a count, unless it would be more than `most`.
fn add(count: &AtomicUsize, more: usize, most: usize) -> bool {
    let sum = |now: usize| now.checked_add(more).filter(|sum| *sum <= most);
    count
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_and_all_modules_have_no_more_under_way_than_they_may() {
        let (all, one, other) = (Arc::default(), Arc::default(), Arc::default());
        let take = |status| OwnPlace::take(&all, Some((status, 2)));
        let mut places = vec![
            take(&one).expect("the first"),
            take(&one).expect("the second"),
        ];
        assert!(take(&one).is_none());
        places.push(take(&other).expect("another module's"));
        places.extend((3..OWN_WORK_MAX).map(|_| OwnPlace::take(&all, None).expect("a place")));
        assert!(OwnPlace::take(&all, None).is_none());
        drop(places);
        assert!(take(&one).is_some());
        assert_eq!(all.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn content_of_all_modules_is_bounded_and_given_back() {
        let all = Arc::default();
        let place = || OwnPlace::take(&all, None).expect("a place");
        let (mut one, mut other) = (place(), place());
        assert!(one.hold(OWN_CONTENT_BYTES_MAX - 1) && other.hold(1));
        assert!(!other.hold(1) && other.hold(0));
        drop(one);
        assert!(other.hold(OWN_CONTENT_BYTES_MAX - 1));
        assert!(!other.hold(usize::MAX));
        drop(other);
        assert_eq!(all.content_bytes.load(Ordering::Relaxed), 0);
    }
}
