//! The pages of one class of sites: which there are, and which one is requested again.
//!
//! A page is requested again by copying an earlier request: half of the time any of them alike,
//! half of the time one that is not long ago (the chance of `t` requests ago in proportion to
//! `1/t`, as in the Wisconsin Proxy Benchmark). Copying makes what is popular more popular (H.
//! Simon, "On a class of skew distribution functions", Biometrika 1955): a share `h` of copies
//! gives a Zipf-like popularity with exponent `h`, for any number of requests, while new pages keep
//! coming as they do on the web.
//!
//! Which of several candidates is taken can favour small ones, as in Web Polygraph's byte hit ratio
//! discrimination (PolyMix-4).

use weir_workload::Chance;
use weir_workload::whole;

/// A page's place among those of its class.
pub(super) type PageNumber = u32;

#[derive(Clone, Copy, Debug)]
pub(super) struct Page {
    /// Its server's place among those of its class.
    pub(super) server: u32,
    pub(super) embedded: u16,
    /// Bytes that a client receives of an item of it, on average.
    pub(super) bytes: f32,
    /// The page of the same server that was new before it, of those that are requested again.
    before: Option<PageNumber>,
}

/// Which of the candidates to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizePreference {
    Small,
    None,
    Large,
}

#[derive(Clone, Debug)]
pub(super) struct Pages {
    pages: Vec<Page>,
    /// The newest page of each server.
    newest: Vec<Option<PageNumber>>,
    /// The requests that may be copied, in order.
    asked: Vec<PageNumber>,
}

impl Pages {
    /// No pages, on so many servers.
    pub(super) fn on(servers: u32) -> Self {
        Self {
            pages: Vec::new(),
            newest: vec![None; servers as usize],
            asked: Vec::new(),
        }
    }

    pub(super) fn page(&self, number: PageNumber) -> Page {
        self.pages[number as usize]
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.pages.len()
    }

    /// A page that was not there.
    pub(super) fn add(&mut self, server: u32, embedded: u16, bytes: f64) -> PageNumber {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "sizes are compared, and seven digits are enough"
        )]
        let bytes = bytes as f32;
        self.pages.push(Page {
            server,
            embedded,
            bytes,
            before: None,
        });
        place(self.pages.len() - 1)
    }

    /// From now on this page may be requested again.
    pub(super) fn publish(&mut self, number: PageNumber) {
        let page = &mut self.pages[number as usize];
        page.before = self.newest[page.server as usize].replace(number);
        self.asked.push(number);
    }

    /// It was requested once more, and is more popular.
    pub(super) fn again(&mut self, number: PageNumber) {
        self.asked.push(number);
    }

    /// A page to request again, of this server if there is one; `None` where there is none at all.
    pub(super) fn repeat(
        &self,
        server: Option<u32>,
        favour: SizePreference,
        chance: &mut Chance,
    ) -> Option<PageNumber> {
        let candidates = if favour == SizePreference::None {
            1
        } else {
            CANDIDATES
        };
        let newest = server.and_then(|server| self.newest[server as usize]);
        let mut taken = self.candidate(newest, chance)?;
        for _ in 1..candidates {
            let other = self.candidate(newest, chance)?;
            let is_smaller = self.page(other).bytes < self.page(taken).bytes;
            if is_smaller == (favour == SizePreference::Small) {
                taken = other;
            }
        }
        Some(taken)
    }

    fn candidate(&self, newest: Option<PageNumber>, chance: &mut Chance) -> Option<PageNumber> {
        match newest {
            Some(newest) => Some(self.on_site(newest, chance)),
            None => self.anywhere(chance),
        }
    }

    /// Steps back from the newest page of a site, fewer than [`STEPS`].
    fn on_site(&self, newest: PageNumber, chance: &mut Chance) -> PageNumber {
        let mut at = newest;
        for _ in 0..chance.below(STEPS) {
            let Some(before) = self.page(at).before else {
                break;
            };
            at = before;
        }
        at
    }

    fn anywhere(&self, chance: &mut Chance) -> Option<PageNumber> {
        let count = self.asked.len();
        let ago = if chance.is(RECENT) {
            // log-uniform in [1, count + 1)
            let ago = libm::exp(chance.unit() * libm::log1p(count as f64));
            whole::<usize>(ago).min(count)
        } else {
            1 + index(chance.below(count as u64))
        };
        self.asked.get(count.checked_sub(ago)?).copied()
    }
}

/// How many candidates are compared where sizes matter. PolyMix-4 compares nine; with so many, a
/// few of the smallest pages would soon be the most popular ones, whatever else they are.
const CANDIDATES: u32 = 3;

/// How far one looks back on a site, pages.
const STEPS: u64 = 16;

/// The share of copies of what is not long ago; ours.
const RECENT: f64 = 0.5;

fn index(number: u64) -> usize {
    usize::try_from(number).expect("a place in a table fits")
}

/// A trace has at most [`Recipe::REQUESTS_MAX`] requests, and never more pages or servers.
///
/// [`Recipe::REQUESTS_MAX`]: crate::generator::Recipe::REQUESTS_MAX
fn place(index: usize) -> u32 {
    u32::try_from(index).expect("a trace has fewer pages than numbers")
}
