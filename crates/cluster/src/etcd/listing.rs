//! The members that are listed in etcd: a range, then a watch from its revision on.
//!
//! A key that goes is a node that has gone: its lease has ended. But a node whose own key goes
//! while it lives has reason to doubt: etcd was emptied, or has lost what it had. It announces
//! itself again, as all others do, and keeps the members that it had until they had time for that.

use super::announcement::{Announcement, LEASE_TTL};
use super::client::Client;
use super::error::EtcdError;
use super::member_value::{members_prefix, read};
use super::watch::{Event, Events, Watch};
use crate::member::Member;
use crate::output::Output;
use crate::retry::Retry;
use std::collections::BTreeMap;
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long a watch may be silent before the members are listed anew: nothing else tells that the
/// other side has gone and has not closed the connection.
const WATCH_LIMIT: std::time::Duration = std::time::Duration::from_secs(30);

/// Follows the members for ever.
pub(crate) async fn follow(
    client: &Client,
    prefix: &str,
    announcement: &Announcement,
    output: &mut Output,
) {
    announcement.tried().await;
    let prefix = members_prefix(prefix);
    let mut listing = Listing::new(&prefix, announcement);
    let mut retry = Retry::default();
    loop {
        match listing.begin(client, output).await {
            Ok(watch) => {
                retry = Retry::default();
                if let Err(error) = listing.watch(watch, output).await {
                    output.reporter.fail(&error);
                    retry.wait().await;
                }
            }
            Err(error) => {
                output.reporter.fail(&error);
                retry.wait().await;
            }
        }
    }
}

struct Listing<'a> {
    prefix: &'a str,
    announcement: &'a Announcement,
    /// By name.
    known: BTreeMap<String, Known>,
    /// Members that have gone are kept until then.
    doubted_until: Option<Instant>,
}

/// A key of a member.
#[derive(Debug)]
struct Known {
    /// The last value that was good.
    member: Option<Member>,
    /// What is wrong with the value.
    problem: Option<String>,
    /// The key has gone, and this is doubted.
    is_gone: bool,
}

impl<'a> Listing<'a> {
    const fn new(prefix: &'a str, announcement: &'a Announcement) -> Self {
        Self {
            prefix,
            announcement,
            known: BTreeMap::new(),
            doubted_until: None,
        }
    }

    /// Takes the members as they are, and begins to watch what changes.
    async fn begin(&mut self, client: &Client, output: &mut Output) -> Result<Watch, EtcdError> {
        let was_made = self.announcement.is_made();
        let range = client.range(self.prefix, b"", 0).await?;
        let present = range.kvs.iter().filter_map(|kv| self.name(&kv.key));
        let present: Vec<String> = present.collect();
        let names = self.known.keys().cloned();
        let gone: Vec<String> = names.filter(|name| !present.contains(name)).collect();
        if was_made && !present.contains(&self.own_name()) {
            self.doubt();
        }
        for name in gone {
            self.delete(&name);
        }
        for kv in &range.kvs {
            self.put(&kv.key, &kv.value);
        }
        let watch = client.watch(self.prefix, range.header.revision + 1).await?;
        self.publish(output).await;
        Ok(watch)
    }

    /// Follows changes until the watch ends, or says nothing for too long.
    async fn watch(&mut self, mut watch: Watch, output: &mut Output) -> Result<(), EtcdError> {
        let mut state = self.announcement.state();
        let mut until = Instant::now() + WATCH_LIMIT;
        loop {
            let doubt = self.doubted_until;
            let over = async {
                match doubt {
                    Some(until) => sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => self.end_doubt(),
                () = self.announcement.changed(&mut state) => {}
                events = timeout_at(until, watch.next()) => match events {
                    Err(_silent) => return Ok(()),
                    Ok(events) => {
                        until = Instant::now() + WATCH_LIMIT;
                        self.take(events?);
                    }
                },
            }
            self.publish(output).await;
        }
    }

    fn take(&mut self, events: Events) {
        let own = self.own_name();
        let is_own = |event: &Event| match event {
            Event::Delete(key) => self.name(key).as_deref() == Some(&own),
            Event::Put(_) => false,
        };
        if events.events.iter().any(is_own) {
            self.doubt();
        }
        for event in events.events {
            match event {
                Event::Put(kv) => self.put(&kv.key, &kv.value),
                Event::Delete(key) => {
                    if let Some(name) = self.name(&key) {
                        self.delete(&name);
                    }
                }
            }
        }
    }

    /// The name in a key; `None` if it is none.
    fn name(&self, key: &[u8]) -> Option<String> {
        let key = str::from_utf8(key).ok()?;
        key.strip_prefix(self.prefix).map(str::to_owned)
    }

    fn own_name(&self) -> String {
        let own = self.announcement.member();
        own.map_or_else(String::new, |own| own.name)
    }

    /// The key of this node has gone.
    fn doubt(&mut self) {
        self.doubted_until = Some(Instant::now() + LEASE_TTL);
        self.announcement.make_again();
    }

    fn end_doubt(&mut self) {
        self.doubted_until = None;
        self.known.retain(|_, known| !known.is_gone);
    }

    fn put(&mut self, key: &[u8], value: &[u8]) {
        let Some(name) = self.name(key) else {
            return;
        };
        let read = read(&name, value);
        let known = self.known.entry(name).or_insert(Known {
            member: None,
            problem: None,
            is_gone: false,
        });
        known.is_gone = false;
        match read {
            Ok(member) => {
                known.member = Some(member);
                known.problem = None;
            }
            Err(problem) => {
                let key = String::from_utf8_lossy(key);
                known.problem = Some(format!("key `{key}`: {problem}"));
            }
        }
    }

    fn delete(&mut self, name: &str) {
        if self.doubted_until.is_none() {
            self.known.remove(name);
        } else if let Some(known) = self.known.get_mut(name) {
            known.is_gone = true;
        }
    }

    /// Puts the members in force: those with a good value, and this node as it is, whatever etcd
    /// has of it.
    async fn publish(&self, output: &mut Output) {
        let own = self.announcement.member();
        let known = self.known.values().filter_map(|known| known.member.clone());
        let is_other = |member: &Member| own.as_ref().is_none_or(|own| own.name != member.name);
        let mut members: Vec<Member> = known.filter(is_other).collect();
        let problem = self.problem(own.as_ref());
        members.extend(own);
        match problem {
            None => output.publish(members).await,
            Some(problem) => output.publish_but(members, &problem).await,
        }
    }

    /// What is wrong with a key.
    fn problem(&self, own: Option<&Member>) -> Option<String> {
        let mut problems = self
            .known
            .values()
            .filter_map(|known| known.problem.clone());
        problems.next().or_else(|| {
            let own = own?;
            let listed = self.known.get(&own.name)?.member.as_ref()?;
            (listed.hop != own.hop).then(|| {
                format!(
                    "another node announces itself as `{}` at http://{}: each needs a name of its own",
                    own.name, listed.hop
                )
            })
        })
    }
}
