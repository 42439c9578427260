//! What came of a network.

use super::counts::Estimated;
use super::flash_crowd::FlashCrowd;
use super::messages::Messages;
use serde::Serialize;

/// One network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScaleOutcome {
    /// Nodes.
    pub nodes: u16,
    /// Requests of clients.
    pub requests: u64,
    /// Their content, bytes.
    pub bytes: u64,
    /// How long they take, seconds.
    pub duration_s: f64,
    /// Requests that no origin was asked for, in parts of all.
    pub hit_ratio: Estimated,
    /// Requests whose response the node of the client had, in parts of all.
    pub own_hit_ratio: Estimated,
    /// Requests that the origin was asked for.
    pub origin_requests: Estimated,
    /// Their content, bytes.
    pub origin_bytes: Estimated,
    /// Requests that went to another node.
    pub lateral_requests: Estimated,
    /// Their content, bytes.
    pub lateral_bytes: Estimated,
    /// Requests of the busiest node, those of other nodes counted, in parts of the mean.
    pub busiest: Estimated,
    /// Clients' requests of the node that has most, in parts of the mean.
    pub busiest_by_clients: f64,
    /// Responses that a node holds at the end.
    pub residents: u64,
    /// What nodes tell each other.
    pub messages: Messages,
    /// Origin requests that a node costs which joins, empty, in the middle of the trace: what is
    /// beyond those of the same network with that node from the beginning. `None`: one node.
    pub join: Option<Estimated>,
    /// Origin requests that a node costs which dies in the middle of the trace. `None`: one node.
    pub death: Option<Estimated>,
    /// A flash crowd at the end of the trace. `None`: one node.
    pub flash_crowd: Option<FlashCrowd>,
}
