//! What is missing is fetched when it is needed, once, and joined.

use crate::script::check;

#[test]
fn missing_range_is_fetched_once_reader_is_within_read_ahead_limit() {
    // within the read-ahead of 64 KiB
    check(
        "length=400k range present=0..200k
         0 attach 0..       => r0
         0 step r0          => read 0..200k
         0 read r0 139263   => read 0..139263, again 139263, kept 139263
         0 step r0          => read 139263..200k
         0 read r0 1        => read 139263..136k, again 1, kept 1
         0 step r0          => fetch f0 200k..400k
         0 step r0          => read 136k..200k
         0 permit f0        => wait
         0 read r0 48k      => read 136k..184k, again 48k, kept 48k
         0 permit f0        => wait
         0 read r0 1k       => read 184k..185k, again 1k, kept 1k
         0 permit f0        => up-to 1k
         0 received f0 1k
         0 read r0          => read 185k..201k, live 1k, again 15k, kept 15k",
    );
}

#[test]
fn each_missing_range_between_parts_is_fetched_once() {
    // two parts here; the gaps before, between and after are fetched, and no byte twice
    check(
        "length=100k range present=20k..30k present=60k..70k
         0 attach 0..       => r0
         0 step r0          => fetch f0 0..20k
         0 step r0          => wait
         0 permit f0        => up-to 16k
         1 received f0 16k
         1 read r0          => read 0..16k, live 16k
         1 permit f0        => up-to 4k
         1 received f0 4k
         1 permit f0        => complete
         1 end f0 met
         1 step r0          => fetch f1 30k..60k
         1 read r0          => read 16k..30k, live 4k, again 10k, kept 10k
         2 received f1 30k
         2 end f1 whole
         2 step r0          => fetch f2 70k..100k
         2 read r0          => read 30k..70k, live 30k, again 10k, kept 10k
         3 received f2 30k
         3 end f2 whole
         3 read r0          => read 70k..100k, live 30k
         3 step r0          => done
         3 state            => 1 readers, 0 fetches, length 100k, whole, over
         3 accounts         => fetched 80k, twice 0, undelivered 0, read_ahead 30k",
    );
}

#[test]
fn fetch_that_ends_where_another_one_has_brought_nothing_cuts_no_reader() {
    // of two at one place the first goes on, unless it has ended for what it met there
    check(
        "length=1000k range
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 500k..    => r1
         0 step r1          => fetch f1 500k..1000k
         1 received f0 500k
         1 permit f0        => up-to 16k
         1 permit f1        => complete
         1 end f0 met
         1 end f1 met
         1 read r0          => read 0..500k, live 500k
         1 step r0          => fetch f2 500k..1000k
         2 received f2 500k
         2 end f2 whole
         2 read r0          => read 500k..1000k, live 500k
         2 step r0          => done",
    );
}

#[test]
fn two_concurrent_fetches_meet_without_fetching_a_byte_twice() {
    check(
        "length=1000k range
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 500k..    => r1
         0 to-come f0       => 1000k
         0 step r1          => fetch f1 500k..1000k
         0 to-come f0       => 500k
         1 received f1 500k
         1 permit f1        => complete
         1 end f1 met
         1 read r1          => read 500k..1000k, live 500k
         1 step r1          => done
         1 leave r1
         2 received f0 500k
         2 take_changed          => true
         2 permit f0        => complete
         2 end f0 met
         2 state            => 1 readers, 0 fetches, length 1000k, whole, over
         2 read r0          => read 0..1000k, live 500k, again 500k
         2 accounts         => fetched 1000k, twice 0, undelivered 0, read_ahead 500k",
    );
}

#[test]
fn fetch_continues_past_start_of_another_that_ended_without_bytes() {
    // f1 ended before it brought anything: f0 goes on beyond
    check(
        "length=1000k range
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 500k..    => r1
         0 step r1          => fetch f1 500k..1000k
         0 leave r1
         0 end f1 stopped
         0 to-come f0       => 1000k",
    );
}

