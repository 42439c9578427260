//! Links in the words of the log and of the start.

use crate::config::ByteSize;
use crate::log::words::http_date;
use weir_measure::live::LinkRow;
use weir_policy::budget::{CLOCK_STEP_CONFIRM_MS, Notice, QuotaReport, WhenSpent};
use weir_semantics::Timestamp;

/// The line for a change of the link `name`, whose quota is as `quota` says.
pub(super) fn line(notice: Notice, name: &str, quota: &QuotaReport) -> String {
    let until = http_date(quota.period.end);
    match notice {
        Notice::PeriodBegun => {
            let left = quota.bytes.saturating_sub(quota.spent_bytes);
            format!(
                "a period of the link `{name}` begins: {left} bytes are left of its quota until {until}"
            )
        }
        Notice::NearEnd => format!(
            "the link `{name}` has spent {} of the {} bytes of its quota, which are to last until {until}",
            quota.spent_bytes, quota.bytes
        ),
        Notice::Spent => format!(
            "the link `{name}` has spent its quota of {} bytes: until {until} {}",
            quota.bytes,
            consequence(quota.then)
        ),
        Notice::ClockStep => format!(
            "the clock was set, or stood still: for {} minutes no period of the link `{name}` begins",
            CLOCK_STEP_CONFIRM_MS / 60_000
        ),
        Notice::ClockConfirmed => {
            format!("the clock is used again for the periods of the link `{name}`")
        }
    }
}

/// A link with its rate, and what is left of its quota.
#[must_use]
pub fn link_line(link: &LinkRow) -> String {
    let rate = match link.rate_bytes_s {
        Some(rate) => format!("{}/s", ByteSize::from_bytes(rate)),
        None => "no rate".into(),
    };
    let name = &link.name;
    let Some(quota) = &link.quota else {
        return format!("`{name}`: {rate}, no quota");
    };
    let until = http_date(Timestamp(quota.end_unix_s));
    let quota_size = ByteSize::from_bytes(quota.bytes);
    if quota.is_spent {
        let then = &quota.when_spent;
        return format!("`{name}`: quota of {quota_size} spent until {until}: {then}");
    }
    let left = quota.bytes.saturating_sub(quota.spent_bytes);
    let percent = u128::from(left) * 100 / u128::from(quota.bytes.max(1));
    format!("`{name}`: {rate}, {percent} % of {quota_size} left until {until}")
}

/// What follows when a quota is spent.
fn consequence(then: WhenSpent) -> String {
    let what = match then {
        WhenSpent::Slow => return "fetches go on at `slow_rate`, beyond it".into(),
        WhenSpent::StoredOnly | WhenSpent::Refuse => "nothing is fetched",
        WhenSpent::Stale => "stale responses are served",
    };
    let status = then.status();
    format!("{what}, and what is not stored is answered with {status}")
}
