//! The metrics of a running weir.

use super::get::{connect, get_of};
use std::io;
use std::net::SocketAddr;

/// What its admin interface says; it answers only a request that names it.
pub(crate) fn text(admin: SocketAddr) -> io::Result<String> {
    let answer = get_of(&mut connect(admin)?, &admin.to_string(), "/metrics")?;
    Ok(String::from_utf8_lossy(&answer.body).into_owned())
}

/// The sum of a metric over its labels; `None` if it is not there.
pub(crate) fn sum(text: &str, name: &str) -> Option<u64> {
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let is_it = rest.starts_with([' ', '{']);
        let value = rest.rsplit(' ').next()?.parse::<f64>().ok();
        value.filter(|_| is_it)
    });
    values.map(whole).reduce(|sum, value| sum + value)
}

/// The buckets of a histogram of seconds without labels: limits, microseconds, of which the last is
/// the largest number, and how many values are at or below each. Empty if it is not there.
pub(crate) fn buckets_us(text: &str, name: &str) -> Vec<(u64, u64)> {
    let begin = format!("{name}_bucket{{le=\"");
    let buckets = text.lines().filter_map(|line| {
        let (limit, rest) = line.strip_prefix(&begin)?.split_once("\"} ")?;
        let limit_us = match limit {
            "+Inf" => u64::MAX,
            limit => whole((limit.parse::<f64>().ok()? * 1e6).round()),
        };
        let count = rest.split(' ').next()?.parse::<f64>().ok()?;
        Some((limit_us, whole(count)))
    });
    buckets.collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count or a gauge of bytes or entries"
)]
fn whole(value: f64) -> u64 {
    value.max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_their_limits_in_microseconds_and_their_counts() {
        let text = "weir_t_seconds_sum 9.0\nweir_t_seconds_bucket{le=\"0.000128\"} 2\nweir_t_seconds_bucket{le=\"67.108864\"} 3\nweir_t_seconds_bucket{le=\"+Inf\"} 4\n";
        let expected = [(128, 2), (67_108_864, 3), (u64::MAX, 4)];
        assert_eq!(buckets_us(text, "weir_t_seconds"), expected);
        assert_eq!(buckets_us(text, "weir_t"), []);
    }

    #[test]
    fn metric_is_matched_by_its_whole_name_and_summed_over_labels() {
        let text = "weir_disk_entries_total 9\nweir_disk_entries{dir=\"0\"} 2\nweir_disk_entries{dir=\"1\"} 3\n";
        assert_eq!(sum(text, "weir_disk_entries"), Some(5));
        assert_eq!(sum(text, "weir_disk_loading"), None);
    }
}
