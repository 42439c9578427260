//! Certificates that change while requests go on.

use super::{Gateway, LOCATIONS, curl_to, s_client};
use crate::support::{Issued, KeyKind, PATIENCE};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// How often certificates change.
const RELOADS: usize = 100;

#[test]
fn certificates_change_a_hundred_times_without_a_lost_request() {
    let gateway = Gateway::with(LOCATIONS, |config, _| config);
    let folder = gateway.folder.path();
    let others =
        ["one", "two"].map(|name| Issued::new(folder, name, &["a.test", "b.test"], KeyKind::Ecdsa));
    // curl trusts all three
    let all = folder.join("all.pem");
    let text = [&gateway.first, &others[0], &others[1]];
    let text = text.map(|issued| std::fs::read_to_string(&issued.chain).expect("a file"));
    std::fs::write(&all, text.concat()).expect("a file");
    let trusted = Issued {
        chain: all,
        ..gateway.first.clone()
    };
    let (done, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (done, count, trusted) = (&done, &count, &trusted);
            let address = gateway.weir.address();
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    // two requests on each connection
                    let url = "https://a.test/cached";
                    let curl = curl_to(address, trusted).args(["-f", url]);
                    let fetched = curl.fetch(url);
                    if fetched.exit != 0 {
                        done.store(true, Ordering::Relaxed);
                        panic!("{fetched:?}");
                    }
                    count.fetch_add(2, Ordering::Relaxed);
                }
            });
        }
        for round in 0..RELOADS {
            let other = &others[round % 2];
            for (from, to) in [
                (&other.chain, &gateway.first.chain),
                (&other.key, &gateway.first.key),
            ] {
                std::fs::copy(from, to).expect("copied");
            }
            gateway.weir.ask("POST", "/reload").expect(200);
        }
        let (seen, until) = (count.load(Ordering::Relaxed), Instant::now() + PATIENCE);
        while count.load(Ordering::Relaxed) < seen + 4 && !done.load(Ordering::Relaxed) {
            assert!(Instant::now() < until, "requests have stopped");
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    let said = s_client(gateway.weir.address(), &["-servername", "a.test"]);
    assert!(said.contains("subject=CN = two\n"), "{said}");
    assert_eq!(gateway.weir.metrics().count("weir_panics_total"), 0);
    // one that cannot be used changes nothing
    std::fs::copy(&others[0].key, &gateway.first.key).expect("copied");
    let refused = gateway.weir.ask("POST", "/reload").expect(422).text();
    assert!(refused.contains("key of another certificate"), "{refused}");
    let said = s_client(gateway.weir.address(), &["-servername", "a.test"]);
    assert!(said.contains("subject=CN = two\n"), "{said}");
}
