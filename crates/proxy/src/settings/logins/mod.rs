//! Who may use forward listeners, where that takes a login: users with passwords (Basic, RFC 7617)
//! and bearers of tokens (RFC 6750).
//!
//! A password is verified by threads of their own: that takes as long as ten thousand hits. What
//! was verified is remembered, in bounded tables, by a keyed digest: neither a password nor a token
//! is kept.

mod credentials;
mod file;
mod remembered;
mod verifier;

pub(crate) use self::file::{FILE_BYTES_MAX, Tokens, Users};

use self::credentials::Credentials;
use self::remembered::{Joined, Remembered};
use self::verifier::Verifier;
use std::hash::RandomState;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// The users and tokens of a configuration, and what is known of the logins of clients.
pub(crate) struct Logins {
    users: Arc<Users>,
    tokens: Tokens,
    /// Field lines that say how to log in.
    challenge: Box<[u8]>,
    remembered: Arc<Mutex<Remembered>>,
    verifier: Verifier,
    /// Digests of credentials are made with it.
    secret: RandomState,
}

/// What is known of the credentials of a request.
#[derive(Debug)]
pub(crate) enum Login {
    /// They are those of this user.
    Of(Arc<str>),
    /// There are none that can be read.
    Missing,
    /// They are wrong.
    Wrong,
    /// They are verified; what is known has changed when this is ready.
    Pending(oneshot::Receiver<()>),
    /// Too many wait to be verified, or too many of this client.
    Busy,
}

impl Logins {
    /// With these users and tokens; `realm` is what clients are told that they log in to.
    pub(crate) fn new(users: Users, tokens: Tokens, realm: &str) -> Self {
        let mut challenge = String::new();
        if !users.is_empty() {
            challenge +=
                &format!("Proxy-Authenticate: Basic realm=\"{realm}\", charset=\"UTF-8\"\r\n");
        }
        if !tokens.is_empty() || users.is_empty() {
            challenge += &format!("Proxy-Authenticate: Bearer realm=\"{realm}\"\r\n");
        }
        Self {
            users: Arc::new(users),
            tokens,
            challenge: challenge.into_bytes().into(),
            remembered: Arc::default(),
            verifier: Verifier::default(),
            secret: RandomState::new(),
        }
    }

    /// Field lines that say how to log in (RFC 9110 §11.7.1).
    pub(crate) fn challenge(&self) -> &[u8] {
        &self.challenge
    }

    /// What is known of the credentials in `values`, those of the lines of `Proxy-Authorization`,
    /// now, shown by `client`. Starts to verify those of which nothing is.
    pub(crate) fn check<'v>(
        &self,
        client: IpAddr,
        mut values: impl Iterator<Item = &'v [u8]>,
    ) -> Login {
        let (Some(value), None) = (values.next(), values.next()) else {
            return Login::Missing;
        };
        let Some(credentials) = Credentials::of(value) else {
            return Login::Missing;
        };
        let (user, password) = match credentials {
            Credentials::Bearer(token) => {
                return match self.tokens.holder(token) {
                    Some(name) => Login::Of(name),
                    None => Login::Wrong,
                };
            }
            Credentials::Basic { user, password } => (user, password),
        };
        if self.users.is_empty() {
            return Login::Wrong;
        }
        let digest = remembered::digest(&self.secret, &user, &password);
        let mut remembered = self.lock();
        match remembered.find(digest, Instant::now()) {
            Some(true) => match self.users.name(&user) {
                Some(name) => Login::Of(name),
                None => Login::Wrong,
            },
            Some(false) => Login::Wrong,
            None => {
                match remembered.join(digest) {
                    Joined::Waits(told) => return Login::Pending(told),
                    Joined::Full => return Login::Busy,
                    Joined::NotPending => {}
                }
                let (tell, told) = oneshot::channel();
                remembered.begin(digest, tell);
                drop(remembered);
                let (users, all) = (Arc::clone(&self.users), Arc::clone(&self.remembered));
                let verify = Box::new(move || {
                    let is_right = users.verify(&user, &password);
                    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                    all.end(digest, is_right, Instant::now());
                });
                if self.verifier.queue(client, verify) {
                    Login::Pending(told)
                } else {
                    self.lock().forget(digest);
                    Login::Busy
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        let remembered = self.remembered.lock();
        remembered.unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
