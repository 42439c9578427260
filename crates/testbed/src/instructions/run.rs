//! The runs of a measurement: each binary under callgrind for each case, then with idle
//! connections.

use super::callgrind::{self, ByThread};
use super::{AGAINST, CASES, Case, Count, Record};
use crate::client::get;
use crate::origin::{Origin, READY};
use crate::proxy::contender::{Contender, WEIR};
use crate::proxy::idle;
use crate::proxy::server::{Place, Server};
use crate::proxy::template::Words;
use std::path::Path;
use std::time::Duration;
use weir_bench::origin::{ResponseSpec, content_of};
use xtask::failure::{During, Failure};
use xtask::workplace::Workplace;

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(3600);

/// How long a program may take to write what callgrind counted.
const END_MAX: Duration = Duration::from_secs(60);

const SIZE_BYTES: u64 = 1 << 10;

impl Case {
    fn spec(self) -> ResponseSpec {
        ResponseSpec {
            is_storable: self == Self::Hit,
            ..ResponseSpec::new(&format!("/{self:?}"), SIZE_BYTES)
        }
    }

    /// How many of so many requests reach the origin.
    fn fetches(self, requests: u32) -> u64 {
        match self {
            Self::Hit => 1,
            Self::Forward => requests.into(),
        }
    }
}

/// Measures everything, into the record.
pub(super) fn measure(record: &mut Record, words: &Words) -> Result<(), Failure> {
    let options = record.settings.clone();
    let mut binaries = vec![(WEIR, words.clone())];
    if let Some(against) = &options.against {
        let file = std::fs::canonicalize(against);
        let file = file.during(format_args!("find `{}`", against.display()))?;
        let mut words = words.clone();
        words.set("WEIR", file.display());
        binaries.push((AGAINST, words));
    }
    let workplace = Workplace::make("instructions")?;
    for case in CASES {
        for (binary, words) in &binaries {
            let run = |requests| {
                let directory = workplace
                    .path()
                    .join(format!("{binary}-{case:?}-{requests}"));
                count(&directory, words, case, requests)
            };
            let more = options.requests * 3;
            let (few, many) = (run(options.requests)?, run(more)?);
            let count = Count {
                binary: (*binary).to_owned(),
                case,
                requests: u64::from(more - options.requests),
                instructions: callgrind::busiest(&few, &many),
            };
            eprintln!("  {count:?}");
            record.figures.counts.push(count);
        }
    }
    for (binary, words) in binaries.iter().filter(|_| options.idle_connections > 0) {
        let directory = workplace.path().join(format!("{binary}-idle"));
        let (_origin, server) = start(&directory, words, &[])?;
        let target = Case::Hit.spec().to_string();
        ask(&server, Case::Hit, options.requests)?;
        let idle = idle::measure(binary, &server, options.idle_connections, &target);
        record.figures.idle.push(idle);
    }
    Ok(())
}

/// Instructions by thread of a whole run.
fn count(directory: &Path, words: &Words, case: Case, requests: u32) -> Result<ByThread, Failure> {
    let (origin, mut server) = start(directory, words, &callgrind::command(directory))?;
    ask(&server, case, requests)?;
    let fetches = origin.tally(&case.spec().path)?.fetches;
    let expected = case.fetches(requests);
    if fetches != expected {
        return Err(Failure::Refused(format!(
            "{fetches} of {requests} requests reached the origin, not {expected}: {}",
            case.name()
        )));
    }
    server.end(END_MAX);
    callgrind::read(directory)
}

fn start(directory: &Path, words: &Words, within: &[String]) -> Result<(Origin, Server), Failure> {
    let local = Place::local(LIFE);
    let origin = Origin::start(&directory.join("origin"), &local, None)?;
    let words = origin.words(words, local.host);
    let place = Place { within, ..local };
    let server = Server::start(&Contender::WEIR, directory, &words, &place, READY)?;
    Ok((origin, server))
}

/// Sends so many requests over one connection, and checks every byte.
fn ask(server: &Server, case: Case, requests: u32) -> Result<(), Failure> {
    let target = case.spec().to_string();
    let mut stream = get::connect(server.address()).during("connect to weir")?;
    for _ in 0..requests {
        let answer = get::get(&mut stream, &target).during("read a response of weir")?;
        let is_right = answer.status == 200
            && answer.body.len() as u64 == SIZE_BYTES
            && content_of(&target).differs_at(0, &answer.body).is_none();
        if !is_right {
            let (status, bytes) = (answer.status, answer.body.len());
            let what = format!("weir answers {status} with {bytes} bytes, or with other ones");
            return Err(Failure::Refused(what));
        }
    }
    Ok(())
}
