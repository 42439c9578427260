//! Rules of the operator that a sequence is played under: none of them lets one user see what is
//! for the other.

use weir_policy::rule::{IgnoredDirective, Reuse, StoringIgnored, StoringRules};
use weir_semantics::DeltaSeconds;

/// Rules for all responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ruled {
    /// None.
    No,
    /// A forced lifetime, and a time to be served stale for.
    Forced,
    /// What responses say of their use is ignored, and they get a lifetime.
    Ignoring,
}

/// Longer than a sequence lasts.
const LONG: DeltaSeconds = DeltaSeconds(100_000);

impl Ruled {
    /// Those of a seed: none for half of them.
    pub(crate) const fn of(seed: u64) -> Self {
        match seed % 4 {
            0 => Self::Forced,
            1 => Self::Ignoring,
            _ => Self::No,
        }
    }

    pub(crate) fn storing(self) -> StoringRules {
        match self {
            Self::No => StoringRules::default(),
            Self::Forced => StoringRules {
                default: None,
                reuse: Reuse {
                    forced: Some(LONG),
                    stale_for: Some(LONG),
                    ..Reuse::NONE
                },
            },
            Self::Ignoring => {
                let uses = IgnoredDirective::ALL.into_iter();
                let uses = uses.filter(|it| !it.shares());
                let lifetimes = [
                    IgnoredDirective::ResponseMaxAge,
                    IgnoredDirective::ResponseSMaxage,
                ];
                StoringRules {
                    default: Some(LONG),
                    reuse: Reuse {
                        ignored: uses
                            .filter(|it| !lifetimes.contains(it))
                            .collect::<StoringIgnored>()
                            .and(StoringIgnored::LIFETIME_GIVEN),
                        ..Reuse::NONE
                    },
                }
            }
        }
    }
}
