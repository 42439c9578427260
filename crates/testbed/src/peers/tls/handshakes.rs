//! Handshakes one after the other, by `openssl s_time`.

use crate::process::guarded;
use std::net::SocketAddr;
use std::time::Duration;
use xtask::failure::{During, Failure};

/// How a session begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// By TLS 1.3, with a certificate.
    Full,
    /// By TLS 1.2, with the ticket of the first one: the program takes no ticket of TLS 1.3, which
    /// comes behind the handshake.
    Resumed,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Full, Self::Resumed];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Resumed => "resumed",
        }
    }

    const fn words(self) -> [&'static str; 2] {
        match self {
            Self::Full => ["-new", "-tls1_3"],
            Self::Resumed => ["-reuse", "-tls1_2"],
        }
    }
}

/// Has handshakes for so many seconds; how many.
pub(super) fn run(to: SocketAddr, kind: Kind, seconds: u32, core: usize) -> Result<u64, Failure> {
    let mut arguments = vec!["openssl".to_owned(), "s_time".to_owned()];
    arguments.extend(kind.words().map(str::to_owned));
    arguments.extend(["-connect", &to.to_string()].map(str::to_owned));
    arguments.extend(["-time", &seconds.to_string()].map(str::to_owned));
    let life = Duration::from_secs(u64::from(seconds) + 20);
    let (text, _) = guarded::output(core, &arguments, life)?;
    let count = parse(&text).ok_or_else(|| format!("it said: {text}"));
    count.during("read the report of openssl s_time")
}

/// The number of the last line such as `1423 connections in 4 real seconds, 0 bytes read per
/// connection`.
fn parse(text: &str) -> Option<u64> {
    let mut lines = text.lines().rev();
    let line = lines.find(|line| line.contains(" connections in ") && line.contains("real"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_the_whole_time_are_counted() {
        let text = "Collecting connection statistics for 3 seconds\n***\n\n\
                    1423 connections in 1.91s; 745.03 connections/user sec, bytes read 0\n\
                    1423 connections in 4 real seconds, 0 bytes read per connection\n";
        assert_eq!(parse(text), Some(1423));
        assert_eq!(parse("Collecting connection statistics"), None);
    }
}
