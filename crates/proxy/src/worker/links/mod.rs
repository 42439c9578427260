//! The links of the process: opened as configured, kept on disk while they have a quota, and
//! reported.

mod notices;
mod state_file;

pub use notices::link_line;

use crate::config::{self, Config, Invalid};
use crate::log::access_log::Say;
use crate::settings::next_hop_tls::hop_keys;
use state_file::{Found, StateFile};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_measure::live::{LinkQuotaRow, LinkRow};
use weir_net::clock::Clock;
use weir_net::next_hops::{LinkMeter, Links, SaveSignal};
use weir_policy::budget::{Link, Notices, QuotaReport};

/// How often the writer looks whether a state is to be written though nothing was moved.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// Why a quota cannot be kept.
pub(crate) const NO_PLACE: &str = "there is no place for what is spent: no store on disk, and no directory of a service (`STATE_DIRECTORY`)";

/// What to do about that, for the link at this place of the configuration.
pub(crate) fn place_hint(index: usize) -> String {
    format!("name a file with `link[{index}].state_file`, which is to outlive restarts")
}

/// The links of a process.
pub(crate) struct LinkSet {
    clock: Clock,
    say: Say,
    /// Where states are kept that no setting names a file for.
    directory: Option<PathBuf>,
    open: Arc<Mutex<Vec<OpenLink>>>,
    saves: Arc<SaveSignal>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// A link in use.
#[derive(Clone)]
struct OpenLink {
    meter: Arc<LinkMeter>,
    /// Where its state is kept, if it has a quota.
    file: Option<Arc<OpenFile>>,
}

struct OpenFile {
    path: PathBuf,
    file: StateFile,
    say: Say,
    /// It could not be written, and this was said.
    failed: Mutex<bool>,
    /// What was said of the link.
    notices: Mutex<Notices>,
}

/// Links that can be put in force.
pub(crate) struct PreparedLinks {
    links: Vec<OpenLink>,
    table: Links,
    /// Rules of those that were there before.
    changed: Vec<(Arc<LinkMeter>, weir_policy::budget::LinkRules)>,
}

/// Why the state of a link cannot be kept.
#[derive(Debug)]
pub(crate) struct LinkError {
    /// What was tried.
    pub(crate) what: String,
    pub(crate) cause: io::Error,
    /// What to do about it, if that does not follow from the cause.
    pub(crate) hint: Option<String>,
    /// The file that cannot be used, and the setting that names another one.
    pub(crate) place: Option<(PathBuf, String)>,
}

/// The state files that a configuration names and that are empty, if Weir would use them: what is
/// spent is not known from them.
#[must_use]
pub fn state_file_warnings(config: &Config) -> Vec<Invalid> {
    let with_quota = config.links.iter().enumerate();
    let with_quota = with_quota.filter(|(_, link)| link.quota.is_some());
    let named = with_quota.filter_map(|(index, link)| Some((index, link.state_file.as_ref()?)));
    let is_empty = |path: &Path| std::fs::metadata(path).is_ok_and(|file| file.len() == 0);
    let empty = named.filter(|(_, path)| is_empty(path));
    let warning = |(index, path): (usize, &PathBuf)| {
        Invalid::new(
            format!("link[{index}].state_file"),
            format!(
                "`{}` is empty: as much of the quota counts as spent as has passed of the period",
                path.display()
            ),
            "to begin with the whole quota, remove the file: Weir creates it",
        )
    };
    empty.map(warning).collect()
}

impl LinkSet {
    /// None yet. States are kept in `directory`, if there is one.
    pub(crate) fn new(clock: Clock, say: Say, directory: Option<PathBuf>) -> Self {
        Self {
            clock,
            say,
            directory,
            open: Arc::default(),
            saves: Arc::default(),
            writer: Mutex::default(),
        }
    }

