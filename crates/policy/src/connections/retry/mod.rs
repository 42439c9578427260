//! Whether a request may be sent a second time when the connection it was sent on closed without an
//! answer.
//!
//! An idle connection can be closed by the next hop in the very moment a request is written on it
//! (RFC 9112 §9.3, §9.5): the client should not see that race. But the request may have been acted
//! upon, so RFC 9110 §9.2.2 lets a proxy retry idempotent methods only, and no retry is itself
//! retried. A connection found closed *before* a request byte was written is not a case for this
//! module: nothing was sent, so nothing is repeated. Nor is a connection that could not be had:
//! then another next hop may be tried ([`HopAttempts`]).

mod hops;

pub use hops::{HOP_ATTEMPTS_MAX, HopAttempts, NoConnection, NoOtherHop};

use core::fmt;
use weir_semantics::Method;
use weir_semantics::words;

/// What is known when the connection closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedAttempt {
    /// The method of the request that was being sent.
    pub method: Method,
    /// What became of its body.
    pub body: BodySent,
    /// The connection had carried an exchange before: it may have closed for being idle.
    pub connection_was_reused: bool,
    /// The connection broke, and has carried other requests, too (HTTP/2): one of these may be why,
    /// or what the next hop has answered to it.
    pub shared_connection_broke: bool,
    /// The next hop has said that it has not acted upon the request, and will not: it has refused
    /// its stream (RFC 9113 §8.7), or the request was not sent. Such a one is safe to be sent
    /// again, whatever its method, and the connection need not be an old one.
    pub is_unprocessed: bool,
    /// At least one byte of a response has arrived, an interim one included.
    pub response_begun: bool,
    /// This attempt was itself a repetition.
    pub is_retry: bool,
}

/// How much of a request's body the failed attempt took with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySent {
    /// The request has no body.
    None,
    /// No byte of it has been taken from the client.
    Untouched,
    /// Every byte taken from the client is still held and can be sent again.
    Replayable,
    /// Bytes were forwarded and are not kept.
    Consumed,
}

words! {
    /// Why a request is not repeated.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum NoRetry {
        /// The connection was new: that is a failing next hop, not the idle race.
        ConnectionWasNew = "connection-was-new",
        /// Some of a response has arrived: the request was acted upon, and the client may have seen
        /// part of it.
        ResponseBegun = "response-begun",
        /// It was repeated before (RFC 9110 §9.2.2: no automatic retry of a failed automatic
        /// retry).
        RepeatedBefore = "repeated-before",
        /// The method is not idempotent.
        MethodNotIdempotent = "method-not-idempotent",
        /// Its body cannot be sent again.
        BodyConsumed = "body-consumed",
    }
}

impl fmt::Display for NoRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether the request may be repeated, once, and then best on a new connection.
///
/// # Errors
/// The first reason against it, in the order of [`NoRetry`].
pub fn may_retry(attempt: &FailedAttempt) -> Result<(), NoRetry> {
    // the first on a connection, which another request may have broken: it is repeated if it is to
    // change nothing (RFC 9110 §9.2.1)
    let may_be_of_others =
        attempt.shared_connection_broke && matches!(attempt.method, Method::Get | Method::Head);
    if !attempt.connection_was_reused && !attempt.is_unprocessed && !may_be_of_others {
        Err(NoRetry::ConnectionWasNew)
    } else if attempt.response_begun {
        Err(NoRetry::ResponseBegun)
    } else if attempt.is_retry {
        Err(NoRetry::RepeatedBefore)
    } else if !attempt.method.is_idempotent() && !attempt.is_unprocessed {
        Err(NoRetry::MethodNotIdempotent)
    } else if attempt.body == BodySent::Consumed {
        Err(NoRetry::BodyConsumed)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE_RACE: FailedAttempt = FailedAttempt {
        method: Method::Get,
        body: BodySent::None,
        connection_was_reused: true,
        shared_connection_broke: false,
        is_unprocessed: false,
        response_begun: false,
        is_retry: false,
    };

    fn check(attempt: FailedAttempt, expected: Result<(), NoRetry>) {
        assert_eq!(may_retry(&attempt), expected, "{attempt:?}");
    }

    #[test]
    fn idempotent_request_lost_to_idle_connection_close_is_retried() {
        check(IDLE_RACE, Ok(()));
        for body in [BodySent::Untouched, BodySent::Replayable] {
            let method = Method::Put;
            check(
                FailedAttempt {
                    method,
                    body,
                    ..IDLE_RACE
                },
                Ok(()),
            );
        }
    }

    #[test]
    fn retry_is_refused_for_non_idempotent_begun_or_consumed_requests() {
        for method in [Method::Post, Method::Patch, Method::Connect, Method::Other] {
            let refused = Err(NoRetry::MethodNotIdempotent);
            check(
                FailedAttempt {
                    method,
                    ..IDLE_RACE
                },
                refused,
            );
        }
        let new = FailedAttempt {
            connection_was_reused: false,
            ..IDLE_RACE
        };
        check(new, Err(NoRetry::ConnectionWasNew));
        let begun = FailedAttempt {
            response_begun: true,
            ..IDLE_RACE
        };
        check(begun, Err(NoRetry::ResponseBegun));
        let again = FailedAttempt {
            is_retry: true,
            ..IDLE_RACE
        };
        check(again, Err(NoRetry::RepeatedBefore));
        let gone = FailedAttempt {
            body: BodySent::Consumed,
            ..IDLE_RACE
        };
        check(gone, Err(NoRetry::BodyConsumed));
    }

    #[test]
    fn safe_request_is_repeated_once_after_a_new_connection_of_http2_broke() {
        for method in [Method::Get, Method::Head] {
            let broke = FailedAttempt {
                method,
                connection_was_reused: false,
                shared_connection_broke: true,
                ..IDLE_RACE
            };
            check(broke, Ok(()));
            let again = FailedAttempt {
                is_retry: true,
                ..broke
            };
            check(again, Err(NoRetry::RepeatedBefore));
            let begun = FailedAttempt {
                response_begun: true,
                ..broke
            };
            check(begun, Err(NoRetry::ResponseBegun));
            let gone = FailedAttempt {
                body: BodySent::Consumed,
                ..broke
            };
            check(gone, Err(NoRetry::BodyConsumed));
        }
        for method in [Method::Put, Method::Delete, Method::Options, Method::Post] {
            let changes = FailedAttempt {
                method,
                connection_was_reused: false,
                shared_connection_broke: true,
                ..IDLE_RACE
            };
            check(changes, Err(NoRetry::ConnectionWasNew));
        }
    }

    #[test]
    fn request_that_was_refused_is_sent_again_once_whatever_its_method() {
        let refused = FailedAttempt {
            method: Method::Post,
            connection_was_reused: false,
            is_unprocessed: true,
            ..IDLE_RACE
        };
        check(refused, Ok(()));
        let again = FailedAttempt {
            is_retry: true,
            ..refused
        };
        check(again, Err(NoRetry::RepeatedBefore));
        let gone = FailedAttempt {
            body: BodySent::Consumed,
            ..refused
        };
        check(gone, Err(NoRetry::BodyConsumed));
    }
}
