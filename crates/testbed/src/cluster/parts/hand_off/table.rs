//! What hand-off is to save, and what it does: the rows and the table.

use super::{HandOffRun, MECHANISMS, Mechanism, RUNS};
use crate::cluster::row::Row;
use crate::record::markdown::{ratio, row, table};
use weir_measure::float;
use weir_measure::quantile::Spread;

/// CPU time of the front end for a response, beside that of one that passes responses on.
const CPU_RATIO_MAX: f64 = 0.1;

/// Connections that are to be looked at, at least.
const CONNECTIONS_MIN: u64 = 1000;

/// How many rows there are where all was measured.
pub(in crate::cluster) const ROWS: usize = 3;

/// The rows for which there are figures.
pub(in crate::cluster) fn rows(runs: &[HandOffRun]) -> Vec<Row> {
    let figures = [
        "hand-off, 20 requests a connection: CPU time of the front end for a response of 100 KB",
        "the same with one request a connection",
    ];
    let requests = RUNS.map(|(requests, _)| requests);
    let mut rows: Vec<Row> = { figures.into_iter().zip(requests) }
        .filter_map(|(figure, requests)| cpu(runs, figure, requests))
        .collect();
    rows.extend(unbroken(runs));
    rows
}

fn cpu(runs: &[HandOffRun], figure: &'static str, requests: u64) -> Option<Row> {
    let of = |mechanism| {
        let us = of(
            runs,
            mechanism,
            requests,
            HandOffRun::front_end_us_per_response,
        );
        Some(us?.median)
    };
    let (handed, passed) = (of(Mechanism::HandOff)?, of(Mechanism::Forwarding)?);
    let beside = handed / passed;
    Some(Row {
        figure,
        to_reach: format!("at most {CPU_RATIO_MAX} × that of one that passes it on"),
        reached: format!("{beside:.3} × ({handed:.1} us, passed on {passed:.1} us)"),
        is_met: beside <= CPU_RATIO_MAX,
    })
}

fn unbroken(runs: &[HandOffRun]) -> Option<Row> {
    let runs = || {
        runs.iter()
            .filter(|run| run.mechanism == Mechanism::HandOff)
    };
    let sum = |number: fn(&HandOffRun) -> u64| runs().map(number).sum::<u64>();
    let (all, unbroken) = (sum(|run| run.connections), sum(|run| run.unbroken));
    let (handed, lost) = (sum(|run| run.handed_over), sum(|run| run.lost));
    (all > 0).then(|| Row {
        figure: "connections of clients with hand-off that are unbroken",
        to_reach: format!("all, of {CONNECTIONS_MIN} or more"),
        reached: format!("{unbroken} of {all}; {handed} were handed over, {lost} lost"),
        // those that stay are unbroken, too, and say nothing
        is_met: unbroken == all && lost == 0 && handed >= CONNECTIONS_MIN && handed * 10 >= all * 9,
    })
}

/// A number of the runs of a mechanism with so many requests a connection.
fn of(
    runs: &[HandOffRun],
    mechanism: Mechanism,
    requests: u64,
    number: impl Fn(&HandOffRun) -> f64,
) -> Option<Spread> {
    let is_of =
        |run: &&HandOffRun| run.mechanism == mechanism && run.requests_a_connection == requests;
    Spread::of(runs.iter().filter(is_of).map(number))
}

/// Adds the table.
pub(in crate::cluster) fn render(out: &mut String, runs: &[HandOffRun]) {
    let kinds = RUNS
        .iter()
        .flat_map(|(requests, _)| MECHANISMS.map(|mechanism| (*requests, mechanism)));
    let lines = kinds.filter_map(|(requests, mechanism)| {
        let spread = |number: fn(&HandOffRun) -> f64| of(runs, mechanism, requests, number);
        let front_end = spread(HandOffRun::front_end_us_per_response)?;
        let softirq = |run: &HandOffRun| ratio(run.softirq_us, run.requests());
        let hold = |number: fn(&HandOffRun) -> f64| match mechanism {
            Mechanism::Forwarding => Some(String::new()),
            Mechanism::HandOff => Some(format!("{:.0}", spread(number)?.median)),
        };
        Some(row([
            format!("{}, {requests} a connection", mechanism.as_str()),
            format!("{:.1}", front_end.median),
            format!("{:.1} - {:.1}", front_end.min, front_end.max),
            format!("{:.1}", spread(HandOffRun::machine_us_per_response)?.median),
            format!("{:.1}", spread(softirq)?.median),
            format!("{:.0}", spread(|run| float(run.handed_over))?.median),
            format!("{:.0}", spread(|run| float(run.stayed))?.median),
            hold(|run| float(run.hold_p50_us))?,
            hold(|run| float(run.hold_p99_us))?,
        ]))
    });
    let title = "### A response of 100 KB through a front end, CPU time, microseconds";
    let columns = "| | front end | least - most | whole machine | of that, softirq | handed over | stayed | held, p50 | p99 |";
    table(out, title, columns, lines);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(mechanism: Mechanism, requests_a_connection: u64, front_end_us: u64) -> HandOffRun {
        HandOffRun {
            round: 1,
            mechanism,
            requests_a_connection,
            connections: 1000,
            unbroken: 1000,
            front_end_us,
            machine_us: 1_000_000,
            softirq_us: 1000,
            handed_over: 1000,
            stayed: 0,
            lost: 0,
            hold_p50_us: 1024,
            hold_p99_us: 4096,
        }
    }

    fn check(runs: &[HandOffRun], expected: &[bool]) {
        let rows = rows(runs);
        let met: Vec<bool> = rows.iter().map(|row| row.is_met).collect();
        assert_eq!(met, expected, "{rows:?}");
    }

    #[test]
    fn front_end_is_to_take_a_tenth_of_the_time_by_requests_a_connection() {
        let passed_on = [
            run(Mechanism::Forwarding, 20, 2_000_000),
            run(Mechanism::Forwarding, 1, 100_000),
        ];
        let with = |many_us, one_us| {
            let handed = [
                run(Mechanism::HandOff, 20, many_us),
                run(Mechanism::HandOff, 1, one_us),
            ];
            [&passed_on[..], &handed].concat()
        };
        check(&with(200_000, 10_000), &[true, true, true]);
        check(&with(201_000, 10_000), &[false, true, true]);
        check(&with(200_000, 10_100), &[true, false, true]);
        check(&passed_on, &[]);
        check(&[], &[]);
    }

    #[test]
    fn all_connections_are_to_be_unbroken_and_most_of_them_handed_over() {
        let with = |change: fn(&mut HandOffRun)| {
            let mut run = run(Mechanism::HandOff, 20, 1);
            change(&mut run);
            [run]
        };
        check(&with(|_| ()), &[true]);
        check(&with(|run| run.unbroken = 999), &[false]);
        check(&with(|run| run.lost = 1), &[false]);
        check(&with(|run| run.handed_over = 999), &[false]);
        let few = |run: &mut HandOffRun| {
            run.connections = 2000;
            run.unbroken = 2000;
        };
        check(&with(few), &[false]);
    }

    #[test]
    fn table_has_a_line_of_each_mechanism_and_number_of_requests() {
        let mut out = String::new();
        let runs = [run(Mechanism::HandOff, 20, 300_000)];
        render(&mut out, &runs);
        assert!(
            out.contains("| hand-off, 20 a connection | 15.0 |"),
            "{out}"
        );
        assert_eq!(out.matches("a connection").count(), 1, "{out}");
    }
}
