//! How the clients' links were shaped.

use core::fmt;
use serde::{Deserialize, Serialize};

/// What shaped the clients' links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkShaping {
    /// The clients themselves, by reading slowly from small receive buffers.
    User,
    /// The kernel, by token buckets in a network namespace.
    Namespace,
    /// Some participants by the one, some by the other.
    Mixed,
}

impl LinkShaping {
    /// That of two participants together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        if self == other { self } else { Self::Mixed }
    }
}

impl fmt::Display for LinkShaping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Namespace => "namespace",
            Self::Mixed => "mixed",
        })
    }
}
