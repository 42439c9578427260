//! Members that have not been told all purges, as those say that tell them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_semantics::MembersBehind;

/// What each member that tells purges has said last of the others.
#[derive(Debug, Default)]
pub(crate) struct ToldBehind {
    /// Members that say so of others: while that is 0 nothing is locked.
    count: AtomicUsize,
    by_sender: Mutex<BTreeMap<Box<str>, Told>>,
}

/// What one member has said last.
#[derive(Debug)]
struct Told {
    process: Box<str>,
    behind: Behind,
    /// Since when it does not answer.
    gone_since: Option<Instant>,
}

/// The members that are behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// Those with these names, at most [`BEHIND_NAMES_MAX`](weir_semantics::BEHIND_NAMES_MAX).
    These(Vec<Box<str>>),
    /// All of them may be.
    All,
}

impl Behind {
    /// No member is.
    pub(crate) const NONE: Self = Self::These(Vec::new());

    pub(super) fn contains(&self, name: &str) -> bool {
        match self {
            Self::These(names) => names.iter().any(|other| **other == *name),
            Self::All => true,
        }
    }
}

impl ToldBehind {
    fn by_sender(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Told>> {
        self.by_sender
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, by_sender: &BTreeMap<Box<str>, Told>) {
        let senders = by_sender.values();
        let senders = senders.filter(|told| told.behind != Behind::NONE);
        self.count.store(senders.count(), Ordering::SeqCst);
    }

    /// Takes what `sender` says.
    pub(crate) fn take(&self, sender: &str, said: &MembersBehind<'_>) {
        let mut by_sender = self.by_sender();
        let names = said.names.as_deref();
        let told = Told {
            process: said.process.into(),
            behind: names.map_or(Behind::All, |names| {
                Behind::These(names.iter().map(|name| (*name).into()).collect())
            }),
            gone_since: None,
        };
        by_sender.insert(sender.into(), told);
        self.count(&by_sender);
    }

    /// Whether `sender` was not known to be this process: it has said of no member yet that it is
    /// behind. `hand_over` is called before, with the members that an earlier process of it was to
    /// tell: nothing else tells them any more.
    pub(crate) fn is_another(
        &self,
        sender: &str,
        process: &str,
        hand_over: impl FnOnce(&Behind),
    ) -> bool {
        let mut by_sender = self.by_sender();
        if let Some(before) = by_sender.get(sender) {
            if *before.process == *process {
                return false;
            }
            hand_over(&before.behind);
        }
        let told = Told {
            process: process.into(),
            behind: Behind::NONE,
            gone_since: None,
        };
        by_sender.insert(sender.into(), told);
        self.count(&by_sender);
        true
    }

    /// Those of `gone`, the members that do not answer now, that have not answered for `limit`:
    /// nothing else tells those any more that they said are behind.
    pub(crate) fn gone_for(
        &self,
        limit: Duration,
        now: Instant,
        gone: &BTreeSet<&str>,
    ) -> Vec<Box<str>> {
        let mut for_long = Vec::new();
        for (sender, told) in self.by_sender().iter_mut() {
            let since = told.gone_since.unwrap_or(now);
            told.gone_since = gone.contains(&**sender).then_some(since);
            if told.gone_since.is_some() && now.saturating_duration_since(since) >= limit {
                for_long.push(sender.clone());
            }
        }
        for_long
    }

    /// `sender` has gone for good; `hand_over` as of [`Self::is_another`].
    pub(crate) fn forget(&self, sender: &str, hand_over: impl FnOnce(&Behind)) {
        let mut by_sender = self.by_sender();
        if let Some(before) = by_sender.get(sender) {
            hand_over(&before.behind);
        }
        by_sender.remove(sender);
        self.count(&by_sender);
    }

    /// Whether any member may be behind.
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// The members that say so of the one of that name.
    pub(crate) fn by(&self, name: &str) -> Vec<String> {
        let by_sender = self.by_sender();
        let senders = by_sender.iter();
        let senders = senders.filter(|(_, told)| told.behind.contains(name));
        senders.map(|(sender, _)| sender.to_string()).collect()
    }

    /// Whether the member of that name may be.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.is_any()
            && self
                .by_sender()
                .values()
                .any(|told| told.behind.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn these(names: &[&str]) -> Behind {
        Behind::These(names.iter().map(|name| (*name).into()).collect())
    }

    fn take(told: &ToldBehind, (sender, process): (&str, &str), names: Option<&[&'static str]>) {
        let names = names.map(<[&str]>::to_vec);
        told.take(sender, &MembersBehind { process, names });
    }

    /// Whether it is new, and what is handed over.
    fn hear(told: &ToldBehind, (sender, process): (&str, &str)) -> (bool, Option<Behind>) {
        let mut handed_over = None;
        let is_new = told.is_another(sender, process, |behind| {
            handed_over = Some(behind.clone());
        });
        (is_new, handed_over)
    }

    #[test]
    fn member_is_behind_until_all_that_have_said_so_say_otherwise() {
        let told = ToldBehind::default();
        let take = |sender: &str, names| take(&told, (sender, "1"), names);
        assert!(!told.contains("c"));
        take("a", Some(&["c"]));
        take("b", Some(&["c", "d"]));
        assert!(told.contains("c") && told.contains("d") && !told.contains("a"));
        take("b", Some(&["d"]));
        assert!(told.contains("c"));
        take("a", Some(&[]));
        assert!(!told.contains("c") && told.contains("d"));
        take("a", None);
        assert!(told.contains("x"));
        take("a", Some(&[]));
        told.forget("b", |behind| assert_eq!(*behind, these(&["d"])));
        assert!(!told.is_any());
    }

    #[test]
    fn member_has_gone_for_long_that_has_not_answered_for_a_minute_without_a_break() {
        const MINUTE: Duration = Duration::from_mins(1);
        let told = ToldBehind::default();
        for sender in ["a", "b"] {
            take(&told, (sender, "1"), Some(&["c"]));
        }
        let began = Instant::now();
        let gone = |after: Duration, gone: &[&str]| -> Vec<String> {
            let gone = gone.iter().copied().collect();
            let for_long = told.gone_for(MINUTE, began + after, &gone);
            for_long.iter().map(ToString::to_string).collect()
        };
        let second = Duration::from_secs(1);
        assert!(gone(Duration::ZERO, &["a", "b", "x"]).is_empty());
        assert!(gone(MINUTE - second, &["a", "b"]).is_empty());
        // `b` has answered a moment before
        assert!(gone(MINUTE - second / 2, &["a"]).is_empty());
        assert_eq!(gone(MINUTE, &["a", "b"]), ["a"]);
        told.forget("a", |_| {});
        assert!(gone(MINUTE * 2 - second, &["a", "b"]).is_empty());
        // what it says now counts as an answer
        take(&told, ("b", "1"), Some(&["d"]));
        assert!(gone(MINUTE * 2, &["b"]).is_empty());
        assert_eq!(gone(MINUTE * 3, &["b"]), ["b"]);
    }

    #[test]
    fn members_that_an_earlier_process_was_to_tell_are_handed_over() {
        let told = ToldBehind::default();
        assert_eq!(hear(&told, ("a", "1")), (true, None));
        take(&told, ("a", "1"), Some(&["c"]));
        take(&told, ("b", "1"), Some(&["d"]));
        assert_eq!(hear(&told, ("a", "1")), (false, None));
        assert!(told.contains("c"));
        assert_eq!(hear(&told, ("a", "2")), (true, Some(these(&["c"]))));
        assert!(!told.contains("c") && told.contains("d"));
        assert_eq!(hear(&told, ("a", "2")), (false, None));
        assert_eq!(hear(&told, ("a", "3")), (true, Some(Behind::NONE)));
    }
}
