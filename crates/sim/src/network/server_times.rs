//! How long servers take, for the rows that do not say it.
//!
//! A row that a cache answered says nothing of its origin, and one on a connection that was there
//! says nothing of how long it takes to set one up. What other rows say stands in: of response
//! times the median of the same target, else of the same server; of set-up times the median of the
//! server. One lost SYN or one busy moment does not move a median. Of each server and target a
//! sample of bounded size is kept.

use crate::facts::{Ask, Assumption};
use crate::hashing::{ByNumber, mix};
use crate::world::{MICROSECOND, Nanos};
use std::sync::Arc;
use weir_measure::quantile;
use weir_trace::{Column, Columns, Row};

/// What the rows of a trace say about their servers.
#[derive(Clone, Debug, Default)]
pub struct ServerTimes {
    setups: ByNumber<Sample<SERVER_TIMES_MAX>>,
    targets: ByNumber<Sample<TARGET_TIMES_MAX>>,
    servers: ByNumber<Sample<SERVER_TIMES_MAX>>,
}

/// Times of one server that are kept.
const SERVER_TIMES_MAX: usize = 31;

/// Times of one target that are kept.
const TARGET_TIMES_MAX: usize = 5;

impl ServerTimes {
    /// What it wants to know of a row.
    pub const COLUMNS: Columns = Columns::of(&[
        Column::target,
        Column::server,
        Column::setup_us,
        Column::request_us,
        Column::response_us,
        Column::next_hop_setup_us,
        Column::next_hop_response_us,
        Column::next_hop_bytes,
    ]);

    /// Takes what a row says.
    pub fn see(&mut self, row: &Row) {
        let server = row.server.unwrap_or_else(|| mix(row.target));
        self.add(server, row.target, setup(row), response_time(row));
    }

    /// Takes what a request says.
    pub(crate) fn see_ask(&mut self, ask: &Ask) {
        self.add(ask.server, ask.target, ask.setup, ask.response_time);
    }

    fn add(&mut self, server: u64, target: u64, setup: Option<Nanos>, response: Option<Nanos>) {
        if let Some(setup) = setup {
            self.setups.entry(server).or_default().add(setup);
        }
        if let Some(response) = response {
            self.targets.entry(target).or_default().add(response);
            // one that the trace does not name has this target alone
            if server == mix(target) {
                return;
            }
            self.servers.entry(server).or_default().add(response);
        }
    }

    /// From SYN to SYN-ACK.
    pub(crate) fn setup(&self, server: u64) -> Option<Nanos> {
        self.setups.get(&server).map(Sample::median)
    }

    /// From request to response, and whose it is.
    pub(crate) fn response(&self, target: u64, server: u64) -> Option<(Nanos, Assumption)> {
        let of = |times: Nanos, whose| (times, whose);
        let same_target = self.targets.get(&target).map(Sample::median);
        let same_target = same_target.map(|time| of(time, Assumption::ResponseTimeOfTarget));
        same_target.or_else(|| {
            let same_server = self.servers.get(&server).map(Sample::median);
            same_server.map(|time| of(time, Assumption::ResponseTimeOfServer))
        })
    }
}

/// What a run knows of servers: of the whole trace, or of the rows that it has seen.
#[derive(Debug)]
pub(crate) enum Known {
    WholeTrace(Arc<ServerTimes>),
    SoFar(ServerTimes),
}

impl Known {
    pub(crate) fn new(whole: Option<Arc<ServerTimes>>) -> Self {
        whole.map_or_else(|| Self::SoFar(ServerTimes::default()), Self::WholeTrace)
    }

    /// The request begins.
    pub(crate) fn see(&mut self, ask: &Ask) {
        if let Self::SoFar(times) = self {
            times.see_ask(ask);
        }
    }

    pub(crate) fn times(&self) -> &ServerTimes {
        match self {
            Self::WholeTrace(times) => times,
            Self::SoFar(times) => times,
        }
    }
}

/// `N` of some times, microseconds, each as likely as any other (Vitter, ACM TOMS 1985, algorithm
/// R); the same ones in every run.
#[derive(Clone, Copy, Debug)]
struct Sample<const N: usize> {
    us: [u32; N],
    count: u32,
}

impl<const N: usize> Default for Sample<N> {
    fn default() -> Self {
        Self {
            us: [0; N],
            count: 0,
        }
    }
}

