//! Requests whose instructions are counted: two runs of weir under callgrind, over kept
//! connections, with every byte of every response checked.

use super::callgrind::{self, ByThread};
use crate::client::get::{self, Answer};
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
    /// They have a request each before the first response is read.
    pub(crate) connections: usize,
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

impl Expected {
    /// Fails unless this is the response to a request for `target`.
    fn check(self, answer: &Answer, spec: &ResponseSpec, target: &str) -> Result<(), Failure> {
        let is_content = || {
            answer.body.len() as u64 == spec.size_bytes
                && content_of(target).differs_at(0, &answer.body).is_none()
        };
        let has_fields = answer.is_coded == self.is_coded && answer.is_probed == self.is_probed;
        if answer.status == 200 && has_fields && (self.is_coded || is_content()) {
            return Ok(());
        }
        let (status, bytes) = (answer.status, answer.body.len());
        let fields = if has_fields { "the" } else { "not the" };
        Err(Failure::Refused(format!(
            "weir answers {status} with {bytes} bytes, or with other ones, and {fields} right fields"
        )))
    }
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
        let requested = (self.connections, requests);
        ask(&server, &self.spec, self.expected, requested)?;
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

/// Sends so many requests over so many connections, and checks every byte of content that is not
/// coded. A request waits on each of the connections before the first response is read.
pub(super) fn ask(
    server: &Server,
    spec: &ResponseSpec,
    expected: Expected,
    (connections, requests): (usize, u32),
) -> Result<(), Failure> {
    let lines = if expected.is_coded {
        "Host: origin.example\r\nAccept-Encoding: gzip\r\n"
    } else {
        "Host: origin.example\r\n"
    };
    let target = spec.to_string();
    let connect = |_| get::connect(server.address());
    let streams = (0..connections).map(connect).collect::<Result<Vec<_>, _>>();
    let mut streams = streams.during("connect to weir")?;
    let mut left = usize::try_from(requests).unwrap_or(usize::MAX);
    while left > 0 {
        let asked = left.min(connections);
        let mut send = || {
            let mut streams = streams[..asked].iter_mut();
            streams.try_for_each(|stream| get::ask(stream, (lines, &target)))
        };
        let sent = match connections {
            1 => send(),
            _ => server.while_stopped(send),
        };
        sent.during("send weir requests")?;
        for stream in &mut streams[..asked] {
            let mut answer = Answer::default();
            get::read_into(stream, &mut answer).during("read a response of weir")?;
            expected.check(&answer, spec, &target)?;
        }
        left -= asked;
    }
    Ok(())
}
