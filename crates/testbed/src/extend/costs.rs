//! What requests cost, of the runs of a record.

use super::Record;
use super::cases::BASELINE;
use super::cpu::HIT_256K;
use super::transcoder::TranscoderSet;
use crate::peers::Run;
use crate::record::markdown::ratio;
use weir_measure::quantile::Spread;

/// Instructions of a hit of this size.
pub(super) fn instructions(record: &Record, case: &str, content_bytes: u64) -> Option<f64> {
    let mut counts = record.figures.counts.iter();
    let count = counts.find(|it| it.case == case && it.content_bytes == content_bytes)?;
    Some(ratio(count.instructions, count.requests))
}

/// CPU time of a request, microseconds.
pub(super) fn cpu(record: &Record, case: &str, cell: &str) -> Option<Spread> {
    of(record, case, cell, Run::cpu_us_per_request)
}

/// CPU time of a hit of 256 KiB that would copy its content once, microseconds: without a module,
/// and a copy. There is no such hit without a module.
pub(super) fn copying_hit(record: &Record) -> Option<f64> {
    let copy = Spread::of(record.figures.copies_us.iter().copied())?;
    Some(cpu(record, BASELINE, HIT_256K)?.median + copy.median)
}

/// A number of the runs that passed every check.
pub(super) fn of(
    record: &Record,
    case: &str,
    cell: &str,
    number: impl Fn(&Run) -> f64,
) -> Option<Spread> {
    let runs = record.figures.runs.iter();
    let sound = runs.filter(|run| run.trouble.is_none());
    let these = sound.filter(|run| run.contender == case && run.cell == cell);
    Spread::of(these.map(number))
}

/// A number of the sets of runs of hits that passed every check.
pub(super) fn of_sets(
    record: &Record,
    number: impl Fn(&TranscoderSet) -> Option<f64>,
) -> Option<Spread> {
    let sets = record.figures.transcoder.iter();
    let sound = sets.filter(|set| set.trouble.is_none());
    Spread::of(sound.filter_map(number))
}
