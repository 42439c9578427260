//! The places of what is fetched though nothing has asked for it: the rest of paused fetches, and
//! popular responses in time windows.

/// Requests of one kind that are under way at once.
pub const PLACES_MAX: usize = 4;

/// Of these from one next hop: one that does not answer leaves the other places to the rest.
pub const PLACES_OF_HOP_MAX: usize = 1;

/// Whether a request to `hop` may begin beside those to the next hops that have `taken` the places.
pub fn has_place<'a, H: PartialEq + 'a>(taken: impl Iterator<Item = &'a H>, hop: &H) -> bool {
    let (mut all, mut of_hop) = (0, 0);
    for other in taken {
        all += 1;
        of_hop += usize::from(other == hop);
    }
    all < PLACES_MAX && of_hop < PLACES_OF_HOP_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_have_a_place_and_one_from_each_next_hop() {
        let has_place = |taken: &[char], hop| has_place(taken.iter(), &hop);
        assert!(has_place(&[], 'a'));
        assert!(has_place(&['b', 'c', 'd'], 'a'));
        assert!(!has_place(&['a'], 'a'));
        assert!(!has_place(&['b', 'c', 'd', 'e'], 'a'));
    }
}
