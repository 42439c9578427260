//! Why a call of etcd failed.

use std::fmt;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtcdError {
    /// No endpoint answered: each with what went wrong.
    Unreachable(String),
    /// etcd refused the call.
    Refused {
        /// Its reason, as gRPC numbers them.
        code: u32,
        /// Its reason in words.
        message: String,
    },
    /// What answered is not etcd, or of no version that is known.
    Malformed(String),
    /// The revisions to be watched are not there any more: those before this one were compacted.
    Compacted {
        /// The first revision that can be watched.
        revision: i64,
    },
    /// The watch has ended, for this reason.
    Ended(String),
}

impl EtcdError {
    /// The lease is not there any more (gRPC: `NOT_FOUND`).
    #[must_use]
    pub const fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: 5, .. })
    }

    /// Another endpoint may do better: this one has no leader, or is overloaded (gRPC:
    /// `UNAVAILABLE`, `DEADLINE_EXCEEDED`, `RESOURCE_EXHAUSTED`).
    pub(super) const fn is_of_endpoint(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::Malformed(_)
                | Self::Refused {
                    code: 4 | 8 | 14,
                    ..
                }
        )
    }
}

impl fmt::Display for EtcdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "etcd does not answer: {why}"),
            Self::Refused { message, .. } => write!(f, "etcd refuses: {message}"),
            Self::Malformed(why) => write!(f, "what answers is not etcd: {why}"),
            Self::Compacted { revision } => {
                write!(f, "etcd has compacted what was before revision {revision}")
            }
            Self::Ended(why) => write!(f, "the watch has ended: {why}"),
        }
    }
}

impl std::error::Error for EtcdError {}
