//! The nodes that are to be asked at once how they are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Between two questions to a member for what was said in its name: a copy of a message says so as
/// often as it is sent.
const HINT_PAUSE: Duration = Duration::from_secs(1);

/// Names of members that something suggests are not as they are known to be. Their own proved
/// answers decide. Each is in here once, however often that is suggested.
#[derive(Debug, Default)]
pub(crate) struct NodesToAsk {
    names: Mutex<Names>,
    added: Notify,
}

#[derive(Debug, Default)]
struct Names {
    /// To be asked.
    at_once: BTreeSet<String>,
    /// To be asked, as a message in their names says so.
    hinted: BTreeSet<String>,
    /// When they were asked last for such a message, within [`HINT_PAUSE`].
    asked: BTreeMap<String, Instant>,
}

impl NodesToAsk {
    /// The member of this name is to be asked.
    pub(crate) fn add(&self, name: &str) {
        if self.names().at_once.insert(name.to_owned()) {
            self.added.notify_one();
        }
    }

    /// A message in the name of this member, which may be a copy of an old one, suggests that it is
    /// to be asked: that is done at most once in a second.
    pub(crate) fn hint(&self, name: &str) {
        if self.names().hinted.insert(name.to_owned()) {
            self.added.notify_one();
        }
    }

    /// Ready when members were added since. For one task.
    pub(crate) async fn added(&self) {
        self.added.notified().await;
    }

    /// When a member may be asked that was asked lately.
    pub(crate) fn due(&self) -> Option<Instant> {
        let names = self.names();
        let hinted = names.hinted.iter();
        let asked = hinted.filter_map(|name| names.asked.get(name));
        asked.min().map(|asked| *asked + HINT_PAUSE)
    }

    /// Takes out all that may be asked `now` and are not `put_off`.
    pub(crate) fn take(&self, now: Instant, put_off: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let mut names = self.names();
        let Names {
            at_once,
            hinted,
            asked,
        } = &mut *names;
        asked.retain(|_, asked| now.saturating_duration_since(*asked) < HINT_PAUSE);
        let mut taken: BTreeSet<String> = at_once.extract_if(.., |name| !put_off(name)).collect();
        // its answer is one to the message, too
        hinted.retain(|name| !taken.contains(name));
        let may_be_asked = |name: &str| !put_off(name) && !asked.contains_key(name);
        let due: Vec<String> = hinted.extract_if(.., |name| may_be_asked(name)).collect();
        asked.extend(due.iter().map(|name| (name.clone(), now)));
        taken.extend(due);
        taken
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn member_is_asked_for_messages_in_its_name_once_a_second_and_otherwise_at_once() {
        let to_ask = NodesToAsk::default();
        let began = Instant::now();
        let at = |ms| began + Duration::from_millis(ms);
        let take = |ms| -> Vec<String> {
            let taken = to_ask.take(at(ms), |name| name == "busy");
            taken.into_iter().collect()
        };
        for _ in 0..1000 {
            to_ask.hint("a");
        }
        assert_eq!(take(0), ["a"]);
        assert!(to_ask.due().is_none(), "there is nobody to ask");
        to_ask.hint("a");
        to_ask.hint("b");
        to_ask.hint("busy");
        assert_eq!(take(1), ["b"], "each member has its own pause");
        assert_eq!(to_ask.due(), Some(at(1000)));
        assert!(take(999).is_empty());
        assert_eq!(take(1000), ["a"]);
        to_ask.hint("a");
        to_ask.add("a");
        to_ask.add("busy");
        assert_eq!(take(1001), ["a"]);
        assert!(to_ask.due().is_none() && take(5000).is_empty());
        assert_eq!(
            to_ask.take(at(5000), |_| false).len(),
            1,
            "it is not busy any more"
        );
    }
}
