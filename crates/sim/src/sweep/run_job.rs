//! Runs of the whole simulation: cache, connections, links and aborts together, at each point of a
//! grid.

use super::axes;
use super::grid::Point;
use super::job::{Figure, Figures, Job, Parameter};
use crate::engine::Simulator;
use crate::hit_ratio::hits::{ParquetTrace, TraceError, survey};
use crate::hit_ratio::keys::KeyRule;
use crate::network::server_times::ServerTimes;
use crate::results::outcome::Outcome;
use crate::settings::{Settings, SettingsError};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_trace::Reader;

/// Simulates a proxy at each point. The trace is read once for each run, so runs need no memory for
/// it.
#[derive(Debug)]
pub struct RunJob {
    path: PathBuf,
    reader: Reader,
    /// What sizes are shares of, bytes; 0 where no point has such a size.
    footprint_bytes: u64,
    server_times: Arc<ServerTimes>,
}

impl RunJob {
    /// Opens the trace; reads it, if `has_shares` says that sizes are shares of all its responses.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn new(path: &Path, has_shares: bool) -> Result<Self, TraceError> {
        let reader = Reader::open(path)?;
        let footprint_bytes = if has_shares {
            survey(&ParquetTrace::at(path), KeyRule::FirstSize)?.footprint_bytes
        } else {
            0
        };
        let mut server_times = ServerTimes::default();
        for row in reader.rows(ServerTimes::COLUMNS) {
            server_times.see(&row?);
        }
        Ok(Self {
            server_times: Arc::new(server_times),
            path: path.to_owned(),
            reader,
            footprint_bytes,
        })
    }

    /// The axes that such runs have; also known without a trace.
    #[must_use]
    pub fn axes() -> Vec<Parameter> {
        axes::parameters()
    }

    /// The settings of a point.
    ///
    /// # Errors
    /// A word that means nothing.
    pub fn settings(&self, point: &Point) -> Result<Settings, String> {
        let settings = axes::settings(point, self.footprint_bytes)?;
        Ok(Settings {
            server_times: Some(Arc::clone(&self.server_times)),
            ..settings
        })
    }

    /// Whether the point can be run at all, before any is.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self, point: &Point) -> Result<(), String> {
        let text = |error: SettingsError| format!("cannot {error}: {}", error.hint());
        self.settings(point)?.check().map_err(text)
    }
}

impl Job for RunJob {
    fn parameters(&self) -> Vec<Parameter> {
        axes::parameters()
    }

    fn about(&self) -> BTreeMap<String, String> {
        let words = [
            ("simulation", "run".to_owned()),
            ("trace", self.path.display().to_string()),
        ];
        words.map(|(name, word)| (name.to_owned(), word)).into()
    }

    fn run(&self, point: &Point) -> Result<Figures, String> {
        let settings = self.settings(point)?;
        let capacity_bytes = settings.cache_bytes;
        let mut simulator = Simulator::new(settings).map_err(|error| error.to_string())?;
        for row in self.reader.rows(Simulator::COLUMNS) {
            simulator.push(&row.map_err(|error| error.to_string())?);
        }
        Ok(figures(capacity_bytes, &simulator.finish()))
    }
}

/// Mean and percentiles of a part of the latency, microseconds.
macro_rules! times {
    ($name:literal, $of:expr) => {
        [
            (concat!($name, "_mean_us"), Figure::Real($of.mean_us)),
            (concat!($name, "_median_us"), Figure::Whole($of.median_us)),
            (concat!($name, "_p90_us"), Figure::Whole($of.p90_us)),
            (concat!($name, "_p99_us"), Figure::Whole($of.p99_us)),
        ]
    };
}

/// The connections of one side.
macro_rules! connections {
    ($name:literal, $of:expr) => {
        [
            (concat!($name, "_requests"), Figure::Whole($of.requests)),
            (
                concat!($name, "_connections_opened"),
                Figure::Whole($of.opened),
            ),
            (
                concat!($name, "_connections_max"),
                Figure::Whole($of.open_max),
            ),
        ]
    };
}

