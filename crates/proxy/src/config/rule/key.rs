//! What is in the cache key by a rule.

use super::values::{CodingText, LanguageText, QueryNameText};
use crate::config::setting::Setting;
use serde::{Deserialize, Serialize};
use weir_policy::rule::KeyRule;

/// What of a target and of preferences is in the cache key. All of it where nothing is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RuleKey {
    /// Parameters of the query that are dropped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop_query: Vec<QueryNameText>,
    /// The parameters that are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_query: Option<Vec<QueryNameText>>,
    /// Whether parameters are sorted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sort_query: Option<bool>,
    /// What becomes of Accept-Language.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub languages: Option<Vec<LanguageText>>,
    /// What becomes of Accept-Encoding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub codings: Option<Vec<CodingText>>,
}

impl RuleKey {
    pub(super) fn settings() -> Vec<Setting> {
        vec![
            Setting::new::<Vec<QueryNameText>>(
                "rule[].key.drop_query",
                &[
                    "Parameters that are dropped from queries, by their names as they are written, with `*` at the end for all that follow. They",
                    "are in neither the cache key nor the request that is forwarded: an origin answers nothing by what the key lacks. For GET and",
                    "HEAD. Purges and invalidation find what was stored so. Queries of more than 64 parameters stay as they are. A rule with",
                    "`key` cannot depend on client, method or one listener; `key = {}` is an exception.",
                ],
            ),
            Setting::new::<Vec<QueryNameText>>(
                "rule[].key.keep_query",
                &[
                    "The parameters that are kept, instead; all others are dropped. An empty list drops the query.",
                ],
            ),
            Setting::new::<bool>(
                "rule[].key.sort_query",
                &[
                    "Whether parameters are sorted by their names; those of one name stay in their order. The origin gets them so, too.",
                ],
            ),
            Setting::new::<Vec<LanguageText>>(
                "rule[].key.languages",
                &[
                    "Accept-Language becomes the one of these that the client prefers, and is removed where none is acceptable to it, for the",
                    "origin, too: a response that varies on it is stored once for each.",
                ],
            ),
            Setting::new::<Vec<CodingText>>(
                "rule[].key.codings",
                &[
                    "Accept-Encoding becomes the one of these that the client prefers, and `identity` where none is acceptable to it or it says",
                    "nothing, for the origin, too.",
                ],
            ),
        ]
    }

    pub(super) fn rule(&self) -> KeyRule {
        let names = |list: &[QueryNameText]| list.iter().map(|it| it.0.clone()).collect();
        let languages = |list: &Vec<LanguageText>| list.iter().map(|it| it.0.clone()).collect();
        let codings = |list: &Vec<CodingText>| list.iter().map(|it| it.0.clone()).collect();
        KeyRule {
            drop_query: names(&self.drop_query),
            keep_query: self.keep_query.as_deref().map(names),
            sort_query: self.sort_query.unwrap_or(false),
            languages: self.languages.as_ref().map(languages),
            codings: self.codings.as_ref().map(codings),
        }
    }
}
