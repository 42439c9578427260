//! Two traces of the same requests, side by side: where verdicts, bytes and times differ.
//!
//! A recording and the rows that a simulation of it wrote (`weir sim run --rows`), two recordings,
//! or the rows of two simulations. Both are read once, together. Rows at the same place are a pair
//! if their arrival and target agree. A row whose partner is not at its place waits: the n-th such
//! row of a target in one trace is the partner of the n-th in the other. Only rows that wait are
//! remembered.

mod join;
mod table;
#[cfg(test)]
mod tests;
mod times;
mod verdicts;

pub use join::WAITING_ROWS_MAX;
pub use table::text;
pub use times::{Times, TimesOfOne};
pub use verdicts::{VERDICTS_MAX, VerdictPair, Verdicts};

use super::error::{Fault, TraceError};
use super::file::meta::{Anonymisation, Meta};
use super::file::reader::Reader;
use super::{Column, Columns, Row};
use join::{Join, JoinEvent};
use serde::Serialize;

/// The columns that are looked at.
const COLUMNS: Columns = Columns::of(&[
    Column::arrival_us,
    Column::target,
    Column::verdict,
    Column::request_us,
    Column::response_us,
    Column::received_bytes,
    Column::next_hop_bytes,
]);

/// Examples of each kind of difference at most.
pub const EXAMPLES_MAX: usize = 1000;

/// How to compare.
#[derive(Clone, Copy, Debug)]
pub struct CompareSettings {
    /// Response times that differ by no more are equal, microseconds.
    pub tolerance_us: u64,
    /// Examples of each kind of difference, up to [`EXAMPLES_MAX`].
    pub examples: usize,
}

/// What differs. `A` is the first trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Differences {
    /// Rows.
    pub rows: Sides<u64>,
    /// Pairs of rows at the same place, with the same arrival and target.
    pub pairs_by_place: u64,
    /// Pairs of the n-th request of a target that had no partner at its place.
    pub pairs_by_target: u64,
    /// Rows that have no partner.
    pub without_partner: Sides<u64>,
    /// How requests were handled.
    pub verdicts: Verdicts,
    /// Content that clients received.
    pub received: Bytes,
    /// As much of it as did not come from a next hop for its request: what was received less what
    /// came from there.
    pub from_cache: Bytes,
    /// Pairs that differ in either.
    pub different_bytes: u64,
    /// From request to response head.
    pub response_times: Times,
    /// The first pairs that differ, each as an example of the first kind that holds.
    pub examples: Examples,
}

/// One value of each trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sides<T> {
    /// Of the first.
    pub a: T,
    /// Of the second.
    pub b: T,
}

/// Bytes of pairs, where both rows say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// Pairs with as many bytes.
    pub equal: u64,
    /// Pairs with other numbers.
    pub different: u64,
    /// Pairs of which not both rows say.
    pub unsaid: u64,
    /// The sums of those that say.
    pub bytes: Sides<u64>,
}

/// Pairs that differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Examples {
    /// In their verdicts.
    pub verdicts: Vec<Example>,
    /// Not in these, but in bytes.
    pub bytes: Vec<Example>,
    /// In neither, but in their response times.
    pub times: Vec<Example>,
}

/// A pair of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Example {
    /// What both requested.
    pub target: u64,
    /// The rows.
    pub rows: Sides<ExampleRow>,
}

/// What is compared of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExampleRow {
    /// Its place in its trace, from 0.
    pub row: u64,
    /// When it arrived, microseconds since 1970.
    pub arrival_us: i64,
    /// How it was handled.
    pub verdict: Option<String>,
    /// Content that the client received.
    pub received_bytes: Option<u64>,
    /// As much of it as did not come from the next hop for this request.
    pub from_cache_bytes: Option<u64>,
    /// From request to response head.
    pub response_time_us: Option<u64>,
}

/// What must be equal, if anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aspect {
    /// Verdicts.
    Verdicts,
    /// Bytes, received and from caches.
    Bytes,
    /// Response times, within the tolerance.
    Times,
}

