//! Which connections of clients are handed over, and the steps of it.

use weir_policy::connections::hand_off::MoveCommand::{
    Drop, Freeze, Go, Hold, Look, Probe, Release, Reset, Return, Send, Steer, Thaw, Unsteer,
};
use weir_policy::connections::hand_off::MoveEnd::{HandedOver, Lost, Stays};
use weir_policy::connections::hand_off::MoveEvent::{
    Adopted, Changed, Frozen, Held, NoRoom, NotAdopted, NotAnswered, NotFrozen, NotHeld,
    NotPermitted, NotReached, NotSteered, NotWentOn, Reached, Steered, SteeredPerhaps, Unchanged,
    WentOn,
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

const EVENTS: [MoveEvent; 18] = [
    Held,
    NotHeld,
    NotPermitted,
    Frozen,
    NotFrozen,
    NoRoom,
    Adopted,
    NotAdopted,
    Unchanged,
    Changed,
    Steered,
    SteeredPerhaps,
    Reached,
    NotReached,
    NotSteered,
    WentOn,
    NotWentOn,
    NotAnswered,
];

/// The steps up to that at which packets are led to the node.
const TO_STEERING: [(MoveEvent, &[MoveCommand]); 4] = [
    (Held, &[Freeze]),
    (Frozen, &[Send]),
    (Adopted, &[Look]),
    (Unchanged, &[Steer]),
];

#[test]
fn connection_is_closed_here_when_the_node_says_that_it_goes_on_with_it() {
    let steps: [(MoveEvent, &[MoveCommand]); 2] = [(Steered, &[Go]), (WentOn, &[Drop])];
    play(&[&TO_STEERING[..], &steps].concat(), HandedOver);
}

#[test]
fn failure_before_packets_are_steered_leads_back_and_the_request_is_forwarded() {
    play(&[(NotHeld, &[])], Stays(Stay::TooMany));
    // the front end may hold them, and its answer was lost
    play(&[(NotPermitted, &[Release])], Stays(Stay::FrontEnd));
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
fn connection_that_is_perhaps_steered_goes_on_where_its_packets_go() {
    let steps: [(MoveEvent, &[MoveCommand]); 3] = [
        (SteeredPerhaps, &[Probe]),
        (NotReached, &[Go]),
        (WentOn, &[Drop]),
    ];
    play(&[&TO_STEERING[..], &steps].concat(), HandedOver);
    let steps: [(MoveEvent, &[MoveCommand]); 2] = [(SteeredPerhaps, &[Probe]), (Reached, &[Thaw])];
    play(&[&TO_STEERING[..], &steps].concat(), Stays(Stay::FrontEnd));
}

#[test]
fn connection_that_the_node_does_not_have_any_more_goes_on_here() {
    let steps: [(MoveEvent, &[MoveCommand]); 2] = [(Steered, &[Go]), (NotWentOn, &[Return, Thaw])];
    play(&[&TO_STEERING[..], &steps].concat(), Stays(Stay::Node));
}

#[test]
fn client_of_a_connection_that_a_node_may_or_may_not_go_on_with_is_told() {
    let steps: [(MoveEvent, &[MoveCommand]); 2] =
        [(Steered, &[Go]), (NotAnswered, &[Unsteer, Reset])];
    play(&[&TO_STEERING[..], &steps].concat(), Lost);
}

#[test]
fn in_any_order_of_events_one_machine_at_most_goes_on_with_the_connection() {
    let (moving, first) = Move::begin();
    explore(moving, first.to_vec());
}

/// Looks at what follows each event.
fn explore(moving: Move, done: Vec<MoveCommand>) {
    check_commands(moving.end(), &done);
    for event in EVENTS {
        let mut next = moving;
        let commands = next.handle(event);
        // one that changes nothing leads to what is looked at already
        if next == moving {
            assert_eq!(commands, [], "{event:?}");
        } else {
            explore(next, [&done[..], commands].concat());
        }
    }
}

fn check_commands(end: Option<MoveEnd>, done: &[MoveCommand]) {
    let count = |command| done.iter().filter(|it| **it == command).count();
    let is_told = count(Go) == 1;
    assert!(count(Go) <= 1);
    let ends = (count(Drop), count(Unsteer), count(Reset), count(Return));
    match end {
        None => assert_eq!((ends, count(Thaw)), ((0, 0, 0, 0), 0), "{done:?}"),
        Some(HandedOver) => assert!(is_told && ends == (1, 0, 0, 0), "{done:?}"),
        Some(Lost) => assert!(is_told && ends == (0, 1, 1, 0), "{done:?}"),
        // told in vain, if it was
        Some(Stays(_)) => assert_eq!(ends, (0, 0, 0, count(Go)), "{done:?}"),
    }
    // what is frozen is thawed or closed, what is held is released or steered, or the hold is over
    if end.is_some() && count(Freeze) == 1 {
        let is_over = count(Probe) == 1 && !is_told;
        let ends = count(Release) + count(Go) + usize::from(is_over);
        assert_eq!(ends, 1, "{done:?}");
    }
    if end.is_some() && count(Send) == 1 {
        assert_eq!(count(Thaw) + count(Drop) + count(Reset), 1, "{done:?}");
    }
}
