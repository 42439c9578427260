//! Rules that come with Weir, for what many operators have before them.

use super::matchers::Matchers;
use super::path::PathPattern;
use super::spec::{Actions, RuleLifetime, RuleSpec};
use alloc::vec::Vec;
use weir_semantics::DeltaSeconds;

crate::choice! {
    /// A list of rules with a name.
    pub enum Preset {
        /// Mirrors of packages: apt, pip, npm, cargo.
        Packages = "packages",
    }
}

const YEAR: DeltaSeconds = DeltaSeconds(365 * 86_400);

const MONTH: DeltaSeconds = DeltaSeconds(30 * 86_400);

/// Paths, their default lifetime, and how long past it they are used.
type PackageRule = (&'static [&'static str], DeltaSeconds, Option<DeltaSeconds>);

/// Packages are named by their version and never change under their name; lists of them do. Mirrors
/// say nothing of either.
const PACKAGES: [PackageRule; 4] = [
    // apt: lists under the digest of their content
    (&["/**/by-hash/**"], YEAR, Some(MONTH)),
    // the other lists name each other's digests: all of them are validated, or they do not agree
    (&["/**/dists/**"], DeltaSeconds::ZERO, None),
    // pip: the pages that list files
    (&["/**/simple/**"], DeltaSeconds(600), None),
    (
        &[
            "/**/pool/**.deb",
            "/**/pool/**.udeb",
            "/**/pool/**.ddeb",
            "/**/pool/**.dsc",
            "/**/pool/**.tar.*",
            "/**/pool/**.diff.gz",
            "/**/packages/**.whl",
            "/**/packages/**.tar.gz",
            "/**/packages/**.zip",
            "/**/-/*.tgz",
            "/**/*.crate",
            "/**/crates/*/*/download",
        ],
        YEAR,
        Some(MONTH),
    ),
];

impl Preset {
    /// Its rules, in their order, for all hosts and listeners.
    ///
    /// # Panics
    ///
    /// Never: a test reads all of them.
    #[must_use]
    pub fn rules(self) -> Vec<RuleSpec> {
        let Self::Packages = self;
        let pattern = |text: &&str| -> PathPattern { text.parse().expect("a glob") };
        let rule = |(paths, lifetime, stale_for): &PackageRule| RuleSpec {
            matchers: Matchers {
                path: paths.iter().map(pattern).collect(),
                ..Matchers::default()
            },
            actions: Actions {
                lifetime: Some(RuleLifetime::Default(*lifetime)),
                stale_for: *stale_for,
                ..Actions::default()
            },
            ..RuleSpec::default()
        };
        PACKAGES.iter().map(rule).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::RuleSet;
    use weir_extend::ListenerMode;

    #[test]
    fn packages_are_kept_and_lists_of_them_are_not() {
        let set = RuleSet::new(Preset::Packages.rules()).expect("rules");
        let check = |path: &str, expected: Option<DeltaSeconds>| {
            let target: (&[u8], &str) = (b"mirror.example", path);
            let storing = set.storing(ListenerMode::Forward, target, 200, b"");
            assert_eq!(storing.default, expected, "{path}");
            let is_kept = expected == Some(YEAR);
            assert_eq!(storing.reuse.stale_for, is_kept.then_some(MONTH), "{path}");
        };
        let (kept, validated) = (Some(YEAR), Some(DeltaSeconds::ZERO));
        check("/debian/pool/main/b/bash/bash_5.2_amd64.deb", kept);
        check("/debian/pool/main/b/bash/bash_5.2.orig.tar.xz", kept);
        check(
            "/debian/dists/stable/main/binary-amd64/by-hash/SHA256/ab",
            kept,
        );
        check("/debian/dists/stable/InRelease", validated);
        check(
            "/debian/dists/stable/main/binary-amd64/Packages.xz",
            validated,
        );
        check("/simple/requests/", Some(DeltaSeconds(600)));
        check("/pypi/simple/requests/", Some(DeltaSeconds(600)));
        check("/packages/ab/cd/requests-2.0-py3-none-any.whl", kept);
        check("/left-pad/-/left-pad-1.3.0.tgz", kept);
        check("/@types/node/-/node-1.0.0.tgz", kept);
        check("/crates/serde/serde-1.0.0.crate", kept);
        check("/api/v1/crates/serde/1.0.0/download", kept);
        for path in ["/", "/index.html", "/pool", "/a.deb", "/left-pad", "/a.tgz"] {
            check(path, None);
        }
    }
}
