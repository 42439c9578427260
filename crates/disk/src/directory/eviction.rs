//! Makes room: evicts the oldest segment, and copies forward the records that were requested since
//! they were written.
//!
//! First in, first out with a second chance: one bit an entry, nothing moves on a hit, and the
//! device is written in sequence only. A record keeps its generation where it moves to, so that its
//! place in the log means nothing.

use crate::directory::reads::buffer::Buffer;
use crate::directory::reads::reader::{self, ReadMode, Record};
use crate::directory::segment::{SEGMENTS_MAX, Segment};
use crate::directory::writer::Writer;
use crate::directory::writer::batch::Effect;
use crate::files::read_bytes;
use crate::format::{
    ExtentHeader, ExtentRef, Kind, NewExtent, embedded_content, encode_embedded,
    encode_extent_header, encode_listed, extent_bytes, listed_bytes, verify_extent, verify_record,
};
use crate::index::Place;
use std::collections::HashSet;
use std::sync::Arc;

/// What may be carried forward into a new segment, in percent of it: so that writing always frees
/// more than it copies.
pub(crate) const CARRIED_PERCENT_MAX: u64 = 50;

impl Writer {
    /// Lets the oldest segments go until there is room for one more.
    pub(super) fn shrink(&mut self) {
        let limits = self.directory.limits;
        let segment_bytes = u64::from(limits.segment_bytes);
        let most = limits.bytes.saturating_sub(segment_bytes);
        let mut left = segment_bytes * CARRIED_PERCENT_MAX / 100;
        loop {
            let (count, bytes) = self.directory.segments.usage();
            let is_full = bytes > most || count >= SEGMENTS_MAX as u64;
            let Some(victim) = self.oldest().filter(|_| is_full) else {
                return;
            };
            self.carry_from(&victim, &mut left);
            self.retire(&victim);
        }
    }

    /// Lets the oldest segment go with all that is in it; `false`: there is none but the one that
    /// is being written.
    pub(super) fn give_up_oldest(&mut self) -> bool {
        match self.oldest() {
            Some(victim) => {
                self.retire(&victim);
                true
            }
            None => false,
        }
    }

    fn oldest(&self) -> Option<Arc<Segment>> {
        let active = self.active.as_ref().map(|active| active.segment.number);
        let oldest = self.directory.segments.oldest();
        oldest.filter(|segment| Some(segment.number) != active)
    }

    /// Copies requested records, at most `left` bytes of them.
    fn carry_from(&mut self, victim: &Arc<Segment>, left: &mut u64) {
        let directory = Arc::clone(&self.directory);
        for resident in directory.index.residents(victim.slot) {
            if resident.was_asked_for {
                self.carry(victim, resident.place, victim, left);
            }
        }
        // large responses whose record lies in a newer segment
        let mut seen = HashSet::new();
        for extent in victim.outer_extents() {
            if !seen.insert(extent.key) {
                continue;
            }
            let Some((place, true)) = directory.index.peek(extent.key) else {
                continue;
            };
            match directory.segments.in_slot(place.slot) {
                Some(home) if home.number != victim.number => {
                    self.carry(&home, place, victim, left);
                }
                _ => {}
            }
        }
        self.flush();
    }

    /// Copies the record at `place` of `home`, and its extents that lie in `victim`.
    fn carry(&mut self, home: &Segment, place: Place, victim: &Arc<Segment>, left: &mut u64) {
        let directory = Arc::clone(&self.directory);
        let guess = place.class.bytes();
        let (offset, mode) = (place.offset(), ReadMode::Blocking);
        let mut buffer = Buffer::default();
        let found = reader::record(&directory, home, offset, guess, mode, &mut buffer);
        let Ok(found) = found else {
            return;
        };
        let header = found.header;
        if directory.purges.cover(header.key, header.generation) {
            return;
        }
        match header.kind {
            Kind::Embedded => self.carry_embedded(home, place, &found, left),
            Kind::Listed => self.carry_listed(&found, place, victim, left),
        };
    }

