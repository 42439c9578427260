//! What a response says of the stored one holds on disk too: updated, or forgotten (RFC 9111
//! §4.3.4, §4.3.5).

use super::depot::Depot;
use crate::support::{Head, Representation, Response};

/// Kept in a record, and in runs.
const LENGTHS: [u64; 2] = [1000, 2_500_000];

/// A HEAD for `what` that goes around what is stored, which the origin answers with `message`.
fn head(depot: &Depot, what: &Representation, message: &str) -> Head {
    let mut client = depot.proxy().client();
    client.send(what.ask("HEAD", "Cache-Control: no-cache\r\n"));
    depot.origin.answer(message);
    let head = client.read_head();
    depot.rest();
    head
}

/// The same with GET.
fn get(depot: &Depot, what: &Representation, message: impl AsRef<[u8]>) -> Response {
    let mut client = depot.proxy().client();
    client.send(what.get("Cache-Control: no-cache\r\n"));
    let (mut hop, _) = depot.origin.answer("");
    let response = hop.send_while(message.as_ref(), || client.read_response());
    depot.rest();
    response
}

/// `what` is stored, in memory or on disk alone.
fn stored(what: &Representation, is_in_memory: bool) -> Depot {
    let mut depot = Depot::simulated(|_| {});
    depot.store_whole(what);
    if !is_in_memory {
        depot.restart();
    }
    depot
}

#[test]
fn response_outdated_by_a_head_response_is_invalidated_on_disk() {
    for length in LENGTHS {
        for is_in_memory in [true, false] {
            let what = Representation::new("/a", length);
            let next = what.next(500);
            let mut depot = stored(&what, is_in_memory);
            let answer = head(&depot, &what, &next.head());
            assert_eq!(answer.field("etag"), next.tag.as_deref());
            // the client has the answer: no more may be lost
            depot.kill();
            depot.store_whole(&next);
            depot.kill();
            depot.hit_on_disk(&next);
        }
    }
}

#[test]
fn invalidation_by_a_head_response_survives_a_power_failure() {
    let what = Representation::new("/a", 1000);
    let mut depot = stored(&what, false);
    head(&depot, &what, &what.next(500).head());
    depot.files().crash();
    depot.kill();
    depot.fetch_whole(&what.next(500));
}

#[test]
fn private_or_unstorable_response_invalidates_the_stored_one_on_disk() {
    for length in LENGTHS {
        for fields in ["Cache-Control: private\r\n", "Vary: *\r\n"] {
            let what = Representation::new("/a", length);
            let mut depot = stored(&what, true);
            let not_modified =
                format!("HTTP/1.1 304 Not Modified\r\nConnection: close\r\n{fields}\r\n");
            what.check_whole(&get(&depot, &what, not_modified));
            depot.kill();
            depot.fetch_whole(&what.next(500));
        }
        let what = Representation::new("/b", length);
        let mut depot = stored(&what, true);
        let own = what
            .next(700)
            .with_fields("Cache-Control: no-store\r\nConnection: close\r\n");
        own.check_whole(&get(&depot, &what, own.whole()));
        depot.kill();
        depot.fetch_whole(&what.next(500));
    }
}

#[test]
fn response_freshened_by_head_has_its_new_lifetime_after_a_restart() {
    for length in LENGTHS {
        for is_in_memory in [true, false] {
            let what = Representation::new("/a", length);
            let fresh_for = |seconds: u32| {
                let fields = format!("Cache-Control: max-age={seconds}\r\nConnection: close\r\n");
                what.clone().with_fields(&fields).head()
            };
            let mut depot = stored(&what, is_in_memory);
            let before = depot.proxy().count(weir_measure::Metric::DiskStored);
            head(&depot, &what, &fresh_for(7200));
            depot.written(before + 1);
            depot.restart_later(7000);
            depot.hit_on_disk(&what);
            // and no longer than the last one said
            let before = depot.proxy().count(weir_measure::Metric::DiskStored);
            head(&depot, &what, &fresh_for(10));
            depot.written(before + 1);
            depot.restart_later(7009);
            depot.hit_on_disk(&what);
            depot.restart_later(7010);
            let mut client = depot.proxy().client();
            client.send(what.get(""));
            let not_modified = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n";
            let (_hop, asked) = depot.origin.answer(not_modified);
            assert_eq!(asked.field("if-none-match"), what.tag.as_deref());
            what.check_whole(&client.read_response());
        }
    }
}
