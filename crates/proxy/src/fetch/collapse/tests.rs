//! What is done about the commands; the rules themselves are in the playbooks of the policy.

use super::*;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use weir_policy::Tick;
use weir_semantics::Timestamp;

const KEY: Digest = Digest(1, 2);

const NOW: Now = Now {
    wall: Timestamp(0),
    tick: Tick(0),
};

fn want(requests: &Arc<CollapsedRequests>) -> Decision {
    let terms = Terms {
        leads: true,
        waits: true,
        waits_for_nodes: true,
        followers_max: 100,
    };
    requests.want(NOW, KEY, terms, &mut Passes::default(), &|_| {
        Selection::Selected
    })
}

fn lead(requests: &Arc<CollapsedRequests>) -> Leader {
    match want(requests) {
        Decision::Lead(leader) => leader,
        _ => panic!("another request leads"),
    }
}

fn follow(requests: &Arc<CollapsedRequests>) -> Follower {
    match want(requests) {
        Decision::Wait(follower) => follower,
        _ => panic!("no request leads"),
    }
}

/// How often it was woken.
#[derive(Default)]
struct Wakes(AtomicU32);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wakes {
    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

fn poll(follower: &mut Follower, waker: &Waker) -> (&'static str, Option<Leader>) {
    let mut context = Context::from_waker(waker);
    match pin!(follower).poll(&mut context) {
        Poll::Pending => ("waits", None),
        Poll::Ready(WaitResult::Lead(leader)) => ("leads", Some(leader)),
        Poll::Ready(WaitResult::Read(_)) => ("reads", None),
        Poll::Ready(WaitResult::LookUp) => ("looks up", None),
        Poll::Ready(WaitResult::Bypass) => ("bypasses", None),
    }
}

fn is_empty(requests: &CollapsedRequests) -> bool {
    requests.shards.iter().all(|shard| {
        let shard = lock(shard);
        shard.policy.is_empty() && shard.slots.is_empty()
    })
}

#[test]
fn followers_are_woken_when_the_response_is_stored() {
    let requests = Arc::new(CollapsedRequests::default());
    let leader = lead(&requests);
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut followers = [follow(&requests), follow(&requests)];
    for follower in &mut followers {
        assert_eq!(poll(follower, &waker).0, "waits");
    }
    leader.stored();
    assert_eq!(wakes.count(), 2);
    for follower in &mut followers {
        assert_eq!(poll(follower, &waker).0, "looks up");
    }
    drop(followers);
    assert!(is_empty(&requests));
}

#[test]
fn only_the_follower_that_takes_over_is_woken_when_a_leader_is_dropped() {
    let requests = Arc::new(CollapsedRequests::default());
    let leader = lead(&requests);
    let wakes = [Arc::<Wakes>::default(), Arc::<Wakes>::default()];
    let wakers = wakes.clone().map(Waker::from);
    let (mut first, mut second) = (follow(&requests), follow(&requests));
    assert_eq!(poll(&mut first, &wakers[0]).0, "waits");
    assert_eq!(poll(&mut second, &wakers[1]).0, "waits");
    drop(leader);
    assert_eq!((wakes[0].count(), wakes[1].count()), (1, 0));
    let (result, leader) = poll(&mut first, &wakers[0]);
    assert_eq!(result, "leads");
    drop(first);
    assert_eq!(poll(&mut second, &wakers[1]).0, "waits");
    drop(leader);
    assert_eq!(wakes[1].count(), 1);
    assert_eq!(poll(&mut second, &wakers[1]).0, "bypasses");
    drop(second);
    assert!(is_empty(&requests));
}

#[test]
fn follower_that_leaves_before_it_takes_over_passes_the_command_on() {
    let requests = Arc::new(CollapsedRequests::default());
    let leader = lead(&requests);
    let (first, mut second) = (follow(&requests), follow(&requests));
    drop(leader);
    // it has not been polled since
    drop(first);
    let (result, leader) = poll(&mut second, Waker::noop());
    assert_eq!(result, "leads");
    drop((second, leader));
    assert!(is_empty(&requests));
}

#[test]
fn leader_without_a_client_is_woken_when_the_last_follower_leaves() {
    let requests = Arc::new(CollapsedRequests::default());
    let leader = lead(&requests);
    let followers = [follow(&requests), follow(&requests)];
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(Arc::clone(&wakes));
    let mut context = Context::from_waker(&waker);
    assert!(leader.poll_not_awaited(&mut context).is_pending());
    let [first, second] = followers;
    drop(first);
    assert_eq!(wakes.count(), 0);
    drop(second);
    assert_eq!(wakes.count(), 1);
    assert!(leader.poll_not_awaited(&mut context).is_ready());
    leader.disconnected();
    assert!(is_empty(&requests));
}

#[test]
fn slots_of_a_crowd_are_given_back() {
    let requests = Arc::new(CollapsedRequests::default());
    let leader = lead(&requests);
    let followers: Vec<Follower> = (0..100).map(|_| follow(&requests)).collect();
    leader.refused(NOW, Some(Tick(1000)));
    assert!(matches!(want(&requests), Decision::Bypass));
    drop(followers);
    assert!(is_empty(&requests));
    requests.shared(KEY);
    let leader = lead(&requests);
    requests.forget_all();
    drop((lead(&requests), leader));
    assert!(is_empty(&requests));
}
