//! What modules and the operator have under way of their own, beside requests of clients: how much
//! that may be.
//!
//! The operator has a share of its own, so that modules cannot keep an operator from the stored
//! responses. Each module has a small share that no other takes, and beyond it uses the share that
//! is common to all modules.

use super::status::ModuleStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_extend::WHOLE_CONTENT_BYTES_MAX;
use weir_policy::extension::MODULES_MAX;

/// What may be under way at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    /// Requests and calls: each may have a connection.
    count: usize,
    /// Bytes of content that they hold.
    content_bytes: usize,
}

/// Of the operator: the admin interface takes two requests with whole content at once.
const OPERATOR_MAX: Amount = Amount {
    count: 16,
    content_bytes: 2 * WHOLE_CONTENT_BYTES_MAX,
};

/// Of each module, whatever the others have.
const MODULE_SHARE: Amount = Amount {
    count: 4,
    content_bytes: 512 * 1024,
};

/// Of all modules together, beyond the share that each has: the largest response is as large.
const COMMON_MAX: Amount = Amount {
    count: 128,
    content_bytes: 16 * 1024 * 1024,
};

/// Of all modules of a configuration together.
const _: () = {
    assert!(COMMON_MAX.count + MODULES_MAX * MODULE_SHARE.count == 256);
    let content_bytes = COMMON_MAX.content_bytes + MODULES_MAX * MODULE_SHARE.content_bytes;
    assert!(content_bytes == 32 * 1024 * 1024);
};

impl Amount {
    fn plus(self, more: Self) -> Option<Self> {
        Some(Self {
            count: self.count.checked_add(more.count)?,
            content_bytes: self.content_bytes.checked_add(more.content_bytes)?,
        })
    }

    /// What of it is not in `other`.
    fn beyond(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_sub(other.count),
            content_bytes: self.content_bytes.saturating_sub(other.content_bytes),
        }
    }

    fn is_within(self, most: Self) -> bool {
        self.beyond(most) == Self::default()
    }
}

/// What all of them have under way.
#[derive(Debug)]
pub(crate) struct OwnWork {
    used: Mutex<Used>,
    operator_max: Amount,
}

impl Default for OwnWork {
    fn default() -> Self {
        Self {
            used: Mutex::default(),
            operator_max: OPERATOR_MAX,
        }
    }
}

#[derive(Debug, Default)]
struct Used {
    operator: Amount,
    /// By module; those that have nothing under way are left out.
    modules: Vec<(Arc<ModuleStatus>, Amount)>,
}

impl Used {
    /// Of the module with this status; of the operator for `None`.
    fn of(&self, status: Option<&Arc<ModuleStatus>>) -> Amount {
        let Some(status) = status else {
            return self.operator;
        };
        let mut modules = self.modules.iter();
        let module = modules.find(|(other, _)| Arc::ptr_eq(other, status));
        module.map_or_else(Amount::default, |(_, amount)| *amount)
    }

    fn set(&mut self, status: Option<&Arc<ModuleStatus>>, amount: Amount) {
        let Some(status) = status else {
            self.operator = amount;
            return;
        };
        self.modules
            .retain(|(other, _)| !Arc::ptr_eq(other, status));
        if amount != Amount::default() {
            self.modules.push((Arc::clone(status), amount));
        }
    }

    /// What modules have of the common share.
    fn common(&self) -> Amount {
        let modules = self.modules.iter();
        modules.fold(Amount::default(), |all, (_, amount)| {
            let more = amount.beyond(MODULE_SHARE);
            all.plus(more).unwrap_or(COMMON_MAX)
        })
    }

    /// Takes `more`, if there is so much; the operator's share is `operator_max`.
    fn take(
        &mut self,
        status: Option<&Arc<ModuleStatus>>,
        more: Amount,
        operator_max: Amount,
    ) -> bool {
        let before = self.of(status);
        let Some(after) = before.plus(more) else {
            return false;
        };
        let has_room = match status {
            None => after.is_within(operator_max),
            Some(_) => {
                let more = after
                    .beyond(MODULE_SHARE)
                    .beyond(before.beyond(MODULE_SHARE));
                // of what is in its own share nothing is common
                more == Amount::default()
                    || self
                        .common()
                        .plus(more)
                        .is_some_and(|all| all.is_within(COMMON_MAX))
            }
        };
        if has_room {
            self.set(status, after);
        }
        has_room
    }
}

impl OwnWork {
    /// Of this program's own messages to other members, which take places as the operator does: so
    /// many at once, whose responses have so many bytes of content.
    pub(crate) fn of_messages(count: usize, content_bytes: usize) -> Self {
        Self {
            used: Mutex::default(),
            operator_max: Amount {
                count,
                content_bytes,
            },
        }
    }

    /// Takes `more`, if there is so much.
    fn take(&self, status: Option<&Arc<ModuleStatus>>, more: Amount) -> bool {
        self.used().take(status, more, self.operator_max)
    }

