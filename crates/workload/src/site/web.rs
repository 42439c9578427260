//! A site with the sizes, lifetimes and validators of the web of today.
//!
//! Each target draws its kind, what its `Cache-Control` says, its lifetime, its validators, its
//! `Vary` and its life cycle apart from each other, since the sources give the share of each and
//! not how they go together.

use super::life::Life;
use super::{HEURISTIC_LIFETIME_MIN_S, Property, Representation, length, path};
use crate::UnixSeconds;
use crate::chance::chosen;
use crate::number::whole;
use crate::scenario::{CacheControl, Web, WebContent};
use crate::target::Target;
use weir_semantics::{DeltaSeconds, ResponseDirectives};

#[derive(Clone, Debug)]
pub(super) struct WebSite {
    web: Web,
    /// What each entry of `web.cache_control` means.
    meanings: Vec<Meaning>,
}

/// What directives say to a shared cache.
#[derive(Clone, Copy, Debug)]
struct Meaning {
    storable: bool,
    lifetime: Lifetime,
    /// What `stale-while-revalidate` adds to the lifetime, in seconds.
    stale_s: u64,
}

/// A freshness lifetime.
#[derive(Clone, Copy, Debug)]
enum Lifetime {
    /// In the directives, or none because of them.
    Fixed(u64),
    /// The target's own, by `max-age` or `Expires`.
    Drawn,
    /// Not stated.
    Absent,
}

impl WebSite {
    pub(super) fn new(web: &Web) -> Self {
        Self {
            web: web.clone(),
            meanings: web.cache_control.iter().map(Meaning::of).collect(),
        }
    }

    /// `/1f.css`; the number in hexadecimal and the kind's extension.
    pub(super) fn write_path(&self, seed: u64, target: Target, out: &mut Vec<u8>) {
        out.push(b'/');
        path::write_hexadecimal(target.number, out);
        out.extend_from_slice(self.kind(seed, target).extension.as_bytes());
    }

    pub(super) fn length(&self, seed: u64, target: Target) -> u64 {
        let law = &self.kind(seed, target).size;
        length(law, &mut Property::Length.chance(seed, target))
    }

    pub(super) fn is_storable(&self, seed: u64, target: Target) -> bool {
        self.directives(seed, target).1.storable
    }

    pub(super) fn cookie_bytes(&self, seed: u64, target: Target) -> u64 {
        let law = &self.web.cookie_size;
        length(law, &mut Property::Cookie.chance(seed, target)).clamp(1, COOKIE_BYTES_MAX)
    }

    pub(super) fn life(&self, seed: u64, target: Target) -> Life {
        Life::new(&self.web.life_cycle, Property::Life.chance(seed, target))
    }

    pub(super) fn describe(
        &self,
        seed: u64,
        target: Target,
        at: UnixSeconds,
    ) -> Representation<'_> {
        let life = self.life(seed, target);
        let version = life.version(at);
        let begun = life.begins(version);
        let (control, meaning) = self.directives(seed, target);
        let lifetime = self.lifetime_s(seed, target);
        let unit = Property::Validators.unit(seed, target);
        let (has_modified, etag) = self.web.validators.chosen(unit);
        let fixed_or_drawn = match meaning.lifetime {
            Lifetime::Fixed(seconds) => seconds,
            Lifetime::Drawn => lifetime,
            Lifetime::Absent => heuristic_lifetime_s(begun, at),
        };
        Representation {
            version,
            length: self.length(seed, target),
            content_type: &self.kind(seed, target).media_type,
            modified: has_modified.then_some(begun),
            expires: control
                .expires
                .then(|| UnixSeconds(at.0.saturating_add_unsigned(lifetime))),
            cache_control: Some(control.directives.as_str()).filter(|text| !text.is_empty()),
            max_age_s: control.max_age.then_some(lifetime),
            etag,
            vary: self.vary(seed, target),
            set_cookie: Property::SetCookie.unit(seed, target) < self.web.set_cookie_share,
            storable: meaning.storable,
            freshness_lifetime_s: fixed_or_drawn + meaning.stale_s,
            changes_at: Some(life.ends(version)),
        }
    }

    fn kind(&self, seed: u64, target: Target) -> &WebContent {
        let unit = Property::Kind.unit(seed, target);
        let shares = self.web.contents.iter().map(|content| content.share);
        // shares add up to 1, but for a hair: the last one is whatever is left
        let kind = chosen(shares, unit).unwrap_or(self.web.contents.len() - 1);
        &self.web.contents[kind]
    }

    fn directives(&self, seed: u64, target: Target) -> (&CacheControl, Meaning) {
        let unit = Property::CacheControl.unit(seed, target);
        let shares = self.web.cache_control.iter().map(|control| control.share);
        let place = chosen(shares, unit).unwrap_or(self.meanings.len() - 1);
        (&self.web.cache_control[place], self.meanings[place])
    }

    /// Whole seconds.
    fn lifetime_s(&self, seed: u64, target: Target) -> u64 {
        let mut chance = Property::Lifetime.chance(seed, target);
        whole::<u64>(self.web.lifetime.draw(&mut chance))
            .min(u64::from(DeltaSeconds::MAX.as_secs()))
    }

    fn vary(&self, seed: u64, target: Target) -> Option<&str> {
        let unit = Property::Vary.unit(seed, target);
        let place = chosen(self.web.vary.iter().map(|vary| vary.share), unit)?;
        Some(&self.web.vary[place].value)
    }
}

impl Meaning {
    fn of(control: &CacheControl) -> Self {
        let mut said = ResponseDirectives::default();
        said.add_line(control.directives.as_bytes());
        let seconds = |delta: DeltaSeconds| u64::from(delta.as_secs());
        let storable = !said.no_store && !said.private;
        let lifetime = if !storable || said.needs_validation() {
            Lifetime::Fixed(0)
        } else if let Some(fixed) = said.s_maxage.or(said.max_age) {
            Lifetime::Fixed(seconds(fixed))
        } else if control.max_age || control.expires {
            Lifetime::Drawn
        } else {
            Lifetime::Absent
        };
        Self {
            storable,
            lifetime,
            stale_s: said.stale_while_revalidate.map_or(0, seconds),
        }
    }
}

/// RFC 9111 §4.2.2 leaves it to the cache and suggests a tenth of the time since the last
/// modification; Squid's rule is a fifth.
fn heuristic_lifetime_s(modified: UnixSeconds, at: UnixSeconds) -> u64 {
    let unmodified = u64::try_from(at.0.saturating_sub(modified.0)).unwrap_or(0);
    unmodified.max(HEURISTIC_LIFETIME_MIN_S)
}

/// The longest cookie, in bytes: what RFC 6265 §6.1 has user agents take.
const COOKIE_BYTES_MAX: u64 = 4096;
