//! The settings for reading a source.

use super::hide::Hide;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use weir_semantics::Authority;

/// What to do where a size is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingSize {
    /// What the format says: the `-` of a Common log means that no content was sent, the -1 of a
    /// HAR that it is not known; anywhere else it is damage.
    #[default]
    AsTheFormatSays,
    /// Leave the item out and count it.
    Skip,
    /// Take it for so many bytes.
    Assume(u64),
}

/// Scheme and authority that targets get which have none: a server's log knows only paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    text: String,
}

impl Site {
    /// `http://www.example.org`, without a path.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Site {
    type Err = BadSite;

    fn from_str(text: &str) -> Result<Self, BadSite> {
        let bare = text.strip_suffix('/').unwrap_or(text);
        let authority = bare
            .strip_prefix("http://")
            .or_else(|| bare.strip_prefix("https://"));
        match authority.map(Authority::parse) {
            Some(Ok(_)) => Ok(Self {
                text: bare.to_owned(),
            }),
            _ => Err(BadSite(text.to_owned())),
        }
    }
}

/// Not scheme and authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadSite(String);

impl fmt::Display for BadSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is not like `https://www.example.org`: scheme, host, and a port if it is not the scheme's own",
            self.0
        )
    }
}

impl std::error::Error for BadSite {}

/// How to read.
#[derive(Clone)]
pub struct Settings<'a> {
    /// Hides names.
    pub hide: &'a dyn Hide,
    /// What a missing size means.
    pub missing_size: MissingSize,
    /// The site whose log it is, for targets without authority.
    pub site: Option<Site>,
    /// Which input of its trace this is, from 0: connections of different inputs are different, and
    /// so are the browsers of two HARs.
    pub input: u32,
    /// Where a capture's proxy took requests: its own requests become columns of those that it
    /// forwards. Other formats know no addresses.
    pub proxy: Option<SocketAddr>,
    /// Whether the rows become the whole trace as they are. Places of rows mean something only
    /// then.
    pub is_whole_trace: bool,
}

impl<'a> Settings<'a> {
    /// The only input of a trace, as its format says.
    #[must_use]
    pub fn new(hide: &'a dyn Hide) -> Self {
        Self {
            hide,
            missing_size: MissingSize::default(),
            site: None,
            input: 0,
            proxy: None,
            is_whole_trace: true,
        }
    }
}

impl fmt::Debug for Settings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("missing_size", &self.missing_size)
            .field("site", &self.site)
            .field("input", &self.input)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}
