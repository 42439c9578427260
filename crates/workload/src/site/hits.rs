//! A few targets that never change and may be kept for a year.

use super::{Property, Representation, length, path};
use crate::UnixSeconds;
use crate::law::Law;
use crate::scenario::Hits;
use crate::target::Target;

#[derive(Clone, Debug)]
pub(super) struct HitsSite {
    size: Law,
}

impl HitsSite {
    pub(super) fn new(hits: &Hits) -> Self {
        Self {
            size: hits.size.clone(),
        }
    }

    pub(super) fn length(&self, seed: u64, target: Target) -> u64 {
        length(&self.size, &mut Property::Length.chance(seed, target))
    }

    pub(super) fn describe(&self, seed: u64, target: Target) -> Representation<'_> {
        Representation {
            length: self.length(seed, target),
            content_type: "application/octet-stream",
            modified: Some(MODIFIED),
            cache_control: Some("public"),
            max_age_s: Some(YEAR_S),
            etag: true,
            storable: true,
            freshness_lifetime_s: YEAR_S,
            ..Representation::default()
        }
    }
}

pub(super) fn write_path(target: Target, out: &mut Vec<u8>) {
    out.extend_from_slice(b"/hit");
    path::write_decimal(target.number, out);
    out.extend_from_slice(b".bin");
}

const YEAR_S: u64 = 365 * 86_400;

/// 1 January 2026, 00:00 UTC: any past second would do.
const MODIFIED: UnixSeconds = UnixSeconds(1_767_225_600);
