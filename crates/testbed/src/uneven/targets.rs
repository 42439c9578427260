//! What was agreed that weir reaches, and whether it does.

use super::memory::Kind;
use super::path::Side;
use super::record::Record;
use super::table::{bytes, join_ratio, path_ratio};
use crate::proxy::contender::WEIR;

/// Fetched beyond what the client that left had read; and fetched twice when the next one wants it
/// all, which is what was in the proxy's kernel when the connection was closed.
const ABORT_BYTES_MAX: u64 = 64 * 1024;

/// Taken from the origin and not read by a client's program on loopback, its own buffer included.
const LEAD_BYTES_MAX: u64 = 256 * 1024;

const JOIN_RATIO_MIN: f64 = 0.9;

const PATH_RATIO_MIN: f64 = 0.95;

const MEMORY_GROWTH_MAX: f64 = 1.1;

/// A line for each target of which there are figures.
pub(crate) fn judge(record: &Record) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |what: String, is_met: bool| {
        let verdict = if is_met { "met" } else { "MISSED" };
        lines.push(format!("{what}: {verdict}"));
    };
    abort(record, &mut say);
    lead(record, &mut say);
    join_and_herd(record, &mut say);
    memory_and_path(record, &mut say);
    lines
}

fn of_weir<'a, T>(
    measured: &'a [super::measured::Measured<T>],
) -> impl Iterator<Item = &'a T> + use<'a, T> {
    measured
        .iter()
        .filter(|one| one.contender == WEIR)
        .filter_map(|one| one.figures.as_ref())
}

fn abort(record: &Record, say: &mut impl FnMut(String, bool)) {
    let Some(abort) = of_weir(&record.aborts).next() else {
        return;
    };
    let more = abort.fetched_bytes.saturating_sub(abort.read_bytes);
    say(
        format!(
            "fetched beyond what the client that left had read: {}, at most {}",
            bytes(more),
            bytes(ABORT_BYTES_MAX)
        ),
        more <= ABORT_BYTES_MAX,
    );
    if let Some(second) = of_weir(&record.seconds).next() {
        let both = abort.fetched_bytes + second.fetched_bytes;
        let twice = both.saturating_sub(second.size_bytes);
        say(
            format!(
                "fetched twice when a second client takes all: {}, at most {}",
                bytes(twice),
                bytes(ABORT_BYTES_MAX)
            ),
            twice <= ABORT_BYTES_MAX,
        );
    }
}

fn lead(record: &Record, say: &mut impl FnMut(String, bool)) {
    let largest = of_weir(&record.leads).map(|lead| lead.largest_bytes).max();
    let over_kernel = of_weir(&record.leads)
        .map(super::read_ahead::ReadAhead::over_kernel)
        .max();
    if let (Some(largest), Some(over_kernel)) = (largest, over_kernel) {
        say(
            format!(
                "largest read-ahead over a client's program: {}, at most {} (after 8 s at most {} over what its kernel had received)",
                bytes(largest),
                bytes(LEAD_BYTES_MAX),
                bytes(over_kernel)
            ),
            largest <= LEAD_BYTES_MAX,
        );
    }
}

fn join_and_herd(record: &Record, say: &mut impl FnMut(String, bool)) {
    if let Some(join) = of_weir(&record.joins).next() {
        let ratio = join_ratio(join).unwrap_or_default();
        say(
            format!(
                "speed of the joiner: {ratio:.2} × a direct download, at least {JOIN_RATIO_MIN}"
            ),
            ratio >= JOIN_RATIO_MIN,
        );
        say(
            format!(
                "fetches for it and the slow reader: {}, at most 1",
                join.fetches
            ),
            join.fetches == 1,
        );
    }
    for herd in of_weir(&record.herds) {
        say(
            format!(
                "{} concurrent misses: {} fetches, at most 1; {} clients served",
                herd.clients, herd.fetches, herd.whole
            ),
            herd.fetches == 1 && herd.whole == herd.clients,
        );
    }
}

fn memory_and_path(record: &Record, say: &mut impl FnMut(String, bool)) {
    let promised = |kind| matches!(kind, Kind::OneStored | Kind::EachPassed);
    for memory in of_weir(&record.memories).filter(|memory| promised(memory.kind)) {
        if let Some(growth) = memory.growth() {
            say(
                format!(
                    "memory with {} slow clients, {}: last third / first {growth:.2}, at most {MEMORY_GROWTH_MAX:.2}",
                    memory.clients,
                    memory.kind.name()
                ),
                growth <= MEMORY_GROWTH_MAX,
            );
        }
    }
    // of a connection that was used before no speed is promised: docs/uneven.md says why
    for side in [Side::Client, Side::NextHop] {
        let ratio = record.path.as_ref().and_then(|path| path_ratio(path, side));
        if let Some(ratio) = ratio {
            say(
                format!(
                    "speed over a long path to {}: {ratio:.3} × unbounded, at least {PATH_RATIO_MIN}",
                    side.name()
                ),
                ratio >= PATH_RATIO_MIN,
            );
        }
    }
}
