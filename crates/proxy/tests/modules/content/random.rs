//! Random modules, messages and clients against a naive model: every byte is the right one.
//!
//! Modules grow, shrink, hold and decide; clients request ranges, send content, come together for
//! one response and leave in its middle.

use crate::support::{
    Answering, Head, RawClient, Response, Running, ScriptedOrigin, deciding, scripted,
};
use std::net::SocketAddr;
use std::sync::Arc;
use weir_measure::{Metric, ModuleFault};
use weir_proxy::config::Module;

/// Configurations that are tried.
const SEEDS: u64 = 8;

/// Clients at once, and what each does.
const CLIENTS: u64 = 4;
const ACTIONS: usize = 12;

/// Numbers that differ with each seed and not with each run.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % bound as u64).expect("below the bound")
    }
}

/// What a module does with content.
#[derive(Clone, Copy, Debug)]
enum How {
    Upper,
    Twice,
    Blocks,
    First,
    /// It looks at so many bytes before it decides on the head.
    Decides(usize),
}

#[derive(Clone, Copy, Debug)]
struct Step {
    hook: &'static str,
    how: How,
}

impl Step {
    fn random(chance: &mut Chance) -> Self {
        let hooks = ["request-received", "response-received", "response-sent"];
        let hook = hooks[chance.below(3)];
        let how = match chance.below(9) {
            0 | 1 => How::Upper,
            2 | 3 => How::Twice,
            4 | 5 => How::Blocks,
            6 => How::First,
            _ if hook == "response-sent" => How::Blocks,
            _ => How::Decides(1 + chance.below(300_000)),
        };
        Self { hook, how }
    }

    fn module(self, at: usize) -> Module {
        let name = format!("m{at}");
        let how = match self.how {
            How::Upper => "content upper",
            How::Twice => "content twice",
            How::Blocks => "content blocks",
            How::First => "content first",
            How::Decides(bytes) => return deciding(&name, self.hook, bytes, "pass"),
        };
        scripted(&name, &[(self.hook, how)])
    }

    /// The same, all at once.
    fn reference(self, content: Vec<u8>) -> Vec<u8> {
        match self.how {
            How::Upper => content.to_ascii_uppercase(),
            How::Twice => content.iter().flat_map(|byte| [*byte; 2]).collect(),
            How::First => content[..content.len().min(2)].to_vec(),
            How::Blocks | How::Decides(_) => content,
        }
    }
}

/// What comes out of all modules at `hook`.
fn reference(steps: &[Step], hook: &str, content: Vec<u8>) -> Vec<u8> {
    let mut called: Vec<&Step> = steps.iter().filter(|step| step.hook == hook).collect();
    if hook != "request-received" {
        // on the way of a response the last comes first
        called.reverse();
    }
    called
        .into_iter()
        .fold(content, |content, step| step.reference(content))
}

fn response_of(steps: &[Step], content: Vec<u8>) -> Vec<u8> {
    let received = reference(steps, "response-received", content);
    reference(steps, "response-sent", received)
}

/// Content of so many bytes.
fn content(bytes: usize) -> Vec<u8> {
    let letters = (0..bytes).map(|at| b'a' + u8::try_from((at + at / 7) % 26).expect("a letter"));
    letters.collect()
}

/// Has `/BYTES` for a while, and echoes what is sent to it.
fn origin() -> Answering {
    ScriptedOrigin::new().answering(|head: &Head, sent: &[u8]| {
        let (content, control) = match head.start_line().starts_with("POST") {
            true => (sent.to_vec(), "no-store"),
            false => {
                let path = head.start_line().split(' ').nth(1).expect("a target");
                let bytes = path[1..].parse().expect("a number");
                (content(bytes), "max-age=60")
            }
        };
        let framing = match content.len() % 2 {
            0 => format!("Content-Length: {}\r\n\r\n", content.len()),
            _ => format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", content.len()),
        };
        let end = match content.len() % 2 {
            0 => "",
            _ => "\r\n0\r\n\r\n",
        };
        let head =
            format!("HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nETag: \"x\"\r\n{framing}");
        [head.as_bytes(), &content, end.as_bytes()].concat()
    })
}

