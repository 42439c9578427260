//! What each policy chooses, request by request.

use super::script::PolicyStage;
use super::stage::check;
use weir_policy::route::policy::PolicyKind;

#[test]
fn nodes_have_turns_by_weight_and_pass_them_on() {
    check::<PolicyStage>(
        PolicyKind::InTurn,
        "nodes a b:2
         request /x x6 -> b in-turn, a in-turn, b in-turn, b in-turn, a in-turn, b in-turn
         state b=draining
         request /x x2 -> a others-ejected
         state b=in a=gone
         request /x x3 -> b others-ejected, b in-turn, b others-ejected
         state b=gone
         request /x -> none",
    );
}

#[test]
fn least_loaded_node_for_its_weight_is_chosen() {
    check::<PolicyStage>(
        PolicyKind::Least,
        "nodes a b:4
         load a=2 b=7
         request /x x3 -> b least-load
         load b=9
         request /x x3 -> a least-load
         state a=draining
         request /x x3 -> b least-load
         state b=gone
         request /x -> none",
    );
}

#[test]
fn of_two_nodes_the_faster_is_chosen_until_it_has_more_to_do() {
    check::<PolicyStage>(
        PolicyKind::TwoChoices,
        "nodes a b
         time a=1000
         load a=3 b=2
         request /x x4 -> b better-of-two
         time b=8000
         request /x x4 -> a better-of-two
         load a=24
         request /x x4 -> b better-of-two
         state b=gone
         request /x x4 -> a better-of-two
         state a=draining
         request /x -> none",
    );
}

#[test]
fn hash_sends_a_target_to_the_next_in_order_while_its_node_is_gone() {
    check::<PolicyStage>(
        PolicyKind::Hash,
        "nodes a b c
         order /u -> c b a
         load c=1000
         request /u x3 -> c first-in-order
         state c=gone
         request /u x3 -> b others-ejected
         state c=joining
         request /u -> c first-in-order
         state a=gone b=draining c=draining
         request /u -> none",
    );
}

#[test]
fn bounded_hash_leaves_a_node_at_its_bound() {
    check::<PolicyStage>(
        PolicyKind::BoundedHash,
        // 65, whatever the others have; then 1.25 x (340 + 1) / 3, rounded up: 143
        "nodes a b c
         order /u -> c b a
         request /u -> c first-in-order
         load a=3 b=1 c=64
         request /u -> c first-in-order
         load a=2 b=1 c=65
         request /u -> b next-in-order
         load a=0 b=65 c=65
         request /u -> a next-in-order
         load a=100 b=98 c=142
         request /u -> c first-in-order
         load a=100 b=97 c=143
         request /u -> b next-in-order
         load a=50 b=150 c=150
         request /u -> a next-in-order
         state c=draining
         request /u -> a others-ejected",
    );
}

#[test]
fn target_moves_when_its_node_is_overloaded_and_another_idle() {
    check::<PolicyStage>(
        PolicyKind::Lard,
        "nodes a b c
         order /u -> c b a
         load c=66
         request /u -> b not-mapped
         load b=65 c=0
         request /u -> b mapped
         load b=66 c=25 a=25
         request /u -> b mapped
         load a=24
         request /u -> a moved
         load a=129 b=66 c=67
         request /u -> a mapped
         load a=130
         request /u -> b moved
         state b=gone
         request /u -> c not-mapped
         load a=70 c=200
         request /t -> a not-mapped",
    );
}

#[test]
fn set_of_nodes_grows_under_load_and_shrinks_after_20_s() {
    check::<PolicyStage>(
        PolicyKind::LardR,
        "nodes a b c
         order /u -> c b a
         request /u -> c not-mapped
         load c=66
         request /u -> b replicated
         load b=10
         request /u -> b mapped
         load c=9
         request /u -> c mapped
         at 20s
         request /u -> c mapped
         at 21s
         request /u -> c mapped
         load b=0
         request /u -> c mapped
         state c=gone
         request /u -> b not-mapped",
    );
}

#[test]
fn later_requests_of_a_connection_are_served_where_they_cost_least() {
    check::<PolicyStage>(
        PolicyKind::ExtendedLard,
        "nodes a b c
         order /u -> c b a
         order /t -> c b a
         request /u -> c not-mapped
         request /u by a -> a disk-idle
         request /u by a -> a mapped
         request /t -> c not-mapped
         pressure a=5 b=5
         load c=30
         request /t by a -> c lateral
         load c=130
         request /t by a -> a disk-busy
         load c=131
         request /t by a -> a disk-busy
         pressure a=4
         request /t by a -> a disk-idle
         request /t by b -> a lateral
         holds a=no
         request /t by b -> b disk-busy
         load c=0
         request /t by b -> c lateral
         lost /t by c
         request /t by b -> b not-mapped
         request /t by b -> b mapped",
    );
}

#[test]
fn first_request_of_a_connection_moves_a_target_where_it_costs_less() {
    check::<PolicyStage>(
        PolicyKind::ExtendedLard,
        // at c it costs 1 and the load without 30, at idle nodes 50
        "nodes a b c
         order /u -> c b a
         load c=80
         request /u -> c not-mapped
         load c=79
         request /u -> c mapped
         load c=80
         request /u -> b moved
         load b=29
         request /u -> b mapped
         load a=131 b=131 c=132
         request /t -> b not-mapped",
    );
}
