//! What clients request: the connections and pipelined batches of a trace, in its order.

use weir_bench::origin::ResponseSpec;
use weir_trace::generator::Recipe;
use weir_trace::grouping::{ConnectionTrace, GroupingRules};
use xtask::failure::{During, Failure};

/// The trace that is made: the log of the papers is lost.
pub(super) const TRACE: &str = "rice-1999";

/// A trace by connection.
#[derive(Debug)]
pub(super) struct Schedule {
    trace: ConnectionTrace,
    /// Where each connection begins.
    begins: Vec<usize>,
    /// The size of each target, by its number.
    sizes: Vec<u64>,
}

impl Schedule {
    /// The first requests of the trace: as part of its whole length, `scale`.
    ///
    /// # Errors
    /// There is no such trace, or it has no connections.
    pub(super) fn make(scale: f64, seed: u64) -> Result<Self, Failure> {
        let recipe = Recipe::built_in(TRACE);
        let recipe = recipe.ok_or_else(|| Failure::Refused(format!("no trace {TRACE}")))?;
        let requests: u64 = weir_workload::whole(weir_measure::float(recipe.requests()) * scale);
        let rows = recipe.rows(requests.max(1), seed).map(Ok);
        let trace = ConnectionTrace::read(rows, GroupingRules::default());
        Ok(Self::of(trace.during("put a trace into connections")?))
    }

    fn of(trace: ConnectionTrace) -> Self {
        let mut sizes = vec![0; trace.targets()];
        let mut begins = Vec::with_capacity(trace.connections());
        for (place, request) in trace.iter().enumerate() {
            sizes[request.number as usize] = request.bytes;
            if request.begins_connection {
                begins.push(place);
            }
        }
        Self {
            trace,
            begins,
            sizes,
        }
    }

    /// Requests of all connections.
    pub(super) fn requests(&self) -> usize {
        self.trace.len()
    }

    /// How many connections there are, at least one.
    pub(super) fn connections(&self) -> usize {
        self.begins.len()
    }

    /// How many targets there are.
    pub(super) fn targets(&self) -> usize {
        self.sizes.len()
    }

    /// Bytes of all targets.
    pub(super) fn content_bytes(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// The target with a number, as in a request line.
    pub(super) fn target(&self, number: usize) -> String {
        let size = self.sizes.get(number).copied().unwrap_or_default();
        ResponseSpec::new(&path(number), size).to_string()
    }

    /// Bytes of the target with a number.
    pub(super) fn size(&self, number: usize) -> u64 {
        self.sizes.get(number).copied().unwrap_or_default()
    }

    /// The batches of a connection, each the numbers of its targets. After the last connection
    /// comes the first one.
    pub(super) fn connection(&self, number: usize) -> Vec<Vec<usize>> {
        let number = number % self.begins.len();
        let from = self.begins[number];
        let to = self.begins.get(number + 1).copied();
        let mut batches: Vec<Vec<usize>> = Vec::new();
        for place in from..to.unwrap_or(self.trace.len()) {
            let Some(request) = self.trace.get(place) else {
                break;
            };
            let number = request.number as usize;
            match batches.last_mut() {
                Some(batch) if !request.begins_batch => batch.push(number),
                _ => batches.push(vec![number]),
            }
        }
        batches
    }

    /// The target of a request, as HTTP/1.0 has it: each a connection.
    pub(super) fn request(&self, place: usize) -> usize {
        let request = self.trace.get(place % self.trace.len());
        request.map_or(0, |request| request.number as usize)
    }
}

/// The path of a target, and of its file.
pub(super) fn path(number: usize) -> String {
    format!("/t/{number}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_trace::Row;

    fn row(connection: u64, at_ms: i64, target: u64) -> Row {
        Row {
            connection: Some(connection),
            arrival_us: at_ms * 1000,
            target,
            received_bytes: Some(100 + target),
            ..Row::default()
        }
    }

    fn schedule() -> Schedule {
        let rows = [
            row(1, 0, 7),
            row(2, 1, 8),
            row(1, 2, 9),
            row(1, 3, 7),
            row(1, 9000, 8),
        ];
        let trace = ConnectionTrace::read(rows.map(Ok), GroupingRules::default());
        Schedule::of(trace.expect("a trace with connections"))
    }

    #[test]
    fn connections_have_their_batches_and_begin_again_after_the_last() {
        let schedule = schedule();
        assert_eq!((schedule.connections(), schedule.requests()), (2, 5));
        let first: [&[usize]; 3] = [&[0], &[2, 0], &[1]];
        assert_eq!(schedule.connection(0), first);
        assert_eq!(schedule.connection(1), [[1]]);
        assert_eq!(schedule.connection(2), first);
    }

    #[test]
    fn single_requests_are_all_of_the_trace_and_begin_again() {
        let schedule = schedule();
        let all: Vec<usize> = (0..6).map(|place| schedule.request(place)).collect();
        assert_eq!(all, [0, 2, 0, 1, 1, 0]);
    }

    #[test]
    fn target_says_its_size() {
        let schedule = schedule();
        assert_eq!(schedule.targets(), 3);
        assert_eq!(schedule.target(2), "/t/2?size=109");
        assert_eq!((schedule.size(2), schedule.content_bytes()), (109, 324));
    }

    #[test]
    fn beginning_of_the_trace_has_fewer_targets() {
        let schedule = Schedule::make(0.001, 1).expect("the trace");
        assert_eq!(schedule.requests(), 2000);
        assert!(schedule.targets() < 2000 && schedule.connections() > 100);
    }
}
