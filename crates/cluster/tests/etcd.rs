//! The client beside a real etcd.

#[expect(dead_code, reason = "it stands still for other tests")]
#[path = "support/etcd.rs"]
mod support;

use std::sync::Arc;
use std::time::Duration;
use support::Etcd;
use tokio::time::timeout;
use weir_cluster::etcd::{Client, EtcdError, Event, Events, LeaseId, Watch};
use weir_cluster::parse_url;
use weir_measure::Counters;
use weir_net::next_hops::HopKey;
use weir_net::resolver::{Resolver, ResolverConfig};

const PATIENCE: Duration = Duration::from_secs(30);

fn resolver() -> Resolver {
    let config = ResolverConfig::default();
    Resolver::start(config, Arc::new(Counters::new())).expect("a thread")
}

fn client(urls: &[&str]) -> Client {
    let endpoints = urls.iter().map(|url| parse_url(url).expect("a URL"));
    Client::new(&endpoints.collect::<Vec<HopKey>>(), resolver())
}

fn run(test: impl AsyncFnOnce(Etcd, Client)) {
    let etcd = Etcd::start();
    let client = client(&[&etcd.url()]);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let done = timeout(PATIENCE, test(etcd, client)).await;
        done.expect("it takes some seconds");
    });
}

/// The next changes, without those that only say how far etcd is.
async fn next(watch: &mut Watch) -> Events {
    loop {
        let events = watch.next().await.expect("changes");
        if !events.events.is_empty() {
            return events;
        }
    }
}

#[test]
fn keys_are_set_listed_by_prefix_and_deleted() {
    run(async |_etcd, client| {
        let empty = client.range("/a/", b"", 0).await.expect("a range");
        assert!(empty.kvs.is_empty());
        let first = client.put("/a/1", b"one", None).await.expect("a revision");
        client.put("/a/2", b"two", None).await.expect("a revision");
        client.put("/b/1", b"none of it", None).await.expect("one");
        let all = client.range("/a/", b"", 0).await.expect("a range");
        let values: Vec<&[u8]> = all.kvs.iter().map(|kv| &*kv.value).collect();
        assert_eq!(values, [b"one", b"two"]);
        assert_eq!(all.kvs[0].mod_revision, first);
        assert_eq!(all.header.revision, first + 2);
        let one = client.range("/a/", b"", 1).await.expect("a range");
        assert!(one.more && one.kvs.len() == 1);
        let rest = client.range("/a/", b"/a/2", 0).await.expect("a range");
        assert_eq!(rest.kvs[0].key, b"/a/2");
        let made = client.create("/a/1", b"again", None).await.expect("one");
        assert!(!made.0, "there is one");
        let made = client.create("/a/3", b"three", None).await.expect("one");
        assert_eq!(made, (true, first + 3));
        client.delete("/a/1").await.expect("a revision");
        let all = client.range("/a/", b"", 0).await.expect("a range");
        let keys: Vec<&[u8]> = all.kvs.iter().map(|kv| &*kv.key).collect();
        assert_eq!(keys, [b"/a/2", b"/a/3"]);
        let refused = client.put("", b"", None).await;
        assert!(matches!(refused, Err(EtcdError::Refused { code: 3, .. })));
    });
}

#[test]
fn key_is_replaced_only_if_it_is_as_it_was_read() {
    run(async |_etcd, client| {
        let read = async || {
            let range = client.range("/x", b"", 1).await.expect("a range");
            let entry = range.kvs.into_iter().next();
            entry.map_or((Vec::new(), 0), |entry| (entry.value, entry.mod_revision))
        };
        let replace = async |value: &[u8], read| {
            let replaced = client.replace("/x", value, read).await;
            replaced.expect("an answer").0
        };
        let (_, absent) = read().await;
        assert!(replace(b"2", absent).await);
        assert!(!replace(b"1", absent).await, "another one has set it");
        let (value, two) = read().await;
        assert_eq!(value, b"2");
        assert!(replace(b"3", two).await);
        assert!(!replace(b"1", two).await);
        assert_eq!(read().await.0, b"3");
    });
}

