//! What members are told, and when they are behind.

use super::*;
use crate::cluster::purges::outbox::WAITING_MAX;
use crate::config::Mode;
use weir_semantics::{BEHIND_NAMES_MAX, PURGE_MESSAGE_BYTES_MAX, PURGE_ORDERS_MAX};

const HOUR: Duration = Duration::from_hours(1);

fn url(number: usize) -> PurgedTarget {
    PurgedTarget::Url(format!("http://a/{number}"))
}

fn invalidated(url: String) -> PurgedTarget {
    let mode = Mode::Gateway;
    PurgedTarget::Invalidated { mode, url }
}

fn outcome(removed: u64) -> PurgeOutcome {
    PurgeOutcome {
        removed,
        is_durable: true,
    }
}

fn whats(batch: &Batch) -> Vec<PurgedTarget> {
    let orders = batch.orders.iter();
    orders.map(|order| (*order.what).clone()).collect()
}

fn soon() -> Instant {
    Instant::now() + HOUR
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.expect("a runtime").block_on(future)
}

fn these(names: &[&str]) -> Behind {
    Behind::These(names.iter().map(|name| (*name).into()).collect())
}

fn tell(outboxes: &Outboxes, members: &[&str], targets: &[PurgedTarget]) -> Vec<Awaited> {
    let members = members.iter().copied();
    outboxes.tell(members, targets.to_vec(), (Instant::now(), soon(), HOUR))
}

fn is_behind(outboxes: &Outboxes, member: &str) -> bool {
    let boxes = outboxes.boxes();
    boxes.by_member[member].lag.is_some()
}

fn next(outboxes: &Outboxes, member: &str) -> Batch {
    outboxes.next(member).expect("a message")
}

fn deliver(outboxes: &Outboxes, member: &str, batch: Batch) -> Delivered {
    let outcomes = (0..).map(outcome).take(batch.orders.len()).collect();
    outboxes.delivered(member, batch, outcomes)
}

/// Delivers all that `member` is to be told; what that was.
fn deliver_all(outboxes: &Outboxes, member: &str) -> Vec<PurgedTarget> {
    let mut told = Vec::new();
    while let Some(batch) = outboxes.next(member) {
        told.extend(whats(&batch));
        deliver(outboxes, member, batch);
    }
    told
}

#[test]
fn one_message_says_all_that_has_gathered_and_each_waiter_gets_its_own_answer() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b", "c"].into_iter(), 1, Instant::now());
    let first = tell(&outboxes, &["b", "c"], &[url(0)]);
    let second = tell(&outboxes, &["b", "c"], &[url(1), url(2)]);
    assert_eq!(outboxes.unserved(), ["b".into(), "c".into()]);
    assert!(outboxes.unserved().is_empty(), "they are served");
    for member in ["b", "c"] {
        let batch = next(&outboxes, member);
        assert_eq!(whats(&batch), [url(0), url(1), url(2)]);
        assert_eq!(batch.behind, Behind::NONE);
        deliver(&outboxes, member, batch);
        assert!(outboxes.next(member).is_none());
    }
    let answers = |awaited| block_on(outboxes.answers(awaited, soon()));
    let answered = |member: &str, removed| (member.into(), Ok(outcome(removed)));
    assert_eq!(answers(first), [answered("b", 0), answered("c", 0)]);
    let expected = [("b", 1), ("b", 2), ("c", 1), ("c", 2)];
    assert_eq!(
        answers(second),
        expected.map(|(name, it)| answered(name, it))
    );
}

#[test]
fn equal_purges_are_told_once_and_all_that_wait_get_the_answer() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b"].into_iter(), 1, Instant::now());
    let awaited: Vec<_> = (0..2 * WAITING_MAX.orders)
        .map(|_| tell(&outboxes, &["b"], &[url(0)]))
        .collect();
    let batch = next(&outboxes, "b");
    assert_eq!(whats(&batch), [url(0)]);
    deliver(&outboxes, "b", batch);
    for awaited in awaited {
        let answers = block_on(outboxes.answers(awaited, soon()));
        assert_eq!(answers[0].1, Ok(outcome(0)));
    }
}

