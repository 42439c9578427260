//! Proxies by name: `squid=127.0.0.1:3128,pid=4711`.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_of_a_proxy_is_lost() {
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
}
