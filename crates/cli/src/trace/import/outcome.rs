//! What was imported, as it is printed.

use crate::names;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use weir_trace::import::{Compression, Damage, Dropped, Format, Import, Span, Summary};
use weir_trace::{Anonymiser, Row, TraceMethod};

/// What was imported.
pub(super) struct Outcome {
    out: PathBuf,
    names: String,
    inputs: Vec<InputRead>,
    rows: Summary,
    dropped: Dropped,
    /// Rows that were put in the order of arrival.
    pub(super) moved: u64,
    /// Bytes of the trace.
    pub(super) written: u64,
}

/// An input, and what came of it.
struct InputRead {
    path: PathBuf,
    format: Format,
    compression: Compression,
    rows: u64,
    dropped: Dropped,
    /// What else was met, by name: packets, connections.
    met: Vec<(&'static str, u64)>,
    /// The first damage, and how much there is of it.
    damage: Option<(Damage, u64)>,
}

impl Outcome {
    pub(super) fn new(out: &Path, anonymiser: &Anonymiser, is_key_kept: bool) -> Self {
        Self {
            out: out.to_owned(),
            names: names::described(anonymiser, is_key_kept),
            inputs: Vec::new(),
            rows: Summary::default(),
            dropped: Dropped::default(),
            moved: 0,
            written: 0,
        }
    }

    /// What follows is of this input.
    pub(super) fn begin(&mut self, path: &Path, format: Format, compression: Compression) {
        self.inputs.push(InputRead {
            path: path.to_owned(),
            format,
            compression,
            rows: 0,
            dropped: Dropped::default(),
            met: Vec::new(),
            damage: None,
        });
    }

    /// A row of it.
    pub(super) fn add(&mut self, row: &Row) {
        self.rows.add(row);
        if let Some(input) = self.inputs.last_mut() {
            input.rows += 1;
        }
    }

    /// What of it cannot be read, and is left out.
    pub(super) fn skip(&mut self, damaged: Damage) {
        if let Some(input) = self.inputs.last_mut() {
            input.dropped.count(damaged.reason);
            let (_, count) = input.damage.get_or_insert((damaged, 0));
            *count += 1;
        }
    }

    /// It came to its end.
    pub(super) fn end(&mut self, rows: &dyn Import) {
        if let Some(input) = self.inputs.last_mut() {
            input.met = rows.met();
            input.dropped.add(rows.dropped());
            self.dropped.add(&input.dropped);
        }
    }

    /// What the trace says of where it comes from.
    pub(super) fn source(&self) -> String {
        let mut formats: Vec<_> = self.inputs.iter().map(|it| it.format.as_str()).collect();
        formats.dedup();
        format!("weir trace import, {}", formats.join(", "))
    }

    /// What was left out, by reason.
    pub(super) fn dropped(&self) -> BTreeMap<String, u64> {
        let dropped = self.dropped.iter();
        dropped
            .map(|(reason, count)| (reason.to_owned(), count))
            .collect()
    }

    /// What was left out, in words.
    pub(super) fn dropped_text(&self) -> String {
        dropped(&self.dropped)
    }

    /// As people read it.
    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n", self.out.display());
        let mut line = |name: &str, value: String| {
            if !value.is_empty() {
                // writing to a text does not fail
                let _done = writeln!(text, "  {name:<10} {value}");
            }
        };
        for input in &self.inputs {
            line("from", input.text());
            line("met", counts(input.met.iter().copied()));
            if let Some((first, count)) = &input.damage {
                line("damaged", format!("{count}; the first: {first}"));
            }
        }
        line("rows", self.rows.rows.to_string());
        line("dropped", dropped(&self.dropped));
        if let Some(span) = self.rows.arrivals {
            line("arrivals", span_text(&span));
        }
        if let Some(span) = self.rows.ends {
            line("ends", span_text(&span));
        }
        if self.moved > 0 {
            line(
                "moved",
                format!("{} rows, into the order of arrival", self.moved),
            );
        }
        line("clients", self.rows.client_count().to_string());
        line("received", self.received());
        let methods = self.rows.methods.iter();
        line(
            "methods",
            counts(methods.map(|(name, count)| (method(*name), *count))),
        );
        let statuses = self.rows.statuses.iter();
        line(
            "statuses",
            counts(statuses.map(|(code, count)| (status(*code), *count))),
        );
        line("names", self.names.clone());
        line("written", format!("{} bytes", self.written));
        text
    }

