//! `cargo xtask memory`: the resident memory of weir before a disk that is slower than its next
//! hop, with slow and fast clients of bodies of gigabytes, with and without a length.
//!
//! The bound is `memory` + 64 MiB + 256 KiB a connection, at any moment; afterwards memory returns
//! near its resting size. Every byte that a client gets is compared.

mod clients;
mod schedule;
mod slow_disk;

use crate::proxy::contender::Contender;
use crate::record::Benchmark;
use crate::record::benchmark::Participants;
use crate::record::markdown::{row, table};
use clap::{Args, value_parser};
use schedule::Measurement;
use serde::{Deserialize, Serialize};
use std::path::Path;
use xtask::failure::Failure;

type Record = crate::record::Record<Figures>;

pub(crate) static CONTENDERS: [Contender; 1] = [Contender::WEIR.with("memory")];

/// What to measure; kept in the record.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Options {
    /// Memory for stored responses, MiB
    #[arg(long = "memory", default_value_t = 64, value_parser = value_parser!(u64).range(16..=1 << 16))]
    memory_mib: u64,
    /// Length of the load
    #[arg(long, default_value_t = 180, value_parser = value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Clients at once, one in ten fast
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u64).range(1..=10_000))]
    clients: u64,
    /// Size of a body, MB
    #[arg(long = "body", default_value_t = 5000, value_parser = value_parser!(u64).range(1..=8000))]
    body_mb: u64,
    /// What the disk takes, MB a second
    #[arg(long = "disk", default_value_t = 20, value_parser = value_parser!(u64).range(1..=10_000))]
    disk_mb_s: u64,
    /// Of rates and beginnings
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Figures {
    figures: Option<Measurement>,
}

/// Beside `memory`: the queue towards the disk, content that passes by, tables, code and stacks.
const BESIDE_KIB: u64 = 64 * 1024;

/// For each connection of a client.
const CONNECTION_KIB: u64 = 256;

/// Afterwards memory is at most so much above what it was before, KiB; what the store holds in
/// memory counts apart.
const REST_SLACK_KIB: u64 = 16 * 1024;

/// Descriptors beside those of the clients.
const FILES_BESIDE: usize = 1000;

/// Resident memory at most, KiB.
fn bound_kib(options: &Options) -> u64 {
    options.memory_mib * 1024 + BESIDE_KIB + options.clients * CONNECTION_KIB
}

/// Resident memory afterwards at most, KiB.
fn rest_kib(measured: &Measurement) -> u64 {
    let stored = measured.counts.get("weir_store_used_bytes");
    measured.before_kib + REST_SLACK_KIB + stored.copied().unwrap_or_default() / 1024
}

impl Benchmark for Figures {
    type Options = Options;

    const FILE: &'static str = "memory";
    const SCHEMA: u32 = 1;

    fn measure(record: &mut Record, _: &Path) -> Result<(), Failure> {
        let clients = usize::try_from(record.settings.clients).unwrap_or(usize::MAX);
        let all = (&CONTENDERS[..], &[][..]);
        let participants = Participants::prepare(record, all, &[], clients + FILES_BESIDE)?;
        record.figures.figures = Some(schedule::run(&record.settings, &participants.words)?);
        Ok(())
    }

    fn render(record: &Record) -> String {
        let Some(measured) = &record.figures.figures else {
            return String::new();
        };
        let mib = |kib: u64| format!("{}.{}", kib / 1024, kib % 1024 * 10 / 1024);
        let rows = [
            ("before", measured.before_kib),
            ("at most, measured", measured.peak_kib),
            ("at most, allowed", bound_kib(&record.settings)),
            ("afterwards", measured.after_kib),
            ("afterwards, allowed", rest_kib(measured)),
        ]
        .map(|(what, kib)| row([what, &mib(kib)]));
        let mut text = String::new();
        table(&mut text, "", "| resident memory | MiB |", rows);
        let received = &measured.received;
        format!(
            "{text}\n{} clients read {} MB; {} bodies came whole; {:?} failed; {:?}\n",
            record.settings.clients,
            received.content_bytes / 1_000_000,
            received.whole,
            received.failed,
            measured.counts
        )
    }

    fn faults(record: &Record) -> Vec<String> {
        let Some(measured) = &record.figures.figures else {
            return vec!["nothing was measured".to_owned()];
        };
        let mut faults = Vec::new();
        let (bound, rest) = (bound_kib(&record.settings), rest_kib(measured));
        if measured.peak_kib > bound {
            faults.push(format!("{} KiB of at most {bound}", measured.peak_kib));
        }
        if measured.after_kib > rest {
            let after = measured.after_kib;
            faults.push(format!("{after} KiB afterwards, at most {rest}"));
        }
        let is_wrong = |why: &&String| !why.ends_with("cut") || why.starts_with("with ");
        faults.extend(measured.received.failed.keys().filter(is_wrong).cloned());
        faults
    }
}
