//! `weir trace make`.

use crate::messages::{Failure, give, tell};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::path::PathBuf;
use weir_trace::generator::{Figure, Measurement, Recipe, Unit};
use weir_trace::{Anonymisation, Meta, Writer};

/// The flags of `weir trace make`.
#[derive(Clone, Debug, Args)]
pub(crate) struct MakeFlags {
    /// What it is like
    #[arg(value_name = "PROFILE", value_parser = PossibleValuesParser::new(Recipe::names()))]
    profile: String,

    /// How many requests, instead of the profile's own length
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=Recipe::REQUESTS_MAX))]
    requests: Option<u64>,

    /// Seed: the same seed makes the same trace
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// File to write (Parquet); what has the name is replaced
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,

    /// Exit with 1 if a number differs from the published one
    #[arg(long)]
    check: bool,
}

/// Makes a trace, writes it, and prints how it compares.
///
/// # Errors
/// A number is not as published and `--check` was given (exit 1), or the file cannot be written
/// (3).
pub(super) fn make(flags: &MakeFlags) -> Result<(), Failure> {
    let name = &flags.profile;
    let recipe = Recipe::built_in(name).expect("the flag takes the names of recipes only");
    let requests = flags.requests.unwrap_or_else(|| recipe.requests());
    let measured = write(flags, &recipe, requests)?;
    let figures = measured.figures(recipe.published());
    give(&text(name, &measured, &figures))?;
    tell(&format!("trace: {}", flags.output.display()));
    let off = figures.iter().filter(|figure| !figure.holds()).count();
    if flags.check && off > 0 {
        let what = format!("the trace is not what `{name}` is calibrated to");
        let cause = format!("{off} of {} numbers are not as published", figures.len());
        let is_shorter = requests < recipe.requests();
        let hint =
            is_shorter.then(|| format!("a trace of {} requests is nearer", recipe.requests()));
        return Err(Failure::check_said_no(what, cause).hint_if(hint));
    }
    Ok(())
}

fn write(flags: &MakeFlags, recipe: &Recipe, requests: u64) -> Result<Measurement, Failure> {
    let meta = Meta {
        source: format!("weir trace make {} --requests {requests}", recipe.name()),
        // its hashes stand for no person
        anonymisation: Some(Anonymisation::Keyed),
        seed: Some(flags.seed),
        note: recipe
            .about()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" "),
        ..Meta::default()
    };
    let mut writer = Writer::create(&flags.output, meta)?;
    let mut measured = Measurement::new();
    for row in recipe.rows(requests, flags.seed) {
        measured.add(&row);
        writer.push(&row)?;
    }
    writer.finish()?;
    Ok(measured)
}

