//! Memory of content that passes modules: what they hold, and what decoders take, counts as memory
//! of responses that arrive, however many clients are slow.

use crate::support::{RawClient, Setup, pattern, scripted};
use std::io::Write as _;
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::{ByteSize, Config, FailurePolicy};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

const MEMORY_BYTES: usize = 32 * MIB;

/// Half of that is for what arrives.
const BUDGET_BYTES: usize = MEMORY_BYTES / 2;

const NO_MEMORY: Metric = Metric::ModuleFailures(ModuleFault::NoMemory);

fn with(action: &str) -> impl Fn(&mut Config) {
    let mut module = scripted("m", &[("response-sent", action)]);
    // what has no memory is refused all the same: the head was changed already
    module.on_failure = FailurePolicy::Pass;
    move |config| {
        config.modules = vec![module.clone()];
        config.cache.memory = ByteSize::from_kib((MEMORY_BYTES / KIB) as u64);
        config.cache.largest_response = config.cache.memory;
    }
}

/// Has a response stored with this content.
fn store(setup: &Setup, fields: &str, content: &[u8]) {
    let length = content.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{fields}Content-Length: {length}\r\n\r\n"
    );
    let mut client = setup.proxy.client();
    client.send(setup.get("/"));
    let mut hop = setup.origin.accept();
    hop.read_head();
    let sent = hop.sending([head.as_bytes(), content].concat());
    assert_eq!(client.read_response().status(), 200);
    sent.join().expect("sent");
}

/// So many clients that have requested the stored response, and do not read.
fn slow_clients(setup: &Setup, count: usize) -> Vec<RawClient> {
    let request = setup.head("GET", "/", "1.1", "Connection: close\r\n");
    let clients = (0..count).map(|_| {
        let mut client = RawClient::connect_small(setup.proxy.address());
        client.send(&request);
        client
    });
    clients.collect()
}

/// How many of them get the whole `content`. The others get an error, or a response that they see
/// is cut.
fn served(clients: Vec<RawClient>, content: &[u8]) -> usize {
    let readers: Vec<_> = clients
        .into_iter()
        .map(|client| std::thread::spawn(move || client.into_peer().read_to_end().0))
        .collect();
    let mut served = 0;
    for reader in readers {
        let bytes = reader.join().expect("a response");
        let is_whole = bytes.starts_with(b"HTTP/1.1 200 ") && bytes.ends_with(b"\r\n0\r\n\r\n");
        assert!(!is_whole || bytes.len() > content.len());
        served += usize::from(is_whole);
    }
    served
}

fn check_given_back(setup: &Setup, content: &[u8]) {
    let hit = setup.proxy.client().ask(setup.get("/"));
    assert!(hit.is_hit() && hit.status() == 200);
    assert!(hit.body == content);
}

#[test]
fn what_modules_hold_for_many_slow_clients_stays_within_the_memory_of_what_arrives() {
    /// Bytes that the module holds at least, and what of them is not charged.
    const HELD_BYTES: usize = 200_000;
    const UNCHARGED_BYTES: usize = 64 * KIB;
    const CLIENTS: usize = 150;
    let served_max = BUDGET_BYTES / (HELD_BYTES - UNCHARGED_BYTES);
    Setup::each_with(with("content blocks"), |setup| {
        let content = pattern(3_000_000);
        store(setup, "", &content);
        let clients = slow_clients(setup, CLIENTS);
        let refused_min = CLIENTS - served_max;
        setup.proxy.wait_for_at_least(NO_MEMORY, refused_min as u64);
        let served = served(clients, &content);
        assert!(served > 0 && served <= served_max, "{served} were served");
        // nothing else is the module's fault, and its breaker is closed
        check_given_back(setup, &content);
        let refused = setup.proxy.count(NO_MEMORY);
        assert_eq!(refused, (CLIENTS - served) as u64);
    });
}

#[test]
fn windows_of_decoders_stay_within_the_memory_of_what_arrives() {
    const CLIENTS: usize = 4;
    let content = pattern(3_000_000).to_ascii_lowercase();
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("memory is enough");
    encoder.window_log(23).expect("a window");
    encoder.write_all(&content).expect("memory is enough");
    let coded = encoder.finish().expect("memory is enough");
    let upper = content.to_ascii_uppercase();
    Setup::each_with(with("content plain"), |setup| {
        store(setup, "Content-Encoding: zstd\r\n", &coded);
        // a window takes 8 MiB
        let clients = slow_clients(setup, CLIENTS);
        setup.proxy.wait_for_at_least(NO_MEMORY, 3);
        assert_eq!(served(clients, &upper), 1);
        check_given_back(setup, &upper);
        assert_eq!(setup.proxy.count(NO_MEMORY), 3);
    });
}

/// A response waits for the rest of the request, and behind that for its client.
#[test]
fn responses_of_modules_for_many_slow_clients_stay_within_the_memory_of_what_arrives() {
    const CLIENTS: usize = 40;
    let served_max = BUDGET_BYTES / (MIB - 64 * KIB);
    let content = "x".repeat(MIB);
    let action = format!("respond 403 {content}");
    let module = scripted("m", &[("request-received", &action)]);
    let change = move |config: &mut Config| {
        with("content blocks")(config);
        config.modules = vec![module.clone()];
    };
    Setup::each_with(change, |setup| {
        let request = setup.head("POST", "/", "1.1", "Content-Length: 1\r\n");
        let clients = (0..CLIENTS).map(|_| {
            let mut client = setup.proxy.client();
            client.send(&request);
            client
        });
        let clients: Vec<_> = clients.collect();
        let refused_min = CLIENTS - served_max;
        setup.proxy.wait_for_at_least(NO_MEMORY, refused_min as u64);
        let mut served = 0;
        for mut client in clients {
            client.send("x");
            let response = client.read_response();
            let is_whole = response.status() == 403;
            assert!(is_whole || response.status() == 502);
            assert!(!is_whole || response.body == content.as_bytes());
            served += usize::from(is_whole);
        }
        assert!(served > 0 && served <= served_max, "{served} were served");
        // the memory is given back, and the breaker of the module is closed
        let mut client = setup.proxy.client();
        assert!(client.ask(setup.get("/")).body == content.as_bytes());
    });
}
