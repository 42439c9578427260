//! What a response says of the stored one holds on disk too: updated, or forgotten (RFC 9111
//! §4.3.4, §4.3.5).

use super::setup::DiskSetup;
use crate::support::{Head, Representation, Response};

/// Kept in a record, and in runs.
const LENGTHS: [u64; 2] = [1000, 2_500_000];

/// A HEAD for `what` that goes around what is stored, which the origin answers with `message`.
fn head(setup: &DiskSetup, what: &Representation, message: &str) -> Head {
    let mut client = setup.proxy().client();
    client.send(what.ask("HEAD", "Cache-Control: no-cache\r\n"));
    setup.origin.answer(message);
    let head = client.read_head();
    setup.rest();
    head
}

/// The same with GET.
fn get(setup: &DiskSetup, what: &Representation, message: impl AsRef<[u8]>) -> Response {
    let mut client = setup.proxy().client();
    client.send(what.get("Cache-Control: no-cache\r\n"));
    let (mut hop, _) = setup.origin.answer("");
    let response = hop.send_while(message.as_ref(), || client.read_response());
    setup.rest();
    response
}

/// `what` is stored, in memory or on disk alone.
fn stored(what: &Representation, is_in_memory: bool) -> DiskSetup {
    let mut setup = DiskSetup::simulated(|_| {});
    setup.store_whole(what);
    if !is_in_memory {
        setup.restart();
    }
    setup
}

#[test]
fn response_outdated_by_a_head_response_is_invalidated_on_disk() {
    for length in LENGTHS {
        for is_in_memory in [true, false] {
            let what = Representation::new("/a", length);
            let next = what.next(500);
            let mut setup = stored(&what, is_in_memory);
            let answer = head(&setup, &what, &next.head());
            assert_eq!(answer.field("etag"), next.tag.as_deref());
            // the client has the answer: no more may be lost
            setup.kill();
            setup.store_whole(&next);
            setup.kill();
            setup.hit_on_disk(&next);
        }
    }
}

#[test]
fn invalidation_by_a_head_response_survives_a_power_failure() {
    let what = Representation::new("/a", 1000);
    let mut setup = stored(&what, false);
    head(&setup, &what, &what.next(500).head());
    setup.files().crash();
    setup.kill();
    setup.fetch_whole(&what.next(500));
}

#[test]
fn private_or_unstorable_response_invalidates_the_stored_one_on_disk() {
    for length in LENGTHS {
        for fields in ["Cache-Control: private\r\n", "Vary: *\r\n"] {
            let what = Representation::new("/a", length);
            let mut setup = stored(&what, true);
            let not_modified =
                format!("HTTP/1.1 304 Not Modified\r\nConnection: close\r\n{fields}\r\n");
            what.check_whole(&get(&setup, &what, not_modified));
            setup.kill();
            setup.fetch_whole(&what.next(500));
        }
        let what = Representation::new("/b", length);
        let mut setup = stored(&what, true);
        let own = what
            .next(700)
            .with_fields("Cache-Control: no-store\r\nConnection: close\r\n");
        own.check_whole(&get(&setup, &what, own.whole()));
        setup.kill();
        setup.fetch_whole(&what.next(500));
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
            let mut setup = stored(&what, is_in_memory);
            let before = setup.proxy().count(weir_measure::Metric::DiskStored);
            head(&setup, &what, &fresh_for(7200));
            setup.written(before + 1);
            setup.restart_later(7000);
            setup.hit_on_disk(&what);
            // and no longer than the last one said
            let before = setup.proxy().count(weir_measure::Metric::DiskStored);
            head(&setup, &what, &fresh_for(10));
            setup.written(before + 1);
            setup.restart_later(7009);
            setup.hit_on_disk(&what);
            setup.restart_later(7010);
            let mut client = setup.proxy().client();
            client.send(what.get(""));
            let not_modified = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n";
            let (_hop, asked) = setup.origin.answer(not_modified);
            assert_eq!(asked.field("if-none-match"), what.tag.as_deref());
            what.check_whole(&client.read_response());
        }
    }
}