fn text(name: &str, measured: &Measurement, figures: &[Figure]) -> String {
    let mut text = format!("{name}: {}\n\n", totals(measured));
    let heads = [
        "quantity",
        "published",
        "made",
        "difference",
        "as published",
        "source",
    ];
    let mut lines = vec![heads.map(str::to_owned)];
    lines.extend(figures.iter().map(line));
    let widths: Vec<usize> = (0..heads.len())
        .map(|column| {
            lines
                .iter()
                .map(|line| line[column].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate();
        let padded: Vec<String> = cells
            .map(|(column, (cell, &width))| match column {
                1..=3 => format!("{cell:>width$}"),
                _ => format!("{cell:<width$}"),
            })
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    let off: Vec<&str> = figures
        .iter()
        .filter(|figure| !figure.holds())
        .map(|figure| figure.published.quantity.name())
        .collect();
    text.push_str(&format!("\nas published: {}\n", bounds(figures)));
    text.push_str(&if off.is_empty() {
        format!("all {} numbers are as published\n", figures.len())
    } else {
        format!(
            "{} of {} numbers are NOT as published: {}\n",
            off.len(),
            figures.len(),
            off.join("; ")
        )
    });
    text
}

/// What there is of everything; what the trace has no times to count by is left out.
fn totals(measured: &Measurement) -> String {
    let (targets, clients, servers) = measured.distinct();
    let counts = [
        (measured.rows(), "requests"),
        (targets as u64, "targets"),
        (clients as u64, "clients"),
        (servers as u64, "servers"),
        (measured.bytes(), "bytes received"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, of)| format!("{count} {of}")).collect();
    counts.join(", ")
}

/// How far figures may be off.
fn bounds(figures: &[Figure]) -> String {
    let mut bounds: Vec<String> = Vec::new();
    for Figure { published, .. } in figures {
        let bound = match (published.within, published.quantity.unit()) {
            (Some(share), _) => format!(
                "numbers with a bound of their own within {} %",
                share * 100.0
            ),
            (None, Unit::Percent) => format!("shares within {} points", Figure::POINTS_MAX),
            (None, _) => format!("other numbers within {} %", Figure::SHARE_MAX * 100.0),
        };
        if !bounds.contains(&bound) {
            bounds.push(bound);
        }
    }
    bounds.join(", ")
}

fn line(figure: &Figure) -> [String; 6] {
    let published = &figure.published;
    let unit = published.quantity.unit();
    let known = match published.most {
        Some(most) => format!(
            "{} to {}",
            number(published.value, unit),
            number(most, unit)
        ),
        None => number(published.value, unit),
    };
    let said = |value: Option<f64>| {
        value.map_or_else(
            || "not in this trace".to_owned(),
            |value| number(value, unit),
        )
    };
    [
        published.quantity.name().to_owned(),
        known,
        said(figure.made),
        figure.difference().map_or_else(String::new, |off| {
            format!(
                "{}{}",
                if off < 0.0 { "-" } else { "+" },
                number(off.abs(), unit)
            )
        }),
        if figure.holds() { "yes" } else { "NO" }.to_owned(),
        published.source.clone(),
    ]
}

fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Percent | Unit::Seconds => format!("{value:.2} {}", unit.as_str()),
        Unit::Bytes => format!("{value:.0} B"),
        Unit::Requests => format!("{value:.2}"),
        Unit::Targets => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(name: &str) -> (String, Vec<Figure>) {
        let recipe = Recipe::built_in(name).unwrap();
        let mut measured = Measurement::new();
        recipe.rows(3000, 1).for_each(|row| measured.add(&row));
        let figures = measured.figures(recipe.published());
        (text(name, &measured, &figures), figures)
    }

    #[test]
    fn report_marks_and_counts_every_figure_that_does_not_hold() {
        for name in Recipe::names() {
            let (text, figures) = made(name);
            let off = figures.iter().filter(|figure| !figure.holds()).count();
            assert_eq!(text.matches("  NO  ").count(), off, "{text}");
            let said = if off == 0 {
                "all ".to_owned()
            } else {
                format!("{off} of {} numbers are NOT", figures.len())
            };
            assert!(text.contains(&said), "{text}");
        }
    }

    #[test]
    fn report_contains_every_published_figure() {
        let (text, figures) = made("modem-1997");
        for figure in &figures {
            assert!(text.contains(figure.published.quantity.name()), "{text}");
        }
        assert!(
            text.contains("cookie") && text.contains("30.20 %"),
            "{text}"
        );
    }

    #[test]
    fn report_says_how_far_numbers_may_be_off_and_counts_what_the_trace_has() {
        let (text, _) = made("modem-1997");
        let bounds = "as published: shares within 2 points, other numbers within 5 %\n";
        assert!(text.contains(bounds), "{text}");
        assert!(text.contains(" clients, "), "{text}");
        let (text, figures) = made("rice-1999");
        assert_eq!(figures.len(), 5);
        let bounds = "as published: numbers with a bound of their own within 3 %\n";
        assert!(text.contains(bounds), "{text}");
        // it has no times to count servers by
        assert!(!text.contains(" servers"), "{text}");
    }
}
