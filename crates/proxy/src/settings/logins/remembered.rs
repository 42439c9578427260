//! What is known of credentials, by their digests: right ones until the configuration is read
//! again, wrong ones for a moment, and who waits for those that are being verified.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Most logins that are remembered as right. A proxy for more users verifies some of them again.
const RIGHT_MAX: usize = 4096;
/// The same of wrong ones: a program with an old password sends it with each request.
const WRONG_MAX: usize = 1024;
/// How long a wrong login is remembered, so that a right one works soon after the file has it.
const WRONG_FOR: Duration = Duration::from_secs(10);
/// Most requests that wait for one login to be verified: an office may share one. Each is of a
/// connection of its own.
const WAITING_MAX: usize = 4096;

/// What becomes of a request whose login is not known.
#[derive(Debug)]
pub(super) enum Joined {
    /// Its login is not being verified.
    NotPending,
    /// It waits for that.
    Waits(oneshot::Receiver<()>),
    /// [`WAITING_MAX`] requests wait for that.
    Full,
}

/// Stands for credentials.
pub(super) type CredentialDigest = (u64, u64);

/// What is known.
#[derive(Default)]
pub(super) struct Remembered {
    /// When each was used last, in uses of all.
    right: HashMap<CredentialDigest, u64>,
    uses: u64,
    /// Until when each is remembered.
    wrong: HashMap<CredentialDigest, Instant>,
    pending: HashMap<CredentialDigest, Vec<oneshot::Sender<()>>>,
}

/// The digest of a user and a password. It is 128 bits under keys that no client knows.
pub(super) fn digest(secret: &RandomState, user: &[u8], password: &[u8]) -> CredentialDigest {
    let half = |which: u8| {
        let mut hasher = secret.build_hasher();
        hasher.write_u8(which);
        for part in [user, password] {
            hasher.write_usize(part.len());
            hasher.write(part);
        }
        hasher.finish()
    };
    (half(0), half(1))
}

impl Remembered {
    /// Whether the credentials are right, if that is known.
    pub(super) fn find(&mut self, digest: CredentialDigest, now: Instant) -> Option<bool> {
        if let Some(used) = self.right.get_mut(&digest) {
            self.uses += 1;
            *used = self.uses;
            return Some(true);
        }
        let until = *self.wrong.get(&digest)?;
        if until <= now {
            self.wrong.remove(&digest);
            return None;
        }
        Some(false)
    }

    /// Waits for credentials, if they are being verified.
    pub(super) fn join(&mut self, digest: CredentialDigest) -> Joined {
        let Some(waiting) = self.pending.get_mut(&digest) else {
            return Joined::NotPending;
        };
        if waiting.len() >= WAITING_MAX {
            waiting.retain(|one| !one.is_closed());
        }
        if waiting.len() >= WAITING_MAX {
            return Joined::Full;
        }
        let (tell, told) = oneshot::channel();
        waiting.push(tell);
        Joined::Waits(told)
    }

    /// Credentials that were not pending begin to be verified; `tell` is used when they are.
    pub(super) fn begin(&mut self, digest: CredentialDigest, tell: oneshot::Sender<()>) {
        let before = self.pending.insert(digest, vec![tell]);
        debug_assert!(before.is_none(), "one is verified at a time");
    }

    /// They were.
    pub(super) fn end(&mut self, digest: CredentialDigest, is_right: bool, now: Instant) {
        if is_right {
            self.uses += 1;
            self.right.insert(digest, self.uses);
            // the half that was used longest ago goes at once, so that each costs little
            if self.right.len() > RIGHT_MAX {
                let mut uses: Vec<u64> = self.right.values().copied().collect();
                let middle = uses.len() / 2;
                let (_, oldest_kept, _) = uses.select_nth_unstable(middle);
                let oldest_kept = *oldest_kept;
                self.right.retain(|_, used| *used >= oldest_kept);
            }
        } else {
            if self.wrong.len() >= WRONG_MAX {
                self.wrong.retain(|_, until| *until > now);
            }
            if self.wrong.len() >= WRONG_MAX {
                self.wrong.clear();
            }
            self.wrong.insert(digest, now + WRONG_FOR);
        }
        self.forget(digest);
    }

    /// They are not being verified any more: those that wait look again.
    pub(super) fn forget(&mut self, digest: CredentialDigest) {
        for waiting in self.pending.remove(&digest).unwrap_or_default() {
            // a client that has disconnected does not wait
            let _ = waiting.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot::error::TryRecvError;

    #[test]
    fn wrong_login_is_remembered_for_a_moment_and_a_right_one_longer() {
        let (mut known, now) = (Remembered::default(), Instant::now());
        known.end((1, 1), true, now);
        known.end((2, 2), false, now);
        assert_eq!(known.find((1, 1), now), Some(true));
        assert_eq!(known.find((2, 2), now), Some(false));
        let later = now + WRONG_FOR;
        assert_eq!(known.find((1, 1), later), Some(true));
        assert_eq!(known.find((2, 2), later), None);
        assert_eq!(known.find((3, 3), now), None);
    }

    #[test]
    fn tables_are_bounded_and_keep_what_is_used() {
        let (mut known, now) = (Remembered::default(), Instant::now());
        known.end((0, 0), true, now);
        for number in 1..20_000 {
            known.end((number, 0), true, now);
            known.end((number, 1), false, now);
            assert_eq!(known.find((0, 0), now), Some(true));
        }
        assert!(known.right.len() <= RIGHT_MAX && known.wrong.len() <= WRONG_MAX);
        // wrong logins do not displace right ones
        assert_eq!(known.find((19_999, 0), now), Some(true));
        known.begin((5, 5), oneshot::channel().0);
        // one that waits no more gives its place to another
        drop(known.join((5, 5)));
        let mut waiting: Vec<_> = (0..=WAITING_MAX).map(|_| known.join((5, 5))).collect();
        assert!(matches!(waiting.pop(), Some(Joined::Full)));
        for one in &mut waiting {
            let Joined::Waits(told) = one else {
                panic!("no place is left");
            };
            // a request too many ends the wait of none before it
            assert!(told.try_recv().is_err_and(|why| why == TryRecvError::Empty));
        }
        assert!(matches!(known.join((6, 6)), Joined::NotPending));
    }

    #[test]
    fn parts_of_credentials_do_not_flow_into_each_other() {
        let secret = RandomState::new();
        assert_ne!(digest(&secret, b"ab", b"c"), digest(&secret, b"a", b"bc"));
        assert_eq!(digest(&secret, b"a", b"b"), digest(&secret, b"a", b"b"));
    }
}