    fn carry_embedded(
        &mut self,
        home: &Segment,
        place: Place,
        found: &Record<'_>,
        left: &mut u64,
    ) -> Option<()> {
        let at = u64::from(place.offset());
        let bytes = u64::from(found.header.bytes);
        if bytes > *left || !self.has_room(bytes) {
            return None;
        }
        let whole = read_bytes(&*home.file, at, usize::try_from(bytes).ok()?).ok()?;
        let (header, references) = verify_record(&whole, home.seal, at).ok()?;
        let content = contents(&whole, &references, home, at)?;
        let content: Vec<[&[u8]; 1]> = content.into_iter().map(|content| [content]).collect();
        let extents: Vec<NewExtent<'_>> = content
            .iter()
            .zip(&references)
            .map(|(content, reference)| NewExtent {
                from: reference.from,
                content,
            })
            .collect();
        let new = self.new_record(header.key, header.generation, found.meta);
        let body = references
            .first()
            .map_or(crate::format::BodyId(0), |it| it.body);
        let lens: Vec<u32> = references.iter().map(|reference| reference.len).collect();
        let content = embedded_content(header.meta_bytes, &lens);
        let (seal, to) = self.place_content(content, bytes)?;
        let made = encode_embedded(seal, to, &new, body, &extents).ok()?;
        *left -= bytes;
        let (content_bytes, effect) = (header.content_bytes, Effect::Carried { from: place });
        self.add_record(&new, (to, made), content_bytes, Kind::Embedded, effect);
        Some(())
    }

    fn carry_listed(
        &mut self,
        found: &Record<'_>,
        place: Place,
        victim: &Arc<Segment>,
        left: &mut u64,
    ) -> Option<()> {
        let directory = Arc::clone(&self.directory);
        let count = found.header.extents;
        let record_bytes = listed_bytes(found.header.meta_bytes, count);
        let generation = found.header.generation;
        if record_bytes > *left || !self.has_room(record_bytes) {
            return None;
        }
        *left -= record_bytes;
        let mut references = Vec::with_capacity(found.extents.len());
        for reference in &found.extents {
            if reference.segment == victim.number {
                references.extend(self.carry_run(found, reference, victim, left, record_bytes));
            } else if directory.segments.numbered(reference.segment).is_some() {
                references.push(*reference);
            }
        }
        if references.is_empty() && count > 0 {
            return None;
        }
        let new = self.new_record(found.header.key, generation, found.meta);
        let (seal, to) = self.place()?;
        let made = encode_listed(seal, to, &new, &references).ok()?;
        let effect = Effect::Carried { from: place };
        self.add_record(&new, (to, made), 0, Kind::Listed, effect);
        Some(())
    }

    /// Copies an extent, if there is room for it and `reserved` bytes behind it.
    fn carry_run(
        &mut self,
        found: &Record<'_>,
        reference: &ExtentRef,
        victim: &Arc<Segment>,
        left: &mut u64,
        reserved: u64,
    ) -> Option<ExtentRef> {
        let bytes = extent_bytes(reference.len);
        if bytes > *left || !self.has_room(bytes + reserved) {
            return None;
        }
        let from = u64::from(reference.at);
        let whole = read_bytes(&*victim.file, from, usize::try_from(bytes).ok()?).ok()?;
        let header = verify_extent(&whole, victim.seal, from).ok()?;
        header.check_reference(found.header.key, reference).ok()?;
        let content = content_of(&whole, &header)?;
        let place = (header.header_bytes(), header.len);
        let (seal, to) = self.place_content(place, bytes + reserved)?;
        let owner = (found.header.key, reference.body);
        let made = encode_extent_header(seal, to, owner, reference.from, &[content]).ok()?;
        let carried = ExtentRef {
            at: u32::try_from(to).ok()?,
            segment: seal.number(),
            ..*reference
        };
        *left -= bytes;
        let blocks = vec![content.into()];
        self.add_extent(found.header.key, &carried, made, blocks, Effect::CarriedRun);
        Some(carried)
    }
}

/// The content of each embedded extent of a record that was verified.
fn contents<'a>(
    record: &'a [u8],
    references: &[ExtentRef],
    home: &Segment,
    at: u64,
) -> Option<Vec<&'a [u8]>> {
    let each = references.iter().map(|reference| {
        let begin = usize::try_from(u64::from(reference.at).checked_sub(at)?).ok()?;
        let extent = record.get(begin..)?;
        let header = ExtentHeader::decode(extent, home.seal, u64::from(reference.at)).ok()?;
        content_of(extent, &header)
    });
    each.collect()
}

fn content_of<'a>(extent: &'a [u8], header: &ExtentHeader) -> Option<&'a [u8]> {
    let begin = usize::try_from(header.header_bytes()).ok()?;
    extent.get(begin..begin.checked_add(header.len as usize)?)
}
