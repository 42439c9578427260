//! Proxies by name: `squid=127.0.0.1:3128,pid=4711`.

use super::flags::AboutFlags;
use crate::messages::Failure;
use std::str::FromStr;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedProxy {
    pub(super) name: String,
    /// Address and port.
    pub(super) address: String,
    pub(super) pid: Option<u32>,
    pub(super) is_gateway: bool,
}

impl FromStr for NamedProxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let first = parts.next().unwrap_or_default();
        let (name, address) = first
            .split_once('=')
            .filter(|(name, address)| !name.is_empty() && !address.is_empty())
            .ok_or_else(|| format!("`{first}` is not NAME=ADDR, such as `squid=127.0.0.1:3128`"))?;
        let mut proxy = Self {
            name: name.to_owned(),
            address: address.to_owned(),
            pid: None,
            is_gateway: false,
        };
        for part in parts {
            match part.split_once('=') {
                Some(("pid", pid)) => {
                    let pid = pid
                        .parse()
                        .map_err(|_| format!("`{pid}` is no process id"))?;
                    proxy.pid = Some(pid);
                }
                None if part == "gateway" => proxy.is_gateway = true,
                _ => {
                    return Err(format!(
                        "unknown `{part}`; known are `pid=PID` and `gateway`"
                    ));
                }
            }
        }
        Ok(proxy)
    }
}

/// A proxy that has a name or none: `squid=127.0.0.1:3128,pid=4711`, `127.0.0.1:3128`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenProxy {
    pub(super) name: Option<String>,
    /// Address and port.
    pub(super) address: String,
    pub(super) pid: Option<u32>,
    pub(super) is_gateway: bool,
}

impl FromStr for GivenProxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let first = text.split(',').next().unwrap_or_default();
        // a name is made up to read the rest the same way
        let (has_name, text) = if first.contains('=') {
            (true, text.to_owned())
        } else {
            (false, format!("proxy={text}"))
        };
        let proxy: NamedProxy = text.parse()?;
        Ok(Self {
            name: has_name.then_some(proxy.name),
            address: proxy.address,
            pid: proxy.pid,
            is_gateway: proxy.is_gateway,
        })
    }
}

/// Refuses what several proxies cannot share: each needs a name of its own, and flags about one
/// proxy would be ambiguous.
pub(super) fn check(proxies: &[GivenProxy], about: &AboutFlags) -> Result<(), Failure> {
    let refused = |cause: String| {
        Err(Failure::usage("cannot measure several proxies", cause)
            .hint("such as --proxy weir=127.0.0.1:3128,pid=4711 --proxy squid=127.0.0.1:3129"))
    };
    let mut names: Vec<&str> = Vec::new();
    for proxy in proxies {
        let Some(name) = proxy.name.as_deref() else {
            if proxies.len() == 1 {
                return Ok(());
            }
            return refused(format!("`{}` has no name", proxy.address));
        };
        if names.contains(&name) {
            return refused(format!("two have the name `{name}`"));
        }
        names.push(name);
    }
    let flags = [
        ("--label", about.label.is_some()),
        ("--proxy-pid", about.proxy_pid.is_some()),
        ("--proxy-version", about.proxy_version.is_some()),
    ];
    let of_one = flags
        .iter()
        .find(|(_, is_given)| *is_given && proxies.len() > 1);
    match of_one {
        Some((flag, _)) => refused(format!("`{flag}` does not say which of them it is about")),
        None => Ok(()),
    }
}

impl GivenProxy {
    /// What the operator said of all proxies, and what is known of this one.
    pub(super) fn about(&self, all: &AboutFlags) -> AboutFlags {
        AboutFlags {
            label: self.name.clone().or_else(|| all.label.clone()),
            proxy_pid: self.pid.or(all.proxy_pid),
            ..all.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_proxy_parses_every_part_and_a_bad_part_is_reported() {
        let proxy: NamedProxy = "squid=127.0.0.1:3128,pid=4711,gateway"
            .parse()
            .expect("a proxy");
        let expected = NamedProxy {
            name: "squid".into(),
            address: "127.0.0.1:3128".into(),
            pid: Some(4711),
            is_gateway: true,
        };
        assert_eq!(proxy, expected);
        for (text, part) in [
            ("127.0.0.1:3128", "is not NAME=ADDR"),
            ("=127.0.0.1:3128", "is not NAME=ADDR"),
            ("a=b,pid=x", "`x` is no process id"),
            ("a=b,gatway", "unknown `gatway`"),
        ] {
            let error = text.parse::<NamedProxy>().expect_err("it is none");
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn given_proxy_parses_with_or_without_a_name_and_a_bad_part_is_reported() {
        let proxy: GivenProxy = "127.0.0.1:3128,pid=7,gateway".parse().expect("a proxy");
        assert_eq!(
            (proxy.name, proxy.pid, proxy.is_gateway),
            (None, Some(7), true)
        );
        assert_eq!(proxy.address, "127.0.0.1:3128");
        let proxy: GivenProxy = "squid=h:1".parse().expect("a proxy");
        assert_eq!(
            (proxy.name.as_deref(), proxy.address.as_str()),
            (Some("squid"), "h:1")
        );
        let error = "h:1,gatway".parse::<GivenProxy>().expect_err("it is none");
        assert!(error.contains("unknown `gatway`"), "{error}");
    }
}
