//! A header section that outlives the bytes it was read from.

use weir_semantics::FieldLine;

/// Field lines in the order received, names and values as received.
///
/// Names and values are stored in two allocations, whether they were received as bytes of HTTP/1.1
/// or as a compressed field section. The text that is in front of them, as a request line, is
/// stored with the names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSection {
    /// What is in front, then the names.
    names: Box<str>,
    /// Bytes of what is in front.
    front: u32,
    values: Box<[u8]>,
    /// One past the last byte of each name and of each value.
    ends: Box<[(u32, u32)]>,
}

impl FieldSection {
    /// A copy of `fields` with `front` in front of them.
    pub(crate) fn behind(front: &[&str], fields: &[FieldLine<'_>]) -> Self {
        let front_bytes = front.iter().map(|part| part.len()).sum();
        let bytes = (front_bytes, 0);
        let (names_bytes, values_bytes) = fields.iter().fold(bytes, |(names, values), line| {
            (names + line.name.len(), values + line.value.len())
        });
        let mut names = String::with_capacity(names_bytes);
        names.extend(front.iter().copied());
        let mut values = Vec::with_capacity(values_bytes);
        let mut ends = Vec::with_capacity(fields.len());
        for line in fields {
            names.push_str(line.name);
            values.extend_from_slice(line.value);
            ends.push((place(names.len()), place(values.len())));
        }
        Self {
            names: names.into(),
            front: place(front_bytes),
            values: values.into(),
            ends: ends.into(),
        }
    }

    /// The text in front of them.
    pub(crate) fn front(&self) -> &str {
        &self.names[..self.front as usize]
    }

    /// The lines.
    pub(crate) fn lines(&self) -> Vec<FieldLine<'_>> {
        self.iter().collect()
    }

    /// The lines, one after the other.
    #[inline]
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = FieldLine<'_>> {
        let mut begin = (self.front as usize, 0);
        self.ends.iter().map(move |&(name_end, value_end)| {
            let end = (name_end as usize, value_end as usize);
            let line = FieldLine::new(&self.names[begin.0..end.0], &self.values[begin.1..end.1]);
            begin = end;
            line
        })
    }

    /// Bytes of all names and values, and of the text in front.
    pub(crate) fn bytes(&self) -> usize {
        self.names.len() + self.values.len()
    }
}

/// A head has at most 4 GiB: its limit is far below.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_put_in_with_empty_and_repeated_ones() {
        let fields = [
            FieldLine::new("Host", b"a.example"),
            FieldLine::new("X", b""),
            FieldLine::new("x", b"\xff\x80"),
            FieldLine::new("X", b"2"),
        ];
        for count in 0..=fields.len() {
            for front in [&["GET", "/ü"][..], &[]] {
                let section = FieldSection::behind(front, &fields[..count]);
                assert_eq!(section.lines(), fields[..count]);
                assert_eq!(section.front(), front.concat());
            }
        }
        let section = FieldSection::behind(&["/a"], &fields);
        assert_eq!(section.bytes(), 2 + 4 + 9 + 1 + 3 + 1 + 1);
    }
}
