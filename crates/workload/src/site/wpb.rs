//! The files of the Wisconsin Proxy Benchmark: `/dummy17.html`, never modified, fresh for three
//! days.

use super::{Property, Representation, length, path};
use crate::UnixSeconds;
use crate::law::Law;
use crate::number::whole;
use crate::scenario::Wpb;
use crate::target::Target;

#[derive(Clone, Debug)]
pub(super) struct WpbSite {
    sizes: Law,
    expires_after_s: u64,
    path_bytes: Option<Law>,
}

impl WpbSite {
    pub(super) fn new(wpb: &Wpb) -> Self {
        let expires_after_s = whole(wpb.expires_after_s);
        Self {
            sizes: wpb.sizes.clone(),
            expires_after_s,
            path_bytes: wpb.path_bytes.clone(),
        }
    }

    pub(super) fn write_path(&self, seed: u64, target: Target, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(b"/dummy");
        path::write_decimal(target.number, out);
        out.extend_from_slice(b".html");
        let Some(law) = &self.path_bytes else { return };
        let wanted = length(law, &mut Property::Path.chance(seed, target)).min(PATH_BYTES_MAX);
        let missing = usize::try_from(wanted)
            .unwrap_or(0)
            .saturating_sub(out.len() - start);
        if missing < 2 {
            // no directory is so short
            return;
        }
        // directories of eight characters; the last is longer by one where else nothing would stand
        // between two slashes
        let directories = (0..missing).map(|at| match at % 9 {
            0 if at + 1 < missing => b'/',
            _ => b'd',
        });
        out.splice(start..start, directories);
    }

    pub(super) fn length(&self, seed: u64, target: Target) -> u64 {
        length(&self.sizes, &mut Property::Length.chance(seed, target))
    }

    pub(super) fn describe(
        &self,
        seed: u64,
        target: Target,
        at: UnixSeconds,
    ) -> Representation<'_> {
        let lifetime = self.expires_after_s;
        Representation {
            length: self.length(seed, target),
            content_type: "text/html",
            modified: Some(MODIFIED),
            expires: Some(UnixSeconds(at.0.saturating_add_unsigned(lifetime))),
            storable: true,
            freshness_lifetime_s: lifetime,
            ..Representation::default()
        }
    }
}

/// When every file was modified: 1 September 1997, 00:00 UTC. The paper says that the date is fixed
/// and not which; the benchmark was written that autumn.
const MODIFIED: UnixSeconds = UnixSeconds(873_072_000);

/// The longest path, in bytes: with the rest of the line within the 8000 that RFC 9112 §3
/// recommends to recipients.
const PATH_BYTES_MAX: u64 = 4096;
