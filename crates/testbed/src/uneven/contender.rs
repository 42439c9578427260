//! Who is measured and how each is started: shipped defaults, and of the rest only a cache that is
//! on, large enough and not on disk where there is a choice, responses of up to 200 MB, one thread
//! or worker, no log, and room for many connections.

use crate::proxy::contender::Contender;

/// Everybody, in the order of the table.
pub(crate) static CONTENDERS: [Contender; 6] = [
    Contender {
        templates: &[("uneven/weir.toml", "weir.toml")],
        ..Contender::WEIR
    },
    Contender {
        templates: &[("uneven/nginx.conf", "nginx.conf")],
        ..Contender::NGINX
    },
    Contender {
        // no jail: it would need users that only exist on an installed system
        command: &[
            "varnishd",
            "-F",
            "-j",
            "none",
            "-n",
            "@DIR@/work",
            "-a",
            "@HOST@:@PORT@",
            "-T",
            "none",
            "-f",
            "@DIR@/varnish.vcl",
            "-s",
            "malloc,1g",
        ],
        ..Contender::VARNISH
    },
    Contender {
        templates: &[("uneven/squid.conf", "squid.conf")],
        ..Contender::SQUID
    },
    Contender {
        templates: &[
            ("trafficserver/runroot.yaml", "runroot.yaml"),
            ("uneven/trafficserver/records.config", "records.config"),
            ("uneven/trafficserver/storage.config", "storage.config"),
            ("trafficserver/remap.config", "remap.config"),
            ("trafficserver/ip_allow.yaml", "ip_allow.yaml"),
        ],
        ..Contender::TRAFFIC_SERVER
    },
    Contender {
        templates: &[("uneven/haproxy.cfg", "haproxy.cfg")],
        ..Contender::HAPROXY
    },
];

pub(crate) const NGINX: &str = Contender::NGINX.name;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_installed_program_has_a_known_package() {
        let programs = CONTENDERS
            .iter()
            .filter_map(|contender| contender.installed_as);
        for program in programs {
            assert!(crate::proxy::need::is_known(program), "{program}");
        }
    }
}
