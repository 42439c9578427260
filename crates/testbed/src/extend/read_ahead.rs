//! How far weir runs ahead of a client that is slow, or that stops reading, with a module in the
//! way of the content.

use super::Record;
use super::cases::{AGAINST, Case, Work};
use super::setup::Setup;
use crate::client::http2::ClientVersion;
use crate::origin::{Origin, READY};
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server};
use crate::uneven::{
    FOLDER, READ_AHEADS, ReadAhead, ReadAheadKind, SEND_BUFFER_BYTES, Subject, read_ahead,
};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::time::Duration;
use xtask::failure::Failure;

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(600);

/// The read-ahead of one case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ModuleReadAhead {
    pub(super) case: String,
    pub(super) read_ahead: ReadAhead,
}

/// Measures the baseline, and each case that changes content, into the record.
pub(super) fn measure(record: &mut Record, setup: &Setup<'_>) -> Result<(), Failure> {
    let directory = setup.directory.join("read-ahead");
    let place = Place::local(LIFE);
    let origin = Origin::start(&directory.join("origin"), &place, Some(SEND_BUFFER_BYTES))?;
    let cases = setup
        .of_weir()
        .filter(|case| matches!(case.work, Work::Baseline | Work::Body) && case.name() != AGAINST);
    // one address for this process, one for each case
    let hosts = (1..=u8::MAX).map(|number| Ipv4Addr::new(127, 0, 1, number));
    let mut servers = Vec::new();
    for (case, host) in cases.zip(hosts) {
        let contender = Contender {
            name: case.name(),
            ..Contender::WEIR.with(FOLDER)
        };
        let server = setup.words(case).and_then(|words| {
            let mut words = origin.words(&words, host);
            words.set("FETCH", "");
            words.set("HTTP2", false);
            let directory = directory.join(case.file_name());
            Server::start(&contender, &directory, &words, &place, READY)
        });
        let server = record.kept(format!("{}, read-ahead", case.name()), server);
        servers.extend(server.map(|server| (case, server)));
    }
    // it takes time and little work: of all cases at once
    for kind in READ_AHEADS {
        for (case, measured) in at_once(&servers, &origin, kind) {
            let what = format!("{}, {kind:?}", case.name());
            if let Some(read_ahead) = record.kept(what, measured.map_err(Failure::Refused)) {
                eprintln!("  {}: {read_ahead:?}", case.name());
                record.figures.read_ahead.push(ModuleReadAhead {
                    case: case.name().to_owned(),
                    read_ahead,
                });
            }
        }
    }
    Ok(())
}

type Measured = (&'static Case, Result<ReadAhead, String>);

fn at_once(
    servers: &[(&'static Case, Server)],
    origin: &Origin,
    kind: ReadAheadKind,
) -> Vec<Measured> {
    let subject = |case: &'static Case, server: &Server| Subject {
        contender: &case.contender,
        address: server.address(),
        origin,
        version: ClientVersion::Http1,
        may_change_content: case.work == Work::Body,
    };
    std::thread::scope(|scope| {
        let begin = |(case, server): &(&'static Case, Server)| {
            let (case, subject) = (*case, subject(case, server));
            (case, scope.spawn(move || read_ahead(&subject, kind)))
        };
        let threads: Vec<_> = servers.iter().map(begin).collect();
        let ends = threads.into_iter().map(|(case, thread)| {
            let measured = thread.join();
            (
                case,
                measured.unwrap_or_else(|_| Err("it panicked".to_owned())),
            )
        });
        ends.collect()
    })
}
