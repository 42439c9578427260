//! A comparison as people read it.

use crate::facts::Assumption;
use crate::results::compare::Comparison;
use crate::results::forecast;
use crate::results::outcome::{Connections, Outcome, ratio};
use crate::results::spread::Summary;
use std::fmt::{self, Write as _};

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", lifetimes(&self.run))?;
        write!(f, "{}", answers(&self.run))?;
        write!(f, "{}", Columns::of(self))?;
        write!(f, "{}", ends(&self.run))?;
        let (run, no_caches) = (&self.run.links, &self.no_caches.links);
        f.write_str(&forecast::written(run, no_caches, bytes))
    }
}

/// What was assumed about lifetimes; nothing where the trace has heads.
fn lifetimes(run: &Outcome) -> String {
    let of = |assumed: Assumption| run.assumed.get(assumed.as_str()).copied().unwrap_or(0);
    let said = |count: u64, consequence: &str| {
        let (count, all) = (grouped(count), grouped(run.requests.count));
        format!("{count} of {all} responses have no head in this trace: {consequence}\n")
    };
    match (of(Assumption::Lifetime), of(Assumption::NoLifetime)) {
        (0, 0) => String::new(),
        (0, count) => said(count, "none has a lifetime (--assume-lifetime)"),
        (count, _) => {
            let lifetime = duration(run.assumed_lifetime_s.unwrap_or(0));
            let fresh = format!("each is taken to be fresh for {lifetime} (--assume-lifetime)");
            said(count, &fresh)
        }
    }
}

/// In the largest unit in which it is a whole number.
fn duration(seconds: u32) -> String {
    let units = [(86_400, "d"), (3600, "h"), (60, "min")];
    let unit = units
        .into_iter()
        .find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
    let (unit, name) = unit.unwrap_or((1, "s"));
    format!("{} {name}", seconds / unit)
}

/// How requests were answered.
fn answers(run: &Outcome) -> String {
    let requests = &run.requests;
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _infallible = writeln!(text, "{name:<22} {value}");
    };
    line("requests", grouped(requests.count));
    line("hit ratio", percent(requests.hit_ratio()));
    line("byte hit ratio", percent(requests.byte_hit_ratio()));
    let part = |count| {
        format!(
            "{} ({})",
            grouped(count),
            percent(ratio(count, requests.count))
        )
    };
    line("delayed hits", part(requests.delayed_hits));
    line("collapsed", part(requests.collapsed));
    line("validated", part(requests.validated));
    line(
        "stored at the end",
        format!(
            "{} responses, {}; {} were evicted",
            grouped(run.stored),
            bytes(run.stored_bytes),
            grouped(run.evictions)
        ),
    );
    for (verdict, count) in &run.verdicts {
        line(&format!("  {verdict}"), part(*count));
    }
    text
}

/// One part of the latency.
type Part = fn(&Outcome) -> &Summary;

/// Three columns of numbers, with the gain of the first over the other two.
struct Columns {
    lines: Vec<[String; 4]>,
}

impl Columns {
    fn of(comparison: &Comparison) -> Self {
        let Comparison {
            run,
            no_proxy,
            no_caches,
        } = comparison;
        let all = [run, no_proxy, no_caches];
        let mut columns = Self {
            lines: vec![[
                String::new(),
                "this run".to_owned(),
                no_proxy.path.to_owned(),
                "proxy without caches".to_owned(),
            ]],
        };
        columns.amount("from servers", all, bytes, |it| {
            it.traffic.from_servers_bytes
        });
        columns.amount("  on the wire", all, bytes, |it| {
            it.traffic.from_servers_wire_bytes
        });
        columns.amount("to clients", all, bytes, |it| it.traffic.to_clients_bytes);
        columns.amount("  on the wire", all, bytes, |it| {
            it.traffic.to_clients_wire_bytes
        });
        columns.amount("that nobody got", all, bytes, |it| it.traffic.wasted_bytes);
        let parts: [(&str, Part); 4] = [
            ("set-up", |it| &it.latency.setup),
            ("request to response", |it| &it.latency.response),
            ("transfer", |it| &it.latency.transfer),
            ("latency", |it| &it.latency.total),
        ];
        for (name, part) in parts {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a mean of microseconds"
            )]
            columns.amount(&format!("{name}, mean"), all, time, |it| {
                part(it).mean_us.round() as u64
            });
            columns.amount("  median", all, time, |it| part(it).median_us);
            columns.amount("  90 %", all, time, |it| part(it).p90_us);
            columns.amount("  99 %", all, time, |it| part(it).p99_us);
        }
        columns.connections("client connections", all, |it| it.client_connections);
        columns.connections("server connections", all, |it| it.server_connections);
        columns
    }

    /// A line with what `run` has less than the others.
    fn amount(
        &mut self,
        name: &str,
        all: [&Outcome; 3],
        write: fn(u64) -> String,
        of: impl Fn(&Outcome) -> u64,
    ) {
        let [run, others @ ..] = all;
        let own = of(run);
        let [first, second] = others.map(|other| {
            let value = of(other);
            format!("{} ({})", write(value), gain(own, value))
        });
        self.lines
            .push([name.to_owned(), write(own), first, second]);
    }

    fn connections(
        &mut self,
        name: &str,
        all: [&Outcome; 3],
        of: impl Fn(&Outcome) -> Connections,
    ) {
        let all = all.map(of);
        let mut line = |name: &str, write: &dyn Fn(&Connections) -> String| {
            let [run, first, second] = [0, 1, 2].map(|at: usize| match all[at].requests {
                0 => "-".to_owned(),
                _ => write(&all[at]),
            });
            self.lines.push([name.to_owned(), run, first, second]);
        };
        line(&format!("{name} opened"), &|it| {
            format!("{} ({})", grouped(it.opened), percent(it.new_share()))
        });
        line("  most at once", &|it| grouped(it.open_max));
        line("  requests each", &|it| {
            format!("{:.1}", it.requests_each())
        });
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let lengths = self.lines.iter().map(|line| line[column].chars().count());
            lengths.max().unwrap_or(0)
        };
        let widths = [0, 1, 2, 3].map(width);
        writeln!(f)?;
        for line in &self.lines {
            write!(f, "{:<width$}", line[0], width = widths[0])?;
            for column in 1..4 {
                write!(f, "   {:>width$}", line[column], width = widths[column])?;
            }
            writeln!(f)?;
        }
        writeln!(f)
    }
}

