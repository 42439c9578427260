//! A link through its life: quotas, bookings, clocks that jump, restarts.

use super::*;
use crate::now::{Now, Tick};
use proptest::prelude::*;
use std::collections::BTreeMap;
use weir_semantics::{DeltaSeconds, Timestamp};

const HOUR_S: i64 = 3600;
const DAY_S: i64 = 24 * HOUR_S;
/// 2026-11-27 00:00 UTC, a Friday.
const FRIDAY: i64 = 20_784 * DAY_S;
const MIB: u64 = 1024 * 1024;

fn quota(bytes: u64, every: Every, then: WhenSpent) -> Quota {
    Quota {
        bytes,
        period: PeriodRules { every, starts: 1 },
        then,
        slow_rate: 32_000,
        stale_for: DeltaSeconds(60),
    }
}

fn rules(quota: Option<Quota>) -> LinkRules {
    LinkRules {
        rate: None,
        reserve_percent: 20,
        bulk_above: MIB,
        quota,
        count: CountedBytes::Both,
        overhead_percent: 0,
        windows: Box::default(),
        zone: Zone::utc(),
    }
}

/// A link with its driver: a clock, and a state that is written at once.
struct Driven {
    link: Link,
    now: Now,
    written: Option<SavedLink>,
}

impl Driven {
    fn new(rules: LinkRules) -> Self {
        let now = at(0, FRIDAY);
        let link = Link::new(rules, None, now);
        Self {
            link,
            now,
            written: None,
        }
    }

    fn pass_s(&mut self, seconds: i64) {
        self.now.wall.0 += seconds;
        self.now.tick = self.now.tick.plus_ms(seconds.unsigned_abs() * 1000);
    }

    fn write(&mut self) {
        if let Some(saved) = self.link.to_save(self.now) {
            self.link.saved(saved.sequence);
            self.written = Some(saved);
        }
    }

    /// Moves up to `wanted` bytes, as they are permitted without waiting for the rate; how many.
    fn fetch(&mut self, wanted: u64) -> u64 {
        let mut moved = 0;
        let mut unwritten = 0;
        while moved < wanted {
            match self.link.permit(self.now, Class::Bulk, wanted - moved) {
                Permit::UpTo(bytes) => {
                    self.link.used(self.now, bytes, bytes);
                    moved += bytes;
                    unwritten = 0;
                }
                Permit::At(_) if unwritten < 2 => {
                    unwritten += 1;
                    self.write();
                }
                Permit::At(_) | Permit::Spent(_) => break,
            }
        }
        moved
    }

    /// As if it was killed: what was written last is all that is left.
    fn kill(&mut self) {
        let rules = self.link.rules().clone();
        self.link = Link::new(rules, self.written.clone(), self.now);
    }

    fn spent(&mut self) -> u64 {
        self.link.report(self.now).quota.unwrap().spent_bytes
    }
}

fn at(tick_ms: u64, wall: i64) -> Now {
    Now {
        wall: Timestamp(wall),
        tick: Tick(tick_ms),
    }
}

