//! Modules that work on whole content, which is charged to what is arriving.

use crate::support::{RawClient, Setup, turning};
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::{ByteSize, Config};

/// Content whose reverse is another one.
fn content(bytes: usize) -> Vec<u8> {
    let letters = (0..bytes).map(|at| b'a' + u8::try_from(at % 23).expect("a letter"));
    letters.collect()
}

fn response(content: &[u8]) -> Vec<u8> {
    let length = content.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), content].concat()
}

fn with(bytes: usize, larger: &str) -> impl Fn(&mut Config) {
    let module = turning("m", bytes, larger);
    move |config| {
        config.modules = vec![module.clone()];
        config.cache.memory = ByteSize::from_kib(32 * 1024);
        config.cache.largest_response = config.cache.memory;
    }
}

#[test]
fn module_decides_on_the_head_by_what_it_makes_of_whole_content() {
    for bytes in [0, 5, 100_000, 1_000_000] {
        Setup::each_with(with(1_000_000, "fail"), |setup| {
            let mut content = content(bytes);
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let mut hop = setup.origin.accept();
            hop.read_head();
            let sent = hop.sending(response(&content));
            let turned = client.read_response();
            content.reverse();
            assert!(turned.body == content);
            assert_eq!(turned.head.field("x-turned"), Some("yes"));
            sent.join().expect("sent");
        });
    }
}

#[test]
fn larger_content_passes_as_it_is_or_is_refused() {
    for (larger, status) in [("pass", 200), ("fail", 502)] {
        Setup::each_with(with(100_000, larger), |setup| {
            let content = content(100_001);
            let mut client = setup.proxy.client();
            client.send(setup.get("/"));
            let mut hop = setup.origin.accept();
            hop.read_head();
            let sent = hop.sending(response(&content));
            let passed = client.read_response();
            assert_eq!(passed.status(), status);
            assert_eq!(passed.head.field("x-turned"), None);
            assert!(status != 200 || passed.body == content);
            sent.join().expect("sent");
            let gave_up = Metric::ModuleFailures(ModuleFault::GaveUp);
            assert_eq!(setup.proxy.count(gave_up), u64::from(status != 200));
        });
    }
}

#[test]
fn content_of_many_responses_is_collected_within_the_memory_of_those_that_arrive() {
    const BYTES: usize = 4 * 1024 * 1024;
    Setup::each_with(with(2 * BYTES, "pass"), |setup| {
        let content = content(BYTES);
        let whole = response(&content);
        let (now, later) = whole.split_at(whole.len() - 1);
        // each of eight responses lacks one byte, so that all are collected at the same time
        let waiting: Vec<_> = (0..8)
            .map(|at| {
                let mut client = setup.proxy.client();
                client.send(setup.get(&format!("/{at}")));
                let mut hop = setup.origin.accept();
                hop.read_head();
                let now = now.to_vec();
                let hop = std::thread::spawn(move || {
                    hop.send(now);
                    hop
                });
                (client, hop)
            })
            .collect();
        let mut turned = 0;
        let reading = waiting.into_iter().map(|(mut client, hop)| {
            let later = later.to_vec();
            std::thread::spawn(move || {
                let reading = std::thread::spawn(move || client.read_response());
                let mut hop = hop.join().expect("sent");
                hop.send(later);
                let response = reading.join().expect("a response");
                (response.head.has("x-turned"), response.body)
            })
        });
        let mut reversed = content.clone();
        reversed.reverse();
        for reader in reading.collect::<Vec<_>>() {
            let (is_turned, body) = reader.join().expect("a response");
            turned += usize::from(is_turned);
            assert!(body == if is_turned { &reversed } else { &content }[..]);
        }
        // those that arrive may hold half of 32 MiB
        assert!(turned <= 3, "{turned} were collected");
        // all is given back
        let mut client: RawClient = setup.proxy.client();
        client.send(setup.get("/last"));
        let mut hop = setup.origin.accept();
        hop.read_head();
        let sent = hop.sending(whole.clone());
        assert!(client.read_response().head.has("x-turned"));
        sent.join().expect("sent");
    });
}
