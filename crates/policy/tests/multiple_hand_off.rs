//! Which connections move on with a later request, and what a front end believes of it.

use std::net::SocketAddrV4;
use weir_policy::connections::hand_off::{
    FlowMessage, FlowRefusal, HandOffKind, LaterRequest, MOVE_BYTES_MIN, MOVE_EACH_MS, MOVE_MS_MAX,
    MOVES_AT_ONCE_MAX, MoveCredit, Stay, Steer, SteeredFlows,
};
use weir_policy::now::Tick;
use weir_policy::route::HoldsIt;

/// What becomes of a request that differs so from one whose connection moves.
fn check(change: impl FnOnce(&mut LaterRequest), expected: Result<(), Stay>) {
    let mut request = LaterRequest {
        is_first_here: false,
        is_stored: false,
        is_copied: false,
        holds: HoldsIt::Yes,
        is_mapped: false,
        response_bytes: None,
    };
    change(&mut request);
    let judged = request.judge(MoveCredit::full());
    assert_eq!(judged.map(|_| ()), expected, "{request:?}");
}

#[test]
fn node_hands_on_with_later_requests_alone_and_a_front_end_with_any() {
    // the first one of a connection that is accepted here, a later one; of one that was handed over
    let requests = [(true, false), (false, false), (true, true), (false, true)];
    let tries = |kind: HandOffKind| requests.map(|(first, handed)| kind.tries(first, handed));
    assert_eq!(tries(HandOffKind::Single), [true, false, false, false]);
    assert_eq!(tries(HandOffKind::Multiple), [true, true, false, true]);
}

#[test]
fn connection_moves_for_what_its_node_lacks_to_one_that_is_known_to_have_it() {
    check(|_| {}, Ok(()));
    check(|it| it.is_first_here = true, Err(Stay::Arrived));
    check(|it| it.is_stored = true, Err(Stay::Kept));
    check(|it| it.is_copied = true, Err(Stay::Kept));
    check(|it| it.holds = HoldsIt::No, Err(Stay::NotHeld));
    check(|it| it.holds = HoldsIt::Unknown, Err(Stay::NotHeld));
    let mapped = |it: &mut LaterRequest, holds| (it.is_mapped, it.holds) = (true, holds);
    check(|it| mapped(it, HoldsIt::Unknown), Ok(()));
    // a digest says more than what was once asked of it
    check(|it| mapped(it, HoldsIt::No), Err(Stay::NotHeld));
}

#[test]
fn short_response_is_forwarded_where_its_length_is_known() {
    let bytes = |it: &mut LaterRequest, bytes| it.response_bytes = Some(bytes);
    check(|it| bytes(it, MOVE_BYTES_MIN - 1), Err(Stay::Small));
    check(|it| bytes(it, MOVE_BYTES_MIN), Ok(()));
}

#[test]
fn connection_moves_a_few_times_at_once_and_then_once_in_a_while() {
    let request = LaterRequest {
        is_first_here: false,
        is_stored: false,
        is_copied: false,
        holds: HoldsIt::Yes,
        is_mapped: false,
        response_bytes: None,
    };
    let mut credit = MoveCredit::full();
    for _ in 0..MOVES_AT_ONCE_MAX {
        // as it travels
        credit = MoveCredit::of_ms(request.judge(credit).expect("a move").as_ms());
    }
    assert_eq!(request.judge(credit), Err(Stay::Often));
    let almost = credit.after(u64::from(MOVE_EACH_MS) - 1);
    assert_eq!(request.judge(almost), Err(Stay::Often));
    let next = request.judge(credit.after(u64::from(MOVE_EACH_MS)));
    assert_eq!(next, Ok(credit));
    // a long life is no credit for more at once, nor is what another node says
    assert_eq!(credit.after(u64::MAX), MoveCredit::full());
    assert_eq!(MoveCredit::of_ms(u32::MAX), MoveCredit::full());
}

const NOW: Tick = Tick(1_000_000);

fn flow() -> SocketAddrV4 {
    "192.0.2.1:5000".parse().expect("an address")
}

fn message<'m>(node: &'m str, ticket: &'m str, attempt: u32) -> FlowMessage<'m> {
    FlowMessage {
        flow: flow(),
        node,
        ticket,
        attempt,
    }
}

/// Node `a` has the connection, with ticket `t1`.
fn at_a() -> SteeredFlows {
    let mut flows = SteeredFlows::new(10);
    flows.insert(flow(), "a", "t1");
    flows
}

#[test]
fn node_that_has_the_connection_moves_it_and_the_next_one_moves_it_on() {
    let mut flows = at_a();
    let of_a = message("a", "t1", 1);
    assert_eq!(flows.hold(NOW, &of_a, "b"), Ok(()));
    assert_eq!(flows.steer(NOW, &of_a), Ok(Steer::To("b".into())));
    // the same message again, while the kernel is told: it may be done
    assert_eq!(flows.steer(NOW, &of_a), Err(FlowRefusal::Moving));
    assert!(flows.moved(&of_a, "t2"));
    // what it was is of no use any more, but to hear that it is done
    assert_eq!(flows.steer(NOW, &of_a), Ok(Steer::Done));
    let again = message("a", "t1", 2);
    assert_eq!(flows.hold(NOW, &again, "c"), Err(FlowRefusal::Unknown));
    assert!(!flows.end(flow(), "t1"));
    let of_b = message("b", "t2", 1);
    assert_eq!(flows.hold(NOW, &of_b, "a"), Ok(()));
    assert_eq!(flows.steer(NOW, &of_b), Ok(Steer::To("a".into())));
    assert!(flows.moved(&of_b, "t3"));
    assert!(flows.end(flow(), "t3"));
    assert!(flows.is_empty());
}

