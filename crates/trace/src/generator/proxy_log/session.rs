//! A client that goes from page to page.

use super::client_link::ClientLink;
use super::connections::Connections;

/// One session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Hash of the client.
    pub(super) client: u64,
    pub(super) connections: Connections,
    pub(super) link: ClientLink,
    pub(super) site: Option<Site>,
}

/// Where a session is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub(super) has_cookies: bool,
    /// The server's place among those of its class.
    pub(super) server: u32,
    /// Whether connections to it persist.
    pub(super) persists: bool,
    /// The version of HTTP, by its place in the profile.
    pub(super) version: usize,
}

impl Session {
    pub(super) fn new(client: u64) -> Self {
        Self {
            client,
            connections: Connections::default(),
            link: ClientLink::default(),
            site: None,
        }
    }
}