#[test]
fn member_that_fails_is_told_again_and_nothing_waits_for_it() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b"].into_iter(), 1, Instant::now());
    let first = tell(&outboxes, &["b"], &[url(0)]);
    let batch = next(&outboxes, "b");
    let during = tell(&outboxes, &["b"], &[url(1)]);
    assert!(!is_behind(&outboxes, "b"));
    assert!(outboxes.failed("b", batch, "it is away", Instant::now()));
    let later = tell(&outboxes, &["b"], &[url(0), url(2)]);
    for (_, answer) in [first, during, later]
        .into_iter()
        .flat_map(|awaited| block_on(outboxes.answers(awaited, soon())))
    {
        assert_eq!(answer, Err("it is away".into()));
    }
    assert_eq!(outboxes.overdue(), 3);
    let batch = next(&outboxes, "b");
    assert_eq!(whats(&batch), [url(1), url(0), url(2)]);
    assert!(!outboxes.failed("b", batch, "it is away", Instant::now()));
    let batch = next(&outboxes, "b");
    assert!(is_behind(&outboxes, "b"));
    assert_eq!(deliver(&outboxes, "b", batch), Delivered::Late);
    assert!(!is_behind(&outboxes, "b"));
    assert_eq!(outboxes.overdue(), 0);
    let last = tell(&outboxes, &["b"], &[url(3)]);
    let batch = next(&outboxes, "b");
    assert_eq!(deliver(&outboxes, "b", batch), Delivered::InTime);
    let answers = block_on(outboxes.answers(last, soon()));
    assert_eq!(answers[0].1, Ok(outcome(0)));
}

#[test]
fn purge_that_comes_again_while_a_late_one_is_under_way_is_told_again() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b"].into_iter(), 1, Instant::now());
    drop(tell(&outboxes, &["b"], &[url(0), url(1)]));
    let batch = next(&outboxes, "b");
    outboxes.failed("b", batch, "it is away", Instant::now());
    let batch = next(&outboxes, "b");
    drop(tell(&outboxes, &["b"], &[url(0)]));
    deliver(&outboxes, "b", batch);
    assert!(is_behind(&outboxes, "b"));
    assert_eq!(deliver_all(&outboxes, "b"), [url(0)]);
    assert!(!is_behind(&outboxes, "b"));
}

#[test]
fn members_are_told_who_is_behind_and_that_it_is_not_any_more() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b", "c"].into_iter(), 1, Instant::now());
    drop(tell(&outboxes, &["b", "c"], &[url(0)]));
    assert_eq!(deliver_all(&outboxes, "b"), [url(0)]);
    let batch = next(&outboxes, "c");
    outboxes.failed("c", batch, "it is away", Instant::now());
    let news = next(&outboxes, "b");
    assert!(news.orders.is_empty());
    assert_eq!(news.behind, these(&["c"]));
    deliver(&outboxes, "b", news);
    assert!(outboxes.next("b").is_none());
    let late = next(&outboxes, "c");
    assert_eq!(late.behind, Behind::NONE, "it does not ask itself");
    deliver(&outboxes, "c", late);
    assert_eq!(next(&outboxes, "b").behind, Behind::NONE);
}

#[test]
fn member_that_does_not_learn_in_time_who_is_behind_is_told_all_that_was_missed() {
    let outboxes = Outboxes::default();
    let now = Instant::now();
    outboxes.meet(["b", "c"].into_iter(), 1, now);
    let members = || ["b", "c"].into_iter();
    drop(outboxes.tell(members(), vec![url(0)], (now, now, HOUR)));
    assert_eq!(deliver_all(&outboxes, "b"), [url(0)]);
    let _under_way = next(&outboxes, "c");
    outboxes.expire(now);
    assert!(is_behind(&outboxes, "c") && !is_behind(&outboxes, "b"));
    assert_eq!(outboxes.next_due(), Some(now + HOUR));
    // its hold is over: it may have what member `c` has
    outboxes.expire(now + HOUR);
    assert!(is_behind(&outboxes, "b"));
    assert_eq!(next(&outboxes, "b").behind, these(&["c"]));
    assert_eq!(deliver_all(&outboxes, "b"), [url(0)]);
    assert!(is_behind(&outboxes, "c") && !is_behind(&outboxes, "b"));
}

#[test]
fn answer_that_does_not_come_in_time_is_none_and_the_next_one_is_not_awaited() {
    let outboxes = Outboxes::default();
    let now = Instant::now();
    outboxes.meet(["b"].into_iter(), 1, now);
    let late = outboxes.tell(["b"].into_iter(), vec![url(0)], (now, now, HOUR));
    let next = tell(&outboxes, &["b"], &[url(1)]);
    for awaited in [late, next] {
        let answers = block_on(outboxes.answers(awaited, now + Duration::from_millis(1)));
        assert_eq!(answers[0].1, Err("it did not answer in time".into()));
    }
}

#[test]
fn what_is_under_way_to_a_member_that_hangs_is_missed_once_however_many_wait_for_the_answer() {
    const CHANGES: usize = 32;
    let outboxes = Outboxes::default();
    let now = Instant::now();
    outboxes.meet(["b"].into_iter(), 1, now);
    let changes = (0..CHANGES).map(|number| invalidated(number.to_string()));
    let changes: Vec<PurgedTarget> = changes.collect();
    let awaited = outboxes.tell(["b"].into_iter(), changes.clone(), (now, now, HOUR));
    let batch = next(&outboxes, "b");
    let answers = block_on(outboxes.answers(awaited, now));
    assert!(answers.iter().all(|(_, outcome)| outcome.is_err()));
    // each time that one is missed again it has another number
    assert_eq!(outboxes.boxes().late.end(), CHANGES as u64);
    outboxes.failed("b", batch, "it did not answer in time", now);
    assert_eq!(outboxes.boxes().late.end(), CHANGES as u64);
    assert_eq!(deliver_all(&outboxes, "b"), changes);
    assert!(!is_behind(&outboxes, "b"));
}

