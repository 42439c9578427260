//! Who is measured and how each is started: shipped defaults, and of the rest only a cache that is on, large enough and not on
//! disk where there is a choice, responses of up to 200 MB, one thread or worker, no log, and room for many connections.

use crate::bed::contender::{Contender, WEIR};

/// Everybody, in the order of the table.
pub(crate) static CONTENDERS: [Contender; 6] = [
    Contender {
        name: WEIR,
        installed_as: None,
        version: &["@WEIR@", "--version"],
        templates: &[("uneven/weir.toml", "weir.toml")],
        directories: &[],
        command: &["@WEIR@", "serve", "--config", "@DIR@/weir.toml"],
        is_cache: true,
    },
    Contender {
        name: NGINX,
        installed_as: Some("nginx"),
        version: &["nginx", "-v"],
        templates: &[("uneven/nginx.conf", "nginx.conf")],
        directories: &[],
        command: &["nginx", "-e", "@DIR@/error.log", "-c", "@DIR@/nginx.conf"],
        is_cache: true,
    },
    Contender {
        name: "varnish",
        installed_as: Some("varnishd"),
        version: &["varnishd", "-V"],
        templates: &[("varnish.vcl", "varnish.vcl")],
        directories: &[],
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
        is_cache: true,
    },
    Contender {
        name: "squid",
        installed_as: Some("squid"),
        version: &["squid", "-v"],
        templates: &[("uneven/squid.conf", "squid.conf")],
        directories: &[],
        command: &["squid", "-N", "-f", "@DIR@/squid.conf"],
        is_cache: true,
    },
    Contender {
        name: "trafficserver",
        installed_as: Some("traffic_server"),
        version: &["traffic_server", "-V"],
        templates: &[
            ("trafficserver/runroot.yaml", "runroot.yaml"),
            ("uneven/trafficserver/records.config", "records.config"),
            ("uneven/trafficserver/storage.config", "storage.config"),
            ("trafficserver/remap.config", "remap.config"),
            ("trafficserver/ip_allow.yaml", "ip_allow.yaml"),
        ],
        directories: &["span"],
        command: &["traffic_server", "--run-root=@DIR@/runroot.yaml"],
        is_cache: true,
    },
    Contender {
        name: "haproxy",
        installed_as: Some("haproxy"),
        version: &["haproxy", "-v"],
        templates: &[("uneven/haproxy.cfg", "haproxy.cfg")],
        directories: &[],
        command: &["haproxy", "-db", "-f", "@DIR@/haproxy.cfg"],
        is_cache: true,
    },
];

pub(crate) const NGINX: &str = "nginx";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_installed_program_has_a_known_package() {
        let programs = CONTENDERS
            .iter()
            .filter_map(|contender| contender.installed_as);
        for program in programs {
            assert!(crate::need::known(program).is_ok(), "{program}");
        }
    }
}
