//! The tables of a record, and what weir is to hold.

use super::attacks::{ATTACKS, Attack};
use super::{Record, Run};
use crate::record::markdown::{self, Target, list, ratio, row};
use weir_measure::float;
use weir_measure::quantile::Spread;

/// CPU time of weir by that of the attacker, at most.
const CPU_MAX: f64 = 10.0;

/// CPU time that is not told from none, microseconds: the kernel counts weir's in ticks of 10 ms.
const CPU_SEEN_US: u64 = 20_000;

/// Growth of resident memory by the attacker's bytes, at most, above this for each connection.
const MEMORY_MAX: u64 = 10;
const MEMORY_BYTES_EACH: u64 = 256 << 10;

/// Memory at the end of an attack that holds connections, by that in its middle, at most.
const FLAT_MAX: f64 = 1.05;

/// The 99th percentile of response times of other clients by that before the attack, at most.
const P99_MAX: f64 = 2.0;

impl Run {
    /// CPU time of weir beyond what the other clients take, microseconds.
    fn weir_us(&self) -> u64 {
        let (before, during) = (&self.others_before, &self.others_during);
        // their part is that of their responses
        let each = float(self.before_us) / float(before.responses.max(1));
        let of_others = each * float(during.responses);
        let rest = (float(self.during_us) - of_others).max(0.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "some seconds"
        )]
        let rest = rest as u64;
        rest
    }

    fn cpu_ratio(&self) -> f64 {
        let weir_us = self.weir_us();
        if weir_us < CPU_SEEN_US {
            return 0.0;
        }
        ratio(weir_us, self.attacker.cpu_us)
    }

    fn grown_bytes(&self) -> u64 {
        1024 * self.during_max_kib.saturating_sub(self.before_kib)
    }

    /// What the memory may grow by.
    fn growth_max_bytes(&self) -> u64 {
        let attacker = &self.attacker;
        MEMORY_BYTES_EACH * attacker.open_max.max(1) + MEMORY_MAX * attacker.sent_bytes
    }

    /// Memory at the end by that in the middle; `None` of an attack that holds no connections.
    fn flatness(&self) -> Option<f64> {
        (self.attacker.open_max > 1).then(|| ratio(self.end_kib, self.middle_kib))
    }

    fn p99_ratio(&self) -> f64 {
        ratio(self.others_during.p99_us, self.others_before.p99_us)
    }

    /// One line for the terminal.
    pub(super) fn summary(&self) -> String {
        let attacker = &self.attacker;
        format!(
            "{:<16} CPU {:>5.2} of {:>4} ms, memory {:>8} for {:>8} sent on {:>5} connections, \
             p99 of others {:>6} to {:>6} us, {} failed",
            self.attack,
            self.cpu_ratio(),
            attacker.cpu_us / 1000,
            markdown::bytes(self.grown_bytes()),
            markdown::bytes(attacker.sent_bytes),
            attacker.connections,
            self.others_before.p99_us,
            self.others_during.p99_us,
            self.others_during.failed,
        )
    }
}

/// The runs of an attack.
fn of<'r>(record: &'r Record, attack: &'static Attack) -> impl Iterator<Item = &'r Run> {
    let runs = record.figures.runs.iter();
    runs.filter(move |run| run.attack == attack.name)
}

/// The median of a number of an attack.
fn median(record: &Record, attack: &'static Attack, number: impl Fn(&Run) -> f64) -> Option<f64> {
    Spread::of(of(record, attack).map(number)).map(|spread| spread.median)
}

pub(super) fn render(record: &Record) -> String {
    let mut out = format!("{}\n\n", markdown::origin(record, "\\\n"));
    markdown::versions(&mut out, record);
    let measured = || {
        let all = const { &ATTACKS }.iter();
        all.filter(|attack| of(record, attack).next().is_some())
    };
    let rows = measured().map(|attack| {
        let middle = |number: &dyn Fn(&Run) -> f64| median(record, attack, number);
        let show = |number: &dyn Fn(&Run) -> f64, digits: usize| {
            middle(number).map_or_else(String::new, |it| format!("{it:.digits$}"))
        };
        let kib = |number: &dyn Fn(&Run) -> u64| show(&|run: &Run| float(number(run)) / 1024.0, 0);
        row([
            attack.name.to_owned(),
            show(&|run: &Run| float(run.attacker.cpu_us) / 1000.0, 0),
            show(&|run: &Run| float(run.weir_us()) / 1000.0, 0),
            show(&Run::cpu_ratio, 2),
            show(&|run: &Run| float(run.attacker.open_max), 0),
            show(&|run: &Run| float(run.attacker.connections), 0),
            kib(&|run: &Run| run.attacker.sent_bytes),
            kib(&Run::grown_bytes),
            show(&|run: &Run| float(run.others_before.p99_us), 0),
            show(&|run: &Run| float(run.others_during.p99_us), 0),
            show(&Run::p99_ratio, 2),
        ])
    });
    let columns = "| attack | attacker, CPU ms | weir, CPU ms | ratio | connections at once | \
        connections | sent, KiB | memory, KiB | p99 before, us | p99 during, us | ratio |";
    markdown::table(&mut out, "### Attacks", columns, rows);
    let what = measured().map(|attack| format!("{}: {}", attack.name, attack.what));
    list(&mut out, "What they do", what);
    list(&mut out, markdown::TARGETS, targets(record));
    list(&mut out, markdown::COULD_NOT, troubles(record));
    out
}

