//! How much of a budget in-flight responses may hold: they are never evicted, and without a limit
//! slow next hops would leave no room for what is requested again and again.

use super::Refusal;

/// How much of a budget those arriving may hold together, percent. Others have no such limit
/// because they keep nothing that is arriving (Squid, nginx: on disk) or let it exceed the budget
/// (Varnish: transient storage).
pub const IN_FLIGHT_PERCENT_MAX: u64 = 50;

/// One part in so many of that share is left to small ones: else a few downloads to slow clients
/// would keep everything else from being stored as long as they last.
const LEFT_TO_SMALL: u64 = 8;

/// A small one holds at most one part in so many of the share: at a budget of 256 MiB, 2 MiB.
const SMALL: u64 = 64;

/// Whether one that is arriving may hold `wanted_bytes` of `budget_bytes` where others hold
/// `others_bytes`.
///
/// # Errors
/// [`Refusal::TooLarge`] for more than all of them may hold; [`Refusal::NoRoomInFlight`] if the
/// others leave too little.
pub const fn check_in_flight(
    budget_bytes: u64,
    others_bytes: u64,
    wanted_bytes: u64,
) -> Result<(), Refusal> {
    let all = budget_bytes / 100 * IN_FLIGHT_PERCENT_MAX;
    let share = if wanted_bytes > all / SMALL {
        all - all / LEFT_TO_SMALL
    } else {
        all
    };
    if wanted_bytes > share {
        return Err(Refusal::TooLarge {
            size_bytes: wanted_bytes,
            size_max_bytes: share,
        });
    }
    let room_bytes = share.saturating_sub(others_bytes);
    if wanted_bytes > room_bytes {
        return Err(Refusal::NoRoomInFlight {
            size_bytes: wanted_bytes,
            room_bytes,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(others_bytes: u64, wanted_bytes: u64, expected: &str) {
        let found = check_in_flight(12_800, others_bytes, wanted_bytes);
        let word = found.map_or_else(|why| why.as_str(), |()| "room");
        assert_eq!(word, expected, "{wanted_bytes} beside {others_bytes}");
    }

    #[test]
    fn large_in_flight_response_may_not_use_the_eighth_reserved_for_small_ones() {
        check(0, 5600, "room");
        check(0, 5601, "too-large");
        check(5000, 600, "room");
        check(5000, 601, "no-room-in-flight");
        check(6300, 100, "room");
        check(6301, 100, "no-room-in-flight");
        check(5600, 101, "no-room-in-flight");
    }
}
