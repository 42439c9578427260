//! Which content coding a client gets, by its Accept-Encoding (RFC 9110 §12.5.3).

/// A content coding that `compress` makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// RFC 7932.
    Brotli,
    /// RFC 8878.
    Zstd,
    /// RFC 1952.
    Gzip,
}

impl Coding {
    pub(super) const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// Its name in Accept-Encoding and Content-Encoding, and the tag of the variant.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    fn is_named(self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.name().as_bytes())
            || self == Self::Gzip && name.eq_ignore_ascii_case(b"x-gzip")
    }
}

/// A quality value (RFC 9110 §12.4.2) in thousandths; 0 is not acceptable.
type Quality = u16;

/// The coding of `offered` that a client with these lines of Accept-Encoding prefers; among equals
/// the first. `None` if it accepts none, or prefers content that is not coded.
///
/// A client without the field could be sent any coding. Such clients are mostly programs that undo
/// none, so that they get none here, as from other servers.
pub(super) fn choose<'l>(
    offered: &[Coding],
    lines: impl Iterator<Item = &'l [u8]>,
) -> Option<Coding> {
    let accepted = Accepted::read(lines);
    let mut best: Option<(Coding, Quality)> = None;
    for coding in offered {
        let quality = accepted.quality(*coding);
        if quality > best.map_or(0, |(_, best)| best) {
            best = Some((*coding, quality));
        }
    }
    let (coding, quality) = best?;
    let is_preferred = accepted.identity.is_none_or(|identity| quality >= identity);
    is_preferred.then_some(coding)
}

/// What the field says, so far as it matters here. The first mention of a coding counts.
#[derive(Default)]
struct Accepted {
    codings: [Option<Quality>; Coding::ALL.len()],
    identity: Option<Quality>,
    /// `*`: every coding that is not named.
    any: Option<Quality>,
}

impl Accepted {
    fn read<'l>(lines: impl Iterator<Item = &'l [u8]>) -> Self {
        let mut accepted = Self::default();
        for element in lines.flat_map(|line| line.split(|byte| *byte == b',')) {
            let mut parts = element.split(|byte| *byte == b';');
            let name = parts.next().unwrap_or_default().trim_ascii();
            // an element that cannot be read is none: nothing is accepted by it
            let Some(quality) = parts.next().map_or(Some(1000), weight) else {
                continue;
            };
            if parts.next().is_none()
                && let Some(place) = accepted.place(name)
            {
                place.get_or_insert(quality);
            }
        }
        accepted
    }

    fn place(&mut self, name: &[u8]) -> Option<&mut Option<Quality>> {
        if name == b"*" {
            return Some(&mut self.any);
        }
        if name.eq_ignore_ascii_case(b"identity") {
            return Some(&mut self.identity);
        }
        let at = Coding::ALL.iter().position(|it| it.is_named(name))?;
        Some(&mut self.codings[at])
    }

    fn quality(&self, coding: Coding) -> Quality {
        let own = Coding::ALL.iter().zip(self.codings);
        let own = own.filter(|(it, _)| **it == coding);
        own.filter_map(|(_, quality)| quality)
            .next()
            .or(self.any)
            .unwrap_or(0)
    }
}

/// `q=` and a quality value; `None` if it is something else.
fn weight(parameter: &[u8]) -> Option<Quality> {
    let (name, value) = parameter.trim_ascii().split_at_checked(2)?;
    if !name.eq_ignore_ascii_case(b"q=") {
        return None;
    }
    let (whole, digits) = match value {
        [whole @ (b'0' | b'1')] => (whole, &[][..]),
        [whole @ (b'0' | b'1'), b'.', digits @ ..] if digits.len() <= 3 => (whole, digits),
        _ => return None,
    };
    let mut quality = Quality::from(whole - b'0');
    for place in 0..3 {
        let digit = digits.get(place).copied().unwrap_or(b'0');
        if !digit.is_ascii_digit() {
            return None;
        }
        quality = quality * 10 + Quality::from(digit - b'0');
    }
    (quality <= 1000).then_some(quality)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lines: &[&str], expected: Option<Coding>) {
        let lines = lines.iter().map(|line| line.as_bytes());
        assert_eq!(choose(&Coding::ALL, lines), expected);
    }

    #[test]
    fn coding_that_the_client_prefers_is_chosen_and_the_first_of_equals() {
        check(&["gzip, deflate, br, zstd"], Some(Coding::Brotli));
        check(&["gzip, deflate"], Some(Coding::Gzip));
        check(&["GZIP"], Some(Coding::Gzip));
        check(&["x-gzip"], Some(Coding::Gzip));
        check(&["br;q=0.5, zstd;q=0.501"], Some(Coding::Zstd));
        check(&["br;q=0.5 , gzip ; q=0.9"], Some(Coding::Gzip));
        check(&["gzip", "zstd;Q=1.000"], Some(Coding::Zstd));
        check(&["*"], Some(Coding::Brotli));
        check(&["br;q=0, *;q=0.1"], Some(Coding::Zstd));
    }

    #[test]
    fn client_that_accepts_no_coding_gets_none() {
        check(&[], None);
        check(&[""], None);
        check(&["identity"], None);
        check(&["deflate, compress"], None);
        check(&["gzip;q=0"], None);
        check(&["br;q=0.000, *;q=0"], None);
        check(&["gzip;q=0.5, identity"], None);
        check(&["gzip;q=0.5, identity;q=0.5"], Some(Coding::Gzip));
        check(&["gzip, identity;q=0"], Some(Coding::Gzip));
    }

    #[test]
    fn element_that_cannot_be_read_accepts_nothing() {
        for element in [
            "gzip;q=2",
            "gzip;q=1.001",
            "gzip;q=0.1234",
            "gzip;q=.5",
            "gzip;q=-1",
            "gzip;q=",
            "gzip;level=1",
            "gzip;q=1;q=1",
            "gzip;",
            "gz ip",
        ] {
            check(&[element], None);
            check(&[element, "zstd"], Some(Coding::Zstd));
        }
    }
}
