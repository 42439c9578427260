use super::*;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// 20 MB of which 0.26 MB are here; it may go on, and its part is kept.
const UNREAD: UnreadFetch = UnreadFetch {
    is_kept: true,
    received: 256 * KIB,
    complete_length: Some(20 * MIB),
    again: Chance::NEVER,
    part_is_kept: true,
    new_connection_bytes: 0,
    background_free_bytes: u64::MAX,
};

#[track_caller]
fn check(policy: AbortPolicy, unread: UnreadFetch, word: &str) {
    let judged = judge(&policy, &unread);
    assert_eq!(judged.as_str(), word, "{policy:?} {unread:?}");
    assert_eq!(
        word.starts_with("go-on"),
        matches!(judged, AbortDecision::Continue(_))
    );
}

/// One that lacks so much of 20 MiB.
fn lacking(remaining: u64) -> UnreadFetch {
    UnreadFetch {
        received: 20 * MIB - remaining,
        ..UNREAD
    }
}

#[test]
fn stop_and_finish_policies_ignore_length_and_progress() {
    for unread in [
        UNREAD,
        lacking(1),
        UnreadFetch {
            complete_length: None,
            ..UNREAD
        },
    ] {
        check(AbortPolicy::Stop, unread, "stop-always");
        check(AbortPolicy::Finish, unread, "go-on-always");
    }
}

#[test]
fn squid_policy_defaults_to_16_kib_and_95_percent() {
    let squid = AbortPolicy::SQUID;
    check(squid, lacking(16 * KIB - 1), "go-on-little-left");
    check(squid, lacking(16 * KIB), "go-on-most-received");
    check(squid, lacking(16 * KIB + 1), "stop-much-left");
    check(
        squid,
        UnreadFetch {
            complete_length: None,
            ..UNREAD
        },
        "stop-length-unknown",
    );
    // of a small one the same remainder is more than five percent
    let small = UnreadFetch {
        received: 16 * KIB,
        complete_length: Some(32 * KIB),
        ..UNREAD
    };
    check(squid, small, "stop-little-received");
}

#[test]
fn squid_policy_checks_minimum_then_maximum_then_percent() {
    let squid = |min_bytes, max_bytes, pct| AbortPolicy::Squid {
        min_bytes,
        max_bytes,
        pct,
    };
    let percent = |received| UnreadFetch {
        received,
        complete_length: Some(100_000),
        ..UNREAD
    };
    check(
        squid(0, u64::MAX, 95),
        percent(95_000),
        "stop-little-received",
    );
    check(
        squid(0, u64::MAX, 95),
        percent(95_001),
        "go-on-most-received",
    );
    check(squid(0, 4000, 95), percent(95_001), "stop-much-left");
    check(squid(5000, 4000, 95), percent(95_001), "go-on-little-left");
    check(squid(0, 0, 95), percent(99_999), "stop-much-left");
    check(
        squid(0, u64::MAX, 100),
        percent(99_999),
        "stop-little-received",
    );
    // -1
    let unknown = UnreadFetch {
        complete_length: None,
        ..UNREAD
    };
    check(squid(u64::MAX, 0, 100), unknown, "go-on-always");
    check(squid(u64::MAX, 0, 100), UNREAD, "go-on-always");
}

#[test]
fn value_policy_always_finishes_the_last_16_kib() {
    check(AbortPolicy::VALUE, lacking(16 * KIB), "go-on-little-left");
    check(
        AbortPolicy::VALUE,
        lacking(16 * KIB + 1),
        "stop-not-worth-it",
    );
    check(AbortPolicy::VALUE, lacking(0), "go-on-little-left");
}

#[test]
fn value_policy_counts_received_bytes_only_if_they_would_be_lost() {
    // half of 20 MiB is here: worth going on if it is asked for again with a chance of more than a
    // half
    let lost = |per_1024| UnreadFetch {
        again: Chance::of(per_1024, 1024),
        part_is_kept: false,
        ..lacking(10 * MIB)
    };
    check(AbortPolicy::VALUE, lost(512), "stop-not-worth-it");
    check(AbortPolicy::VALUE, lost(513), "go-on-worth-it");
    let kept = |per_1024| UnreadFetch {
        part_is_kept: true,
        ..lost(per_1024)
    };
    check(AbortPolicy::VALUE, kept(513), "stop-not-worth-it");
    check(AbortPolicy::VALUE, kept(1024), "stop-not-worth-it");
}

