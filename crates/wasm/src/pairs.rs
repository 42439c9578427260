//! Maps of fields, and their serialised form.
//!
//! The specification's section *Serialization*: a count, the lengths of each name and value, then
//! names and values, each with a NUL behind it; integers of 32 bits, little-endian. An empty map
//! may be no byte or one zero byte. Our reading where the text is silent: bytes behind the last
//! value are refused, and the NUL must be there, because both show that two programs count
//! differently.

use std::error::Error;
use std::fmt;

/// Pairs of a map.
pub const PAIRS_MAX: usize = 512;

/// The serialised size of a map, bytes.
pub const PAIRS_BYTES_MAX: usize = 64 << 10;

/// The count at the start.
const COUNT_BYTES: usize = 4;

/// What a pair takes beside its name and value: two lengths and two NULs.
const PAIR_EXTRA_BYTES: usize = 10;

/// Bytes of fields that were replaced or removed, from which on the others are copied together.
const UNUSED_BYTES_MAX: usize = 4 << 10;

/// Where a name is, and its value behind it.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    name_len: usize,
    value_len: usize,
}

impl Place {
    fn name(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.start + self.name_len]
    }

    fn value(self, bytes: &[u8]) -> &[u8] {
        let start = self.start + self.name_len;
        &bytes[start..start + self.value_len]
    }

    fn has_name(self, bytes: &[u8], name: &[u8]) -> bool {
        self.name_len == name.len() && self.name(bytes).eq_ignore_ascii_case(name)
    }

    const fn len(self) -> usize {
        self.name_len + self.value_len
    }
}

/// Fields in their order: at most [`PAIRS_MAX`], and [`PAIRS_BYTES_MAX`] when serialised.
///
/// Names are compared without regard to case (RFC 9110 §5.1) and kept as they are given. Neither
/// names nor values are checked for what HTTP allows in them: a host must check what a module
/// wrote.
///
/// All names and values are in one block, so that a map is made with two allocations.
#[derive(Clone, Default)]
pub struct Pairs {
    bytes: Vec<u8>,
    places: Vec<Place>,
    /// The sum over the pairs as they are serialised, without the count.
    pairs_bytes: usize,
}

impl PartialEq for Pairs {
    fn eq(&self, other: &Self) -> bool {
        self.pairs_bytes == other.pairs_bytes && self.iter().eq(other.iter())
    }
}

impl Eq for Pairs {}

