//! What was agreed that weir reaches, and whether it does.

use super::Record;
use super::measurement::Measurement;
use super::memory::Kind;
use super::path::Side;
use super::read_ahead::ReadAhead;
use crate::proxy::contender::WEIR;
use crate::record::markdown::{Target, bytes};

/// Fetched beyond what the disconnected client had read; and fetched twice when the next one
/// requests all of it: the bytes in the proxy's kernel when the connection was closed.
const ABORT_BYTES_MAX: u64 = 64 * 1024;

/// Taken from the origin and not read by a client's program on loopback, its own buffer included.
const LEAD_BYTES_MAX: u64 = 256 * 1024;

const JOIN_RATIO_MIN: f64 = 0.9;

const PATH_RATIO_MIN: f64 = 0.95;

const MEMORY_GROWTH_MAX: f64 = 1.1;

/// A target for each of which there are figures.
pub(super) fn judge(record: &Record) -> Vec<Target> {
    let mut targets = abort(record);
    targets.extend(read_ahead(record));
    targets.extend(join_and_herd(record));
    targets.extend(memory_and_path(record));
    targets
}

fn of_weir<T>(measured: &[Measurement<T>]) -> impl Iterator<Item = &T> {
    let of_weir = measured.iter().filter(|one| one.contender == WEIR);
    of_weir.filter_map(|one| one.figures.as_ref())
}

fn at_most(what: &str, found: u64, most: u64, more: &str) -> Target {
    let what = format!("{what}: {}, at most {}{more}", bytes(found), bytes(most));
    Target::new(what, found <= most)
}

fn abort(record: &Record) -> Vec<Target> {
    let Some(abort) = of_weir(&record.figures.aborts).next() else {
        return Vec::new();
    };
    let more = abort.fetched_bytes.saturating_sub(abort.read_bytes);
    let what = "fetched beyond what the disconnected client had read";
    let mut targets = vec![at_most(what, more, ABORT_BYTES_MAX, "")];
    if let Some(second) = of_weir(&record.figures.seconds).next() {
        let both = abort.fetched_bytes + second.fetched_bytes;
        let twice = both.saturating_sub(second.size_bytes);
        let what = "fetched twice when a second client takes all";
        targets.push(at_most(what, twice, ABORT_BYTES_MAX, ""));
        targets.extend(second.connections.map(|connections| {
            let what =
                format!("connections to the next hop for both of them: {connections}, at most 1");
            Target::new(what, connections == 1)
        }));
    }
    targets
}

fn read_ahead(record: &Record) -> Option<Target> {
    let leads = || of_weir(&record.figures.leads);
    let largest = leads().map(|lead| lead.largest_bytes).max()?;
    let over_kernel = leads().map(ReadAhead::over_kernel).max()?;
    let more = format!(
        " (after 8 s at most {} over what its kernel had received)",
        bytes(over_kernel)
    );
    let what = "largest read-ahead over a client's program";
    Some(at_most(what, largest, LEAD_BYTES_MAX, &more))
}

fn join_and_herd(record: &Record) -> Vec<Target> {
    let mut targets = Vec::new();
    if let Some(join) = of_weir(&record.figures.joins).next() {
        let ratio = join.speed_ratio().unwrap_or_default();
        let what = format!(
            "speed of the joiner: {ratio:.2} × a direct download, at least {JOIN_RATIO_MIN}"
        );
        targets.push(Target::new(what, ratio >= JOIN_RATIO_MIN));
        let fetches = join.fetches;
        let what = format!("fetches for it and the slow reader: {fetches}, at most 1");
        targets.push(Target::new(what, fetches == 1));
    }
    targets.extend(of_weir(&record.figures.herds).map(|herd| {
        let what = format!(
            "{} concurrent misses: {} fetches, at most 1; {} clients served",
            herd.clients, herd.fetches, herd.whole
        );
        Target::new(what, herd.fetches == 1 && herd.whole == herd.clients)
    }));
    targets
}

fn memory_and_path(record: &Record) -> Vec<Target> {
    let mut targets = Vec::new();
    let promised = |kind| matches!(kind, Kind::OneStored | Kind::EachPassed);
    for memory in of_weir(&record.figures.memories).filter(|memory| promised(memory.kind)) {
        if let Some(growth) = memory.growth() {
            let what = format!(
                "memory with {} slow clients, {}: last third / first {growth:.2}, at most {MEMORY_GROWTH_MAX:.2}",
                memory.clients,
                memory.kind.name()
            );
            targets.push(Target::new(what, growth <= MEMORY_GROWTH_MAX));
        }
    }
    // there is no target for the speed of a reused connection: docs/uneven.md explains why
    for side in [Side::Client, Side::NextHop] {
        let path = record.figures.path.as_ref();
        if let Some(ratio) = path.and_then(|path| path.speed_ratio(side)) {
            let what = format!(
                "speed over a long path to {}: {ratio:.3} × unbounded, at least {PATH_RATIO_MIN}",
                side.name()
            );
            targets.push(Target::new(what, ratio >= PATH_RATIO_MIN));
        }
    }
    targets
}
