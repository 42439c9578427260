//! Curves as a page: both pictures and their numbers, in one file that needs nothing else.

use super::drawing::{Ordinate, figure};
use super::outcome::{CurvePoint, Curves};
use weir_report::{escape, inline, palette};

/// The page.
#[must_use]
pub fn html(curves: &Curves) -> String {
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>Miss ratios: {name}</title>\
         <style>body{{font:15px sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}}\
         td,th{{text-align:right;padding:.1rem .7rem}}table{{border-collapse:collapse}}\
         tr:nth-child(even){{background:#f3f4f6}}.drawing{{width:600px;max-width:100%}}\
         @media (prefers-color-scheme: dark){{body{{background:#14171c;color:#e2e6eb}}\
         tr:nth-child(even){{background:#343a42}}{dark}}}</style></head><body>\n\
         <h1>Miss ratios</h1><p>{name}: {requests} requests for {bytes} bytes; {keys} keys{of}, {footprint} bytes.</p>\n",
        name = escape(&curves.trace),
        dark = palette::dark_rules(".drawing "),
        requests = curves.requests,
        bytes = curves.bytes,
        keys = curves.keys,
        of = if curves.sampled_share < 1.0 {
            " in the sample"
        } else {
            ""
        },
        footprint = curves.footprint_bytes,
    );
    for note in &curves.notes {
        page.push_str(&format!("<p>{}</p>\n", escape(note)));
    }
    page.push_str(&inline(&figure(curves, Ordinate::Requests)));
    page.push_str(&inline(&figure(curves, Ordinate::Bytes)));
    page.push_str(&table(curves));
    page.push_str("</body></html>\n");
    page
}

fn table(curves: &Curves) -> String {
    let mut text = "\n<table><tr><th>policy</th><th>how</th><th>bytes</th><th>miss ratio</th><th>byte miss ratio</th></tr>\n".to_owned();
    for curve in &curves.curves {
        for point in &curve.points {
            let (misses, bytes) = cells(point);
            text.push_str(&format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{misses}</td><td>{bytes}</td></tr>\n",
                escape(&curve.name),
                curve.method.as_str(),
                point.capacity_bytes,
            ));
        }
    }
    text + "</table>\n"
}

fn cells(point: &CurvePoint) -> (String, String) {
    let cell = |value: f64, error: Option<f64>| match error {
        None => format!("{value:.6}"),
        Some(error) => format!("{value:.4} ± {error:.4}"),
    };
    (
        cell(point.miss_ratio, point.miss_ratio_error),
        cell(point.byte_miss_ratio, point.byte_miss_ratio_error),
    )
}

#[cfg(test)]
mod tests {
    use super::super::drawing::svg;
    use super::super::outcome::{Curve, Method};
    use super::*;

    fn curves(points: Vec<CurvePoint>) -> Curves {
        Curves {
            trace: "<script>a</script>".to_owned(),
            keys_by: "first-size".to_owned(),
            admission: "always".to_owned(),
            is_by_count: false,
            requests: 10,
            bytes: 100,
            keys: 5,
            footprint_bytes: 50,
            sampled_share: 1.0,
            seed: None,
            least_miss_ratio: 0.5,
            least_byte_miss_ratio: 0.5,
            curves: vec![Curve {
                name: "lru".to_owned(),
                method: Method::StackDistances,
                points,
            }],
            notes: Vec::new(),
        }
    }

    #[test]
    fn trace_name_is_escaped_in_the_page() {
        let point = |bytes| CurvePoint::exact(bytes, 0.75, 0.8);
        for points in [vec![], vec![point(10)], vec![point(10), point(4000)]] {
            let page = html(&curves(points));
            assert!(!page.contains("<script"), "{page}");
            assert_eq!(page.matches("<svg").count(), 2);
            assert!(!page.contains("cannot be drawn"), "{page}");
        }
    }

    #[test]
    fn chart_shows_every_curve_by_name_and_its_error_band() {
        let mut all = curves(vec![
            CurvePoint::exact(10, 0.75, 0.8),
            CurvePoint::exact(4000, 0.6, 0.7),
        ]);
        let mut sampled = all.curves[0].clone();
        sampled.name = "sieve".to_owned();
        for point in &mut sampled.points {
            point.miss_ratio_error = Some(0.1);
        }
        all.curves.push(sampled);
        let picture = svg(&all, Ordinate::Requests);
        assert!(
            picture.contains("lru")
                && picture.contains("sieve")
                && picture.contains("never evicts")
        );
        assert_eq!(picture.matches("<polygon").count(), 1, "{picture}");
        assert_eq!(svg(&all, Ordinate::Bytes).matches("<polygon").count(), 0);
    }
}
