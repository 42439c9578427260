//! Back-pressure: what members are to be told waits until they have room for it, and so does the
//! client or operator that gets no answer before.
//!
//! Otherwise clients of one node could have members that answer in time taken for behind, by more
//! unsafe requests at once than there is room for. A member that does not answer in time fails, and
//! is not waited for any more.

use super::PurgedTarget;
use super::orders::{Amount, Initiator};
use super::outboxes::{Awaited, Outboxes};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;

/// How long what is first of its client, or of the operator, waits for room. A member that has
/// taken so little for so long answers, but does not keep up: it is behind then.
const TURN_WAIT_MAX: Duration = Duration::from_secs(30);

/// How long it waits before that to be the first of its client: a client that changes much waits
/// for that alone. It is longer than clients wait for responses; one that has more waiting has
/// thousands of connections.
const CLIENT_WAIT_MAX: Duration = Duration::from_mins(10);

/// What waits for its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waiter {
    /// A client at this address, by an unsafe request.
    Client(IpAddr),
    /// The operator, by a purge.
    Operator,
}

/// The right to tell members something.
pub(crate) struct Turn<'o> {
    outboxes: &'o Outboxes,
    /// `None` if that took too long: what is told may be more than there is room for.
    _held: Option<HeldQueues<'o>>,
    /// It was waited for: what was purged here may be back since.
    pub(crate) has_waited: bool,
}

/// First in the queue of a kind, and in that of a client.
type HeldQueues<'o> = (MutexGuard<'o, ()>, Option<MutexGuard<'o, ()>>);

impl Outboxes {
    /// Waits until all members in step have room for so many more orders of `waiter`, with so many
    /// bytes of URLs; in the order in which a client calls that, and clients by turns. At most for
    /// [`CLIENT_WAIT_MAX`] behind what that client has waiting, and [`TURN_WAIT_MAX`] from then on.
    pub(crate) async fn turn(&self, waiter: Waiter, orders: usize, bytes: usize) -> Turn<'_> {
        let more = Amount { orders, bytes };
        let (initiator, turns, queue) = match waiter {
            Waiter::Client(client) => {
                let queue = self.turns.of_client(client);
                (Initiator::Client, &self.turns.of_clients, Some(queue))
            }
            Waiter::Operator => (Initiator::Operator, &self.turns.of_operator, None),
        };
        let is_full = || {
            let boxes = self.boxes();
            let mut all = boxes.by_member.values();
            all.any(|outbox| outbox.is_full(initiator, more))
        };
        let turn = |held, has_waited| Turn {
            outboxes: self,
            _held: held,
            has_waited,
        };
        if let Ok(first) = queue.map(Mutex::try_lock).transpose()
            && let Ok(held) = turns.try_lock()
            && !is_full()
        {
            return turn(Some((held, first)), false);
        }
        let first = match queue {
            Some(queue) => match timeout(CLIENT_WAIT_MAX, queue.lock()).await {
                Ok(first) => Some(first),
                Err(_) => return turn(None, true),
            },
            None => None,
        };
        let held = async {
            let held = turns.lock().await;
            self.when_not(is_full).await;
            held
        };
        let held = timeout(TURN_WAIT_MAX, held).await.ok();
        turn(held.map(|held| (held, first)), true)
    }
}

