//! The hosts file, and the names that always mean this machine.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use super::Addresses;

const PATH: &str = "/etc/hosts";

/// Maximum of bytes that are read of the file: some lists in use have a few hundred thousand names.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Names with addresses of their own; read once, at start.
pub(super) struct HostsFile {
    by_name: HashMap<Box<str>, Addresses>,
    localhost: Addresses,
}

impl HostsFile {
    /// The machine's; empty if there is none to read.
    pub(super) fn read_system() -> Self {
        let mut text = Vec::new();
        let read =
            File::open(PATH).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut text));
        if read.is_err() {
            text.clear();
        }
        Self::parse(&String::from_utf8_lossy(&text))
    }

    /// The addresses of `name`, which is in lower case. `localhost` and what ends in it is loopback
    /// whatever file or name server say (RFC 6761 §6.3).
    pub(super) fn get(&self, name: &str) -> Option<Addresses> {
        let name = name.strip_suffix('.').unwrap_or(name);
        if name == "localhost" || name.ends_with(".localhost") {
            return Some(Arc::clone(&self.localhost));
        }
        self.by_name.get(name).map(Arc::clone)
    }

    fn parse(text: &str) -> Self {
        let mut lists: HashMap<Box<str>, Vec<IpAddr>> = HashMap::new();
        for line in text.lines() {
            let mut words = line
                .split('#')
                .next()
                .unwrap_or("")
                .split_ascii_whitespace();
            // a line whose address cannot be read (a zone, a typing error) is skipped
            let Some(Ok(address)) = words.next().map(str::parse) else {
                continue;
            };
            for name in words {
                let list = lists.entry(name.to_ascii_lowercase().into()).or_default();
                if list.len() < super::ADDRESSES_MAX && !list.contains(&address) {
                    list.push(address);
                }
            }
        }
        Self {
            by_name: lists
                .into_iter()
                .map(|(name, list)| (name, list.into()))
                .collect(),
            localhost: Arc::new([Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# comment\n127.0.0.1 localhost\n192.0.2.1\tApp.Example  app # x\n2001:db8::1 app\nfe80::1%eth0 zone\nnonsense app\n192.0.2.1 app\n192.0.2.9 localhost\n";

    fn check(name: &str, expected: &[&str]) {
        let found = HostsFile::parse(TEXT)
            .get(name)
            .map(|list| list.iter().map(ToString::to_string).collect());
        let expected = (!expected.is_empty())
            .then(|| expected.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn hosts_file_maps_names_and_skips_malformed_lines() {
        check("app.example", &["192.0.2.1"]);
        check("app.example.", &["192.0.2.1"]);
        check("app", &["192.0.2.1", "2001:db8::1"]);
        check("zone", &[]);
        check("x", &[]);
        check("nothere", &[]);
    }

    #[test]
    fn localhost_names_resolve_to_loopback() {
        for name in ["localhost", "localhost.", "a.localhost"] {
            check(name, &["127.0.0.1", "::1"]);
        }
        check("notlocalhost", &[]);
    }
}