/// A request with content of so many bytes.
fn post(bytes: usize, is_chunked: bool) -> Vec<u8> {
    let content = content(bytes);
    let head = "POST /echo HTTP/1.1\r\nHost: origin.example\r\n";
    if !is_chunked || bytes == 0 {
        let head = format!("{head}Content-Length: {bytes}\r\n\r\n");
        return [head.as_bytes(), &content].concat();
    }
    let head = format!("{head}Transfer-Encoding: chunked\r\n\r\n{bytes:x}\r\n");
    [head.as_bytes(), &content, b"\r\n0\r\nX-Sum: 1\r\n\r\n"].concat()
}

/// A range is one of what is stored, where no module changes that for each client; else, and where
/// it is not stored, the whole is sent.
fn check_ranged(response: &Response, whole: &[u8], steps: &[Step], seed: u64) {
    let is_stored_whole = steps.iter().all(|step| step.hook != "response-sent");
    let expected = match response.status() {
        200 => whole,
        206 if is_stored_whole && whole.len() > 5 => &whole[5..whole.len().min(10)],
        416 if is_stored_whole && whole.len() <= 5 => &[],
        status => panic!("seed {seed}: status {status}, {steps:?}"),
    };
    assert!(response.body == expected, "seed {seed}: {steps:?}");
}

fn act(address: SocketAddr, steps: &[Step], seed: u64) {
    let mut chance = Chance(seed);
    let mut client = RawClient::connect(address);
    for _ in 0..ACTIONS {
        let sizes = [0, 1, 30, 70_000, 250_001, 400_000];
        let bytes = sizes[chance.below(sizes.len())];
        let expected;
        match chance.below(4) {
            0 => {
                let request = post(bytes, chance.below(2) == 0);
                // a module may answer early: the content is sent from elsewhere
                client.send_while(&request, || ());
                let sent = reference(steps, "request-received", content(bytes));
                // content of a request that has none passes no module
                let echo = if bytes == 0 { Vec::new() } else { sent };
                expected = response_of(steps, echo);
            }
            1 => {
                let range = "Range: bytes=5-9\r\n";
                client.send(format!(
                    "GET /{bytes} HTTP/1.1\r\nHost: origin.example\r\n{range}\r\n"
                ));
                let whole = response_of(steps, content(bytes));
                check_ranged(&client.read_response(), &whole, steps, seed);
                continue;
            }
            leaves => {
                client.send(format!(
                    "GET /{bytes} HTTP/1.1\r\nHost: origin.example\r\n\r\n"
                ));
                expected = response_of(steps, content(bytes));
                if leaves == 3 && chance.below(2) == 0 {
                    assert_eq!(client.read_head().status(), 200, "seed {seed}");
                    client = RawClient::connect(address);
                    continue;
                }
            }
        }
        let response = client.read_response();
        assert_eq!(response.status(), 200, "seed {seed}");
        assert!(
            response.body == expected,
            "seed {seed}: {bytes} bytes, {steps:?}"
        );
    }
}

#[test]
fn every_byte_is_that_of_the_reference_model_whatever_modules_and_clients_do() {
    let origin = origin();
    for seed in 1..=SEEDS {
        let mut chance = Chance(seed);
        let steps: Vec<Step> = (0..=chance.below(4))
            .map(|_| Step::random(&mut chance))
            .collect();
        let modules = steps.iter().enumerate();
        let modules: Vec<Module> = modules.map(|(at, step)| step.module(at)).collect();
        let proxy = Running::gateway_with(origin.address(), |config| config.modules = modules);
        let (address, steps) = (proxy.address(), Arc::new(steps));
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let steps = Arc::clone(&steps);
                scope.spawn(move || act(address, &steps, seed * 1000 + client));
            }
        });
        for fault in [
            ModuleFault::GaveUp,
            ModuleFault::BadAnswer,
            ModuleFault::Deadline,
        ] {
            let failures = proxy.count(Metric::ModuleFailures(fault));
            assert_eq!(failures, 0, "seed {seed}: {steps:?}");
        }
    }
}
