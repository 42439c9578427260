//! Which of the two text formats a scraper gets.

use axum::http::{HeaderMap, header};

/// A format of the answer to `/metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::admin) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, 0.0.4.
    Text,
}

impl Format {
    /// OpenMetrics for those who name it, and prefer nothing to it (RFC 9110 section 12.5.1); the
    /// text format, which browsers show and every scraper reads, for all others.
    pub(in crate::admin) fn accepted(headers: &HeaderMap) -> Self {
        let weight = |media_type: &str| {
            let fields = headers.get_all(header::ACCEPT).iter();
            let ranges = fields.filter_map(|field| field.to_str().ok());
            let ranges = ranges.flat_map(|field| field.split(','));
            let mut weights = ranges.filter_map(|range| weight_of(range, media_type));
            weights.next().unwrap_or(0)
        };
        let open_metrics = weight("application/openmetrics-text");
        if open_metrics > 0 && open_metrics >= weight("text/plain") {
            Self::OpenMetrics
        } else {
            Self::Text
        }
    }

    /// The value of `Content-Type`.
    pub(in crate::admin) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The weight of a range in thousandths, if it is of this media type; without a `q` it is 1000, and
/// with one that is no number 0.
fn weight_of(range: &str, media_type: &str) -> Option<u32> {
    let mut parts = range.split(';').map(str::trim);
    parts
        .next()
        .filter(|name| name.eq_ignore_ascii_case(media_type))?;
    let q = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    let Some(q) = q else {
        return Some(1000);
    };
    let q: f32 = q.parse().unwrap_or(0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 1000"
    )]
    Some((q.clamp(0.0, 1.0) * 1000.0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(accept: &[&'static str]) -> Format {
        let mut headers = HeaderMap::new();
        for value in accept {
            let value = header::HeaderValue::from_static(value);
            headers.append(header::ACCEPT, value);
        }
        Format::accepted(&headers)
    }

    #[test]
    fn open_metrics_is_for_those_who_name_it_and_prefer_nothing_to_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                          version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for accept in [
            &[prometheus][..],
            &["application/openmetrics-text"],
            &["text/html", "Application/OpenMetrics-Text; version=1.0.0"],
            &["text/plain, application/openmetrics-text"],
            &["text/plain;q=0.2, application/openmetrics-text;q=0.2"],
        ] {
            assert_eq!(accepted(accept), Format::OpenMetrics, "{accept:?}");
        }
    }

    #[test]
    fn all_others_get_the_text_format() {
        for accept in [
            &[][..],
            &["*/*"],
            &["text/html,application/xhtml+xml,*/*;q=0.8"],
            &["text/plain;version=0.0.4"],
            &["application/openmetrics-text;q=0, */*"],
            &["application/openmetrics-text;q=none"],
            &["application/openmetrics-text;q=NaN"],
            &["application/openmetrics-text;q=0.5, text/plain"],
            &["application/openmetrics-text-of-another-kind"],
        ] {
            assert_eq!(accepted(accept), Format::Text, "{accept:?}");
        }
    }
}
