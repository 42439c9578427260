//! The cache key of a target where a rule of the operator says what is in it.
//!
//! A request that is answered from the cache is changed by the rule, and has its key then as any
//! other. What names a target without being such a request (a purge, an unsafe request, a reference
//! in its response) is about all that was stored for it: under the key by the rule, and under that
//! of the target as it is written, from before the rule.

use super::judge::key_of;
use crate::config::Mode;
use weir_policy::rule::RuleSet;
use weir_policy::{Digest, Secret};
use weir_semantics::Target;

/// The key of `target` by the rules; `None` if it is that of the target as it is written.
pub(crate) fn key_by_rule(
    rules: &RuleSet,
    mode: Mode,
    target: &Target<'_>,
    secret: &Secret,
) -> Option<Digest> {
    let (host, path) = (target.host.as_bytes(), target.path_and_query);
    let changed = rules.key(mode.into(), host, path)?.target(path)?;
    let target = Target {
        path_and_query: &changed,
        ..*target
    };
    Some(key_of(mode, &target, secret))
}

/// The keys under which responses for `target` may be stored.
pub(crate) fn keys_of(
    rules: &RuleSet,
    mode: Mode,
    target: &Target<'_>,
    secret: &Secret,
) -> impl Iterator<Item = Digest> + use<> {
    let own = key_of(mode, target, secret);
    [Some(own), key_by_rule(rules, mode, target, secret)]
        .into_iter()
        .flatten()
}
