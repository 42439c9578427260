//! The right responses: from scenario and seed, a site knows the spelling of every target and its
//! representation at any time.
//!
//! It holds a few parameters and no target: every property of one is a function of (seed,
//! target, time), drawn afresh from the target's own stream of chance. So a site of seven million
//! targets is as large as one of seven, and a client checks an answer with the site that the origin
//! made it with.

mod hits;
mod life;
mod path;
mod polymix;
mod web;
mod wpb;

use crate::UnixSeconds;
use crate::chance::{Chance, mix, unit_of};
use crate::content::Content;
use crate::law::Law;
use crate::number::whole;
use crate::scenario::{Scenario, Workload};
use crate::target::Target;
use hits::HitsSite;
use polymix::PolyMixSite;
use web::WebSite;
use wpb::WpbSite;

pub use polymix::{NumberParts, number, number_parts};

/// The site of a scenario and a seed.
#[derive(Clone, Debug)]
pub struct Site {
    seed: u64,
    servers: u32,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Wpb(WpbSite),
    PolyMix(PolyMixSite),
    Web(Box<WebSite>),
    Hits(HitsSite),
}

/// The representation of a target at a time (RFC 9110 §3.2), and its metadata.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Representation<'s> {
    /// Which [`Content`] it has. Grows with time.
    pub version: u64,
    /// Bytes of content.
    pub length: u64,
    /// `Content-Type`.
    pub content_type: &'s str,
    /// `Last-Modified`, if it is sent.
    pub modified: Option<UnixSeconds>,
    /// `Expires`, if it is sent.
    pub expires: Option<UnixSeconds>,
    /// The directives of `Cache-Control` beside `max-age`, if there are any.
    pub cache_control: Option<&'s str>,
    /// `max-age` of `Cache-Control`, if it has one: sent after `cache_control`.
    pub max_age_s: Option<u64>,
    /// Whether an `ETag` is sent: [`Site::write_entity_tag`].
    pub etag: bool,
    /// `Vary`, if it is sent.
    pub vary: Option<&'s str>,
    /// Whether a `Set-Cookie` is sent, of [`Site::cookie_bytes`].
    pub set_cookie: bool,
    /// Whether RFC 9111 §3 lets a shared cache store the response.
    pub storable: bool,
    /// How long, in seconds, a shared cache may use the response without validation: RFC 9111
    /// §4.2.1. Where the response does not say, no cache should take it for fresh longer than it
    /// had been unmodified, and at least an hour is granted: [`HEURISTIC_LIFETIME_MIN_S`].
    pub freshness_lifetime_s: u64,
    /// When the next version comes, if one does.
    pub changes_at: Option<UnixSeconds>,
}

/// What a cache may take as a lifetime of its own where a response gives it nothing to go by, in
/// seconds: Varnish 120, Squid none, nginx none; an hour is above all of them.
pub const HEURISTIC_LIFETIME_MIN_S: u64 = 3600;

/// No content is longer, in bytes: 1 TiB. A law that draws more gives this.
pub const LENGTH_BYTES_MAX: u64 = 1 << 40;

