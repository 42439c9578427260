//! What a large site would need, from the newest records of `scale`, `peers` and `cluster`: tables
//! of `docs/scale.md`.

use crate::cluster;
use crate::peers;
use crate::record::newest;
use crate::sim::scale::costs::NodeCosts;
use crate::sim::scale::networks::Networks;
use crate::sim::scale::{self, table};
use xtask::failure::Failure;

/// What was simulated.
pub(super) fn run() -> Result<String, Failure> {
    let Some((record, path)) = newest()? else {
        return Ok(NO_RECORD.to_owned());
    };
    Ok(super::from(
        &path,
        &table::render(&record, &scale::networks(&record)?),
    ))
}

/// What one node costs.
pub(super) fn costs() -> Result<String, Failure> {
    let (costs, paths) = node_costs()?;
    Ok(from(&paths, &table::costs(&costs)))
}

/// What comes of both.
pub(super) fn of_both(render: fn(&Networks, &NodeCosts) -> String) -> Result<String, Failure> {
    let Some((record, path)) = newest()? else {
        return Ok(NO_RECORD.to_owned());
    };
    let (costs, mut paths) = node_costs()?;
    paths.push(path);
    Ok(from(&paths, &render(&scale::networks(&record)?, &costs)))
}

/// What stands in the place of a table that has no record yet.
const NO_RECORD: &str = "There is no record of all networks yet: `cargo xtask scale` makes it.";

fn newest() -> Result<Option<(scale::Record, String)>, Failure> {
    match newest::record(scale::record_is_whole) {
        Ok(found) => Ok(Some(found)),
        Err(Failure::Refused(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn node_costs() -> Result<(NodeCosts, Vec<String>), Failure> {
    let (peers, of_peers) = newest::record(peers::record_is_whole)?;
    let (cluster, of_cluster) = newest::record(cluster::record_is_whole)?;
    let costs = NodeCosts::of(&peers, &cluster).ok_or_else(|| {
        let what = format!("`{of_peers}` or `{of_cluster}` has not what a node costs");
        Failure::Refused(what)
    })?;
    Ok((costs, vec![of_peers, of_cluster]))
}

fn from(paths: &[String], table: &str) -> String {
    let paths: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
    format!("{}\n\nFrom {}.\n", table.trim_end(), paths.join(", "))
}