#[test]
fn member_that_missed_more_than_there_is_room_for_validates_and_drops_nothing() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b"].into_iter(), 1, Instant::now());
    for number in 0..=WAITING_MAX.orders {
        drop(tell(&outboxes, &["b"], &[invalidated(number.to_string())]));
    }
    assert!(is_behind(&outboxes, "b"));
    assert_eq!(whats(&next(&outboxes, "b")), [PurgedTarget::Validate]);
}

#[test]
fn message_has_no_more_orders_and_bytes_than_one_may_have() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b"].into_iter(), 1, Instant::now());
    for number in 0..PURGE_ORDERS_MAX + 1 {
        drop(tell(&outboxes, &["b"], &[invalidated(number.to_string())]));
    }
    let sizes = |outboxes: &Outboxes| {
        let batches = std::iter::from_fn(|| outboxes.next("b"));
        let batches = batches.map(|batch| whats(&batch));
        let batches: Vec<Vec<PurgedTarget>> = batches.collect();
        for batch in &batches {
            let bytes = batch.iter().map(|what| what.url_bytes() + 40);
            let bytes = bytes.sum::<usize>() + 4000;
            assert!(bytes <= PURGE_MESSAGE_BYTES_MAX, "{bytes}");
        }
        batches.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(sizes(&outboxes), [PURGE_ORDERS_MAX, 1]);
    let long = |number: usize| invalidated("x".repeat((1 << 20) - 100 - number));
    drop(tell(&outboxes, &["b"], &[url(0), long(0), url(1), long(1)]));
    assert_eq!(sizes(&outboxes), [1, 1, 1, 1]);
}

#[test]
fn what_a_member_missed_that_left_for_a_moment_it_is_told_when_it_is_back() {
    let outboxes = Outboxes::default();
    let now = Instant::now();
    outboxes.meet(["b", "c"].into_iter(), 1, now);
    let told = tell(&outboxes, &["b"], &[url(0)]);
    assert_eq!(told.len(), 1);
    assert!(is_behind(&outboxes, "c"), "others may have it as a member");
    assert_eq!(deliver_all(&outboxes, "b"), [url(0)]);
    assert!(outboxes.unserved().iter().all(|name| **name != *"c"));
    assert!(outboxes.expire(now + AWAY_MAX / 2).is_empty());
    // before the list is seen again, and then at once
    let told = tell(&outboxes, &["b", "c"], &[url(1)]);
    assert_eq!(told.len(), 2);
    assert_eq!(deliver_all(&outboxes, "c"), [url(0), url(1)]);
    assert!(!is_behind(&outboxes, "c"));
}

#[test]
fn member_that_was_away_for_long_validates_what_it_has_when_it_is_back() {
    let outboxes = Outboxes::default();
    let now = Instant::now();
    outboxes.meet(["b", "c"].into_iter(), 1, now);
    outboxes.meet(["b"].into_iter(), 1, now);
    drop(tell(&outboxes, &["b"], &[url(0)]));
    assert_eq!(outboxes.expire(now + AWAY_MAX), ["c".into()]);
    assert!(outboxes.expire(now + AWAY_MAX).is_empty(), "said once");
    deliver_all(&outboxes, "b");
    assert_eq!(outboxes.overdue(), 0, "nothing is noted for it");
    drop(tell(&outboxes, &["b"], &[url(1)]));
    assert_eq!(next(&outboxes, "b").behind, Behind::NONE);
    outboxes.meet(["b", "c"].into_iter(), 1, now + AWAY_MAX);
    assert_eq!(deliver_all(&outboxes, "c"), [PurgedTarget::Validate]);
    assert!(!is_behind(&outboxes, "c"));
    // one that leaves and misses nothing within the time
    outboxes.meet(["b"].into_iter(), 1, now);
    outboxes.meet(["b", "c"].into_iter(), 1, now);
    assert!(outboxes.next("c").is_none());
}

#[test]
fn member_that_nothing_tells_any_more_validates() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b", "c"].into_iter(), 1, Instant::now());
    outboxes.demand_validation(&these(&["c", "x"]));
    assert!(is_behind(&outboxes, "c"));
    let news = next(&outboxes, "b");
    assert_eq!(news.behind, these(&["c"]));
    deliver(&outboxes, "b", news);
    assert!(outboxes.next("b").is_none());
    assert_eq!(deliver_all(&outboxes, "c"), [PurgedTarget::Validate]);
    assert!(!is_behind(&outboxes, "c"));
}

