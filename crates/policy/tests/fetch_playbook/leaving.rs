//! Readers leave: who goes on, and with what.

use crate::script::check;

#[test]
fn fetch_continues_for_followers_after_the_leader_disconnects() {
    check(
        "length=100k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 0..       => r1
         0 received f0 16k
         0 read r0          => read 0..16k, live 16k
         0 leave r0
         0 permit f0        => wait
         0 read r1          => read 0..16k, again 16k
         0 permit f0        => up-to 16k
         0 received f0 16k
         0 read r1          => read 16k..32k, live 16k",
    );
}

#[test]
fn fetch_is_orphaned_when_its_last_reader_disconnects() {
    check(
        "length=100k range
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 received f0 16k
         0 read r0          => read 0..16k, live 16k
         0 leave r0
         0 permit f0        => unread
         0 to-come f0       => 84k
         0 end f0 stopped
         0 state            => 0 readers, 0 fetches, length 100k, over
         0 present          => 0..16k",
    );
}

#[test]
fn reader_that_needs_a_background_fetch_becomes_its_reader() {
    check(
        "length=100k range
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 received f0 16k
         0 leave r0
         0 permit f0        => unread
         0 go-on f0
         0 permit f0        => background
         0 received f0 30k
         0 accounts         => fetched 46k, twice 0, undelivered 46k, read_ahead 16k
         1 attach 0..       => r1
         1 take_changed          => true
         1 permit f0        => wait
         1 read r1          => read 0..46k, live 46k
         1 permit f0        => up-to 16k
         2 leave r1
         2 permit f0        => unread",
    );
    // one that wants only what is here lets it go on
    check(
        "length=100k range
         0 begin 0..        => f0
         0 received f0 16k
         0 go-on f0
         0 attach 0..16k    => r0
         0 permit f0        => background
         0 read r0          => read 0..16k, live 16k
         0 step r0          => done
         0 permit f0        => background",
    );
}

#[test]
fn background_fetch_runs_to_completion() {
    check(
        "length=100k
         0 begin 0..        => f0
         0 received f0 16k
         0 go-on f0
         0 to-come f0       => 84k
         0 received f0 84k
         0 permit f0        => complete
         0 end f0 whole
         0 state            => 0 readers, 0 fetches, length 100k, whole, over
         0 accounts         => fetched 100k, twice 0, undelivered 100k, read_ahead 16k",
    );
}

#[test]
fn orphaned_fetch_is_awaited_only_if_a_reader_will_need_it() {
    check(
        "length=2000k range
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 1000k..   => r1
         0 step r1          => fetch f1 1000k..2000k
         0 received f1 16k
         0 leave r1
         0 permit f1        => unread
         0 awaited f1       => true
         0 leave r0
         0 permit f0        => unread
         0 awaited f0       => false
         0 awaited f1       => false",
    );
}

#[test]
fn stopped_fetch_cuts_its_readers_unless_it_can_be_resumed() {
    check(
        "length=100k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 received f0 5k
         0 end f0 stopped
         0 read r0          => read 0..5k, live 5k
         0 step r0          => cut stopped
         0 state            => 1 readers, 0 fetches, length 100k, over",
    );
    check(
        "length=100k range
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 received f0 5k
         0 end f0 stopped
         0 state            => 1 readers, 0 fetches, length 100k
         0 step r0          => fetch f1 5k..100k
         0 read r0          => read 0..5k, live 5k",
    );
}
