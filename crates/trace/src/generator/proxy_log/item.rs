//! What one item of a page is: a function of the page and the item's number, so that nothing has to
//! be kept of it.

use super::profile::{Kind, Profile};
use weir_workload::{Chance, chosen, mix, unit_of};

/// A representation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Item {
    /// 0 is the document's kind, the embedded ones follow.
    pub(super) kind: u8,
    pub(super) bytes: u64,
    pub(super) is_declared: bool,
    /// The third party's site that it lies on.
    pub(super) third_party: Option<u32>,
}

/// A property of an item. Within a page each is spread evenly, not by chance (a Kronecker
/// sequence): so the shares hold where one page has a hundredth of all requests.
#[derive(Clone, Copy, Debug)]
pub(super) enum Facet {
    Kind,
    Declared,
    Party,
    Query,
    SetCookie,
    Validators,
    CacheControl,
    Vary,
}

impl Facet {
    /// Where item `number` of a page stands in [0, 1).
    pub(super) fn unit(self, page: u64, number: u16) -> f64 {
        let place = self as u64;
        let begin = unit_of(mix(page ^ mix(place << 32)));
        let at = begin + f64::from(number) * STRIDES[self as usize];
        at - at.floor()
    }
}

/// Fractions of the square roots of the first primes: with such strides properties are spread
/// evenly together too.
const STRIDES: [f64; 8] = [
    0.414_213_562_373_095_1,
    0.732_050_807_568_877_2,
    0.236_067_977_499_789_8,
    0.645_751_311_064_590_7,
    0.316_624_790_355_399_8,
    0.605_551_275_463_989_2,
    0.123_105_625_617_660_6,
    0.358_898_943_540_673_6,
];

impl Item {
    /// Item `number` (0: the document) of the page with this hash and size factor.
    pub(super) fn of(profile: &Profile, page: u64, size_factor: f64, number: u16) -> Self {
        let kind = kind_number(profile, page, number);
        let law = kind_of(profile, kind);
        let is_declared = Facet::Declared.unit(page, number) < law.declared;
        let size = if is_declared {
            &law.size
        } else {
            &law.size_undeclared
        };
        let drawn = size.draw(&mut Chance::of(page ^ mix(u64::from(number))));
        let party = Facet::Party.unit(page, number);
        let is_elsewhere = number > 0 && party < profile.sites.third_party;
        Self {
            kind,
            bytes: whole(drawn * size_factor, profile.pages.size_max),
            is_declared,
            third_party: is_elsewhere.then(|| third_party(profile, page, number)),
        }
    }
}

/// The factor of all sizes of the page with this hash.
pub(super) fn size_factor(profile: &Profile, page: u64) -> f64 {
    profile.pages.size_factor.draw(&mut Chance::of(page))
}

/// Whether the page with this hash is requested only once.
pub(super) fn is_once(profile: &Profile, page: u64) -> bool {
    unit_of(mix(page ^ ONCE)) < profile.pages.once
}

/// Keeps this draw apart from others of the page.
const ONCE: u64 = 0x6f6e_6365;

/// The kind with this number.
pub(super) fn kind_of(profile: &Profile, kind: u8) -> &Kind {
    match kind.checked_sub(1) {
        None => &profile.document,
        Some(place) => &profile.embedded[usize::from(place)],
    }
}

/// Whole bytes, at least one.
pub(super) fn whole(bytes: f64, most: f64) -> u64 {
    weir_workload::whole(bytes.min(most).max(1.0))
}

fn kind_number(profile: &Profile, page: u64, number: u16) -> u8 {
    if number == 0 {
        return 0;
    }
    let unit = Facet::Kind.unit(page, number);
    let shares = profile.embedded.iter().map(|kind| kind.share);
    let place = chosen(shares, unit).unwrap_or(profile.embedded.len() - 1);
    u8::try_from(place + 1).expect("a profile has few kinds")
}

/// By popularity: the n-th in proportion to 1/n.
fn third_party(profile: &Profile, page: u64, number: u16) -> u32 {
    let unit = unit_of(mix(mix(page) ^ mix(u64::from(number))));
    let drawn = libm::exp(unit * libm::log1p(f64::from(profile.sites.third_parties)));
    weir_workload::whole::<u32>(drawn) - 1
}
