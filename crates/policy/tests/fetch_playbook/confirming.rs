//! A reader is sent its head once what it needs is known to be of one representation.

use crate::script::check;

#[test]
fn reader_waits_for_header_section_of_the_fetch_it_needs() {
    check(
        "length=1000k range
         0 begin 0..100k    => f0
         0 attach 0..100k   => r0
         0 confirm r0       => yes
         0 attach 0..       => r1
         0 confirm r1       => fetch f1 100k..1000k
         0 confirm r1       => wait
         0 permit f1        => wait
         1 received f0 16k
         1 confirm r1       => wait
         2 confirmed f1
         2 confirm r1       => yes
         2 read r1          => read 0..16k, live 16k",
    );
}

#[test]
fn unconfirmed_reader_is_refused_after_the_representation_changed() {
    check(
        "length=1000k range
         0 begin 0..100k    => f0
         0 attach 0..100k   => r0
         0 attach 0..       => r1
         0 confirm r1       => fetch f1 100k..1000k
         0 end f1 changed
         0 confirm r1       => no
         0 leave r1
         1 received f0 100k
         1 read r0          => read 0..100k, live 100k",
    );
}

#[test]
fn fetch_confirms_readers_only_once_it_has_received_bytes() {
    check(
        "length=1000k range
         0 attach 0..       => r0
         0 step r0          => fetch f0 0..1000k
         0 attach 0..       => r1
         0 confirm r1       => wait
         0 received f0 1
         0 confirm r1       => yes",
    );
}

#[test]
fn reader_without_free_fetch_slot_is_confirmed_by_running_fetches() {
    check(
        "length=1000k range fetches=1
         0 begin 0..100k    => f0
         0 attach 0..100k   => r0
         0 attach 0..       => r1
         0 confirm r1       => yes",
    );
    check(
        "length=1000k range fetches=1
         0 attach 500k..    => r0
         0 step r0          => fetch f0 500k..1000k
         0 attach 0..       => r1
         0 confirm r1       => wait
         0 confirmed f0
         0 confirm r1       => yes",
    );
    // without ranges all has to come by what runs
    check(
        "length=1000k
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 attach 100k..    => r1
         0 confirm r1       => yes",
    );
}

#[test]
fn confirming_fetch_waits_for_its_reader_and_is_orphaned_without_it() {
    check(
        "length=9000k range present=0..2000k
         0 attach 0..       => r0
         0 confirm r0       => fetch f0 2000k..9000k
         0 confirmed f0
         0 permit f0        => wait
         0 confirm r0       => yes
         0 read r0 1990k    => read 0..1990k, again 1990k, kept 1990k
         0 permit f0        => up-to 6k
         0 leave r0
         0 permit f0        => unread",
    );
}
