//! Curves as they are recorded.

use serde::{Deserialize, Serialize};

/// The curves of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The trace's name.
    pub trace: String,
    /// What a response is that comes with another size, a word of
    /// [`KeyRule`](crate::hit_ratio::keys::KeyRule).
    pub keys_by: String,
    /// The rule of admission, in the words of a sweep.
    pub admission: String,
    /// Whether each response counts as one byte.
    pub is_by_count: bool,
    /// Requests of the whole trace.
    pub requests: u64,
    /// The bytes of their requests.
    pub bytes: u64,
    /// Different keys: of the trace, or of the sample.
    pub keys: u64,
    /// What the keys of the trace come to, bytes; estimated from a sample.
    pub footprint_bytes: u64,
    /// The share of keys that was looked at; 1 is all.
    pub sampled_share: f64,
    /// Picks the sample.
    pub seed: Option<u64>,
    /// What misses in a cache that never evicts; estimated from a sample.
    pub least_miss_ratio: f64,
    /// The same of bytes.
    pub least_byte_miss_ratio: f64,
    /// In the order of the flags, reference lines last.
    pub curves: Vec<Curve>,
    /// What a reader has to know.
    pub notes: Vec<String>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The policy, or what else it is.
    pub name: String,
    /// How it was made.
    pub method: Method,
    /// By rising size.
    pub points: Vec<CurvePoint>,
}

/// How a curve was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// From distances in the stack, all sizes at once.
    StackDistances,
    /// By a simulation of each size.
    Simulation,
    /// From distances in the stack of a sample.
    SampledDistances,
    /// By a simulation of each size, scaled down to a sample.
    SampledSimulation,
    /// Belady's MIN: nothing is better.
    Optimum,
    /// PFOO-L: nothing is better, and the optimum may be worse.
    Bound,
}

impl Method {
    /// As tables have it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::StackDistances => "exact",
            Self::Simulation => "simulated",
            Self::SampledDistances | Self::SampledSimulation => "sampled",
            Self::Optimum => "optimum",
            Self::Bound => "bound",
        }
    }
}

/// A size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Of the cache, bytes of content.
    pub capacity_bytes: u64,
    /// Requests that miss, of all.
    pub miss_ratio: f64,
    /// Bytes that miss, of all.
    pub byte_miss_ratio: f64,
    /// The true ratio should be at most so far off, 19 times out of 20; `None` where nothing is
    /// estimated.
    pub miss_ratio_error: Option<f64>,
    /// The same of bytes.
    pub byte_miss_ratio_error: Option<f64>,
}

impl CurvePoint {
    pub(super) const fn exact(capacity_bytes: u64, miss_ratio: f64, byte_miss_ratio: f64) -> Self {
        Self {
            capacity_bytes,
            miss_ratio,
            byte_miss_ratio,
            miss_ratio_error: None,
            byte_miss_ratio_error: None,
        }
    }
}

impl Curves {
    /// The largest of the stated errors of requests, and of bytes; `None` where nothing is
    /// estimated.
    #[must_use]
    pub fn largest_errors(&self) -> Option<(f64, f64)> {
        let points = self.curves.iter().flat_map(|curve| &curve.points);
        let errors = points.filter_map(|it| it.miss_ratio_error.zip(it.byte_miss_ratio_error));
        errors.reduce(|most, it| (most.0.max(it.0), most.1.max(it.1)))
    }
}
