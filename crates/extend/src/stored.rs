//! Stored responses, as a module finds, makes and changes them: by library calls, each of which is
//! completed later.
//!
//! The functions are those of DataReactor's content management (Pai, Cox, Pai, Zwaenepoel, USITS
//! 2003, Table 2). A response is named by its target, so the calls that make and free names have no
//! counterpart here.
//!
//! No call has credentials: what is stored is for all clients, and a field that would select the
//! response of one of them is refused.

use crate::call::ListenerMode;
use crate::fields::Fields;
use crate::pending::Pending;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// Most bytes of content that [`StoredResponses::inject`] takes and [`StoredResponses::read`] gives
/// at once: larger content goes in pieces.
pub const WHOLE_CONTENT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most bytes of a piece of [`Injection::piece`] and of a part of [`StoredReader::part`].
pub const STORED_PIECE_BYTES_MAX: usize = 64 * 1024;

/// Stored responses of the proxy. Each call is ready once it is done, on the thread that it was
/// made on; how many are under way is limited ([`StoredError::TooMany`]).
pub trait StoredResponses {
    /// What is stored for a target; [`StoredError::NotStored`] if nothing is.
    fn query(&self, target: StoredTarget) -> Pending<Result<StoredInfo, StoredError>>;

    /// Has the response to a GET of the target stored, as if a client had sent that: a fresh stored
    /// response is left as it is. Destination rules and storing rules hold.
    fn fetch(&self, target: StoredTarget) -> Pending<Result<StoredInfo, StoredError>>;

    /// Has the origin say whether the stored response is still valid (RFC 9111 §4.3), fresh or not.
    fn validate(&self, target: StoredTarget) -> Pending<Result<Validation, StoredError>>;

    /// Sets for how long from now the stored response is fresh. Zero makes it stale: it is
    /// validated before it is used again. All responses of the target are meant, whatever request
    /// they vary on. Ready when that survives a crash.
    ///
    /// A time that is longer than what the response itself says needs `module[].may_store`.
    fn set_expiry(
        &self,
        target: StoredTarget,
        fresh_for: Duration,
    ) -> Pending<Result<(), StoredError>>;

    /// Purges all responses that are stored for the target, and what is on its way to the store.
    /// How many they were. Ready when that survives a crash.
    fn delete(&self, target: StoredTarget) -> Pending<Result<u64, StoredError>>;

    /// Stores a response in the place of the one that is stored for the target. It is judged as a
    /// response of the target's origin would be; `module[].may_store` permits those that are not
    /// storable. If the target is purged, or a more recent response is stored meanwhile, it is not
    /// stored ([`StoredError::Outdated`]).
    fn inject(
        &self,
        head: InjectedHead,
        content: Vec<u8>,
    ) -> Pending<Result<StoredInfo, StoredError>>;

    /// The same for content that comes in pieces, of `content_bytes` if the length is known. Until
    /// [`Injection::done`] nothing is replaced.
    fn start_injection(
        &self,
        head: InjectedHead,
        content_bytes: Option<u64>,
    ) -> Pending<Result<Box<dyn Injection>, StoredError>>;

    /// Reads a whole stored response, if its content has at most `content_bytes_max` bytes and
    /// [`WHOLE_CONTENT_BYTES_MAX`].
    fn read(
        &self,
        target: StoredTarget,
        content_bytes_max: usize,
    ) -> Pending<Result<StoredContent, StoredError>>;

    /// Begins to read a whole stored response in parts. It stays readable to its end, if it is
    /// purged or replaced meanwhile too.
    fn start_read(
        &self,
        target: StoredTarget,
    ) -> Pending<Result<Box<dyn StoredReader>, StoredError>>;
}

/// A response that is being injected. Dropping it gives it up: nothing is stored then.
pub trait Injection {
    /// Adds a piece of at most [`STORED_PIECE_BYTES_MAX`] bytes behind those before. The next one
    /// may be added when this is ready. After an error nothing more can be added.
    fn piece(&mut self, content: Vec<u8>) -> Pending<Result<(), StoredError>>;

