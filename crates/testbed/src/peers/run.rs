//! One measured run and the checks that make its number worth keeping.

use super::cells::{Cell, Work, fill_prefix};
use crate::client::get as client;
use crate::client::wrk::{self, Report};
use crate::origin::Origin;
use crate::process::affinity::Cores;
use crate::process::usage::{CpuTime, Memory};
use crate::proxy::contender::Contender;
use crate::proxy::server::Server;
use crate::record::markdown::ratio;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use weir_bench::origin::content_of;
use xtask::failure::Failure;

/// Nothing arrives for this long: nothing is under way.
const QUIET: Duration = Duration::from_millis(50);

const QUIET_MAX: Duration = Duration::from_secs(3);

/// How long a server that has stored responses may still write them: what it does then belongs to
/// the run.
const WRITE_REST: Duration = Duration::from_millis(200);

/// Stored responses that are requested again after a run that filled, and how many of them at least
/// have to be there. Not all are: the writing of some is given up where a disk is slow.
const SAMPLE: u64 = 20;
const SAMPLE_STORED_MIN: u64 = 18;

/// The raw numbers of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) round: u32,
    pub(crate) contender: String,
    pub(crate) cell: String,
    pub(crate) wrk: Report,
    /// CPU time of the server's process tree during the run.
    pub(crate) user_us: u64,
    pub(crate) system_us: u64,
    /// Requests that reached the origin during the run.
    pub(crate) origin_requests: u64,
    /// User memory of the server's process tree after the run.
    pub(crate) rss_kib: u64,
    pub(crate) pss_kib: u64,
    /// Why the numbers are not to be believed; `None` when every check passed.
    pub(crate) trouble: Option<String>,
}

impl Run {
    /// One line for the terminal.
    pub(crate) fn summary(&self) -> String {
        let trouble = self.trouble.as_ref();
        format!(
            "{:<14} {:<14} {:>8.0} requests/s {:>7.1} us CPU, origin asked {} times for {} requests{}",
            self.cell,
            self.contender,
            self.requests_per_second(),
            self.cpu_us_per_request(),
            self.origin_requests,
            self.wrk.requests,
            trouble.map_or(String::new(), |trouble| format!("  NOT SOUND: {trouble}")),
        )
    }

    /// CPU time of the server for one request.
    pub(crate) fn cpu_us_per_request(&self) -> f64 {
        ratio(self.user_us + self.system_us, self.wrk.requests)
    }

    pub(crate) fn system_us_per_request(&self) -> f64 {
        ratio(self.system_us, self.wrk.requests)
    }

    pub(crate) fn requests_per_second(&self) -> f64 {
        ratio(self.wrk.requests * 1_000_000, self.wrk.duration_us)
    }

    pub(crate) fn p99_us(&self) -> f64 {
        ratio(self.wrk.p99_us, 1)
    }

    pub(crate) fn pss_mib(&self) -> f64 {
        ratio(self.pss_kib, 1024)
    }
}

/// Sends a few requests, so that the response is stored where it will be served from.
///
/// # Errors
/// Says what is wrong with a response.
pub(crate) fn warm_up(
    contender: &Contender,
    server: &Server,
    cell: &Cell,
    cores: Cores,
) -> Result<(), String> {
    for _ in 0..3 {
        check_response(contender, server, cell, &cell.target(0, 0))?;
    }
    load(server, cell, 0, (1, cores))?;
    Ok(())
}

/// Requests of one round, for so many seconds.
fn load(
    server: &Server,
    cell: &Cell,
    round: u32,
    (seconds, cores): (u32, Cores),
) -> Result<Report, Failure> {
    let (to, load) = (server.address(), (wrk::CONNECTIONS, seconds));
    let (path, query) = cell.parts();
    let done = match cell.work {
        Work::Hit | Work::Forward => wrk::run(to, cell.path, load, cores.load),
        Work::Fill => wrk::fill(to, (&fill_prefix(path, round), query), load, cores.load),
    };
    Ok(done?.0)
}

/// One run of `seconds`.
pub(crate) fn measure(
    round: u32,
    contender: &Contender,
    server: &Server,
    origin: &Origin,
    cell: &Cell,
    (seconds, cores): (u32, Cores),
) -> Result<Run, Failure> {
    let response = check_response(contender, server, cell, &cell.target(round, 0));
    let (seen_before, used_before) = (fetches_when_quiet(origin, cell)?, server.cpu_time());
    let report = load(server, cell, round, (seconds, cores))?;
    if cell.work == Work::Fill {
        std::thread::sleep(WRITE_REST);
    }
    let CpuTime { user_us, system_us } = server.cpu_time() - used_before;
    let origin_requests = fetches(origin, cell)? - seen_before;
    let Memory { rss_kib, pss_kib } = server.memory();
    let trouble = response
        .and_then(|()| check_report(contender, cell, &report, origin_requests))
        .and_then(|()| match cell.work {
            Work::Fill => check_stored((contender, server), origin, cell, (round, &report)),
            Work::Hit | Work::Forward => Ok(()),
        })
        .err();
    Ok(Run {
        round,
        contender: contender.name.to_owned(),
        cell: cell.name.to_owned(),
        wrk: report,
        user_us,
        system_us,
        origin_requests,
        rss_kib,
        pss_kib,
        trouble,
    })
}

