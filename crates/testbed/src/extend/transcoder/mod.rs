//! Times of hits while images are converted beside them, in turn with times of hits alone, and of
//! hits beside the same images without the module.
//!
//! The paper had an image transcoder work beside its load: 25 images of 8 KB a second made a hit 3
//! ms longer, of 20. Here hits of 1 KiB are sent at a constant rate over one connection, and every
//! image has a target of its own, so that it is fetched, converted and stored. Weir and the
//! processes that convert share a core. Images that are fetched and stored as they are show which
//! part of the time is that of fetches.

mod images;
mod origin;

use super::Record;
use super::setup::Setup;
use crate::client::get;
use crate::process::affinity;
use crate::proxy::contender::Contender;
use crate::proxy::server::{Place, Server};
use crate::record::markdown::ratio;
pub(super) use images::IMAGES_PER_S;
use images::{Form, Images};
use origin::{HIT, HIT_BYTES, ImageOrigin};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};
use weir_measure::quantile;
use xtask::failure::{During, Failure};

/// A child that is still there after this has been forgotten.
const LIFE: Duration = Duration::from_secs(3600);

const HITS_PER_S: u32 = 1000;

/// Sets of runs for each round: each run is short beside what disturbs a machine.
const SETS: u32 = 2;

/// The module: for images alone, so that hits do not pass it.
const TABLES: &str = r#"[[module]]
name = "images"
kind = "transcode"
path = "/images/"
deadline = "10s"
wait = "30s"
"#;

/// Times of the hits of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct HitTimes {
    pub(super) requests: u64,
    pub(super) mean_us: f64,
    pub(super) p99_us: f64,
}

/// Three runs, one after the other.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct TranscoderSet {
    pub(super) alone: HitTimes,
    /// Beside images that are fetched and stored as they are; absent in older records.
    #[serde(default)]
    pub(super) beside_fetches: Option<HitTimes>,
    pub(super) beside: HitTimes,
    /// Images that were converted beside the hits.
    pub(super) converted: u64,
    /// Why the numbers are not to be believed.
    pub(super) trouble: Option<String>,
}

impl TranscoderSet {
    /// How many times as long hits take beside images that are converted, on average.
    pub(super) fn ratio(&self) -> f64 {
        self.beside.mean_us / self.alone.mean_us
    }

    /// The same beside images that are fetched and stored as they are.
    pub(super) fn fetches_ratio(&self) -> Option<f64> {
        let fetches = self.beside_fetches.as_ref()?;
        Some(fetches.mean_us / self.alone.mean_us)
    }

    /// How many times as long hits take beside images that are converted as beside images that are
    /// not.
    pub(super) fn module_ratio(&self) -> Option<f64> {
        let fetches = self.beside_fetches.as_ref()?;
        Some(self.beside.mean_us / fetches.mean_us)
    }
}

/// What there is beside the hits of a run.
#[derive(Clone, Copy, Debug)]
enum Beside {
    Nothing,
    Images(Form),
}

/// Measures, into the record.
pub(super) fn measure(record: &mut Record, setup: &Setup<'_>) -> Result<(), Failure> {
    let (options, cores) = (record.settings.clone(), record.figures.cores);
    let words = setup.words_with(TABLES)?;
    let directory = setup.directory.join("transcoder");
    let sets = thread::scope(|scope| {
        let run = || {
            // all but weir and what it starts
            affinity::stay_on(cores.load)?;
            let origin = ImageOrigin::start(images::jpeg()?)?;
            let mut words = words;
            words.set("ORIGIN", origin.address());
            let place = Place {
                core: Some(cores.server),
                ..Place::local(LIFE)
            };
            let weir = Server::start(&Contender::WEIR, &directory, &words, &place, HIT)?;
            let sets = (0..SETS * options.rounds)
                .map(|set| measure_set(set, weir.address(), &origin, options.seconds));
            sets.collect::<Result<Vec<_>, Failure>>()
        };
        let ended = scope.spawn(run).join();
        ended.unwrap_or_else(|_| Err(Failure::Refused("it panicked".to_owned())))
    })?;
    for set in &sets {
        eprintln!("  {set:?}");
    }
    record.figures.transcoder = sets;
    Ok(())
}

/// Each run comes first in one of three sets.
fn measure_set(
    set: u32,
    weir: SocketAddr,
    origin: &ImageOrigin,
    seconds: u32,
) -> Result<TranscoderSet, Failure> {
    let fetched = origin.hits();
    let runs = [
        Beside::Nothing,
        Beside::Images(Form::AsFetched),
        Beside::Images(Form::Converted),
    ];
    let (later, earlier) = runs.split_at(set as usize % runs.len());
    let mut measured = TranscoderSet::default();
    for beside in earlier.iter().chain(later) {
        let images = match *beside {
            Beside::Nothing => None,
            Beside::Images(form) => Some(Images::send(weir, (form, set), seconds)),
        };
        let times = hits(weir, seconds);
        let sent = images.map(Images::end).unwrap_or_default();
        let times = times?;
        match beside {
            Beside::Nothing => measured.alone = times,
            Beside::Images(Form::AsFetched) => measured.beside_fetches = Some(times),
            Beside::Images(Form::Converted) => {
                measured.beside = times;
                measured.converted = sent.received;
            }
        }
        measured.trouble = measured.trouble.or(sent.trouble);
    }
    if origin.hits() != fetched {
        measured.trouble = Some("hits reached the origin".to_owned());
    }
    Ok(measured)
}

/// Sends hits at their rate, and checks each. A hit that had to wait for the one before it has
/// waited since it was due.
fn hits(weir: SocketAddr, seconds: u32) -> Result<HitTimes, Failure> {
    let mut stream = get::connect(weir).during("connect to weir")?;
    let begun = Instant::now();
    let mut ended = begun;
    let mut times = Vec::new();
    for number in 0..HITS_PER_S * seconds {
        let due = begun + Duration::from_secs(1) * number / HITS_PER_S;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let sent = if ended > due { due } else { Instant::now() };
        let answer = get::get(&mut stream, HIT).during("request a hit")?;
        ended = Instant::now();
        if answer.status != 200 || answer.body != HIT_BYTES {
            let (status, bytes) = (answer.status, answer.body.len());
            let what = format!("a hit has status {status} and {bytes} bytes, or other ones");
            return Err(Failure::Refused(what));
        }
        times.push(nanos(ended - sent));
    }
    times.sort_unstable();
    Ok(HitTimes {
        requests: times.len() as u64,
        mean_us: ratio(times.iter().sum(), times.len() as u64 * 1000),
        p99_us: ratio(quantile::of_sorted(&times, 0.99).unwrap_or_default(), 1000),
    })
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
