//! Rules of the operator: what requests and responses they are for, and what they do.
//!
//! A rule has matchers and actions. Of the rules that are for a request, the first that has an
//! action decides that action: rules are read from the top, for each action by itself. This module
//! decides which rules those are and what they say; the drivers carry it out.
//!
//! Two users share one cache, so an action whose effect others could see does not depend on the
//! client: a rule that changes what the origin sees for some clients alone has their requests
//! bypass the cache ([`RuleSet::new`]).

mod bits;
mod client_rates;
mod clients;
mod fields;
mod held_back;
mod hidden;
mod host_table;
mod key;
mod matchers;
mod path;
mod preset;
mod recent;
mod reuse;
mod set;
mod spec;

pub use crate::stored::ignored::{IgnoredDirective, RequestIgnored, StoringIgnored};
pub use bits::{Bits, RULES_MAX};
pub use client_rates::{BURST_MS, ByteRate, CLIENT_RATES_MAX, ClientRates, RateGrant};
pub use clients::CLIENT_NETS_MAX;
pub use fields::{
    ChangeError, FIELDS_MAX, FieldRules, FieldRulesError, Message, VALUE_BYTES_MAX, Values,
    is_targeted_field, parse_fields,
};
pub use held_back::{HELD_BACK_CLIENT_PERCENT_MAX, HELD_BACK_PERCENT_MAX, HeldBack, KeptResponse};
pub use hidden::{RuleWarning, Surroundings, WarningKind};
pub use key::{
    CodingName, KEY_PARAMETERS_MAX, KeyPatternError, KeyRule, LanguageTag, QUERY_NAME_BYTES_MAX,
    QueryName,
};
pub use matchers::{
    ListenerPattern, Matchers, PATTERNS_MAX, PatternError, StatusPattern, TypePattern,
};
pub use path::{
    GLOB_BYTES_MAX, GLOB_STARS_MAX, Glob, PREFIX_BYTES_MAX, PathError, PathPattern, STARS_MAX,
};
pub use preset::Preset;
pub use recent::{RECENT_TARGETS, RecentTargets};
pub use reuse::{ERROR_LIFETIME_MAX, Reuse};
pub use set::{FetchingRules, Outcome, Place, RuleError, RuleSet, StoringBy, StoringRules};
pub use spec::{Action, Actions, DENY_BYTES_MAX, Denial, RuleLifetime, RuleRate, RuleSpec};
pub use weir_extend::ListenerMode;
