//! When a certificate that an authority issues is ordered, and again when it is renewed (RFC 8555,
//! RFC 9773).
//!
//! What the authority suggests decides, if it does; else two thirds of the lifetime. Both are
//! spread by a number that is drawn for each certificate, so that many do not come at once. After a
//! failure the wait grows. Ages are by the wall clock, waits by the tick: a wall clock that is set
//! neither ends a wait nor begins one.

use crate::now::{Now, Tick};
use weir_semantics::Timestamp;

/// The longest time until it is looked again whether something is due, milliseconds: as long goes
/// unnoticed that the wall clock was set.
pub const LOOK_AGAIN_MS: u64 = 60_000;

/// The longest wait after a failure, milliseconds, but for what the authority demands: 6 h.
pub const RETRY_MAX_MS: u64 = 6 * 3_600_000;

/// By how much a wait grows with each failure: with the first of 1 min there are five attempts in
/// the first hour, as many failed validations of a name as Let's Encrypt permits in one.
const RETRY_GROWTH: u64 = 3;

/// The longest wait that is kept to when an authority demands one, milliseconds: a week.
const DEMANDED_MAX_MS: u64 = 7 * 24 * 3_600_000;

/// How often the authority is asked for its suggestion, milliseconds: as it says, within what
/// RFC 9773 §4.3.2 recommends, from a minute to a day.
const ASK_MS: core::ops::RangeInclusive<u64> = 60_000..=24 * 3_600_000;

/// The same if it does not say, or does not answer: 6 h.
const ASK_AGAIN_MS: u64 = 6 * 3_600_000;

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From then on.
    pub not_before: Timestamp,
    /// Until then.
    pub not_after: Timestamp,
}

/// When the authority suggests that a certificate be renewed (RFC 9773 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuggestedWindow {
    /// Not before.
    pub start: Timestamp,
    /// Not later.
    pub end: Timestamp,
}

/// What is to be done about a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewalStep {
    /// To order one now.
    Order,
    /// To ask the authority when it is to be renewed.
    Ask,
    /// Nothing for so many milliseconds, [`LOOK_AGAIN_MS`] at most.
    Wait(u64),
}

/// What is known of one certificate.
#[derive(Clone, Debug)]
pub struct Renewal {
    /// `None`: there is no certificate that can be used.
    validity: Option<Validity>,
    window: Option<SuggestedWindow>,
    /// Where in the time that is left for the renewal it is: 0 at its begin, the greatest number at
    /// its end.
    draw: u32,
    /// Failures since the last success.
    failures: u32,
    /// Nothing is ordered before.
    retry_at: Option<Tick>,
    /// Nothing is ordered before either, as the authority demands.
    demanded: Option<Tick>,
    /// The authority is asked then; `None`: it makes no suggestions.
    ask_at: Option<Tick>,
}

impl Renewal {
    /// One that is to be ordered: there is none. `draw` is a random number.
    #[must_use]
    pub const fn new(draw: u32) -> Self {
        Self {
            validity: None,
            window: None,
            draw,
            failures: 0,
            retry_at: None,
            demanded: None,
            ask_at: None,
        }
    }

    /// There is one from an earlier process.
    #[must_use]
    pub const fn found(validity: Validity, now: Now, draw: u32) -> Self {
        Self {
            validity: Some(validity),
            ask_at: Some(now.tick),
            ..Self::new(draw)
        }
    }

    /// How often it has failed since it last succeeded.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// When it is valid.
    #[must_use]
    pub const fn validity(&self) -> Option<Validity> {
        self.validity
    }

    /// A new one is in use. One that is due again at once, as the clock here differs from that of
    /// the authority, counts as a failure: it is not ordered without end.
    pub fn issued(&mut self, validity: Validity, now: Now, draw: u32, retry_min_ms: u64) {
        let failures = self.failures;
        *self = Self {
            demanded: self.demanded,
            ..Self::found(validity, now, draw)
        };
        if self.is_due(now.wall) {
            self.failures = failures;
            self.failed(now, None, draw, retry_min_ms);
        }
    }

    /// An order has failed; the first wait is `retry_min_ms`. The authority demands to be left
    /// alone for `demanded_ms`, if it does.
    pub fn failed(&mut self, now: Now, demanded_ms: Option<u64>, draw: u32, retry_min_ms: u64) {
        let growth = RETRY_GROWTH.saturating_pow(self.failures.min(32));
        let wait = retry_min_ms.saturating_mul(growth).min(RETRY_MAX_MS);
        // a tenth more or less: those that failed together are not tried together
        let wait = wait - wait / 10 + part_of(wait / 5, draw);
        self.failures = self.failures.saturating_add(1);
        self.retry_at = Some(now.tick.plus_ms(wait));
        if let Some(demanded) = demanded_ms {
            self.demanded(demanded, now);
        }
    }

