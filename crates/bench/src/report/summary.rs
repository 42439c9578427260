//! Who is better at what: a sentence, and a table with the best of each row marked.

use super::contest::{Contest, Contestant, clients, result};
use super::html::Html;
use super::measured::{self, Better, Measured};
use super::repetition::Repeated;
use super::source::Named;
use super::unit::{Unit, digits};

/// What is this close to the best is as good: a repetition on a quiet machine moves more.
const TIE: f64 = 0.02;

/// The same for shares, which differ by points.
const TIE_POINTS: f64 = 0.005;

/// One row: a value for each proxy, and whether it is among the best.
struct Row {
    measured: Measured,
    cells: Vec<Option<Cell>>,
}

#[derive(Clone, Copy)]
struct Cell {
    value: f64,
    /// From where to where repetitions went.
    range: Option<(f64, f64)>,
    /// What the workload offers, beside what was measured.
    offered: Option<f64>,
    is_best: bool,
}

/// The sentence and the table.
pub(super) fn write(html: &mut Html, contest: &Contest<'_>) {
    let chosen = contest.chosen();
    if chosen.is_empty() {
        return;
    }
    let rows: Vec<Row> = measured::ALL
        .iter()
        .map(|measured| row(*measured, &chosen))
        .filter(|row| row.cells.iter().any(Option::is_some))
        .collect();
    // a run that is not valid has no headline
    if let Some(sentence) = sentence(&chosen, &rows) {
        html.element("p", "lead", &sentence);
    }
    html.open("div", "wide");
    html.open(
        "table",
        if chosen.len() < 2 {
            "summary alone"
        } else {
            "summary"
        },
    );
    head(html, &chosen);
    html.open("tbody", "");
    for row in &rows {
        body(html, row, &chosen);
    }
    html.close();
    html.close();
    html.close();
    html.element("p", "note", &note(&chosen));
}

