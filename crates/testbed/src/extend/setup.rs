//! What every part of the measurement needs: the cases that can be had, their words, and the
//! servers that modules ask.

use super::Record;
use super::cases::{AGAINST, Case, FILTERS, SERVERS};
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server};
use crate::proxy::template::Words;
use crate::record::benchmark::Participants;
use std::path::{Path, PathBuf};
use std::time::Duration;
use xtask::failure::{During, Failure};

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(4 * 3600);

/// What every part of the measurement needs.
pub(super) struct Setup<'a> {
    pub(super) directory: &'a Path,
    words: Words,
    /// The other weir.
    against: Option<PathBuf>,
    pub(super) cases: Vec<&'static Case>,
    /// They run as long as the measurement.
    servers: Vec<Server>,
}

impl<'a> Setup<'a> {
    /// The cases whose programs are there. A filter that cannot be built, and a server that does
    /// not start, leave out those that need them.
    pub(super) fn open(
        record: &mut Record,
        participants: &Participants,
        directory: &'a Path,
    ) -> Self {
        let mut setup = Self {
            directory,
            against: record.settings.against.clone(),
            words: participants.words.clone(),
            cases: record.settings.cases(),
            servers: Vec::new(),
        };
        let present = &participants.present;
        let is_present = |name: &&str| present.iter().any(|it| it.name == *name);
        setup
            .cases
            .retain(|case| case.programs.iter().all(&is_present));
        for (way, word, build) in &FILTERS {
            if !setup.cases.iter().any(|case| case.way == *way) {
                continue;
            }
            match record.kept(format!("filter, {}", way.name()), build()) {
                Some(file) => setup.words.set(word, file.display()),
                None => setup.cases.retain(|case| case.way != *way),
            }
        }
        for (server, word) in &SERVERS {
            let needs_it = |case: &&'static Case| case.programs.contains(&server.name);
            if !setup.cases.iter().any(needs_it) {
                continue;
            }
            let started = setup.start(server, record.figures.cores.load);
            match record.kept(server.name, started) {
                Some(started) => {
                    setup.words.set(word, started.address());
                    setup.servers.push(started);
                }
                None => setup.cases.retain(|case| !needs_it(case)),
            }
        }
        setup
    }

    fn start(&self, server: &Contender, core: usize) -> Result<Server, Failure> {
        let place = Place {
            core: Some(core),
            ..Place::local(LIFE)
        };
        let directory = self.directory.join(server.name.replace(' ', "-"));
        let mut server = Server::launch(server, &directory, &self.words, &place)?;
        server.wait_until_it_accepts()?;
        Ok(server)
    }

    /// The words of a case, its `[[module]]` tables among them.
    pub(super) fn words(&self, case: &Case) -> Result<Words, Failure> {
        let mut words = self.words_with(case.tables)?;
        if case.name() == AGAINST
            && let Some(against) = &self.against
        {
            let file = std::fs::canonicalize(against);
            let file = file.during(format_args!("find `{}`", against.display()))?;
            words.set("WEIR", file.display());
        }
        Ok(words)
    }

    /// The words with these `[[module]]` tables.
    pub(super) fn words_with(&self, tables: &str) -> Result<Words, Failure> {
        let mut words = self.words.clone();
        let tables = words.fill(tables)?;
        words.set("MODULE_TABLES", tables);
        Ok(words)
    }

    /// Those of weir.
    pub(super) fn of_weir(&self) -> impl Iterator<Item = &'static Case> + use<> {
        let cases = self.cases.clone().into_iter();
        cases.filter(|case| case.is_weir())
    }
}
