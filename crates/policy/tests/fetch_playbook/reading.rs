//! Readers come and read, each at its own place.

use crate::script::check;

#[test]
fn single_reader_receives_all_content_in_order() {
    check(
        "length=40k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 step r0          => wait
         0 permit f0        => up-to 16k
         1 received f0 16k
         1 permit f0        => wait
         1 read r0          => read 0..16k, live 16k
         1 step r0          => wait
         2 permit f0        => up-to 16k
         2 received f0 10k
         2 permit f0        => up-to 6k
         2 read r0 1k       => read 16k..17k, live 1k
         2 permit f0        => up-to 7k
         3 received f0 7k
         3 read r0          => read 17k..33k, live 16k
         3 permit f0        => up-to 7k
         4 received f0 7k
         4 permit f0        => complete
         4 end f0 whole
         4 state            => 1 readers, 0 fetches, length 40k, whole, over
         4 read r0          => read 33k..40k, live 7k
         4 step r0          => done
         4 leave r0
         4 accounts         => fetched 40k, twice 0, undelivered 0, read_ahead 16k",
    );
}

#[test]
fn late_follower_reads_received_bytes_at_once() {
    check(
        "length=1000k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 received f0 500k
         0 read r0          => read 0..500k, live 500k
         1 attach 0..       => r1
         1 read r1          => read 0..500k, again 500k
         1 step r1          => wait
         1 permit f0        => up-to 16k
         1 received f0 16k
         1 read r1          => read 500k..516k, live 16k
         1 read r0          => read 500k..516k, again 16k
         1 accounts         => fetched 516k, twice 0, undelivered 0, read_ahead 500k",
    );
}

#[test]
fn content_of_unknown_length_ends_when_its_fetch_ends() {
    check(
        "0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 0..5k     => r1
         0 received f0 7k
         0 to-come f0       => none
         0 read r0          => read 0..7k, live 7k
         0 read r1          => read 0..5k, again 5k
         0 step r1          => done
         0 step r0          => wait
         0 end f0 whole
         0 step r0          => done
         0 state            => 2 readers, 0 fetches, length 7k, whole, over",
    );
}

#[test]
fn empty_content_is_done_without_waiting() {
    check(
        "length=0
         0 attach 0..       => r0
         0 step r0          => done
         0 state            => 1 readers, 0 fetches, length 0, whole, over",
    );
    check(
        "0 begin 0..        => f0
         0 attach 0..       => r0
         0 end f0 whole
         0 step r0          => done
         0 state            => 1 readers, 0 fetches, length 0, whole, over",
    );
}

#[test]
fn reader_is_admitted_only_if_its_range_can_be_served() {
    // without a strong validator only what the fetch is about to bring can be had
    check(
        "length=1000k
         0 begin 0..        => f0
         0 attach 256k..    => r0
         0 attach 262145..  => cannot-range
         0 attach 1000k..   => beyond-end
         0 received f0 1k
         0 attach 262145..  => r1",
    );
    check(
        "length=1000k range
         0 begin 0..        => f0
         0 attach 262145..  => r0
         0 attach 1023999.. => r1
         0 attach 1000k..   => beyond-end
         0 attach 1023999..2000k => r2",
    );
    // a fetch that is to end before
    check(
        "length=1000k
         0 begin 0..10k     => f0
         0 attach 0..10k    => r0
         0 attach 0..10241  => cannot-range",
    );
}

#[test]
fn present_part_is_read_without_a_fetch() {
    check(
        "length=100k range present=0..50k
         0 attach 0..50k    => r0
         0 unsent r0        => none
         0 read r0          => read 0..50k, again 50k, kept 50k
         0 step r0          => done
         0 accounts         => fetched 0, twice 0, undelivered 0, read_ahead 0
         0 state            => 1 readers, 0 fetches, length 100k, over",
    );
}
