//! The places of what is fetched though nothing has asked for it: the rest of paused fetches, and
//! popular responses in time windows.

use crate::now::Tick;

/// Requests of one kind that are under way at once.
pub const PLACES_MAX: usize = 4;

/// Of these from one next hop: one that does not answer leaves the other places to the rest.
pub const PLACES_OF_HOP_MAX: usize = 1;

/// How long a request keeps its place while another one waits for it, milliseconds.
pub const PLACE_TURN_MS: u64 = 600_000;

/// Whether a request to `hop` may begin beside those to the next hops that have `taken` the places.
pub fn has_place<'a, H: PartialEq + 'a>(taken: impl Iterator<Item = &'a H>, hop: &H) -> bool {
    let (mut all, mut of_hop) = (0, 0);
    for other in taken {
        all += 1;
        of_hop += usize::from(other == hop);
    }
    all < PLACES_MAX && of_hop < PLACES_OF_HOP_MAX
}

/// Which of the requests that have all places gives its place to one that waits: the one that has
/// had it longest, if that is [`PLACE_TURN_MS`]. `since` is when each has got it.
pub fn gives_way(since: impl Iterator<Item = Tick>, now: Tick) -> Option<usize> {
    let (at, since) = since.enumerate().min_by_key(|(_, since)| *since)?;
    (now.ms_since(since) >= PLACE_TURN_MS).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_that_has_had_its_place_longest_gives_way_after_its_turn() {
        let gives_way = |since: &[u64], now| {
            let since = since.iter().map(|at| Tick(*at));
            gives_way(since, Tick(now))
        };
        assert_eq!(gives_way(&[], PLACE_TURN_MS), None);
        assert_eq!(gives_way(&[7, 5, 6], 4 + PLACE_TURN_MS), None);
        assert_eq!(gives_way(&[7, 5, 6], 5 + PLACE_TURN_MS), Some(1));
    }

    #[test]
    fn few_have_a_place_and_one_from_each_next_hop() {
        let has_place = |taken: &[char], hop| has_place(taken.iter(), &hop);
        assert!(has_place(&[], 'a'));
        assert!(has_place(&['b', 'c', 'd'], 'a'));
        assert!(!has_place(&['a'], 'a'));
        assert!(!has_place(&['b', 'c', 'd', 'e'], 'a'));
    }
}