impl Turn<'_> {
    /// Has `members`, all there are, told of `targets`; the answers are awaited until then, and the
    /// targets held for `patience` longer. Where a member has not answered lately the answer is
    /// there already: it was not told. What those miss that were members a moment ago is noted.
    pub(crate) fn tell<'m>(
        self,
        members: impl Iterator<Item = &'m str>,
        targets: Vec<PurgedTarget>,
        (now, until, patience): (Instant, Instant, Duration),
    ) -> Vec<Awaited> {
        let times = (now, until, patience);
        self.outboxes.tell(members, targets, times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::purges::outbox::WAITING_MAX;
    use crate::config::Mode;
    use std::net::Ipv4Addr;
    use std::pin::pin;
    use std::sync::Arc;
    use tokio::task::JoinSet;
    use weir_semantics::PURGE_ORDERS_MAX;

    const SECOND: Duration = Duration::from_secs(1);

    const CLIENT: Waiter = Waiter::Client(IpAddr::V4(Ipv4Addr::LOCALHOST));

    /// With time that passes when nothing else is left to do.
    fn run(test: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        runtime.expect("a runtime").block_on(test);
    }

    fn times() -> (Instant, Instant, Duration) {
        let now = Instant::now();
        let hour = Duration::from_hours(1);
        (now, now + hour, hour)
    }

    fn changed(url: String) -> PurgedTarget {
        let mode = Mode::Gateway;
        PurgedTarget::Invalidated { mode, url }
    }

    /// As much of clients waits for members `b` and `c` as may.
    fn full() -> Outboxes {
        holding(PURGE_ORDERS_MAX)
    }

    /// So many orders of clients wait for members `b` and `c`.
    fn holding(orders: usize) -> Outboxes {
        let outboxes = Outboxes::default();
        outboxes.meet(["b", "c"].into_iter(), 1, Instant::now());
        for number in 0..orders {
            let target = changed(format!("http://a/{number}"));
            drop(outboxes.tell(["b", "c"].into_iter(), vec![target], times()));
        }
        outboxes
    }

    /// `member` answers its next message.
    fn answer(outboxes: &Outboxes, member: &str) {
        let batch = outboxes.next(member).expect("a message");
        outboxes.delivered(member, batch, Vec::new());
    }

    #[test]
    fn turn_is_there_at_once_while_all_members_have_room() {
        run(async {
            let outboxes = Outboxes::default();
            outboxes.meet(["b", "c"].into_iter(), 1, Instant::now());
            for _ in 0..2 {
                // more than there is room for is not too much for a member that has been told all
                assert!(
                    !outboxes
                        .turn(CLIENT, WAITING_MAX.orders + 1, 8 << 20)
                        .await
                        .has_waited
                );
            }
        });
    }

    #[test]
    fn what_there_is_no_room_for_waits_until_all_members_have_answered_in_the_order_it_came() {
        run(async {
            let outboxes = full();
            let (mut first, mut second) = (
                pin!(outboxes.turn(CLIENT, 2, 0)),
                pin!(outboxes.turn(CLIENT, 1, 0)),
            );
            assert!(timeout(SECOND, &mut first).await.is_err());
            assert!(timeout(SECOND, &mut second).await.is_err());
            answer(&outboxes, "b");
            assert!(timeout(SECOND, &mut first).await.is_err(), "c has no room");
            answer(&outboxes, "c");
            assert!(timeout(SECOND, &mut second).await.is_err(), "it is later");
            let turn = timeout(SECOND, &mut first).await.expect("there is room");
            assert!(turn.has_waited);
            assert!(timeout(SECOND, &mut second).await.is_err(), "first tells");
            drop(turn);
            assert!(timeout(SECOND, second).await.expect("room").has_waited);
        });
    }

    #[test]
    fn client_waits_for_one_change_of_another_one_however_many_that_has_waiting() {
        run(async {
            const SHORT: Duration = Duration::from_millis(1);
            let outboxes = full();
            let queue_of = |client| outboxes.turns.of_client(client);
            let own = queue_of(IpAddr::V4(Ipv4Addr::LOCALHOST));
            let mut others = (1..=255).map(|last| IpAddr::from([192, 0, 2, last]));
            let other = others.find(|it| !std::ptr::eq(queue_of(*it), own));
            let other = Waiter::Client(other.expect("more than one queue"));
            let waiting = (0..100).map(|_| Box::pin(outboxes.turn(other, 1, 0)));
            let mut waiting: Vec<_> = waiting.collect();
            for turn in &mut waiting {
                assert!(timeout(SHORT, turn).await.is_err());
            }
            let mut turn = pin!(outboxes.turn(CLIENT, 1, 0));
            assert!(timeout(SHORT, &mut turn).await.is_err());
            for member in ["b", "c"] {
                answer(&outboxes, member);
            }
            drop(timeout(SHORT, &mut waiting[0]).await.expect("it is first"));
            assert!(timeout(SHORT, &mut waiting[1]).await.is_err());
            drop(timeout(SHORT, turn).await.expect("it is next"));
            assert!(timeout(SHORT, &mut waiting[1]).await.is_ok());
        });
    }

    #[test]
    fn member_that_fails_or_has_left_is_not_waited_for() {
        run(async {
            let outboxes = full();
            answer(&outboxes, "b");
            let mut turn = pin!(outboxes.turn(CLIENT, 1, 0));
            assert!(timeout(SECOND, &mut turn).await.is_err());
            let batch = outboxes.next("c").expect("a message");
            outboxes.failed("c", batch, "it is away", Instant::now());
            assert!(timeout(SECOND, turn).await.is_ok());
            let outboxes = full();
            outboxes.meet(std::iter::empty(), 2, Instant::now());
            assert!(!outboxes.turn(CLIENT, 1, 0).await.has_waited);
        });
    }

    #[test]
    fn member_that_makes_no_room_in_the_longest_time_is_behind() {
        run(async {
            let outboxes = holding(WAITING_MAX.orders);
            answer(&outboxes, "b");
            let mut turn = pin!(outboxes.turn(CLIENT, 1, 0));
            assert!(timeout(TURN_WAIT_MAX - SECOND, &mut turn).await.is_err());
            let turn = timeout(2 * SECOND, turn).await.expect("it is over");
            let target = changed("http://b/".into());
            drop(turn.tell(["b", "c"].into_iter(), vec![target], times()));
            let now = Instant::now();
            assert!(outboxes.is_behind("c", now) && !outboxes.is_behind("b", now));
        });
    }

    #[test]
    fn change_waits_for_those_of_its_client_before_its_own_wait_begins() {
        run(async {
            let outboxes = full();
            let mut first = pin!(outboxes.turn(CLIENT, 1, 0));
            let mut second = pin!(outboxes.turn(CLIENT, 1, 0));
            assert!(timeout(SECOND, &mut first).await.is_err());
            assert!(timeout(TURN_WAIT_MAX / 2, &mut second).await.is_err());
            let first = timeout(TURN_WAIT_MAX, first).await.expect("it is over");
            drop(first);
            let over = timeout(TURN_WAIT_MAX - SECOND, &mut second).await;
            assert!(over.is_err(), "it is first since then");
            assert!(timeout(2 * SECOND, second).await.is_ok());
        });
    }

    #[test]
    fn change_is_told_in_the_longest_time_though_its_client_has_others_waiting() {
        run(async {
            let outboxes = holding(0);
            let first = outboxes.turn(CLIENT, 1, 0).await;
            let mut second = pin!(outboxes.turn(CLIENT, 1, 0));
            let wait = CLIENT_WAIT_MAX - SECOND;
            assert!(timeout(wait, &mut second).await.is_err());
            assert!(timeout(2 * SECOND, second).await.expect("over").has_waited);
            drop(first);
        });
    }

    /// A client has 30 MB told to a member that takes `answer_time` for each message, and has 5
    /// s: that takes longer than a turn is waited for. Whether it has answered all in time.
    async fn is_in_step_at_load(answer_time: Duration) -> bool {
        let now = || tokio::time::Instant::now().into_std();
        let outboxes = Arc::new(Outboxes::default());
        outboxes.meet(["b"].into_iter(), 1, now());
        let mut clients = JoinSet::new();
        for number in 0..500 {
            let outboxes = Arc::clone(&outboxes);
            let url = format!("http://a/{number}/{}", "p".repeat(60_000));
            clients.spawn(async move {
                let turn = outboxes.turn(CLIENT, 1, url.len()).await;
                let (now, patience) = (now(), 5 * SECOND);
                let times = (now, now + patience, patience);
                turn.tell(["b"].into_iter(), vec![changed(url)], times);
            });
        }
        let mut is_in_step = true;
        while !clients.is_empty() {
            tokio::task::yield_now().await;
            while let Some(batch) = outboxes.next("b") {
                let _answer = timeout(answer_time, std::future::pending::<()>()).await;
                is_in_step &= !outboxes.is_behind("b", now());
                outboxes.expire(now());
                outboxes.delivered("b", batch, Vec::new());
            }
            while clients.try_join_next().is_some() {}
        }
        is_in_step
    }

    #[test]
    fn member_that_answers_in_half_its_time_is_in_step_however_much_a_client_changes() {
        run(async {
            assert!(is_in_step_at_load(Duration::from_millis(2400)).await);
            assert!(!is_in_step_at_load(Duration::from_millis(2600)).await);
        });
    }

    #[test]
    fn clients_wait_while_purges_of_the_operator_fill_the_next_message() {
        run(async {
            let outboxes = Outboxes::default();
            outboxes.meet(["b"].into_iter(), 1, Instant::now());
            for number in 0..PURGE_ORDERS_MAX {
                let purge = PurgedTarget::Url(format!("http://a/{number}"));
                drop(outboxes.tell(["b"].into_iter(), vec![purge], times()));
            }
            let mut turn = pin!(outboxes.turn(CLIENT, 1, 0));
            assert!(timeout(SECOND, &mut turn).await.is_err());
            answer(&outboxes, "b");
            assert!(timeout(SECOND, turn).await.expect("room").has_waited);
        });
    }

    #[test]
    fn purge_of_the_operator_has_room_of_its_own_before_clients_that_wait() {
        run(async {
            let outboxes = full();
            let mut client = pin!(outboxes.turn(CLIENT, 1, 0));
            assert!(timeout(SECOND, &mut client).await.is_err());
            for number in 0..1024 {
                let turn = outboxes.turn(Waiter::Operator, 1, 0).await;
                assert!(!turn.has_waited);
                let purge = PurgedTarget::Url(format!("http://a/{number}"));
                drop(turn.tell(["b", "c"].into_iter(), vec![purge], times()));
            }
            let now = Instant::now();
            assert!(!outboxes.is_behind("b", now) && !outboxes.is_behind("c", now));
            let mut operator = pin!(outboxes.turn(Waiter::Operator, 1, 0));
            assert!(timeout(SECOND, &mut operator).await.is_err());
            for member in ["b", "c", "b", "c"] {
                answer(&outboxes, member);
            }
            assert!(timeout(SECOND, client).await.expect("room").has_waited);
        });
    }
}