fn figures(capacity_bytes: u64, outcome: &Outcome) -> Figures {
    let (requests, traffic) = (&outcome.requests, &outcome.traffic);
    let (aborts, latency) = (&outcome.aborts, &outcome.latency);
    let fates = aborts.fetches.values().sum();
    let counts = [
        ("capacity_bytes", capacity_bytes),
        ("requests", requests.count),
        ("hits", requests.hits),
        ("delayed_hits", requests.delayed_hits),
        ("collapsed", requests.collapsed),
        ("validated", requests.validated),
        ("content_bytes", requests.content_bytes),
        ("hit_bytes", requests.hit_bytes),
        ("from_servers_bytes", traffic.from_servers_bytes),
        ("from_servers_wire_bytes", traffic.from_servers_wire_bytes),
        ("to_clients_bytes", traffic.to_clients_bytes),
        ("to_clients_wire_bytes", traffic.to_clients_wire_bytes),
        ("wasted_bytes", traffic.wasted_bytes),
        ("over_queue_limit", traffic.over_queue_limit),
        ("aborts_by_clients", aborts.by_clients),
        ("aborts_by_servers", aborts.by_servers),
        ("fetches_judged", fates),
        ("parts_kept", aborts.parts_kept),
        ("read_ahead_max_bytes", aborts.read_ahead_max_bytes),
        ("stored", outcome.stored),
        ("stored_bytes", outcome.stored_bytes),
        ("evictions", outcome.evictions),
        ("not_admitted", outcome.not_admitted.values().sum()),
    ];
    let ratios = [
        ("hit_ratio", requests.hit_ratio()),
        ("byte_hit_ratio", requests.byte_hit_ratio()),
    ];
    let counts = counts.map(|(name, count)| (name, Figure::Whole(count)));
    let ratios = ratios.map(|(name, ratio)| (name, Figure::Real(ratio)));
    let mut figures: Figures = counts.into_iter().chain(ratios).collect();
    figures.extend(times!("setup", latency.setup));
    figures.extend(times!("response", latency.response));
    figures.extend(times!("transfer", latency.transfer));
    figures.extend(times!("latency", latency.total));
    figures.extend(connections!("client", outcome.client_connections));
    figures.extend(connections!("server", outcome.server_connections));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Caching, Keep, Path as Way, UNLIMITED_BYTES};
    use crate::sweep::Grid;
    use weir_policy::fetch::{AbortPolicy, ReadAhead};
    use weir_trace::{Columns, Meta, Row, Writer};

    fn job(folder: &Path) -> RunJob {
        let path = folder.join("a.parquet");
        let mut writer = Writer::create(&path, Meta::default()).unwrap();
        for number in 0..400_u64 {
            let row = Row {
                arrival_us: i64::try_from(number).unwrap() * 700_000,
                client: Some(number % 7),
                server: Some(number % 11),
                target: number * number % 60,
                received_bytes: Some(1000 + number * number % 60 * 100),
                max_age_s: Some(100_000),
                content_type: Some("text/html".to_owned()),
                last_byte_us: Some(number),
                ..Row::default()
            };
            writer.push(row).unwrap();
        }
        writer.finish().unwrap();
        RunJob::new(&path, true).unwrap()
    }

    fn points(job: &RunJob, axes: &[&str]) -> Vec<Point> {
        let axes: Vec<String> = axes.iter().map(|axis| (*axis).to_owned()).collect();
        Grid::new(&job.parameters(), &axes).unwrap().points()
    }

    #[test]
    fn axis_value_sets_the_setting_of_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path());
        let of = |axes: &[&str]| {
            let points = points(&job, axes);
            assert_eq!(points.len(), 1);
            job.check(&points[0]).unwrap();
            job.settings(&points[0]).unwrap()
        };
        let plain = of(&[]);
        assert_eq!(
            (plain.cache_bytes, plain.caching),
            (UNLIMITED_BYTES, Caching::On)
        );
        assert_eq!(
            (plain.read_ahead, plain.path),
            (ReadAhead::DEFAULT, Way::Proxy)
        );
        assert_eq!(plain.hit_overhead, None);
        let other = of(&[
            "network=research",
            "size=50%",
            "read-ahead=unlimited",
            "abort=finish",
            "client-connections=as-in-trace",
            "caching=ignoring-cookies",
            "client-rate=56kbit/s",
            "client-rtt=120ms",
            "server-idle=1min",
            "hit-overhead=5ms",
        ]);
        assert_eq!(other.network.internet.bits_s, 1_500_000);
        assert_eq!(other.network.client_link.bits_s, 56_000);
        assert_eq!(other.network.client_rtt_us, 120_000);
        assert_eq!(other.network.server_idle_ms, 60_000);
        assert_eq!(other.cache_bytes, job.footprint_bytes / 2);
        assert!(job.footprint_bytes > 10_000);
        assert_eq!(
            (other.read_ahead, other.abort),
            (ReadAhead::Unbounded, AbortPolicy::Finish)
        );
        assert_eq!(other.client_connections, Keep::AsInTrace);
        assert!(other.hit_overhead.is_some());
        let direct = of(&["path=direct", "client_connections=never"]);
        assert_eq!(
            (direct.path, direct.client_connections),
            (Way::DirectClient, Keep::AsInTrace)
        );
    }

    #[test]
    fn invalid_point_is_found_before_it_is_run() {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path());
        let points = points(&job, &["tcp=linux", "initial_window=10,100000"]);
        assert!(job.check(&points[0]).is_ok());
        let error = job.check(&points[1]).unwrap_err();
        assert!(error.contains("initial window"), "{error}");
    }

    #[test]
    fn run_reading_only_needed_columns_equals_one_reading_all() {
        let folder = tempfile::tempdir().unwrap();
        let job = job(folder.path());
        for point in points(&job, &["size=20%,unlimited", "path=proxy,direct"]) {
            let found: BTreeMap<&str, Figure> = job.run(&point).unwrap().into_iter().collect();
            let mut simulator = Simulator::new(job.settings(&point).unwrap()).unwrap();
            for row in job.reader.rows(Columns::ALL) {
                simulator.push(&row.unwrap());
            }
            let outcome = simulator.finish();
            assert_eq!(found["requests"], Figure::Whole(400));
            assert_eq!(found["hits"], Figure::Whole(outcome.requests.hits));
            let mean = outcome.latency.total.mean_us;
            assert_eq!(found["latency_mean_us"], Figure::Real(mean));
            let opened = outcome.client_connections.opened;
            assert_eq!(found["client_connections_opened"], Figure::Whole(opened));
        }
    }
}