impl Differences {
    /// Pairs that differ in this.
    #[must_use]
    pub const fn different(&self, aspect: Aspect) -> u64 {
        match aspect {
            Aspect::Verdicts => self.verdicts.different,
            Aspect::Bytes => self.different_bytes,
            Aspect::Times => self.response_times.different,
        }
    }

    /// Whether any pair says this on both sides: where none does, nothing was compared.
    #[must_use]
    pub const fn is_said(&self, aspect: Aspect) -> bool {
        match aspect {
            Aspect::Verdicts => self.verdicts.equal + self.verdicts.different > 0,
            Aspect::Bytes => self.received.equal + self.received.different > 0,
            Aspect::Times => self.response_times.equal + self.response_times.different > 0,
        }
    }
}

/// What is remembered of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    place: u64,
    arrival_us: i64,
    target: u64,
    verdict: Option<verdicts::Word>,
    received_bytes: Option<u64>,
    from_cache_bytes: Option<u64>,
    response_time_us: Option<u64>,
}

/// Compares two traces.
///
/// # Errors
/// One cannot be read; or their names were hidden with different keys, too many rows wait for a
/// partner, or there are too many different verdicts (usage).
pub fn compare(
    a: &Reader,
    b: &Reader,
    settings: CompareSettings,
) -> Result<Differences, TraceError> {
    check_keys(a.meta(), b.meta())?;
    let mut comparison = Comparison::new(settings);
    let (mut rows_a, mut rows_b) = (a.rows(COLUMNS), b.rows(COLUMNS));
    for place in 0.. {
        let row_a = rows_a.next().transpose()?;
        let row_b = rows_b.next().transpose()?;
        if row_a.is_none() && row_b.is_none() {
            break;
        }
        comparison.add(place, row_a.as_ref(), row_b.as_ref())?;
    }
    Ok(comparison.finish())
}

/// Hashes of two keys are never equal, whatever they are of.
fn check_keys(a: &Meta, b: &Meta) -> Result<(), TraceError> {
    let key = |meta: &Meta| match meta.anonymisation {
        Some(Anonymisation::None) => Some("none".to_owned()),
        Some(Anonymisation::Keyed) | None => meta.key_id.clone(),
    };
    match (key(a), key(b)) {
        (Some(a), Some(b)) if a != b => Err(refused(
            format!("their names are hashed with different keys, {a} and {b}"),
            "give both traces one key: `--record-key-file`, or `--key-file` of `weir trace import`",
        )),
        _ => Ok(()),
    }
}

fn refused(cause: String, hint: &str) -> TraceError {
    TraceError {
        fault: Fault::Usage,
        what: "cannot compare these traces".to_owned(),
        cause,
        hint: Some(hint.to_owned()),
    }
}

/// Two traces on the way.
#[derive(Debug)]
struct Comparison {
    settings: CompareSettings,
    join: Join,
    verdicts: verdicts::Counter,
    times: times::Counter,
    /// All other differences so far.
    found: Differences,
}

impl Comparison {
    fn new(settings: CompareSettings) -> Self {
        Self {
            settings,
            join: Join::new(WAITING_ROWS_MAX),
            verdicts: verdicts::Counter::default(),
            times: times::Counter::new(settings.tolerance_us),
            found: Differences::default(),
        }
    }

    /// The rows at one place; `None` behind the end of a trace.
    fn add(&mut self, place: u64, a: Option<&Row>, b: Option<&Row>) -> Result<(), TraceError> {
        self.found.rows.a += u64::from(a.is_some());
        self.found.rows.b += u64::from(b.is_some());
        let a = a.map(|row| self.compared(place, row)).transpose()?;
        let b = b.map(|row| self.compared(place, row)).transpose()?;
        if let (Some(a), Some(b)) = (&a, &b)
            && (a.arrival_us, a.target) == (b.arrival_us, b.target)
        {
            self.found.pairs_by_place += 1;
            self.pair(a, b);
            return Ok(());
        }
        // no row of a trace that is over will be the partner of one of these
        let may_wait = a.is_some() && b.is_some();
        for (row, is_a) in [(a, true), (b, false)] {
            let Some(row) = row else { continue };
            match self.join.partner(row, is_a, may_wait) {
                JoinEvent::With(partner) => {
                    self.found.pairs_by_target += 1;
                    let (a, b) = if is_a { (row, partner) } else { (partner, row) };
                    self.pair(&a, &b);
                }
                JoinEvent::Waits => {}
                JoinEvent::WithNone => {
                    *self.found.without_partner.of(is_a) += 1;
                }
                JoinEvent::Full => return Err(too_many_wait(place)),
            }
        }
        Ok(())
    }

