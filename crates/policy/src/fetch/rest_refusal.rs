//! What follows for a stored part from a response that is not its rest, to a request that nothing
//! has asked for.

use weir_semantics::DeltaSeconds;

/// `Retry-After` is kept to for so long at most, seconds: a day, of the week for which a paused
/// part is remembered.
pub const RETRY_AFTER_MAX_S: u32 = 86_400;

/// What follows. The part stays as it is in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestRefusal {
    /// The origin has another representation now, or none any more: the rest is not requested
    /// again.
    Obsolete,
    /// It is requested again, and not before this time is over.
    Later(DeltaSeconds),
}

impl RestRefusal {
    /// That of a response with this `status`. `is_other` if it has a strong entity tag that is not
    /// that of the part; `retry_after` is what its field says.
    #[must_use]
    pub fn of(status: u16, is_other: bool, retry_after: Option<DeltaSeconds>) -> Self {
        match status {
            410 => Self::Obsolete,
            200 if is_other => Self::Obsolete,
            429 | 503 => {
                let wait = retry_after.unwrap_or(DeltaSeconds::ZERO);
                Self::Later(wait.min(DeltaSeconds(RETRY_AFTER_MAX_S)))
            }
            // a request without the fields of a client may be sent elsewhere, or to a login
            _ => Self::Later(DeltaSeconds::ZERO),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rest_is_not_requested_again_once_there_is_another_representation_or_none() {
        assert_eq!(RestRefusal::of(200, true, None), RestRefusal::Obsolete);
        assert_eq!(RestRefusal::of(410, false, None), RestRefusal::Obsolete);
        for (status, is_other) in [(200, false), (206, true), (302, true), (404, true)] {
            let refusal = RestRefusal::of(status, is_other, Some(DeltaSeconds(60)));
            assert_eq!(refusal, RestRefusal::Later(DeltaSeconds::ZERO), "{status}");
        }
    }

    #[test]
    fn retry_after_is_kept_to_for_a_day_at_most() {
        for status in [429, 503] {
            let after = |wait| RestRefusal::of(status, false, wait);
            let later = |seconds| RestRefusal::Later(DeltaSeconds(seconds));
            assert_eq!(after(None), later(0));
            assert_eq!(after(Some(DeltaSeconds(120))), later(120));
            assert_eq!(after(Some(DeltaSeconds::MAX)), later(RETRY_AFTER_MAX_S));
        }
    }
}
