//! Who takes part in a scenario and how each is started: as a forward proxy if it can be one, with
//! one worker, a store on disk of the same room for everybody, and little memory before it. What
//! each stores and for how long is left to its own rules.

use crate::proxy::contender::Contender;
use crate::proxy::template::Words;

/// Everybody, in the order of reports.
pub(crate) static CONTENDERS: [Contender; 6] = [
    Contender {
        templates: &[("bench/weir.toml", "weir.toml")],
        ..Contender::WEIR
    },
    Contender {
        templates: &[("bench/squid.conf", "squid.conf")],
        directories: &["cache"],
        // its directories are made first
        command: &[
            "sh",
            "-c",
            "squid -z -N -f @DIR@/squid.conf && exec squid -N -f @DIR@/squid.conf",
        ],
        ..Contender::SQUID
    },
    Contender {
        templates: &[("bench/nginx.conf", "nginx.conf")],
        ..Contender::NGINX
    },
    Contender {
        name: "apache",
        installed_as: Some("apache2"),
        version: &["apache2", "-v"],
        templates: &[("bench/apache.conf", "apache.conf")],
        directories: &["cache"],
        // mod_cache_disk knows no limit of its size. The program that keeps it can look once a
        // minute by itself; here it is called every five seconds, and what it costs is counted with
        // the server
        command: &[
            "sh",
            "-c",
            "while sleep 5; do htcacheclean -p @DIR@/cache -l @CACHE_MIB@M; done & \
             exec apache2 -D FOREGROUND -f @DIR@/apache.conf",
        ],
        is_cache: true,
    },
    Contender {
        templates: &[("bench/varnish.vcl", "varnish.vcl")],
        // no jail: it would need users that only exist on an installed system. Its store is memory:
        // that on disk is deprecated
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
            "malloc,@CACHE_MIB@M",
            "-p",
            "thread_pools=1",
            "-p",
            "thread_pool_max=2000",
            "-p",
            "vsl_space=8M",
            // it was asked once before there was an origin, to see that it is up, and would refuse
            // the first requests for that
            "-p",
            "backend_remote_error_holddown=0",
            "-p",
            "backend_local_error_holddown=0",
        ],
        ..Contender::VARNISH
    },
    Contender {
        templates: &[
            ("trafficserver/runroot.yaml", "runroot.yaml"),
            ("bench/trafficserver/records.config", "records.config"),
            ("bench/trafficserver/storage.config", "storage.config"),
            ("bench/trafficserver/remap.config", "remap.config"),
            ("trafficserver/ip_allow.yaml", "ip_allow.yaml"),
        ],
        ..Contender::TRAFFIC_SERVER
    },
];

/// Whether it stands before the origin instead of being told to clients: the only one that cannot
/// be a forward proxy.
pub(crate) fn is_gateway(contender: &Contender) -> bool {
    contender.name == Contender::VARNISH.name
}

/// Memory before a store on disk, MiB: an eighth of the store, and enough for the largest response
/// of WPB.
fn memory_mib(cache_mib: u32) -> u32 {
    (cache_mib / 8).max(4)
}

/// The words about the store; how each is told to keep nothing.
pub(crate) fn set_store(words: &mut Words, cache_mib: u32, is_caching: bool) {
    let pick = |on: &'static str, off: &'static str| if is_caching { on } else { off };
    let memory_mib = memory_mib(cache_mib);
    words.set("CACHE_MIB", cache_mib);
    words.set("MEMORY_MIB", memory_mib);
    words.set("MEMORY_BYTES", u64::from(memory_mib) << 20);
    words.set("IS_CACHING", is_caching);
    words.set("ALLOW", pick("allow", "deny"));
    words.set("ZONE", pick("bench", "off"));
    words.set("BIT", pick("1", "0"));
    words.set("CACHE_DIRECTIVE", pick("CacheEnable disk", "CacheDisable"));
    words.set("VCL_RULE", pick("", "return (pass);"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    /// Every word that a file or a command may have.
    fn words(is_caching: bool) -> Words {
        let mut words = Words::default();
        for name in [
            "WEIR",
            "FILES",
            "USER",
            "MODULES",
            "HOST",
            "PORT",
            "DIR",
            "ORIGIN_HOST",
            "ORIGIN_PORT",
        ] {
            words.set(name, "1");
        }
        set_store(&mut words, 75, is_caching);
        words
    }

    #[test]
    fn every_placeholder_in_files_and_commands_has_a_value() {
        let words = words(true);
        for contender in &CONTENDERS {
            for (from, _) in contender.templates {
                let path = root::directory().join("peers").join(from);
                let text = std::fs::read_to_string(path).expect("a file of peers/");
                words.fill(&text).expect("every word has a value");
            }
            for word in contender.command {
                words.fill(word).expect("every word has a value");
            }
        }
    }

    #[test]
    fn configuration_of_every_proxy_differs_without_caching() {
        for contender in &CONTENDERS {
            let filled = |is_caching| {
                let words = words(is_caching);
                let files = contender.templates.iter().map(|(from, _)| {
                    let path = root::directory().join("peers").join(from);
                    let text = std::fs::read_to_string(path).expect("a file of peers/");
                    words.fill(&text).expect("every word has a value")
                });
                files.collect::<Vec<_>>()
            };
            assert_ne!(filled(true), filled(false), "{}", contender.name);
        }
    }

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
