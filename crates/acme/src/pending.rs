//! What proves to an authority that a name is served here, while it looks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use weir_net::tls::server::Validations;

/// What listeners answer authorities with. Of one order at a time: at most
/// [`NAMES_MAX`](crate::NAMES_MAX) entries.
#[derive(Debug, Default)]
pub struct PendingChallenges {
    /// Whether there are tokens: most of the time there are none.
    has_tokens: AtomicBool,
    tokens: RwLock<HashMap<Box<str>, HttpChallenge>>,
    validations: Arc<Validations>,
}

#[derive(Debug)]
struct HttpChallenge {
    name: Box<str>,
    key_authorization: Box<str>,
}

impl PendingChallenges {
    /// Whether requests are answered from here.
    #[inline]
    #[must_use]
    pub fn has_tokens(&self) -> bool {
        self.has_tokens.load(Ordering::Acquire)
    }

    /// The content for a request for this token, at this host in lower case, if that is pending
    /// (RFC 8555 §8.3).
    #[must_use]
    pub fn answer(&self, token: &str, host: &str) -> Option<Box<str>> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        let challenge = tokens.get(token)?;
        let host = host.strip_suffix('.').unwrap_or(host);
        (*challenge.name == *host).then(|| challenge.key_authorization.clone())
    }

    /// The certificates of names that are validated by a handshake.
    #[must_use]
    pub const fn validations(&self) -> &Arc<Validations> {
        &self.validations
    }

    /// A token of `name` is pending until what this returns is dropped.
    #[must_use]
    pub fn put_token(&self, name: &str, token: &str, key_authorization: &str) -> PendingToken<'_> {
        let challenge = HttpChallenge {
            name: name.into(),
            key_authorization: key_authorization.into(),
        };
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        tokens.insert(token.into(), challenge);
        self.has_tokens.store(true, Ordering::Release);
        PendingToken {
            all: self,
            token: token.into(),
        }
    }
}

/// A token that is pending.
#[derive(Debug)]
pub struct PendingToken<'a> {
    all: &'a PendingChallenges,
    token: Box<str>,
}

impl Drop for PendingToken<'_> {
    fn drop(&mut self) {
        let tokens = self.all.tokens.write();
        let mut tokens = tokens.unwrap_or_else(PoisonError::into_inner);
        tokens.remove(&self.token);
        let has_tokens = !tokens.is_empty();
        self.all.has_tokens.store(has_tokens, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_answered_for_its_name_while_it_is_pending() {
        let all = PendingChallenges::default();
        assert!(!all.has_tokens());
        let one = all.put_token("a.test", "one", "one.key");
        let other = all.put_token("b.test", "other", "other.key");
        assert_eq!(all.answer("one", "a.test").as_deref(), Some("one.key"));
        assert_eq!(all.answer("one", "a.test.").as_deref(), Some("one.key"));
        assert_eq!(all.answer("one", "b.test"), None);
        assert_eq!(all.answer("on", "a.test"), None);
        drop(one);
        assert_eq!(all.answer("one", "a.test"), None);
        assert!(all.has_tokens());
        drop(other);
        assert!(!all.has_tokens());
    }
}
