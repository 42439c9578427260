//! Which node of a cluster is asked for a target, and when the origin is.

use super::lateral_script::{NodeStage, STORED};
use super::stage::check;
use weir_policy::route::policy::PolicyKind;
use weir_policy::route::{AskedBy, LateralRequest, Place, StoredRequest};
use weir_policy::{Handling, Hit, StaleReason};
use weir_semantics::{Fwd, Method};

#[test]
fn owner_asks_the_origin_and_every_other_node_asks_the_owner() {
    check::<NodeStage>(
        PolicyKind::Hash,
        "node a of a b c
         order /u -> c b a
         order /l -> a c b
         client /u -> c first-in-order
         client /l -> origin first-in-order",
    );
}

#[test]
fn request_of_another_node_is_not_sent_on_to_a_third() {
    check::<NodeStage>(
        PolicyKind::Hash,
        "node a of a b c
         order /u -> c b a
         node b /u -> origin
         node c /u -> origin
         state a=draining
         node b /u -> origin",
    );
}

#[test]
fn after_two_nodes_that_do_not_answer_the_origin_is_asked_and_no_node_twice() {
    check::<NodeStage>(
        PolicyKind::Hash,
        "node a of a b c d
         order /u -> c d b a
         client /u -> c first-in-order
         client /u after c -> d others-ejected
         client /u after c d -> origin
         state d=gone
         client /u after c -> b others-ejected
         state b=gone
         client /u after c -> origin others-ejected",
    );
}

#[test]
fn node_that_failed_is_left_alone_for_10_s_then_probed_by_one_request() {
    check::<NodeStage>(
        PolicyKind::Hash,
        "node a of a b c
         order /u -> c b a
         failed c
         known c -> gone for 10000 ms
         client /u -> b others-ejected
         at 9s
         client /u -> b others-ejected
         at 10s
         known c -> in
         client /u -> c probe
         client /u -> b others-ejected
         failed c
         known c -> gone for 20000 ms
         at 30s
         client /u -> c probe
         answered c in load=0
         client /u -> c first-in-order",
    );
}

#[test]
fn node_that_is_silent_is_asked_on_if_it_has_answered_other_requests_since() {
    check::<NodeStage>(
        PolicyKind::Hash,
        "node a of a b c
         order /u -> c b a
         at 5s
         answered c in load=0
         silent c since 4s
         client /u -> c first-in-order
         silent c since 6s
         client /u -> b others-ejected",
    );
}

#[test]
fn node_is_overloaded_by_65_requests_of_this_node_or_as_it_says_for_a_second() {
    check::<NodeStage>(
        PolicyKind::BoundedHash,
        "node a of a b c
         order /u -> c b a
         asked c 64
         client /u -> c first-in-order
         asked c 65
         client /u -> c next-in-order, copied
         asked c 0
         answered c in load=65
         client /u -> c next-in-order, copied
         at 1s
         client /u -> c first-in-order
         serving 90
         order /l -> a c b
         client /l -> origin next-in-order",
    );
}

#[test]
fn node_that_drains_owns_nothing_and_asks_others_for_its_own_clients() {
    check::<NodeStage>(
        PolicyKind::Hash,
        "node a of a b c
         order /u -> c b a
         order /l -> a c b
         answered c draining load=0
         client /u -> b others-ejected
         at 29s
         client /u -> b others-ejected
         at 30s
         client /u -> c first-in-order
         answered c in load=0
         state c=draining
         client /u -> c first-in-order
         at 60s
         client /u -> b others-ejected
         state a=draining
         client /l -> b others-ejected
         node b /l -> origin
         state b=gone
         client /l -> origin all-ejected",
    );
}

#[test]
fn owner_that_joins_asks_the_previous_owner_for_what_that_has_stored_before_the_origin() {
    check::<NodeStage>(
        PolicyKind::Hash,
        "node a of a b c
         order /l -> a c b
         state a=joining
         client /l -> c previous-owner, copied, stored only
         client /l after c -> origin first-in-order
         node b /l -> c previous-owner, copied, stored only
         node b /l after c -> origin
         node c /l -> origin
         state c=draining
         client /l -> c previous-owner, copied, stored only
         state c=joining
         client /l -> b previous-owner, copied, stored only
         node c /l -> b previous-owner, copied, stored only
         failed b
         client /l -> origin first-in-order
         at 10s
         client /l -> b previous-owner, copied, stored only
         client /l -> origin first-in-order
         order /u -> c b a
         client /u -> c first-in-order
         state a=in
         client /l -> origin first-in-order
         node b /l -> origin",
    );
}