pub(super) fn targets(record: &Record) -> Vec<Target> {
    let mut targets = Vec::new();
    for attack in const { &ATTACKS } {
        let name = attack.name;
        if let Some(times) = median(record, attack, Run::cpu_ratio) {
            let what =
                format!("{name}: {times:.2} times the attacker's CPU time, at most {CPU_MAX}");
            targets.push(Target::new(what, times <= CPU_MAX));
        }
        let share = |run: &Run| ratio(run.grown_bytes(), run.growth_max_bytes());
        if let Some(share) = median(record, attack, share) {
            let what = format!(
                "{name}: memory grows by {:.0} % of {MEMORY_MAX} times the attacker's bytes and \
                 {} a connection, at most 100",
                100.0 * share,
                markdown::bytes(MEMORY_BYTES_EACH)
            );
            targets.push(Target::new(what, share <= 1.0));
        }
        let flatness = Spread::of(of(record, attack).filter_map(Run::flatness));
        if let Some(times) = flatness.map(|spread| spread.median) {
            let what = format!(
                "{name}: memory at the end {times:.3} times that in the middle, at most {FLAT_MAX}"
            );
            targets.push(Target::new(what, times <= FLAT_MAX));
        }
        if let Some(times) = median(record, attack, Run::p99_ratio) {
            let what = format!("{name}: p99 of others {times:.2} times, at most {P99_MAX}");
            targets.push(Target::new(what, times <= P99_MAX));
        }
    }
    targets
}

/// What could not be measured, and requests of others that failed.
pub(super) fn troubles(record: &Record) -> Vec<String> {
    let mut troubles = markdown::left_out(record);
    for run in &record.figures.runs {
        let failed = run.others_before.failed + run.others_during.failed;
        if failed > 0 {
            let (attack, round) = (&run.attack, run.round);
            troubles.push(format!(
                "{attack}, round {round}: {failed} requests of others failed"
            ));
        }
    }
    troubles
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::attack::attacker::Report;
    use crate::peers::attack::others::ResponseTimes;

    fn run(before_us: u64, during_us: u64) -> Run {
        let times = |p99_us| ResponseTimes {
            responses: 1000,
            failed: 0,
            p50_us: 50,
            p99_us,
        };
        Run {
            round: 1,
            attack: "ping".to_owned(),
            attacker: Report {
                cpu_us: 100_000,
                sent_bytes: 1000,
                open_max: 2,
                ..Report::default()
            },
            before_us,
            during_us,
            before_kib: 1000,
            during_max_kib: 1512,
            middle_kib: 1500,
            end_kib: 1500,
            others_before: times(100),
            others_during: times(150),
        }
    }

    #[test]
    fn cpu_time_of_other_clients_does_not_count() {
        assert_eq!(run(500_000, 800_000).weir_us(), 300_000);
        assert!((run(500_000, 800_000).cpu_ratio() - 3.0).abs() < 1e-9);
        assert_eq!(run(500_000, 400_000).weir_us(), 0);
        // fewer ticks than can be told from none
        assert!(run(500_000, 510_000).cpu_ratio().abs() < 1e-9);
    }

    #[test]
    fn memory_may_grow_by_connections_and_bytes() {
        let run = run(0, 0);
        assert_eq!(run.grown_bytes(), 512 << 10);
        assert_eq!(run.growth_max_bytes(), (512 << 10) + 10_000);
        assert!((run.p99_ratio() - 1.5).abs() < 1e-9);
        assert_eq!(run.flatness(), Some(1.0));
    }
}
