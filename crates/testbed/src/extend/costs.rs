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

/// CPU time of a request beside that of `base`: of the pairs of runs that were next to each other,
/// else of all runs.
pub(super) fn beside(record: &Record, case: &str, base: &str, cell: &str) -> Option<f64> {
    let pairs = &record.figures.pairs;
    let of = |case: &str, round: u32| {
        let mut these = pairs.iter().filter(|pair| pair.cell == cell);
        if case == BASELINE {
            return Some(1.0);
        }
        these
            .find(|pair| pair.case == case && pair.round == round)
            .map(|pair| pair.ratio)
    };
    let rounds = 1..=record.settings.rounds;
    let ratios = rounds.filter_map(|round| Some(of(case, round)? / of(base, round)?));
    if !pairs.is_empty() {
        return Spread::of(ratios).map(|ratio| ratio.median);
    }
    Some(cpu(record, case, cell)?.median / cpu(record, base, cell)?.median)
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
