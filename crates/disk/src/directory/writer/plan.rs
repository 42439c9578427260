//! What a job becomes in the segment, if it may be stored at all.

use super::Writer;
use super::batch::{Effect, Piece};
use crate::Refused;
use crate::directory::queue::{CommitJob, ExtentJob, Job, RecordJob};
use crate::directory::reads::buffer::Buffer;
use crate::directory::reads::reader::{self, ReadMode};
use crate::extent::Extent;
use crate::format::{
    ALIGN_BYTES, BodyId, EXTENT_BYTES_MAX, ExtentHeader, ExtentRef, Kind, NewExtent, NewRecord,
    TableEntry, embedded_bytes, embedded_content, encode_embedded, encode_extent_header,
    encode_listed, extent_bytes, extent_header_bytes, listed_bytes,
};
use crate::record::BodyBlock;
use std::sync::Arc;
use weir_policy::Digest;

/// The key of a record that no request can have. Like every record it says how far the purge
/// journal goes.
pub(crate) const MARK: Digest = Digest(0, 0);

impl Writer {
    pub(super) fn plan(&mut self, job: Job) {
        match job {
            Job::Record(job) => self.plan_record(job),
            Job::Extent(job) => self.plan_extent(job),
            Job::Commit(job) => self.plan_commit(job),
        }
    }

    fn plan_record(&mut self, job: RecordJob) {
        let generation = job.ticket.0;
        if self.is_outdated(job.key, generation) {
            return self.drop_job(Job::Record(job), Refused::Outdated);
        }
        let stretches = stretches(&job.body);
        let lens: Vec<u32> = stretches.iter().map(|stretch| stretch.len).collect();
        let meta_bytes = u32::try_from(job.meta.len()).unwrap_or(u32::MAX);
        let bytes = embedded_bytes(meta_bytes, &lens);
        if !self.make_room(bytes) {
            return self.drop_job(Job::Record(job), Refused::Incomplete);
        }
        let extents: Vec<NewExtent<'_>> = stretches
            .iter()
            .map(|stretch| NewExtent {
                from: stretch.from,
                content: &stretch.blocks,
            })
            .collect();
        let new = self.new_record(job.key, generation, &job.meta);
        let body = BodyId(self.directory.tickets.next());
        let made = self.place_content(embedded_content(meta_bytes, &lens), bytes);
        let made = made.and_then(|(seal, at)| {
            Some((at, encode_embedded(seal, at, &new, body, &extents).ok()?))
        });
        let Some((at, made)) = made else {
            return self.drop_job(Job::Record(job), Refused::TooLarge);
        };
        let content: u64 = lens.iter().map(|len| u64::from(*len)).sum();
        let effect = Effect::Stored {
            charge: job.charge,
            large: None,
        };
        self.add_record(&new, (at, made), content, Kind::Embedded, effect);
    }

    fn plan_extent(&mut self, job: ExtentJob) {
        let len: usize = job.blocks.iter().map(|block| block.len()).sum();
        let len = u32::try_from(len).unwrap_or(u32::MAX);
        if job.progress.is_dead() || len > EXTENT_BYTES_MAX {
            return self.drop_job(Job::Extent(job), Refused::Incomplete);
        }
        if !self.make_room(extent_bytes(len)) {
            return self.drop_job(Job::Extent(job), Refused::Incomplete);
        }
        let ExtentJob {
            progress,
            key,
            body,
            from,
            charge,
            ..
        } = job;
        let blocks: Vec<&[u8]> = job.blocks.iter().map(|block| &**block).collect();
        let place = self.place_content((extent_header_bytes(len), len), extent_bytes(len));
        let made = place.and_then(|(seal, at)| {
            let header = encode_extent_header(seal, at, (key, body), from, &blocks).ok()?;
            let known = ExtentHeader::decode(&header, seal, at).ok();
            Some((seal.number(), at, header, known))
        });
        let Some((segment, at, header, known)) = made else {
            self.directory.queue.finished(charge, None);
            return progress.fail(Refused::TooLarge);
        };
        let reference = ExtentRef {
            from,
            len,
            at: u32::try_from(at).unwrap_or(u32::MAX),
            segment,
            body,
        };
        let effect = Effect::Extent {
            charge,
            progress,
            reference,
            header: known,
        };
        self.add_extent(key, &reference, header, job.blocks, effect);
    }

