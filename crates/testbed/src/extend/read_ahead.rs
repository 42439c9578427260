//! How far weir runs ahead of a client that stops reading, with a module in the way of the content.

use super::Record;
use super::cases::{AGAINST, Work};
use super::setup::Setup;
use crate::origin::{Origin, READY};
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server};
use crate::uneven::{FOLDER, READ_AHEADS, ReadAhead, SEND_BUFFER_BYTES, Subject, read_ahead};
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
    for (case, host) in cases.zip(hosts) {
        let contender = Contender {
            name: case.name(),
            ..Contender::WEIR.with(FOLDER)
        };
        let server = setup.words(case).and_then(|words| {
            let mut words = origin.words(&words, host);
            words.set("FETCH", "");
            let directory = directory.join(case.file_name());
            Server::start(&contender, &directory, &words, &place, READY)
        });
        let what = format!("{}, read-ahead", case.name());
        let Some(server) = record.kept(&*what, server) else {
            continue;
        };
        let subject = Subject {
            contender: &case.contender,
            address: server.address(),
            origin: &origin,
        };
        // a client that reads needs a length, which content that a module changes does not have
        for kind in READ_AHEADS.into_iter().filter(|kind| !kind.reads) {
            let measured = read_ahead(&subject, kind).map_err(Failure::Refused);
            if let Some(read_ahead) = record.kept(&*what, measured) {
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
