//! Metadata of responses, read once from the profile.

use super::profile::Profile;
use crate::{Anonymiser, ResponseBit, Row};
use weir_semantics::{DeltaSeconds, ResponseDirectives};
use weir_workload::{CacheControl, Chance, Law, Validators, Vary, chosen, whole};

/// A freshness lifetime in seconds, where one is given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime(pub(super) u32);

impl Lifetime {
    /// Dynamic content has none.
    pub(super) const NONE: Self = Self(0);
}

/// A `Cache-Control` and an `Expires`.
#[derive(Clone, Debug, Default)]
pub(super) struct Control {
    share: f64,
    bits: u32,
    /// `max-age` as it is written.
    fixed_s: Option<u32>,
    s_maxage_s: Option<u32>,
    stale_while_revalidate_s: Option<u32>,
    /// `max-age` is the target's own lifetime.
    has_max_age: bool,
    has_expires: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Metadata {
    controls: Vec<Control>,
    dynamic: Vec<Control>,
    pub(super) validators: Validators,
    vary: Vec<(Vary, u64)>,
    age: Law,
    lifetime: Law,
}

impl Metadata {
    pub(super) fn new(profile: &Profile) -> Self {
        let says = &profile.says;
        let hash = |vary: &Vary| Anonymiser::vary(vary.value.split(',').map(str::trim));
        Self {
            controls: says.cache_control.iter().map(Control::of).collect(),
            dynamic: profile
                .dynamic
                .iter()
                .map(|dynamic| Control::parse(&dynamic.directives))
                .collect(),
            validators: says.validators.clone(),
            vary: says
                .vary
                .iter()
                .map(|vary| (vary.clone(), hash(vary)))
                .collect(),
            age: says.age.clone(),
            lifetime: says.lifetime.clone(),
        }
    }

    pub(super) fn shares(&self) -> impl Iterator<Item = f64> {
        self.controls.iter().map(|control| control.share)
    }

    pub(super) fn control(&self, place: usize) -> &Control {
        &self.controls[place]
    }

    pub(super) fn dynamic(&self, place: usize) -> &Control {
        &self.dynamic[place]
    }

    /// The hash and the names of a `Vary`, if there is one.
    pub(super) fn vary(&self, unit: f64) -> Option<(u64, &str)> {
        let place = chosen(self.vary.iter().map(|(vary, _)| vary.share), unit)?;
        let (vary, hash) = &self.vary[place];
        Some((*hash, &vary.value))
    }

    /// How long before the trace a target was modified, whole seconds.
    pub(super) fn age_s(&self, target: u64) -> i64 {
        let age: i64 = whole(self.age.draw(&mut Chance::of(target ^ AGE)));
        age.clamp(0, AGE_MAX_S)
    }

    /// The lifetime that a target gives.
    pub(super) fn lifetime(&self, target: u64) -> Lifetime {
        let mut chance = Chance::of(target ^ LIFETIME);
        Lifetime(whole(self.lifetime.draw(&mut chance)))
    }
}

impl Control {
    fn of(control: &CacheControl) -> Self {
        Self {
            share: control.share,
            has_max_age: control.max_age,
            has_expires: control.expires,
            ..Self::parse(&control.directives)
        }
    }

    /// Words that no directive has are extensions.
    fn parse(text: &str) -> Self {
        let mut said = ResponseDirectives::default();
        said.add_line(text.as_bytes());
        let seconds = |directive: Option<DeltaSeconds>| directive.map(|seconds| seconds.0);
        Self {
            bits: ResponseBit::of_line(text.as_bytes()),
            fixed_s: seconds(said.max_age),
            s_maxage_s: seconds(said.s_maxage),
            stale_while_revalidate_s: seconds(said.stale_while_revalidate),
            ..Self::default()
        }
    }

    /// Writes it into a row, whose date is known.
    pub(super) fn say(&self, row: &mut Row, lifetime: Lifetime) {
        let max_age = if self.has_max_age {
            Some(lifetime.0)
        } else {
            self.fixed_s
        };
        let bit = max_age.map_or(0, |_| ResponseBit::MaxAge.bit());
        row.response_directives = Some(self.bits | bit);
        row.max_age_s = max_age;
        row.s_maxage_s = self.s_maxage_s;
        row.stale_while_revalidate_s = self.stale_while_revalidate_s;
        if self.has_expires {
            row.expires_s = row.date_s.map(|date| date + i64::from(lifetime.0));
        }
    }
}

/// Keep ages and lifetimes apart from other draws of a target.
const AGE: u64 = 0x6167_6500;
const LIFETIME: u64 = 0x6c69_6665;

/// Twenty years: nothing on the web is older than the web.
const AGE_MAX_S: i64 = 20 * 365 * 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_directive_sets_its_bit_and_value() {
        let control =
            Control::parse("public, s-maxage=600, stale-while-revalidate=86400, max-age=0, odd");
        let mut row = Row::default();
        control.say(&mut row, Lifetime(5));
        assert_eq!(row.s_maxage_s, Some(600));
        assert_eq!(row.stale_while_revalidate_s, Some(86_400));
        assert_eq!(row.max_age_s, Some(0));
        let bits = row.response_directives.unwrap();
        for bit in [
            ResponseBit::Public,
            ResponseBit::SMaxAge,
            ResponseBit::StaleWhileRevalidate,
            ResponseBit::MaxAge,
            ResponseBit::Extension,
        ] {
            assert_ne!(bits & bit.bit(), 0, "{}", bit.as_str());
        }
        assert_eq!(bits & ResponseBit::Private.bit(), 0);
    }

    #[test]
    fn empty_cache_control_sets_no_directive() {
        let mut row = Row::default();
        Control::parse("").say(&mut row, Lifetime(5));
        assert_eq!(row.response_directives, Some(0));
        assert_eq!(row.max_age_s, None);
    }
}