impl Site {
    /// The site of this scenario and seed. One scenario and seed is one site, on every machine.
    #[must_use]
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let (servers, kind) = match &scenario.workload {
            Workload::Wpb(wpb) => (wpb.servers, Kind::Wpb(WpbSite::new(wpb))),
            Workload::PolyMix(mix) => (mix.servers(), Kind::PolyMix(PolyMixSite::new(mix))),
            Workload::Web(web) => (web.servers, Kind::Web(Box::new(WebSite::new(web)))),
            Workload::Hits(hits) => (1, Kind::Hits(HitsSite::new(hits))),
        };
        Self {
            seed,
            servers,
            kind,
        }
    }

    /// How many servers it has, at least 1.
    #[must_use]
    pub fn servers(&self) -> u32 {
        self.servers
    }

    /// Writes the path of a target, with its slash.
    pub fn write_path(&self, target: Target, out: &mut Vec<u8>) {
        match &self.kind {
            Kind::Wpb(site) => site.write_path(self.seed, target, out),
            Kind::PolyMix(site) => site.write_path(target, out),
            Kind::Web(site) => site.write_path(self.seed, target, out),
            Kind::Hits(_) => hits::write_path(target, out),
        }
    }

    /// The target of a path as [`Site::write_path`] writes it on this server; nothing for any other
    /// spelling, for a server that there is not, and for a number that is none of the site's.
    #[must_use]
    pub fn parse_path(&self, server: u32, path: &[u8]) -> Option<Target> {
        let number = match &self.kind {
            Kind::Wpb(_) => path::decimal(path, b"/dummy", b".html"),
            Kind::PolyMix(site) => site.parse_number(path),
            Kind::Web(_) => path::hexadecimal(path, b"/", b"."),
            Kind::Hits(_) => path::decimal(path, b"/hit", b".bin"),
        }?;
        let target = Target { server, number };
        let mut written = Vec::with_capacity(path.len());
        self.write_path(target, &mut written);
        (server < self.servers && written == path).then_some(target)
    }

    /// The representation of the target at a time.
    #[must_use]
    pub fn describe(&self, target: Target, at: UnixSeconds) -> Representation<'_> {
        match &self.kind {
            Kind::Wpb(site) => site.describe(self.seed, target, at),
            Kind::PolyMix(site) => site.describe(self.seed, target, at),
            Kind::Web(site) => site.describe(self.seed, target, at),
            Kind::Hits(site) => site.describe(self.seed, target),
        }
    }

    /// Bytes of content, the same for every version.
    #[must_use]
    pub fn length(&self, target: Target) -> u64 {
        match &self.kind {
            Kind::Wpb(site) => site.length(self.seed, target),
            Kind::PolyMix(site) => site.length(self.seed, target),
            Kind::Web(site) => site.length(self.seed, target),
            Kind::Hits(site) => site.length(self.seed, target),
        }
    }

    /// Whether a shared cache may store the target's responses, whatever its version.
    #[must_use]
    pub fn is_storable(&self, target: Target) -> bool {
        match &self.kind {
            Kind::Wpb(_) | Kind::Hits(_) => true,
            Kind::PolyMix(site) => site.is_storable(self.seed, target),
            Kind::Web(site) => site.is_storable(self.seed, target),
        }
    }

    /// How many targets the target embeds.
    #[must_use]
    pub fn embedded_count(&self, target: Target) -> u32 {
        match &self.kind {
            Kind::PolyMix(site) => site.embedded_count(self.seed, target),
            Kind::Wpb(_) | Kind::Web(_) | Kind::Hits(_) => 0,
        }
    }

    /// The targets that the target embeds, in order.
    #[must_use]
    pub fn embedded(&self, target: Target) -> impl ExactSizeIterator<Item = Target> + use<> {
        let first = match &self.kind {
            Kind::PolyMix(site) => site.first_embedded(target),
            Kind::Wpb(_) | Kind::Web(_) | Kind::Hits(_) => target,
        };
        (0..self.embedded_count(target)).map(move |place| Target {
            number: first.number + u64::from(place),
            ..first
        })
    }

    /// Whether this version was what the target was at some time from `from` to `until`, both
    /// included.
    #[must_use]
    pub fn was_current(
        &self,
        target: Target,
        version: u64,
        from: UnixSeconds,
        until: UnixSeconds,
    ) -> bool {
        let life = match &self.kind {
            Kind::Wpb(_) | Kind::Hits(_) => return version == 0 && from <= until,
            Kind::PolyMix(site) => site.life(self.seed, target),
            Kind::Web(site) => site.life(self.seed, target),
        };
        from <= until && life.begins(version) <= until && from < life.ends(version)
    }

    /// The content of a version of a target.
    #[must_use]
    pub fn content(&self, target: Target, version: u64) -> Content {
        Content::of(self.seed, target, version)
    }

    /// Writes the entity tag of a version of a target, with its quotes: `"<digest of the
    /// target>-<version>"`, both hexadecimal.
    pub fn write_entity_tag(&self, target: Target, version: u64, out: &mut Vec<u8>) {
        out.push(b'"');
        path::write_hexadecimal(target.digest(self.seed), out);
        out.push(b'-');
        path::write_hexadecimal(version, out);
        out.push(b'"');
    }

    /// The version of the target that has this entity tag, which may be weak; `None` if it is
    /// another target's or no target's. A weak one may go on behind another dash: a proxy that
    /// changes content makes a tag of its own of that of the origin.
    #[must_use]
    pub fn parse_entity_tag(&self, target: Target, tag: &[u8]) -> Option<u64> {
        let weak = tag.strip_prefix(b"W/");
        let tag = weak.unwrap_or(tag);
        let inside = tag.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        let mut parts = inside.splitn(3, |byte| *byte == b'-');
        let digest = path::read_hexadecimal(parts.next()?)?;
        let version = path::read_hexadecimal(parts.next()?)?;
        let is_whole = weak.is_some() || parts.next().is_none();
        (is_whole && digest == target.digest(self.seed)).then_some(version)
    }

    /// Bytes of the cookie that goes with a target, in a `Set-Cookie` or, where a request has one,
    /// in its `Cookie`; 0 where the scenario knows no cookies.
    #[must_use]
    pub fn cookie_bytes(&self, target: Target) -> u64 {
        match &self.kind {
            Kind::Web(site) => site.cookie_bytes(self.seed, target),
            Kind::Wpb(_) | Kind::PolyMix(_) | Kind::Hits(_) => 0,
        }
    }
}

/// What of a target is drawn. Each has a stream of chance of its own, so that one can be drawn
/// without the others.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
enum Property {
    Length = 1,
    Storable,
    Embedded,
    Life,
    Kind,
    CacheControl,
    Lifetime,
    Validators,
    Vary,
    SetCookie,
    Cookie,
    Path,
}

impl Property {
    fn chance(self, seed: u64, target: Target) -> Chance {
        Chance::of(self.hash(seed, target))
    }

    /// Where one uniform number in [0, 1) is all that is drawn: without the making of a stream.
    fn unit(self, seed: u64, target: Target) -> f64 {
        unit_of(self.hash(seed, target))
    }

    fn hash(self, seed: u64, target: Target) -> u64 {
        mix(target.digest(seed) ^ mix(self as u64))
    }
}

/// A drawn size as bytes.
fn length(law: &Law, chance: &mut Chance) -> u64 {
    whole::<u64>(law.draw(chance)).min(LENGTH_BYTES_MAX)
}
