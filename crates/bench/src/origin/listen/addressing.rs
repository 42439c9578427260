//! How the server of a request is found: by the local address, or by the path.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// How a listening socket identifies servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::origin) enum Addressing {
    /// It is one server's.
    Server(u32),
    /// Each server has an address of its own, counted up from the first.
    Addresses {
        /// Server 0's.
        first: Ipv4Addr,
        /// How many there are.
        servers: u32,
    },
    /// Paths begin with `/s` and the server's number.
    Prefix,
}

/// How a connection identifies servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::origin) enum ServerChoice {
    /// All requests are this server's.
    Server(u32),
    /// By the prefix of the path.
    Prefix,
}

impl Addressing {
    /// For a connection to this address of ours; `None` if that is no server's.
    pub(in crate::origin) fn choice(
        self,
        local: impl FnOnce() -> Option<SocketAddr>,
    ) -> Option<ServerChoice> {
        match self {
            Self::Server(server) => Some(ServerChoice::Server(server)),
            Self::Prefix => Some(ServerChoice::Prefix),
            Self::Addresses { first, servers } => {
                let IpAddr::V4(local) = local()?.ip() else {
                    return None;
                };
                let server = u32::from(local).checked_sub(u32::from(first))?;
                (server < servers).then_some(ServerChoice::Server(server))
            }
        }
    }
}

impl ServerChoice {
    /// The server, and the path without what named it.
    pub(in crate::origin) fn split(self, path: &[u8]) -> Option<(u32, &[u8])> {
        match self {
            Self::Server(server) => Some((server, path)),
            Self::Prefix => {
                let rest = path.strip_prefix(b"/s")?;
                let slash = rest.iter().position(|&byte| byte == b'/')?;
                let (digits, path) = rest.split_at(slash);
                let has_zero = digits.len() > 1 && digits[0] == b'0';
                if has_zero || !digits.iter().all(u8::is_ascii_digit) {
                    return None;
                }
                let server = str::from_utf8(digits).ok()?.parse().ok()?;
                Some((server, path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_address_maps_to_its_server_and_others_to_none() {
        let addressing = Addressing::Addresses {
            first: Ipv4Addr::new(127, 0, 128, 0),
            servers: 300,
        };
        let check = |local: &str, expected: Option<u32>| {
            let local = SocketAddr::new(local.parse().expect("an address"), 80);
            assert_eq!(
                addressing.choice(|| Some(local)),
                expected.map(ServerChoice::Server),
                "{local}"
            );
        };
        check("127.0.128.0", Some(0));
        check("127.0.129.43", Some(299));
        check("127.0.129.44", None);
        check("127.0.127.255", None);
        check("::1", None);
        assert_eq!(addressing.choice(|| None), None);
        assert_eq!(
            Addressing::Server(7).choice(|| None),
            Some(ServerChoice::Server(7))
        );
    }

    #[test]
    fn server_prefix_is_accepted_only_in_its_exact_form() {
        let check = |path: &str, expected: Option<(u32, &str)>| {
            let found = ServerChoice::Prefix.split(path.as_bytes());
            assert_eq!(
                found,
                expected.map(|(server, path)| (server, path.as_bytes())),
                "{path}"
            );
        };
        check("/s0/a", Some((0, "/a")));
        check("/s4294967295/", Some((u32::MAX, "/")));
        for path in [
            "/s4294967296/",
            "/s/a",
            "/s1",
            "/a",
            "/s01/a",
            "/s+1/a",
            "/x1/a",
            "s1/a",
        ] {
            check(path, None);
        }
        assert_eq!(
            ServerChoice::Server(3).split(b"/s1/a"),
            Some((3, &b"/s1/a"[..]))
        );
    }
}
