//! Certificates that change while requests go on.

use super::{Gateway, LOCATIONS, curl_to, s_client};
use crate::support::{ClientsEnd, Issued, KeyKind, PATIENCE};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// How often certificates change.
const RELOADS: usize = 100;

/// A certificate whose files change, and what it changes to in turn.
struct Changing {
    current: Issued,
    others: [Issued; 2],
    /// All three, for a client that takes no certificate for other names.
    trusted: Issued,
}

impl Changing {
    fn new(folder: &Path, current: Issued, hosts: &[&str]) -> Self {
        let name = |number: &str| format!("{}-{number}", hosts[0]);
        let others =
            ["one", "two"].map(|number| Issued::new(folder, &name(number), hosts, KeyKind::Ecdsa));
        let all = folder.join(name("all.pem"));
        let text = [&current, &others[0], &others[1]];
        let text = text.map(|issued| std::fs::read_to_string(&issued.chain).expect("a file"));
        std::fs::write(&all, text.concat()).expect("a file");
        let trusted = Issued {
            chain: all,
            ..current.clone()
        };
        Self {
            current,
            others,
            trusted,
        }
    }

    fn change(&self, round: usize) {
        let other = &self.others[round % 2];
        for (from, to) in [
            (&other.chain, &self.current.chain),
            (&other.key, &self.current.key),
        ] {
            std::fs::copy(from, to).expect("copied");
        }
    }
}

#[test]
fn certificates_change_a_hundred_times_without_a_lost_request_or_another_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let other_name = Issued::new(folder.path(), "c", &["c.test"], KeyKind::Ecdsa);
    let gateway = Gateway::with_certificates(LOCATIONS, &[&other_name]);
    let changing = [
        Changing::new(folder.path(), gateway.first.clone(), &["a.test", "b.test"]),
        Changing::new(folder.path(), other_name, &["c.test"]),
    ];
    let done = AtomicBool::new(false);
    let counts = [const { AtomicUsize::new(0) }; 2];
    std::thread::scope(|scope| {
        let _end = ClientsEnd::new(&done);
        for (of, host) in [(0, "a.test"), (1, "c.test"), (0, "b.test")] {
            let (done, count, trusted) = (&done, &counts[of], &changing[of].trusted);
            let address = gateway.weir.address();
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    // two requests on each connection; the certificate must be for the name, and
                    // one of its three
                    let url = format!("https://{host}/cached");
                    let curl = curl_to(address, trusted).args(["-f", &url]);
                    let fetched = curl.fetch(&url);
                    if fetched.exit != 0 {
                        done.store(true, Ordering::Relaxed);
                        panic!("{fetched:?}");
                    }
                    count.fetch_add(2, Ordering::Relaxed);
                }
            });
        }
        for round in 0..RELOADS {
            // now the one of both, now the other: each is read with the files of its own name
            changing[0].change(round);
            changing[1].change(round + 1);
            gateway.weir.ask("POST", "/reload").expect(200);
        }
        for count in &counts {
            let (seen, until) = (count.load(Ordering::Relaxed), Instant::now() + PATIENCE);
            while count.load(Ordering::Relaxed) < seen + 4 && !done.load(Ordering::Relaxed) {
                assert!(Instant::now() < until, "requests have stopped");
                std::thread::yield_now();
            }
        }
    });
    let shown = |host: &str| s_client(gateway.weir.address(), &["-servername", host]);
    let said = shown("b.test");
    assert!(said.contains("subject=CN = a.test-two\n"), "{said}");
    let said = shown("c.test");
    assert!(said.contains("subject=CN = c.test-one\n"), "{said}");
    assert_eq!(gateway.weir.metrics().count("weir_panics_total"), 0);
    // one that cannot be used changes nothing
    let [first, _] = &changing;
    std::fs::copy(&first.others[0].key, &first.current.key).expect("copied");
    let refused = gateway.weir.ask("POST", "/reload").expect(422).text();
    assert!(refused.contains("key of another certificate"), "{refused}");
    let said = shown("a.test");
    assert!(said.contains("subject=CN = a.test-two\n"), "{said}");
}
