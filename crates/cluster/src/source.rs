//! Where members are listed, as a setting says it.

use crate::member::parse_url;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use weir_net::next_hops::HopKey;
use weir_semantics::HostName;

/// Where members are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// In this file, as `[[member]]` tables: `file:/etc/weir/members.toml`.
    File(PathBuf),
    /// In the SRV records of this name: `dns-srv:_weir._tcp.example`.
    Services(String),
    /// At all addresses of this host, at one port: `dns:weir.example:3129`.
    Addresses(HopKey),
    /// In etcd, where each node announces itself: `etcd:http://10.0.0.1:2379,http://10.0.0.2:2379`.
    Etcd {
        /// Where etcd answers, at least one.
        endpoints: Vec<HopKey>,
        /// What the keys of the cluster begin with.
        prefix: String,
    },
}

/// What keys in etcd begin with if no other prefix is set.
pub const ETCD_PREFIX: &str = "/weir/cluster/";

/// The most endpoints of an etcd: clusters of it have 3 to 7.
const ENDPOINTS_MAX: usize = 16;

/// Why a text is no source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSource(pub String);

impl fmt::Display for InvalidSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSource {}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Services(name) => write!(f, "dns-srv:{name}"),
            Self::Addresses(hop) => write!(f, "dns:{hop}"),
            Self::Etcd { endpoints, .. } => {
                f.write_str("etcd:")?;
                for (index, hop) in endpoints.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma}http://{hop}")?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for Source {
    type Err = InvalidSource;

    fn from_str(text: &str) -> Result<Self, InvalidSource> {
        let invalid = |why: &str| Err(InvalidSource(format!("`{text}` {why}")));
        match text.split_once(':') {
            Some(("file", "")) => invalid("has no path"),
            Some(("file", path)) => Ok(Self::File(PathBuf::from(path))),
            Some(("dns-srv", name)) => {
                let name = HostName::parse(name)
                    .map_err(|error| InvalidSource(format!("`{name}`: {error}")))?;
                Ok(Self::Services(name.as_str().to_owned()))
            }
            Some(("dns", place)) => {
                let hop = parse_url(&format!("http://{place}"))
                    .map_err(|error| InvalidSource(error.to_string()))?;
                if !place.ends_with(&format!(":{}", hop.port)) {
                    return invalid("has no port: that of all peer listeners");
                }
                Ok(Self::Addresses(hop))
            }
            Some(("etcd", urls)) => {
                let endpoints = urls.split(',').map(parse_url);
                let endpoints = endpoints.collect::<Result<Vec<HopKey>, _>>();
                let endpoints = endpoints.map_err(|error| InvalidSource(error.to_string()))?;
                if endpoints.len() > ENDPOINTS_MAX {
                    return invalid(&format!("has more than {ENDPOINTS_MAX} endpoints"));
                }
                Ok(Self::Etcd {
                    endpoints,
                    prefix: ETCD_PREFIX.into(),
                })
            }
            _ => invalid("is no place where members are listed"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_written_as_it_was_read() {
        for text in [
            "file:/etc/weir/members.toml",
            "file:members.toml",
            "dns-srv:_weir._tcp.example",
            "dns:weir.example:3129",
            "dns:[::1]:3129",
            "etcd:http://10.0.0.1:2379",
            "etcd:http://a.example:2379,http://[::1]:2379",
        ] {
            let source: Source = text.parse().unwrap();
            assert_eq!(source.to_string(), text);
        }
    }

    #[test]
    fn text_that_names_no_source_is_refused() {
        for bad in [
            "",
            "file",
            "file:",
            "/etc/weir/members.toml",
            "consul:a",
            "dns-srv:",
            "dns-srv:a b",
            "dns:a",
            "dns:a:0",
            "dns:a:1/",
            "etcd:",
            "etcd:a:1",
            "etcd:http://a:1,",
        ] {
            assert!(bad.parse::<Source>().is_err(), "{bad}");
        }
    }
}
