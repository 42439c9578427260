#![expect(clippy::cast_possible_truncation, reason = "a reference of 64 bytes")]

use super::*;
use proptest::prelude::*;

fn span(from: u64, to: u64) -> ByteSpan {
    ByteSpan { from, to }
}

fn spans(runs: &[(u64, u64)]) -> ByteSpans {
    runs.iter().map(|&(from, to)| span(from, to)).collect()
}

#[track_caller]
fn check_insert(before: &[(u64, u64)], (from, to): (u64, u64), new: u64, after: &[(u64, u64)]) {
    let mut set = spans(before);
    assert_eq!(set.insert(span(from, to)), new);
    assert_eq!(set, spans(after));
    assert_eq!(set.len(), after.len());
}

#[test]
fn adjacent_runs_are_joined_and_separate_runs_stay_apart() {
    check_insert(&[(0, 5)], (5, 8), 3, &[(0, 8)]);
    check_insert(&[(0, 5)], (6, 8), 2, &[(0, 5), (6, 8)]);
    check_insert(&[(5, 8)], (0, 5), 5, &[(0, 8)]);
    check_insert(&[(5, 8)], (0, 4), 4, &[(0, 4), (5, 8)]);
    check_insert(&[(0, 2), (4, 6), (8, 9)], (2, 8), 4, &[(0, 9)]);
    check_insert(&[(0, 9)], (3, 5), 0, &[(0, 9)]);
    check_insert(&[(3, 5)], (0, 9), 7, &[(0, 9)]);
}

#[test]
fn empty_span_is_refused_and_adds_no_bytes() {
    assert_eq!(ByteSpan::new(5, 5), None);
    assert_eq!(ByteSpan::new(6, 5), None);
    assert_eq!(ByteSpan::new(4, 5), Some(span(4, 5)));
    assert_eq!(span(0, 5).overlap(span(5, 9)), None);
    assert_eq!(span(0, 6).overlap(span(5, 9)), Some(span(5, 6)));
    check_insert(&[(0, 2)], (5, 5), 0, &[(0, 2)]);
}

#[test]
fn remove_edge_never_splits_a_run() {
    let mut set = spans(&[(0, 9)]);
    assert_eq!(set.remove_edge(span(3, 5)), 0);
    assert_eq!(set.remove_edge(span(0, 2)), 2);
    assert_eq!(set.remove_edge(span(8, 12)), 1);
    assert_eq!(set, spans(&[(2, 8)]));
    assert_eq!(set.remove(span(3, 5)), 2);
    assert_eq!(set, spans(&[(2, 3), (5, 8)]));
}

/// The reference: a flag a byte.
const BYTES: u64 = 64;

fn reference_of(set: &ByteSpans) -> Vec<bool> {
    (0..BYTES)
        .map(|at| set.contains(span(at, at + 1)))
        .collect()
}

fn first(reference: &[bool], at: u64, wanted: bool) -> Option<u64> {
    (at..BYTES).find(|&at| reference[at as usize] == wanted)
}

proptest! {
    #[test]
    fn random_changes_match_a_reference_bitmap(
        changes in prop::collection::vec((any::<bool>(), 0..BYTES, 0..12_u64), 0..40),
        (from, len) in (0..BYTES, 0..30_u64),
    ) {
        let mut set = ByteSpans::new();
        let mut reference = vec![false; BYTES as usize];
        for (adds, from, len) in changes {
            let to = (from + len).min(BYTES);
            let bytes = &mut reference[from as usize..to as usize];
            let changed = bytes.iter().filter(|&&had| had != adds).count() as u64;
            bytes.fill(adds);
            let told = if adds { set.insert(span(from, to)) } else { set.remove(span(from, to)) };
            prop_assert_eq!(told, changed);
            prop_assert_eq!(&reference_of(&set), &reference);
            let apart = set.iter().zip(set.iter().skip(1)).all(|(run, next)| run.to < next.from);
            prop_assert!(apart && set.iter().all(|run| run.from < run.to), "{:?}", set);
        }
        let to = (from + len).min(BYTES);
        let within = &reference[from as usize..to as usize];
        let had = within.iter().filter(|&&had| had).count() as u64;
        prop_assert_eq!(set.overlap(span(from, to)), had);
        prop_assert_eq!(set.total(), reference.iter().filter(|&&had| had).count() as u64);
        prop_assert_eq!(set.run_end(from), first(&reference, from, false).unwrap_or(BYTES));
        prop_assert_eq!(set.next_present(from), first(&reference, from, true));
        let start = (0..from).rev().take_while(|&at| reference[at as usize]).last();
        prop_assert_eq!(set.run_start(from), start.unwrap_or(from));
        if let Some(within) = ByteSpan::new(from, to) {
            let gap = first(&reference, from, false).filter(|&gap| gap < to);
            let gap = gap.and_then(|gap| ByteSpan::new(gap, first(&reference, gap, true).unwrap_or(to).min(to)));
            prop_assert_eq!(set.first_missing(within), gap);
            prop_assert_eq!(set.contains(within), had == within.len());
        }
    }
}