#[test]
fn more_members_behind_than_a_message_names_are_all() {
    let outboxes = Outboxes::default();
    let names: Vec<String> = (0..=BEHIND_NAMES_MAX).map(|it| format!("n{it}")).collect();
    let all = || names.iter().map(String::as_str).chain(["b"]);
    outboxes.meet(all(), 1, Instant::now());
    for (count, name) in (1..).zip(&names) {
        outboxes.demand_validation(&these(&[name]));
        drop(outboxes.tell(all(), vec![url(count)], (Instant::now(), soon(), HOUR)));
        let behind = next(&outboxes, "b").behind;
        match behind {
            Behind::These(names) => assert_eq!(names.len(), count),
            Behind::All => assert!(count > BEHIND_NAMES_MAX),
        }
    }
}

#[test]
fn numbers_go_on_from_what_the_member_has_received() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b"].into_iter(), 1, Instant::now());
    assert_eq!(outboxes.number("b"), ("-".into(), 1));
    outboxes.learn("b", "s", 41);
    assert_eq!(outboxes.number("b"), ("s".into(), 42));
    assert_eq!(outboxes.number("b"), ("s".into(), 43));
    // an answer to an earlier message, and a process that is another one
    outboxes.learn("b", "s", 42);
    assert_eq!(outboxes.number("b"), ("s".into(), 44));
    outboxes.learn("b", "t", 0);
    assert_eq!(outboxes.number("b"), ("t".into(), 1));
}

#[test]
fn members_are_looked_at_only_while_one_of_them_may_be_behind() {
    let outboxes = Outboxes::default();
    let now = Instant::now();
    assert!(outboxes.is_any_behind(1, now), "the list was not met");
    outboxes.meet(["b", "c"].into_iter(), 1, now);
    assert!(!outboxes.is_any_behind(1, now));
    drop(outboxes.tell(
        ["b", "c"].into_iter(),
        vec![url(0)],
        (now, now + HOUR, HOUR),
    ));
    assert!(!outboxes.is_any_behind(1, now));
    assert!(outboxes.is_any_behind(1, now + HOUR), "the answer is due");
    assert!(outboxes.is_behind("c", now + HOUR));
    deliver_all(&outboxes, "b");
    deliver_all(&outboxes, "c");
    assert!(!outboxes.is_any_behind(1, now + HOUR));
    // it has left for good
    outboxes.meet(["b"].into_iter(), 2, now);
    outboxes.expire(now + AWAY_MAX);
    assert!(!outboxes.is_any_behind(2, now + AWAY_MAX));
    assert!(outboxes.is_any_behind(3, now), "it may be back");
    assert!(outboxes.is_behind("c", now) && !outboxes.is_behind("b", now));
}

#[test]
fn member_is_behind_until_it_has_written_down_that_it_validates() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b"].into_iter(), 1, Instant::now());
    for number in 0..=WAITING_MAX.orders {
        drop(tell(&outboxes, &["b"], &[invalidated(number.to_string())]));
    }
    let in_force = PurgeOutcome {
        removed: 0,
        is_durable: false,
    };
    for is_first in [true, false] {
        let batch = next(&outboxes, "b");
        assert_eq!(whats(&batch), [PurgedTarget::Validate]);
        let delivered = outboxes.delivered("b", batch, vec![in_force]);
        assert_eq!(delivered, Delivered::NotDurable { is_first });
        assert!(is_behind(&outboxes, "b"));
        assert_eq!(outboxes.overdue_of("b"), 1);
    }
    // it answers: what comes meanwhile it is told in time
    let awaited = tell(&outboxes, &["b"], &[url(0)]);
    let batch = next(&outboxes, "b");
    assert_eq!(whats(&batch), [PurgedTarget::Validate, url(0)]);
    assert_eq!(deliver(&outboxes, "b", batch), Delivered::Late);
    let answers = block_on(outboxes.answers(awaited, soon()));
    assert_eq!(answers, [("b".into(), Ok(outcome(1)))]);
    assert!(!is_behind(&outboxes, "b"));
}

#[test]
fn purge_that_is_not_durable_at_a_member_leaves_it_in_step() {
    let outboxes = Outboxes::default();
    outboxes.meet(["b"].into_iter(), 1, Instant::now());
    drop(tell(&outboxes, &["b"], &[url(0)]));
    let batch = next(&outboxes, "b");
    // the store on disk is emptied before it is used again
    let in_force = PurgeOutcome {
        removed: 1,
        is_durable: false,
    };
    let delivered = outboxes.delivered("b", batch, vec![in_force]);
    assert_eq!(delivered, Delivered::InTime);
    assert!(!is_behind(&outboxes, "b"));
}
