//! The order of the visits: the shuffled multiset of all of them.

use super::frequency_tree::FrequencyTree;
use super::page_law::Pages;
use super::profile::SiteProfile;
use weir_workload::Chance;

/// Visits that are left, drawn without putting back. That is the shuffled multiset, in a memory
/// that grows with the pages and not with the visits.
///
/// A browser does not request again what its connection has loaded. So that a trace has its number
/// of requests all the same, each that is saved is paid back with a further visit, to a page that
/// is drawn by the law of the visits. So are visits beyond the last one.
#[derive(Clone, Debug)]
pub(super) struct Visits {
    chance: Chance,
    law: FrequencyTree,
    left: FrequencyTree,
    /// Requests that were saved and not paid back.
    saved: u64,
    /// The page that they will pay a visit to.
    next: usize,
}

impl Visits {
    /// The visits of a trace of so many requests.
    pub(super) fn new(
        profile: &SiteProfile,
        pages: &Pages,
        requests: u64,
        mut chance: Chance,
    ) -> Self {
        let law = FrequencyTree::new(&pages.visits(&profile.visits, requests));
        Self {
            next: by_law(&law, &mut chance),
            left: law.clone(),
            law,
            chance,
            saved: 0,
        }
    }

    /// The page of the next visit.
    pub(super) fn draw(&mut self) -> usize {
        if self.left.total() == 0 {
            return by_law(&self.law, &mut self.chance);
        }
        let page = self.left.find(self.chance.below(self.left.total()));
        self.left.take(page);
        page
    }

    /// So many requests of a visit were saved.
    pub(super) fn save(&mut self, requests: u64, pages: &Pages) {
        self.saved += requests;
        while let Some(saved) = self.saved.checked_sub(pages.requests(self.next)) {
            self.saved = saved;
            self.left.add(self.next);
            self.next = by_law(&self.law, &mut self.chance);
        }
    }
}

fn by_law(law: &FrequencyTree, chance: &mut Chance) -> usize {
    law.find(chance.below(law.total()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_are_drawn_as_often_as_the_law_says_in_a_random_order() {
        let profile = SiteProfile::built_in("rice-1999").unwrap();
        let pages = Pages::new(&profile, &mut Chance::new(1, 0));
        let law = pages.visits(&profile.visits, 300_000);
        let order = |seed| {
            let mut visits = Visits::new(&profile, &pages, 300_000, Chance::new(seed, 1));
            let count: u64 = law.iter().sum();
            (0..count).map(|_| visits.draw()).collect::<Vec<_>>()
        };
        let (one, other) = (order(1), order(2));
        assert_ne!(one, other);
        for order in [&one, &other] {
            let mut counts = vec![0; law.len()];
            order.iter().for_each(|page| counts[*page] += 1);
            assert_eq!(counts, law);
            // half of the visits to the first page are in the first half of them
            let early = order[..order.len() / 2]
                .iter()
                .filter(|page| **page == 0)
                .count();
            let share = early as f64 / law[0] as f64;
            assert!((0.4..0.6).contains(&share), "{share}");
        }
    }

    #[test]
    fn saved_requests_are_paid_back_with_visits() {
        let profile = SiteProfile::built_in("rice-1999").unwrap();
        let pages = Pages::new(&profile, &mut Chance::new(1, 0));
        let mut visits = Visits::new(&profile, &pages, 300_000, Chance::new(1, 1));
        let before = visits.left.total();
        (0..1000).for_each(|_| visits.save(9, &pages));
        let more = visits.left.total() - before;
        // a visit has five requests on average
        assert!((1500..2300).contains(&more), "{more}");
        assert!(visits.saved < 100);
    }
}
