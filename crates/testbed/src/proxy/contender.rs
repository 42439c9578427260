//! The servers that may take part, and which of them are installed.

use super::next_release;
use super::template::Words;
use clap::builder::PossibleValuesParser;
use xtask::failure::Failure;
use xtask::need;

/// A server that takes part.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// The program of a Debian package; `None` is built from this repository.
    pub(crate) installed_as: Option<&'static str>,
    /// Whether that program is the one of Debian's next release.
    pub(crate) is_of_next_release: bool,
    /// What prints its version; empty for none.
    pub(crate) version: &'static str,
    /// The folder below `peers/` of the benchmark's own files.
    pub(crate) folder: &'static str,
    /// Files of that folder, or of `peers/` where it has none of that name. Each is filled in and
    /// put into the server's own directory.
    pub(crate) files: &'static [&'static str],
    pub(crate) directories: &'static [&'static str],
    /// Words that spaces part.
    pub(crate) command: &'static str,
    /// More words behind the command.
    pub(crate) arguments: &'static str,
    /// Whether it really is a cache before the origin; bare loops are none.
    pub(crate) is_cache: bool,
}

/// The word for where programs of Debian's next release are.
pub(crate) fn set_next_release(words: &mut Words) {
    words.set("NEXT_RELEASE", next_release::directory().display());
}

/// A command line of a program of Debian's next release, which its own loader starts with its own
/// libraries.
macro_rules! next_release {
    ($line:literal) => {
        concat!(
            "@NEXT_RELEASE@/usr/lib64/ld-linux-x86-64.so.2 --library-path ",
            "@NEXT_RELEASE@/usr/lib/x86_64-linux-gnu @NEXT_RELEASE@/usr/sbin/",
            $line
        )
    };
}

/// The one that is built from this repository.
pub(crate) const WEIR: &str = "weir";

/// How each is started where the benchmark does not say otherwise; what is in its files does.
impl Contender {
    /// Parts that most have in common.
    pub(crate) const NONE: Self = Self {
        name: "",
        installed_as: None,
        is_of_next_release: false,
        version: "",
        folder: "",
        files: &[],
        directories: &[],
        command: "",
        arguments: "",
        is_cache: true,
    };

    pub(crate) const WEIR: Self = Self {
        name: WEIR,
        version: "@WEIR@ --version",
        files: &["weir.toml"],
        command: "@WEIR@ serve --config @DIR@/weir.toml",
        ..Self::NONE
    };

    pub(crate) const NGINX: Self = Self {
        name: "nginx",
        installed_as: Some("nginx"),
        version: "nginx -v",
        files: &["nginx.conf"],
        command: "nginx -e @DIR@/error.log -c @DIR@/nginx.conf",
        ..Self::NONE
    };

    pub(crate) const NGINX_CURRENT: Self = Self {
        name: "nginx-current",
        is_of_next_release: true,
        version: next_release!("nginx -v"),
        command: next_release!("nginx -e @DIR@/error.log -c @DIR@/nginx.conf"),
        ..Self::NGINX
    };

    pub(crate) const HAPROXY: Self = Self {
        name: "haproxy",
        installed_as: Some("haproxy"),
        version: "haproxy -v",
        files: &["haproxy.cfg"],
        command: "haproxy -db -f @DIR@/haproxy.cfg",
        ..Self::NONE
    };

    pub(crate) const HAPROXY_CURRENT: Self = Self {
        name: "haproxy-current",
        is_of_next_release: true,
        version: next_release!("haproxy -v"),
        command: next_release!("haproxy -db -f @DIR@/haproxy.cfg"),
        ..Self::HAPROXY
    };

    /// What it stores where is the benchmark's argument. No jail: it would need users that only
    /// exist on an installed system.
    pub(crate) const VARNISH: Self = Self {
        name: "varnish",
        installed_as: Some("varnishd"),
        version: "varnishd -V",
        files: &["varnish.vcl"],
        command: "varnishd -F -j none -n @DIR@/work -a @HOST@:@PORT@ -T none -f @DIR@/varnish.vcl",
        ..Self::NONE
    };

    pub(crate) const SQUID: Self = Self {
        name: "squid",
        installed_as: Some("squid"),
        version: "squid -v",
        files: &["squid.conf"],
        command: "squid -N -f @DIR@/squid.conf",
        ..Self::NONE
    };

    /// With a store on disk: its directories are made first, which changes nothing where they are.
    pub(crate) const SQUID_ON_DISK: Self = Self {
        directories: &["cache"],
        files: &["squid.conf", "squid-on-disk.sh"],
        command: "sh @DIR@/squid-on-disk.sh",
        ..Self::SQUID
    };

    pub(crate) const TRAFFIC_SERVER: Self = Self {
        name: "trafficserver",
        installed_as: Some("traffic_server"),
        version: "traffic_server -V",
        files: &[
            "trafficserver/runroot.yaml",
            "trafficserver/records.config",
            "trafficserver/storage.config",
            "trafficserver/remap.config",
            "trafficserver/ip_allow.yaml",
        ],
        directories: &["span"],
        command: "traffic_server --run-root=@DIR@/runroot.yaml",
        ..Self::NONE
    };
}

impl Contender {
    /// The same with the files of a folder below `peers/`.
    pub(crate) const fn with(self, folder: &'static str) -> Self {
        Self { folder, ..self }
    }

