//! The pages of a site: their images, the sizes of all, and how often each page is visited.

use super::profile::{SiteProfile, VisitLaw};
use super::sizes::{shuffle, sizes};
use weir_workload::{Chance, Zipf, whole};

/// The pages of a site, most popular first. Targets are numbers: shared images from 0, then each
/// page with its own images.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    pages: Vec<Page>,
    /// Shared images of all pages, one page after the other.
    shared: Vec<u32>,
    /// The size of each target, bytes.
    sizes: Vec<u64>,
}

/// A page.
#[derive(Clone, Copy, Debug)]
struct Page {
    target: u32,
    /// Images of its own; their targets are the next ones.
    own_images: u32,
    /// Where its shared images end in the list of all.
    shared_end: usize,
}

impl Pages {
    /// The pages of a profile; which of them has what depends on chance, and their totals hardly.
    pub(super) fn new(profile: &SiteProfile, chance: &mut Chance) -> Self {
        let law = &profile.pages;
        let mut pages = Vec::new();
        let mut shared = Vec::new();
        let mut ranks = vec![1; law.shared_images as usize];
        let popularity = Zipf::new(u64::from(law.shared_images), 1.0);
        let mut own_images = Vec::new();
        let mut target = law.shared_images;
        while target < profile.targets.count {
            if own_images.is_empty() {
                own_images = geometric_quantiles(law.own_images);
                shuffle(&mut own_images, chance);
            }
            let left = profile.targets.count - target - 1;
            let own_images = own_images.pop().unwrap_or(0).min(left);
            shared.extend(shared_images(law.shared_a_page, &popularity, chance));
            pages.push(Page {
                target,
                own_images,
                shared_end: shared.len(),
            });
            target += 1 + own_images;
            ranks.extend((0..=own_images).map(|_| pages.len()));
        }
        let rank = |rank: usize| rank as f64 / pages.len() as f64;
        let ranks: Vec<f64> = ranks.into_iter().map(rank).collect();
        Self {
            sizes: sizes(&profile.sizes, &ranks, profile.targets.bytes, chance),
            pages,
            shared,
        }
    }

    /// The target of a page.
    pub(super) fn target(&self, page: usize) -> u32 {
        self.pages[page].target
    }

    /// Its images, its own ones first.
    pub(super) fn images(&self, page: usize) -> impl Iterator<Item = u32> + '_ {
        let Page {
            target,
            own_images,
            shared_end,
        } = self.pages[page];
        let begin = match page.checked_sub(1) {
            Some(before) => self.pages[before].shared_end,
            None => 0,
        };
        let shared = self.shared[begin..shared_end].iter().copied();
        (target + 1..=target + own_images).chain(shared)
    }

    /// The size of a target, bytes.
    pub(super) fn bytes(&self, target: u32) -> u64 {
        self.sizes[target as usize]
    }

    /// The requests of a visit to a page, without what the connection loaded before.
    pub(super) fn requests(&self, page: usize) -> u64 {
        1 + self.images(page).count() as u64
    }

    /// How often each page is visited, at least once each, so that the visits have `requests`
    /// requests, or somewhat fewer.
    pub(super) fn visits(&self, law: &VisitLaw, requests: u64) -> Vec<u64> {
        let each: Vec<u64> = (0..self.pages.len())
            .map(|page| self.requests(page))
            .collect();
        let last = whole::<usize>(self.pages.len() as f64 * law.once);
        let (often, once) = each.split_at(each.len() - last);
        let weight = |rank: usize| libm::pow((rank + 1) as f64 + law.offset, -law.exponent);
        let weights: Vec<f64> = (0..often.len()).map(weight).collect();
        let left = requests.saturating_sub(once.iter().sum());
        let factor = factor(&weights, often, left as f64);
        let mut visits = rounded(&weights, factor);
        visits.resize(each.len(), 1);
        // rounding may have added some requests
        let mut all: u64 = visits
            .iter()
            .zip(&each)
            .map(|(visits, each)| visits * each)
            .sum();
        while all > requests && visits[0] > 1 {
            visits[0] -= 1;
            all -= each[0];
        }
        visits
    }
}

/// Quantiles of a geometric law from 0: the middles of [`IMAGE_NEIGHBOURS`] equally likely parts.
fn geometric_quantiles(mean: f64) -> Vec<u32> {
    let scale = libm::log(mean / (1.0 + mean));
    let share = |place: u32| (f64::from(place) + 0.5) / f64::from(IMAGE_NEIGHBOURS);
    let of = |place| whole::<u32>(libm::log(share(place)) / scale);
    (0..IMAGE_NEIGHBOURS).map(of).collect()
}

