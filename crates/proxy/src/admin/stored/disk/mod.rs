//! `POST /store/{word}`: the store on disk as `weir store` shows it, while the proxy uses it.
//!
//! Each call is about a part: it ends after a second, or when it has as much as an answer may have,
//! and says where the next one begins. So none takes memory or time that grows with the store, and
//! leaving ends them all. They change nothing; but they name what people read, so they are no GET.

mod message;
mod verification;
mod walk;

use crate::admin::listening::places::Place;
use crate::admin::{Control, aside, json, of_type, purge, text};
use crate::config::Mode;
use crate::server::on_disk::report::StorePage;
use axum::extract::{ConnectInfo, Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use weir_disk::Disk;
use weir_disk::offline::OfflineError;
use weir_policy::Digest;

/// Calls that read the device at once, verification not counted; further ones get 503.
const READERS_MAX: usize = 4;

/// What ends a page, once it has gone past something.
#[derive(Clone, Copy, Debug)]
struct PageLimits {
    /// How long a call looks for more, after which it answers with what it has.
    time: Duration,
    /// Records that are read from the device.
    records: usize,
}

const PAGE_LIMITS: PageLimits = PageLimits {
    time: Duration::from_secs(1),
    records: 1_000,
};

static READERS: Semaphore = Semaphore::const_new(READERS_MAX);

/// Where a page begins: a record or an extent of a segment, or behind all that is before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Position {
    /// The place of the directory in the configuration.
    directory: u16,
    /// The number of the segment.
    segment: u64,
    /// The offset in it, in bytes; 0 before what is said of the segment itself.
    at: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:x}:{}", self.directory, self.segment, self.at)
    }
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = || {
            let (directory, rest) = text.split_once(':')?;
            let (segment, at) = rest.split_once(':')?;
            Some(Self {
                directory: directory.parse().ok()?,
                segment: u64::from_str_radix(segment, 16).ok()?,
                at: at.parse().ok()?,
            })
        };
        read().ok_or_else(|| format!("`{}` is no place in the store", text.escape_debug()))
    }
}

/// The parameters of a call. The URL is the last one: an `&` within it is written `%26`.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parameters {
    /// Dead records, too.
    all: bool,
    from: Option<Position>,
    at: Option<Position>,
    skip: u64,
    key: Option<Digest>,
    variants_of: Option<Digest>,
    mode: Option<Mode>,
    run: Option<u64>,
    url: Option<String>,
}

impl Parameters {
    fn read(query: &str) -> Result<Self, String> {
        let mut parameters = Self::default();
        let (each, url) = purge::before_url(query);
        for parameter in each {
            parameters.add(parameter)?;
        }
        let url = url.map(|url| purge::url(Some(url), None, b""));
        parameters.url = url.transpose()?;
        Ok(parameters)
    }

    fn add(&mut self, parameter: &str) -> Result<(), String> {
        let no_number = |text: &str| format!("`{}` is no number", text.escape_debug());
        match parameter.split_once('=') {
            None if parameter == "all" => self.all = true,
            Some(("from", at)) => self.from = Some(at.parse()?),
            Some(("at", at)) => self.at = Some(at.parse()?),
            Some(("skip", bytes)) => self.skip = bytes.parse().map_err(|_| no_number(bytes))?,
            Some(("run", run)) => self.run = Some(run.parse().map_err(|_| no_number(run))?),
            Some(("key", key)) => self.key = Some(key_of_text(key)?),
            Some(("variants_of", key)) => self.variants_of = Some(key_of_text(key)?),
            Some(("mode", "forward")) => self.mode = Some(Mode::Forward),
            Some(("mode", "gateway")) => self.mode = Some(Mode::Gateway),
            _ => {
                return Err(format!(
                    "unexpected `{}`: use all, from, at, skip, run, key, variants_of, mode, and url last",
                    parameter.escape_debug()
                ));
            }
        }
        Ok(())
    }
}

/// A key as people write it: 32 hexadecimal digits.
fn key_of_text(text: &str) -> Result<Digest, String> {
    let read = || {
        let (first, second) = text.split_at_checked(16)?;
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let half = |text| u64::from_str_radix(text, 16).ok();
        is_hex.then_some(Digest(half(first)?, half(second)?))
    };
    read().ok_or_else(|| {
        format!(
            "`{}` is no key: it has 32 hexadecimal digits",
            text.escape_debug()
        )
    })
}

/// Why a call has no answer.
#[derive(Debug)]
enum Refusal {
    /// The parameters are wrong.
    Parameters(String),
    /// It is not stored, or not any more.
    NotStored,
    /// What is stored is damaged.
    Damaged(String),
    /// It cannot be said now.
    Busy(String),
    /// The device failed.
    Device(String),
}

impl From<OfflineError> for Refusal {
    fn from(error: OfflineError) -> Self {
        match error {
            OfflineError::Format { .. } => Self::Damaged(error.to_string()),
            error if error.is_absence() => Self::NotStored,
            error => Self::Device(error.to_string()),
        }
    }
}

