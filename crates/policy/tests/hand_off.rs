//! Which connections of clients are handed over, and the steps of it.

use weir_policy::connections::hand_off::MoveCommand::{
    Drop, Freeze, Go, Hold, Look, Release, Send, Steer, Thaw, Unsteer,
};
use weir_policy::connections::hand_off::MoveEnd::{HandedOver, Lost, Stays};
use weir_policy::connections::hand_off::MoveEvent::{
    Adopted, Changed, Frozen, Held, NoRoom, NotAdopted, NotFrozen, NotHeld, NotSteered, NotWentOn,
    Steered, Unchanged, WentOn,
};
use weir_policy::connections::hand_off::{
    HandOffKind, HandOffRequest, MOVES_MAX, Move, MoveCommand, MoveEnd, MoveEvent, Stay,
};
use weir_semantics::Method;

fn request() -> HandOffRequest {
    HandOffRequest {
        is_to_service: true,
        is_tls: false,
        method: Method::Get,
        has_content: false,
        has_expectation: false,
        is_upgrade: false,
        is_later: false,
        unacknowledged_bytes: 0,
        unacknowledged_bytes_max: 1000,
        other_moves: 0,
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
        check(kind, |it| it.is_to_service = false, Err(Stay::Address));
        check(kind, |it| it.is_tls = true, Err(Stay::Tls));
        check(kind, |it| it.unacknowledged_bytes = 1000, Ok(()));
        check(
            kind,
            |it| it.unacknowledged_bytes = 1001,
            Err(Stay::Unacknowledged),
        );
        check(kind, |it| it.other_moves = MOVES_MAX - 1, Ok(()));
        check(kind, |it| it.other_moves = MOVES_MAX, Err(Stay::TooMany));
    }
}

#[test]
fn request_moves_that_is_a_head_alone_and_has_one_response() {
    let kind = HandOffKind::Single;
    check(kind, |it| it.method = Method::Head, Ok(()));
    let others: [fn(&mut HandOffRequest); 5] = [
        |it| it.method = Method::Post,
        |it| it.method = Method::Connect,
        |it| it.has_content = true,
        |it| it.has_expectation = true,
        |it| it.is_upgrade = true,
    ];
    for change in others {
        check(kind, change, Err(Stay::Content));
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

/// A whole move: what is done at its begin, and after each event, and what becomes of it.
fn play(steps: &[(MoveEvent, &[MoveCommand])], end: MoveEnd) {
    let (mut moving, first) = Move::begin();
    assert_eq!(first, [Hold]);
    for (number, (event, expected)) in steps.iter().enumerate() {
        assert_eq!(moving.end(), None, "before {event:?}");
        assert_eq!(moving.handle(*event), *expected, "step {number}: {event:?}");
    }
    assert_eq!(moving.end(), Some(end));
    for event in EVENTS {
        assert_eq!(moving.handle(event), [], "{event:?} after the end");
        assert_eq!(moving.end(), Some(end));
    }
}

const EVENTS: [MoveEvent; 13] = [
    Held, NotHeld, Frozen, NotFrozen, NoRoom, Adopted, NotAdopted, Unchanged, Changed, Steered,
    NotSteered, WentOn, NotWentOn,
];

/// The steps up to that at which packets are led to the node.
const TO_STEERING: [(MoveEvent, &[MoveCommand]); 4] = [
    (Held, &[Freeze]),
    (Frozen, &[Send]),
    (Adopted, &[Look]),
    (Unchanged, &[Steer]),
];

#[test]
fn connection_is_closed_here_before_the_node_goes_on_with_it() {
    let steps: [(MoveEvent, &[MoveCommand]); 2] = [(Steered, &[Drop, Go]), (WentOn, &[])];
    play(&[&TO_STEERING[..], &steps].concat(), HandedOver);
}

#[test]
fn failure_before_packets_are_steered_leads_back_and_the_request_is_forwarded() {
    play(&[(NotHeld, &[])], Stays(Stay::TooMany));
    play(
        &[(Held, &[Freeze]), (NotFrozen, &[Release])],
        Stays(Stay::State),
    );
    let last: [(MoveEvent, Stay); 4] = [
        (NoRoom, Stay::TooMany),
        (NotAdopted, Stay::Node),
        (Changed, Stay::State),
        (NotSteered, Stay::TooMany),
    ];
    for (steps_before, (event, stay)) in (1..).zip(last) {
        let step: (MoveEvent, &[MoveCommand]) = (event, &[Thaw, Release]);
        play(
            &[&TO_STEERING[..steps_before], &[step]].concat(),
            Stays(stay),
        );
    }
}

#[test]
fn connection_whose_node_is_not_told_to_go_on_is_steered_no_longer() {
    let steps: [(MoveEvent, &[MoveCommand]); 2] = [(Steered, &[Drop, Go]), (NotWentOn, &[Unsteer])];
    play(&[&TO_STEERING[..], &steps].concat(), Lost);
}

#[test]
fn in_any_order_of_events_one_machine_at_most_goes_on_with_the_connection() {
    // every sequence of six events
    for sequence in 0..EVENTS.len().pow(6) {
        let (mut moving, _) = Move::begin();
        let mut done: Vec<MoveCommand> = Vec::new();
        let mut digits = sequence;
        for _ in 0..6 {
            done.extend(moving.handle(EVENTS[digits % EVENTS.len()]));
            digits /= EVENTS.len();
        }
        let count = |command| done.iter().filter(|it| **it == command).count();
        let is_told = count(Go) == 1;
        assert!(count(Go) <= 1 && count(Go) == count(Drop));
        assert!(count(Unsteer) == usize::from(moving.end() == Some(Lost)));
        match moving.end() {
            None => {}
            Some(HandedOver | Lost) => assert!(is_told && count(Thaw) == 0, "{done:?}"),
            Some(Stays(_)) => assert!(!is_told, "{done:?}"),
        }
        // what is frozen is thawed or closed, what is held is released or steered
        if moving.end().is_some() && count(Freeze) == 1 {
            assert_eq!(count(Release) + count(Go), 1, "{done:?}");
        }
        if moving.end().is_some() && count(Send) == 1 {
            assert_eq!(count(Thaw) + count(Drop), 1, "{done:?}");
        }
    }
}
