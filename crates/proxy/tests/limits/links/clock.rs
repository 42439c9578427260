//! The wall clock of the machine is set while a link has a quota.

use super::{QUOTA, ask, linked, page, quota, row, spend};
use crate::support::Setup;
use std::path::Path;
use tempfile::TempDir;
use weir_measure::live::{LinkRow, LinkRows};
use weir_proxy::config::AdminAddress;

const HOUR_MS: u64 = 3_600_000;

/// January, in which the clock of tests begins, seconds.
const JANUARY_S: i64 = 31 * 86_400;

/// A gateway with a quota of a month, and the admin interface.
fn with_month(folder: &Path) -> Setup {
    let link = quota(folder, "").replace("\"day\"", "\"month\"");
    Setup::gateway_with(|config| {
        linked(&link)(config);
        config.admin.address = AdminAddress::At(([127, 0, 0, 1], 0).into());
    })
}

/// What the admin interface says of the link, and the begin of the period that it is in.
fn shown(setup: &Setup) -> (LinkRow, i64) {
    let text = setup.proxy.admin("/links?format=json");
    let rows: LinkRows = serde_json::from_str(&text).expect("JSON");
    let row = rows.links.into_iter().next().expect("a link");
    let begin = row.quota.as_ref().expect("a quota").begin_unix_s;
    (row, begin)
}

/// Nothing is fetched: the quota of the period that began then is spent.
fn expect_spent(setup: &Setup, begin_unix_s: i64) {
    assert_eq!(ask(setup, "/other").status(), 429);
    setup.origin.expect_untouched();
    let (row, begin) = shown(setup);
    assert_eq!(begin, begin_unix_s);
    assert!(row.quota.expect("a quota").is_spent);
}

/// At most so many quotas were moved, and what the windows of their connections hold.
fn expect_moved(setup: &Setup, quotas: u64) {
    let moved = row(setup).received_bytes + row(setup).sent_bytes;
    let most = quotas * (QUOTA as u64 + 65_536);
    assert!(moved <= most, "{moved}");
}

#[test]
fn clock_that_is_set_forward_a_month_and_back_grants_nothing() {
    let folder = TempDir::new().unwrap();
    let setup = with_month(folder.path());
    let (_, january) = shown(&setup);
    spend(&setup);
    for step_s in [JANUARY_S, -JANUARY_S] {
        setup.proxy.clock.step_wall_s(step_s);
        expect_spent(&setup, january);
        assert!(shown(&setup).0.is_after_clock_step);
        setup.proxy.clock.advance_ms(HOUR_MS / 2);
        expect_spent(&setup, january);
    }
    setup.proxy.clock.advance_ms(HOUR_MS);
    expect_spent(&setup, january);
    assert!(!shown(&setup).0.is_after_clock_step);
    expect_moved(&setup, 1);
}

#[test]
fn month_that_a_wrong_clock_has_begun_is_not_granted_again_when_it_comes() {
    let folder = TempDir::new().unwrap();
    let setup = with_month(folder.path());
    let (_, january) = shown(&setup);
    let february = january + JANUARY_S;
    spend(&setup);
    setup.proxy.clock.step_wall_s(JANUARY_S);
    expect_spent(&setup, january);
    // it is believed once both clocks have agreed for an hour
    setup.proxy.clock.advance_ms(HOUR_MS);
    assert_eq!(shown(&setup).1, february);
    spend(&setup);
    setup.proxy.clock.step_wall_s(-JANUARY_S);
    expect_spent(&setup, february);
    setup.proxy.clock.advance_ms(HOUR_MS);
    expect_spent(&setup, january);
    expect_moved(&setup, 2);
    let month_ms = 1000 * JANUARY_S.unsigned_abs();
    setup.proxy.clock.advance_ms(month_ms);
    expect_spent(&setup, february);
    expect_moved(&setup, 2);
    setup.proxy.clock.advance_ms(month_ms);
    setup.fetch("/other", &page("", 10));
}
