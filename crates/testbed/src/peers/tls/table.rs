//! The tables of a record, and what weir is to reach.

use super::handshakes::Kind;
use super::{
    BARE, CASES, CONTENDERS, Case, H1_1K, H1_256K, H2_1K, H2_256K, Handshakes, Record, Run,
};
use crate::proxy::contender::WEIR;
use crate::proxy::idle::Idle;
use crate::record::markdown::{self, Target, list, ratio, row};
use weir_measure::quantile::Spread;

/// The server that handshakes and HTTP/1.1 are compared with.
const NGINX: &str = "nginx";

/// CPU time of weir by that of the best of the others, at most; of HTTP/1.1 by that of nginx.
const RATIOS_MAX: [(&str, f64); 4] = [(H2_1K, 0.75), (H1_1K, 0.6), (H2_256K, 1.0), (H1_256K, 1.0)];

/// Handshakes for a second of CPU time by those of nginx, at least.
const HANDSHAKES_MIN: [(Kind, f64); 2] = [(Kind::Full, 1.0), (Kind::Resumed, 1.5)];

/// User memory of an idle connection, at most, bytes.
const IDLE_HTTP1_MAX_BYTES: u64 = 6 << 10;
const IDLE_HTTP2_MAX_BYTES: u64 = 28 << 10;

impl Run {
    fn cpu_us(&self) -> f64 {
        ratio(self.user_us + self.system_us, self.h2load.responses)
    }

    /// One line for the terminal.
    pub(super) fn summary(&self) -> String {
        let trouble = self.trouble.as_ref();
        format!(
            "{:<18} {:<9} {:>8} responses {:>7.1} us CPU each{}",
            self.case,
            self.contender,
            self.h2load.responses,
            self.cpu_us(),
            trouble.map_or(String::new(), |trouble| format!("  NOT SOUND: {trouble}")),
        )
    }
}

impl Handshakes {
    /// For a second of CPU time of the server.
    fn per_cpu_second(&self) -> f64 {
        ratio(self.count * 1_000_000, self.user_us + self.system_us)
    }

    pub(super) fn summary(&self) -> String {
        let (kind, contender, count) = (&self.kind, &self.contender, self.count);
        let rate = self.per_cpu_second();
        format!("{kind:<18} {contender:<9} {count:>8} handshakes {rate:>7.0} a CPU second")
    }
}

fn cpu_us(record: &Record, case: &str, contender: &str) -> Option<Spread> {
    let runs = record
        .figures
        .runs
        .iter()
        .filter(|run| run.case == case && run.contender == contender && run.trouble.is_none());
    Spread::of(runs.map(Run::cpu_us))
}

fn handshakes(record: &Record, kind: Kind, contender: &str) -> Option<Spread> {
    let all = record.figures.handshakes.iter();
    let of_kind = all.filter(|run| run.kind == kind.name() && run.contender == contender);
    Spread::of(of_kind.map(Handshakes::per_cpu_second))
}

fn spread(spread: Option<Spread>, digits: usize) -> String {
    spread.map_or_else(String::new, |it| {
        let (median, min, max) = (it.median, it.min, it.max);
        format!("{median:.digits$} ({min:.digits$} to {max:.digits$})")
    })
}

pub(super) fn render(record: &Record) -> String {
    let mut out = format!("{}\n\n", markdown::origin(record, "\\\n"));
    markdown::versions(&mut out, record);
    let columns = format!(
        "| | {} |",
        CONTENDERS.each_ref().map(|it| it.name).join(" | ")
    );
    let cells = |cell: &dyn Fn(&str) -> String| CONTENDERS.each_ref().map(|it| cell(it.name));
    let line = |name: &str, cell: &dyn Fn(&str) -> String| {
        let mut all = vec![name.to_owned()];
        all.extend(cells(cell));
        row(all)
    };
    let rows = CASES.iter().map(|case| {
        line(case.name, &|name| {
            spread(cpu_us(record, case.name, name), 1)
        })
    });
    let title = "### CPU time of the server for a hit under TLS, microseconds";
    markdown::table(&mut out, title, &columns, rows);
    let rows = Kind::ALL.iter().map(|&kind| {
        line(kind.name(), &|name| {
            spread(handshakes(record, kind, name), 0)
        })
    });
    let title = "### Handshakes for a second of CPU time of the server";
    markdown::table(&mut out, title, &columns, rows);
    let figures = &record.figures;
    let idle = [
        ("HTTP/1.1", &figures.idle_http1),
        ("HTTP/2", &figures.idle_http2),
    ];
    let rows = idle.iter().filter(|(_, all)| !all.is_empty());
    let rows = rows.map(|(protocol, all)| {
        line(protocol, &|name| {
            idle_bytes(all, name).map_or_else(String::new, |bytes| bytes.to_string())
        })
    });
    let title = "### User memory of an idle connection under TLS, bytes";
    markdown::table(&mut out, title, &columns, rows);
    list(&mut out, markdown::TARGETS, targets(record));
    list(&mut out, BESIDE_BARE, beside_bare(record));
    list(&mut out, markdown::COULD_NOT, troubles(record));
    out
}

