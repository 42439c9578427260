//! What every part of the measurement needs: an origin, cores and words.

use super::Options;
use super::nodes::Bed;
use crate::origin::Origin;
use crate::process::affinity::Cores;
use crate::proxy::server::Place;
use crate::proxy::template::Words;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_workload::whole;
use xtask::failure::{During, Failure};

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(3600);

/// What every part of the measurement needs.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) cores: Cores,
    pub(super) options: Options,
    pub(super) origin: Origin,
    words: Words,
    directory: PathBuf,
}

impl Setup {
    /// Starts an origin for one part, in a directory of its own.
    pub(super) fn open(
        (options, cores): (&Options, Cores),
        words: &Words,
        directory: &Path,
        send_buffer_bytes: Option<usize>,
    ) -> Result<Self, Failure> {
        let place = on(cores.load);
        let origin = Origin::start(&directory.join("origin"), &place, send_buffer_bytes)?;
        Ok(Self {
            cores,
            options: options.clone(),
            words: origin.words(words, place.host),
            origin,
            directory: directory.to_owned(),
        })
    }

    /// Where nodes run: on one core, while clients and origin are on the other one.
    pub(super) fn bed(&self, directory: &str) -> Result<OwnedBed<'_>, Failure> {
        let directory = self.directory.join(directory);
        std::fs::create_dir_all(&directory).during("make a directory of nodes")?;
        Ok(OwnedBed {
            directory,
            setup: self,
        })
    }

    /// A number of the whole measurement, by the scale of this one.
    pub(super) fn scaled(&self, count: u64, min: u64) -> u64 {
        scaled(count, self.options.scale).max(min)
    }

    /// Requests below a path that the origin has had.
    pub(super) fn fetches(&self, path: &str) -> Result<u64, Failure> {
        Ok(self.origin.tally(&format!("{path}/"))?.fetches)
    }
}

/// Where nodes run.
#[derive(Debug)]
pub(super) struct OwnedBed<'a> {
    directory: PathBuf,
    setup: &'a Setup,
}

impl OwnedBed<'_> {
    pub(super) fn bed(&self) -> Bed<'_> {
        Bed {
            directory: &self.directory,
            words: &self.setup.words,
            place: on(self.setup.cores.server),
        }
    }
}

fn on(core: usize) -> Place<'static> {
    Place {
        core: Some(core),
        ..Place::local(LIFE)
    }
}

fn scaled(count: u64, scale: f64) -> u64 {
    whole(weir_measure::float(count) * scale)
}
