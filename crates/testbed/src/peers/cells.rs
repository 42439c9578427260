//! The kinds of requests that each proxy answers.

use crate::proxy::contender::Contender;

pub(super) const FLOOR: &str = "floor";

/// One kind of request.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    /// Describes the response, see [`ResponseSpec`](weir_bench::origin::ResponseSpec).
    pub(crate) path: &'static str,
    pub(crate) body_bytes: usize,
    /// Whether the cache may answer; otherwise every request has to reach the origin.
    pub(crate) is_hit: bool,
}

pub(crate) const HIT_1K: &str = "hit 1 KiB";
pub(crate) const FORWARD_1K: &str = "forward 1 KiB";

/// All kinds, in the order of the tables.
pub(super) const CELLS: [Cell; 5] = [
    hit(HIT_1K, "/hit/1k?size=1024", 1 << 10),
    hit("hit 10 KiB", "/hit/10k?size=10240", 10 << 10),
    hit("hit 100 KiB", "/hit/100k?size=102400", 100 << 10),
    hit("hit 1 MiB", "/hit/1m?size=1048576", 1 << 20),
    Cell {
        is_hit: false,
        ..hit(FORWARD_1K, "/forward/1k?size=1024&store=no", 1 << 10)
    },
];

const fn hit(name: &'static str, path: &'static str, body_bytes: usize) -> Cell {
    Cell {
        name,
        path,
        body_bytes,
        is_hit: true,
    }
}

impl Contender {
    /// The floor answers 1 KiB to everything, so it takes part in that kind only.
    pub(super) fn takes_part_in(&self, cell: &Cell) -> bool {
        self.is_cache || cell.name == HIT_1K
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_bench::origin::ResponseSpec;

    #[test]
    fn path_of_a_kind_describes_its_response() {
        for cell in &CELLS {
            let spec = ResponseSpec::parse(cell.path).expect("a response");
            let bytes = u64::try_from(cell.body_bytes).expect("a size");
            assert_eq!((spec.size_bytes, spec.is_storable), (bytes, cell.is_hit));
        }
    }
}
