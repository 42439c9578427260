//! Members that have not been told all purges, as those say that tell them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
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

    /// Takes what `sender` says. What is returned are the members that an earlier process of it was
    /// to tell, and which nothing tells any more.
    pub(crate) fn take(&self, sender: &str, said: &MembersBehind<'_>) -> Behind {
        let mut by_sender = self.by_sender();
        let names = said.names.as_deref();
        let told = Told {
            process: said.process.into(),
            behind: names.map_or(Behind::All, |names| {
                Behind::These(names.iter().map(|name| (*name).into()).collect())
            }),
        };
        let is_same = |before: &Told| before.process == told.process;
        let is_same = by_sender.get(sender).is_none_or(is_same);
        let before = by_sender.insert(sender.into(), told);
        self.count(&by_sender);
        match before {
            Some(before) if !is_same => before.behind,
            _ => Behind::NONE,
        }
    }

    /// `sender` has gone for good; the members that it was to tell.
    pub(crate) fn forget(&self, sender: &str) -> Behind {
        let mut by_sender = self.by_sender();
        let before = by_sender.remove(sender);
        self.count(&by_sender);
        before.map_or(Behind::NONE, |told| told.behind)
    }

    /// Whether any member may be behind.
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
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

    #[test]
    fn member_is_behind_until_all_that_have_said_so_say_otherwise() {
        let told = ToldBehind::default();
        let take = |sender: &str, process, names: Option<&[&'static str]>| {
            let names = names.map(<[&str]>::to_vec);
            told.take(sender, &MembersBehind { process, names })
        };
        assert!(!told.contains("c"));
        assert_eq!(take("a", "1", Some(&["c"])), Behind::NONE);
        assert_eq!(take("b", "2", Some(&["c", "d"])), Behind::NONE);
        assert!(told.contains("c") && told.contains("d") && !told.contains("a"));
        assert_eq!(take("b", "2", Some(&["d"])), Behind::NONE);
        assert!(told.contains("c"));
        assert_eq!(take("a", "1", Some(&[])), Behind::NONE);
        assert!(!told.contains("c") && told.contains("d"));
        assert_eq!(take("a", "1", None), Behind::NONE);
        assert!(told.contains("x"));
        assert_eq!(take("a", "1", Some(&[])), Behind::NONE);
        assert_eq!(told.forget("b"), these(&["d"]));
        assert!(!told.is_any());
    }

    #[test]
    fn members_that_an_earlier_process_was_to_tell_are_handed_over() {
        let told = ToldBehind::default();
        let process = |process, names: &[&'static str]| {
            let names = Some(names.to_vec());
            told.take("a", &MembersBehind { process, names })
        };
        process("1", &["c"]);
        assert_eq!(process("2", &["d"]), these(&["c"]));
        assert_eq!(process("2", &[]), Behind::NONE);
        assert_eq!(process("3", &[]), Behind::NONE);
    }
}