impl Pairs {
    /// A map without fields.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            bytes: Vec::new(),
            places: Vec::new(),
            pairs_bytes: 0,
        }
    }

    /// A map of these fields, in this order.
    ///
    /// # Errors
    /// The limits of a map.
    pub fn of<N, V>(fields: impl IntoIterator<Item = (N, V)>) -> Result<Self, PairsError>
    where
        N: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let mut pairs = Self::new();
        for (name, value) in fields {
            pairs.add(name.as_ref(), value.as_ref())?;
        }
        Ok(pairs)
    }

    /// How many fields there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Names and values in their order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> + ExactSizeIterator {
        let parts = |place: &Place| (place.name(&self.bytes), place.value(&self.bytes));
        self.places.iter().map(parts)
    }

    /// The value of the first field of this name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let place = self.find(name)?;
        Some(self.places[place].value(&self.bytes))
    }

    /// The first field of this name.
    fn find(&self, name: &[u8]) -> Option<usize> {
        let mut places = self.places.iter();
        places.position(|place| place.has_name(&self.bytes, name))
    }

    /// Removes all fields. Their room is kept.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.places.clear();
        self.pairs_bytes = 0;
    }

    /// Adds a field at the end.
    ///
    /// # Errors
    /// The limits of a map; it is unchanged then.
    pub fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), PairsError> {
        if self.places.len() == PAIRS_MAX {
            return Err(PairsError::TooMany {
                count: PAIRS_MAX + 1,
            });
        }
        self.check_room(self.pairs_bytes, name, value)?;
        let place = self.write(name, value);
        self.pairs_bytes += place.len() + PAIR_EXTRA_BYTES;
        self.places.push(place);
        Ok(())
    }

    /// As [`add`](Self::add), with a value that consists of two parts.
    ///
    /// # Errors
    /// The limits of a map; it is unchanged then.
    pub fn add_joined(&mut self, name: &[u8], value: [&[u8]; 2]) -> Result<(), PairsError> {
        let [first, second] = value;
        let taken = self.pairs_bytes.saturating_add(second.len());
        self.check_room(taken, name, first)?;
        self.add(name, first)?;
        self.bytes.extend_from_slice(second);
        if let Some(place) = self.places.last_mut() {
            place.value_len += second.len();
        }
        self.pairs_bytes += second.len();
        Ok(())
    }

    /// As [`add`](Self::add), with the name in lower case.
    ///
    /// # Errors
    /// The limits of a map; it is unchanged then.
    pub fn add_in_lower_case(&mut self, name: &[u8], value: &[u8]) -> Result<(), PairsError> {
        let start = self.bytes.len();
        self.add(name, value)?;
        self.bytes[start..start + name.len()].make_ascii_lowercase();
        Ok(())
    }

    /// Writes a name and its value behind the others.
    fn write(&mut self, name: &[u8], value: &[u8]) -> Place {
        let place = Place {
            start: self.bytes.len(),
            name_len: name.len(),
            value_len: value.len(),
        };
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        place
    }

    /// Gives the first field of this name this value, and removes the others of the name; adds the
    /// field if there is none.
    ///
    /// # Errors
    /// The limits of a map; it is unchanged then.
    pub fn replace(&mut self, name: &[u8], value: &[u8]) -> Result<(), PairsError> {
        let Some(first) = self.find(name) else {
            return self.add(name, value);
        };
        let same = self.places[first..].iter();
        let same = same.filter(|place| place.has_name(&self.bytes, name));
        let freed: usize = same.map(|place| place.len() + PAIR_EXTRA_BYTES).sum();
        self.check_room(self.pairs_bytes - freed, name, value)?;
        self.places[first] = self.write(name, value);
        let mut position = 0;
        self.retain(|place, bytes| {
            position += 1;
            position - 1 <= first || !place.has_name(bytes, name)
        });
        Ok(())
    }

    /// Removes all fields of this name, and says whether there was one.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        let before = self.places.len();
        self.retain(|place, bytes| !place.has_name(bytes, name));
        self.places.len() < before
    }

    fn retain(&mut self, mut keeps: impl FnMut(Place, &[u8]) -> bool) {
        let bytes = &self.bytes;
        self.places.retain(|place| keeps(*place, bytes));
        let used: usize = self.places.iter().map(|place| place.len()).sum();
        self.pairs_bytes = used + self.places.len() * PAIR_EXTRA_BYTES;
        if self.bytes.len() - used > UNUSED_BYTES_MAX {
            let mut gathered = Vec::with_capacity(used);
            for place in &mut self.places {
                let start = gathered.len();
                gathered.extend_from_slice(&self.bytes[place.start..place.start + place.len()]);
                place.start = start;
            }
            self.bytes = gathered;
        }
    }

    fn check_room(&self, taken: usize, name: &[u8], value: &[u8]) -> Result<(), PairsError> {
        let sizes = [
            COUNT_BYTES,
            taken,
            name.len(),
            value.len(),
            PAIR_EXTRA_BYTES,
        ];
        let bytes = sizes.into_iter().fold(0, usize::saturating_add);
        if bytes > PAIRS_BYTES_MAX {
            return Err(PairsError::TooLarge { bytes });
        }
        Ok(())
    }

    /// The size of the serialised form, bytes. An empty map has none.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        match self.is_empty() {
            true => 0,
            false => COUNT_BYTES + self.pairs_bytes,
        }
    }

    /// The serialised form.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.encoded_len()];
        let written = self.encode_into(&mut bytes);
        debug_assert!(written.is_some(), "the size is that of the form");
        bytes
    }

    /// Writes the serialised form into a place of its size; `None` if the place has another one.
    pub(crate) fn encode_into(&self, place: &mut [u8]) -> Option<()> {
        if place.len() != self.encoded_len() {
            return None;
        }
        if self.is_empty() {
            return Some(());
        }
        let (count, rest) = place.split_first_chunk_mut()?;
        *count = length(self.places.len());
        let (lengths, mut text) = rest.split_at_mut_checked(8 * self.places.len())?;
        for (place, lengths) in self.places.iter().zip(lengths.chunks_exact_mut(8)) {
            lengths[..4].copy_from_slice(&length(place.name_len));
            lengths[4..].copy_from_slice(&length(place.value_len));
        }
        for (name, value) in self.iter() {
            for part in [name, value] {
                let (place, rest) = text.split_at_mut_checked(part.len() + 1)?;
                let (end, place) = place.split_last_mut()?;
                place.copy_from_slice(part);
                *end = 0;
                text = rest;
            }
        }
        Some(())
    }

    /// Reads the serialised form.
    ///
    /// # Errors
    /// It is not one, or it is beyond the limits. Nothing is allocated for a count or a length
    /// that the bytes do not have.
    pub fn decode(bytes: &[u8]) -> Result<Self, PairsError> {
        if bytes.len() > PAIRS_BYTES_MAX {
            return Err(PairsError::TooLarge { bytes: bytes.len() });
        }
        if matches!(bytes, [] | [0]) {
            return Ok(Self::new());
        }
        let mut reader = Reader { bytes, at: 0 };
        let count = reader.number()?;
        if count > PAIRS_MAX {
            return Err(PairsError::TooMany { count });
        }
        let mut lengths = Reader {
            bytes,
            at: reader.at,
        };
        reader.take(count * 8)?;
        let mut pairs = Self::new();
        for _ in 0..count {
            let (name_len, value_len) = (lengths.number()?, lengths.number()?);
            let name = reader.text(name_len)?;
            let value = reader.text(value_len)?;
            pairs.add(name, value)?;
        }
        match reader.at == bytes.len() {
            true => Ok(pairs),
            false => Err(PairsError::Trailing { at: reader.at }),
        }
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |(name, value): (&[u8], &[u8])| {
            (
                String::from_utf8_lossy(name).into_owned(),
                String::from_utf8_lossy(value).into_owned(),
            )
        };
        f.debug_list().entries(self.iter().map(text)).finish()
    }
}