    fn received(&self) -> String {
        let bytes = self.rows.received_bytes;
        match self.rows.rows_without_size {
            0 => format!("{bytes} bytes"),
            unknown => format!("{bytes} bytes, and what {unknown} rows do not say"),
        }
    }

    /// As programs read it; one line.
    pub(super) fn json(&self) -> String {
        let inputs: Vec<Value> = self.inputs.iter().map(InputRead::json).collect();
        let methods = self.rows.methods.iter();
        let statuses = self.rows.statuses.iter();
        let object = json!({
            "out": self.out.display().to_string(),
            "bytes": self.written,
            "inputs": inputs,
            "rows": self.rows.rows,
            "moved": self.moved,
            "dropped": object(self.dropped.iter().map(|(reason, count)| (reason.to_owned(), count))),
            "dropped_total": self.dropped.total(),
            "arrivals": self.rows.arrivals.map(|span| span_json(&span)),
            "ends": self.rows.ends.map(|span| span_json(&span)),
            "clients": self.rows.client_count(),
            // beyond 2^64 it is a text, which no program rounds
            "received_bytes": u64::try_from(self.rows.received_bytes)
                .map_or_else(|_| json!(self.rows.received_bytes.to_string()), Value::from),
            "rows_without_size": self.rows.rows_without_size,
            "methods": object(methods.map(|(name, count)| (method(*name).to_owned(), *count))),
            "statuses": object(statuses.map(|(code, count)| (status(*code), *count))),
        });
        format!("{object}\n")
    }
}

impl InputRead {
    fn text(&self) -> String {
        let path = self.path.display();
        let compression = match self.compression {
            Compression::None | Compression::Unread(_) => "",
            Compression::Gzip => ", gzip",
            Compression::Zstd => ", zstd",
        };
        format!("{path} ({}{compression}), {} rows", self.format, self.rows)
    }

    fn json(&self) -> Value {
        let dropped = self.dropped.iter();
        json!({
            "path": self.path.display().to_string(),
            "format": self.format.as_str(),
            "rows": self.rows,
            "met": object(self.met.iter().map(|(name, count)| ((*name).to_owned(), *count))),
            "dropped": object(dropped.map(|(reason, count)| (reason.to_owned(), count))),
            "first_damage": self.damage.as_ref().map(|(first, _)| first.to_string()),
        })
    }
}

fn object(counts: impl Iterator<Item = (String, u64)>) -> Value {
    let object: Map<String, Value> = counts
        .map(|(name, count)| (name, Value::from(count)))
        .collect();
    Value::Object(object)
}

fn counts<N: std::fmt::Display>(counts: impl Iterator<Item = (N, u64)>) -> String {
    let each: Vec<String> = counts
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    each.join(", ")
}

fn dropped(dropped: &Dropped) -> String {
    match dropped.total() {
        0 => "nothing".to_owned(),
        total => format!("{total}: {}", counts(dropped.iter())),
    }
}

fn method(method: Option<TraceMethod>) -> &'static str {
    method.map_or("unknown", TraceMethod::as_str)
}

fn status(status: Option<u16>) -> String {
    status.map_or_else(|| "none".to_owned(), |code| code.to_string())
}

/// Seconds with the digits that are not zero.
fn seconds(us: u64) -> String {
    let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    let short = text.trim_end_matches('0').trim_end_matches('.');
    short.to_owned()
}

fn span_text(span: &Span) -> String {
    let order = if span.is_in_order {
        "in order"
    } else {
        "not in order"
    };
    let (first, last) = (span.first_us, span.last_us);
    let at = |us: i64| {
        let sign = if us < 0 { "-" } else { "" };
        format!("{sign}{}", seconds(us.unsigned_abs()))
    };
    format!(
        "{} s, from {} to {} since 1970, {order}",
        seconds(span.length_us()),
        at(first),
        at(last)
    )
}

fn span_json(span: &Span) -> Value {
    json!({
        "first_us": span.first_us,
        "last_us": span.last_us,
        "is_in_order": span.is_in_order,
    })
}
