//! What a module answers to a call.

use crate::fields::{FieldError, Fields};
use alloc::vec::Vec;
use core::fmt;

/// What happens to a request after a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It continues, with the head as it is now.
    Continue,
    /// The module answers it, where [`Hook::may_respond`] says that it may: modules behind it and
    /// the next hop do not see the request.
    ///
    /// [`Hook::may_respond`]: crate::Hook::may_respond
    Respond(LocalResponse),
    /// The module cannot do its work on this message, such as a field for which there is no room.
    /// The operator has decided what becomes of the request then. It says nothing of the module:
    /// others are not kept from it.
    Fail,
    /// What the module works with is not there, or does not do as it should, such as a server of
    /// its own. As [`Self::Fail`], and it counts as a failure of the module: after several of them
    /// it is not called for a while.
    Unavailable,
    /// It waits until [`Exchange::poll_deferred`] is ready; then the same hook is called again.
    ///
    /// [`Exchange::poll_deferred`]: crate::Exchange::poll_deferred
    Defer,
}

/// Most bytes of content of a response that a module makes: a module that answers with more has
/// failed. It is all there while a slow client takes it.
pub const RESPONSE_CONTENT_BYTES_MAX: usize = 1024 * 1024;

/// A response that a module makes, with at most [`RESPONSE_CONTENT_BYTES_MAX`] of content. It is
/// never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalResponse {
    status: u16,
    /// The field lines. The proxy adds the length, Date and Cache-Status.
    pub fields: Fields,
    content: Vec<u8>,
}

/// A status that a module cannot answer with: interim ones, and those that mean something only
/// together with the request's preconditions, ranges or protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusError(pub u16);

/// Whether a final status means the same without the request's preconditions and ranges.
pub(crate) fn is_free_standing(status: u16) -> bool {
    (200..600).contains(&status) && !matches!(status, 206 | 304 | 416)
}

impl fmt::Display for StatusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a module cannot answer with status {}: use 200 to 599, but not 206, 304 or 416",
            self.0
        )
    }
}

impl core::error::Error for StatusError {}

impl LocalResponse {
    /// A response with this content, of which 204 and 205 have none.
    ///
    /// # Errors
    ///
    /// A module cannot answer with this status.
    pub fn new(status: u16, content: impl Into<Vec<u8>>) -> Result<Self, StatusError> {
        if !is_free_standing(status) {
            return Err(StatusError(status));
        }
        let content = match status {
            204 | 205 => Vec::new(),
            _ => content.into(),
        };
        Ok(Self {
            status,
            fields: Fields::default(),
            content,
        })
    }

    /// The same with a field.
    ///
    /// # Errors
    ///
    /// A module may not write this field, or not with this value.
    pub fn with(mut self, name: &str, value: &[u8]) -> Result<Self, FieldError> {
        self.fields.add(name, value)?;
        Ok(self)
    }

    /// The status code.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Whether it has more content than it may.
    #[must_use]
    pub const fn is_too_long(&self) -> bool {
        self.content.len() > RESPONSE_CONTENT_BYTES_MAX
    }

    /// The content.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        &self.content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_answers_with_statuses_that_stand_alone() {
        for status in [0, 100, 101, 199, 206, 304, 416, 600, 999] {
            assert_eq!(LocalResponse::new(status, ""), Err(StatusError(status)));
        }
        for status in [200, 302, 403, 503, 599] {
            let response = LocalResponse::new(status, "text").expect("a status");
            assert_eq!(
                (response.status(), response.content()),
                (status, &b"text"[..])
            );
        }
        let response = LocalResponse::new(204, "text").expect("a status");
        assert!(response.content().is_empty());
    }
}
