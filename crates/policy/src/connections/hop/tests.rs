use super::*;
use std::collections::BTreeSet;

const RULES: OpenRules = OpenRules {
    per_hop_max: 100,
    total_max: 200,
    when_busy: WhenBusy::WaitIfSooner,
};
const DEMAND: Demand = Demand {
    idle: 0,
    open_in_all: 10,
    fresh: false,
    can_close: true,
    patient: true,
    busy_us: Some(100_000),
};
const WAIT: Choice = Choice::Wait {
    why: WaitReason::Sooner,
    at_most_us: Some(20_000),
};

/// So many connections are busy, so many requests wait, and a set-up takes 20 ms.
fn hop(busy: usize, waiting: usize) -> Hop {
    let mut hop = Hop::default();
    for _ in 0..busy {
        hop.begin(ConnectionState::Opening);
        hop.opened(ConnectionState::Opening, 20);
    }
    for _ in 0..waiting {
        hop.wait_begins();
    }
    hop
}

fn check(hop: Hop, demand: Demand, expected: Choice) {
    let mut changed = hop;
    assert_eq!(
        changed.choose(&RULES, &demand),
        expected,
        "{hop:?} {demand:?}"
    );
}

fn wait_for(why: WaitReason) -> Choice {
    Choice::Wait {
        why,
        at_most_us: None,
    }
}

#[test]
fn idle_connection_is_reused_unless_request_is_a_retry() {
    let idle = Demand { idle: 1, ..DEMAND };
    check(hop(50, 0), idle, Choice::Reuse);
    check(hop(100, 0), idle, Choice::Reuse);
    let fresh = Demand {
        fresh: true,
        ..idle
    };
    check(hop(50, 0), fresh, Choice::Open(OpenReason::Repetition));
}

#[test]
fn request_waits_only_if_busy_connection_returns_before_set_up_ends() {
    // 100 ms an exchange: of five busy ones the next is due in 20 ms, of six in 16.7 ms
    check(hop(5, 0), DEMAND, Choice::Open(OpenReason::Sooner));
    check(hop(6, 0), DEMAND, WAIT);
    // and who comes second waits twice as long
    check(hop(10, 1), DEMAND, Choice::Open(OpenReason::Sooner));
    check(hop(11, 1), DEMAND, WAIT);
}

#[test]
fn request_does_not_wait_for_opening_connections_or_tunnels() {
    let mut opening = Hop::default();
    opening.begin(ConnectionState::Opening);
    check(opening, DEMAND, Choice::Open(OpenReason::NoneBusy));
    let mut tunnels = hop(6, 0);
    for _ in 0..6 {
        check(tunnels, DEMAND, {
            if tunnels.pooled() == 6 {
                WAIT
            } else {
                Choice::Open(OpenReason::Sooner)
            }
        });
        tunnels.became_tunnel(ConnectionState::Pooled);
    }
    check(tunnels, DEMAND, Choice::Open(OpenReason::NoneBusy));
    assert_eq!(tunnels.open(), 6);
}

#[test]
fn request_opens_connection_if_times_are_unmeasured_or_set_up_is_quick() {
    let unknown = Demand {
        busy_us: None,
        ..DEMAND
    };
    check(hop(6, 0), unknown, Choice::Open(OpenReason::NotMeasured));
    let with_set_up = |ms| {
        let mut hop = Hop::default();
        for _ in 0..90 {
            hop.begin(ConnectionState::Opening);
            hop.opened(ConnectionState::Opening, ms);
        }
        hop
    };
    check(with_set_up(1), DEMAND, Choice::Open(OpenReason::QuickSetUp));
    let two = Choice::Wait {
        why: WaitReason::Sooner,
        at_most_us: Some(2000),
    };
    check(with_set_up(2), DEMAND, two);
}

#[test]
fn request_that_waited_in_vain_opens_connection_below_the_limit() {
    let tired = Demand {
        patient: false,
        ..DEMAND
    };
    check(hop(6, 0), tired, Choice::Open(OpenReason::WaitedInVain));
    // but a limit is a limit
    check(hop(100, 0), tired, wait_for(WaitReason::PerHopMax));
}

#[test]
fn connection_limits_block_opening_exactly_when_reached() {
    check(hop(100, 0), DEMAND, wait_for(WaitReason::PerHopMax));
    let below = hop(99, 500);
    check(below, DEMAND, Choice::Open(OpenReason::Sooner));
    let crowded = |can_close| Demand {
        open_in_all: 200,
        can_close,
        ..DEMAND
    };
    check(below, crowded(true), Choice::Close(Room::AnyHop));
    check(below, crowded(false), wait_for(WaitReason::TotalMax));
    let room = Demand {
        open_in_all: 199,
        ..DEMAND
    };
    check(below, room, Choice::Open(OpenReason::Sooner));
}