/// A length of a map within its limits.
fn length(length: usize) -> [u8; 4] {
    // the limit of a map's size fits in 32 bits
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], PairsError> {
        let end = self.at.saturating_add(len);
        let part = self.bytes.get(self.at..end);
        let part = part.ok_or(PairsError::Truncated { at: self.at, len })?;
        self.at = end;
        Ok(part)
    }

    fn number(&mut self) -> Result<usize, PairsError> {
        let part = self.take(4)?;
        let number = part
            .iter()
            .rev()
            .fold(0, |sum, &byte| (sum << 8) | usize::from(byte));
        Ok(number)
    }

    fn text(&mut self, len: usize) -> Result<&'a [u8], PairsError> {
        let text = self.take(len)?;
        match self.take(1)? {
            [0] => Ok(text),
            _ => Err(PairsError::Unterminated { at: self.at - 1 }),
        }
    }
}

/// Why bytes are not a map, or a field does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairsError {
    /// More fields than [`PAIRS_MAX`].
    TooMany {
        /// Fields.
        count: usize,
    },
    /// More bytes than [`PAIRS_BYTES_MAX`].
    TooLarge {
        /// The serialised size, bytes.
        bytes: usize,
    },
    /// A part reaches beyond the end.
    Truncated {
        /// Where the part begins, bytes from the start.
        at: usize,
        /// How long it should be, bytes.
        len: usize,
    },
    /// There is no NUL behind a name or a value.
    Unterminated {
        /// Where the NUL should be, bytes from the start.
        at: usize,
    },
    /// There are bytes behind the last value.
    Trailing {
        /// Where they begin, bytes from the start.
        at: usize,
    },
}

impl fmt::Display for PairsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany { count } => write!(f, "map of {count} fields, at most {PAIRS_MAX}"),
            Self::TooLarge { bytes } => {
                write!(f, "map of {bytes} bytes, at most {PAIRS_BYTES_MAX}")
            }
            Self::Truncated { at, len } => {
                write!(f, "map ends within the {len} bytes at offset {at}")
            }
            Self::Unterminated { at } => write!(f, "no NUL at offset {at} of the map"),
            Self::Trailing { at } => write!(f, "bytes behind the map, from offset {at} on"),
        }
    }
}

impl Error for PairsError {}

#[cfg(test)]
#[path = "pairs_tests.rs"]
mod tests;