    /// The authority demands to be left alone for so many milliseconds: it is neither asked nor
    /// ordered from.
    pub fn demanded(&mut self, ms: u64, now: Now) {
        self.demanded = Some(now.tick.plus_ms(ms.min(DEMANDED_MAX_MS)));
    }

    /// The operator has changed something: what failed is tried again at once, unless the authority
    /// demands to be left alone, and it is asked again for its suggestion.
    pub fn retry_now(&mut self, now: Now) {
        self.retry_at = None;
        if self.validity.is_some() {
            self.ask_at = Some(now.tick);
        }
    }

    /// The authority has been asked, and suggests this, if anything; it is to be asked again after
    /// `after_ms`.
    pub fn suggested(&mut self, window: Option<SuggestedWindow>, after_ms: Option<u64>, now: Now) {
        // RFC 9773 §4.2: a window that ends before it begins is none
        let window = window.filter(|window| window.start < window.end);
        self.window = window.or(self.window);
        let after = after_ms.map_or(ASK_AGAIN_MS, |ms| ms.clamp(*ASK_MS.start(), *ASK_MS.end()));
        self.ask_at = Some(now.tick.plus_ms(after));
    }

    /// The authority makes no suggestions.
    pub const fn suggests_nothing(&mut self) {
        self.ask_at = None;
        self.window = None;
    }

    /// When one is ordered, as far as is known now: sooner or later if the authority comes to
    /// suggest that, or the wall clock is set.
    #[must_use]
    pub fn order_at(&self, now: Now) -> Timestamp {
        let wait_until = self.retry_at.max(self.demanded);
        let waits_ms = wait_until.map_or(0, |until| until.ms_since(now.tick));
        let waits_s = i64::try_from(waits_ms.div_ceil(1000)).unwrap_or(i64::MAX);
        let free = Timestamp(now.wall.0.saturating_add(waits_s));
        self.renew_at().map_or(free, |at| at.max(free))
    }

    /// What is to be done now.
    #[must_use]
    pub fn step(&self, now: Now) -> RenewalStep {
        let wait_until = self.retry_at.max(self.demanded);
        let waits_ms = wait_until.map_or(0, |until| until.ms_since(now.tick));
        let is_due = self.is_due(now.wall);
        if is_due && waits_ms == 0 {
            return RenewalStep::Order;
        }
        let ask_at = self
            .ask_at
            .map(|at| self.demanded.map_or(at, |it| it.max(at)));
        let ask_ms = ask_at.map(|at| at.ms_since(now.tick));
        if ask_ms == Some(0) && !is_due {
            return RenewalStep::Ask;
        }
        let due_ms = match self.renew_at().filter(|_| !is_due) {
            None => waits_ms,
            Some(at) => {
                let seconds = at.0.saturating_sub(now.wall.0);
                u64::try_from(seconds).unwrap_or(0).saturating_mul(1000)
            }
        };
        let next = due_ms.min(ask_ms.filter(|ms| *ms > 0).unwrap_or(u64::MAX));
        RenewalStep::Wait(next.clamp(1, LOOK_AGAIN_MS))
    }

    fn is_due(&self, wall: Timestamp) -> bool {
        self.renew_at().is_none_or(|at| at <= wall)
    }

    /// When the certificate is to be renewed; `None`: there is none.
    #[must_use]
    pub fn renew_at(&self) -> Option<Timestamp> {
        let Validity {
            not_before,
            not_after,
        } = self.validity?;
        let lifetime = not_after.0.saturating_sub(not_before.0).max(0);
        let within = |start: i64, length: i64| {
            let length = u64::try_from(length).unwrap_or(0);
            let more = i64::try_from(part_of(length, self.draw)).unwrap_or(0);
            Timestamp(start.saturating_add(more))
        };
        // whatever it suggests, a tenth of the lifetime is left for what fails
        let latest = Timestamp(not_after.0.saturating_sub(lifetime / 10));
        Some(match self.window {
            Some(SuggestedWindow { start, end }) => {
                within(start.0, end.0.saturating_sub(start.0)).min(latest)
            }
            None => {
                let two_thirds = lifetime - lifetime / 3;
                let spread = lifetime / 20;
                within(not_before.0.saturating_add(two_thirds - spread), spread)
            }
        })
    }
}

