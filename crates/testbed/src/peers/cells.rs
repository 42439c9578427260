//! What is asked of everybody.

use crate::proxy::contender::Contender;

pub(super) const FLOOR: &str = "floor";

/// One kind of request.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    pub(super) body_bytes: usize,
    /// Whether the cache may answer; otherwise every request has to reach the origin.
    pub(super) is_hit: bool,
}

pub(super) const HIT_1K: &str = "hit 1 KiB";
pub(super) const FORWARD_1K: &str = "forward 1 KiB";

/// What is asked of everybody.
pub(super) const CELLS: [Cell; 5] = [
    Cell {
        name: HIT_1K,
        path: "/hit/1k",
        body_bytes: 1 << 10,
        is_hit: true,
    },
    Cell {
        name: "hit 10 KiB",
        path: "/hit/10k",
        body_bytes: 10 << 10,
        is_hit: true,
    },
    Cell {
        name: "hit 100 KiB",
        path: "/hit/100k",
        body_bytes: 100 << 10,
        is_hit: true,
    },
    Cell {
        name: "hit 1 MiB",
        path: "/hit/1m",
        body_bytes: 1 << 20,
        is_hit: true,
    },
    Cell {
        name: FORWARD_1K,
        path: "/nostore/1k",
        body_bytes: 1 << 10,
        is_hit: false,
    },
];

impl Contender {
    /// The floor answers 1 KiB to everything, so it takes part in that kind only.
    pub(super) fn takes_part_in(&self, cell: &Cell) -> bool {
        self.is_cache || cell.name == HIT_1K
    }
}
