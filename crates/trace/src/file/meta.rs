//! What a trace says about itself, in the metadata of its file.

use crate::error::Wrong;
use crate::row::words::words;
use parquet::file::metadata::KeyValue;
use serde::Serialize;
use std::collections::BTreeMap;

/// The version that is written. A newer one is refused, never guessed at; an older one lacks
/// columns, which are read as null.
///
/// | version | has as well |
/// | --- | --- |
/// | 2 | `node_choice`, `next_hop_choice` |
pub const VERSION: u32 = 2;

/// What `weir.format` says.
const FORMAT: &str = "weir-trace";

/// Where the trace comes from and what was done to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Meta {
    /// Version of the schema: [`VERSION`] where it is written.
    pub version: u32,
    /// Tool and format: `weir trace import, squid`.
    pub source: String,
    /// What became of names; `None` if the file does not say.
    pub anonymisation: Option<Anonymisation>,
    /// Which key hashed them: two traces with the same one can be compared. It does not disclose
    /// the key.
    pub key_id: Option<String>,
    /// The seed of a trace that was made up.
    pub seed: Option<u64>,
    /// Other remarks.
    pub note: String,
    /// What the source had and the trace has not: how many lines or packets, by reason.
    pub dropped: BTreeMap<String, u64>,
}

words! {
    /// How clients, servers, targets and entity tags are hidden.
    #[derive(Serialize)]
    #[serde(rename_all = "kebab-case")]
    Anonymisation {
        /// Only keyed hashes of them are there.
        Keyed = "keyed",
        /// Targets are there as text; hashes are of no key.
        None = "none",
    }
}

impl Default for Meta {
    fn default() -> Self {
        Self {
            version: VERSION,
            source: String::new(),
            anonymisation: None,
            key_id: None,
            seed: None,
            note: String::new(),
            dropped: BTreeMap::new(),
        }
    }
}

const DROPPED: &str = "weir.dropped.";

impl Meta {
    /// As Parquet keeps it.
    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        let pair = |name: &str, value: String| (name.to_owned(), value);
        let mut pairs = vec![
            pair("weir.format", FORMAT.into()),
            pair("weir.version", VERSION.to_string()),
            pair("weir.source", self.source.clone()),
        ];
        let anonymisation = self.anonymisation.map(|it| it.as_str().to_owned());
        let optional = [
            ("weir.anonymisation", anonymisation),
            ("weir.key_id", self.key_id.clone()),
            ("weir.seed", self.seed.map(|seed| seed.to_string())),
            (
                "weir.note",
                Some(self.note.clone()).filter(|note| !note.is_empty()),
            ),
        ];
        pairs.extend(
            optional
                .into_iter()
                .filter_map(|(name, value)| Some(pair(name, value?))),
        );
        let dropped = self.dropped.iter();
        pairs.extend(dropped.map(|(why, count)| (format!("{DROPPED}{why}"), count.to_string())));
        pairs
    }

    /// As a file has it. A file that says nothing of itself was written by something else, with our
    /// columns: that is a trace.
    pub(super) fn read(pairs: &[KeyValue]) -> Result<Self, Wrong> {
        let find = |name: &str| {
            let pair = pairs.iter().find(|pair| pair.key == name);
            pair.and_then(|pair| pair.value.as_deref())
        };
        let mut meta = Self {
            source: find("weir.source").unwrap_or("unknown").to_owned(),
            key_id: find("weir.key_id").map(str::to_owned),
            note: find("weir.note").unwrap_or_default().to_owned(),
            ..Self::default()
        };
        match find("weir.format") {
            Some(FORMAT) => {}
            Some(other) => {
                return Err(Wrong::usage(
                    format!("it is no trace but `{other}`"),
                    "`weir trace import` makes traces, and so does `weir trace make`",
                ));
            }
            None => return Ok(meta),
        }
        meta.version = number(find("weir.version"), "weir.version")?.unwrap_or(VERSION);
        if meta.version > VERSION {
            return Err(Wrong::usage(
                format!(
                    "it is of version {}; this program reads up to {VERSION}",
                    meta.version
                ),
                "use a newer weir",
            ));
        }
        meta.seed = number(find("weir.seed"), "weir.seed")?;
        let word = find("weir.anonymisation");
        let mut all = Anonymisation::ALL.iter().copied();
        meta.anonymisation = word.and_then(|word| all.find(|it| it.as_str() == word));
        for pair in pairs {
            if let Some(reason) = pair.key.strip_prefix(DROPPED) {
                let count = number(pair.value.as_deref(), &pair.key)?.unwrap_or(0);
                meta.dropped.insert(reason.to_owned(), count);
            }
        }
        Ok(meta)
    }
}

fn number<N: std::str::FromStr>(value: Option<&str>, name: &str) -> Result<Option<N>, Wrong> {
    let wrong = |value| Wrong::damaged(format!("`{name}` is `{value}`, which is no number"));
    value
        .map(|value| value.parse().map_err(|_| wrong(value)))
        .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Meta, Wrong> {
        let pairs: Vec<KeyValue> = pairs
            .iter()
            .map(|(name, value)| KeyValue::new((*name).to_owned(), (*value).to_owned()))
            .collect();
        Meta::read(&pairs)
    }

    #[test]
    fn trace_metadata_is_read_as_written() {
        let mut meta = Meta {
            source: "weir trace import, squid".into(),
            key_id: Some("0011".into()),
            seed: Some(u64::MAX),
            note: "a note\nof two lines".into(),
            ..Meta::default()
        };
        meta.dropped.insert("no target".to_owned(), 2);
        meta.dropped.insert("time is no number".to_owned(), 1);
        for anonymisation in [Some(Anonymisation::Keyed), Some(Anonymisation::None), None] {
            meta.anonymisation = anonymisation;
            let pairs = meta.pairs();
            let pairs: Vec<(&str, &str)> = pairs
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            assert_eq!(read(&pairs), Ok(meta.clone()));
        }
        assert_eq!(meta.dropped["no target"], 2);
    }

    fn check_refused(pairs: &[(&str, &str)], expected: &str) {
        let wrong = read(pairs).expect_err("it is refused");
        assert!(wrong.cause.contains(expected), "{wrong:?}");
        assert!(wrong.hint.is_some(), "{wrong:?}");
    }

    #[test]
    fn newer_version_or_other_format_is_refused_with_a_hint() {
        let trace = ("weir.format", FORMAT);
        for version in 1..=VERSION {
            let meta = read(&[trace, ("weir.version", &version.to_string())]);
            assert_eq!(meta.map(|meta| meta.version), Ok(version));
        }
        let newer = VERSION + 1;
        let refused = format!("version {newer};");
        check_refused(&[trace, ("weir.version", &newer.to_string())], &refused);
        check_refused(&[trace, ("weir.version", "one")], "`one`");
        check_refused(&[trace, ("weir.dropped.x", "")], "`weir.dropped.x`");
        check_refused(
            &[("weir.format", "weir-samples")],
            "no trace but `weir-samples`",
        );
    }

    #[test]
    fn file_of_another_program_is_accepted_with_unknown_source() {
        let meta = read(&[("pandas", "{}")]).expect("it is accepted");
        assert_eq!(meta.source, "unknown");
    }
}