    /// Locked for one decision.
    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of one request or call among those under way, and the content that it holds. Dropping
/// it gives both back.
#[derive(Debug)]
pub(crate) struct OwnPlace {
    all: Arc<OwnWork>,
    /// Of the module; `None` for the operator's.
    status: Option<Arc<ModuleStatus>>,
    held: Amount,
}

impl OwnPlace {
    /// A place for a module with this status, which may have `module_max` at once; or for the
    /// operator. `None` if there is none.
    pub(crate) fn take(
        all: &Arc<OwnWork>,
        module: Option<(&Arc<ModuleStatus>, usize)>,
    ) -> Option<Self> {
        let held = Amount {
            count: 1,
            content_bytes: 0,
        };
        let status = module.map(|(status, _)| status);
        let mut used = all.used();
        let is_permitted = module.is_none_or(|(_, most)| used.of(status).count < most);
        let is_taken = is_permitted && used.take(status, held, all.operator_max);
        is_taken.then(|| Self {
            all: Arc::clone(all),
            status: status.map(Arc::clone),
            held,
        })
    }

    /// Holds `bytes` more of content; `false` if there is no room for them.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        let more = Amount {
            count: 0,
            content_bytes: bytes,
        };
        let has_room = self.all.take(self.status.as_ref(), more);
        if has_room {
            self.held.content_bytes += bytes;
        }
        has_room
    }
}

impl Drop for OwnPlace {
    fn drop(&mut self) {
        let status = self.status.as_ref();
        let mut used = self.all.used();
        let left = used.of(status).beyond(self.held);
        used.set(status, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places for what may be taken of as many as that.
    fn take_all(
        all: &Arc<OwnWork>,
        module: Option<(&Arc<ModuleStatus>, usize)>,
        most: usize,
    ) -> Vec<OwnPlace> {
        (0..most)
            .map_while(|_| OwnPlace::take(all, module))
            .collect()
    }

    #[test]
    fn module_has_no_more_under_way_than_it_may() {
        let (all, one, other) = (Arc::default(), Arc::default(), Arc::default());
        let places = take_all(&all, Some((&one, 2)), 9);
        assert_eq!(places.len(), 2);
        assert_eq!(take_all(&all, Some((&other, 2)), 9).len(), 2);
        drop(places);
        assert!(OwnPlace::take(&all, Some((&one, 2))).is_some());
        let used = all.used();
        assert!(used.modules.is_empty(), "{used:?}");
    }

    #[test]
    fn modules_that_take_all_that_they_can_leave_the_share_of_others_and_of_the_operator() {
        let (all, one, two, late) = (
            Arc::default(),
            Arc::default(),
            Arc::default(),
            Arc::default(),
        );
        let first = take_all(&all, Some((&one, 1000)), 1000);
        assert_eq!(first.len(), COMMON_MAX.count + MODULE_SHARE.count);
        for status in [&two, &late] {
            let places = take_all(&all, Some((status, 1000)), 1000);
            assert_eq!(places.len(), MODULE_SHARE.count);
        }
        assert_eq!(take_all(&all, None, 1000).len(), OPERATOR_MAX.count);
        drop(first);
        let second = take_all(&all, Some((&two, 1000)), 1000);
        assert_eq!(second.len(), COMMON_MAX.count + MODULE_SHARE.count);
    }

    #[test]
    fn operator_that_takes_all_leaves_the_modules_theirs() {
        let (all, one) = (Arc::default(), Arc::default());
        let operator = take_all(&all, None, 1000);
        assert_eq!(operator.len(), OPERATOR_MAX.count);
        let places = take_all(&all, Some((&one, 1000)), 1000);
        assert_eq!(places.len(), COMMON_MAX.count + MODULE_SHARE.count);
    }

    #[test]
    fn messages_to_members_have_the_places_and_the_content_that_were_named() {
        let all = Arc::new(OwnWork::of_messages(2, 10));
        let mut places = take_all(&all, None, 9);
        assert_eq!(places.len(), 2);
        assert!(places[0].hold(9) && !places[1].hold(2) && places[1].hold(1));
        drop(places);
        assert_eq!(take_all(&all, None, 9).len(), 2);
    }

    #[test]
    fn content_is_bounded_for_a_module_all_of_them_and_the_operator_and_given_back() {
        let (all, one, other) = (Arc::default(), Arc::default(), Arc::default());
        let place = |module| OwnPlace::take(&all, module).expect("a place");
        let (mut greedy, mut second) = (place(Some((&one, 9))), place(Some((&one, 9))));
        let (mut modest, mut operator) = (place(Some((&other, 9))), place(None));
        let most = COMMON_MAX.content_bytes + MODULE_SHARE.content_bytes;
        assert!(greedy.hold(most - 1) && second.hold(1));
        assert!(!second.hold(1) && second.hold(0));
        assert!(modest.hold(MODULE_SHARE.content_bytes) && !modest.hold(1));
        assert!(operator.hold(OPERATOR_MAX.content_bytes) && !operator.hold(1));
        drop(greedy);
        assert!(modest.hold(COMMON_MAX.content_bytes) && !modest.hold(usize::MAX));
        drop((second, modest, operator));
        let used = all.used();
        assert_eq!(used.operator, Amount::default());
        assert!(used.modules.is_empty(), "{used:?}");
    }
}
