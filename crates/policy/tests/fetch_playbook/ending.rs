//! A fetch ends before its end.

use crate::script::check;

#[test]
fn readers_of_a_cut_fetch_get_all_received_bytes_before_the_cut() {
    for range in ["", "range"] {
        check(&format!(
            "length=100k {range}
             0 begin 0..        => f0
             0 attach 0..       => r0
             0 attach 0..5k     => r1
             0 received f0 10k
             0 end f0 cut
             0 state            => 2 readers, 0 fetches, length 100k, closed next-hop-cut, over
             0 read r0 4k       => read 0..4k, live 4k
             0 read r0          => read 4k..10k, live 6k
             0 step r0          => cut next-hop-cut
             0 read r1          => read 0..5k, again 5k
             0 step r1          => done
             0 attach 0..       => closed
             0 attach 0..10k    => r2
             0 attach 0..10241  => closed",
        ));
    }
}

#[test]
fn short_content_is_reported_as_cut_and_excess_bytes_are_ignored() {
    check(
        "length=100k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 received f0 10k
         0 end f0 whole
         0 state            => 1 readers, 0 fetches, length 100k, closed next-hop-cut, over",
    );
    check(
        "length=100k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 received f0 101k
         0 permit f0        => complete
         0 accounts         => fetched 100k, twice 1k, undelivered 100k, read_ahead 100k",
    );
}

#[test]
fn changed_validator_cuts_only_readers_that_need_missing_bytes() {
    check(
        "length=1000k range present=500k..600k
         0 attach 500k..    => r0
         0 attach 500k..600k => r1
         0 attach 0..100k   => r2
         0 step r2          => fetch f0 0..100k
         0 read r0 50k      => read 500k..550k, again 50k, kept 50k
         0 step r0          => fetch f1 600k..1000k
         0 end f1 changed
         0 read r0          => read 550k..600k, again 50k, kept 50k
         0 step r0          => cut changed
         0 read r1          => read 500k..600k, again 100k, kept 100k
         0 step r1          => done
         0 permit f0        => up-to 16k
         0 received f0 100k
         0 end f0 whole
         0 read r2          => read 0..100k, live 100k
         0 step r2          => done
         0 attach 0..       => closed
         0 present          => 0..100k 500k..600k",
    );
}

#[test]
fn readers_of_response_no_longer_shared_get_present_bytes_then_a_cut() {
    check(
        "length=1000k range present=500k..600k
         0 attach 500k..    => r0
         0 attach 500k..600k => r1
         0 step r1          => read 500k..600k
         0 read r0          => read 500k..600k, again 100k, kept 100k
         0 step r0          => fetch f0 600k..1000k
         0 end f0 not-shared
         0 step r0          => cut not-shared
         0 step r1          => read 500k..600k
         0 attach 0..       => closed",
    );
}

#[test]
fn cut_starts_no_new_fetch_and_stops_no_other() {
    check(
        "length=9000k range
         0 attach 0..       => r0
         0 attach 3000k..   => r1
         0 step r0          => fetch f0 0..9000k
         0 step r1          => fetch f1 3000k..9000k
         0 received f0 1k
         0 end f0 cut
         0 read r0          => read 0..1k, live 1k
         0 step r0          => cut next-hop-cut
         0 step r1          => wait
         0 state            => 2 readers, 1 fetches, length 9000k, closed next-hop-cut",
    );
}

#[test]
fn fetch_goes_on_through_what_a_cut_one_has_brought() {
    // f0 would end at 3000k, and what is behind 3005k would come from nowhere
    check(
        "length=9000k range read_ahead=unbounded
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 3000k..   => r1
         0 step r1          => fetch f1 3000k..9000k
         0 received f0 1k
         0 received f1 5k
         0 end f1 cut
         0 state            => 2 readers, 1 fetches, length 9000k, closed next-hop-cut
         0 read r1          => read 3000k..3005k, live 5k
         0 step r1          => wait
         0 received f0 2999k
         0 permit f0        => up-to 6000k
         0 received f0 10k
         0 step r1          => read 3005k..3010k
         0 read r0          => read 0..3010k, live 3005k, again 5k
         0 received f0 5990k
         0 permit f0        => complete
         0 end f0 whole
         0 read r0          => read 3010k..9000k, live 5990k
         0 step r0          => done",
    );
}

