//! The tables of a record, as Markdown: a row a case.

use super::cases::{BASELINE, CASES, Case};
use super::counts::{LARGE_BYTES, SMALL_BYTES};
use super::cpu::HIT_256K;
use super::transcoder::{HitTimes, IMAGES_PER_S, TranscoderSet};
use super::{Record, costs, table5, targets};
use crate::peers::{FORWARD_1K, HIT_1K, Run};
use crate::record::markdown::{self, COULD_NOT, TARGETS, bytes, list, row, table};

pub(super) fn render(record: &Record) -> String {
    let (settings, cores) = (&record.settings, &record.figures.cores);
    let mut out = format!(
        "{}\\\n{} rounds of {} s; weir on core {}, clients and origin on core {}\n\n",
        markdown::origin(record, "\\\n"),
        settings.rounds,
        settings.seconds,
        cores.server,
        cores.load
    );
    markdown::versions(&mut out, record);
    hits(&mut out, record);
    forwards(&mut out, record);
    large(&mut out, record);
    table5::render(&mut out, record);
    read_ahead(&mut out, record);
    transcoder(&mut out, record);
    list(&mut out, TARGETS, targets::judge(record));
    list(&mut out, COULD_NOT, troubles(record));
    out
}

/// What a hit of 1 KiB costs: the table that documents begin with.
pub(crate) fn hits(out: &mut String, record: &Record) {
    let title = "### A hit of 1 KiB";
    cost_table(out, record, title, HIT_1K, Some(SMALL_BYTES));
}

fn forwards(out: &mut String, record: &Record) {
    let title = "### A forwarded request of 1 KiB";
    cost_table(out, record, title, FORWARD_1K, None);
}

/// The row of a hit that copies its content: the sum of two measured times.
const COPYING: &str = "no module, and a copy of the content: the sum";

fn large(out: &mut String, record: &Record) {
    let title = "### A hit of 256 KiB";
    cost_table(out, record, title, HIT_256K, Some(LARGE_BYTES));
}

fn cost_table(out: &mut String, record: &Record, title: &str, cell: &str, counted: Option<u64>) {
    let rows = CASES.iter().filter_map(|case| {
        let instructions = counted.and_then(|size| costs::instructions(record, case.name(), size));
        let cpu = costs::cpu(record, case.name(), cell);
        if instructions.is_none() && cpu.is_none() {
            return None;
        }
        let base = counted.and_then(|size| costs::instructions(record, BASELINE, size));
        let beside_none = costs::beside(record, case.name(), BASELINE, cell);
        let p99 = costs::of(record, case.name(), cell, Run::p99_us);
        Some(row([
            case.name().to_owned(),
            cell_of(instructions, 0),
            beside(instructions, base),
            cell_of(cpu.as_ref().map(|cpu| cpu.median), 2),
            cpu.as_ref().map_or_else(String::new, |cpu| {
                format!("{:.2} - {:.2}", cpu.min, cpu.max)
            }),
            cell_of(cpu.and(beside_none), 3),
            cell_of(p99.map(|p99| p99.median), 0),
        ]))
    });
    let copying = (cell == HIT_256K)
        .then(|| costs::copying_hit(record))
        .flatten();
    let rows = rows.chain(copying.map(|cpu| {
        let base_cpu = costs::cpu(record, BASELINE, cell);
        row([
            COPYING.to_owned(),
            String::new(),
            String::new(),
            cell_of(Some(cpu), 2),
            String::new(),
            beside(Some(cpu), base_cpu.map(|base| base.median)),
            String::new(),
        ])
    }));
    let columns =
        "| | instructions | × no module | CPU, us | least - most | × no module | p99, us |";
    table(out, title, columns, rows);
}

fn cell_of(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(String::new, |number| format!("{number:.digits$}"))
}

fn beside(number: Option<f64>, base: Option<f64>) -> String {
    cell_of(number.zip(base).map(|(number, base)| number / base), 3)
}

fn read_ahead(out: &mut String, record: &Record) {
    let rows = CASES.iter().flat_map(|case: &Case| {
        let measured = record.figures.read_ahead.iter();
        let these = measured.filter(|it| it.case == case.name());
        these.map(|it| {
            let (lead, kind) = (&it.read_ahead, it.read_ahead.kind);
            let client = if kind.reads { "50 KB/s" } else { "nothing" };
            let stored = if kind.is_storable { "yes" } else { "no" };
            row([
                case.name().to_owned(),
                client.to_owned(),
                stored.to_owned(),
                bytes(lead.largest_bytes),
                bytes(lead.over_program()),
            ])
        })
    });
    let columns = "| | the client reads | storable | largest read-ahead | after 8 s |";
    table(out, "### Read-ahead", columns, rows);
}

/// A number of a set of runs, if it has that.
type OfSet<'a> = &'a dyn Fn(&TranscoderSet) -> Option<f64>;

fn transcoder(out: &mut String, record: &Record) {
    let number =
        |of: OfSet<'_>, digits| cell_of(costs::of_sets(record, of).map(|it| it.median), digits);
    let row_of = |name: String,
                  times: fn(&TranscoderSet) -> Option<&HitTimes>,
                  (beside_alone, beside_fetches): (OfSet<'_>, OfSet<'_>)| {
        row([
            name,
            number(&|set| Some(times(set)?.mean_us), 1),
            number(&|set| Some(times(set)?.p99_us), 0),
            number(beside_alone, 3),
            number(beside_fetches, 3),
        ])
    };
    let images = format!("beside {IMAGES_PER_S} images a second");
    let rows = [
        row_of(
            "hits alone".to_owned(),
            |set| Some(&set.alone),
            (&|_| None, &|_| None),
        ),
        row_of(
            format!("{images} that are fetched and stored"),
            |set| set.beside_fetches.as_ref(),
            (&TranscoderSet::fetches_ratio, &|_| None),
        ),
        row_of(
            format!("{images} that are converted, too"),
            |set| Some(&set.beside),
            (&|set| Some(set.ratio()), &TranscoderSet::module_ratio),
        ),
    ];
    let has_sets = !record.figures.transcoder.is_empty();
    let rows = rows.into_iter().filter(|_| has_sets);
    let columns = "| | hit, us | p99, us | × alone | × beside fetches |";
    table(out, "### Hits beside the transcoder", columns, rows);
}

/// What is not there or failed a check, with the reason.
pub(super) fn troubles(record: &Record) -> Vec<String> {
    let mut troubles = markdown::left_out(record);
    let figures = &record.figures;
    troubles.extend(figures.runs.iter().filter_map(|run| {
        let trouble = run.trouble.as_ref()?;
        let (round, cell, case) = (run.round, &run.cell, &run.contender);
        Some(format!("{case}, {cell}, round {round}: {trouble}"))
    }));
    troubles.extend(figures.polymix.iter().flat_map(|run| {
        let reasons = run.reasons.iter();
        reasons.map(|reason| format!("{}, PolyMix-3 mini: {reason}", run.case))
    }));
    troubles.extend(
        figures
            .transcoder
            .iter()
            .zip(1..)
            .filter_map(|(set, number)| {
                let trouble = set.trouble.as_ref()?;
                Some(format!("transcoder, set {number}: {trouble}"))
            }),
    );
    troubles
}
