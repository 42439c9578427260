use super::*;
use crate::next_hops::NextHopSocket;
use crate::next_hops::uses::Uses;
use std::net::TcpListener;
use weir_policy::Tick;
use weir_policy::connections::WhenBusy;
use weir_semantics::ProxyError;

const DEMAND: Demand = Demand {
    idle: 0,
    open_in_all: 0,
    fresh: false,
    can_close: false,
    patient: true,
    busy_us: Some(100_000),
};

/// The open connections, at most two to a next hop, and one that is busy and took 20 ms to set up.
fn one_busy() -> (Arc<OpenConnections>, HopKey, OpenRules, Permit) {
    let open = Arc::new(OpenConnections::default());
    let hop = HopKey::new("a.example", 80);
    let rules = OpenRules {
        per_hop_max: 2,
        total_max: 4096,
        when_busy: WhenBusy::default(),
    };
    let OpenDecision::Open(mut permit, OpenReason::NoneBusy) = open.ask(&hop, &rules, DEMAND)
    else {
        panic!("no other connection is open");
    };
    permit.opened(20);
    (open, hop, rules, permit)
}

fn failure() -> ConnectFailure {
    ConnectFailure::new(ProxyError::ConnectionRefused, "refused")
}

/// A connection in this place.
fn idle(permit: Permit) -> IdleConnection {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let address = listener.local_addr().expect("bound");
    let stream = std::net::TcpStream::connect(address).expect("it listens");
    stream.set_nonblocking(true).expect("a socket");
    IdleConnection {
        stream: NextHopSocket::Clear(tokio::net::TcpStream::from_std(stream).expect("a runtime")),
        address,
        hop: permit.hop.clone(),
        permit,
        uses: Box::new(Uses::new(0, Tick(0), false)),
    }
}

fn race(open: &Arc<OpenConnections>, hop: &HopKey, rules: &OpenRules) -> (Permit, Waiter) {
    match open.ask(hop, rules, DEMAND) {
        OpenDecision::Race(permit, waiter) => (permit, waiter),
        _ => panic!("one may be opened"),
    }
}

fn wait(open: &Arc<OpenConnections>, hop: &HopKey, rules: &OpenRules) -> Waiter {
    match open.ask(hop, rules, DEMAND) {
        OpenDecision::Wait(waiter, None) => waiter,
        _ => panic!("it has to wait"),
    }
}

/// No connection is open, no request waits, no entry is kept.
fn check_empty(open: &OpenConnections) {
    assert_eq!((open.total(), open.has_waiters()), (0, false));
    assert!(open.lock().hops.is_empty(), "{:?}", open.lock());
}

#[tokio::test]
async fn waiters_are_served_in_order_skipping_abandoned_ones() {
    let (open, hop, rules, busy) = one_busy();
    let (to_come, mut first) = race(&open, &hop, &rules);
    let second = wait(&open, &hop, &rules);
    let mut third = wait(&open, &hop, &rules);
    drop(second);
    assert!(open.hand(idle(busy)).is_none());
    let handed = first.hand_over().await.expect("handed").expect("open");
    drop(first);
    let again = open.hand(handed);
    assert!(again.is_none());
    assert!(matches!(third.hand_over().await, Some(Ok(_))));
    drop((third, to_come));
    check_empty(&open);
}

#[tokio::test]
async fn waiter_whose_new_connection_went_to_another_is_woken_to_retry() {
    let (open, hop, rules, busy) = one_busy();
    let (to_come, first) = race(&open, &hop, &rules);
    let mut for_a_place = wait(&open, &hop, &rules);
    // the first wait ends and the busy connection is closed: a place is free before a request looks
    drop((first, to_come));
    let (mut to_come, mut last) = race(&open, &hop, &rules);
    to_come.opened(20);
    assert!(open.hand(idle(to_come)).is_none());
    assert!(matches!(for_a_place.hand_over().await, Some(Ok(_))));
    assert!(last.hand_over().await.is_none(), "it is to ask again");
    drop((for_a_place, last, busy));
    check_empty(&open);
}

#[tokio::test]
async fn waiter_is_woken_when_its_connection_set_up_fails() {
    let (open, hop, rules, busy) = one_busy();
    let (to_come, mut first) = race(&open, &hop, &rules);
    let id = first.id;
    drop(to_come);
    open.pending_failed(&hop, Some(id), failure());
    assert!(matches!(first.hand_over().await, Some(Err(_))));
    drop(first);
    // and if the request that it was opened for has another one already, the one that took it over
    let (to_come, first) = race(&open, &hop, &rules);
    let id = first.id;
    let returned = open.hand(idle(busy));
    assert!(returned.is_none());
    drop(first);
    let mut relying = wait(&open, &hop, &rules);
    assert_eq!(relying.why, WaitReason::UnderWay);
    drop(to_come);
    open.pending_failed(&hop, Some(id), failure());
    assert!(relying.hand_over().await.is_none(), "it is to ask again");
    drop(relying);
    check_empty(&open);
}

#[tokio::test]
async fn returned_connection_without_waiter_goes_back_to_the_caller() {
    let (open, hop, rules, busy) = one_busy();
    let waiter = {
        let (to_come, waiter) = race(&open, &hop, &rules);
        drop(to_come);
        waiter
    };
    drop(waiter);
    let back = open.hand(idle(busy)).expect("no request waits");
    assert_eq!(open.total(), 1);
    assert_eq!(open.total_max(), 2);
    drop(back);
    check_empty(&open);
}

#[test]
fn tunnel_keeps_its_place_and_is_never_waited_for() {
    let (open, hop, rules, mut busy) = one_busy();
    busy.becomes_tunnel();
    let OpenDecision::Open(other, OpenReason::NoneBusy) = open.ask(&hop, &rules, DEMAND) else {
        panic!("there is nothing to wait for");
    };
    assert_eq!(open.limit_reached(&hop, &rules), Some(Limit::PerHop));
    drop((busy, other));
    check_empty(&open);
}