#[test]
fn watch_has_each_change_from_its_revision_on_and_the_end_of_a_lease() {
    run(async |_etcd, client| {
        let lease = client.grant(Duration::from_secs(2)).await.expect("a lease");
        let put = client.put("/a/1", b"x", Some(lease)).await;
        let revision = put.expect("a revision");
        let mut watch = client.watch("/a/", revision).await.expect("a watch");
        let events = next(&mut watch).await;
        assert!(matches!(&events.events[..], [Event::Put(kv)] if kv.lease == lease.0));
        assert!(client.keep_alive(lease).await.expect("an answer"));
        client.put("/a/2", b"y", None).await.expect("a revision");
        let events = next(&mut watch).await;
        assert!(matches!(&events.events[..], [Event::Put(kv)] if kv.value == b"y"));
        assert_eq!(events.header.revision, revision + 1);
        // not kept any more
        let events = next(&mut watch).await;
        assert_eq!(events.events, [Event::Delete(b"/a/1".to_vec())]);
        assert!(!client.keep_alive(lease).await.expect("an answer"));
        let late = client.put("/a/3", b"z", Some(lease)).await;
        assert!(late.is_err_and(|error| error.is_not_found()));
        let unknown = client.revoke(LeaseId(7)).await;
        assert!(unknown.is_err_and(|error| error.is_not_found()));
    });
}

#[test]
fn revoked_lease_takes_its_keys_with_it_at_once() {
    run(async |_etcd, client| {
        let lease = client.grant(Duration::from_mins(10)).await;
        let lease = lease.expect("a lease");
        let revision = client.put("/a/1", b"x", Some(lease)).await;
        let revision = revision.expect("a revision");
        let mut watch = client.watch("/a/", revision + 1).await.expect("a watch");
        client.revoke(lease).await.expect("it is there");
        let events = next(&mut watch).await;
        assert_eq!(events.events, [Event::Delete(b"/a/1".to_vec())]);
    });
}

#[test]
fn watch_of_what_was_compacted_says_from_where_one_can_watch() {
    run(async |etcd, client| {
        for value in [b"1", b"2", b"3"] {
            client.put("/a", value, None).await.expect("a revision");
        }
        let now = client.range("/a", b"", 0).await.expect("a range");
        let revision = now.header.revision;
        etcd.post("kv/compaction", &format!("{{\"revision\":\"{revision}\"}}"));
        let mut watch = client.watch("/a", 1).await.expect("a watch");
        let error = watch.next().await;
        assert_eq!(error, Err(EtcdError::Compacted { revision }));
        client.watch("/a", revision).await.expect("a watch");
    });
}

#[test]
fn next_endpoint_is_asked_when_one_does_not_answer_and_none_is_an_error_that_names_all() {
    run(async |mut etcd, _| {
        // nothing listens there
        let away = "http://127.128.0.9:1";
        let client = client(&[away, &etcd.url(), away]);
        client.put("/a", b"x", None).await.expect("the second one");
        let mut watch = client.watch("/", 1).await.expect("the second one");
        assert_eq!(next(&mut watch).await.events.len(), 1);
        etcd.kill();
        assert!(matches!(watch.next().await, Err(EtcdError::Ended(_))));
        let error = client.range("/", b"", 0).await.expect_err("none answers");
        let error = error.to_string();
        assert!(error.matches(away).count() == 2, "{error}");
        assert!(error.contains(&etcd.url()), "{error}");
        etcd.start_again();
        let range = client.range("/", b"", 0).await.expect("a range");
        assert_eq!(range.kvs.len(), 1, "it has kept its keys");
        etcd.lose_all();
        etcd.start_again();
        let range = client.range("/", b"", 0).await.expect("a range");
        assert_eq!((range.kvs.len(), range.header.revision), (0, 1));
    });
}
