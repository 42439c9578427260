//! What all instances of one filter share, and what is counted of them.

use crate::options::FilterOptions;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a filter may do, and what became of it.
#[derive(Debug)]
pub(crate) struct Setup {
    /// URLs of servers, by the name that the filter has for them.
    pub(crate) upstreams: BTreeMap<Vec<u8>, String>,
    /// Whether it may call functions about stored responses.
    pub(crate) objects: bool,
    /// Content of one message that may be held for the filter, bytes.
    pub(crate) body_bytes_max: usize,
    pub(crate) counts: Counts,
}

impl Setup {
    pub(crate) fn new(hold_bytes: usize, options: &FilterOptions) -> Self {
        Self {
            upstreams: options.upstreams.clone(),
            objects: options.objects,
            // a piece must fit
            body_bytes_max: hold_bytes.max(weir_extend::PIECE_BYTES_MAX),
            counts: Counts::default(),
        }
    }
}

/// What an operator should know.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Instances that ended or did not start.
    ended: AtomicU64,
    /// Changes of fields that only the proxy makes.
    reserved_fields: AtomicU64,
    /// Content that was to be changed and must not be.
    kept_content: AtomicU64,
    /// Lines of the log beyond the limit of one call.
    dropped_lines: AtomicU64,
    texts: Mutex<Texts>,
}

#[derive(Debug, Default)]
struct Texts {
    /// Why an instance ended last.
    last_end: String,
    /// The name of the reserved field that was to be changed last.
    last_reserved: String,
    /// The last line of the log that tells of trouble.
    last_warning: String,
}

impl Counts {
    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An instance has ended, or did not start.
    pub(crate) fn note_end(&self, reason: &str) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        reason.clone_into(&mut self.texts().last_end);
    }

    /// How many have.
    #[cfg(test)]
    pub(crate) fn ended(&self) -> u64 {
        self.ended.load(Ordering::Relaxed)
    }

    /// A change of a field was left out.
    pub(crate) fn note_reserved(&self, name: &str) {
        self.reserved_fields.fetch_add(1, Ordering::Relaxed);
        let mut texts = self.texts();
        if texts.last_reserved != name {
            name.clone_into(&mut texts.last_reserved);
        }
    }

    /// A change of content was left out.
    pub(crate) fn note_kept_content(&self) {
        self.kept_content.fetch_add(1, Ordering::Relaxed);
    }

    /// A line of the log was dropped.
    pub(crate) fn note_dropped_line(&self) {
        self.dropped_lines.fetch_add(1, Ordering::Relaxed);
    }

    /// The filter tells of trouble.
    pub(crate) fn note_warning(&self, line: &str) {
        line.clone_into(&mut self.texts().last_warning);
    }

    /// The last line that told of trouble, for the message that a filter does not start.
    pub(crate) fn last_warning(&self) -> Option<String> {
        let line = self.texts().last_warning.clone();
        (!line.is_empty()).then_some(line)
    }

    /// A line for each thing that happened.
    pub(crate) fn notes(&self) -> Vec<String> {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let texts = self.texts();
        let mut notes = Vec::new();
        let mut note = |counter: &AtomicU64, text: String| {
            if count(counter) > 0 {
                notes.push(format!("{} {text}", count(counter)));
            }
        };
        note(
            &self.ended,
            format!("instances ended; the last: {}", texts.last_end),
        );
        note(
            &self.reserved_fields,
            format!(
                "changes of fields were left out, which the proxy writes itself; the last: {}",
                texts.last_reserved
            ),
        );
        note(
            &self.kept_content,
            "changes of content were left out, which no-transform forbids".to_owned(),
        );
        note(
            &self.dropped_lines,
            "lines of its log were dropped".to_owned(),
        );
        notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_happened_is_noted() {
        let counts = Counts::default();
        assert!(counts.notes().is_empty() && counts.last_warning().is_none());
        counts.note_end("it trapped");
        counts.note_reserved("via");
        counts.note_reserved("host");
        let notes = counts.notes();
        assert_eq!(notes[0], "1 instances ended; the last: it trapped");
        assert!(notes[1].starts_with("2 changes") && notes[1].ends_with("host"));
        assert_eq!((notes.len(), counts.ended()), (2, 1));
    }
}