impl Refusal {
    fn answer(self) -> Response {
        let (status, why) = match self {
            Self::Parameters(why) => (StatusCode::BAD_REQUEST, why),
            Self::NotStored => (StatusCode::NOT_FOUND, NOT_STORED.to_owned()),
            Self::Damaged(why) => (StatusCode::CONFLICT, why),
            Self::Busy(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
            Self::Device(why) => (StatusCode::INTERNAL_SERVER_ERROR, why),
        };
        text(status, format!("{why}\n"))
    }
}

/// Nothing of the store is meant by a call.
pub const NOT_STORED: &str = "it is not stored, or not live any more";

/// `POST /store/{word}`.
pub(in crate::admin) async fn call(
    State(control): State<Arc<dyn Control>>,
    ConnectInfo(place): ConnectInfo<Place>,
    Path(word): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    let parameters = match Parameters::read(&query.unwrap_or_default()) {
        Ok(parameters) => parameters,
        Err(why) => return Refusal::Parameters(why).answer(),
    };
    if !matches!(&*word, "ls" | "stats" | "verify" | "find" | "read") {
        let why = "no such endpoint; after /store/ comes ls, stats, verify, find or read\n";
        return text(StatusCode::NOT_FOUND, why.into());
    }
    let Some(disk) = control.disk() else {
        let why = "this proxy keeps nothing on disk\n";
        return text(StatusCode::NOT_FOUND, why.into());
    };
    if word == "verify" {
        return page(verification::next(&place, disk, &parameters).await);
    }
    let work = move || -> Result<Response, Refusal> {
        Ok(match &*word {
            "ls" => page(walk::records(&disk, &parameters, PAGE_LIMITS)),
            "stats" => page(walk::stats(&disk, &parameters, PAGE_LIMITS)),
            "find" => page(message::find(&disk, &parameters)),
            _ => {
                let piece = message::read(&disk, &parameters)?;
                of_type(StatusCode::OK, "application/octet-stream", piece)
            }
        })
    };
    match read_aside(&READERS, &place, work).await {
        Ok(answer) => answer,
        Err(refusal) => refusal.answer(),
    }
}

/// The result of `work`, which reads the device, if one of the places of `readers` is free.
async fn read_aside<T: Send + 'static>(
    readers: &'static Semaphore,
    place: &Place,
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let Ok(permit) = readers.try_acquire() else {
        let why = format!("{READERS_MAX} calls read the store already; try again");
        return Err(Refusal::Busy(why));
    };
    // the permit goes along: a call whose client has left still reads
    let work = move || {
        let _permit = permit;
        work()
    };
    aside(place, work).await.map_err(Refusal::Device)?
}

fn page<T: Serialize>(page: Result<StorePage<T>, Refusal>) -> Response {
    match page {
        Ok(page) => json(serde_json::to_string(&page).map(|text| text + "\n")),
        Err(refusal) => refusal.answer(),
    }
}

/// The directory at `from` or behind, and where the look at it begins.
fn directory(
    disk: &Disk,
    from: Position,
) -> Result<Option<(weir_disk::DirectoryInUse, Position)>, Refusal> {
    let Some((directory, found)) = disk.directory_from(from.directory) else {
        return Ok(None);
    };
    if found.is_loading() {
        let path = found.path().display();
        return Err(Refusal::Busy(format!(
            "the index of {path} is still being read; try again in a moment"
        )));
    }
    let begin = Position {
        directory,
        ..Position::default()
    };
    let is_further = directory > from.directory;
    Ok(Some((found, if is_further { begin } else { from })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Poll;

    #[test]
    fn parameters_name_a_place_a_key_and_the_url_last() {
        let expected = Parameters {
            all: true,
            from: Some(Position {
                directory: 1,
                segment: 0x2f,
                at: 4096,
            }),
            key: Some(Digest(1, 0xa)),
            mode: Some(Mode::Gateway),
            url: Some("http://a/?b&c".into()),
            ..Parameters::default()
        };
        let key = "0000000000000001000000000000000a";
        let query = format!("all&from=1:2f:4096&key={key}&mode=gateway&url=http://a/?b%26c");
        assert_eq!(Parameters::read(&query), Ok(expected));
        assert_eq!(Parameters::read(""), Ok(Parameters::default()));
        for wrong in [
            "al",
            "from=1:2f",
            "from=70000:0:0",
            "at=1:xyz:0",
            "skip=-1",
            "run=one",
            "mode=peer",
            "key=0",
            "key=+000000000000001000000000000000a",
            "url=/x",
            "url=http://a/&all",
        ] {
            assert!(Parameters::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn reader_whose_client_has_left_keeps_its_place_until_it_has_read() {
        static READERS: Semaphore = Semaphore::const_new(1);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.build().expect("a runtime");
        let (finish, finished) = std::sync::mpsc::channel::<()>();
        let work = move || {
            let _ = finished.recv();
            Ok(())
        };
        let place = Place::new();
        runtime.block_on(async {
            let mut call = Box::pin(read_aside(&READERS, &place, work));
            let begun = std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx)));
            assert!(begun.await.is_pending());
            drop(call);
            let refused = read_aside(&READERS, &place, || Ok(())).await;
            assert!(matches!(refused, Err(Refusal::Busy(_))), "{refused:?}");
            drop(finish);
            let free = READERS.acquire().await;
            drop(free.expect("a place"));
            read_aside(&READERS, &place, || Ok(())).await.expect("read");
        });
    }

    #[test]
    fn position_reads_back_as_it_is_written() {
        for position in [
            Position::default(),
            Position {
                directory: u16::MAX,
                segment: u64::MAX,
                at: u32::MAX,
            },
        ] {
            assert_eq!(position.to_string().parse(), Ok(position));
        }
    }
}
