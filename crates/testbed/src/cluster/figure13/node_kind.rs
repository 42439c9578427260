//! What nodes are, what they are called, and how much memory each has.

use crate::proxy::contender::Contender;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Where the configurations are, below `peers/`.
pub(super) const FOLDER: &str = "figure13";

/// A member of a cluster with hand-off.
pub(super) const WEIR_HAND_OFF: Contender = Contender {
    files: &["hand-off.toml"],
    command: "@WEIR@ serve --config @DIR@/hand-off.toml",
    ..Contender::WEIR.with(FOLDER)
};

/// So many nodes at most, as in the figure.
pub(super) const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// Less memory than that is not enough for content, MiB.
const CACHE_MIB_MIN: u64 = 4;

/// Memory of a node for content, as part of all content: 64 MiB of 1.015 GB. The paper's nodes had
/// 85 MB for it; here the page cache has what a process does not take of the memory beside it.
const CACHE_PER_MILLE: u64 = 67;

/// What serves the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum NodeKind {
    /// Weir, with the content in its store on disk
    Weir,
    /// nginx, with the content as files
    Nginx,
}

impl NodeKind {
    /// For people.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Weir => "Weir",
            Self::Nginx => "nginx",
        }
    }

    pub(super) const fn contender(self) -> Contender {
        match self {
            Self::Weir => Contender::WEIR.with(FOLDER),
            Self::Nginx => Contender::NGINX.with(FOLDER),
        }
    }

    /// What a node takes beside its memory for content, MiB: of Weir 25 to 50 for the process, with
    /// the buffers of some hundred connections, most of which wait for the disk, and the sockets of
    /// these. With 48, the kernel killed one.
    const fn process_mib(self) -> u64 {
        match self {
            Self::Weir => 72,
            Self::Nginx => 16,
        }
    }

    /// Where a node has its content, below the directory of the measurement.
    pub(super) fn content(self, directory: &Path, name: &str) -> PathBuf {
        let folder = format!("{}-content", self.contender().name);
        directory.join(folder).join(name)
    }
}

/// Memory of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NodeMemory {
    /// For content: the memory tier of Weir, most of the page cache of nginx.
    pub(super) cache_mib: u64,
}

impl NodeMemory {
    /// Keeps the relation of memory to content.
    pub(super) fn for_content(bytes: u64) -> Self {
        let cache_mib = (bytes * CACHE_PER_MILLE / 1000) >> 20;
        Self {
            cache_mib: cache_mib.max(CACHE_MIB_MIN),
        }
    }

    /// Of the control group of a node, MiB.
    pub(super) const fn group_mib(self, kind: NodeKind) -> u64 {
        self.cache_mib + kind.process_mib()
    }
}