    /// Whether its program is here. What is built from this repository always is.
    fn is_here(&self) -> bool {
        match self.installed_as {
            Some(program) if self.is_of_next_release => next_release::has(program),
            Some(program) => need::find(program).is_some(),
            None => true,
        }
    }

    /// Command and arguments, each filled in.
    ///
    /// # Errors
    /// See [`Words::fill`].
    pub(crate) fn command_line(&self, words: &Words) -> Result<Vec<String>, Failure> {
        let all = [self.command, self.arguments];
        let all = all.iter().flat_map(|part| part.split_whitespace());
        all.map(|word| words.fill(word)).collect()
    }
}

/// Values of an option that names contenders.
pub(crate) fn names(all: &'static [Contender]) -> PossibleValuesParser {
    PossibleValuesParser::new(all.iter().map(|contender| contender.name))
}

/// Those that are here, and those that are not with the reason.
pub(crate) type Availability = (Vec<&'static Contender>, Vec<(String, String)>);

/// Divides those of these names (all, if there are none) into those that are installed and those
/// that are left out, with the reason; installs missing ones first if requested.
///
/// # Errors
/// A tool without which nothing can be measured is missing.
pub(crate) fn prepare(
    all: &'static [Contender],
    names: &[String],
    tools: &[&str],
    install: bool,
) -> Result<Availability, Failure> {
    let is_chosen = |contender: &&Contender| {
        names.is_empty() || names.iter().any(|name| name == contender.name)
    };
    let chosen = all.iter().filter(is_chosen);
    let tools = ["setpriv", "timeout"].iter().chain(tools).copied();
    if install {
        let peers = |is_of_next_release| {
            let chosen = chosen.clone();
            let these = chosen.filter(move |it| it.is_of_next_release == is_of_next_release);
            these.filter_map(|contender| contender.installed_as)
        };
        let programs: Vec<&str> = tools.clone().chain(peers(false)).collect();
        need::programs(&programs)?;
        // they cannot be had everywhere, and the others are compared without them
        if let Err(failure) = next_release::install(&peers(true).collect::<Vec<_>>()) {
            eprintln!("{failure}");
        }
    }
    if let Some(tool) = tools.clone().find(|tool| need::find(tool).is_none()) {
        return Err(Failure::Outside(format!(
            "`{tool}` is not installed\nhint: `--install` gets it"
        )));
    }
    let (mut present, mut left_out) = (Vec::new(), Vec::new());
    for contender in chosen {
        if contender.is_here() {
            present.push(contender);
            continue;
        }
        let reason = "not installed; `--install` gets it".to_owned();
        eprintln!("{}: {reason}", contender.name);
        left_out.push((contender.name.to_owned(), reason));
    }
    Ok((present, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::count;
    use crate::proxy::server::file_of_peers;
    use crate::{cluster, extend, memory, peers, store, uneven};

    #[test]
    fn contenders_are_in_table_order_with_or_without_names() {
        let check = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            let (present, left_out) =
                prepare(&store::CONTENDERS, &names, &[], false).expect("tools");
            let there = present.iter().map(|contender| contender.name.to_owned());
            let mut all: Vec<String> = there.chain(left_out.into_iter().map(|it| it.0)).collect();
            all.sort();
            all
        };
        assert_eq!(check(&["squid", "nginx"]), ["nginx", "squid"]);
        assert_eq!(check(&[]).len(), store::CONTENDERS.len());
    }

    #[test]
    fn every_program_has_a_known_package_and_every_word_a_value() {
        let mut words = Words::default();
        for name in [
            "WEIR",
            "TESTBED",
            "NEXT_RELEASE",
            "FILES",
            "USER",
            "MODULES",
            "HOST",
            "PORT",
            "DIR",
            "DISK",
            "ADMIN",
            "FETCH",
            "HTTP2",
            "STALLED",
            "MODULE_TABLES",
            "CLUSTER_TABLES",
            "SERVERS",
            "NODES",
            "CHOICE",
            "BALANCE",
            "ROOT",
            "SERVICE",
            "DISK_LINES",
            "ICAP_ECHO",
            "ICAP_WEIR",
            "ORIGIN",
            "ORIGIN_HOST",
            "ORIGIN_PORT",
            "MEMORY_MIB",
            "MEMORY_BYTES",
            "DISK_MIB",
            "TOP",
            "TLS_PORT",
            "CERTIFICATE",
            "KEY",
            "BOTH",
        ] {
            words.set(name, "1");
        }
        peers::scenario::set_store(&mut words, 75, true);
        let tables: [&[Contender]; 13] = [
            &count::WEIRS,
            &peers::CONTENDERS,
            &peers::ON_DISK,
            &peers::scenario::CONTENDERS,
            &peers::dashboard::CONTENDERS,
            &uneven::CONTENDERS,
            &store::CONTENDERS,
            &memory::CONTENDERS,
            &peers::tls::CONTENDERS,
            &peers::attack::CONTENDERS,
            &extend::PROGRAMS,
            &cluster::PROGRAMS,
            &cluster::figure13::PROGRAMS,
        ];
        for contender in tables.into_iter().flatten() {
            let name = contender.name;
            if let Some(program) = contender.installed_as {
                assert!(need::known(program).is_ok(), "{program}");
            }
            for file in contender.files {
                let text = std::fs::read_to_string(file_of_peers(contender.folder, file));
                assert!(
                    words.fill(&text.expect("a file of peers/")).is_ok(),
                    "{name}: {file}"
                );
            }
            assert!(contender.command_line(&words).is_ok(), "{name}");
        }
    }
}