#[test]
fn while_the_owner_is_gone_a_node_whose_digest_has_the_target_is_asked_in_its_place() {
    check::<NodeStage>(
        PolicyKind::Hash,
        "node a of a b c d
         order /u -> c d b a
         digest b has /u
         client /u -> c first-in-order
         state c=gone
         client /u -> b holder
         digest d has /u
         client /u -> d holder
         client /u after d -> b holder
         digest b lacks /u
         client /u after d -> b others-ejected
         digest d lacks /u
         client /u -> d others-ejected
         state d=gone
         digest b has /u
         state b=gone
         client /u -> origin others-ejected
         node d /u -> origin
         state c=in
         client /u -> c first-in-order",
    );
}

#[test]
fn owner_that_joins_asks_a_node_whose_digest_has_the_target_and_none_that_has_not() {
    check::<NodeStage>(
        PolicyKind::Hash,
        "node a of a b c
         order /l -> a c b
         state a=joining
         digest b has /l
         client /l -> b previous-owner, copied, stored only
         node b /l -> origin
         digest b unknown /l
         client /l -> c previous-owner, copied, stored only
         digest c lacks /l
         client /l -> origin first-in-order",
    );
}

#[test]
fn node_whose_disk_is_idle_keeps_copies_with_extended_lard_alone() {
    check::<NodeStage>(
        PolicyKind::ExtendedLard,
        "node a of a b c
         order /u -> c b a
         client /u -> c disk-idle, copied
         pressure 4
         client /u -> c disk-idle, copied
         pressure 5
         client /u -> c lateral
         pressure 4
         client /u -> c disk-idle, copied
         state a=front-end
         client /u -> c mapped
         pressure 5
         client /u -> c mapped
         state a=in
         order /v -> b a c
         client /v -> b not-mapped
         order /l -> a c b
         client /l -> origin not-mapped",
    );
    check::<NodeStage>(
        PolicyKind::Lard,
        "node a of a b c
         order /u -> c b a
         client /u -> c not-mapped
         client /u -> c mapped",
    );
}

#[test]
fn response_on_a_busy_disk_is_asked_of_a_node_that_has_it_in_memory_as_far_as_is_known() {
    check::<NodeStage>(
        PolicyKind::ExtendedLard,
        "node a of a b c
         order /l -> a c b
         held c /l
         stored /l -> read
         pressure 4
         stored /l -> read
         pressure 5
         stored /l -> c lateral, stored only
         stored /l without c -> read disk-busy
         digest c lacks /l
         stored /l -> read disk-busy
         digest c has /l
         stored /l -> c lateral, stored only
         answered c in load=0 pressure=9
         stored /l -> c lateral, stored only
         lost c /l
         stored /l -> read disk-busy
         held c /l
         asked c 131
         stored /l -> read disk-busy
         asked c 0
         at 2s
         failed c
         stored /l -> read disk-busy",
    );
}

#[test]
fn response_on_a_busy_disk_that_is_mapped_to_no_node_is_asked_of_the_first_in_order() {
    check::<NodeStage>(
        PolicyKind::ExtendedLard,
        "node a of a b c
         order /u -> c b a
         pressure 4
         stored /u -> read
         pressure 5
         stored /u -> c lateral, stored only
         held b /u
         stored /u -> b lateral, stored only
         lost b /u
         stored /u -> c lateral, stored only
         answered c in load=0 pressure=1000
         stored /u -> c lateral, stored only
         lost c /u
         stored /u -> c lateral, stored only
         digest c lacks /u
         stored /u -> read disk-busy
         digest c has /u
         stored /u -> c lateral, stored only
         stored /u without c -> b lateral, stored only
         asked c 78
         stored /u -> c lateral, stored only
         asked c 79
         stored /u -> read disk-busy
         serving 31
         asked c 129
         stored /u -> c lateral, stored only
         asked c 130
         stored /u -> read disk-busy
         asked c 0
         at 2s
         failed c
         stored /u -> b lateral, stored only
         state a=draining
         stored /u -> read disk-busy",
    );
    check::<NodeStage>(
        PolicyKind::ExtendedLard,
        "node a of a b c
         order /l -> a c b
         pressure 1000
         stored /l -> read disk-busy",
    );
}

#[test]
fn response_on_the_busy_disk_of_its_first_node_is_asked_of_an_idle_one_whose_digest_has_it() {
    check::<NodeStage>(
        PolicyKind::ExtendedLard,
        "node a of a b c
         order /l -> a c b
         pressure 5
         digest b has /l
         stored /l -> b lateral, stored only
         digest c has /l
         stored /l -> c lateral, stored only
         answered c in load=0 pressure=5
         stored /l -> b lateral, stored only
         answered c in load=0 pressure=4
         stored /l -> c lateral, stored only
         held b /l
         stored /l -> b lateral, stored only",
    );
}

#[test]
fn response_on_disk_is_read_with_all_other_policies_and_by_nodes_that_take_no_requests() {
    let others = PolicyKind::ALL.into_iter();
    for policy in others.filter(|policy| *policy != PolicyKind::ExtendedLard) {
        check::<NodeStage>(
            policy,
            "node a of a b c
             pressure 100
             held c /u
             digest b has /u
             stored /u -> read",
        );
    }
    check::<NodeStage>(
        PolicyKind::ExtendedLard,
        "node a of a b c
         pressure 100
         held c /u
         state a=draining
         stored /u -> read disk-busy
         state a=front-end
         stored /u -> read",
    );
}

