//! Where the members of a cluster are listed.

use crate::config::values::text::{BadValue, Form, text_value};
use std::fmt;
use weir_cluster::Source;

/// Where members are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MembersSource {
    /// In the configuration: `"config"`.
    Config,
    /// Elsewhere.
    Of(Source),
}

impl fmt::Display for MembersSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config => f.write_str("config"),
            Self::Of(source) => source.fmt(f),
        }
    }
}

impl std::str::FromStr for MembersSource {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "config" => Ok(Self::Config),
            _ if text.starts_with('/') => Err(BadValue::new(format!(
                "`{text}` is no place where members are listed"
            ))
            .suggesting(format!("file:{text}"))),
            _ => {
                let source = text.parse().map(Self::Of);
                source.map_err(|error: weir_cluster::InvalidSource| refusal(text, error))
            }
        }
    }
}

fn refusal(text: &str, error: weir_cluster::InvalidSource) -> BadValue {
    let place = text.split_once(':').filter(|(_, place)| !place.is_empty());
    match place {
        // the port of the examples
        Some(("dns", host)) if !host.contains([':', '/']) => {
            BadValue::new(error.0).suggesting(format!("dns:{host}:3129"))
        }
        Some(("file" | "dns-srv" | "dns" | "etcd", _)) => BadValue::new(error.0),
        _ => BadValue::new(format!("{}: use {}", error.0, MembersSource::FORM)),
    }
}

impl Form for MembersSource {
    const FORM: &'static str = "\"config\", \"file:/path\", \"dns-srv:_weir._tcp.example\", \"dns:host:port\", or \"etcd:http://host:2379\" with several URLs behind commas";
}

text_value!(MembersSource);