    /// Opens the links of `config`; nothing changes before [`Self::put_in_force`].
    ///
    /// # Errors
    ///
    /// The state of one cannot be kept.
    pub(crate) fn prepare(&self, config: &Config) -> Result<PreparedLinks, LinkError> {
        let before = self.lock().clone();
        let mut prepared = PreparedLinks {
            links: Vec::new(),
            table: Links::default(),
            changed: Vec::new(),
        };
        for (index, configured) in config.links.iter().enumerate() {
            let path = self.path_of(index, configured)?;
            let is_same = |open: &&OpenLink| {
                let place = open.file.as_ref().map(|file| &file.path);
                **open.meter.name() == *configured.name && place == path.as_ref()
            };
            let link = match before.iter().find(is_same) {
                Some(open) => {
                    let changed = (Arc::clone(&open.meter), configured.rules());
                    prepared.changed.push(changed);
                    open.clone()
                }
                None => self.open(index, configured, path)?,
            };
            let meter = || Arc::clone(&link.meter);
            for hop in &configured.next_hops {
                for key in hop_keys(config, hop) {
                    prepared.table.put(key, meter());
                }
            }
            if configured.next_hops.is_empty() {
                prepared.table.put_others(meter());
            }
            prepared.links.push(link);
        }
        Ok(prepared)
    }

    /// Has these be the links from now on.
    ///
    /// # Errors
    ///
    /// The thread that writes states cannot be started.
    pub(crate) fn put_in_force(&self, prepared: PreparedLinks) -> io::Result<Links> {
        for (meter, rules) in prepared.changed {
            meter.set_rules(rules);
        }
        let has_files = prepared.links.iter().any(|link| link.file.is_some());
        if has_files {
            self.start_writer()?;
        }
        let before = std::mem::replace(&mut *self.lock(), prepared.links.clone());
        prepared.links.iter().for_each(OpenLink::save);
        let stays = |link: &OpenLink| {
            let mut now = prepared.links.iter();
            now.any(|other| Arc::ptr_eq(&other.meter, &link.meter))
        };
        before
            .iter()
            .filter(|link| !stays(link))
            .for_each(OpenLink::close);
        Ok(prepared.table)
    }

    /// Writes the last states, once nothing is moved any more.
    pub(crate) fn close(&self) {
        self.saves.end();
        let writer = self.writer.lock();
        let writer = writer.unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            // it has nothing to tell, and ends by a panic at worst
            let _ended = writer.join();
            self.lock().iter().for_each(OpenLink::close);
        }
    }

    /// Of how many popular responses the window of a link has some validated now.
    pub(crate) fn refreshes(&self) -> u16 {
        let links = self.lock();
        let work = links.iter().map(|link| link.meter.window_work());
        let refreshing = work.filter(|work| work.refreshes > 0);
        let most = refreshing.map(|work| work.refreshes_of).max();
        most.unwrap_or(0)
    }

    /// What operators see of them.
    pub(crate) fn rows(&self) -> Vec<LinkRow> {
        self.lock().iter().map(OpenLink::row).collect()
    }

    /// Where the state of a link is kept, if it has a quota.
    fn path_of(
        &self,
        index: usize,
        configured: &config::Link,
    ) -> Result<Option<PathBuf>, LinkError> {
        if configured.quota.is_none() {
            return Ok(None);
        }
        let automatic = || {
            let name = format!("weir-link-{}", configured.name);
            self.directory
                .as_ref()
                .map(|directory| directory.join(name))
        };
        let path = configured.state_file.clone().or_else(automatic);
        path.map(Some).ok_or_else(|| LinkError {
            what: format!("keep what the link `{}` has spent", configured.name),
            cause: io::Error::other(NO_PLACE),
            hint: Some(place_hint(index)),
            place: None,
        })
    }

