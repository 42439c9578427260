//! One run of a cluster, and the traces that need no file.

use super::error::LardError;
use super::line::Line;
use crate::cluster::{
    BackEndsSetting, ClusterOutcome, ClusterRun, Elsewhere, Http, Mechanism, MechanismCosts, Server,
};
use std::num::NonZero;
use weir_policy::route::policy::PolicyKind;
use weir_trace::Row;
use weir_trace::grouping::{ConnectionTrace, GroupingRules};

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Job {
    /// Of figures 7 and 8. Costs that the line does not have are not part of it.
    Throughput {
        server: Server,
        line: Line,
        nodes: u16,
        scale: u32,
    },
    /// Of figure 3: one Apache with so many connections at once; the trace, or hits of 8 KB.
    Load { admitted: u32, is_trace: bool },
    /// Of figures 5 and 6: every later request of a connection is given to another node.
    Size {
        server: Server,
        mechanism: Mechanism,
        kb: u32,
        scale: u32,
    },
    /// Hits of 8 KB over HTTP/1.0: the check of a server's costs.
    Check(Server),
}

/// Connections at once in figure 3.
pub(super) const LOADS: [u32; 14] = [1, 2, 5, 10, 15, 20, 30, 40, 60, 80, 100, 130, 160, 200];

/// Response sizes of figures 5 and 6, KB.
pub(super) const SIZES_KB: [u32; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16, 20, 26, 32];

/// Connections of the traces that are made up for a figure.
const CONNECTIONS: u64 = 2000;

impl Job {
    /// A run of figures 7 and 8.
    pub(super) const fn throughput(server: Server, line: Line, nodes: u16, scale: u32) -> Self {
        let has_costs = matches!(
            line.mechanism(),
            Mechanism::MultipleHandOff | Mechanism::Forwarding
        );
        Self::Throughput {
            server,
            line,
            nodes,
            scale: if has_costs { scale } else { 0 },
        }
    }

    /// How many requests it has, if the trace has `requests`.
    pub(super) const fn requests(self, requests: u64) -> u64 {
        match self {
            Self::Throughput { .. } | Self::Load { is_trace: true, .. } => requests,
            Self::Size { .. } | Self::Load { .. } | Self::Check(_) => CONNECTIONS * 6,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// `is_stopped` said so meanwhile, or a cost cannot be.
    pub(super) fn run(
        self,
        trace: &ConnectionTrace,
        seed: u64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<ClusterOutcome, LardError> {
        let outcome = match self {
            Self::Throughput {
                server,
                line,
                nodes,
                scale,
            } => {
                let setting = BackEndsSetting {
                    policy: line.policy(),
                    mechanism: line.mechanism(),
                    http: line.http(),
                    ..setting(server, nodes, scale, seed)?
                };
                ClusterRun::new(&setting, trace)?.run(is_stopped)
            }
            Self::Load { admitted, is_trace } => {
                let setting = BackEndsSetting {
                    policy: PolicyKind::InTurn,
                    mechanism: Mechanism::HandOff,
                    http: Http::V1_0,
                    admitted_max: NonZero::new(admitted).unwrap_or(NonZero::<u32>::MIN),
                    ..setting(Server::Apache, 1, 0, seed)?
                };
                let hits = repeated(&[6], CHECKED_BYTES)?;
                let trace = if is_trace { trace } else { &hits };
                ClusterRun::new(&setting, trace)?.run(is_stopped)
            }
            Self::Size {
                server,
                mechanism,
                kb,
                scale,
            } => {
                let setting = BackEndsSetting {
                    mechanism,
                    ..setting(server, 2, scale, seed)?
                };
                // 5.6 requests in the mean
                let trace = repeated(&[6, 5, 6, 5, 6], u64::from(kb) * 1024)?;
                let policy = Box::<Elsewhere>::default();
                ClusterRun::with_policy(&setting, policy, &trace)?.run(is_stopped)
            }
            Self::Check(server) => {
                let setting = BackEndsSetting {
                    http: Http::V1_0,
                    ..setting(server, 1, 0, seed)?
                };
                let trace = repeated(&[6], CHECKED_BYTES)?;
                ClusterRun::new(&setting, &trace)?.run(is_stopped)
            }
        };
        outcome.ok_or(LardError::Interrupted)
    }
}

/// The response that costs of servers are checked with.
const CHECKED_BYTES: u64 = 8 * 1024;

fn setting(
    server: Server,
    nodes: u16,
    scale: u32,
    seed: u64,
) -> Result<BackEndsSetting, LardError> {
    let scale = match scale {
        0 => MechanismCosts::SCALE,
        scale => f64::from(scale) / 1000.0,
    };
    let server = server.costs();
    let costs = MechanismCosts::at_crossover(&server, scale)?;
    let nodes = NonZero::new(nodes).unwrap_or(NonZero::<u16>::MIN);
    let mut setting = BackEndsSetting::of(nodes, server, costs);
    setting.seed = seed;
    Ok(setting)
}

/// Connections of so many requests in turn, each a batch of its own, for one target.
fn repeated(lengths: &[u64], bytes: u64) -> Result<ConnectionTrace, LardError> {
    let lengths = lengths.iter().cycle();
    let connections = (0..CONNECTIONS).zip(lengths);
    let rows = connections.flat_map(|(connection, length)| {
        (0..*length).map(move |place| {
            Ok(Row {
                arrival_us: i64::try_from(connection * 60 + place * 10).unwrap_or(0) * 1_000_000,
                connection: Some(connection),
                target: 1,
                received_bytes: Some(bytes),
                ..Row::default()
            })
        })
    });
    Ok(ConnectionTrace::read(rows, GroupingRules::default())?)
}
