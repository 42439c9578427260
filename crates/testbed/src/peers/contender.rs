//! Who is measured, how each is started, and what is asked of everybody. All of it is data; the
//! words in `@` are filled in by [`template`](crate::proxy::template).

use crate::proxy::contender::Contender;

pub(crate) const FLOOR: &str = "floor";

/// Everybody, in the order of the table.
pub(crate) static CONTENDERS: [Contender; 7] = [
    Contender {
        templates: &[("weir.toml", "weir.toml")],
        ..Contender::WEIR
    },
    Contender {
        name: FLOOR,
        installed_as: None,
        version: &[],
        templates: &[],
        directories: &[],
        command: &["@FLOOR@", "--port", "@PORT@", "--size", "1024"],
        is_cache: false,
    },
    Contender {
        templates: &[("nginx.conf", "nginx.conf")],
        ..Contender::NGINX
    },
    Contender {
        templates: &[("haproxy.cfg", "haproxy.cfg")],
        ..Contender::HAPROXY
    },
    Contender {
        // no jail: it would need users that only exist on an installed system; a small log, because
        // it is shared memory that grows with traffic and would be counted as memory of connections
        command: &[
            "varnishd",
            "-F",
            "-j",
            "none",
            "-n",
            "@DIR@/work",
            "-a",
            "127.0.0.1:@PORT@",
            "-T",
            "none",
            "-f",
            "@DIR@/varnish.vcl",
            "-s",
            "malloc,1g",
            "-p",
            "thread_pools=1",
            "-p",
            "thread_pool_min=50",
            "-p",
            "thread_pool_max=200",
            "-p",
            "timeout_idle=600",
            "-p",
            "vsl_space=8M",
        ],
        ..Contender::VARNISH
    },
    Contender {
        templates: &[("squid.conf", "squid.conf")],
        ..Contender::SQUID
    },
    Contender {
        templates: &[
            ("trafficserver/runroot.yaml", "runroot.yaml"),
            ("trafficserver/records.config", "records.config"),
            ("trafficserver/storage.config", "storage.config"),
            ("trafficserver/remap.config", "remap.config"),
            ("trafficserver/ip_allow.yaml", "ip_allow.yaml"),
        ],
        ..Contender::TRAFFIC_SERVER
    },
];

/// One kind of request.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    pub(crate) body_bytes: usize,
    /// Whether the cache may answer; otherwise every request has to reach the origin.
    pub(crate) is_hit: bool,
}

pub(crate) const HIT_1K: &str = "hit 1 KiB";
pub(crate) const FORWARD_1K: &str = "forward 1 KiB";

/// What is asked of everybody.
pub(crate) const CELLS: [Cell; 5] = [
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
    pub(crate) fn takes_part_in(&self, cell: &Cell) -> bool {
        self.is_cache || cell.name == HIT_1K
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_installed_program_has_a_known_package() {
        for program in CONTENDERS
            .iter()
            .filter_map(|contender| contender.installed_as)
        {
            assert!(crate::proxy::need::is_known(program), "{program}");
        }
    }
}