#[test]
fn retry_at_per_hop_limit_closes_idle_connection_of_same_hop() {
    let fresh = |can_close| Demand {
        fresh: true,
        idle: 1,
        can_close,
        ..DEMAND
    };
    check(hop(100, 0), fresh(true), Choice::Close(Room::SameHop));
    check(hop(100, 0), fresh(false), wait_for(WaitReason::PerHopMax));
}

#[test]
fn configured_when_busy_rule_is_followed() {
    let with = |when_busy| OpenRules { when_busy, ..RULES };
    let choose = |when_busy| hop(6, 0).choose(&with(when_busy), &DEMAND);
    assert_eq!(choose(WhenBusy::Open), Choice::Open(OpenReason::Rule));
    assert_eq!(choose(WhenBusy::WaitIfSooner), WAIT);
    assert_eq!(choose(WhenBusy::Race), Choice::Race);
    let first = Hop::default().choose(&with(WhenBusy::Race), &DEMAND);
    assert_eq!(first, Choice::Open(OpenReason::NoneBusy));
}

#[test]
fn race_waits_for_unclaimed_connection_set_up_before_opening_another() {
    let race = OpenRules {
        when_busy: WhenBusy::Race,
        ..RULES
    };
    let under_way = Choice::Wait {
        why: WaitReason::UnderWay,
        at_most_us: None,
    };
    let mut hop = hop(1, 0);
    hop.begin(ConnectionState::OpeningUnassigned);
    hop.wait_begins();
    assert_eq!(hop.choose(&race, &DEMAND), Choice::Race);
    // a busy one came back to who waited
    hop.wait_ends(WaitReason::Race, WaitEnd::Returned);
    assert_eq!(hop.choose(&race, &DEMAND), under_way);
    hop.wait_begins();
    assert_eq!(hop.choose(&race, &DEMAND), Choice::Race);
    hop.wait_ends(WaitReason::UnderWay, WaitEnd::Left);
    hop.opened(ConnectionState::OpeningUnassigned, 20);
    assert_eq!(hop.choose(&race, &DEMAND), Choice::Race);
    // neither need one be busy
    let mut cold = Hop::default();
    cold.begin(ConnectionState::OpeningUnassigned);
    assert_eq!(cold.choose(&race, &DEMAND), under_way);
    let open = OpenRules {
        when_busy: WhenBusy::Open,
        ..RULES
    };
    let opens = Choice::Open(OpenReason::NoneBusy);
    assert_eq!(cold.choose(&open, &DEMAND), opens);
    // a connection that one request opens for itself serves no other request
    hop.begin(ConnectionState::Opening);
    assert_eq!(hop.choose(&race, &DEMAND), Choice::Race);
}

#[test]
fn waiting_backs_off_after_waits_in_vain_and_later_resumes() {
    let mut hop = hop(12, 0);
    let mut waits = 0;
    // nothing ever comes back
    for _ in 0..1000 {
        if hop.choose(&RULES, &DEMAND) == WAIT {
            waits += 1;
            hop.wait_begins();
            hop.wait_ends(WaitReason::Sooner, WaitEnd::InVain);
        }
    }
    assert!((5..40).contains(&waits), "{waits} of 1000 waited in vain");
    // it does again
    let mut tries = 0;
    while hop.wait_confidence != WaitConfidence::default() && tries < 10_000 {
        tries += 1;
        if hop.choose(&RULES, &DEMAND) == WAIT {
            hop.wait_begins();
            hop.wait_ends(WaitReason::Sooner, WaitEnd::Returned);
            if hop.wait_confidence.expected_us(1000) < 1100 {
                break;
            }
        }
    }
    assert!(tries < 500, "{tries}");
}

#[test]
fn ends_of_race_and_limit_waits_do_not_change_hop_state() {
    let mut hop = hop(12, 0);
    for end in WaitEnd::ALL {
        for why in [
            WaitReason::Race,
            WaitReason::UnderWay,
            WaitReason::PerHopMax,
            WaitReason::TotalMax,
        ] {
            hop.wait_begins();
            hop.wait_ends(why, end);
        }
    }
    assert_eq!(hop, self::hop(12, 0));
}

#[test]
fn reason_words_are_unique() {
    fn check<'a>(words: impl IntoIterator<Item = &'a str>) {
        let mut seen = BTreeSet::new();
        for word in words {
            assert!(seen.insert(word), "{word} means two things");
        }
    }
    check(OpenReason::ALL.map(OpenReason::as_str));
    check(WaitReason::ALL.map(WaitReason::as_str));
    check(WaitEnd::ALL.map(WaitEnd::as_str));
    check([WhenBusy::Open, WhenBusy::WaitIfSooner, WhenBusy::Race].map(WhenBusy::as_str));
}
