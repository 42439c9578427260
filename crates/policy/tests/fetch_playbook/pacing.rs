//! How far a fetch runs ahead, and of whom.

use crate::script::check;

#[test]
fn fetch_is_paced_by_its_fastest_reader() {
    check(
        "length=1000k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 0..       => r1
         0 permit f0        => up-to 16k
         0 received f0 16k
         0 permit f0        => wait
         0 read r1          => read 0..16k, live 16k
         0 fastest f0       => r1
         0 permit f0        => up-to 16k
         0 received f0 16k
         0 read r1          => read 16k..32k, live 16k
         0 permit f0        => up-to 16k
         0 read r0 1k       => read 0..1k, again 1k
         0 fastest f0       => r1
         0 permit f0        => up-to 16k",
    );
}

#[test]
fn fetch_is_paced_by_remaining_reader_after_the_fastest_disconnects() {
    check(
        "length=1000k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 0..       => r1
         0 received f0 100k
         0 read r0          => read 0..100k, live 100k
         0 read r1 1k       => read 0..1k, again 1k
         0 permit f0        => up-to 16k
         0 leave r0
         0 take_changed          => true
         0 permit f0        => wait
         0 read r1 83k      => read 1k..84k, again 83k
         0 permit f0        => wait
         0 read r1 1        => read 84k..86017, again 1
         0 permit f0        => up-to 1
         0 read r1          => read 86017..100k, again 16383
         0 permit f0        => up-to 16k",
    );
}

#[test]
fn fetch_takes_only_bytes_that_a_reader_wants() {
    // a reader of a range among the fetch of the whole
    check(
        "length=1000k
         0 begin 0..        => f0
         0 attach 0..20k    => r0
         0 received f0 10k
         0 read r0          => read 0..10k, live 10k
         0 permit f0        => up-to 10k
         0 received f0 10k
         0 permit f0        => unread",
    );
    // the next is counted from where it is
    check(
        "length=1000k
         0 begin 0..        => f0
         0 attach 0..20k    => r0
         0 attach 0..       => r1
         0 received f0 10k
         0 read r0          => read 0..10k, live 10k
         0 permit f0        => up-to 10k
         0 received f0 10k
         0 fastest f0       => r1
         0 permit f0        => wait",
    );
}

#[test]
fn fetch_runs_up_to_a_reader_beyond_its_write_position() {
    check(
        "length=1000k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 100k..    => r1
         0 step r1          => wait
         0 fastest f0       => r1
         0 permit f0        => up-to 116k
         0 received f0 116k
         0 read r1          => read 100k..116k, live 16k",
    );
}

#[test]
fn window_grows_for_a_starving_reader_and_follows_rate_of_a_slow_one() {
    // 100 ms to the next hop; the reader takes all there is: as long as more and more comes, the
    // window has room for what slow start sends by the time that this is known; then for twice what
    // came in a round trip
    check(
        "length=100000k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 round-trips f0 1 100
         0 window f0        => 16k
         0 received f0 16k
         0 read r0          => read 0..16k, live 16k
         0 window f0        => 16k
         100 received f0 16k
         100 read r0        => read 16k..32k, live 16k
         100 window f0      => 144k
         200 received f0 80k
         200 read r0        => read 32k..112k, live 80k
         200 window f0      => 336k
         300 received f0 176k
         300 read r0        => read 112k..288k, live 176k
         300 window f0      => 720k
         400 received f0 176k
         400 read r0        => read 288k..464k, live 176k
         400 window f0      => 368k",
    );
    // one that leaves something is as fast as it is: the window holds what it takes in a round trip
    check(
        "length=100000k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 round-trips f0 1 100
         0 received f0 100k
         0 read r0 1k       => read 0..1k, live 1k
         100 read r0 10k    => read 1k..11k, live 10k
         100 window f0      => 27k
         200 read r0 10k    => read 11k..21k, live 10k
         200 window f0      => 27392",
    );
}

#[test]
fn alternating_slow_readers_do_not_widen_the_window() {
    // they go on by a kilobyte in a round trip of 100 ms, together
    check(
        "length=100000k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 0..       => r1
         0 attach 0..       => r2
         0 round-trips f0 1 100
         0 received f0 100k
         0 read r0 10k      => read 0..10k, live 10k
         0 read r1 10240    => read 0..10k, again 10k
         100 read r2 11k    => read 0..11k, live 1k, again 10k
         100 window f0      => 27k
         150 read r1 1k     => read 10k..11k, again 1k
         200 read r0 2k     => read 10k..12k, live 1k, again 1k
         250 read r2 1k     => read 11k..12k, again 1k
         300 read r1 2k     => read 11k..13k, live 1k, again 1k
         400 read r2 2k     => read 12k..14k, live 1k, again 1k
         1000 read r0 3k    => read 12k..15k, live 1k, again 2k
         1000 window f0     => 16554",
    );
}

#[test]
fn window_shrinks_to_remaining_bytes_but_not_below_16_kib() {
    check(
        "length=600k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 round-trips f0 1 100
         100 received f0 300k
         100 read r0        => read 0..300k, live 300k
         100 window f0      => 300k
         100 received f0 200k
         100 window f0      => 100k
         100 received f0 80k
         100 window f0      => 20k
         100 received f0 5k
         100 window f0      => 16k
         100 received f0 15k
         100 window f0      => 16k",
    );
}

#[test]
fn read_ahead_shares_are_a_quarter_of_the_limit_or_unbounded() {
    check(
        "length=600k read_ahead=unbounded
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 permit f0        => up-to 600k
         0 window f0        => none
         0 unsent r0        => none",
    );
    check(
        "length=600k read_ahead=256k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 permit f0        => up-to 64k
         0 window f0        => 64k
         0 unsent r0        => 64k",
    );
}