#[test]
fn front_end_owns_nothing_and_sends_each_request_to_the_node_that_the_policy_chooses() {
    check::<NodeStage>(
        PolicyKind::BoundedHash,
        "node a of a b c
         order /l -> a c b
         order /u -> c b a
         state a=front-end
         client /l -> c first-in-order
         client /u -> c first-in-order
         asked c 65
         client /u -> b next-in-order
         client /u after c -> b others-ejected
         state b=gone
         client /u after c -> origin all-ejected",
    );
}

#[test]
fn node_has_the_targets_that_it_would_have_without_front_ends() {
    check::<NodeStage>(
        PolicyKind::BoundedHash,
        "node b of a b c
         order /l -> a c b
         answered a front-end load=0
         client /l -> c first-in-order
         node a /l -> origin
         state a=front-end
         at 20s
         client /l -> c first-in-order",
    );
}

#[test]
fn origin_is_asked_where_no_node_takes_requests() {
    check::<NodeStage>(
        PolicyKind::InTurn,
        "node a of a b
         client /u -> origin in-turn
         client /u -> b in-turn
         state b=gone
         client /u -> origin in-turn
         client /u -> origin others-ejected
         state a=draining
         client /u -> origin all-ejected",
    );
}

#[test]
fn no_other_node_is_asked_for_what_no_cache_may_answer() {
    let check = |handling: Handling, expected: bool| {
        let request = LateralRequest::of(handling, AskedBy::Client, true, &[]);
        assert_eq!(request.is_some(), expected, "{handling:?}");
    };
    for fwd in [
        Fwd::UriMiss,
        Fwd::VaryMiss,
        Fwd::Miss,
        Fwd::Request,
        Fwd::Stale,
        Fwd::Partial,
    ] {
        check(Handling::Forward(fwd), true);
    }
    for fwd in [Fwd::Bypass, Fwd::Method] {
        check(Handling::Forward(fwd), false);
    }
    check(Handling::Hit(Hit::Fresh), false);
    check(Handling::Tunnel, false);
    check(Handling::Collapsed(Fwd::UriMiss), false);
    check(Handling::StaleInstead(StaleReason::ALL[0]), false);
}

#[test]
fn no_other_node_is_asked_for_what_is_for_one_client_or_after_two_that_failed() {
    let handling = Handling::Forward(Fwd::UriMiss);
    for by in [AskedBy::Client, AskedBy::Node(Place(1))] {
        let is_asked = |is_shared, failed: &[Place]| {
            LateralRequest::of(handling, by, is_shared, failed).is_some()
        };
        assert!(is_asked(true, &[Place(1)]));
        assert!(!is_asked(false, &[]));
        assert!(!is_asked(true, &[Place(1), Place(2)]));
    }
}

#[test]
fn what_is_known_of_a_node_is_known_of_it_among_other_members() {
    check::<NodeStage>(
        PolicyKind::Hash,
        "node a of a b c
         order /u -> c b a
         failed c
         answered b draining load=0
         node a of c a b d
         known c -> gone for 10000 ms
         known b -> draining
         known d -> in
         node a of a b d
         node a of a b c d
         known c -> in",
    );
    // the node that a target is mapped to keeps it, one that comes has none
    check::<NodeStage>(
        PolicyKind::Lard,
        "node a of a b c
         order /u -> c b a
         order /v -> b a c
         failed c
         client /u -> b not-mapped
         at 11s
         answered c in load=0
         node b of b c
         client /u -> origin mapped
         node c of a c
         client /u -> origin not-mapped",
    );
}

#[test]
fn stored_response_is_asked_of_another_node_for_plain_requests_of_clients_alone() {
    let asks = |stored: &StoredRequest, is_shared: bool| {
        LateralRequest::instead_of_read(stored, || is_shared).is_some()
    };
    assert!(asks(&STORED, true) && !asks(&STORED, false));
    let head = StoredRequest {
        method: Method::Head,
        ..STORED
    };
    assert!(asks(&head, true));
    let changes: [fn(&mut StoredRequest); 8] = [
        |it| it.policy = PolicyKind::LardR,
        |it| it.asked_by = None,
        |it| it.asked_by = Some(AskedBy::Node(Place(1))),
        |it| it.method = Method::Options,
        |it| it.is_no_cache = true,
        |it| it.is_for_caches_alone = true,
        |it| it.is_background = true,
        |it| it.has_variant = true,
    ];
    for change in changes {
        let mut stored = STORED;
        change(&mut stored);
        assert!(!asks(&stored, true), "{stored:?}");
    }
}
