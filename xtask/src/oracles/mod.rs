//! `cargo xtask oracles --data DIR`: what we read from traces that others made, and what others
//! found in them.
//!
//! The traces are not ours to give away, so they are outside of this repository; beside them is a
//! `README.md` with tables of figures that independent programs computed. Every trace is imported
//! by the real binary, and every figure compared.

mod captures;
mod counts;
mod import;
mod ratios;
mod table;

use import::Source;
use serde_json::Value;
use std::path::{Path, PathBuf};
use xtask::failure::{During, Failure};
use xtask::program;
use xtask::workplace::Workplace;

/// What is compared, and with what.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    data: PathBuf,
    weir: Option<PathBuf>,
}

/// Imports everything and compares.
///
/// # Errors
/// A figure differs (exit 1), the options or the tables cannot be understood (2), or the outside
/// failed (3).
pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let options = parse(arguments)?;
    let weir = match options.weir {
        Some(weir) => weir,
        None => program::build_for_tests(&["-p", "weir-cli", "--bin", "weir"], "weir")?.into(),
    };
    let readme = options.data.join("README.md");
    let readme =
        std::fs::read_to_string(&readme).during(format_args!("read `{}`", readme.display()))?;
    let place = Workplace::make("oracles")?;
    let mut differences = Vec::new();
    let mut compared = 0;
    for source in import::sources(&options.data)? {
        let mut found = check(&weir, &source, &readme, place.path())?;
        compared += found.compared;
        println!("{:<34} {}", source.name(), found.remark());
        differences.append(&mut found.differences);
    }
    let mut captures = Comparison::default();
    captures::check(&options.data, &readme, &mut captures)?;
    compared += captures.compared;
    println!("{:<34} {}", "captures", captures.remark());
    differences.append(&mut captures.differences);
    if differences.is_empty() {
        println!("{compared} figures compared, all equal");
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{} of {compared} figures differ\n  {}",
        differences.len(),
        differences.join("\n  ")
    )))
}

/// What came of one trace.
#[derive(Debug, Default)]
struct Comparison {
    compared: usize,
    differences: Vec<String>,
}

impl Comparison {
    /// Compares one figure.
    fn compare(&mut self, trace: &str, figure: &str, expected: &str, found: &str) {
        self.compared += 1;
        if expected != found {
            let line = format!("{trace}: {figure}: {expected} expected, {found} found");
            self.differences.push(line);
        }
    }

    fn remark(&self) -> String {
        match self.differences.len() {
            0 => format!("{} figures equal", self.compared),
            differ => format!("{differ} of {} figures differ", self.compared),
        }
    }
}

/// The number at a place in JSON; 0 where there is none.
fn number(json: &Value, pointer: &str) -> u64 {
    let value = json.pointer(pointer);
    value.and_then(Value::as_u64).unwrap_or_default()
}

fn check(weir: &Path, source: &Source, readme: &str, place: &Path) -> Result<Comparison, Failure> {
    let mut found = Comparison::default();
    let imported = import::import(weir, source, place)?;
    counts::check(&imported, readme, &mut found)?;
    ratios::check(weir, &imported, readme, &mut found)?;
    Ok(found)
}

fn parse(arguments: &[String]) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let value = rest.next().map(PathBuf::from);
        match (name.as_str(), value) {
            ("--data", Some(value)) => options.data = value,
            ("--weir", Some(value)) => options.weir = Some(value),
            (_, None) => return Err(Failure::Usage(format!("`{name}` needs a value"))),
            _ => {
                let known = "--data DIR, --weir FILE";
                return Err(Failure::Usage(format!("`{name}` is none of {known}")));
            }
        }
    }
    if options.data.as_os_str().is_empty() {
        let needs = "where the traces and their README.md are: `--data DIR`";
        return Err(Failure::Usage(format!("it has to be told {needs}")));
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).ok()
    }

    #[test]
    fn options_are_parsed_and_incomplete_or_unknown_ones_are_refused() {
        let data = PathBuf::from("d");
        let weir = Some(PathBuf::from("w"));
        assert_eq!(
            read("--data d --weir w"),
            Some(Options {
                data: data.clone(),
                weir
            })
        );
        assert_eq!(read("--data d"), Some(Options { data, weir: None }));
        for bad in ["", "--data", "--weir w", "--date d"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn differing_figure_is_reported_with_expected_and_found_value() {
        let mut found = Comparison::default();
        found.compare("a.log", "rows", "1", "1");
        assert_eq!(found.remark(), "1 figures equal");
        found.compare("a.log", "bytes", "7", "8");
        assert_eq!(found.differences, ["a.log: bytes: 7 expected, 8 found"]);
        assert_eq!(found.remark(), "1 of 2 figures differ");
    }
}
