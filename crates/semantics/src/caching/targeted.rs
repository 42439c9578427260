//! Targeted cache control fields, RFC 9213: `CDN-Cache-Control` and others like it.
//!
//! A cache has a list of such fields. The first in the order of the list that is valid and not
//! empty decides in place of `Cache-Control` and `Expires`, which then count as absent (§2.2). One
//! that is not a valid Dictionary, or an empty one, counts as absent, whole (§2.1).
//!
//! Our reading where the text permits several, always the one that reuses less:
//! * A lifetime of another type than an Integer of at least 0 (a String, a Decimal, a Token, no
//!   value, less than 0) is 0: stale, as in `Cache-Control`. §2.1 only says not to consume such
//!   values.
//! * A directive that restricts does so with any value; one that permits (`public`, `immutable`,
//!   `must-understand`) only without. With `?0` a directive is not there.
//! * Of a directive given twice the last one counts: that is how a Dictionary is read (RFC 9651
//!   §4.2.2).
//! * A response whose field is also named in `Connection` is `private`: the field is for us, and
//!   may not be stored (RFC 9111 §3.1), so that after an update the stored response would be judged
//!   without it.
//! * Parameters are checked and mean nothing (§2.1).

use alloc::{boxed::Box, vec::Vec};

use crate::caching::cache_control::{Argument, Reading, ResponseDirective, ResponseDirectives};
use crate::facts::ResponseFacts;
use crate::fields::field::{FieldLine, lines_named};
use crate::fields::hop_by_hop::ConnectionOptions;
use crate::fields::structured::{BareItem, read_dictionary};
use crate::time::DeltaSeconds;

/// The most fields a list may have: each is looked for in every response.
pub const TARGETED_FIELDS_MAX: usize = 8;

/// Which field decided how a response may be stored and reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DecidedBy {
    /// `Cache-Control` and `Expires`, or their absence.
    #[default]
    CacheControl,
    /// The targeted field with this number: its place in the list, counted from the number of the
    /// first.
    Targeted(u8),
}

/// The targeted fields a cache reads, the one that wins first (RFC 9213 §2.2).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetedFields {
    names: Vec<Box<str>>,
    /// The number of the first.
    first: u8,
}

impl TargetedFields {
    /// The fields of these names in this order; those beyond [`TARGETED_FIELDS_MAX`] are left out.
    pub fn new<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        let names = names.into_iter().take(TARGETED_FIELDS_MAX);
        Self {
            names: names.map(Into::into).collect(),
            first: 0,
        }
    }

    /// No field: `Cache-Control` alone is read.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            names: Vec::new(),
            first: 0,
        }
    }

    /// The same list with the number `first` for its first field, so that several lists are
    /// distinct.
    #[must_use]
    pub fn numbered_from(self, first: usize) -> Self {
        Self {
            first: u8::try_from(first).unwrap_or(u8::MAX),
            ..self
        }
    }

    /// Whether a field of this name is in the list.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        let mut names = self.names.iter();
        names.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// The name of the field that decided; `None` if that was no field of this list.
    #[must_use]
    pub fn name(&self, decided_by: DecidedBy) -> Option<&str> {
        match decided_by {
            DecidedBy::CacheControl => None,
            DecidedBy::Targeted(number) => {
                let place = number.checked_sub(self.first)?;
                self.names.get(usize::from(place)).map(|name| &**name)
            }
        }
    }

    /// Whether `Connection` names the field that decided (RFC 9110 §7.6.1).
    fn is_for_connection(&self, decided_by: DecidedBy, fields: &[FieldLine<'_>]) -> bool {
        let options = ConnectionOptions::gather(fields);
        self.name(decided_by)
            .is_some_and(|name| options.names(name))
    }

    /// The first field that is valid and not empty, and what it says.
    #[must_use]
    pub fn choose(&self, fields: &[FieldLine<'_>]) -> Option<(DecidedBy, ResponseDirectives)> {
        self.names
            .iter()
            .zip(self.first..)
            .find_map(|(name, number)| {
                let directives = directives(lines_named(fields, name))?;
                Some((DecidedBy::Targeted(number), directives))
            })
    }
}

impl ResponseFacts {
    /// The same facts for a cache that reads these targeted fields: if one of them decides, its
    /// directives stand for those of `Cache-Control`, and there is no `Expires`. `fields` are those
    /// that the facts were gathered from.
    #[must_use]
    pub fn targeted(self, fields: &[FieldLine<'_>], targets: &TargetedFields) -> Self {
        match targets.choose(fields) {
            Some((decided_by, directives)) => Self {
                directives: ResponseDirectives {
                    private: directives.private || targets.is_for_connection(decided_by, fields),
                    ..directives
                },
                expires: None,
                decided_by,
                ..self
            },
            None => self,
        }
    }
}

/// What the lines of one field say together; `None` if they are no Dictionary, or an empty one.
fn directives<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Option<ResponseDirectives> {
    let first = lines.next()?;
    let mut joined = Vec::new();
    for line in lines {
        if joined.is_empty() {
            joined.extend_from_slice(first);
        }
        // RFC 9110 §5.2
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(line);
    }
    let value = if joined.is_empty() { first } else { &joined };
    let mut said = ResponseDirectives::default();
    read_dictionary(value, &mut |key, item| {
        said.any = true;
        add(&mut said, key, item);
    })
    .ok()?;
    said.any.then_some(said)
}

/// Sets the directive called `key`, in place of one that came before.
fn add(said: &mut ResponseDirectives, key: &[u8], item: BareItem<'_>) {
    ResponseDirective::named(key).for_each(|directive| said.set(directive, None));
    if item == BareItem::Boolean(false) {
        return;
    }
    let argument = Argument {
        is_there: item != BareItem::Boolean(true),
        has_content: matches!(item, BareItem::Text(_) | BareItem::List),
        seconds: match item {
            BareItem::Integer(seconds) => u64::try_from(seconds).ok().map(DeltaSeconds::from_secs),
            _ => None,
        },
    };
    if let Reading::Says(directive, seconds) = ResponseDirective::read(key, &argument) {
        said.set(directive, Some(seconds));
    }
}

#[cfg(test)]
mod tests;
