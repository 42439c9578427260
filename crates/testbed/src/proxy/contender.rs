//! Who may take part, and which of them are here.

use crate::failure::Failure;
use crate::proxy::need;

/// A server that takes part.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// The program of a Debian package; `None` is built from this repository.
    pub(crate) installed_as: Option<&'static str>,
    pub(crate) version: &'static [&'static str],
    /// Files of `peers/` and what they are called in the server's own directory.
    pub(crate) templates: &'static [(&'static str, &'static str)],
    pub(crate) directories: &'static [&'static str],
    pub(crate) command: &'static [&'static str],
    /// Whether it really is a cache before the origin; the floor only answers.
    pub(crate) is_cache: bool,
}

/// The one that is built from this repository.
pub(crate) const WEIR: &str = "weir";

/// How each is started where the chore does not say otherwise; what is in its files does.
impl Contender {
    pub(crate) const WEIR: Self = Self {
        name: WEIR,
        installed_as: None,
        version: &["@WEIR@", "--version"],
        templates: &[],
        directories: &[],
        command: &["@WEIR@", "serve", "--config", "@DIR@/weir.toml"],
        is_cache: true,
    };

    pub(crate) const NGINX: Self = Self {
        name: "nginx",
        installed_as: Some("nginx"),
        version: &["nginx", "-v"],
        templates: &[],
        directories: &[],
        command: &["nginx", "-e", "@DIR@/error.log", "-c", "@DIR@/nginx.conf"],
        is_cache: true,
    };

    pub(crate) const HAPROXY: Self = Self {
        name: "haproxy",
        installed_as: Some("haproxy"),
        version: &["haproxy", "-v"],
        templates: &[],
        directories: &[],
        command: &["haproxy", "-db", "-f", "@DIR@/haproxy.cfg"],
        is_cache: true,
    };

    /// Its command says what it stores where, and is the chore's.
    pub(crate) const VARNISH: Self = Self {
        name: "varnish",
        installed_as: Some("varnishd"),
        version: &["varnishd", "-V"],
        templates: &[("varnish.vcl", "varnish.vcl")],
        directories: &[],
        command: &[],
        is_cache: true,
    };

    pub(crate) const SQUID: Self = Self {
        name: "squid",
        installed_as: Some("squid"),
        version: &["squid", "-v"],
        templates: &[],
        directories: &[],
        command: &["squid", "-N", "-f", "@DIR@/squid.conf"],
        is_cache: true,
    };

    pub(crate) const TRAFFIC_SERVER: Self = Self {
        name: "trafficserver",
        installed_as: Some("traffic_server"),
        version: &["traffic_server", "-V"],
        templates: &[],
        directories: &["span"],
        command: &["traffic_server", "--run-root=@DIR@/runroot.yaml"],
        is_cache: true,
    };
}

/// The contenders of these names, in the order of the table; all when there are none.
///
/// # Errors
/// A name that nobody has is bad usage.
pub(crate) fn named(
    all: &'static [Contender],
    names: &[String],
) -> Result<Vec<&'static Contender>, Failure> {
    let is_known = |name: &&String| all.iter().any(|contender| contender.name == *name);
    if let Some(name) = names.iter().find(|name| !is_known(name)) {
        let known: Vec<&str> = all.iter().map(|contender| contender.name).collect();
        return Err(Failure::Usage(format!(
            "`{name}` is none of {}",
            known.join(", ")
        )));
    }
    let is_chosen = |contender: &&Contender| {
        names.is_empty() || names.iter().any(|name| name == contender.name)
    };
    Ok(all.iter().filter(is_chosen).collect())
}

/// Those that are here, and those that are not with the reason.
pub(crate) type Prepared = (Vec<&'static Contender>, Vec<(String, String)>);

/// Divides the chosen into those that are installed and those that are left out, with the reason;
/// installs what is missing first when that is wanted.
///
/// # Errors
/// A tool without which nothing can be measured is missing.
pub(crate) fn prepare(
    chosen: &[&'static Contender],
    tools: &[&str],
    chore: &str,
    install: bool,
) -> Result<Prepared, Failure> {
    if install {
        let peers = chosen.iter().filter_map(|contender| contender.installed_as);
        let programs: Vec<&str> = tools.iter().copied().chain(peers).collect();
        need::install(&programs)?;
    }
    if let Some(tool) = tools.iter().find(|tool| need::find(tool).is_none()) {
        return Err(Failure::Outside(format!(
            "`{tool}` is not installed\nhint: `cargo xtask {chore} --install` gets it"
        )));
    }
    let (mut present, mut left_out) = (Vec::new(), Vec::new());
    for contender in chosen {
        match contender.installed_as {
            Some(program) if need::find(program).is_none() => {
                let reason = "not installed; `--install` gets it".to_owned();
                eprintln!("{}: {reason}", contender.name);
                left_out.push((contender.name.to_owned(), reason));
            }
            _ => present.push(*contender),
        }
    }
    Ok((present, left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn contender(name: &'static str) -> Contender {
        Contender {
            name,
            installed_as: None,
            version: &[],
            templates: &[],
            directories: &[],
            command: &[],
            is_cache: true,
        }
    }

    static ALL: [Contender; 3] = [contender("a"), contender("b"), contender("c")];

    fn check(names: &[&str], expected: Option<&[&str]>) {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let chosen = named(&ALL, &names).ok();
        let chosen: Option<Vec<&str>> =
            chosen.map(|them| them.iter().map(|contender| contender.name).collect());
        assert_eq!(chosen.as_deref(), expected, "{names:?}");
    }

    #[test]
    fn named_peers_are_selected_in_table_order() {
        check(&["c", "a"], Some(&["a", "c"]));
        check(&[], Some(&["a", "b", "c"]));
    }

    #[test]
    fn unknown_peer_name_is_refused() {
        check(&["a", "d"], None);
    }
}