#[test]
fn quota_ends_fetches_until_the_next_period() {
    let refuse = quota(10 * MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(rules(Some(refuse)));
    assert_eq!(driven.link.admit(driven.now), Admission::Go);
    let moved = driven.fetch(20 * MIB);
    assert!((10 * MIB - 1460..=10 * MIB).contains(&moved), "{moved}");
    driven.pass_s(DAY_S - 60);
    let spent = SpentNow {
        then: WhenSpent::Refuse,
        status: 429,
        until: Timestamp(FRIDAY + DAY_S),
        retry_after: DeltaSeconds(60),
        stale_for: None,
    };
    assert_eq!(driven.link.admit(driven.now), Admission::Spent(spent));
    let permit = driven.link.permit(driven.now, Class::Interactive, 1);
    assert_eq!(permit, Permit::Spent(spent));
    driven.pass_s(60);
    assert_eq!(driven.link.admit(driven.now), Admission::Go);
    assert_eq!(driven.fetch(MIB), MIB);
}

#[test]
fn spent_quota_with_slow_goes_on_at_the_slow_rate() {
    let slow = quota(MIB, Every::Day, WhenSpent::Slow);
    let mut driven = Driven::new(rules(Some(slow)));
    assert_eq!(driven.fetch(MIB), MIB);
    assert_eq!(driven.link.admit(driven.now), Admission::Go);
    let mut moved = 0;
    for _ in 0..100 {
        driven.pass_s(1);
        moved += driven.fetch(MIB);
    }
    // what the bucket held comes first
    assert!((2_400_000..=3_300_000).contains(&moved), "{moved}");
    assert_eq!(driven.spent(), MIB + moved);
}

#[test]
fn overhead_is_of_the_quota() {
    let refuse = quota(100 * MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(LinkRules {
        overhead_percent: 3,
        ..rules(Some(refuse))
    });
    assert_eq!(driven.fetch(10_000_000), 10_000_000);
    assert_eq!(driven.spent(), 10_300_000);
}

#[test]
fn bytes_in_a_free_window_are_not_of_the_quota() {
    let refuse = quota(MIB, Every::Day, WhenSpent::Refuse);
    let night = TimeWindow {
        begin_min: 22 * 60,
        end_min: 6 * 60,
        days: Days::ALL,
        rate: None,
        free: true,
        complete: false,
        refresh: 0,
    };
    let mut driven = Driven::new(LinkRules {
        windows: [night].into(),
        ..rules(Some(refuse))
    });
    assert_eq!(driven.fetch(5 * MIB), 5 * MIB);
    driven.pass_s(6 * HOUR_S);
    assert!(driven.fetch(5 * MIB) <= MIB);
    assert!(matches!(driven.link.admit(driven.now), Admission::Spent(_)));
    driven.pass_s(16 * HOUR_S);
    assert_eq!(driven.link.admit(driven.now), Admission::Go);
    assert_eq!(driven.fetch(5 * MIB), 5 * MIB);
}

#[test]
fn clock_that_jumps_into_a_free_window_gives_nothing_away() {
    let refuse = quota(MIB, Every::Day, WhenSpent::Refuse);
    let night = TimeWindow {
        begin_min: 22 * 60,
        end_min: 24 * 60,
        days: Days::ALL,
        rate: None,
        free: true,
        complete: false,
        refresh: 0,
    };
    let mut driven = Driven::new(LinkRules {
        windows: [night].into(),
        ..rules(Some(refuse))
    });
    assert!(driven.fetch(5 * MIB) <= MIB);
    driven.now.wall.0 += 22 * HOUR_S;
    assert!(matches!(driven.link.admit(driven.now), Admission::Spent(_)));
}

#[test]
fn window_has_its_own_rate() {
    let noon = TimeWindow {
        begin_min: 12 * 60,
        end_min: 13 * 60,
        days: Days::ALL,
        rate: Some(5_000_000),
        free: false,
        complete: false,
        refresh: 0,
    };
    let mut link = Link::new(
        LinkRules {
            rate: Some(1_000_000),
            windows: [noon].into(),
            ..rules(None)
        },
        None,
        at(0, FRIDAY),
    );
    let mut rate = |hour: i64| {
        let now = at(hour.unsigned_abs() * 3_600_000, FRIDAY + hour * HOUR_S);
        let report = link.report(now);
        (report.rate, report.window)
    };
    assert_eq!(rate(11), (Some(1_000_000), None));
    assert_eq!(rate(12), (Some(5_000_000), Some(0)));
    assert_eq!(rate(13), (Some(1_000_000), None));
}

#[test]
fn nothing_is_granted_beyond_what_is_written_as_booked() {
    let refuse = quota(1000 * MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(rules(Some(refuse)));
    let permit = driven.link.permit(driven.now, Class::Bulk, 1000);
    assert!(matches!(permit, Permit::At(_)), "nothing is booked yet");
    driven.write();
    driven.fetch(50 * MIB);
    // the device does not answer any more
    while let Permit::UpTo(bytes) = driven.link.permit(driven.now, Class::Bulk, u64::MAX) {
        driven.link.used(driven.now, bytes, bytes);
        let _never_written = driven.link.to_save(driven.now);
    }
    let booked = driven.written.as_ref().unwrap().booked_bytes();
    assert!(driven.spent() <= booked, "{booked}");
}

#[test]
fn killed_process_takes_what_was_booked_as_spent() {
    let refuse = quota(1000 * MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(rules(Some(refuse)));
    driven.fetch(10 * MIB);
    let before = driven.spent();
    driven.kill();
    let after = driven.spent();
    assert!(
        after >= before && after <= before + 1000 * MIB / 5000,
        "{before} {after}"
    );
}

#[test]
fn process_that_ends_as_it_should_has_spent_what_it_moved() {
    let refuse = quota(1000 * MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(rules(Some(refuse)));
    driven.fetch(10 * MIB);
    let closed = driven.link.close(driven.now).unwrap();
    assert!(closed.is_clean);
    driven.written = Some(closed);
    driven.kill();
    assert_eq!(driven.spent(), 10 * MIB);
}

#[test]
fn closed_link_keeps_no_transfer_waiting_for_a_booking() {
    let mut driven = Driven::new(rules(Some(quota(100 * MIB, Every::Day, WhenSpent::Refuse))));
    assert_eq!(driven.fetch(MIB), MIB);
    let closed = driven.link.close(driven.now).unwrap();
    assert_eq!(closed.booked_bytes(), MIB);
    // nothing is written any more
    assert_eq!(driven.link.to_save(driven.now), None);
    for _ in 0..100 {
        let permit = driven.link.permit(driven.now, Class::Bulk, MIB);
        assert!(matches!(permit, Permit::UpTo(1..)), "{permit:?}");
        driven.link.used(driven.now, 10 * MIB, 0);
    }
    assert_eq!(driven.link.close(driven.now), None);
}

#[test]
fn windows_of_open_connections_are_booked() {
    let refuse = quota(1000 * MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(rules(Some(refuse)));
    driven.link.opened(5 * MIB);
    driven.write();
    assert!(driven.written.as_ref().unwrap().booked_bytes() >= 5 * MIB);
    driven.link.closed(5 * MIB);
    driven.fetch(MIB);
    assert_eq!(driven.spent(), MIB);
}

#[test]
fn windows_of_open_connections_keep_no_transfer_from_the_end_of_a_quota() {
    let refuse = quota(MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(rules(Some(refuse)));
    driven.link.opened(10 * MIB);
    driven.write();
    let moved = driven.fetch(2 * MIB);
    assert!((MIB - 1460..=MIB).contains(&moved), "{moved}");
    assert!(matches!(driven.link.admit(driven.now), Admission::Spent(_)));
}

#[test]
fn windows_shrink_with_what_is_left_of_a_quota() {
    let refuse = quota(64 * MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(rules(Some(refuse)));
    let widest = |driven: &mut Driven| driven.link.widest_window(driven.now);
    assert_eq!(widest(&mut driven), Some(8 * MIB), "nothing is open");
    driven.link.opened(MIB);
    driven.link.opened(MIB);
    driven.link.widened(MIB);
    assert_eq!(widest(&mut driven), Some(4 * MIB), "of each of two");
    driven.fetch(48 * MIB);
    assert_eq!(widest(&mut driven), Some(MIB));
    driven.link.closed(2 * MIB);
    assert_eq!(widest(&mut driven), Some(2 * MIB), "one is closed");
    driven.fetch(64 * MIB);
    assert_eq!(widest(&mut driven), Some(0), "it is spent");
}

#[test]
fn quota_that_fetches_go_on_beyond_bounds_no_window() {
    let slow = quota(MIB, Every::Day, WhenSpent::Slow);
    let mut driven = Driven::new(rules(Some(slow)));
    driven.link.opened(MIB);
    assert_eq!(driven.link.widest_window(driven.now), None);
    let mut without = Driven::new(rules(None));
    assert_eq!(without.link.widest_window(without.now), None);
}

#[test]
fn unreadable_state_is_taken_as_spent_by_the_share_of_the_period_that_has_passed() {
    let refuse = quota(240 * MIB, Every::Day, WhenSpent::Refuse);
    let mut link = Link::unreadable(rules(Some(refuse)), at(0, FRIDAY + 6 * HOUR_S));
    let report = link.report(at(0, FRIDAY + 6 * HOUR_S)).quota.unwrap();
    assert_eq!(report.spent_bytes, 60 * MIB);
}

#[test]
fn clock_that_is_set_forward_begins_no_period_for_an_hour() {
    let refuse = quota(10 * MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(rules(Some(refuse)));
    driven.fetch(20 * MIB);
    driven.now.wall.0 += DAY_S;
    assert!(matches!(driven.link.admit(driven.now), Admission::Spent(_)));
    driven.pass_s(HOUR_S - 1);
    assert!(matches!(driven.link.admit(driven.now), Admission::Spent(_)));
    driven.pass_s(1);
    assert_eq!(driven.link.admit(driven.now), Admission::Go);
}

#[test]
fn clock_that_is_set_forward_begins_no_period_for_an_hour_after_a_restart_either() {
    for is_killed in [true, false] {
        let mut driven = Driven::new(rules(Some(quota(MIB, Every::Day, WhenSpent::Refuse))));
        assert!(driven.fetch(2 * MIB) > 0);
        driven.now.wall.0 += DAY_S;
        driven.write();
        if !is_killed {
            driven.written = driven.link.close(driven.now);
        }
        driven.kill();
        assert_eq!(driven.fetch(MIB), 0);
        driven.pass_s(HOUR_S - 1);
        assert_eq!(driven.fetch(MIB), 0);
        driven.pass_s(1);
        assert!(driven.fetch(MIB) > 0);
    }
}

#[test]
fn spent_quota_says_the_status_and_how_stale_a_response_may_be() {
    for (then, status, stale_for) in [
        (WhenSpent::Refuse, 429, None),
        (WhenSpent::StoredOnly, 504, None),
        (WhenSpent::Stale, 429, Some(DeltaSeconds(60))),
    ] {
        let mut driven = Driven::new(rules(Some(quota(MIB, Every::Day, then))));
        driven.fetch(2 * MIB);
        let Admission::Spent(spent) = driven.link.admit(driven.now) else {
            panic!("{then:?}");
        };
        assert_eq!((spent.status, spent.stale_for), (status, stale_for));
    }
}

#[test]
fn clock_that_is_set_back_finds_the_period_that_it_has_spent() {
    let refuse = quota(10 * MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(rules(Some(refuse)));
    driven.fetch(20 * MIB);
    driven.pass_s(DAY_S);
    assert!(driven.fetch(MIB) > 0);
    driven.now.wall.0 -= DAY_S;
    driven.write();
    driven.pass_s(HOUR_S);
    assert!(matches!(driven.link.admit(driven.now), Admission::Spent(_)));
}

#[test]
fn other_rules_keep_what_is_spent() {
    let refuse = quota(10 * MIB, Every::Month, WhenSpent::Refuse);
    let mut driven = Driven::new(rules(Some(refuse)));
    driven.fetch(10 * MIB);
    let larger = quota(20 * MIB, Every::Month, WhenSpent::Refuse);
    driven.link.set_rules(rules(Some(larger)), driven.now);
    driven.write();
    let moved = driven.fetch(20 * MIB);
    assert!(
        (10 * MIB - 1460..=10 * MIB + 1460).contains(&moved),
        "{moved}"
    );
}

#[test]
fn calendar_that_is_changed_grants_no_quota_anew() {
    let eastern = Zone::new(3 * 3600, Vec::new());
    let daily = |starts| Quota {
        period: PeriodRules {
            every: Every::Week,
            starts,
        },
        ..quota(10 * MIB, Every::Week, WhenSpent::Refuse)
    };
    let of_zone = |zone: &Zone| LinkRules {
        zone: zone.clone(),
        ..rules(Some(daily(1)))
    };
    let utc = of_zone(&Zone::utc());
    for changed in [of_zone(&eastern), rules(Some(daily(5)))] {
        let mut driven = Driven::new(utc.clone());
        driven.pass_s(23 * HOUR_S);
        driven.fetch(10 * MIB);
        for rules in [&changed, &utc, &changed] {
            driven.link.set_rules(rules.clone(), driven.now);
            driven.write();
            assert_eq!(driven.fetch(MIB), 0, "a reload");
            driven.pass_s(60);
            driven.write();
            assert_eq!(driven.fetch(MIB), 0, "a minute later");
        }
        // over a restart, too
        driven.write();
        driven.link = Link::new(utc.clone(), driven.written.clone(), driven.now);
        driven.write();
        assert_eq!(driven.fetch(MIB), 0, "a restart");
        driven.pass_s(7 * DAY_S);
        driven.write();
        assert!(driven.fetch(MIB) > 0, "the next period");
    }
}

#[test]
fn ranges_of_one_target_are_together_as_large_as_one_response() {
    let mut driven = Driven::new(rules(None));
    let range = |target: u64| Transfer {
        range_of: Some(crate::Digest(target, 0)),
        ..Transfer::default()
    };
    for _ in 0..11 {
        let mut part = range(1);
        assert_eq!(driven.link.class(driven.now, &part), Class::Interactive);
        driven.link.moved(driven.now, &mut part, MIB / 10);
    }
    assert_eq!(driven.link.class(driven.now, &range(1)), Class::Bulk);
    assert_eq!(driven.link.class(driven.now, &range(2)), Class::Interactive);
    let page = Transfer::default();
    assert_eq!(driven.link.class(driven.now, &page), Class::Interactive);
    driven.pass_s(3600);
    assert_eq!(driven.link.class(driven.now, &range(1)), Class::Interactive);
}

#[test]
fn link_has_nothing_for_the_background_once_its_quota_is_spent() {
    for then in [WhenSpent::Refuse, WhenSpent::Slow] {
        let mut driven = Driven::new(rules(Some(quota(MIB, Every::Day, then))));
        let free = driven.link.background(driven.now);
        assert_eq!(free, BackgroundRoom::Free);
        driven.fetch(MIB);
        let spent = driven.link.background(driven.now);
        assert_eq!(spent, BackgroundRoom::Scarce, "{then:?}");
        driven.pass_s(DAY_S);
        let next = driven.link.background(driven.now);
        assert_eq!(next, BackgroundRoom::Free, "{then:?}");
    }
}

#[test]
fn parts_are_completed_and_popular_responses_refreshed_in_the_windows_that_say_so() {
    let window = |begin_h: u16, complete: bool, refresh: u16| TimeWindow {
        begin_min: begin_h * 60,
        end_min: (begin_h + 2) * 60,
        days: Days::ALL,
        rate: None,
        free: false,
        complete,
        refresh,
    };
    let work = |windows: &[TimeWindow], hour: i64| {
        let rules = LinkRules {
            windows: windows.into(),
            ..rules(None)
        };
        let now = at(0, FRIDAY + hour * HOUR_S);
        let work = Link::new(rules, None, now).window_work(now);
        (work.completes, work.refreshes)
    };
    assert_eq!(work(&[], 1), (true, 0));
    let refreshing = [window(2, false, 9)];
    assert_eq!(work(&refreshing, 1), (true, 0));
    assert_eq!(work(&refreshing, 2), (true, 9));
    let both = [window(2, true, 0), window(4, false, 5)];
    assert_eq!(work(&both, 1), (false, 0));
    assert_eq!(work(&both, 2), (true, 0));
    assert_eq!(work(&both, 4), (false, 5));
    assert_eq!(work(&both, 6), (false, 0));
}

#[test]
fn window_has_nothing_to_refresh_for_once_the_quota_is_spent_or_after_a_step_of_the_clock() {
    let night = TimeWindow {
        begin_min: 20 * 60,
        end_min: 24 * 60,
        days: Days::ALL,
        rate: None,
        free: false,
        complete: true,
        refresh: 3,
    };
    let refuse = quota(MIB, Every::Day, WhenSpent::Refuse);
    let mut driven = Driven::new(LinkRules {
        windows: [night].into(),
        ..rules(Some(refuse))
    });
    driven.now.wall.0 += 20 * HOUR_S;
    let work = driven.link.window_work(driven.now);
    assert_eq!((work.completes, work.refreshes), (false, 0), "a step");
    driven.pass_s(HOUR_S);
    let work = driven.link.window_work(driven.now);
    assert_eq!((work.completes, work.refreshes), (true, 3));
    // each link counts for itself, and anew in the next hour
    driven.link.refreshed(driven.now);
    driven.pass_s(HOUR_S / 2);
    driven.link.refreshed(driven.now);
    let work = driven.link.window_work(driven.now);
    assert_eq!((work.refreshes, work.refreshes_of), (1, 3));
    driven.link.refreshed(driven.now);
    assert_eq!(driven.link.window_work(driven.now).refreshes, 0);
    driven.pass_s(HOUR_S / 4);
    assert_eq!(driven.link.window_work(driven.now).refreshes, 0);
    driven.pass_s(HOUR_S / 4);
    assert_eq!(driven.link.window_work(driven.now).refreshes, 3);
    driven.fetch(2 * MIB);
    let work = driven.link.window_work(driven.now);
    assert_eq!((work.completes, work.refreshes), (false, 0), "spent");
}

#[test]
fn class_of_a_transfer_follows_from_its_size_and_from_who_waits_for_it() {
    let mut driven = Driven::new(rules(None));
    let mut transfer = Transfer::default();
    let mut class = |transfer: &Transfer| driven.link.class(driven.now, transfer);
    assert_eq!(class(&transfer), Class::Interactive);
    transfer.moved = MIB;
    assert_eq!(class(&transfer), Class::Interactive);
    transfer.moved = MIB + 1;
    assert_eq!(class(&transfer), Class::Bulk);
    transfer.is_background = true;
    assert_eq!(class(&transfer), Class::Background, "its reader has left");
    transfer.is_background = false;
    assert_eq!(class(&transfer), Class::Bulk, "a client has joined");
}

/// What happens to a link.
#[derive(Clone, Debug)]
enum Step {
    Pass(i64),
    Jump(i64),
    Fetch(u64),
    Kill,
    End,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2 * HOUR_S).prop_map(Step::Pass),
        1 => (0..3 * DAY_S).prop_map(Step::Pass),
        1 => (-3 * DAY_S..3 * DAY_S).prop_map(Step::Jump),
        4 => (0..2 * MIB).prop_map(Step::Fetch),
        1 => Just(Step::Kill),
        1 => Just(Step::End),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Over all jumps, kills and restarts: what is moved while a day of the calendar is the
    /// present period is at most its quota.
    #[test]
    fn no_clock_has_a_quota_given_twice(steps in proptest::collection::vec(step(), 1..60)) {
        let bytes = 3 * MIB;
        let mut driven = Driven::new(rules(Some(quota(bytes, Every::Day, WhenSpent::Refuse))));
        let mut moved: BTreeMap<i64, u64> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Pass(seconds) => {
                    // as a driver does, it looks now and then
                    for _ in 0..seconds / 600 {
                        driven.pass_s(600);
                        driven.write();
                    }
                }
                Step::Jump(seconds) => driven.now.wall.0 += seconds,
                Step::Fetch(wanted) => {
                    let got = driven.fetch(wanted);
                    let period = driven.link.report(driven.now).quota.unwrap().period;
                    *moved.entry(period.start.0).or_default() += got;
                }
                Step::Kill => driven.kill(),
                Step::End => {
                    driven.written = driven.link.close(driven.now);
                    driven.kill();
                }
            }
            for (start, moved) in &moved {
                prop_assert!(*moved <= bytes, "day {start}: {moved} bytes");
            }
        }
    }

    /// Jumps alone, each followed by less than an hour: there is one quota in all.
    #[test]
    fn clock_that_never_agrees_has_one_quota(
        jumps in proptest::collection::vec((-40 * DAY_S..40 * DAY_S, 0..50_i64), 1..40),
    ) {
        let bytes = 3 * MIB;
        let mut driven = Driven::new(rules(Some(quota(bytes, Every::Day, WhenSpent::Refuse))));
        let mut moved = 0;
        for (jump, minutes) in jumps {
            driven.now.wall.0 += if jump.abs() > CLOCK_STEP_S { jump } else { jump + 2 * DAY_S };
            for _ in 0..minutes {
                driven.pass_s(60);
                driven.write();
            }
            moved += driven.fetch(bytes);
            prop_assert!(moved <= bytes, "{moved}");
        }
    }

    /// However grants are used and given back, what is spent never exceeds what is booked, and
    /// nothing stays granted.
    #[test]
    fn spent_bytes_never_exceed_the_booked_ones(
        grants in proptest::collection::vec((1..200_000_u64, 0..=100_u64, any::<bool>()), 1..200),
        overhead_percent in 0..=OVERHEAD_PERCENT_MAX,
    ) {
        let quota = quota(20 * MIB, Every::Day, WhenSpent::Refuse);
        let mut driven = Driven::new(LinkRules { overhead_percent, ..rules(Some(quota)) });
        driven.write();
        for (wanted, percent, writes) in grants {
            if let Permit::UpTo(bytes) = driven.link.permit(driven.now, Class::Bulk, wanted) {
                let used = bytes * percent / 100;
                driven.link.used(driven.now, used, used);
                driven.link.give_back(Class::Bulk, bytes - used);
            }
            if writes {
                driven.write();
            }
            let booked = driven.written.as_ref().unwrap().booked_bytes();
            let spent = driven.spent();
            prop_assert!(spent <= booked && booked <= quota.bytes, "{spent} {booked}");
        }
    }
}