#[test]
fn reader_waits_for_fetch_within_256_kib_and_starts_its_own_beyond() {
    check(
        "length=1000k range
         0 begin 0..10k     => f0
         0 attach 500k..    => r0
         0 attach 500k..    => r1
         0 step r0          => fetch f1 500k..1000k
         0 step r1          => wait
         0 attach 600k..    => r2
         0 step r2          => wait
         0 fastest f1       => r2
         0 attach 756k..    => r3
         0 step r3          => wait
         0 attach 774145..  => r4
         0 step r4          => fetch f2 774145..1000k",
    );
}

#[test]
fn fetch_that_received_its_range_does_not_block_the_next_fetch() {
    check(
        "length=1000k range
         0 begin 0..10k     => f0
         0 attach 0..       => r0
         0 received f0 10k
         0 step r0          => fetch f1 10k..1000k
         0 attach 10k..     => r1
         0 step r1          => wait
         0 read r0          => read 0..10k, live 10k
         0 permit f0        => complete
         0 permit f1        => up-to 16k",
    );
}

#[test]
fn range_is_fetched_only_up_to_its_end() {
    check(
        "length=1000k range
         0 attach 10k..30k  => r0
         0 step r0          => fetch f0 10k..30k
         0 received f0 20k
         0 permit f0        => complete
         0 end f0 met
         0 read r0          => read 10k..30k, live 20k
         0 step r0          => done
         0 leave r0
         0 state            => 0 readers, 0 fetches, length 1000k, over
         0 present          => 10k..30k",
    );
}

#[test]
fn fetch_of_a_stalled_reader_gives_way_to_a_waiting_reader() {
    check(
        "length=9000k range fetches=2
         0 attach 0..       => r0
         0 attach 3000k..   => r1
         0 attach 6000k..   => r2
         0 step r0          => fetch f0 0..9000k
         0 step r1          => fetch f1 3000k..9000k
         0 step r2          => wait
         0 received f0 16k
         1 received f1 16k
         1 permit f0        => wait
         1 take_changed          => true
         1 step r2          => wait
         1 take_changed          => true
         1 permit f0        => yield
         1 permit f1        => up-to 3000k
         1 step r2          => wait
         1 take_changed          => false
         1 end f0 stopped
         1 permit f1        => wait
         1 step r2          => fetch f2 6000k..9000k",
    );
    // both fronts are beyond r2
    check(
        "length=9000k range fetches=2
         0 attach 3000k..   => r0
         0 attach 6000k..   => r1
         0 attach 0..       => r2
         0 step r0          => fetch f0 3000k..9000k
         0 step r1          => fetch f1 6000k..9000k
         0 received f0 16k
         1 received f1 16k
         1 take_changed          => true
         1 step r2          => wait
         1 take_changed          => true
         1 permit f0        => yield
         1 permit f1        => wait
         1 end f0 stopped
         1 step r2          => fetch f2 0..3000k
         1 step r0          => read 3000k..3016k",
    );
}

#[test]
fn reader_reads_present_bytes_before_it_takes_the_last_fetch_slot() {
    check(
        "length=9000k range fetches=2 present=0..10k
         0 attach 3000k..   => r0
         0 step r0          => fetch f0 3000k..9000k
         0 attach 0..       => r1
         0 step r1          => read 0..10k
         0 read r1          => read 0..10k, again 10k, kept 10k
         0 step r1          => fetch f1 10k..3000k",
    );
}

#[test]
fn background_fetch_gives_way_to_a_waiting_reader() {
    check(
        "length=9000k range fetches=1
         0 begin 6000k..    => f0
         0 received f0 1k
         0 go-on f0
         0 attach 0..       => r0
         0 step r0          => wait
         0 permit f0        => yield
         0 end f0 stopped
         0 step r0          => fetch f1 0..6000k",
    );
}
