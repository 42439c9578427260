//! What is known of a law without drawing: its mean and its ends.

use super::Shape;

pub(super) fn mean(shape: &Shape) -> Option<f64> {
    match shape {
        Shape::Constant(value) => Some(*value),
        Shape::Uniform { min, max } => Some(f64::midpoint(*min, *max)),
        Shape::Exponential { mean }
        | Shape::Normal { mean, .. }
        | Shape::LogNormal { mean, .. } => Some(*mean),
        Shape::Zipf { most } => Some(mean_of_zipf(f64::from(*most))),
        Shape::Pareto { alpha, least, most } => mean_of_pareto(*alpha, *least, *most),
        Shape::Mix(parts) => parts
            .iter()
            .map(|(share, part)| mean(part).map(|mean| share * mean))
            .sum(),
    }
}

pub(super) fn minimum(shape: &Shape) -> f64 {
    match shape {
        Shape::Constant(value) => *value,
        Shape::Uniform { min, .. } => *min,
        Shape::Normal { mean, deviation } => mean - 6.0 * deviation,
        Shape::LogNormal {
            mean,
            deviation: 0.0,
            ..
        } => *mean,
        Shape::Exponential { .. } | Shape::LogNormal { .. } => 0.0,
        Shape::Zipf { .. } => 1.0,
        Shape::Pareto { least, most, .. } => most.map_or(*least, |most| least.min(most)),
        Shape::Mix(parts) => parts
            .iter()
            .map(|(_, part)| minimum(part))
            .fold(f64::INFINITY, f64::min),
    }
}

pub(super) fn maximum(shape: &Shape) -> Option<f64> {
    match shape {
        Shape::Constant(value) => Some(*value),
        Shape::Uniform { max, .. } => Some(*max),
        Shape::Normal { mean, deviation } => Some(mean + 6.0 * deviation),
        Shape::LogNormal {
            mean, logarithm, ..
        } => (logarithm.1 == 0.0).then_some(*mean),
        Shape::Exponential { mean } => (*mean == 0.0).then_some(0.0),
        Shape::Zipf { most } => Some(f64::from(*most)),
        Shape::Pareto { most, .. } => *most,
        Shape::Mix(parts) => parts
            .iter()
            .map(|(_, part)| maximum(part))
            .try_fold(f64::NEG_INFINITY, |most, part| Some(most.max(part?))),
    }
}

/// `P(k) = ln((k+1)/k) / ln(N+1)`, so the mean is `N - ln(N!) / ln(N+1)`.
fn mean_of_zipf(most: f64) -> f64 {
    most - libm::lgamma(most + 1.0) / libm::log(most + 1.0)
}

/// With a maximum the tail above it counts as the maximum: the integral of `1 - F` up to it.
fn mean_of_pareto(alpha: f64, least: f64, most: Option<f64>) -> Option<f64> {
    match most {
        Some(most) if most <= least => Some(most),
        Some(most) if alpha == 1.0 => Some(least + least * libm::log(most / least)),
        Some(most) => {
            let rest = 1.0 - libm::pow(least / most, alpha - 1.0);
            Some(least + least / (alpha - 1.0) * rest)
        }
        None => (alpha > 1.0).then(|| alpha * least / (alpha - 1.0)),
    }
}
