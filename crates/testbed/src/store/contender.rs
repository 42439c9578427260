//! Who is measured and how each is started: one thread or worker, a cache on disk that holds the
//! whole working set, and as much memory for stored responses as was said where there is such a
//! setting.

use crate::proxy::contender::Contender;

/// Everybody, in the order of the table.
pub(crate) static CONTENDERS: [Contender; 5] = [
    Contender {
        templates: &[("store/weir.toml", "weir.toml")],
        ..Contender::WEIR
    },
    Contender {
        templates: &[("store/nginx.conf", "nginx.conf")],
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
            "file,@DIR@/store,@DISK_MIB@M",
            "-p",
            "vsl_space=8M",
        ],
        ..Contender::VARNISH
    },
    Contender {
        templates: &[("store/squid.conf", "squid.conf")],
        directories: &["cache"],
        // its directories are made first; that changes nothing where they are
        command: &[
            "sh",
            "-c",
            "squid -z -N -f @DIR@/squid.conf && exec squid -N -f @DIR@/squid.conf",
        ],
        ..Contender::SQUID
    },
    Contender {
        templates: &[
            ("trafficserver/runroot.yaml", "runroot.yaml"),
            ("store/trafficserver/records.config", "records.config"),
            ("store/trafficserver/storage.config", "storage.config"),
            ("trafficserver/remap.config", "remap.config"),
            ("trafficserver/ip_allow.yaml", "ip_allow.yaml"),
        ],
        ..Contender::TRAFFIC_SERVER
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::template::Words;
    use crate::root;

    #[test]
    fn every_placeholder_in_configuration_files_has_a_value() {
        let mut words = Words::default();
        for name in [
            "WEIR",
            "FILES",
            "USER",
            "HOST",
            "PORT",
            "DIR",
            "ADMIN",
            "ORIGIN",
            "ORIGIN_HOST",
            "ORIGIN_PORT",
            "MEMORY_MIB",
            "MEMORY_BYTES",
            "DISK_MIB",
        ] {
            words.set(name, "1");
        }
        for contender in &CONTENDERS {
            for (from, _) in contender.templates {
                let path = root::directory().join("peers").join(from);
                let text = std::fs::read_to_string(path).expect("a file of peers/");
                words.fill(&text).expect("every word has a value");
            }
        }
    }
}
