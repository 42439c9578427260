//! Which connections of clients are handed over, and the steps of it.

use weir_policy::connections::hand_off::MoveCommand::{
    Drop, Forward, Freeze, Go, Hold, Look, Release, Send, Steer, Thaw,
};
use weir_policy::connections::hand_off::MoveEvent::{
    Adopted, Changed, Frozen, Held, NotAdopted, NotFrozen, NotHeld, NotSteered, Steered, Unchanged,
};
use weir_policy::connections::hand_off::{
    HandOffKind, HandOffRequest, MOVES_MAX, Move, MoveCommand, MoveEvent, Stay,
};

fn request() -> HandOffRequest {
    HandOffRequest {
        is_for_other: true,
        is_tls: false,
        is_bare: true,
        is_later: false,
        unacknowledged_bytes: 0,
        unacknowledged_bytes_max: 1000,
        moves: 0,
    }
}

/// What becomes of a request that differs so from one whose connection is handed over.
fn check(kind: HandOffKind, change: fn(&mut HandOffRequest), expected: Result<(), Stay>) {
    let mut request = request();
    change(&mut request);
    assert_eq!(kind.judge(&request), expected, "{request:?}");
}

#[test]
fn connection_is_handed_to_the_chosen_node_unless_its_request_or_its_bytes_forbid_it() {
    for kind in HandOffKind::ALL {
        check(kind, |_| {}, Ok(()));
        check(kind, |it| it.is_for_other = false, Err(Stay::Own));
        check(kind, |it| it.is_tls = true, Err(Stay::Tls));
        check(kind, |it| it.is_bare = false, Err(Stay::Content));
        check(kind, |it| it.unacknowledged_bytes = 1000, Ok(()));
        check(
            kind,
            |it| it.unacknowledged_bytes = 1001,
            Err(Stay::Unacknowledged),
        );
        check(kind, |it| it.moves = MOVES_MAX - 1, Ok(()));
        check(kind, |it| it.moves = MOVES_MAX, Err(Stay::TooMany));
    }
}

#[test]
fn later_request_moves_its_connection_with_multiple_hand_off_alone() {
    check(
        HandOffKind::Single,
        |it| it.is_later = true,
        Err(Stay::Later),
    );
    check(HandOffKind::Multiple, |it| it.is_later = true, Ok(()));
}

/// A whole move: what is done at its begin, and after each event.
fn play(steps: &[(MoveEvent, &[MoveCommand])]) {
    let (mut moving, first) = Move::begin();
    assert_eq!(first, [Hold]);
    for (number, (event, expected)) in steps.iter().enumerate() {
        assert!(!moving.is_over(), "before {event:?}");
        assert_eq!(moving.handle(*event), *expected, "step {number}: {event:?}");
    }
    assert!(moving.is_over());
    for event in EVENTS {
        assert_eq!(moving.handle(event), [], "{event:?} after the end");
    }
}

const EVENTS: [MoveEvent; 10] = [
    Held, NotHeld, Frozen, NotFrozen, Adopted, NotAdopted, Unchanged, Changed, Steered, NotSteered,
];

#[test]
fn connection_is_closed_here_before_the_node_goes_on_with_it() {
    play(&[
        (Held, &[Freeze]),
        (Frozen, &[Send]),
        (Adopted, &[Look]),
        (Unchanged, &[Steer]),
        (Steered, &[Drop, Go]),
    ]);
}

#[test]
fn failure_before_packets_are_steered_leads_back_and_the_request_is_forwarded() {
    play(&[(NotHeld, &[Forward(Stay::TooMany)])]);
    play(&[
        (Held, &[Freeze]),
        (NotFrozen, &[Release, Forward(Stay::State)]),
    ]);
    play(&[
        (Held, &[Freeze]),
        (Frozen, &[Send]),
        (NotAdopted, &[Thaw, Release, Forward(Stay::Node)]),
    ]);
    play(&[
        (Held, &[Freeze]),
        (Frozen, &[Send]),
        (Adopted, &[Look]),
        (Changed, &[Thaw, Release, Forward(Stay::State)]),
    ]);
    play(&[
        (Held, &[Freeze]),
        (Frozen, &[Send]),
        (Adopted, &[Look]),
        (Unchanged, &[Steer]),
        (NotSteered, &[Thaw, Release, Forward(Stay::TooMany)]),
    ]);
}

#[test]
fn in_any_order_of_events_one_machine_alone_goes_on_with_the_connection() {
    // every sequence of six events
    for sequence in 0..EVENTS.len().pow(6) {
        let (mut moving, _) = Move::begin();
        let mut done = Vec::new();
        let mut digits = sequence;
        for _ in 0..6 {
            done.extend(moving.handle(EVENTS[digits % EVENTS.len()]));
            digits /= EVENTS.len();
        }
        let count = |command| done.iter().filter(|it| **it == command).count();
        let forwarded = done.iter().any(|it| matches!(it, Forward(_)));
        assert!(count(Go) <= 1 && count(Go) == count(Drop));
        assert!(!(forwarded && count(Go) == 1), "{done:?}");
        // what is frozen is thawed or closed, what is held is released or steered
        if moving.is_over() && count(Send) == 1 {
            assert_eq!(count(Thaw) + count(Drop), 1, "{done:?}");
            assert_eq!(count(Release) + count(Go), 1, "{done:?}");
        }
    }
}