    fn open(
        &self,
        index: usize,
        configured: &config::Link,
        path: Option<PathBuf>,
    ) -> Result<OpenLink, LinkError> {
        let (name, rules, now) = (&configured.name, configured.rules(), self.clock.now());
        let (file, found) = match &path {
            None => (None, Found::Nothing),
            Some(path) => {
                let opened =
                    StateFile::open(path, name).map_err(|cause| no_file(index, path, cause))?;
                (Some(opened.0), opened.1)
            }
        };
        let is_new = found == Found::Nothing;
        let link = match found {
            Found::Nothing => Link::new(rules, None, now),
            Found::State(saved) => Link::new(rules, Some(saved), now),
            Found::Unreadable => {
                (self.say)(&format!(
                    "what the link `{name}` has spent cannot be read: it is taken to be as much of the quota as has passed of the period"
                ));
                Link::unreadable(rules, now)
            }
        };
        let (clock, saves) = (self.clock.clone(), Arc::clone(&self.saves));
        let meter = Arc::new(LinkMeter::new(name, link, clock, saves));
        let file = file.zip(path).map(|(file, path)| {
            Arc::new(OpenFile {
                path,
                file,
                say: Arc::clone(&self.say),
                failed: Mutex::new(false),
                notices: Mutex::new(Notices::new(&meter.report().1)),
            })
        });
        let link = OpenLink { meter, file };
        if is_new {
            // before it is used: an empty file would not be taken for a new one
            link.save();
        }
        Ok(link)
    }

    fn start_writer(&self) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_some() {
            return Ok(());
        }
        let (open, saves) = (Arc::clone(&self.open), Arc::clone(&self.saves));
        let run = move || {
            while saves.wait(LOOK_EVERY) {
                let open = open.lock().unwrap_or_else(PoisonError::into_inner).clone();
                open.iter().for_each(OpenLink::save);
                open.iter().for_each(OpenLink::tell);
            }
        };
        let thread = std::thread::Builder::new().name("weir-links".into());
        *writer = Some(thread.spawn(run)?);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OpenLink>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenLink {
    /// Writes its state, if that is to be written. Where it cannot be, the link goes on without:
    /// what is spent may be forgotten at a crash, and that is said.
    fn save(&self) {
        let Some(file) = &self.file else { return };
        if let Some(state) = self.meter.to_save() {
            file.write(&state, self.meter.name());
            self.meter.saved(state.sequence);
        }
    }

    /// Says what has changed of it, one line for each change.
    fn tell(&self) {
        let Some(file) = &self.file else { return };
        let (_, report) = self.meter.report();
        let notices = file.notices.lock();
        let changes = notices
            .unwrap_or_else(PoisonError::into_inner)
            .look(&report);
        let Some(quota) = &report.quota else { return };
        for notice in changes {
            (file.say)(&notices::line(notice, self.meter.name(), quota));
        }
    }

    fn close(&self) {
        let Some(file) = &self.file else { return };
        if let Some(state) = self.meter.close() {
            file.write(&state, self.meter.name());
        }
    }

    fn row(&self) -> LinkRow {
        let (counts, report) = self.meter.report();
        LinkRow {
            name: self.meter.name().to_string(),
            received_bytes: counts.received_bytes,
            sent_bytes: counts.sent_bytes,
            refused: counts.refused,
            waited_ms: counts.waited_ms,
            rate_bytes_s: report.rate,
            is_in_window: report.window.is_some(),
            is_free: report.is_free,
            is_after_clock_step: report.is_after_clock_step,
            quota: report.quota.map(quota_row),
        }
    }
}

fn quota_row(quota: QuotaReport) -> LinkQuotaRow {
    LinkQuotaRow {
        bytes: quota.bytes,
        spent_bytes: quota.spent_bytes,
        booked_bytes: quota.booked_bytes,
        begin_unix_s: quota.period.start.0,
        end_unix_s: quota.period.end.0,
        when_spent: quota.then.as_str().into(),
        is_spent: quota.is_spent,
    }
}

impl OpenFile {
    fn write(&self, state: &weir_policy::budget::SavedLink, name: &str) {
        let written = self.file.write(state, name);
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = &written
            && !*failed
        {
            (self.say)(&format!(
                "what the link `{name}` has spent cannot be written to `{}`, and is forgotten at a crash: {error}",
                self.path.display()
            ));
        }
        *failed = written.is_err();
    }
}

fn no_file(index: usize, path: &Path, cause: io::Error) -> LinkError {
    let setting = format!("`link[{index}].state_file`");
    let is_in_use = cause.kind() == io::ErrorKind::ResourceBusy;
    let hint = is_in_use.then(|| format!("name another file with {setting}"));
    LinkError {
        what: format!("use the file of a link `{}`", path.display()),
        cause,
        hint,
        place: Some((path.to_owned(), setting)),
    }
}
