//! What the links to next hops decide about a request.

use super::inputs::Inputs;
use crate::config::ByteSize;
use crate::exchange::next_hop::NextHop;
use crate::exchange::state::RequestState;
use crate::log::words::http_date;
use std::sync::Arc;
use weir_net::next_hops::{LinkMeter, SpentLink};
use weir_policy::budget::QuotaReport;
use weir_policy::{Now, StoredFacts};
use weir_semantics::DeltaSeconds;

/// Looks at the links that the next hops of a request are behind. The spent one that keeps it from
/// all of them, if there is no next hop to which it can be sent: that of the first.
pub(super) fn look(inputs: &mut Inputs, exchange: &RequestState) -> Option<SpentLink> {
    let links = &exchange.settings.connections.links;
    let hops = NextHop::possible(exchange);
    let of_hops: Vec<Option<&Arc<LinkMeter>>> = hops.iter().map(|hop| links.of(hop)).collect();
    let mut meters: Vec<&Arc<LinkMeter>> = Vec::new();
    for meter in of_hops.iter().copied().flatten() {
        if !meters.iter().any(|it| Arc::ptr_eq(it, meter)) {
            meters.push(meter);
        }
    }
    meters.iter().for_each(|meter| note(inputs, meter));
    if of_hops.iter().any(Option::is_none) {
        return None;
    }
    let mut first = None;
    for meter in meters {
        let spent = meter.spent()?;
        first.get_or_insert(spent);
    }
    let spent = first?;
    if exchange.settings.cluster().is_some() {
        let value = "other nodes of the cluster may be asked first, over no link";
        inputs.note("cluster", value, "cluster.members");
        return None;
    }
    let value = format!(
        "`{}`: nothing is fetched over `{}` before {}",
        spent.now.then.as_str(),
        spent.link.name(),
        http_date(spent.now.until)
    );
    inputs.add("when_spent", value, "link[].when_spent");
    Some(spent)
}

/// Adds whether a stored response, of which `used` are the facts by which it is used, may be served
/// stale in the place of what a spent link does not fetch.
pub(super) fn add_stale(
    inputs: &mut Inputs,
    now: Now,
    used: &StoredFacts,
    stale_for: DeltaSeconds,
) {
    let stale_s = -used.ttl(now);
    let left = i64::from(stale_for.0) - stale_s;
    let means = match u32::try_from(left) {
        _ if used.forbids_stale() => {
            "the response forbids it by no-cache, must-revalidate, proxy-revalidate or s-maxage"
                .to_owned()
        }
        Ok(left) => {
            let until = http_date(now.wall.plus(DeltaSeconds(left)));
            format!("it may be served until {until}")
        }
        Err(_) => "it is stale for too long to be served".to_owned(),
    };
    let stale = match stale_s {
        ..=0 => String::new(),
        stale_s => format!("stale for {stale_s} s: "),
    };
    let value = format!("{} s; {stale}{means}", stale_for.0);
    inputs.add("stale_for", value, "link[].stale_for");
}

/// Notes a link, its quota and what of that is spent.
fn note(inputs: &mut Inputs, meter: &LinkMeter) {
    let (_, report) = meter.report();
    let rate = match report.rate {
        Some(rate) => format!("fetches wait for {} a second", ByteSize::from_bytes(rate)),
        None => "no rate".into(),
    };
    let free = if report.is_free {
        "; a free window: bytes are not of the quota now"
    } else {
        ""
    };
    let value = format!("`{}`: {rate}{free}", meter.name());
    inputs.note("link", value, "link[].next_hops");
    let Some(quota) = report.quota else {
        inputs.note("quota", "none", "link[].quota");
        return;
    };
    let until = http_date(quota.period.end);
    let value = format!("{} until {until}", ByteSize::from_bytes(quota.bytes));
    inputs.note("quota", value, "link[].quota");
    inputs.note("spent", spent(&quota), "link[].quota");
    if report.is_after_clock_step {
        let value = "it was set, or stood still: no new period begins for an hour";
        inputs.note("clock", value, "link[].period");
    }
    if quota.is_spent && !quota.then.ends_fetches() {
        let value = "`slow`: fetches go on at `slow_rate`, beyond the quota";
        inputs.note("when_spent", value, "link[].when_spent");
    }
}

fn spent(quota: &QuotaReport) -> String {
    let percent = u128::from(quota.spent_bytes) * 100 / u128::from(quota.bytes.max(1));
    let all = if quota.is_spent {
        "; nothing is left"
    } else {
        ""
    };
    format!("{} bytes, {percent} % of it{all}", quota.spent_bytes)
}