/// How transfers ended, what was kept out, and what was assumed.
fn ends(run: &Outcome) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _infallible = writeln!(text, "{name:<34} {value}");
    };
    let aborts = &run.aborts;
    line("clients that left early", grouped(aborts.by_clients));
    line("responses cut by their server", grouped(aborts.by_servers));
    for (fate, count) in &aborts.fetches {
        line(
            &format!("  fetch without a reader: {fate}"),
            grouped(*count),
        );
    }
    line("parts kept", grouped(aborts.parts_kept));
    line("  bytes of them used again", bytes(aborts.completed_bytes));
    line(
        "furthest ahead of a reader",
        bytes(aborts.read_ahead_max_bytes),
    );
    for (why, count) in &run.not_admitted {
        line(&format!("not admitted: {why}"), grouped(*count));
    }
    if run.traffic.over_queue_limit > 0 {
        let count = grouped(run.traffic.over_queue_limit);
        line(
            "packets a real queue would drop",
            format!("{count}: times are too short"),
        );
    }
    if run.out_of_order > 0 {
        line("rows out of order", grouped(run.out_of_order));
    }
    for (what, count) in &run.assumed {
        line("assumed", format!("{what}; for {}", grouped(*count)));
    }
    text
}

/// By how much less the run has: negative, more.
fn gain(own: u64, other: u64) -> String {
    if other == 0 {
        return "-".to_owned();
    }
    let gain = 100.0 * (1.0 - own as f64 / other as f64);
    format!("{gain:+.1} %")
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// Thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn bytes(number: u64) -> String {
    let value = number as f64;
    match number {
        0..1000 => format!("{number} B"),
        1000..1_000_000 => format!("{:.1} kB", value / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.2} GB", value / 1e9),
    }
}

fn time(us: u64) -> String {
    let value = us as f64;
    match us {
        0..1000 => format!("{us} us"),
        1000..1_000_000 => format!("{:.1} ms", value / 1e3),
        _ => format!("{:.2} s", value / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare;
    use crate::settings::{Network, Settings};
    use weir_policy::Profile;
    use weir_trace::Row;

    #[test]
    fn number_is_grouped_and_rounded_with_its_unit() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(1_234_567), "1 234 567");
        assert_eq!(grouped(123), "123");
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1500), "1.5 kB");
        assert_eq!(time(2_450_000), "2.45 s");
        assert_eq!(gain(90, 100), "+10.0 %");
        assert_eq!(gain(110, 100), "-10.0 %");
        assert_eq!(gain(1, 0), "-");
    }

    #[test]
    fn table_prints_baselines_and_assumptions() {
        let row = |n: i64| Row {
            arrival_us: n * 60_000_000,
            target: 1,
            client: Some(1),
            max_age_s: Some(1000),
            received_bytes: Some(5000),
            ..Row::default()
        };
        let settings = Settings::of(Network::MODEM, Profile::Rfc9111);
        let text = compare(&settings, (0..3).map(row)).unwrap().to_string();
        for expected in [
            "no proxy, client's link",
            "proxy without caches",
            "hit ratio              66.67 %",
            "uri-miss",
            "no server: each target has its own; for 3",
            "to clients                       15.0 kB",
        ] {
            assert!(text.contains(expected), "{expected} in\n{text}");
        }
    }

    #[test]
    fn assumed_lifetime_is_printed_in_the_first_line() {
        let row = |n: i64| Row {
            arrival_us: n * 60_000_000,
            target: 1,
            received_bytes: Some(5000),
            ..Row::default()
        };
        let of = |assumed_lifetime_s| {
            let settings = Settings {
                assumed_lifetime_s,
                ..Settings::of(Network::MODEM, Profile::Rfc9111)
            };
            compare(&settings, (0..3).map(row)).unwrap().to_string()
        };
        let day = of(Some(86_400));
        let first =
            "3 of 3 responses have no head in this trace: each is taken to be fresh for 1 d";
        assert!(day.starts_with(first), "{day}");
        assert!(day.contains("hit ratio              66.67 %"), "{day}");
        let none = of(None);
        let first = "3 of 3 responses have no head in this trace: none has a lifetime";
        assert!(none.starts_with(first), "{none}");
        assert!(none.contains("hit ratio              0.00 %"), "{none}");
        assert!(of(Some(90)).contains("fresh for 90 s"));
    }
}