impl<const N: usize> Sample<N> {
    fn add(&mut self, time: Nanos) {
        let seen = u64::from(self.count);
        let place = if seen < N as u64 {
            seen
        } else {
            mix(seen) % (seen + 1)
        };
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(us) = self.us.get_mut(place) {
            *us = u32::try_from(time / MICROSECOND).unwrap_or(u32::MAX);
        }
        self.count = self.count.saturating_add(1);
    }

    /// Of an even number the lower one of the two in the middle.
    fn median(&self) -> Nanos {
        let mut us = self.us;
        let us = &mut us[..N.min(self.count as usize)];
        us.sort_unstable();
        let median = quantile::of_sorted(us, 0.5);
        u64::from(median.unwrap_or(0)) * MICROSECOND
    }
}

/// What the set-up of a connection to the server took. Of a row that tells of a cache's own next
/// hop, the client's connection says nothing about that.
pub(crate) fn setup(row: &Row) -> Option<Nanos> {
    let has_next_hop = row.next_hop_bytes.is_some() || row.next_hop_response_us.is_some();
    let of_client = row.setup_us.filter(|_| !has_next_hop);
    row.next_hop_setup_us.or(of_client).map(nanos)
}

/// What the origin took. A response that came from a cache says nothing of it.
pub(crate) fn response_time(row: &Row) -> Option<Nanos> {
    let seen = || {
        if row.next_hop_bytes == Some(0) {
            return None;
        }
        let (request, response) = (row.request_us?, row.response_us?);
        Some(response.saturating_sub(request))
    };
    row.next_hop_response_us.or_else(seen).map(nanos)
}

fn nanos(us: u64) -> Nanos {
    us.saturating_mul(MICROSECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(target: u64, server: u64, response_us: u64) -> Row {
        Row {
            target,
            server: Some(server),
            next_hop_setup_us: Some(response_us / 2),
            next_hop_response_us: Some(response_us),
            ..Row::default()
        }
    }

    #[test]
    fn missing_time_is_the_median_of_the_target_else_of_the_server() {
        let mut times = ServerTimes::default();
        assert_eq!(times.response(1, 7), None);
        for us in [100, 90_000, 300] {
            times.see(&row(1, 7, us));
        }
        for us in [20, 10] {
            times.see(&row(2, 7, us));
        }
        let us = |us: u64| us * MICROSECOND;
        let of_target = Some((us(300), Assumption::ResponseTimeOfTarget));
        assert_eq!(times.response(1, 8), of_target);
        let of_server = Some((us(100), Assumption::ResponseTimeOfServer));
        assert_eq!(times.response(3, 7), of_server);
        assert_eq!(times.response(3, 8), None);
        assert_eq!((times.setup(7), times.setup(8)), (Some(us(50)), None));
    }

    #[test]
    fn sampled_median_is_near_the_true_median() {
        let mut rising = Sample::<31>::default();
        let mut falling = Sample::<31>::default();
        for us in 0..10_000 {
            rising.add(us * MICROSECOND);
            falling.add((9_999 - us) * MICROSECOND);
        }
        for sample in [rising, falling] {
            let us = sample.median() / MICROSECOND;
            assert!((3_000..7_000).contains(&us), "{us}");
        }
    }

    #[test]
    fn server_that_the_trace_does_not_name_has_no_times_recorded() {
        let mut times = ServerTimes::default();
        let nameless = Row {
            server: None,
            ..row(1, 7, 100)
        };
        times.see(&nameless);
        assert!(times.servers.is_empty());
        let of_target = Some((100 * MICROSECOND, Assumption::ResponseTimeOfTarget));
        assert_eq!(times.response(1, mix(1)), of_target);
    }

    #[test]
    fn response_from_a_cache_gives_no_origin_timings() {
        let hit = Row {
            request_us: Some(0),
            response_us: Some(62),
            setup_us: Some(40),
            next_hop_bytes: Some(0),
            ..Row::default()
        };
        assert_eq!((setup(&hit), response_time(&hit)), (None, None));
        let direct = Row {
            next_hop_bytes: None,
            ..hit
        };
        assert_eq!(setup(&direct), Some(40_000));
        assert_eq!(response_time(&direct), Some(62_000));
    }
}
