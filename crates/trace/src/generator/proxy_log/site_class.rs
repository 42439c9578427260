//! One class of sites: its pages, and the deficits of its shares.

use super::deficit::{Deficit, Mix};
use super::pages::{PageNumber, Pages, SizePreference};
use super::profile::Profile;
use weir_workload::whole;
use weir_workload::{Chance, Zipf};

#[derive(Clone, Debug)]
pub(super) struct SiteClass {
    pub(super) pages: Pages,
    /// Servers of new pages, by popularity.
    servers: Zipf,
    pub(super) has_cookies: bool,
    /// None, reload, authorised: by requests of this class.
    pub(super) marks: Mix,
    /// Requests for what is made for each, by requests of this class.
    pub(super) dynamic: Deficit,
    /// Requests for what was requested before, all cachable, by requests of the whole trace.
    pub(super) hits: Deficit,
    /// Their bytes, by bytes of the whole trace.
    pub(super) hit_bytes: Option<Deficit>,
    usual_hits: f64,
    /// So many pages are new before one is requested again: else the first page would be the most
    /// popular by far.
    first: usize,
}

impl SiteClass {
    pub(super) fn new(profile: &Profile, has_cookies: bool, requests: u64) -> Self {
        let class = profile.class(has_cookies);
        let asks = &profile.asks;
        let servers = profile.servers(has_cookies);
        let usual_hits = profile.usual_hits(has_cookies);
        let pages = class.share * requests as f64 / profile.requests_a_page();
        Self {
            pages: Pages::on(servers),
            servers: Zipf::new(u64::from(servers), profile.sites.exponent),
            has_cookies,
            marks: Mix::new([
                1.0 - asks.reload - asks.authorization,
                asks.reload,
                asks.authorization,
            ]),
            dynamic: Deficit::new(class.dynamic),
            hits: Deficit::new(class.hits),
            hit_bytes: class.hit_bytes.map(Deficit::new),
            usual_hits,
            first: first_pages(pages * (1.0 - usual_hits)),
        }
    }

    /// Whether the next page, if it may be cached, is one that was requested before.
    pub(super) fn is_repeat(&self, chance: &mut Chance) -> bool {
        self.pages.count() >= self.first && chance.is(self.hits.chance(self.usual_hits))
    }

    /// The server of a new page.
    pub(super) fn server(&self, chance: &mut Chance) -> u32 {
        let rank = self.servers.draw(chance);
        u32::try_from(rank - 1).expect("a rank is at most the number of servers")
    }

    /// A page to request again, on this server if there is one. What is owed in bytes decides
    /// whether it is a large or a small one.
    pub(super) fn repeat(&self, server: Option<u32>, chance: &mut Chance) -> Option<PageNumber> {
        let favour = match self.hit_bytes.map(|deficit| deficit.deficit()) {
            Some(deficit) if deficit < 0.0 => SizePreference::Small,
            Some(deficit) if deficit > LARGE_FROM_BYTES => SizePreference::Large,
            _ => SizePreference::None,
        };
        self.pages.repeat(server, favour, chance)
    }
}

/// A fifth of the new pages to be, at most a hundred.
fn first_pages(new: f64) -> usize {
    whole((new / 5.0).clamp(1.0, 100.0))
}

/// What is owed before large pages are favoured: some dozen pages, so that small and large ones do
/// not take turns.
const LARGE_FROM_BYTES: f64 = 1e6;