/// The shared images of a page, in order and without repetition. Their number is drawn by
/// multiplication (Knuth, The Art of Computer Programming, volume 2, section 3.4.1).
fn shared_images(mean: f64, popularity: &Zipf, chance: &mut Chance) -> Vec<u32> {
    let mut images = Vec::new();
    let (end, mut product) = (libm::exp(-mean), chance.unit());
    while product > end {
        let rank = popularity.draw(chance);
        images.push(u32::try_from(rank - 1).expect("there are fewer images than 32 bits count"));
        product *= chance.unit();
    }
    images.sort_unstable();
    images.dedup();
    images
}

/// The factor of weights with which pages of `each` requests, visited at least once, have so many
/// requests; found by halving.
fn factor(weights: &[f64], each: &[u64], requests: f64) -> f64 {
    let all = |factor: f64| {
        let of = |(weight, each): (&f64, &u64)| (factor * weight).max(1.0) * *each as f64;
        weights.iter().zip(each).map(of).sum::<f64>()
    };
    let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
    let (mut low, mut high) = (0.0, requests / smallest.max(f64::MIN_POSITIVE));
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if all(middle) < requests {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Whole visits, at least one each; what rounding takes from one page the next ones get.
fn rounded(weights: &[f64], factor: f64) -> Vec<u64> {
    let mut debt = 0.0;
    let whole = |weight: &f64| {
        let wanted = factor * weight;
        let visits = whole::<u64>(wanted + debt + 0.5).max(1);
        if visits > 1 {
            debt += wanted - visits as f64;
        }
        visits
    };
    weights.iter().map(whole).collect()
}

/// Pages that are neighbours by popularity and share the quantiles of the number of images; ours,
/// as for sizes.
const IMAGE_NEIGHBOURS: u32 = 32;

/// The last of them is smaller than the last digit of what is found.
const HALVINGS: u32 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> SiteProfile {
        SiteProfile::built_in("rice-1999").unwrap()
    }

    #[test]
    fn pages_and_images_are_exactly_the_targets() {
        let profile = profile();
        for seed in 1..4 {
            let pages = Pages::new(&profile, &mut Chance::new(seed, 0));
            let count = pages.pages.len();
            let mut seen = vec![0_u32; profile.targets.count as usize];
            for page in 0..count {
                seen[pages.target(page) as usize] += 1;
                for image in pages.images(page) {
                    seen[image as usize] += 1;
                }
            }
            let shared = profile.pages.shared_images as usize;
            assert!(seen[shared..].iter().all(|pages| *pages == 1));
            // shared images are on as many pages as the law says, the first on most
            let shown: u32 = seen[..shared].iter().sum();
            let a_page = f64::from(shown) / count as f64;
            assert!((0.85..1.0).contains(&a_page), "{a_page}");
            assert!(
                seen[..shared]
                    .iter()
                    .all(|pages| *pages > 0 && *pages <= seen[0])
            );
            // the mean of own images
            let own = profile.targets.count as usize - shared - count;
            let mean = own as f64 / count as f64;
            assert!((mean - profile.pages.own_images).abs() < 0.05, "{mean}");
            let bytes: u64 = pages.sizes.iter().sum();
            assert!(bytes.abs_diff(profile.targets.bytes) < 31_000, "{bytes}");
        }
    }

    #[test]
    fn visits_add_up_to_the_requests_and_fall_with_the_rank() {
        let profile = profile();
        let pages = Pages::new(&profile, &mut Chance::new(1, 0));
        for requests in [1_000_000, 2_000_000, 100_000_000] {
            let visits = pages.visits(&profile.visits, requests);
            let each = (0..visits.len()).map(|page| pages.requests(page));
            let all: u64 = visits
                .iter()
                .zip(each)
                .map(|(visits, each)| visits * each)
                .sum();
            assert!(
                all <= requests && all + requests / 1000 > requests,
                "{all} of {requests}"
            );
            assert!(visits.iter().all(|visits| *visits > 0));
            let once = visits
                .iter()
                .rev()
                .take_while(|visits| **visits == 1)
                .count();
            assert!(once * 10 >= visits.len() - 10);
            // within what rounding is paid back with
            assert!(visits.windows(2).all(|pair| pair[1] <= pair[0] + 1));
        }
    }

    #[test]
    fn fewer_requests_than_targets_visit_each_page_once() {
        let profile = profile();
        let pages = Pages::new(&profile, &mut Chance::new(1, 0));
        let visits = pages.visits(&profile.visits, 10);
        assert!(visits.iter().all(|visits| *visits == 1));
    }
}
