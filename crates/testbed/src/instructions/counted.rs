//! Requests whose instructions are counted: two runs of weir under callgrind, over one kept
//! connection each, with every byte of every response checked.

use super::callgrind::{self, ByThread};
use crate::client::get;
use crate::origin::{Origin, READY};
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server};
use crate::proxy::template::Words;
use std::path::Path;
use std::time::Duration;
use weir_bench::origin::{ResponseSpec, content_of};
use xtask::failure::{During, Failure};

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(3600);

/// How long a program may take to write what callgrind counted.
pub(crate) const END_MAX: Duration = Duration::from_secs(60);

/// Requests for one response, of a weir with these words in its configuration.
#[derive(Debug)]
pub(crate) struct Counted<'a> {
    pub(crate) words: &'a Words,
    /// What is requested: one that may be stored is fetched once, another one each time.
    pub(crate) spec: ResponseSpec,
    /// Of the short run; the long one has three times as many.
    pub(crate) requests: u32,
    pub(crate) expected: Expected,
}

/// What modules do to the responses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Expected {
    /// Whether the client accepts content coded with gzip, and gets it.
    pub(crate) is_coded: bool,
    /// Whether a module that is measured adds its field.
    pub(crate) is_probed: bool,
}

/// By what the long run differs from the short one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    pub(crate) requests: u64,
    /// Of the busiest thread.
    pub(crate) instructions: u64,
}

impl Counted<'_> {
    /// Counts; weir's files go below `directory`.
    pub(crate) fn difference(&self, directory: &Path) -> Result<Difference, Failure> {
        let more = self.requests * 3;
        let few = self.count(&directory.join("few"), self.requests)?;
        let many = self.count(&directory.join("many"), more)?;
        Ok(Difference {
            requests: u64::from(more - self.requests),
            instructions: callgrind::busiest(&few, &many).instructions,
        })
    }

    /// Instructions by thread of a whole run.
    fn count(&self, directory: &Path, requests: u32) -> Result<ByThread, Failure> {
        let callgrind = callgrind::command(directory);
        let (origin, mut server) = start(&Contender::WEIR, directory, self.words, &callgrind)?;
        ask(&server, &self.spec, self.expected, requests)?;
        let fetches = origin.tally(&self.spec.path)?.fetches;
        let expected = if self.spec.is_storable {
            1
        } else {
            requests.into()
        };
        if fetches != expected {
            return Err(Failure::Refused(format!(
                "{fetches} of {requests} requests reached the origin, not {expected}: {}",
                self.spec
            )));
        }
        server.end(END_MAX);
        callgrind::read(directory)
    }
}

/// Starts an origin and a weir with these files, within another command if there is one.
pub(crate) fn start(
    weir: &Contender,
    directory: &Path,
    words: &Words,
    within: &[String],
) -> Result<(Origin, Server), Failure> {
    let local = Place::local(LIFE);
    let origin = Origin::start(&directory.join("origin"), &local, None)?;
    let words = origin.words(words, local.host);
    let place = Place { within, ..local };
    let server = Server::start(weir, directory, &words, &place, READY)?;
    Ok((origin, server))
}

/// Sends so many requests over one connection, and checks every byte of content that is not coded.
pub(super) fn ask(
    server: &Server,
    spec: &ResponseSpec,
    expected: Expected,
    requests: u32,
) -> Result<(), Failure> {
    let Expected {
        is_coded,
        is_probed,
    } = expected;
    let lines = if is_coded {
        "Host: origin.example\r\nAccept-Encoding: gzip\r\n"
    } else {
        "Host: origin.example\r\n"
    };
    let target = spec.to_string();
    let mut stream = get::connect(server.address()).during("connect to weir")?;
    for _ in 0..requests {
        let answer =
            get::get_with(&mut stream, lines, &target).during("read a response of weir")?;
        let is_content = || {
            answer.body.len() as u64 == spec.size_bytes
                && content_of(&target).differs_at(0, &answer.body).is_none()
        };
        let has_fields = answer.is_coded == is_coded && answer.is_probed == is_probed;
        if answer.status != 200 || !has_fields || !(is_coded || is_content()) {
            let (status, bytes) = (answer.status, answer.body.len());
            let fields = if has_fields { "the" } else { "not the" };
            let what = format!(
                "weir answers {status} with {bytes} bytes, or with other ones, and {fields} right fields"
            );
            return Err(Failure::Refused(what));
        }
    }
    Ok(())
}
