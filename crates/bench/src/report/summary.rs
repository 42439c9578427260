//! The best proxies: a sentence, and a table with the best of each row marked.

use super::comparison::{Comparison, ProxyRuns, clients, mean_us, result};
use super::median_range::MedianRange;
use super::metric::{self, Metric};
use super::source::RecordFile;
use weir_report::{Html, Unit, digits};

/// A value this close to the best is as good: repetitions on a quiet machine differ more.
const TIE: f64 = 0.02;

/// The same where a run was not repeated, so that nothing says how far repetitions go: single runs
/// of one program on a machine that does other work were up to 9 % apart.
const TIE_OF_SINGLE_RUNS: f64 = 0.10;

/// The same for shares, which differ by points.
const TIE_POINTS: f64 = 0.005;

/// One row: a value for each proxy, and whether it is among the best.
struct Row {
    metric: Metric,
    cells: Vec<Option<Cell>>,
}

#[derive(Clone, Copy)]
struct Cell {
    value: f64,
    /// From where to where repetitions went.
    range: Option<(f64, f64)>,
    /// The smallest difference that the measurement can show.
    resolution: f64,
    /// What the workload offers, beside what was measured.
    offered: Option<f64>,
    is_valid: bool,
    is_best: bool,
}

/// The sentence and the table.
pub(super) fn write(html: &mut Html, comparison: &Comparison<'_>) {
    let chosen = comparison.chosen();
    if chosen.is_empty() {
        return;
    }
    let rows: Vec<Row> = metric::ALL
        .iter()
        .map(|metric| row(*metric, &chosen))
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

fn head(html: &mut Html, chosen: &[(&ProxyRuns<'_>, &RecordFile)]) {
    html.open("thead", "");
    html.open("tr", "");
    html.element("th", "", "");
    for (proxy, run) in chosen {
        html.open_with("th", &[("scope", "col"), ("style", &proxy.style())]);
        html.element("span", "swatch", "");
        html.text(proxy.label);
        if !run.record.is_valid {
            html.element("span", "bad", " not valid");
        }
        html.close();
    }
    html.close();
    html.close();
}

fn body(html: &mut Html, row: &Row, chosen: &[(&ProxyRuns<'_>, &RecordFile)]) {
    let most = row
        .cells
        .iter()
        .flatten()
        .map(|cell| cell.value)
        .fold(0.0, f64::max);
    html.open("tr", "");
    html.row_head(row.metric.name);
    for (cell, (proxy, _)) in row.cells.iter().zip(chosen) {
        let Some(cell) = cell else {
            html.element("td", "none", "–");
            continue;
        };
        let class = if cell.is_best { "best" } else { "" };
        html.open_with("td", &[("class", class), ("style", &proxy.style())]);
        html.text(&row.metric.unit.write(cell.value));
        beside(html, row.metric.unit, cell);
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

fn row(metric: Metric, chosen: &[(&ProxyRuns<'_>, &RecordFile)]) -> Row {
    let cell = |(proxy, run): &(&ProxyRuns<'_>, &RecordFile)| {
        let runs = proxy.repetitions(&run.record).into_iter();
        let repeated = MedianRange::of(runs.filter_map(|run| (metric.of)(proxy, &run.record)))?;
        Some(Cell {
            value: repeated.median,
            range: repeated.range,
            resolution: metric::resolution(&metric, &run.record),
            offered: metric::offered(&metric, &run.record),
            is_valid: run.record.is_valid,
            is_best: false,
        })
    };
    let mut cells: Vec<Option<Cell>> = chosen.iter().map(cell).collect();
    // a run that is not valid is not the best of anything
    let valid = || cells.iter().flatten().filter(|cell| cell.is_valid);
    let best = metric.better.of(valid().map(|cell| cell.value));
    let best = valid().find(|cell| Some(cell.value) == best).copied();
    // where all that count are as good, none is the best
    let is_best = |cell: &Cell| best.is_some_and(|best| is_as_good(metric.unit, cell, &best));
    let has_worse = valid().any(|cell| !is_best(cell));
    for cell in cells.iter_mut().flatten() {
        cell.is_best = cell.is_valid && has_worse && is_best(cell);
    }
    Row { metric, cells }
}

/// Is the difference to the best within that of repetitions, or of the measurement itself?
fn is_as_good(unit: Unit, cell: &Cell, best: &Cell) -> bool {
    let apart = (cell.value - best.value).abs();
    if apart < cell.resolution.max(best.resolution) {
        return true;
    }
    if let (Some((least, most)), Some((least_of_best, most_of_best))) = (cell.range, best.range)
        && least <= most_of_best
        && least_of_best <= most
    {
        return true;
    }
    if unit == Unit::Share {
        return apart < TIE_POINTS;
    }
    let is_repeated = cell.range.is_some() && best.range.is_some();
    let tie = if is_repeated { TIE } else { TIE_OF_SINGLE_RUNS };
    apart <= best.value.abs() * tie
}

/// `None` if there is no valid run to speak of.
fn sentence(chosen: &[(&ProxyRuns<'_>, &RecordFile)], rows: &[Row]) -> Option<String> {
    let mut valid = chosen.iter().filter(|(_, run)| run.record.is_valid);
    let (proxy, run) = valid.next()?;
    if valid.next().is_none() {
        return Some(alone(proxy, run));
    }
    let parts: Vec<String> = rows
        .iter()
        .filter(|row| !row.metric.praise.is_empty())
        .filter_map(|row| praise(row, chosen))
        .collect();
    if parts.is_empty() {
        return None;
    }
    Some(format!("{}.", parts.join("; ")))
}

fn alone(proxy: &ProxyRuns<'_>, run: &RecordFile) -> String {
    let time = mean_us(&run.record).map_or_else(String::new, |time| {
        format!(" answered in {} on average", Unit::Time.write(time))
    });
    let ratio = super::comparison::together(&run.record).hit_ratio();
    let ratio = ratio.filter(|_| run.record.subject.is_caching);
    let ratio = ratio.map_or_else(String::new, |ratio| {
        format!(
            " and spared the origin {} of the requests",
            Unit::Share.write(ratio)
        )
    });
    format!("{}{time}{ratio}.", proxy.label)
}

fn praise(row: &Row, chosen: &[(&ProxyRuns<'_>, &RecordFile)]) -> Option<String> {
    let valid = || {
        let cells = row.cells.iter().zip(chosen);
        cells.filter(|(_, (_, run))| run.record.is_valid)
    };
    let compared: Vec<(&str, Cell)> = valid()
        .filter_map(|(cell, (proxy, _))| Some((proxy.label, (*cell)?)))
        .collect();
    let (unit, name) = (row.metric.unit, row.metric.name);
    let without = valid().filter(|(cell, _)| cell.is_none());
    let without: Vec<&str> = without.map(|(_, (proxy, _))| proxy.label).collect();
    let without = match without.as_slice() {
        [] => String::new(),
        labels => format!(", not measured for {}", listed(labels)),
    };
    if let [(label, cell)] = compared.as_slice() {
        let value = unit.write(cell.value);
        return Some(format!("{name} of {label}: {value}{without}"));
    }
    let best: Vec<&(&str, Cell)> = compared.iter().filter(|(_, cell)| cell.is_best).collect();
    if best.is_empty() {
        let values = || compared.iter().map(|(_, cell)| cell.value);
        let least = unit.write(values().min_by(f64::total_cmp)?);
        let most = unit.write(values().max_by(f64::total_cmp)?);
        let value = if least == most {
            least
        } else {
            format!("{least} to {most}")
        };
        return Some(format!(
            "no difference beyond the spread in {name} ({value}){without}"
        ));
    }
    let value = row
        .metric
        .better
        .of(best.iter().map(|(_, cell)| cell.value));
    let value = unit.write(value?);
    let names: Vec<&str> = best.iter().map(|(name, _)| *name).collect();
    Some(format!(
        "{} {} ({value}){without}",
        listed(&names),
        row.metric.praise
    ))
}

fn listed(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

fn note(chosen: &[(&ProxyRuns<'_>, &RecordFile)]) -> String {
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
        .map(|(proxy, run)| proxy.repetitions(&run.record).len());
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
         CPU, memory and disk of the whole run. Dots mark the best. As good is what is within {:.0} % of it (ratios: half a point) or has a range that overlaps with its range; without \
         repetitions what is within {:.0} %.",
        phase.name,
        100.0 * TIE,
        100.0 * TIE_OF_SINGLE_RUNS
    )
}
