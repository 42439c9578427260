//! A herd of clients, and read-ahead: what `uneven` measures of one node, of several.

use crate::client::http2::ClientVersion;
use crate::cluster::Record;
use crate::cluster::nodes::{NodeRules, Nodes};
use crate::cluster::setup::Setup;
use crate::cluster::system::{DEFAULT_POLICY, SYSTEMS, System};
use crate::proxy::contender::Contender;
use crate::uneven::{
    HERDS, Herd, READ_AHEADS, ReadAhead, ReadAheadKind, Subject, herd_at, read_ahead,
    read_ahead_request,
};
use serde::{Deserialize, Serialize};
use xtask::failure::Failure;

/// Nodes that a herd is spread over.
const HERD_NODES: usize = 4;

/// Of each node: a response of 60 MB must fit.
const MEMORY_MIB: u64 = 256;

/// Below this scale the herd is the small one.
const LARGE_HERD_SCALE_MIN: f64 = 0.1;

/// What a herd of clients has cost the origin, into the record.
pub(in crate::cluster) fn herd(record: &mut Record, setup: &Setup) {
    let [few, many] = HERDS;
    let is_large = record.settings.scale >= LARGE_HERD_SCALE_MIN;
    let herd = measure_herd(setup, if is_large { many } else { few });
    if let Some(herd) = record.kept("a herd of clients", herd) {
        eprintln!("  {herd:?}");
        record.figures.herd = Some(herd);
    }
}

fn measure_herd(setup: &Setup, clients: usize) -> Result<Herd, Failure> {
    let bed = setup.bed("herd")?;
    let system = System::start(&bed.bed(), SYSTEMS[0], (HERD_NODES, MEMORY_MIB))?;
    let herd = herd_at(&system.entrances(), &setup.origin, "/herd/cold", clients);
    herd.map_err(Failure::Refused)
}

/// How far one node, or two, are ahead of a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::cluster) struct ClusterReadAhead {
    pub(in crate::cluster) nodes: usize,
    pub(in crate::cluster) read_ahead: ReadAhead,
}

static ONE_NODE: Contender = Contender {
    name: "one-node",
    ..Contender::WEIR
};

static TWO_NODES: Contender = Contender {
    name: "two-nodes",
    ..Contender::WEIR
};

/// The read-ahead of a slow client, through one node and through two, into the record.
pub(in crate::cluster) fn read_aheads(record: &mut Record, setup: &Setup) -> Result<(), Failure> {
    let bed = setup.bed("read-ahead")?;
    let rules = NodeRules {
        count: 1,
        memory_mib: MEMORY_MIB,
        policy: None,
        has_secret: false,
    };
    let one = Nodes::start(&bed.bed(), rules)?;
    let bed = setup.bed("read-ahead-of-two")?;
    let rules = NodeRules {
        count: 2,
        policy: Some(DEFAULT_POLICY),
        has_secret: true,
        ..rules
    };
    let two = Nodes::start(&bed.bed(), rules)?;
    for kind in READ_AHEADS.into_iter().filter(|kind| kind.reads) {
        for (nodes, contender) in [(&one, &ONE_NODE), (&two, &TWO_NODES)] {
            let measured = measure_read_ahead(setup, (nodes, contender), kind);
            let what = format!("read-ahead of {}, {kind:?}", contender.name);
            if let Some(read_ahead) = record.kept(what, measured) {
                eprintln!("  {}: {read_ahead:?}", contender.name);
                record.figures.read_aheads.push(ClusterReadAhead {
                    nodes: nodes.nodes.len(),
                    read_ahead,
                });
            }
        }
    }
    Ok(())
}

fn measure_read_ahead(
    setup: &Setup,
    (nodes, contender): (&Nodes, &'static Contender),
    kind: ReadAheadKind,
) -> Result<ReadAhead, Failure> {
    let mut subject = Subject {
        contender,
        address: nodes.addresses()[0],
        origin: &setup.origin,
        version: ClientVersion::Http1,
        may_change_content: false,
    };
    if let [first, other] = nodes.nodes.as_slice() {
        // through two nodes: the one that is asked is not the one that keeps it
        let target = read_ahead_request(&subject, kind).to_string();
        if first.owner_of(&target)? == first.name {
            subject.address = other.address();
        }
    }
    read_ahead(&subject, kind).map_err(Failure::Refused)
}