    fn plan_commit(&mut self, job: CommitJob) {
        // its extents are on their way, or failed
        self.flush();
        let generation = job.ticket.0;
        if self.is_outdated(job.key, generation) {
            return self.drop_job(Job::Commit(job), Refused::Outdated);
        }
        if job.progress.is_dead() {
            return self.drop_job(Job::Commit(job), Refused::Incomplete);
        }
        let listed = self.listed(&job);
        let meta_bytes = u32::try_from(job.meta.len()).unwrap_or(u32::MAX);
        let count = u32::try_from(listed.len()).unwrap_or(u32::MAX);
        if !self.make_room(listed_bytes(meta_bytes, count)) {
            return self.drop_job(Job::Commit(job), Refused::TooLarge);
        }
        // making room may have made older segments leave
        let had_content = !listed.is_empty();
        let listed = self.listed(&job);
        if had_content && listed.is_empty() {
            return self.drop_job(Job::Commit(job), Refused::Incomplete);
        }
        let references: Vec<ExtentRef> = listed
            .iter()
            .map(|extent| extent.source.reference)
            .collect();
        let new = self.new_record(job.key, generation, &job.meta);
        let made = self
            .place()
            .and_then(|(seal, at)| Some((at, encode_listed(seal, at, &new, &references).ok()?)));
        let Some((at, made)) = made else {
            return self.drop_job(Job::Commit(job), Refused::TooLarge);
        };
        let effect = Effect::Stored {
            charge: job.charge,
            large: Some((job.progress, listed)),
        };
        self.add_record(&new, (at, made), 0, Kind::Listed, effect);
    }

    /// What a large record lists: what was pushed, and what it inherits where nothing was pushed.
    fn listed(&self, job: &CommitJob) -> Vec<Extent> {
        let is_here = |extent: &Extent| {
            Arc::ptr_eq(&extent.source.directory, &self.directory)
                && extent.source.key == job.key
                && !extent.is_retired()
        };
        let mut listed: Vec<Extent> = job.progress.all();
        listed.retain(is_here);
        listed.sort_by_key(|extent| extent.from);
        remove_overlaps(&mut listed);
        for extent in job.inherited.iter().filter(|extent| is_here(extent)) {
            let behind = listed.partition_point(|other| other.from < extent.from);
            let is_free = (behind == 0 || listed[behind - 1].to() <= extent.from)
                && (listed.get(behind)).is_none_or(|other| extent.to() <= other.from);
            if is_free {
                listed.insert(behind, extent.clone());
            }
        }
        listed
    }

    /// Records in the segment how far the journal goes, if nothing else does.
    pub(super) fn mark(&mut self) {
        let is_told = self
            .active
            .as_ref()
            .is_none_or(|active| active.purged >= self.journal.last);
        if is_told || !self.has_room(listed_bytes(0, 0)) {
            return;
        }
        let new = self.new_record(MARK, 0, &[]);
        let made = self
            .place()
            .and_then(|(seal, at)| Some((at, encode_listed(seal, at, &new, &[]).ok()?)));
        if let Some((at, made)) = made {
            self.add_record(&new, (at, made), 0, Kind::Listed, Effect::Mark);
            self.flush();
        }
    }