#[test]
fn only_the_node_that_has_the_connection_is_believed_and_only_of_this_one() {
    let others = [
        message("b", "t1", 1),
        message("a", "t2", 1),
        message("a", "", 1),
        FlowMessage {
            flow: "192.0.2.1:5001".parse().expect("an address"),
            ..message("a", "t1", 1)
        },
    ];
    for other in others {
        let mut flows = at_a();
        let held = flows.hold(NOW, &message("a", "t1", 1), "b");
        assert_eq!(held, Ok(()));
        assert_eq!(flows.hold(NOW, &other, "c"), Err(FlowRefusal::Unknown));
        assert_eq!(flows.steer(NOW, &other), Err(FlowRefusal::Unknown));
        assert_eq!(flows.release(&other), Err(FlowRefusal::Unknown));
        assert!(!flows.moved(&other, "t9"));
        let of_a = message("a", "t1", 1);
        assert!(!flows.moved(&of_a, "t2"), "before it is steered");
        assert_eq!(flows.steer(NOW, &of_a), Ok(Steer::To("b".into())));
        assert!(flows.moved(&of_a, "t2"));
    }
}

#[test]
fn messages_about_a_connection_change_nothing_of_a_later_one_from_the_same_port() {
    let of_first = message("a", "t1", 1);
    // accepted here again, and handed over to the same node again
    let mut flows = at_a();
    assert_eq!(flows.hold(NOW, &of_first, "b"), Ok(()));
    assert_eq!(flows.steer(NOW, &of_first), Ok(Steer::To("b".into())));
    flows.forget(flow());
    let refused = |flows: &mut SteeredFlows| {
        assert_eq!(flows.steer(NOW, &of_first), Err(FlowRefusal::Unknown));
        assert!(!flows.moved(&of_first, "t9"));
        let held = flows.hold(NOW, &message("a", "t1", 2), "b");
        assert_eq!(held, Err(FlowRefusal::Unknown));
        assert_eq!(flows.release(&of_first), Err(FlowRefusal::Unknown));
        assert!(!flows.end(flow(), "t1"));
    };
    refused(&mut flows);
    flows.insert(flow(), "a", "t2");
    refused(&mut flows);
    assert!(flows.end(flow(), "t2"));
}

#[test]
fn connection_is_steered_only_while_it_is_held_for_this_attempt() {
    let mut flows = at_a();
    let (first, second) = (message("a", "t1", 1), message("a", "t1", 2));
    assert_eq!(flows.steer(NOW, &first), Err(FlowRefusal::NotHeld));
    assert_eq!(flows.hold(NOW, &first, "b"), Ok(()));
    assert_eq!(flows.hold(NOW, &first, "b"), Err(FlowRefusal::Repeated));
    assert_eq!(flows.hold(NOW, &second, "b"), Err(FlowRefusal::Moving));
    assert_eq!(flows.steer(NOW, &second), Err(FlowRefusal::NotHeld));
    let late = NOW.plus_ms(MOVE_MS_MAX);
    assert_eq!(flows.steer(late, &first), Err(FlowRefusal::NotHeld));
    let last = NOW.plus_ms(MOVE_MS_MAX - 1);
    assert_eq!(flows.steer(last, &first), Ok(Steer::To("b".into())));
    // it may be done yet
    assert_eq!(flows.steer(late, &first), Err(FlowRefusal::Moving));
    // the kernel does not do it
    assert_eq!(flows.release(&first), Ok(()));
    assert_eq!(flows.steer(last, &first), Err(FlowRefusal::NotHeld));
    // another attempt, of which the first one's messages are no part
    assert_eq!(flows.hold(late, &second, "c"), Ok(()));
    assert_eq!(flows.steer(late, &first), Err(FlowRefusal::NotHeld));
    assert_eq!(flows.release(&first), Err(FlowRefusal::NotHeld));
    assert_eq!(flows.release(&second), Ok(()));
    assert_eq!(flows.steer(late, &second), Err(FlowRefusal::NotHeld));
    // a copy of its old message holds nothing
    assert_eq!(flows.hold(late, &second, "c"), Err(FlowRefusal::Repeated));
}

#[test]
fn hold_that_comes_after_its_release_holds_nothing() {
    let mut flows = at_a();
    let first = message("a", "t1", 1);
    assert_eq!(flows.release(&first), Err(FlowRefusal::NotHeld));
    assert_eq!(flows.hold(NOW, &first, "b"), Err(FlowRefusal::Repeated));
    assert_eq!(flows.hold(NOW, &message("a", "t1", 2), "b"), Ok(()));
    // one that was overtaken by the next attempt ends nothing of that
    assert_eq!(flows.release(&first), Err(FlowRefusal::NotHeld));
    let second = message("a", "t1", 2);
    assert_eq!(flows.steer(NOW, &second), Ok(Steer::To("b".into())));
}

#[test]
fn no_more_connections_are_known_than_the_limit_says() {
    let mut flows = SteeredFlows::new(3);
    let flow = |port| SocketAddrV4::new([192, 0, 2, 1].into(), port);
    for port in 1..=4 {
        flows.insert(flow(port), "a", "t");
        // one that is known needs no more room
        flows.insert(flow(port), "b", "t");
    }
    assert_eq!(flows.len(), 3);
    assert!(flows.end(flow(4), "t"));
}
