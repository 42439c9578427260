//! The page of the admin interface, and the numbers that it shows: the last second, the last hour
//! by seconds and the last week by minutes.
//!
//! A task on the thread of the admin interface reads the counters each second ([`sampler`]). The
//! result goes to the history, to its file if there is one ([`history_file`]), and to those who
//! watch ([`events`]): at most [`WATCHERS_MAX`], none of which can hold up the task. The page
//! ([`page`]) changes nothing, and names from clients are text to it.

mod answers;
mod certificates;
mod events;
pub(super) mod history_file;
mod links;
mod next_hops;
mod page;
mod pieces;
mod sampler;

pub(super) use answers::{history, live};
pub(super) use certificates::{certificates, sentence as certificate_sentence};
pub(super) use events::events;
pub(super) use links::links;
pub(super) use next_hops::next_hops;
pub(super) use page::front;
pub(super) use sampler::run as sample;

use history_file::HistoryFile;
use page::Page;
use pieces::LargeAnswers;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};
use weir_measure::history::History;
use weir_measure::history::series::{self, Series, SeriesKind};
use weir_measure::live::{LiveKind, LiveSample, LiveSeries};

/// Watchers of `/events` at once; a further one is answered 503.
pub(super) const WATCHERS_MAX: usize = 16;

/// Answers to `/history` that are under way at once, of up to 8 MiB each; a further request takes
/// the place of one that is not read, or is answered 503. They would else hold memory in each of
/// the admin's places.
const HISTORY_READERS_MAX: usize = 4;

/// What the admin interface keeps for those who look at it.
pub(super) struct Dashboard {
    series: Vec<Series>,
    /// The names of the links that have series.
    links: Vec<String>,
    history: Mutex<History>,
    /// The last second, as it is sent.
    latest: watch::Sender<Latest>,
    watchers: Arc<Semaphore>,
    /// Places of those who read the history.
    readers: LargeAnswers,
    started_unix_ms: u64,
    page: Page,
    /// Where the history outlives this process.
    file: Option<Mutex<HistoryFile>>,
}

/// The last second.
#[derive(Clone, Default)]
struct Latest {
    sample: Option<Arc<LiveSample>>,
    /// As an event of `/events`.
    event: Arc<str>,
}

impl Dashboard {
    /// With what `file` has of an earlier process, and a series for each of `links`. One that a
    /// reload adds has none before the next start.
    pub(super) fn new(mut file: Option<HistoryFile>, links: Vec<String>) -> Self {
        let series = series::all(&links);
        let mut history = History::new(series.len());
        if let Some(file) = &mut file {
            file.fill(&series, &mut history, sampler::unix_s());
        }
        Self {
            history: Mutex::new(history),
            series,
            links,
            latest: watch::Sender::new(Latest::default()),
            watchers: Arc::new(Semaphore::new(WATCHERS_MAX)),
            readers: LargeAnswers::new(HISTORY_READERS_MAX),
            started_unix_ms: sampler::unix_ms(),
            page: Page::new(),
            file: file.map(Mutex::new),
        }
    }

    /// Writes what has ended since the last time to the file, if there is one. It may wait for the
    /// disk, and holds up nothing meanwhile; what cannot be written now is written the next time.
    pub(super) fn save(&self) {
        let Some(Ok(mut file)) = self.file.as_ref().map(Mutex::try_lock) else {
            return;
        };
        let now_s = sampler::unix_s();
        let rows = file.rows_since(&self.history(), now_s);
        file.write(&rows, now_s);
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A series as it is told.
fn shown(series: &Series) -> LiveSeries {
    LiveSeries {
        name: series.name.clone(),
        kind: match series.kind {
            SeriesKind::Count(_) | SeriesKind::Link(_) => LiveKind::Count,
            SeriesKind::Gauge(_) => LiveKind::Gauge,
            SeriesKind::Time(..) => LiveKind::Time,
        },
    }
}

/// A value as it is told: whole, and none if it is not known.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; a cast saturates"
)]
fn told(value: f32) -> Option<u64> {
    (value.is_finite() && value >= 0.0).then(|| value.round() as u64)
}
