//! The record file, what it shows, and whether the bound was kept.

use super::options::Options;
use super::schedule::Figures;
use crate::host::{self, Host};
use crate::proxy::contender::Contender;
use crate::proxy::template::Words;
use crate::record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Raised when a field changes its meaning.
pub(crate) const SCHEMA: u32 = 1;

/// Beside `memory`: the queue towards the disk, content that passes by, tables, code and stacks.
const BESIDE_KIB: u64 = 64 * 1024;

/// For each connection of a client.
const CONNECTION_KIB: u64 = 256;

/// Afterwards memory is at most so much above what it was before, KiB; what the store holds in
/// memory counts apart.
pub(crate) const REST_SLACK_KIB: u64 = 16 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) schema: u32,
    pub(crate) command: String,
    pub(crate) commit: String,
    pub(crate) begun: String,
    pub(crate) host: Host,
    pub(crate) versions: BTreeMap<String, String>,
    /// The seed is among them.
    pub(crate) settings: Options,
    pub(crate) figures: Option<Figures>,
}

impl Record {
    /// An empty record of this machine.
    pub(crate) fn begin(
        options: &Options,
        arguments: &[String],
        words: &Words,
        subject: &Contender,
    ) -> Self {
        Self {
            schema: SCHEMA,
            command: record::command("memory", arguments),
            commit: host::commit(),
            begun: host::time(),
            host: Host::here(),
            versions: host::versions(&[subject], words),
            settings: options.clone(),
            figures: None,
        }
    }

    /// Resident memory at most, KiB.
    fn bound_kib(&self) -> u64 {
        self.settings.memory_mib * 1024 + BESIDE_KIB + self.settings.clients * CONNECTION_KIB
    }

    /// Resident memory afterwards at most, KiB.
    fn rest_kib(&self, figures: &Figures) -> u64 {
        let stored = figures.counts.get("weir_store_used_bytes");
        figures.before_kib + REST_SLACK_KIB + stored.copied().unwrap_or_default() / 1024
    }

    /// What was not as it should be.
    pub(crate) fn missed(&self) -> Vec<String> {
        let Some(figures) = &self.figures else {
            return vec!["nothing was measured".to_owned()];
        };
        let mut missed = Vec::new();
        let (bound, rest) = (self.bound_kib(), self.rest_kib(figures));
        if figures.peak_kib > bound {
            missed.push(format!("{} KiB of at most {bound}", figures.peak_kib));
        }
        if figures.after_kib > rest {
            missed.push(format!(
                "{} KiB afterwards, at most {rest}",
                figures.after_kib
            ));
        }
        let is_wrong = |why: &&String| !why.ends_with("cut") || why.starts_with("with ");
        missed.extend(figures.received.failed.keys().filter(is_wrong).cloned());
        missed
    }

    /// As Markdown.
    pub(crate) fn render(&self) -> String {
        let Some(figures) = &self.figures else {
            return String::new();
        };
        let mut text = String::from("| resident memory | MiB |\n|---|---:|\n");
        let mib = |kib: u64| format!("{}.{}", kib / 1024, kib % 1024 * 10 / 1024);
        for (what, kib) in [
            ("before", figures.before_kib),
            ("at most, measured", figures.peak_kib),
            ("at most, allowed", self.bound_kib()),
            ("afterwards", figures.after_kib),
            ("afterwards, allowed", self.rest_kib(figures)),
        ] {
            // writing to a string cannot fail
            let _ = writeln!(text, "| {what} | {} |", mib(kib));
        }
        let received = &figures.received;
        let _ = writeln!(
            text,
            "\n{} clients read {} MB; {} bodies came whole; {:?} failed; {:?}",
            self.settings.clients,
            received.content_bytes / 1_000_000,
            received.whole,
            received.failed,
            figures.counts
        );
        text
    }
}
