//! Counts of things, and the thing that a place in the sum of the counts falls into.

/// A binary indexed tree (Fenwick 1994): a count is found and changed in as many steps as the
/// number of things has bits.
#[derive(Clone, Debug)]
pub(super) struct FrequencyTree {
    /// At `place`, from 1: the sum of the `place & -place` counts that end there.
    sums: Vec<u64>,
    total: u64,
}

impl FrequencyTree {
    pub(super) fn new(counts: &[u64]) -> Self {
        let mut sums = vec![0; counts.len() + 1];
        for (place, count) in (1..).zip(counts) {
            sums[place] += count;
            let above = above(place);
            if above < sums.len() {
                sums[above] += sums[place];
            }
        }
        Self {
            sums,
            total: counts.iter().sum(),
        }
    }

    /// The sum of all counts.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// The thing into whose count `at`, below the total, falls.
    pub(super) fn find(&self, mut at: u64) -> usize {
        let mut place = 0;
        let mut step = self.sums.len().next_power_of_two() / 2;
        while step > 0 {
            let next = place + step;
            if next < self.sums.len() && self.sums[next] <= at {
                at -= self.sums[next];
                place = next;
            }
            step /= 2;
        }
        place
    }

    /// One more of this thing.
    pub(super) fn add(&mut self, thing: usize) {
        self.total += 1;
        self.change(thing, |sum| *sum += 1);
    }

    /// One less of this thing, of which there is one.
    pub(super) fn take(&mut self, thing: usize) {
        self.total -= 1;
        self.change(thing, |sum| *sum -= 1);
    }

    fn change(&mut self, thing: usize, change: impl Fn(&mut u64)) {
        let mut place = thing + 1;
        while place < self.sums.len() {
            change(&mut self.sums[place]);
            place = above(place);
        }
    }
}

/// The next place whose sum includes this one.
const fn above(place: usize) -> usize {
    place + (place & place.wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The thing that each place of the sum falls into.
    fn all(tree: &FrequencyTree) -> Vec<usize> {
        (0..tree.total()).map(|at| tree.find(at)).collect()
    }

    fn naive(counts: &[u64]) -> Vec<usize> {
        let places = counts.iter().enumerate();
        places
            .flat_map(|(place, count)| (0..*count).map(move |_| place))
            .collect()
    }

    proptest! {
        #[test]
        fn place_in_the_sum_is_found_as_by_counting(
            mut counts in prop::collection::vec(0_u64..5, 0..40),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..40),
        ) {
            let mut tree = FrequencyTree::new(&counts);
            prop_assert_eq!(all(&tree), naive(&counts));
            for (index, is_more) in changes {
                if counts.is_empty() {
                    continue;
                }
                let thing = index.index(counts.len());
                if is_more {
                    counts[thing] += 1;
                    tree.add(thing);
                } else if counts[thing] > 0 {
                    counts[thing] -= 1;
                    tree.take(thing);
                }
                prop_assert_eq!(all(&tree), naive(&counts));
            }
        }
    }
}