    /// The content is complete: stores the response.
    fn done(self: Box<Self>) -> Pending<Result<StoredInfo, StoredError>>;
}

/// A stored response that is being read. Dropping it ends the reading.
pub trait StoredReader {
    /// What is read.
    fn info(&self) -> &StoredInfo;

    /// The next part of the content, of at most [`STORED_PIECE_BYTES_MAX`] bytes; empty at the end.
    /// The next one may be read when this is ready. After an error there is no further part.
    fn part(&mut self) -> Pending<Result<Vec<u8>, StoredError>>;
}

/// The target that a response is stored for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredTarget {
    /// The mode of the listeners that it is stored for: what one mode has stored, the other does
    /// not use.
    pub mode: ListenerMode,
    /// The target URI.
    pub url: String,
    /// The fields of a request that selects the response, where it varies on some (RFC 9111 §4.1).
    /// They are sent if a request is made. Those that carry credentials, such as Authorization and
    /// Cookie, are refused, and conditions and ranges are.
    ///
    /// Where modules change what is stored, the response is that of the variant that a client with
    /// these fields gets ([`RequestHead::set_variant`](crate::RequestHead::set_variant)): those
    /// modules see the request as one of a client. If they answer it, or send it to another target,
    /// the call fails with [`StoredError::Refused`].
    pub fields: Fields,
}

impl StoredTarget {
    /// What is stored for `url`, for a request without fields.
    #[must_use]
    pub fn new(mode: ListenerMode, url: impl Into<String>) -> Self {
        Self {
            mode,
            url: url.into(),
            fields: Fields::default(),
        }
    }
}

/// What is known of a stored response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredInfo {
    /// The status code.
    pub status: u16,
    /// The field lines, as they were received.
    pub fields: Fields,
    /// Bytes of the complete content; `None` if only a part is stored and its origin did not say.
    pub complete_bytes: Option<u64>,
    /// Bytes of the content that are stored.
    pub stored_bytes: u64,
    /// Its `current_age` (RFC 9111 §4.2.3).
    pub age: Duration,
    /// How long it is still fresh; zero if it is stale.
    pub fresh_for: Duration,
}

/// What came of a validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// The stored response is still valid, and is freshened.
    Valid,
    /// It is not; a new response is stored in its place.
    Replaced,
    /// It is not, and nothing is stored any more: the new response may not be stored.
    Dropped,
}

/// The head of a response that a module injects. The proxy adds the length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedHead {
    /// The target that it is stored for; its fields are those of the request that the response is
    /// taken to answer.
    pub target: StoredTarget,
    /// The status code.
    pub status: u16,
    /// The field lines. Without Date it was made now.
    pub fields: Fields,
}

/// A whole stored response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredContent {
    /// What is known of it.
    pub info: StoredInfo,
    /// All of its content.
    pub content: Vec<u8>,
}

/// Why a call about stored responses failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredError {
    /// There is no store here.
    Unavailable,
    /// The target is no `http` or `https` URI, or a field of its request is not permitted.
    BadTarget,
    /// The head to inject has a status or field that no stored response has, or the content does
    /// not have the length that was announced.
    BadResponse,
    /// Nothing is stored, or not all of the content that is wanted.
    NotStored,
    /// The response is not storable, or the store refuses it: the reason, in the words of
    /// `Cache-Status`, and the status of the response, if a next hop sent it.
    Refused(&'static str, Option<u16>),
    /// The destination rules forbid the request, or the operator does not permit the change.
    Forbidden,
    /// The module, or all of them, have as many calls under way as they may.
    TooMany,
    /// The content is longer than it may be.
    TooLarge,
    /// The next hop cannot be reached, or broke the response off.
    Unreachable,
    /// It took too long.
    Timeout,
    /// The target was purged, or a more recent response stored, since the call began.
    Outdated,
    /// The change is in force, and may not survive a crash.
    NotDurable,
    /// The content cannot be read from disk, or its checksum is wrong.
    Corrupt,
    /// A rule of the operator that is gone had it stored: it answers no request.
    LacksRule,
}