    fn compared(&mut self, place: u64, row: &Row) -> Result<Compared, TraceError> {
        let verdict = match &row.verdict {
            Some(word) => Some(self.verdicts.word(word).ok_or_else(too_many_verdicts)?),
            None => None,
        };
        let next_hop = row.received_bytes.zip(row.next_hop_bytes);
        let response = row.request_us.zip(row.response_us);
        Ok(Compared {
            place,
            arrival_us: row.arrival_us,
            target: row.target,
            verdict,
            received_bytes: row.received_bytes,
            from_cache_bytes: next_hop.map(|(received, came)| received.saturating_sub(came)),
            response_time_us: response.map(|(from, to)| to.saturating_sub(from)),
        })
    }

    fn pair(&mut self, a: &Compared, b: &Compared) {
        let is_other_verdict = self.verdicts.pair(a.verdict, b.verdict);
        let found = &mut self.found;
        let is_other_received = found.received.pair(a.received_bytes, b.received_bytes);
        let is_other_cached = found
            .from_cache
            .pair(a.from_cache_bytes, b.from_cache_bytes);
        let is_other_bytes = is_other_received || is_other_cached;
        found.different_bytes += u64::from(is_other_bytes);
        let is_other_time = self.times.pair(a.response_time_us, b.response_time_us);
        let examples = if is_other_verdict {
            &mut found.examples.verdicts
        } else if is_other_bytes {
            &mut found.examples.bytes
        } else if is_other_time {
            &mut found.examples.times
        } else {
            return;
        };
        if examples.len() < self.settings.examples.min(EXAMPLES_MAX) {
            examples.push(Example {
                target: a.target,
                rows: Sides {
                    a: a.example(&self.verdicts),
                    b: b.example(&self.verdicts),
                },
            });
        }
    }

    fn finish(self) -> Differences {
        let waiting = self.join.waiting();
        let without_partner = self.found.without_partner;
        Differences {
            without_partner: Sides {
                a: without_partner.a + waiting.a,
                b: without_partner.b + waiting.b,
            },
            verdicts: self.verdicts.finish(),
            response_times: self.times.finish(),
            ..self.found
        }
    }
}

impl Compared {
    fn example(&self, verdicts: &verdicts::Counter) -> ExampleRow {
        ExampleRow {
            row: self.place,
            arrival_us: self.arrival_us,
            verdict: self.verdict.map(|word| verdicts.text(word).to_owned()),
            received_bytes: self.received_bytes,
            from_cache_bytes: self.from_cache_bytes,
            response_time_us: self.response_time_us,
        }
    }
}

impl Bytes {
    /// Counts a pair; whether it differs.
    fn pair(&mut self, a: Option<u64>, b: Option<u64>) -> bool {
        let (Some(a), Some(b)) = (a, b) else {
            self.unsaid += 1;
            return false;
        };
        self.bytes.a = self.bytes.a.saturating_add(a);
        self.bytes.b = self.bytes.b.saturating_add(b);
        self.equal += u64::from(a == b);
        self.different += u64::from(a != b);
        a != b
    }
}

fn too_many_wait(place: u64) -> TraceError {
    refused(
        format!("at row {place}, {WAITING_ROWS_MAX} rows wait for a partner"),
        "compare traces of the same requests, in the same order, or shorter parts of them",
    )
}

fn too_many_verdicts() -> TraceError {
    refused(
        format!("they have more than {VERDICTS_MAX} different verdicts"),
        "leave the column `verdict` out of one of them",
    )
}
