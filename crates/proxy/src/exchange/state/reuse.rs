//! What rules of the operator change in the use of a stored response.

use crate::config::Mode;
use crate::send::heads::line_bytes;
use crate::settings::Settings;
use weir_extend::HeadFields;
use weir_policy::rule::Reuse;
use weir_store::StoredResponse;

/// How rules of the operator have a stored response used for a request with this target.
pub(crate) fn reuse_of(
    settings: &Settings,
    mode: Mode,
    target: (&[u8], &str),
    stored: &StoredResponse,
) -> Reuse {
    let rules = &settings.operator_rules;
    if !rules.may_decide_storing() {
        return Reuse::NONE;
    }
    let fields = HeadFields::of_section(&stored.head[line_bytes(&stored.head)..]);
    let content_type = fields.get("content-type").unwrap_or_default();
    let status = stored.facts.status;
    rules
        .storing(mode.into(), target, status, content_type)
        .reuse
}
