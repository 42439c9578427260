//! A cluster to which nothing happens any more.

use super::world::World;
use weir_policy::route::NodeState;
use weir_policy::route::policy::PolicyKind;

impl World {
    /// All nodes run and know the members, all connections can be had, all messages arrive.
    ///
    /// # Errors
    /// A request does not end.
    pub(crate) fn come_to_rest(&mut self) -> Result<(), String> {
        for row in &mut self.reach {
            row.fill(true);
        }
        for node in 0..self.nodes.len() {
            self.nodes[node].is_silent = false;
            self.nodes[node].others = 0;
            self.nodes[node].has_origin = true;
            // one is there at least, and one that runs was left out for want of etcd alone
            if node == 0 || self.nodes[node].is_up || self.listed[node] != NodeState::Gone {
                self.start(node);
                self.list(node, self.nodes[node].state_in());
            }
        }
        self.reach_log_everywhere();
        self.is_quiet = true;
        self.has_digests = false;
        let listed = self.listed.clone();
        self.forget_members_that_left();
        for node in &mut self.nodes {
            node.learn(&listed);
        }
        self.end_requests()?;
        let mut messages = 0;
        while !self.purges.is_empty() {
            self.tell();
            messages += 1;
            if messages > 100_000 {
                return Err("a purge does not end".to_owned());
            }
        }
        // ejections, holds and reports are over
        self.now = self.now.plus_ms(1_000_000);
        self.follow_log_everywhere();
        Ok(())
    }

    fn end_requests(&mut self) -> Result<(), String> {
        while !self.requests.is_empty() {
            let ids: Vec<_> = self.requests.keys().copied().collect();
            let mut has_moved = false;
            for id in ids {
                if self.requests.contains_key(&id) {
                    has_moved |= self.step(id)?;
                }
            }
            if !has_moved {
                let requests: Vec<_> = self.requests.iter().collect();
                return Err(format!("a request waits for itself: {requests:#?}"));
            }
        }
        Ok(())
    }

    /// Each target is requested at each node, twice: the origin is asked once for it at most.
    ///
    /// Nodes with mappings of their own may disagree after what has happened.
    ///
    /// # Errors
    /// The promise that was broken.
    pub(crate) fn check_quiet(&mut self) -> Result<(), String> {
        let before = self.asked.clone();
        for _ in 0..2 {
            for target in 0..self.targets.len() {
                for node in 0..self.nodes.len() {
                    self.ask_at(node, target);
                    self.end_requests()?;
                }
            }
        }
        let agrees = matches!(
            self.balancing.policy,
            PolicyKind::Hash | PolicyKind::BoundedHash | PolicyKind::ReplicatedHash
        );
        let asked = self.asked.iter().zip(&before);
        match asked.map(|(after, before)| after - before).max() {
            Some(asked) if agrees && asked > 1 => Err(format!(
                "the origin was asked {asked} times for one target, by {}",
                self.balancing.policy
            )),
            _ => Ok(()),
        }
    }
}
