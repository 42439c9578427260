//! The kinds of requests that each proxy answers.

use crate::proxy::contender::Contender;

/// Bare loops, by their names in tables; what each of them is compared with is said by the cells.
pub(super) const EPOLL_LOOP: &str = "epoll-loop";
pub(super) const WRITEV_LOOP: &str = "writev-loop";
pub(super) const MEMFD_LOOP: &str = "memfd-loop";
pub(super) const SENDFILE_LOOP: &str = "sendfile-loop";
pub(super) const RELAY_LOOP: &str = "relay-loop";

/// One kind of request.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    /// The value of `--runs` for it.
    pub(super) option: &'static str,
    /// Describes the response, see [`ResponseSpec`](weir_bench::origin::ResponseSpec).
    pub(crate) path: &'static str,
    pub(crate) body_bytes: usize,
    pub(crate) work: Work,
    /// Where responses are stored.
    pub(super) store: Store,
    /// The bare loops that take part.
    pub(super) loops: &'static [&'static str],
}

/// What a proxy does for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// It answers from what is stored.
    Hit,
    /// It fetches a response that may not be stored.
    Forward,
    /// It fetches a response and stores it. Every request has a target of its own.
    Fill,
}

/// How the store of a proxy is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// Memory, where a proxy has a store in memory.
    Memory,
    /// A disk, and too little memory for large responses and for many small ones.
    Disk,
}

pub(crate) const HIT_1K: &str = "hit 1 KiB";
pub(super) const HIT_1M: &str = "hit 1 MiB";
pub(super) const HIT_1M_DISK: &str = "hit 1 MiB from disk";
pub(crate) const FORWARD_1K: &str = "forward 1 KiB";
pub(super) const FILL_10K: &str = "fill 10 KiB on disk";

/// All kinds, in the order of the tables.
pub(super) static CELLS: [Cell; 7] = [
    Cell {
        option: "hit-1k",
        loops: &[EPOLL_LOOP],
        ..Cell::hit(HIT_1K, "/hit/1k?size=1024", 1 << 10)
    },
    Cell {
        option: "hit-10k",
        ..Cell::hit("hit 10 KiB", "/hit/10k?size=10240", 10 << 10)
    },
    Cell {
        option: "hit-100k",
        ..Cell::hit("hit 100 KiB", "/hit/100k?size=102400", 100 << 10)
    },
    Cell {
        option: "hit-1m",
        loops: &[WRITEV_LOOP, MEMFD_LOOP],
        ..Cell::hit(HIT_1M, "/hit/1m?size=1048576", 1 << 20)
    },
    Cell {
        option: "hit-1m-disk",
        store: Store::Disk,
        loops: &[SENDFILE_LOOP],
        ..Cell::hit(HIT_1M_DISK, "/disk/1m?size=1048576", 1 << 20)
    },
    Cell {
        option: "forward",
        loops: &[RELAY_LOOP],
        ..Cell::forward(FORWARD_1K, "/forward/1k?size=1024&store=no", 1 << 10)
    },
    Cell {
        option: "fill",
        work: Work::Fill,
        store: Store::Disk,
        ..Cell::hit(FILL_10K, "/fill/10k?size=10240", 10 << 10)
    },
];

impl Cell {
    /// Requests for a stored response, in memory if possible.
    pub(crate) const fn hit(name: &'static str, path: &'static str, body_bytes: usize) -> Self {
        Self {
            name,
            option: "",
            path,
            body_bytes,
            work: Work::Hit,
            store: Store::Memory,
            loops: &[],
        }
    }

    /// Requests for a response that is not stored.
    pub(crate) const fn forward(name: &'static str, path: &'static str, body_bytes: usize) -> Self {
        Self {
            work: Work::Forward,
            ..Self::hit(name, path, body_bytes)
        }
    }

    /// Path and query.
    pub(super) fn parts(&self) -> (&'static str, &'static str) {
        self.path.split_once('?').unwrap_or((self.path, ""))
    }

    /// The target of a request of a round: always the same, or one of its own.
    pub(super) fn target(&self, round: u32, number: u64) -> String {
        let (path, query) = self.parts();
        match self.work {
            Work::Hit | Work::Forward => self.path.to_owned(),
            Work::Fill => format!("{}{number}?{query}", fill_prefix(path, round)),
        }
    }

    /// Whether each request has to reach the origin.
    pub(super) fn is_fetched(&self) -> bool {
        self.work != Work::Hit
    }
}

/// What targets of a round that fills begin with; a number follows.
pub(super) fn fill_prefix(path: &str, round: u32) -> String {
    format!("{path}/{round}-")
}

impl Contender {
    /// A bare loop does one thing, so it takes part in that kind only.
    pub(super) fn takes_part_in(&self, cell: &Cell) -> bool {
        self.is_cache || cell.loops.contains(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_bench::origin::ResponseSpec;

    #[test]
    fn path_of_a_kind_describes_its_response() {
        for cell in &CELLS {
            let target = cell.target(3, 7);
            let spec = ResponseSpec::parse(&target).expect("a response");
            let bytes = u64::try_from(cell.body_bytes).expect("a size");
            let is_stored = cell.work != Work::Forward;
            assert_eq!((spec.size_bytes, spec.is_storable), (bytes, is_stored));
            let again = [(3, 8), (4, 7)].map(|(round, number)| cell.target(round, number));
            let is_new = again.iter().all(|other| *other != target);
            assert_eq!(is_new, cell.work == Work::Fill, "{}", cell.name);
        }
    }
}