/// What is above [`beside_bare`].
const BESIDE_BARE: &str = "Beside a bare server by the same libraries (no target)";

/// CPU time of weir by that of the bare server.
fn beside_bare(record: &Record) -> Vec<String> {
    let line = |case: &Case| {
        let median = |name: &str| cpu_us(record, case.name, name).map(|spread| spread.median);
        let times = median(WEIR)? / median(BARE)?;
        Some(format!("{}: {times:.2} times its CPU time", case.name))
    };
    CASES.iter().filter_map(line).collect()
}

fn idle_bytes(all: &[Idle], contender: &str) -> Option<u64> {
    let mut sound = all.iter().filter(|idle| idle.trouble.is_none());
    let idle = sound.find(|idle| idle.contender == contender)?;
    Some(idle.bytes_per_connection())
}

/// Whether all rows have a figure of this contender.
pub(super) fn is_complete(record: &Record, contender: &str) -> bool {
    let figures = &record.figures;
    let idle = [&figures.idle_http1, &figures.idle_http2];
    let has_idle = |all: &[Idle]| idle_bytes(all, contender).is_some();
    let has_case = |name| cpu_us(record, name, contender).is_some();
    CASES.iter().all(|case| has_case(case.name))
        && Kind::ALL
            .iter()
            .all(|kind| handshakes(record, *kind, contender).is_some())
        && idle.into_iter().all(|all| has_idle(all))
}

pub(super) fn targets(record: &Record) -> Vec<Target> {
    let mut targets = Vec::new();
    for (case, most) in RATIOS_MAX {
        let median = |name: &str| cpu_us(record, case, name).map(|spread| spread.median);
        let others = CONTENDERS.iter();
        let others = others.filter(|it| ![WEIR, BARE].contains(&it.name));
        let others = others.filter(|it| case != H1_1K || it.name == NGINX);
        let best = others.filter_map(|it| Some((median(it.name)?, it.name)));
        let best = best.min_by(|one, other| one.0.total_cmp(&other.0));
        if let (Some(weir), Some((best, name))) = (median(WEIR), best) {
            let times = weir / best;
            let what = format!("{case}: {times:.2} times the CPU time of {name}, at most {most}");
            targets.push(Target::new(what, times <= most));
        }
    }
    for (kind, least) in HANDSHAKES_MIN {
        let median = |name| handshakes(record, kind, name).map(|spread| spread.median);
        if let (Some(weir), Some(nginx)) = (median(WEIR), median(NGINX)) {
            let (times, name) = (weir / nginx, kind.name());
            let what = format!(
                "{name} handshakes for a CPU second: {times:.2} times those of nginx, at least \
                 {least}"
            );
            targets.push(Target::new(what, times >= least));
        }
    }
    let figures = &record.figures;
    for (protocol, all, most) in [
        ("HTTP/1.1", &figures.idle_http1, IDLE_HTTP1_MAX_BYTES),
        ("HTTP/2", &figures.idle_http2, IDLE_HTTP2_MAX_BYTES),
    ] {
        if let Some(bytes) = idle_bytes(all, WEIR) {
            let what = format!("an idle connection of {protocol}: {bytes} bytes, at most {most}");
            targets.push(Target::new(what, bytes <= most));
        }
    }
    targets
}

pub(super) fn troubles(record: &Record) -> Vec<String> {
    let mut troubles = markdown::left_out(record);
    let figures = &record.figures;
    for run in &figures.runs {
        if let Some(trouble) = &run.trouble {
            let (contender, round, case) = (&run.contender, run.round, &run.case);
            troubles.push(format!("{contender}, round {round}, {case}: {trouble}"));
        }
    }
    for idle in figures.idle_http1.iter().chain(&figures.idle_http2) {
        if let Some(trouble) = &idle.trouble {
            troubles.push(format!("{} (idle): {trouble}", idle.contender));
        }
    }
    troubles
}
