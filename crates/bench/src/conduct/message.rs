//! Messages between master and participants.

use crate::client::ClientResult;
use crate::failure::Failure;
use crate::origin::OriginCounts;
use crate::tally::SecondTally;
use crate::usage::ThreadLoad;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use weir_measure::record::{Host, LinkShaping, Mode};

/// The version of this protocol. Participants of another are refused.
pub(super) const PROTOCOL: u32 = 5;

/// What a participant does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It serves the site.
    Origin,
    /// It sends requests.
    Clients,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Origin => "origin",
            Self::Clients => "clients",
        })
    }
}

/// From a participant to its master.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum ToMaster {
    /// The first line.
    Hello(Hello),
    /// The task is prepared.
    Ready {
        /// An origin's: the address of every server of the scenario.
        servers: Vec<SocketAddr>,
        /// Time of the work that is repeated between `go` and the start, microseconds: clients run
        /// their generators up to the first request.
        takes_us: u64,
    },
    /// The echo of a ping.
    Pong,
    /// One second of one thread of clients.
    Second {
        /// What it saw.
        second: SecondTally,
    },
    /// An origin's keep-alive message.
    Served {
        /// Requests up to now.
        requests: u64,
    },
    /// What all clients of the participant saw.
    Result(Box<ClientsResult>),
    /// What the origin saw.
    Counted(Box<OriginResult>),
    /// It cannot go on.
    Failed(Failure),
}

/// The introduction of a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Hello {
    /// [`PROTOCOL`].
    pub(super) protocol: u32,
    /// What it does.
    pub(super) role: Role,
    /// What it calls itself.
    pub(super) name: String,
    /// The version of the program.
    pub(super) version: String,
    /// Its threads of this role.
    pub(super) threads: u32,
    /// Its machine.
    pub(super) host: Host,
    /// Its wall clock, milliseconds since 1970.
    pub(super) wall_ms: i64,
}

/// The result of a participant that runs clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientsResult {
    pub(super) clients: ClientResult,
    pub(super) load: ThreadLoad,
    /// The file of samples that was written.
    pub(super) samples: Option<String>,
    /// What shaped its links; `None` where there are none.
    pub(super) link_shaping: Option<LinkShaping>,
}

/// What an origin brings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OriginResult {
    pub(super) counts: OriginCounts,
    pub(super) load: ThreadLoad,
}

/// From the master to a participant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum ToParticipant {
    /// It is refused.
    Refused {
        /// Why.
        why: String,
    },
    /// To an origin: prepare to serve.
    Serve(Box<OriginTask>),
    /// To clients: prepare to send requests.
    Ask(Box<ClientTask>),
    /// Say `pong`.
    Ping,
    /// The run starts.
    Go {
        /// In so many microseconds from now.
        in_us: u64,
    },
    /// The run is over: say what was counted.
    Stop,
}

/// What an origin is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OriginTask {
    /// TOML.
    pub(super) scenario: String,
    pub(super) seed: u64,
    /// All threads of all clients.
    pub(super) shares: u32,
    /// How the proxy is spoken to: a gateway's origin has one address.
    pub(super) mode: Mode,
}

/// What clients are to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientTask {
    /// TOML.
    pub(super) scenario: String,
    pub(super) seed: u64,
    /// The share of the participant's first thread; the others follow.
    pub(super) first_share: u32,
    /// All threads of all clients.
    pub(super) shares: u32,
    pub(super) proxy: SocketAddr,
    pub(super) mode: Mode,
    /// The address of every server; empty for a gateway.
    pub(super) servers: Vec<SocketAddr>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_on_one_line_and_unknown_fields_are_refused() {
        let messages = [
            ToMaster::Pong,
            ToMaster::Ready {
                servers: vec![SocketAddr::from(([127, 0, 0, 1], 8000))],
                takes_us: 7,
            },
            ToMaster::Second {
                second: SecondTally {
                    at_s: 3,
                    response_time_us: vec![(u64::MAX, 1)],
                    ..SecondTally::default()
                },
            },
            ToMaster::Result(Box::default()),
            ToMaster::Counted(Box::default()),
            ToMaster::Failed(Failure::usage("cannot x", "y").with_hint("z")),
        ];
        for message in messages {
            let line = serde_json::to_string(&message).expect("a message is JSON");
            assert!(!line.contains('\n'), "{line}");
            let read: ToMaster = serde_json::from_str(&line).expect("it was just written");
            assert_eq!(read, message);
        }
        let line = r#"{"message":"go","in_us":1,"other":2}"#;
        assert!(
            serde_json::from_str::<ToParticipant>(line).is_err(),
            "{line}"
        );
    }
}