/// `draw` of 2^32 parts of a length.
fn part_of(length: u64, draw: u32) -> u64 {
    let part = (u128::from(length) * u128::from(draw)) >> 32;
    u64::try_from(part).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 3600;
    const MINUTE_MS: u64 = 60_000;

    fn at(wall: i64, tick: u64) -> Now {
        Now {
            wall: Timestamp(wall),
            tick: Tick(tick),
        }
    }

    /// For 90 days from second 0 on.
    const VALIDITY: Validity = Validity {
        not_before: Timestamp(0),
        not_after: Timestamp(90 * DAY),
    };

    fn found(draw: u32) -> Renewal {
        let mut renewal = Renewal::found(VALIDITY, at(0, 0), draw);
        renewal.suggests_nothing();
        renewal
    }

    #[test]
    fn one_that_is_not_there_is_ordered_at_once() {
        assert_eq!(Renewal::new(7).step(at(5, 5)), RenewalStep::Order);
    }

    #[test]
    fn without_a_suggestion_it_is_renewed_at_two_thirds_of_the_lifetime() {
        for (draw, day) in [(0, 60.0 - 4.5), (1 << 31, 60.0 - 2.25), (u32::MAX, 60.0)] {
            let renewal = found(draw);
            let at_s = renewal.renew_at().map_or(0, |at| at.0);
            #[expect(clippy::cast_precision_loss, reason = "days")]
            let days = at_s as f64 / DAY as f64;
            assert!((days - day).abs() < 0.001, "{draw}: {days}");
            assert_eq!(renewal.step(at(at_s - 1, 0)), RenewalStep::Wait(1000));
            assert_eq!(renewal.step(at(at_s, 0)), RenewalStep::Order);
        }
    }

    #[test]
    fn suggestion_decides_but_leaves_a_tenth_of_the_lifetime() {
        let mut renewal = Renewal::found(VALIDITY, at(0, 0), 1 << 31);
        assert_eq!(renewal.step(at(0, 0)), RenewalStep::Ask);
        let window = |start, end| {
            Some(SuggestedWindow {
                start: Timestamp(start * DAY),
                end: Timestamp(end * DAY),
            })
        };
        renewal.suggested(window(10, 20), None, at(0, 0));
        assert_eq!(renewal.renew_at(), Some(Timestamp(15 * DAY)));
        // one that ends before it begins is none
        renewal.suggested(window(9, 9), None, at(0, 0));
        assert_eq!(renewal.renew_at(), Some(Timestamp(15 * DAY)));
        renewal.suggested(window(85, 200), None, at(0, 0));
        assert_eq!(renewal.renew_at(), Some(Timestamp(81 * DAY)));
        // in the past: now (RFC 9773 §4.2)
        renewal.suggested(window(-20, -10), None, at(0, 0));
        assert_eq!(renewal.step(at(0, 0)), RenewalStep::Order);
    }

    #[test]
    fn authority_is_asked_as_it_says_within_a_minute_and_a_day() {
        for (said, asked) in [
            (Some(0), MINUTE_MS),
            (Some(3 * MINUTE_MS), 3 * MINUTE_MS),
            (Some(u64::MAX), 24 * 60 * MINUTE_MS),
            (None, ASK_AGAIN_MS),
        ] {
            let mut renewal = Renewal::found(VALIDITY, at(0, 0), 0);
            renewal.suggested(None, said, at(0, 1000));
            let before = renewal.step(at(0, 1000 + asked - 1));
            assert_eq!(before, RenewalStep::Wait(1), "{said:?}");
            assert_eq!(renewal.step(at(0, 1000 + asked)), RenewalStep::Ask);
        }
    }

    /// The wait after as many failures in a row, in the middle of its spread.
    fn wait_after(failures: u32) -> u64 {
        let mut renewal = Renewal::new(0);
        for _ in 0..failures {
            renewal.failed(at(0, 0), None, 1 << 31, MINUTE_MS);
        }
        renewal.retry_at.map_or(0, |at| at.0)
    }

    #[test]
    fn wait_grows_with_each_failure_up_to_six_hours() {
        let minutes = [1, 3, 9, 27, 81, 243, 360, 360];
        for (failures, minutes) in (1..).zip(minutes) {
            assert_eq!(wait_after(failures), minutes * MINUTE_MS);
        }
        assert_eq!(wait_after(100_000), 360 * MINUTE_MS);
    }

    #[test]
    fn demand_of_the_authority_holds_and_is_bounded() {
        let mut renewal = Renewal::new(0);
        renewal.failed(at(0, 0), Some(10 * MINUTE_MS), 0, MINUTE_MS);
        assert_ne!(renewal.step(at(0, 10 * MINUTE_MS - 1)), RenewalStep::Order);
        // an operator cannot shorten it
        renewal.retry_now(at(0, 0));
        assert_ne!(renewal.step(at(0, 10 * MINUTE_MS - 1)), RenewalStep::Order);
        assert_eq!(renewal.step(at(0, 10 * MINUTE_MS)), RenewalStep::Order);
        renewal.failed(at(0, 0), Some(u64::MAX), 0, MINUTE_MS);
        assert_eq!(renewal.step(at(0, DEMANDED_MAX_MS)), RenewalStep::Order);
    }

    #[test]
    fn demand_in_answer_to_a_question_holds_for_questions_and_orders() {
        let hour_ms = 60 * MINUTE_MS;
        let mut renewal = Renewal::found(VALIDITY, at(0, 0), 0);
        renewal.suggested(None, None, at(0, 0));
        renewal.demanded(hour_ms, at(0, 0));
        // an operator cannot shorten it
        renewal.retry_now(at(0, 0));
        for wall in [0, 89 * DAY] {
            let before = renewal.step(at(wall, hour_ms - 1));
            assert_eq!(before, RenewalStep::Wait(1), "day {}", wall / DAY);
        }
        assert_eq!(renewal.step(at(0, hour_ms)), RenewalStep::Ask);
        assert_eq!(renewal.step(at(89 * DAY, hour_ms)), RenewalStep::Order);
    }

    #[test]
    fn operator_has_a_failed_one_tried_again_at_once() {
        let mut renewal = Renewal::new(0);
        for _ in 0..5 {
            renewal.failed(at(0, 0), None, 0, MINUTE_MS);
        }
        assert_ne!(renewal.step(at(0, 0)), RenewalStep::Order);
        renewal.retry_now(at(0, 0));
        assert_eq!(renewal.step(at(0, 0)), RenewalStep::Order);
        assert_eq!(renewal.failures(), 5);
    }

    #[test]
    fn clock_that_is_set_neither_ends_a_wait_nor_orders_without_end() {
        // forward by ten years: it is due, once
        let mut renewal = found(0);
        let years = 3650 * DAY;
        assert_eq!(renewal.step(at(years, 5)), RenewalStep::Order);
        // the authority has another clock: what it issues is over by this one
        let issued = Validity {
            not_before: Timestamp(5),
            not_after: Timestamp(90 * DAY),
        };
        let mut last = 0;
        let mut orders = 0;
        for tick in (0..24 * 60).map(|minute| minute * MINUTE_MS) {
            if renewal.step(at(years, tick)) == RenewalStep::Order {
                assert!(orders == 0 || tick - last >= MINUTE_MS * 9 / 10);
                (last, orders) = (tick, orders + 1);
                renewal.issued(issued, at(years, tick), 0, MINUTE_MS);
            }
        }
        assert!((5..12).contains(&orders), "{orders} in a day");
        // back again: nothing is due
        assert!(matches!(
            renewal.step(at(10, 25 * 3_600_000)),
            RenewalStep::Wait(_) | RenewalStep::Ask
        ));
        // back beyond its begin: a new one would not be valid either
        let renewal = found(0);
        assert!(matches!(renewal.step(at(-years, 5)), RenewalStep::Wait(_)));
        // a wait goes on
        let mut renewal = Renewal::new(0);
        renewal.failed(at(0, 0), None, 1 << 31, MINUTE_MS);
        assert_eq!(renewal.step(at(years, 1)), RenewalStep::Wait(MINUTE_MS - 1));
        assert_eq!(renewal.step(at(-years, MINUTE_MS)), RenewalStep::Order);
    }

    /// A jump of the wall clock alone, or of a machine that slept: its tick stands still then.
    #[test]
    fn jump_of_90_days_is_noticed_within_a_minute() {
        let day = 10 * DAY;
        let renewal = found(0);
        let RenewalStep::Wait(ms) = renewal.step(at(day, 7)) else {
            panic!("nothing is due at day 10");
        };
        // the next look, by the tick, is at the clock as it is then
        assert!(ms <= LOOK_AGAIN_MS);
        let later = at(day + 90 * DAY, 7 + ms);
        assert_eq!(renewal.step(later), RenewalStep::Order);
        // a wait for the authority, or of a failure, hides no jump: it goes on, and is looked after
        let mut renewal = found(0);
        renewal.failed(at(day, 7), Some(DEMANDED_MAX_MS), 0, MINUTE_MS);
        for wall in [day, day + 90 * DAY, day - 90 * DAY] {
            let RenewalStep::Wait(ms) = renewal.step(at(wall, 8)) else {
                panic!("the authority demands to be left alone");
            };
            assert!(ms <= LOOK_AGAIN_MS, "{wall}");
        }
    }

    #[test]
    fn jump_backwards_orders_nothing_and_loses_nothing() {
        let renewal = found(0);
        let due = renewal.renew_at().map_or(0, |at| at.0);
        for wall in [due - 1, due - 90 * DAY, -90 * DAY] {
            assert!(matches!(renewal.step(at(wall, 7)), RenewalStep::Wait(_)));
        }
        // the clock is right again
        assert_eq!(renewal.step(at(due, 8)), RenewalStep::Order);
    }

    #[test]
    fn authority_is_not_asked_for_a_jump() {
        let mut renewal = Renewal::found(VALIDITY, at(0, 0), 0);
        renewal.suggested(None, None, at(0, 0));
        for wall in [-90 * DAY, 0, 50 * DAY] {
            let before = renewal.step(at(wall, ASK_AGAIN_MS - 1));
            assert_eq!(before, RenewalStep::Wait(1), "{wall}");
            assert_eq!(renewal.step(at(wall, ASK_AGAIN_MS)), RenewalStep::Ask);
        }
    }

    #[test]
    fn next_order_is_when_it_is_due_and_no_wait_holds_it_back() {
        let mut renewal = found(0);
        let due = renewal.renew_at().expect("there is one");
        assert_eq!(renewal.order_at(at(0, 0)), due);
        // overdue: now
        assert_eq!(renewal.order_at(at(70 * DAY, 0)).0, 70 * DAY);
        renewal.failed(at(70 * DAY, 0), None, 1 << 31, MINUTE_MS);
        assert_eq!(renewal.order_at(at(70 * DAY, 0)).0, 70 * DAY + 60);
        assert_eq!(renewal.order_at(at(70 * DAY + 59, 59_500)).0, 70 * DAY + 60);
        assert_eq!(Renewal::new(0).order_at(at(5, 0)).0, 5);
    }

    #[test]
    fn random_events_keep_the_rules() {
        let mut random = 3_u64;
        let mut next = move |most: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % most
        };
        let mut renewal = Renewal::new(0);
        let (mut now, mut blocked_until) = (at(0, 0), 0);
        for _ in 0..50_000 {
            // the wall clock is set now and then, and the tick never goes back
            let passed = next(3_600_000);
            now.tick = now.tick.plus_ms(passed);
            now.wall.0 += i64::try_from(passed / 1000).unwrap_or(0);
            if next(50) == 0 {
                now.wall.0 += i64::try_from(next(400)).unwrap_or(0) * DAY - 200 * DAY;
            }
            let draw = u32::try_from(next(1 << 32)).unwrap_or(0);
            match renewal.step(now) {
                RenewalStep::Order => {
                    assert!(now.tick.0 >= blocked_until, "an order within a wait");
                    if next(2) == 0 {
                        let demanded = (next(3) == 0).then(|| next(20 * 3_600_000));
                        renewal.failed(now, demanded, draw, MINUTE_MS);
                        let least = demanded.unwrap_or(0).max(MINUTE_MS * 9 / 10);
                        blocked_until = now.tick.0 + least;
                    } else {
                        let life = i64::try_from(next(90)).unwrap_or(0) * DAY + 60;
                        let validity = Validity {
                            not_before: now.wall,
                            not_after: Timestamp(now.wall.0 + life),
                        };
                        renewal.issued(validity, now, draw, MINUTE_MS);
                        let renew_at = renewal.renew_at().map_or(0, |at| at.0);
                        assert!(renew_at > now.wall.0 && renew_at < now.wall.0 + life);
                    }
                }
                RenewalStep::Ask => {
                    let start = now.wall.0 + i64::try_from(next(100)).unwrap_or(0) * DAY;
                    let window = SuggestedWindow {
                        start: Timestamp(start),
                        end: Timestamp(start + i64::try_from(next(3)).unwrap_or(0) * DAY),
                    };
                    renewal.suggested(Some(window), Some(next(1 << 40)), now);
                    assert_ne!(renewal.step(now), RenewalStep::Ask);
                }
                RenewalStep::Wait(ms) => assert!((1..=LOOK_AGAIN_MS).contains(&ms)),
            }
        }
    }
}