    pub(in crate::directory) fn new_record<'a>(
        &self,
        key: Digest,
        generation: u64,
        meta: &'a [u8],
    ) -> NewRecord<'a> {
        NewRecord {
            key,
            generation,
            purged: self.journal.last,
            meta,
        }
    }

    /// Adds a record to the batch: its place, and its bytes as they are written there.
    pub(in crate::directory) fn add_record(
        &mut self,
        new: &NewRecord<'_>,
        (at, made): (u64, Vec<u8>),
        content_bytes: u64,
        kind: Kind,
        effect: Effect,
    ) {
        let entry = TableEntry {
            key: new.key,
            generation: new.generation,
            at: u32::try_from(at).unwrap_or(u32::MAX),
            bytes: u32::try_from(made.len()).unwrap_or(u32::MAX),
            content_bytes: u32::try_from(content_bytes).unwrap_or(u32::MAX),
            kind: Some(kind),
        };
        self.add(vec![Piece::Made(made)], entry, effect);
    }

    /// Adds an extent to the batch: header, content and padding.
    pub(in crate::directory) fn add_extent(
        &mut self,
        key: Digest,
        reference: &ExtentRef,
        header: Vec<u8>,
        blocks: Vec<Arc<[u8]>>,
        effect: Effect,
    ) {
        let entry = TableEntry {
            key,
            generation: reference.body.0,
            at: reference.at,
            bytes: u32::try_from(extent_bytes(reference.len)).unwrap_or(u32::MAX),
            content_bytes: reference.len,
            kind: None,
        };
        let content: usize = blocks.iter().map(|block| block.len()).sum();
        let padding = content.next_multiple_of(ALIGN_BYTES) - content;
        let mut pieces = vec![Piece::Made(header)];
        pieces.extend(blocks.into_iter().map(Piece::Content));
        pieces.push(Piece::Padding(padding));
        self.add(pieces, entry, effect);
    }

    /// Adds an item where its entry says, and zeros between it and the one before.
    fn add(&mut self, pieces: Vec<Piece>, entry: TableEntry, effect: Effect) {
        let end = self.place().map_or(0, |(_, end)| end);
        let gap = u64::from(entry.at).saturating_sub(end);
        self.batch.add(gap, pieces, entry, effect);
    }

    /// Whether a record may not be stored: purged meanwhile, or there is a newer one.
    fn is_outdated(&mut self, key: Digest, generation: u64) -> bool {
        self.directory.purges.refuse(key, generation)
            || self
                .batch
                .generation(key)
                .is_some_and(|there| there > generation)
            || self.is_superseded(key, generation)
    }

    /// Whether the record that the index knows is newer. It is read only if its segment holds
    /// anything newer at all.
    fn is_superseded(&mut self, key: Digest, generation: u64) -> bool {
        let directory = Arc::clone(&self.directory);
        let Some((place, _)) = directory.index.peek(key) else {
            return false;
        };
        let segment = directory.segments.in_slot(place.slot);
        let Some(segment) = segment.filter(|segment| segment.generation() > generation) else {
            return false;
        };
        let (offset, guess) = (place.offset(), place.class.bytes());
        let mode = ReadMode::Blocking;
        let mut buffer = Buffer::default();
        match reader::record(&directory, &segment, offset, guess, mode, &mut buffer) {
            Ok(found) => found.header.key == key && found.header.generation > generation,
            // which of the two is newer is not known: neither may be found
            Err(_) => {
                self.forget_older(key);
                true
            }
        }
    }
}

/// Blocks that follow each other.
struct Stretch<'a> {
    from: u64,
    len: u32,
    blocks: Vec<&'a [u8]>,
}

fn stretches(body: &[BodyBlock]) -> Vec<Stretch<'_>> {
    let mut stretches: Vec<Stretch<'_>> = Vec::new();
    for block in body.iter().filter(|block| !block.bytes.is_empty()) {
        let len = u32::try_from(block.bytes.len()).unwrap_or(u32::MAX);
        match stretches.last_mut() {
            Some(last)
                if last.from + u64::from(last.len) == block.from
                    && last.len.saturating_add(len) <= EXTENT_BYTES_MAX =>
            {
                last.len += len;
                last.blocks.push(&block.bytes);
            }
            _ => stretches.push(Stretch {
                from: block.from,
                len,
                blocks: vec![&block.bytes],
            }),
        }
    }
    stretches
}

/// A response may have been pushed twice in places; the first that was written stays.
fn remove_overlaps(listed: &mut Vec<Extent>) {
    let mut end = 0;
    listed.retain(|extent| {
        let is_free = extent.from >= end;
        if is_free {
            end = extent.to();
        }
        is_free
    });
}
