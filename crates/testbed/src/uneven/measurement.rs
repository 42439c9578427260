//! What an experiment is given, and what it hands back.

use crate::client::http2::ClientVersion;
use crate::origin::Origin;
use crate::proxy::contender::Contender;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// A proxy in front of the origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) contender: &'static Contender,
    pub(crate) address: SocketAddr,
    pub(crate) origin: &'a Origin,
    /// What clients speak.
    pub(crate) version: ClientVersion,
    /// Whether a module of it may change content, which has no length then.
    pub(crate) may_change_content: bool,
}

impl Subject<'_> {
    /// A path of this proxy and experiment alone: the origin counts its fetches.
    pub(crate) fn path(&self, experiment: &str) -> String {
        // names of cases are for people
        let name = self
            .contender
            .name
            .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        format!("/{name}/{experiment}")
    }
}

/// The figures of one proxy, or why there are none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measurement<T> {
    pub(crate) contender: String,
    pub(crate) figures: Option<T>,
    pub(crate) trouble: Option<String>,
}

impl<T> Measurement<T> {
    pub(crate) fn new(contender: &str, outcome: Result<T, String>) -> Self {
        let (figures, trouble) = outcome.map_or_else(
            |trouble| (None, Some(trouble)),
            |figures| (Some(figures), None),
        );
        let contender = contender.to_owned();
        Self {
            contender,
            figures,
            trouble,
        }
    }
}
