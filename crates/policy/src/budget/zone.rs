//! Time zones as policies have them: offsets from UTC, made elsewhere from a database.

use alloc::boxed::Box;
use alloc::vec::Vec;
use weir_semantics::Timestamp;

/// Most changes of the offset that a zone has: two a year from 1970 to 2100, and some to spare. A
/// zone with more keeps the last ones.
pub const OFFSETS_MAX: usize = 512;

/// Seconds by which the local time of any zone differs from UTC at most; none exceeds 15 hours.
const OFFSET_S_MAX: i64 = 2 * 86_400;

/// A time zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zone {
    /// Seconds east of UTC before the first change.
    first_s: i32,
    /// When the offset changes, in order, and what it is from then on, seconds east of UTC.
    changes: Box<[(Timestamp, i32)]>,
}

impl Zone {
    /// A zone with the offset `first_s`, seconds east of UTC, until the first of `changes`, which
    /// each say from when on there is another one.
    #[must_use]
    pub fn new(first_s: i32, mut changes: Vec<(Timestamp, i32)>) -> Self {
        changes.sort_unstable_by_key(|change| change.0);
        let mut first_s = first_s;
        let surplus = changes.len().saturating_sub(OFFSETS_MAX);
        if let Some((_, offset_s)) = changes.drain(..surplus).next_back() {
            first_s = offset_s;
        }
        Self {
            first_s,
            changes: changes.into(),
        }
    }

    /// Coordinated Universal Time.
    #[must_use]
    pub fn utc() -> Self {
        Self::default()
    }

    /// What local clocks show at `at`, as seconds since 1970-01-01 00:00 of that zone.
    #[must_use]
    pub fn local_s(&self, at: Timestamp) -> i64 {
        let later = self.changes.partition_point(|change| change.0 <= at);
        let offset_s = match later.checked_sub(1) {
            Some(index) => self.changes[index].1,
            None => self.first_s,
        };
        at.0.saturating_add(i64::from(offset_s))
    }

    /// The first instant at which local clocks show `local_s` or, where they are moved past it,
    /// more.
    #[must_use]
    pub fn first_at(&self, local_s: i64) -> Timestamp {
        let shown = |span: &Span| span.shows(local_s) || span.start_s > span.at(local_s);
        let first = self.spans_near(local_s).find(shown);
        Timestamp(first.map_or(local_s, |span| span.at(local_s).max(span.start_s)))
    }

    /// The last instant at which they show `local_s`; as [`Self::first_at`] where they are moved
    /// past it.
    #[must_use]
    pub fn last_at(&self, local_s: i64) -> Timestamp {
        let shown = self.spans_near(local_s).filter(|span| span.shows(local_s));
        match shown.last() {
            Some(span) => Timestamp(span.at(local_s)),
            None => self.first_at(local_s),
        }
    }

    /// The spans of one offset each in which local clocks may show `local_s`, in order.
    fn spans_near(&self, local_s: i64) -> impl Iterator<Item = Span> {
        let (from_s, to_s) = (
            local_s.saturating_sub(OFFSET_S_MAX),
            local_s.saturating_add(OFFSET_S_MAX),
        );
        let changes = &self.changes;
        let next = changes.partition_point(|change| change.0.0 <= from_s);
        // the span that `from_s` is in has the change before that as its begin
        (next..=changes.len())
            .map(move |end| Span {
                start_s: match end.checked_sub(1) {
                    Some(index) => changes[index].0.0,
                    None => i64::MIN,
                },
                end_s: changes.get(end).map_or(i64::MAX, |change| change.0.0),
                offset_s: i64::from(match end.checked_sub(1) {
                    Some(index) => changes[index].1,
                    None => self.first_s,
                }),
            })
            .take_while(move |span| span.start_s <= to_s)
    }
}

/// A time with one offset.
struct Span {
    start_s: i64,
    end_s: i64,
    offset_s: i64,
}

impl Span {
    /// When clocks with this offset show `local_s`.
    const fn at(&self, local_s: i64) -> i64 {
        local_s.saturating_sub(self.offset_s)
    }

    const fn shows(&self, local_s: i64) -> bool {
        let at = self.at(local_s);
        self.start_s <= at && at < self.end_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Clocks are moved from 02:00 to 03:00 at 10 000 000, and from 03:00 to 02:00 at 20 000 000.
    fn zone() -> Zone {
        let changes = vec![(Timestamp(10_000_000), 7200), (Timestamp(20_000_000), 3600)];
        Zone::new(3600, changes)
    }

    #[test]
    fn local_time_that_clocks_skip_is_the_instant_at_which_they_are_moved() {
        let zone = zone();
        for skipped_s in [10_003_600, 10_004_000, 10_007_199, 10_007_200] {
            assert_eq!(zone.first_at(skipped_s), Timestamp(10_000_000));
            assert_eq!(zone.last_at(skipped_s), Timestamp(10_000_000));
        }
        assert_eq!(zone.first_at(10_003_599), Timestamp(9_999_999));
        assert_eq!(zone.first_at(10_007_201), Timestamp(10_000_001));
    }

    #[test]
    fn local_time_that_clocks_show_twice_has_a_first_and_a_last_instant() {
        let zone = zone();
        for shown_s in [20_003_600, 20_005_000, 20_007_199] {
            assert_eq!(zone.first_at(shown_s), Timestamp(shown_s - 7200));
            assert_eq!(zone.last_at(shown_s), Timestamp(shown_s - 3600));
        }
        assert_eq!(zone.first_at(20_003_599), zone.last_at(20_003_599));
        assert_eq!(zone.first_at(20_007_200), zone.last_at(20_007_200));
    }

    #[test]
    fn offset_changes_at_its_instant() {
        let zone = zone();
        for (at, expected) in [
            (0, 3600),
            (9_999_999, 10_003_599),
            (10_000_000, 10_007_200),
            (19_999_999, 20_007_199),
            (20_000_000, 20_003_600),
        ] {
            assert_eq!(zone.local_s(Timestamp(at)), expected, "{at}");
        }
    }

    #[test]
    fn zone_with_more_changes_than_the_limit_keeps_the_last_ones() {
        let changes = (0..600).map(|at| (Timestamp(i64::from(at)), at)).collect();
        let zone = Zone::new(-1, changes);
        assert_eq!(zone.changes.len(), OFFSETS_MAX);
        assert_eq!(zone.local_s(Timestamp(0)), 87, "the last that is left out");
        assert_eq!(zone.local_s(Timestamp(599)), 599 + 599);
    }
}