#[test]
fn value_policy_weighs_the_cost_of_a_new_connection() {
    let unread = |new_connection_bytes| UnreadFetch {
        new_connection_bytes,
        ..lacking(100 * KIB)
    };
    check(AbortPolicy::VALUE, unread(100 * KIB), "stop-not-worth-it");
    check(AbortPolicy::VALUE, unread(100 * KIB + 1), "go-on-worth-it");
    // with what is saved besides
    let again = UnreadFetch {
        again: Chance::of(1, 2),
        ..unread(50 * KIB)
    };
    check(AbortPolicy::VALUE, again, "stop-not-worth-it");
    let again = UnreadFetch {
        new_connection_bytes: 50 * KIB + 1,
        ..again
    };
    check(AbortPolicy::VALUE, again, "go-on-worth-it");
}

#[test]
fn value_policy_stops_fetch_beyond_background_budget() {
    let worth = UnreadFetch {
        again: Chance::CERTAIN,
        part_is_kept: false,
        ..UNREAD
    };
    let remaining = 20 * MIB - 256 * KIB;
    for (background_free_bytes, word) in [
        (remaining, "go-on-worth-it"),
        (remaining - 1, "stop-no-budget"),
    ] {
        let unread = UnreadFetch {
            background_free_bytes,
            ..worth
        };
        check(AbortPolicy::VALUE, unread, word);
    }
    let little = UnreadFetch {
        background_free_bytes: 15 * KIB,
        ..lacking(16 * KIB)
    };
    check(AbortPolicy::VALUE, little, "stop-no-budget");
    // what is not worth it is not told to lack a budget
    let neither = UnreadFetch {
        background_free_bytes: 0,
        ..UNREAD
    };
    check(AbortPolicy::VALUE, neither, "stop-not-worth-it");
}

#[test]
fn unknown_and_extreme_lengths_are_judged_without_overflow() {
    let unknown = UnreadFetch {
        complete_length: None,
        ..UNREAD
    };
    check(AbortPolicy::VALUE, unknown, "stop-length-unknown");
    let more_than_all = UnreadFetch {
        received: u64::MAX,
        ..UNREAD
    };
    check(AbortPolicy::VALUE, more_than_all, "go-on-little-left");
    check(AbortPolicy::SQUID, more_than_all, "go-on-little-left");
    let huge = UnreadFetch {
        received: 0,
        complete_length: Some(u64::MAX),
        again: Chance::CERTAIN,
        part_is_kept: false,
        new_connection_bytes: u64::MAX,
        ..UNREAD
    };
    check(AbortPolicy::VALUE, huge, "stop-not-worth-it");
    check(AbortPolicy::SQUID, huge, "stop-much-left");
}

#[test]
fn abort_reason_words_are_unique() {
    let continue_unread = ContinueReason::ALL.map(|why| AbortDecision::Continue(why).as_str());
    let stop = StopReason::ALL.map(|why| AbortDecision::Stop(why).as_str());
    let words: std::collections::BTreeSet<_> = continue_unread.into_iter().chain(stop).collect();
    assert_eq!(words.len(), 11);
}

#[test]
fn fetch_neither_read_nor_kept_is_stopped_under_every_policy() {
    for policy in [
        AbortPolicy::Stop,
        AbortPolicy::Finish,
        AbortPolicy::Squid {
            min_bytes: u64::MAX,
            max_bytes: u64::MAX,
            pct: 0,
        },
        AbortPolicy::VALUE,
    ] {
        let unread = UnreadFetch {
            is_kept: false,
            again: Chance::CERTAIN,
            ..lacking(1)
        };
        check(policy, unread, "stop-not-kept");
    }
}
