use super::*;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use proptest::prelude::*;

fn client(number: u8) -> ClientNetwork {
    ClientNetwork::of(IpAddr::V4(Ipv4Addr::new(192, 0, 2, number)))
}

/// So many requests of a client as are not held back.
fn fill(shares: &mut ClientShares, number: u8, max: usize) -> usize {
    let begun = (0..).take_while(|_| shares.try_begin(Some(client(number)), max));
    begun.count()
}

#[test]
fn client_alone_has_half_of_the_connections_and_each_further_one_half_of_the_rest() {
    let mut shares = ClientShares::default();
    let begun: Vec<usize> = (0..5)
        .map(|number| fill(&mut shares, number, 256))
        .collect();
    assert_eq!(begun, [128, 64, 32, 16, 8]);
}

#[test]
fn clients_that_begin_in_turn_have_equal_shares_and_leave_one_to_others() {
    for count in 1..=8_u8 {
        let mut shares = ClientShares::default();
        let mut held = Vec::from([0; 8]);
        for _ in 0..256 {
            for number in 0..count {
                let begins = shares.try_begin(Some(client(number)), 256);
                held[usize::from(number)] += usize::from(begins);
            }
        }
        let expected = 256 / (usize::from(count) + 1);
        for held in &held[..usize::from(count)] {
            assert!(held.abs_diff(expected) <= 2, "{count}: {held} {expected}");
        }
        assert!(shares.under_way < 256);
    }
}

#[test]
fn few_connections_are_not_shared() {
    let mut shares = ClientShares::default();
    assert_eq!(fill_at_most(&mut shares, 100, SHARED_FROM - 1), 100);
    let mut shares = ClientShares::default();
    assert_eq!(fill_at_most(&mut shares, 100, SHARED_FROM), SHARED_FROM / 2);
}

#[test]
fn few_clients_without_a_request_are_remembered() {
    let mut shares = ClientShares::default();
    for number in 0..100 {
        assert!(shares.try_begin(Some(client(number)), 256));
    }
    assert_eq!(shares.clients.len(), 100);
    (0..100).for_each(|number| shares.end(Some(client(number))));
    assert_eq!(shares.clients.len(), KEPT_CLIENTS_MAX);
    let mut kept = shares.clients.values();
    assert!(kept.all(|share| *share == Share::default()));
}

fn fill_at_most(shares: &mut ClientShares, requests: usize, max: usize) -> usize {
    let begun = (0..requests).filter(|_| shares.try_begin(Some(client(1)), max));
    begun.count()
}

#[test]
fn request_without_a_client_is_never_held_back_and_counts() {
    let mut shares = ClientShares::default();
    for _ in 0..1000 {
        assert!(shares.try_begin(None, 256));
    }
    // and a client without a request waits for a connection, not for its share
    assert_eq!(fill(&mut shares, 1, 256), 1);
}

#[test]
fn client_with_the_fewest_requests_goes_first_of_those_held_back() {
    let mut shares = ClientShares::default();
    assert_eq!(fill(&mut shares, 1, 256), 128);
    let of_first = shares.begin(Some(client(1)), 256).unwrap_err();
    assert_eq!(fill(&mut shares, 2, 256), 64);
    let of_second = shares.begin(Some(client(2)), 256).unwrap_err();
    shares.end(Some(client(1)));
    assert_eq!(shares.release(), Some((client(2), of_second)));
    assert_eq!(shares.release(), None);
    // its own requests keep their order
    assert!(!shares.try_begin(Some(client(1)), 256));
    for _ in 0..63 {
        shares.end(Some(client(2)));
    }
    assert_eq!(shares.release(), None, "127 under way, and 127 left");
    shares.end(Some(client(2)));
    assert_eq!(shares.release(), Some((client(1), of_first)));
}

#[derive(Clone, Debug)]
enum Step {
    Begin(u8),
    BeginUnasked,
    End(u8),
    EndUnasked,
    Leave(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let number = 0_u8..6;
    prop_oneof![
        6 => number.clone().prop_map(Step::Begin),
        1 => Just(Step::BeginUnasked),
        4 => number.clone().prop_map(Step::End),
        1 => Just(Step::EndUnasked),
        1 => number.prop_map(Step::Leave),
    ]
}

proptest! {
    /// Whatever happens: no client that waits could go on, none overtakes itself, a client never
    /// has more than it leaves to others but for its only one, and nothing is forgotten.
    #[test]
    fn held_back_requests_are_those_beyond_a_share(
        max in SHARED_FROM..40,
        steps in proptest::collection::vec(step(), 0..400),
    ) {
        let mut shares = ClientShares::default();
        let mut held = [0_usize; 6];
        let mut unasked = 0_usize;
        let mut waiting: [Vec<HeldBackRequest>; 6] = Default::default();
        for step in steps {
            match step {
                Step::Begin(number) => {
                    let at = usize::from(number);
                    let under_way = held.iter().sum::<usize>() + unasked;
                    let left = max.saturating_sub(under_way);
                    match shares.begin(Some(client(number)), max) {
                        Ok(()) => {
                            prop_assert!(waiting[at].is_empty());
                            prop_assert!(held[at] == 0 || held[at] < left);
                            held[at] += 1;
                        }
                        Err(request) => {
                            prop_assert!(held[at] > 0 && held[at] >= left);
                            waiting[at].push(request);
                        }
                    }
                }
                Step::BeginUnasked => {
                    prop_assert!(shares.begin(None, max).is_ok());
                    unasked += 1;
                }
                Step::End(number) if held[usize::from(number)] > 0 => {
                    held[usize::from(number)] -= 1;
                    shares.end(Some(client(number)));
                }
                Step::EndUnasked if unasked > 0 => {
                    unasked -= 1;
                    shares.end(None);
                }
                Step::Leave(number) => {
                    if let Some(request) = waiting[usize::from(number)].pop() {
                        shares.leave(client(number), request);
                    }
                }
                Step::End(_) | Step::EndUnasked => {}
            }
            while let Some((client, request)) = shares.release() {
                let at = (0..6).find(|at| self::client(*at) == client).unwrap();
                let at = usize::from(at);
                prop_assert_eq!(waiting[at].remove(0), request);
                held[at] += 1;
            }
            let left = max.saturating_sub(held.iter().sum::<usize>() + unasked);
            for (held, waiting) in held.iter().zip(&waiting) {
                prop_assert!(waiting.is_empty() || *held > 0 && *held >= left);
            }
        }
        for (number, held) in (0..).zip(held) {
            for request in &waiting[usize::from(number)] {
                shares.leave(client(number), *request);
            }
            (0..held).for_each(|_| shares.end(Some(client(number))));
        }
        (0..unasked).for_each(|_| shares.end(None));
        prop_assert!(shares.is_idle());
        let mut kept = shares.clients.values();
        prop_assert!(kept.all(|share| *share == Share::default()));
    }
}
