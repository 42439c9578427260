//! Who is measured and how each is started: one thread or worker, a cache on disk that holds the whole working set, and as
//! much memory for stored responses as was said where there is such a knob.

use crate::bed::contender::{Contender, WEIR};

/// Everybody, in the order of the table.
pub(crate) static CONTENDERS: [Contender; 5] = [
    Contender {
        name: WEIR,
        installed_as: None,
        version: &["@WEIR@", "--version"],
        templates: &[("store/weir.toml", "weir.toml")],
        directories: &[],
        command: &["@WEIR@", "serve", "--config", "@DIR@/weir.toml"],
        is_cache: true,
    },
    Contender {
        name: "nginx",
        installed_as: Some("nginx"),
        version: &["nginx", "-v"],
        templates: &[("store/nginx.conf", "nginx.conf")],
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
            "file,@DIR@/store,@DISK_MIB@M",
            "-p",
            "vsl_space=8M",
        ],
        is_cache: true,
    },
    Contender {
        name: "squid",
        installed_as: Some("squid"),
        version: &["squid", "-v"],
        templates: &[("store/squid.conf", "squid.conf")],
        directories: &["cache"],
        // its directories are made first; that changes nothing where they are
        command: &[
            "sh",
            "-c",
            "squid -z -N -f @DIR@/squid.conf && exec squid -N -f @DIR@/squid.conf",
        ],
        is_cache: true,
    },
    Contender {
        name: "trafficserver",
        installed_as: Some("traffic_server"),
        version: &["traffic_server", "-V"],
        templates: &[
            ("trafficserver/runroot.yaml", "runroot.yaml"),
            ("store/trafficserver/records.config", "records.config"),
            ("store/trafficserver/storage.config", "storage.config"),
            ("trafficserver/remap.config", "remap.config"),
            ("trafficserver/ip_allow.yaml", "ip_allow.yaml"),
        ],
        directories: &["span"],
        command: &["traffic_server", "--run-root=@DIR@/runroot.yaml"],
        is_cache: true,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bed::template::Words;
    use crate::root;

    #[test]
    fn file_of_a_contender_has_a_word_without_a_meaning() {
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
