use super::*;
use weir_semantics::Timestamp;

const KIB: u64 = 1024;

fn at(at_ms: u64) -> Now {
    Now {
        wall: Timestamp(0),
        tick: Tick(at_ms),
    }
}

fn pace() -> Pace {
    Pace::new(ReadAhead::DEFAULT, at(0))
}

/// One that was given so many bytes at these milliseconds.
fn paced(handed: &[(u64, u64)]) -> Pace {
    let mut pace = pace();
    for &(at_ms, bytes) in handed {
        pace.handed_over(at(at_ms), bytes, false);
    }
    pace
}

#[track_caller]
fn check_rate(handed: &[(u64, u64)], rate_bytes_s: u64) {
    assert_eq!(paced(handed).rate_bytes_s(), rate_bytes_s);
}

#[test]
fn initial_shares_add_up_to_the_read_ahead_limit() {
    let pace = pace();
    let unsent = u64::from(pace.unsent().unwrap());
    let window = u64::from(pace.window(None).unwrap());
    // what lies unsent, and what one write may add
    assert_eq!(pace.ahead() + window + 2 * unsent, 64 * KIB);
}

#[test]
fn rate_is_zero_until_one_interval_has_elapsed() {
    check_rate(&[(0, 5000), (4, 5000)], 0);
    check_rate(&[(0, 5000), (5, 5000)], 2_000_000);
    check_rate(&[(0, 5000), (0, 5000)], 0);
    check_rate(&[(10, 10_000)], 1_000_000);
}

#[test]
fn rate_rises_at_once_and_falls_by_a_quarter_per_idle_interval() {
    let fast = [(10, 10_000), (20, 40_000)];
    check_rate(&fast, 4_000_000);
    // one interval of 5 ms without a byte: a quarter less; four: nothing
    check_rate(&[fast.as_slice(), &[(24, 0)]].concat(), 4_000_000);
    check_rate(&[fast.as_slice(), &[(25, 0)]].concat(), 3_000_000);
    check_rate(&[fast.as_slice(), &[(39, 0)]].concat(), 1_000_000);
    check_rate(&[fast.as_slice(), &[(40, 0)]].concat(), 0);
}

#[test]
fn rate_interval_is_at_least_the_longer_round_trip() {
    for (client_us, next_hop_us) in [(50_000, 1000), (1000, 50_000), (49_001, 0)] {
        let mut pace = pace();
        pace.set_round_trips(client_us, next_hop_us);
        pace.handed_over(at(49), 50_000, false);
        assert_eq!(pace.rate_bytes_s(), 0);
        pace.handed_over(at(50), 0, false);
        assert_eq!(pace.rate_bytes_s(), 1_000_000);
    }
}

#[test]
fn shares_grow_with_rate_and_round_trip() {
    let mut pace = paced(&[(10, 10_000)]);
    assert_eq!(pace.ahead(), 16 * KIB + 1000);
    assert_eq!(pace.unsent(), Some(16 * 1024 + 1000));
    // a round trip counts as a turn at least
    for (next_hop_us, grown) in [(0, 1000), (1000, 1000), (100_000, 100_000)] {
        pace.set_round_trips(0, next_hop_us);
        assert_eq!(pace.window(None), Some(16 * 1024 + grown));
    }
    // the first rate there is has risen
    pace.handed_over(at(10), 1, true);
    assert_eq!(pace.window(None), Some(16 * 1024 + 400_000));
    pace.handed_over(at(10), 0, false);
    assert_eq!(pace.window(None), Some(16 * 1024 + 400_000));
    pace.handed_over(at(10), 1, false);
    assert_eq!(pace.window(None), Some(16 * 1024 + 100_000));
}

#[test]
fn window_of_starving_reader_is_doubled_only_while_its_rate_rises() {
    let mut pace = paced(&[(10, 10_000)]);
    pace.set_round_trips(0, 100_000);
    for (at_ms, bytes, gain) in [
        (110, 125_001, 4),
        (210, 125_001, 2),
        // by a quarter: not by more
        (310, 156_251, 2),
        (410, 195_315, 4),
    ] {
        pace.handed_over(at(at_ms), bytes, true);
        let grown = u32::try_from(bytes * gain).unwrap();
        let found = pace.window(None).unwrap() - 16 * 1024;
        assert!(found.abs_diff(grown) <= 4, "{at_ms}: {found} for {grown}");
    }
}

#[test]
fn window_shrinks_to_remaining_bytes_but_not_below_its_base() {
    let mut pace = paced(&[(10, 10_000)]);
    pace.set_round_trips(0, 100_000);
    for (remaining, window) in [
        (None, 116_384),
        (Some(116_385), 116_384),
        (Some(116_383), 116_383),
        (Some(16_385), 16_385),
        (Some(16_383), 16_384),
        (Some(0), 16_384),
    ] {
        assert_eq!(pace.window(remaining), Some(window), "{remaining:?}");
    }
}

#[test]
fn extreme_measurements_are_capped_at_the_maximum_window() {
    let mut pace = pace();
    pace.set_round_trips(u32::MAX, u32::MAX);
    pace.handed_over(at(1), u64::MAX, true);
    pace.handed_over(at(20_000), u64::MAX, true);
    assert_eq!(pace.window(None), Some(WINDOW_MAX_BYTES));
    assert_eq!(pace.unsent(), Some(WINDOW_MAX_BYTES));
    pace.handed_over(at(0), 5, true);
    let tiny = Pace::new(ReadAhead::Bytes(0), at(0));
    assert_eq!(tiny.ahead(), SHARE_MIN_BYTES);
}

#[test]
fn unbounded_read_ahead_has_no_limit() {
    let pace = Pace::new(ReadAhead::Unbounded, at(0));
    assert_eq!(pace.ahead(), u64::MAX);
    assert_eq!(pace.window(Some(5)), None);
    assert_eq!(pace.unsent(), None);
}
