//! What is read of a running proxy at one time.

use super::numbers;
use crate::messages::Failure;
use crate::operate::client::{Method, Reply};
use crate::operate::find::AdminEndpoint;
use crate::operate::{refused, reply};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};
use weir_measure::live::{HistoryTable, LinkRows, Live, RecentMisses, TopBy, TopOf, TopTable};

/// What could not be done, where something fails.
const WHAT: &str = "cannot read the numbers of the proxy";

/// How long a proxy may take that has just started: it has numbers after a second.
const FIRST_SECOND: Duration = Duration::from_secs(10);

/// Between two looks whether it has any.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// What of the history is read, seconds.
pub(super) const MINUTE_S: u64 = 60;

/// The table of heavy hitters that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Selection {
    /// Of what.
    pub(super) of: TopOf,
    /// By what.
    pub(super) by: TopBy,
    /// Most rows.
    pub(super) rows: usize,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Reading {
    /// What the last second was; none in the first second of a proxy.
    pub(super) live: Option<Live>,
    /// The last minute.
    pub(super) minute: Option<HistoryTable>,
    /// The heavy hitters; none if the proxy counts none.
    pub(super) top: Option<TopTable>,
    /// The links to next hops; none if the proxy does not tell them.
    pub(super) links: Option<LinkRows>,
    /// The last misses and refusals; none if the proxy remembers none.
    pub(super) misses: Option<RecentMisses>,
}

/// Reads from one admin interface.
#[derive(Debug)]
pub(super) struct Source(AdminEndpoint);

impl Source {
    /// One that reads from `endpoint`.
    pub(super) const fn new(endpoint: AdminEndpoint) -> Self {
        Self(endpoint)
    }

    /// Where it reads.
    pub(super) fn address(&self) -> String {
        self.0.address.to_string()
    }

    /// Reads once, when the proxy has numbers.
    ///
    /// # Errors
    ///
    /// As [`Source::read`]; or it has none after ten seconds.
    pub(super) fn read_first(&self, selection: Selection) -> Result<Reading, Failure> {
        let began = Instant::now();
        loop {
            let reading = self.read(selection)?;
            if reading.live.is_some() {
                return Ok(reading);
            }
            if began.elapsed() > FIRST_SECOND {
                return Err(Failure::outside(WHAT, "it has measured nothing yet"));
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }

    /// Reads once.
    ///
    /// # Errors
    ///
    /// A token that is wrong or missing (exit 2); no proxy, or one that cannot be understood (exit
    /// 3).
    pub(super) fn read(&self, selection: Selection) -> Result<Reading, Failure> {
        let live: Option<Live> = self.get("/live", NOT_YET)?;
        let minute = match &live {
            None => None,
            Some(live) => {
                let from = live.sample.at_s.saturating_sub(MINUTE_S);
                let series = numbers::series();
                // as many as may read it at once do: it is there the next time
                let path = format!("/history?step=1s&from={from}&series={series}");
                self.get(&path, NOT_YET)?
            }
        };
        let Selection { of, by, rows } = selection;
        Ok(Reading {
            live,
            minute,
            top: self.get(&format!("/top?of={of}&by={by}&n={rows}&format=json"), OFF)?,
            links: self.get("/links?format=json", OFF)?,
            misses: self.get("/misses?format=json", OFF)?,
        })
    }

    /// What an endpoint says; `None` if its status is `none`.
    fn get<T: DeserializeOwned>(&self, path: &str, none: u16) -> Result<Option<T>, Failure> {
        let found = reply(&self.0, (Method::Get, path), &[], WHAT)?;
        match found {
            Reply { status: 200, .. } => {
                let read = serde_json::from_str(&found.body);
                read.map(Some).map_err(|error| {
                    let path = path.split('?').next().unwrap_or_default();
                    Failure::outside(
                        WHAT,
                        format!("`{path}` is not as this program knows it: {error}"),
                    )
                    .hint("use the `weir` of the version that runs")
                })
            }
            Reply { status, .. } if status == none => Ok(None),
            found => Err(refused(&self.0, &found, WHAT)),
        }
    }
}

/// The status of what has not been measured yet.
const NOT_YET: u16 = 503;

/// The status of what is not counted.
const OFF: u16 = 404;
