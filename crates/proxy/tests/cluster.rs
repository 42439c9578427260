//! Nodes that share what they store: which of them is asked, what it may be asked, and what becomes
//! of its answer. Parents and siblings, too.
//!
//! The nodes are proxies in this process; the origin counts what reaches it.

mod support;

#[path = "cluster/behind.rs"]
mod behind;
#[path = "cluster/digests.rs"]
mod digests;
#[expect(dead_code, reason = "the tests of one node use all of it")]
#[path = "read_ahead/endpoints.rs"]
mod endpoints;
#[path = "cluster/failures.rs"]
mod failures;
#[path = "cluster/fetches.rs"]
mod fetches;
#[path = "cluster/front_end.rs"]
mod front_end;
#[path = "cluster/health.rs"]
mod health;
#[path = "cluster/lateral.rs"]
mod lateral;
#[path = "cluster/members/mod.rs"]
mod members;
#[path = "cluster/nodes.rs"]
mod nodes;
#[path = "cluster/parents/mod.rs"]
mod parents;
#[path = "cluster/policies.rs"]
mod policies;
#[path = "cluster/purges.rs"]
mod purges;
#[path = "cluster/relays.rs"]
mod relays;
#[path = "cluster/stored/mod.rs"]
mod stored;
#[path = "cluster/strangers.rs"]
mod strangers;
