//! What is counted, and what it says of all targets.

use crate::hit_ratio::mrc::{GROUPS, STUDENT_T, group};
use serde::Serialize;

/// A count of all targets, as a sample says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Estimated {
    /// What it comes to.
    pub value: f64,
    /// Half of the interval that should hold the truth 19 times out of 20; 0 without a sample.
    pub error: f64,
}

impl Estimated {
    /// The same in parts of `whole`; 0 of nothing.
    #[must_use]
    pub fn of(self, whole: f64) -> Self {
        match whole > 0.0 {
            true => Self {
                value: self.value / whole,
                error: self.error / whole,
            },
            false => Self::default(),
        }
    }

    /// What is left of 1.
    #[must_use]
    pub fn complement(self) -> Self {
        Self {
            value: 1.0 - self.value,
            ..self
        }
    }
}

/// Counts of hot targets, or of a group of others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Requests whose response is in no cache of the node that the client asks.
    pub(super) misses_here: u64,
    /// Those that another node is asked for.
    pub(super) lateral_requests: u64,
    /// Content of these, bytes.
    pub(super) lateral_bytes: u64,
    /// Those that the origin is asked for.
    pub(super) origin_requests: u64,
    /// Content of these, bytes.
    pub(super) origin_bytes: u64,
}

/// Counts of all that is simulated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    hot: Counts,
    groups: [Counts; GROUPS as usize],
}

impl Tally {
    /// The counts of a target.
    pub(super) fn of(&mut self, number: u32, is_hot: bool) -> &mut Counts {
        match is_hot {
            true => &mut self.hot,
            false => &mut self.groups[group(number) as usize],
        }
    }

    /// What one count comes to, of all targets.
    pub(super) fn estimate(&self, one_in: u32, count: impl Fn(&Counts) -> u64) -> Estimated {
        let groups = self.groups.each_ref().map(|it| count(it) as f64);
        estimate(count(&self.hot) as f64, &groups, one_in)
    }

    /// By how much a count is greater than `other`'s, of the same requests.
    pub(super) fn excess(
        &self,
        other: &Self,
        one_in: u32,
        count: impl Fn(&Counts) -> u64,
    ) -> Estimated {
        let excess = |of: &Counts, other: &Counts| count(of) as f64 - count(other) as f64;
        let mut groups = [0.0; GROUPS as usize];
        for (place, (of, other)) in groups.iter_mut().zip(self.groups.iter().zip(&other.groups)) {
            *place = excess(of, other);
        }
        estimate(excess(&self.hot, &other.hot), &groups, one_in)
    }

    /// Both together.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut sum = self.clone();
        sum.hot.add(&other.hot);
        for (counts, other) in sum.groups.iter_mut().zip(&other.groups) {
            counts.add(other);
        }
        sum
    }
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.misses_here += other.misses_here;
        self.lateral_requests += other.lateral_requests;
        self.lateral_bytes += other.lateral_bytes;
        self.origin_requests += other.origin_requests;
        self.origin_bytes += other.origin_bytes;
    }
}

/// What the hot targets and one in `one_in` of the others say: each group stands for ten times as
/// many targets as it has. A sample that is a large part of all says more, by the correction for
/// finite populations.
fn estimate(hot: f64, groups: &[f64; GROUPS as usize], one_in: u32) -> Estimated {
    let (count, times) = (f64::from(GROUPS), f64::from(one_in));
    let mean = groups.iter().sum::<f64>() / count;
    let squares: f64 = groups.iter().map(|value| (value - mean).powi(2)).sum();
    let deviation = (squares / (count - 1.0)).sqrt();
    let of_sample = count * times * STUDENT_T * deviation / count.sqrt();
    Estimated {
        value: hot + times * count * mean,
        error: of_sample * (1.0 - times.recip()).sqrt(),
    }
}
