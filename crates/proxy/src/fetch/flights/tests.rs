use super::*;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use weir_semantics::Timestamp;

const KEY: Digest = Digest(1, 2);

fn now(tick: u64) -> Now {
    Now {
        wall: Timestamp(0),
        tick: Tick(tick),
    }
}

fn terms(leads: bool, followers_max: usize) -> Terms<'static> {
    Terms {
        leads,
        selecting: &|_| Digest::default(),
        followers_max,
    }
}

fn board(flights: &Arc<Flights>) -> Boarded {
    flights.board(now(0), KEY, &terms(true, 100), &[])
}

fn lead(flights: &Arc<Flights>) -> Leading {
    match board(flights) {
        Boarded::Lead(leading) => leading,
        _ => panic!("somebody else leads"),
    }
}

fn follow(flights: &Arc<Flights>) -> Following {
    match board(flights) {
        Boarded::Follow(following) => following,
        _ => panic!("nobody is to be followed"),
    }
}

fn poll(following: Following) -> (Poll<&'static str>, Option<Leading>) {
    let mut following = pin!(following);
    let mut cx = Context::from_waker(Waker::noop());
    match following.as_mut().poll(&mut cx) {
        Poll::Pending => (Poll::Pending, None),
        Poll::Ready(Landed::Lead(leading)) => (Poll::Ready("lead"), Some(leading)),
        Poll::Ready(Landed::Read(_)) => (Poll::Ready("read"), None),
        Poll::Ready(Landed::Stored) => (Poll::Ready("stored"), None),
        Poll::Ready(Landed::Alone) => (Poll::Ready("alone"), None),
    }
}

fn is_empty(flights: &Flights) -> bool {
    flights
        .shards
        .iter()
        .all(|shard| lock(shard).flights.is_empty())
}

#[test]
fn concurrent_requests_for_a_key_follow_one_leader() {
    let flights = Arc::new(Flights::default());
    let leading = lead(&flights);
    let (first, second) = (follow(&flights), follow(&flights));
    leading.stored();
    assert_eq!(poll(first).0, Poll::Ready("stored"));
    assert_eq!(poll(second).0, Poll::Ready("stored"));
    assert!(is_empty(&flights));
    drop(lead(&flights));
}

#[test]
fn follower_bypasses_collapsing_after_two_leaders_fail() {
    let flights = Arc::new(Flights::default());
    let leading = lead(&flights);
    let (first, second) = (follow(&flights), follow(&flights));
    drop(leading);
    let (landed, next) = poll(first);
    assert_eq!(landed, Poll::Ready("lead"));
    assert_eq!(poll(follow(&flights)).0, Poll::Pending);
    // a second failure is not everybody's either
    drop(next);
    assert_eq!(poll(second).0, Poll::Ready("alone"));
    assert!(is_empty(&flights));
}

#[test]
fn key_is_released_when_leader_and_followers_are_gone() {
    let flights = Arc::new(Flights::default());
    drop(lead(&flights));
    assert!(is_empty(&flights));
    let leading = lead(&flights);
    let following = follow(&flights);
    drop(leading);
    drop(following);
    assert!(is_empty(&flights));
}

#[test]
fn hit_for_miss_key_is_not_collapsed_until_expiry_or_unmarking() {
    let flights = Arc::new(Flights::default());
    let leading = lead(&flights);
    let following = follow(&flights);
    leading.alone();
    assert_eq!(poll(following).0, Poll::Ready("alone"));
    flights.mark_alone(now(0), KEY, Tick(1000));
    let at = |tick| flights.board(now(tick), KEY, &terms(true, 100), &[]);
    assert!(matches!(at(999), Boarded::Alone));
    assert!(matches!(at(1000), Boarded::Lead(_)));
    flights.mark_alone(now(0), KEY, Tick(1000));
    flights.mark_shared(KEY);
    assert!(matches!(at(1), Boarded::Lead(_)));
}

#[test]
fn request_beyond_the_follower_maximum_leads_its_own_fetch() {
    let flights = Arc::new(Flights::default());
    let _leading = lead(&flights);
    let board = || flights.board(now(0), KEY, &terms(true, 2), &[]);
    let (Boarded::Follow(_first), Boarded::Follow(second)) = (board(), board()) else {
        panic!("two may follow");
    };
    // it may lead: a flight of its own
    let Boarded::Lead(own) = board() else {
        panic!("a third follows");
    };
    drop(own);
    drop(second);
    assert!(matches!(board(), Boarded::Follow(_)));
}

#[test]
fn request_does_not_rejoin_a_leader_it_stopped_following() {
    let flights = Arc::new(Flights::default());
    let _leading = lead(&flights);
    let left = Arc::clone(follow(&flights).flight());
    let boarded = flights.board(now(0), KEY, &terms(true, 100), &[left]);
    assert!(matches!(boarded, Boarded::Lead(_)));
}

#[test]
fn request_unable_to_become_leader_bypasses_when_its_leader_fails() {
    let flights = Arc::new(Flights::default());
    let alone = flights.board(now(0), KEY, &terms(false, 100), &[]);
    assert!(matches!(alone, Boarded::Alone));
    let leading = lead(&flights);
    let Boarded::Follow(following) = flights.board(now(0), KEY, &terms(false, 100), &[]) else {
        panic!("it may follow");
    };
    drop(leading);
    assert_eq!(poll(following).0, Poll::Ready("alone"));
    assert!(is_empty(&flights));
}

#[test]
fn request_after_a_purge_does_not_join_the_earlier_leader() {
    let flights = Arc::new(Flights::default());
    let leading = lead(&flights);
    let following = follow(&flights);
    flights.forget(KEY);
    let other = lead(&flights);
    leading.stored();
    assert_eq!(poll(following).0, Poll::Ready("stored"));
    assert_eq!(poll(follow(&flights)).0, Poll::Pending, "the other flight");
    drop(other);
}
