//! Many caches beside one reading of the trace.
//!
//! The trace is read, and its keys are numbered, once; batches go to threads, each of which has
//! some of the caches. What waits for a thread is bounded, so memory does not grow with the trace.

use super::simulation::{Simulation, Totals};
use super::source::{Accesses, BATCH, Trace, TraceError};
use crate::hit_ratio::keys::{Access, KeyRule, Keys, NumberedRequest};
use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use weir_trace::Fault;

/// What a trace is, without a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Requests.
    pub requests: u64,
    /// The bytes of their requests.
    pub bytes: u64,
    /// Different keys.
    pub keys: u64,
    /// What these come to, bytes: room that a cache needs which never evicts.
    pub footprint_bytes: u64,
    /// The size of all responses, if they have the same, bytes.
    pub uniform_bytes: Option<u64>,
}

impl Summary {
    /// What a cache that never evicts would come to: every request but the first for its key is a
    /// hit.
    #[must_use]
    pub fn infinite(&self) -> Totals {
        Totals {
            requests: self.requests,
            hits: self.requests - self.keys,
            bytes: self.bytes,
            hit_bytes: self.bytes.saturating_sub(self.footprint_bytes),
            residents: self.keys,
            resident_bytes: self.footprint_bytes,
            ..Totals::default()
        }
    }

    fn count(&mut self, asked: &[NumberedRequest], keys: &Keys) {
        if self.requests == 0 {
            self.uniform_bytes = asked.first().map(|first| first.size_bytes);
        }
        for NumberedRequest { size_bytes, .. } in asked {
            self.bytes = self.bytes.saturating_add(*size_bytes);
            if self.uniform_bytes != Some(*size_bytes) {
                self.uniform_bytes = None;
            }
        }
        self.requests += asked.len() as u64;
        self.keys = u64::from(keys.count());
        self.footprint_bytes = keys.footprint_bytes();
    }
}

/// Reads the trace and calls `each` with every batch.
pub(crate) fn walk(
    trace: &dyn Trace,
    mut each: impl FnMut(&[Access]) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut reading: Box<dyn Accesses + '_> = trace.open()?;
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        batch.clear();
        reading.read(&mut batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        each(&batch)?;
    }
}

/// The same, with numbers for keys, and with what the trace is so far.
fn walk_numbered(
    trace: &dyn Trace,
    rule: KeyRule,
    mut each: impl FnMut(Vec<NumberedRequest>),
) -> Result<Summary, TraceError> {
    let mut summary = Summary::default();
    let mut keys = Keys::new(rule);
    walk(trace, |batch| {
        let mut numbered = Vec::with_capacity(batch.len());
        keys.number_all(batch, &mut numbered)
            .map_err(|error| TraceError {
                fault: Fault::Outside,
                what: format!("cannot simulate `{}`", trace.name()),
                cause: error.to_string(),
                hint: Some("draw a curve from a sample".to_owned()),
            })?;
        summary.count(&numbered, &keys);
        each(numbered);
        Ok(())
    })?;
    Ok(summary)
}

/// Reads the trace and says what it is.
///
/// # Errors
/// It cannot be read, or has too many keys.
pub fn survey(trace: &dyn Trace, rule: KeyRule) -> Result<Summary, TraceError> {
    walk_numbered(trace, rule, drop)
}

/// Something that gets every request in order.
pub(crate) trait Listener: Send {
    fn hear(&mut self, asked: &[NumberedRequest]);
}

impl Listener for Simulation {
    fn hear(&mut self, asked: &[NumberedRequest]) {
        self.ask_all(asked);
    }
}

/// Reads the trace once for all of the caches, on so many threads beside the one that reads.
///
/// # Errors
/// As [`survey`].
pub fn simulate(
    trace: &dyn Trace,
    rule: KeyRule,
    caches: &mut [Simulation],
    threads: NonZero<usize>,
) -> Result<Summary, TraceError> {
    let listeners = caches
        .iter_mut()
        .map(|cache| cache as &mut dyn Listener)
        .collect();
    broadcast(trace, rule, listeners, threads)
}

/// Batches that may wait for a thread.
const WAITING_MAX: usize = 8;

pub(crate) fn broadcast(
    trace: &dyn Trace,
    rule: KeyRule,
    mut listeners: Vec<&mut dyn Listener>,
    threads: NonZero<usize>,
) -> Result<Summary, TraceError> {
    // one cache on a thread of its own would only wait for the table of keys
    if listeners.len() <= 1 || threads.get() == 1 {
        return walk_numbered(trace, rule, |asked| {
            for listener in &mut listeners {
                listener.hear(&asked);
            }
        });
    }
    std::thread::scope(|scope| {
        let mut ways: Vec<SyncSender<Arc<Vec<NumberedRequest>>>> = Vec::new();
        for mut share in shares(listeners, threads.get()) {
            let (way, batches) = sync_channel::<Arc<Vec<NumberedRequest>>>(WAITING_MAX);
            ways.push(way);
            scope.spawn(move || {
                for batch in batches {
                    for listener in &mut share {
                        listener.hear(&batch);
                    }
                }
            });
        }
        walk_numbered(trace, rule, |asked| {
            let asked = Arc::new(asked);
            for way in &ways {
                // a thread that has ended has panicked, and the scope reports it at its end
                let _gone = way.send(Arc::clone(&asked));
            }
        })
    })
}

/// Dealt out in turn: neighbours, such as sizes of one algorithm, cost about the same.
fn shares(listeners: Vec<&mut dyn Listener>, threads: usize) -> Vec<Vec<&mut dyn Listener>> {
    let count = threads.min(listeners.len());
    let mut shares: Vec<Vec<&mut dyn Listener>> = (0..count).map(|_| Vec::new()).collect();
    for (index, listener) in listeners.into_iter().enumerate() {
        shares[index % count].push(listener);
    }
    shares
}
