//! Content that passes by is held for the readers that are about to read it, and for no other.

use crate::script::check;

#[test]
fn unstored_content_is_fetched_at_most_64_kib_ahead_of_fastest_reader() {
    check(
        "length=9000k read_ahead=unbounded
         0 begin 0..        => f0
         0 attach 0..       => r0
         0 permit f0        => up-to 9000k
         0 received f0 500k
         0 pass
         0 permit f0        => wait
         0 read r0 437k     => read 0..437k, live 437k
         0 permit f0        => up-to 1k
         0 read r0          => read 437k..500k, live 63k
         0 permit f0        => up-to 64k",
    );
}

#[test]
fn unstored_content_is_released_once_read_by_all_or_too_far_behind() {
    check(
        "length=9000k read_ahead=unbounded
         0 begin 0..        => f0
         0 pass
         0 passed           => 18446744073709551615
         0 attach 0..       => r0
         0 received f0 4000k
         0 read r0 2000k    => read 0..2000k, live 2000k
         0 passed           => 2000k
         0 attach 0..       => r1
         0 passed           => 1744k
         0 passed with-room => 976k
         0 read r1 1800k    => read 0..1800k, again 1800k
         0 passed           => 1800k
         0 leave r0
         0 passed           => 1800k",
    );
}
