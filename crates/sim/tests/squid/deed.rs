//! What a cache did for a request, in words that Squid's tags and our verdicts can both be brought
//! to.

use std::fmt;
use weir_policy::{Handling, Storing, Verdict};
use weir_semantics::Fwd;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    /// Answered from the store; nothing was forwarded.
    Served,
    /// The origin confirmed what was stored: 304.
    Confirmed,
    /// What was stored was asked about, and the origin gave another response.
    Replaced,
    /// Fetched, and nothing stored was asked about.
    Fetched,
    /// A part was stored, and only the rest was fetched.
    Completed,
}

impl Deed {
    /// Of a tag in Squid's log (Squid's wiki, *Squid result codes*).
    pub(crate) fn of_tag(tag: &str) -> Self {
        match tag.trim_end_matches("_ABORTED") {
            "TCP_MEM_HIT" | "TCP_HIT" => Self::Served,
            "TCP_REFRESH_UNMODIFIED" => Self::Confirmed,
            "TCP_REFRESH_MODIFIED" => Self::Replaced,
            "TCP_MISS" => Self::Fetched,
            other => panic!("nobody has said what `{other}` means"),
        }
    }

    /// Of a verdict. Squid has no word for a request that asks for the origin where there is a
    /// response without validators: it is a miss.
    pub(crate) fn of_verdict(verdict: &Verdict) -> Self {
        match (verdict.handling, verdict.fwd_status) {
            (Handling::Hit(_), _) => Self::Served,
            (Handling::Forward(Fwd::Stale | Fwd::Request), Some(304)) => Self::Confirmed,
            (Handling::Forward(Fwd::Partial), _) => Self::Completed,
            // Squid asks for each request by itself
            (Handling::Forward(Fwd::Stale) | Handling::Collapsed(Fwd::Stale), _) => Self::Replaced,
            (Handling::Forward(_) | Handling::Collapsed(_), _) => Self::Fetched,
            (other, _) => panic!("nothing failed, and the verdict is {other:?}"),
        }
    }
}

/// Whether both did the same.
pub(crate) fn agree(tag: &str, verdict: &Verdict) -> bool {
    Deed::of_tag(tag) == Deed::of_verdict(verdict)
}

/// A verdict in the words of Cache-Status (RFC 9211).
pub(crate) struct Words<'a>(pub(crate) &'a Verdict);

impl fmt::Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = self.0;
        match verdict.handling {
            Handling::Hit(_) => f.write_str("hit")?,
            Handling::Collapsed(fwd) => write!(f, "fwd={}", fwd.as_str())?,
            handling => write!(f, "fwd={}", handling.as_str())?,
        }
        if verdict.fwd_status == Some(304) {
            f.write_str(";fwd-status=304")?;
        }
        if matches!(verdict.handling, Handling::Collapsed(_)) {
            f.write_str(";collapsed")?;
        }
        match (verdict.detail(), verdict.storing) {
            // how the bytes came is no matter here
            (Some("delayed"), _) => Ok(()),
            (Some(detail), Some(Storing::NotStored(_))) => write!(f, ";detail={detail}"),
            _ => Ok(()),
        }
    }
}