#[test]
fn fetch_that_is_sent_less_than_it_asked_for_ends_there_and_the_rest_is_fetched() {
    check(
        "length=9000k range read_ahead=unbounded
         0 attach 0..       => r0
         0 step r0          => fetch f0 0..9000k
         0 narrow f0 20k
         0 received f0 20k
         0 permit f0        => complete
         0 end f0 whole
         0 state            => 1 readers, 0 fetches, length 9000k
         0 step r0          => fetch f1 20k..9000k
         0 read r0          => read 0..20k, live 20k
         0 narrow f1 23k
         0 received f1 3k
         0 end f1 whole
         0 state            => 1 readers, 0 fetches, length 9000k, closed next-hop-cut, over",
    );
}

#[test]
fn cut_of_a_paused_fetch_is_resumed_if_ranges_can_be_requested() {
    // the fetch waits for a slow reader when it is cut
    check(
        "length=100k range
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 received f0 16k
         0 permit f0        => wait
         0 end f0 cut
         0 state            => 1 readers, 0 fetches, length 100k
         9 step r0          => fetch f1 16k..100k
         9 read r0          => read 0..16k, live 16k
         9 permit f1        => up-to 16k
         9 end f1 cut
         9 step r0          => cut next-hop-cut",
    );
    check(
        "length=100k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 received f0 16k
         0 permit f0        => wait
         0 end f0 cut
         0 read r0          => read 0..16k, live 16k
         0 step r0          => cut next-hop-cut",
    );
}

#[test]
fn fetch_cut_before_its_first_byte_is_not_resumed() {
    check(
        "length=200k range present=0..100k
         0 attach 40k..     => r0
         0 step r0          => fetch f0 100k..200k
         0 permit f0        => wait
         0 end f0 cut
         0 state            => 1 readers, 0 fetches, length 200k, closed next-hop-cut, over
         0 read r0          => read 40k..100k, again 60k, kept 60k
         0 step r0          => cut next-hop-cut",
    );
}

#[test]
fn events_for_an_ended_fetch_are_ignored() {
    check(
        "length=100k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 received f0 100k
         0 end f0 whole
         0 end f0 cut
         0 received f0 5k
         0 permit f0        => unread
         0 to-come f0       => none
         0 state            => 1 readers, 0 fetches, length 100k, whole, over
         0 leave r0
         0 leave r0
         0 step r0          => done",
    );
}

#[test]
fn reader_that_was_given_nothing_gets_nothing_of_a_fetch_that_a_module_ended() {
    for length in ["", "length=100k"] {
        check(&format!(
            "{length}
             0 begin 0..        => f0
             0 attach 0..       => r0
             0 attach 0..       => r1
             0 attach 0..5k     => r2
             0 attach 50k..60k  => r3
             0 received f0 10k
             0 read r0 4k       => read 0..4k, live 4k
             0 end f0 module
             0 step r1          => cut module
             0 step r2          => cut module
             0 step r3          => cut module
             0 confirm r1       => no
             0 confirm r2       => no
             0 attach 0..       => closed
             0 attach 0..5k     => closed",
        ));
    }
}

#[test]
fn reader_that_was_given_content_before_a_module_ended_the_fetch_is_cut() {
    check(
        "length=100k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 0..5k     => r1
         0 received f0 10k
         0 read r0 1        => read 0..1, live 1
         0 read r1 1        => read 0..1, again 1
         0 end f0 module
         0 state            => 2 readers, 0 fetches, length 100k, closed module, over
         0 read r0          => read 1..10k, live 10239
         0 step r0          => cut module
         0 read r1          => read 1..5k, again 5119
         0 step r1          => done",
    );
}

#[test]
fn content_that_was_whole_before_a_module_ended_is_read_to_its_end() {
    check(
        "length=10k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 0..       => r1
         0 received f0 10k
         0 end f0 whole
         0 end f0 module
         0 read r0          => read 0..10k, live 10k
         0 read r1          => read 0..10k, again 10k
         0 step r1          => done",
    );
}
