//! The text format of Prometheus, 0.0.4, out of OpenMetrics 1.0.
//!
//! The values are the same, line by line. The name of a family of counters ends in `_total` there,
//! units are in names alone, and there is no mark at the end.

/// The same numbers in the older format.
pub(super) fn of_open_metrics(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + (4 << 10));
    // a family's help stands before its type, which says what the family is called
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap_or((rest, "untyped"));
            let end = if kind == "counter" { "_total" } else { "" };
            if let Some((_, help)) = help.take_if(|(of, _)| *of == name) {
                out.extend(["# HELP ", name, end, " ", help, "\n"]);
            }
            out.extend(["# TYPE ", name, end, " ", kind, "\n"]);
        } else if !line.starts_with('#') {
            out.extend([line, "\n"]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_called_total_and_units_and_the_end_are_left_out() {
        let text = "# HELP sent_bytes Bytes sent.\n# TYPE sent_bytes counter\n\
                    # UNIT sent_bytes bytes\nsent_bytes_total 7\n\
                    # HELP open Connections # open.\n# TYPE open gauge\nopen{of=\"a # b\"} 1\n\
                    # HELP time_seconds Times.\n# TYPE time_seconds histogram\n\
                    # UNIT time_seconds seconds\ntime_seconds_sum 0.5\n# EOF\n";
        let expected = "# HELP sent_bytes_total Bytes sent.\n# TYPE sent_bytes_total counter\n\
                        sent_bytes_total 7\n\
                        # HELP open Connections # open.\n# TYPE open gauge\nopen{of=\"a # b\"} 1\n\
                        # HELP time_seconds Times.\n# TYPE time_seconds histogram\n\
                        time_seconds_sum 0.5\n";
        assert_eq!(of_open_metrics(text), expected);
    }
}