/// Requests of a kind that the origin has had.
fn fetches(origin: &Origin, cell: &Cell) -> Result<u64, Failure> {
    Ok(origin.tally(cell.parts().0)?.fetches)
}

/// The same as soon as no more arrive: requests that were under way when a run ended must not be
/// counted in the next one.
fn fetches_when_quiet(origin: &Origin, cell: &Cell) -> Result<u64, Failure> {
    let deadline = Instant::now() + QUIET_MAX;
    let mut last = fetches(origin, cell)?;
    loop {
        std::thread::sleep(QUIET);
        let now = fetches(origin, cell)?;
        if now == last || Instant::now() > deadline {
            return Ok(now);
        }
        last = now;
    }
}

/// A cache and a relay hand on the origin's bytes; those of the other bare loops are their own. The
/// host is the one that wrk asks for: it may be part of the cache key.
fn check_response(
    contender: &Contender,
    server: &Server,
    cell: &Cell,
    target: &str,
) -> Result<(), String> {
    let to = server.address();
    let answer = client::connect(to)
        .and_then(|mut stream| client::get_of(&mut stream, &to.to_string(), target));
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status != 200 || answer.body.len() != cell.body_bytes {
        return Err(format!(
            "answers {} with {} bytes",
            answer.status,
            answer.body.len()
        ));
    }
    let content = content_of(target);
    if hands_on(contender, cell) && content.differs_at(0, &answer.body).is_some() {
        return Err("answers other bytes than the origin has".to_owned());
    }
    Ok(())
}

/// Whether a response is the origin's.
fn hands_on(contender: &Contender, cell: &Cell) -> bool {
    contender.is_cache || cell.is_fetched()
}

/// Requests some of the responses again that a run has fetched: they have to be stored. They are of
/// its first half: what is still being written is not asked for.
fn check_stored(
    (contender, server): (&Contender, &Server),
    origin: &Origin,
    cell: &Cell,
    (round, report): (u32, &Report),
) -> Result<(), String> {
    let before = fetches_when_quiet(origin, cell)?;
    for number in 0..SAMPLE {
        // wrk may have used the first number to see what it sends
        let number = 2 + number * (report.requests / 2) / SAMPLE;
        check_response(contender, server, cell, &cell.target(round, number))?;
    }
    let fetched = fetches(origin, cell)? - before;
    let stored = SAMPLE.saturating_sub(fetched);
    if stored < SAMPLE_STORED_MIN {
        return Err(format!("only {stored} of {SAMPLE} responses were stored"));
    }
    Ok(())
}

fn check_report(
    contender: &Contender,
    cell: &Cell,
    report: &Report,
    origin_requests: u64,
) -> Result<(), String> {
    // a connection that ends in the middle of a response when time is up is not counted by wrk
    if report.requests == 0 || report.errors > 0 || report.statuses > 0 {
        return Err(format!(
            "{} requests, {} errors, {} wrong statuses",
            report.requests, report.errors, report.statuses
        ));
    }
    let body_bytes = u64::try_from(cell.body_bytes).unwrap_or(u64::MAX);
    if report.bytes < report.requests * body_bytes {
        return Err(format!(
            "only {} bytes in {} responses",
            report.bytes, report.requests
        ));
    }
    if !hands_on(contender, cell) {
        return Ok(());
    }
    if !cell.is_fetched() && origin_requests > 0 {
        return Err(format!(
            "{origin_requests} of the hits were asked of the origin"
        ));
    }
    if cell.is_fetched() && origin_requests < report.requests {
        return Err(format!(
            "only {origin_requests} of {} requests reached the origin",
            report.requests
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::CONTENDERS;
    use super::super::cells::CELLS;
    use super::*;

    fn check(cell: &Cell, report: &Report, origin_requests: u64, expected: Option<&str>) {
        let said = check_report(&CONTENDERS[0], cell, report, origin_requests).err();
        match (said, expected) {
            (None, None) => {}
            (Some(said), Some(part)) => assert!(said.contains(part), "{said}"),
            (said, _) => panic!("{said:?} instead of {expected:?}"),
        }
    }

    fn report(requests: u64) -> Report {
        Report {
            requests,
            duration_us: 1_000_000,
            bytes: requests * 1300,
            ..Report::default()
        }
    }

    #[test]
    fn run_is_invalid_if_hits_reach_the_origin_or_forwards_do_not() {
        let [hit, .., forward, _] = &CELLS;
        check(hit, &report(100), 0, None);
        check(hit, &report(100), 1, Some("1 of the hits"));
        check(forward, &report(100), 100, None);
        check(forward, &report(100), 99, Some("only 99 of 100"));
    }

    #[test]
    fn run_with_failed_short_or_no_responses_is_invalid() {
        let [hit, ..] = &CELLS;
        check(hit, &report(0), 0, Some("0 requests"));
        check(
            hit,
            &Report {
                errors: 1,
                ..report(100)
            },
            0,
            Some("1 errors"),
        );
        check(
            hit,
            &Report {
                statuses: 2,
                ..report(100)
            },
            0,
            Some("2 wrong statuses"),
        );
        check(
            hit,
            &Report {
                bytes: 102_399,
                ..report(100)
            },
            0,
            Some("only 102399 bytes"),
        );
    }
}