/// What [`StoredError::LacksRule`] says.
pub const LACKS_RULE: &str =
    "no rule permits any more what it was stored by: it answers no request";

impl fmt::Display for StoredError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "there is no store here",
            Self::BadTarget => "the target or a field of its request is not permitted",
            Self::BadResponse => "the response to store is not valid",
            Self::NotStored => "no such response is stored",
            Self::Refused(reason, None) => {
                return write!(f, "the response is not stored ({reason})");
            }
            Self::Refused(reason, Some(status)) => {
                return write!(
                    f,
                    "the response, with status {status}, is not stored ({reason})"
                );
            }
            Self::Forbidden => "the destination or the change is forbidden",
            Self::TooMany => "too many calls about stored responses are under way",
            Self::TooLarge => "the content is too large",
            Self::Unreachable => "the next hop gave no whole response",
            Self::Timeout => "it took too long",
            Self::Outdated => "the target was purged or stored anew meanwhile",
            Self::NotDurable => "it is in force, and may not survive a crash",
            Self::Corrupt => "the content cannot be read from disk",
            Self::LacksRule => LACKS_RULE,
        })
    }
}

impl core::error::Error for StoredError {}

/// No store: each call fails with [`StoredError::Unavailable`].
#[derive(Clone, Copy, Debug, Default)]
pub struct NoStore;

impl StoredResponses for NoStore {
    fn query(&self, _: StoredTarget) -> Pending<Result<StoredInfo, StoredError>> {
        unavailable()
    }

    fn fetch(&self, _: StoredTarget) -> Pending<Result<StoredInfo, StoredError>> {
        unavailable()
    }

    fn validate(&self, _: StoredTarget) -> Pending<Result<Validation, StoredError>> {
        unavailable()
    }

    fn set_expiry(&self, _: StoredTarget, _: Duration) -> Pending<Result<(), StoredError>> {
        unavailable()
    }

    fn delete(&self, _: StoredTarget) -> Pending<Result<u64, StoredError>> {
        unavailable()
    }

    fn inject(&self, _: InjectedHead, _: Vec<u8>) -> Pending<Result<StoredInfo, StoredError>> {
        unavailable()
    }

    fn start_injection(
        &self,
        _: InjectedHead,
        _: Option<u64>,
    ) -> Pending<Result<Box<dyn Injection>, StoredError>> {
        unavailable()
    }

    fn read(&self, _: StoredTarget, _: usize) -> Pending<Result<StoredContent, StoredError>> {
        unavailable()
    }

    fn start_read(&self, _: StoredTarget) -> Pending<Result<Box<dyn StoredReader>, StoredError>> {
        unavailable()
    }
}

fn unavailable<T: 'static>() -> Pending<Result<T, StoredError>> {
    Box::pin(core::future::ready(Err(StoredError::Unavailable)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detached::Detached;
    use core::task::{Context, Poll, Waker};

    #[test]
    fn host_without_a_store_answers_unavailable() {
        let host = Detached::host();
        let target = StoredTarget::new(ListenerMode::Gateway, "http://a.example/");
        let mut cx = Context::from_waker(Waker::noop());
        let mut deleted = host.stored().delete(target.clone());
        let expected = Poll::Ready(Err(StoredError::Unavailable));
        assert_eq!(deleted.as_mut().poll(&mut cx), expected);
        let mut read = host.stored().read(target, 1);
        assert_eq!(
            read.as_mut().poll(&mut cx),
            Poll::Ready(Err(StoredError::Unavailable))
        );
    }
}
