//! Playbooks: on this event expect this command, the whole conversation compared.

use super::*;
use proptest::prelude::*;
use weir_workload::Target;

fn order(number: u64) -> Order {
    order_to(0, number)
}

fn order_to(server: u32, number: u64) -> Order {
    Order {
        ask: WorkloadRequest::plain(0, Target { server, number }),
        scheduled_us: number,
        is_repeated: false,
    }
}

fn rules(connections_max: usize, queue_max: usize) -> Rules {
    Rules {
        connections_max,
        queue_max,
        keep_alive: true,
        requests_per_connection: None,
        by_server: false,
    }
}

fn due(number: u64) -> Event {
    Event::Due(order(number))
}

fn ended(place: usize, keep: bool) -> Event {
    Event::Ended { place, keep }
}

/// Short for a command: `start 7 at 0, new, kept`.
fn said(command: Command) -> String {
    match command {
        Command::Start {
            place,
            order,
            is_fresh,
            keep,
        } => {
            let again = if order.is_repeated { " again" } else { "" };
            let new = if is_fresh { ", new" } else { "" };
            let kept = if keep { ", kept" } else { "" };
            format!(
                "start {}{again} at {place}{new}{kept}",
                order.ask.target.number
            )
        }
        Command::Refuse(order) => format!("refuse {}", order.ask.target.number),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn check(rules: &Rules, book: &[(Event, &str)]) {
    let mut agent = Agent::new(Chance::new(1, 1));
    for (line, (event, expected)) in book.iter().enumerate() {
        let command = agent.handle(rules, *event);
        assert_eq!(said(command), *expected, "line {line}: {event:?}");
    }
}

#[test]
fn closed_loop_client_is_ready_for_the_next_request_when_one_ends() {
    let rules = rules(1, 10);
    check(
        &rules,
        &[
            (due(1), "start 1 at 0, new, kept"),
            (ended(0, true), "ready"),
            (due(2), "start 2 at 0, kept"),
            (ended(0, false), "ready"),
            (due(3), "start 3 at 0, new, kept"),
        ],
    );
}

#[test]
fn client_without_keep_alive_opens_a_connection_per_request() {
    let rules = Rules {
        keep_alive: false,
        ..rules(1, 10)
    };
    check(
        &rules,
        &[
            (due(1), "start 1 at 0, new"),
            (ended(0, true), "ready"),
            (due(2), "start 2 at 0, new"),
        ],
    );
}

#[test]
fn request_is_queued_only_when_all_allowed_connections_are_busy() {
    check(
        &rules(2, 10),
        &[
            (due(1), "start 1 at 0, new, kept"),
            (due(2), "start 2 at 1, new, kept"),
            (due(3), "wait"),
            (due(4), "wait"),
            (ended(1, true), "start 3 at 1, kept"),
            (ended(0, false), "start 4 at 0, new, kept"),
            (ended(0, true), "wait"),
            (due(5), "start 5 at 0, kept"),
            (ended(1, true), "wait"),
            (ended(0, true), "ready"),
        ],
    );
}

#[test]
fn queued_requests_start_in_fifo_order() {
    check(
        &rules(1, 10),
        &[
            (due(1), "start 1 at 0, new, kept"),
            (due(2), "wait"),
            (ended(0, true), "start 2 at 0, kept"),
            (due(3), "wait"),
            (due(4), "wait"),
            (ended(0, true), "start 3 at 0, kept"),
            (ended(0, true), "start 4 at 0, kept"),
        ],
    );
}

#[test]
fn request_beyond_the_queue_limit_is_refused() {
    check(
        &rules(1, 1),
        &[
            (due(1), "start 1 at 0, new, kept"),
            (due(2), "wait"),
            (due(3), "refuse 3"),
            (ended(0, true), "start 2 at 0, kept"),
            (due(4), "wait"),
        ],
    );
}

#[test]
fn connection_carries_at_most_the_drawn_number_of_requests() {
    let rules = Rules {
        requests_per_connection: Some("constant(2)".parse().unwrap()),
        ..rules(1, 10)
    };
    check(
        &rules,
        &[
            (due(1), "start 1 at 0, new, kept"),
            (ended(0, true), "ready"),
            (due(2), "start 2 at 0"),
            (ended(0, true), "ready"),
            (due(3), "start 3 at 0, new, kept"),
        ],
    );
}

#[test]
fn request_on_a_stale_connection_is_retried_before_queued_ones() {
    let stale = Event::Stale {
        place: 0,
        order: order(2),
    };
    check(
        &rules(1, 10),
        &[
            (due(1), "start 1 at 0, new, kept"),
            (ended(0, true), "ready"),
            (due(2), "start 2 at 0, kept"),
            (due(3), "wait"),
            (stale, "start 2 again at 0, new, kept"),
            (ended(0, true), "start 3 at 0, kept"),
        ],
    );
}

#[test]
fn closed_idle_connection_is_replaced_by_a_new_one() {
    check(
        &rules(1, 10),
        &[
            (due(1), "start 1 at 0, new, kept"),
            (ended(0, true), "ready"),
            (Event::Gone { place: 0 }, "wait"),
            (due(2), "start 2 at 0, new, kept"),
        ],
    );
}

#[test]
fn request_is_sent_on_a_connection_to_its_own_server() {
    let rules = Rules {
        by_server: true,
        ..rules(2, 10)
    };
    check(
        &rules,
        &[
            (Event::Due(order_to(7, 1)), "start 1 at 0, new, kept"),
            (ended(0, true), "ready"),
            (Event::Due(order_to(8, 2)), "start 2 at 1, new, kept"),
            (ended(1, true), "ready"),
            (Event::Due(order_to(7, 3)), "start 3 at 0, kept"),
            (ended(0, true), "ready"),
            // both idle, neither fits: one makes room
            (Event::Due(order_to(9, 4)), "start 4 at 1, new, kept"),
        ],
    );
}

proptest! {
    /// Against a naive count: every request that is due is started or refused exactly once, in
    /// order, and never are there more under way than may be, nor one that waits beside a
    /// connection that is free.
    #[test]
    fn each_due_request_is_started_queued_or_refused_exactly_once(
        connections_max in 1..5_usize,
        queue_max in 0..4_usize,
        steps in prop::collection::vec((any::<bool>(), any::<bool>(), 0..8_usize), 1..200),
    ) {
        let rules = Rules {
            requests_per_connection: Some("uniform(1, 4)".parse().unwrap()),
            ..rules(connections_max, queue_max)
        };
        let mut agent = Agent::new(Chance::new(3, 3));
        let mut busy = Vec::new();
        let (mut issued, mut started, mut refused, mut last) = (0, 0, 0, 0);
        for (is_due, keep, which) in steps {
            let event = if is_due || busy.is_empty() {
                issued += 1;
                due(issued)
            } else {
                let index: usize = which % busy.len();
                ended(busy.remove(index), keep)
            };
            match agent.handle(&rules, event) {
                Command::Start { place, order, .. } => {
                    prop_assert!(!busy.contains(&place));
                    prop_assert!(order.scheduled_us > last);
                    last = order.scheduled_us;
                    started += 1;
                    busy.push(place);
                }
                Command::Refuse(_) => refused += 1,
                Command::Wait => {}
                Command::Ready => prop_assert!(busy.is_empty() && agent.queued() == 0),
            }
            prop_assert!(busy.len() <= connections_max && agent.queued() <= queue_max);
            prop_assert!(agent.queued() == 0 || busy.len() == connections_max);
        }
        prop_assert_eq!(started + refused + agent.queued() as u64, issued);
    }
}