fn head(html: &mut Html, chosen: &[(&Contestant<'_>, &Named)]) {
    html.open("thead", "");
    html.open("tr", "");
    html.element("th", "", "");
    for (contestant, run) in chosen {
        html.open_with("th", &[("scope", "col"), ("style", &colour(contestant))]);
        html.element("span", "swatch", "");
        html.text(contestant.label);
        if !run.record.is_valid {
            html.element("span", "bad", " not valid");
        }
        html.close();
    }
    html.close();
    html.close();
}

fn body(html: &mut Html, row: &Row, chosen: &[(&Contestant<'_>, &Named)]) {
    let most = row
        .cells
        .iter()
        .flatten()
        .map(|cell| cell.value)
        .fold(0.0, f64::max);
    html.open("tr", "");
    html.open_with("th", &[("scope", "row")]);
    html.text(row.measured.name);
    html.close();
    for (cell, (contestant, _)) in row.cells.iter().zip(chosen) {
        let Some(cell) = cell else {
            html.element("td", "none", "–");
            continue;
        };
        let class = if cell.is_best { "best" } else { "" };
        html.open_with("td", &[("class", class), ("style", &colour(contestant))]);
        html.text(&row.measured.unit.write(cell.value));
        beside(html, row.measured.unit, cell);
        // a bar says nothing where there is no second one
        if chosen.len() < 2 {
            html.close();
            continue;
        }
        let width = if most > 0.0 {
            (cell.value / most * 100.0).clamp(0.0, 100.0)
        } else {
            0.0
        };
        let style = format!("width:{width:.1}%");
        html.open_with("span", &[("class", "bar"), ("style", &style)]);
        html.close();
        html.close();
    }
    html.close();
}

/// What stands beside the number: the range of repetitions, and what was offered.
fn beside(html: &mut Html, unit: Unit, cell: &Cell) {
    let mut words = String::new();
    if let Some((least, most)) = cell.range {
        words = format!(" ({} to {})", unit.write(least), unit.write(most));
    }
    if let Some(offered) = cell.offered {
        words = format!("{words} of {} offered", unit.write(offered));
    }
    if !words.is_empty() {
        html.element("span", "beside", &words);
    }
}

/// The custom property with a proxy's colour.
pub(super) fn colour(contestant: &Contestant<'_>) -> String {
    format!(
        "--c:var(--s{})",
        contestant.colour % super::palette::SERIES.len()
    )
}

fn row(measured: Measured, chosen: &[(&Contestant<'_>, &Named)]) -> Row {
    let repeated: Vec<Option<Repeated>> = chosen
        .iter()
        .map(|(contestant, run)| {
            let runs = contestant.repetitions(&run.record).into_iter();
            Repeated::of(runs.filter_map(|run| (measured.of)(contestant, &run.record)))
        })
        .collect();
    let values: Vec<Option<f64>> = repeated
        .iter()
        .map(|repeated| repeated.map(|repeated| repeated.median))
        .collect();
    // whoever is not valid is not the best of anything
    let of_valid = values
        .iter()
        .zip(chosen)
        .filter(|(_, (_, run))| run.record.is_valid)
        .filter_map(|(value, _)| *value);
    let best = match measured.better {
        Better::Less => of_valid.min_by(f64::total_cmp),
        Better::More => of_valid.max_by(f64::total_cmp),
    };
    let mut cells: Vec<Option<Cell>> = values
        .iter()
        .zip(&repeated)
        .zip(chosen)
        .map(|((value, repeated), (_, run))| {
            let value = (*value)?;
            let is_best = run.record.is_valid
                && best.is_some_and(|best| is_as_good(measured.unit, value, best));
            Some(Cell {
                value,
                range: repeated.and_then(|repeated| repeated.range),
                offered: measured::offered(&measured, &run.record),
                is_best,
            })
        })
        .collect();
    // where all that count are as good, nobody is the best
    let counted = cells
        .iter()
        .zip(chosen)
        .filter(|(_, (_, run))| run.record.is_valid);
    if counted
        .filter_map(|(cell, _)| cell.as_ref())
        .all(|cell| cell.is_best)
    {
        for cell in cells.iter_mut().flatten() {
            cell.is_best = false;
        }
    }
    Row { measured, cells }
}

fn is_as_good(unit: Unit, value: f64, best: f64) -> bool {
    if unit == Unit::Share {
        return (value - best).abs() < TIE_POINTS;
    }
    (value - best).abs() <= best.abs() * TIE
}

/// `None` if there is no valid run to speak of.
fn sentence(chosen: &[(&Contestant<'_>, &Named)], rows: &[Row]) -> Option<String> {
    let mut valid = chosen.iter().filter(|(_, run)| run.record.is_valid);
    let (contestant, run) = valid.next()?;
    if valid.next().is_none() {
        return Some(alone(contestant, run));
    }
    let parts: Vec<String> = rows
        .iter()
        .filter(|row| !row.measured.praise.is_empty())
        .filter_map(|row| praise(row, chosen))
        .collect();
    if parts.is_empty() {
        return None;
    }
    Some(format!("{}.", parts.join("; ")))
}

fn alone(contestant: &Contestant<'_>, run: &Named) -> String {
    let phase = result(&run.record);
    let time = phase.response_time.all.mean_us();
    let time = time.map_or_else(String::new, |time| {
        format!(" answered in {} on average", Unit::Time.write(time))
    });
    let ratio = super::contest::together(&run.record).hit_ratio();
    let ratio = ratio.filter(|_| run.record.subject.is_caching);
    let ratio = ratio.map_or_else(String::new, |ratio| {
        format!(
            " and spared the origin {} of the requests",
            Unit::Share.write(ratio)
        )
    });
    format!("{}{time}{ratio}.", contestant.label)
}

fn praise(row: &Row, chosen: &[(&Contestant<'_>, &Named)]) -> Option<String> {
    let compared: Vec<(&str, Cell)> = row
        .cells
        .iter()
        .zip(chosen)
        .filter(|(_, (_, run))| run.record.is_valid)
        .filter_map(|(cell, (contestant, _))| Some((contestant.label, (*cell)?)))
        .collect();
    let best: Vec<&(&str, Cell)> = compared.iter().filter(|(_, cell)| cell.is_best).collect();
    if best.is_empty() {
        let (_, cell) = compared.first()?;
        let value = row.measured.unit.write(cell.value);
        return Some(format!("no difference in {} ({value})", row.measured.name));
    }
    let values = best.iter().map(|(_, cell)| cell.value);
    let value = match row.measured.better {
        Better::Less => values.min_by(f64::total_cmp),
        Better::More => values.max_by(f64::total_cmp),
    };
    let value = row.measured.unit.write(value?);
    let names: Vec<&str> = best.iter().map(|(name, _)| *name).collect();
    Some(format!(
        "{} {} ({value})",
        listed(&names),
        row.measured.praise
    ))
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

fn note(chosen: &[(&Contestant<'_>, &Named)]) -> String {
    let Some((_, run)) = chosen.first() else {
        return String::new();
    };
    let phase = result(&run.record);
    let clients = clients(&run.record).map_or_else(String::new, |clients| {
        format!(" with {} clients", digits(clients))
    });
    let caching = if run.record.subject.is_caching {
        "caching"
    } else {
        "no caching"
    };
    let most = chosen
        .iter()
        .map(|(contestant, run)| contestant.repetitions(&run.record).len());
    let repeated = match most.max() {
        Some(several) if several > 1 => {
            format!(
                " Of up to {several} repetitions the median, and from where to where they went."
            )
        }
        _ => String::new(),
    };
    format!(
        "Runs{clients}, {caching}.{repeated} Response times and rates are of {}, ratios of all measured phases, \
         CPU, memory and disk of the whole run. Dots mark the best; what is within 2 % of it (ratios: half a point) is as good.",
        phase.name
    )
}
