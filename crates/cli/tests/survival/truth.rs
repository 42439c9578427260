//! An origin whose every byte is a function of target, version and offset, so that a client can
//! check all of them without a copy.

use crate::support::Reply;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use weir_workload::mix;

/// What it knows of its targets.
#[derive(Debug, Default)]
struct Known {
    /// Versions above 0.
    versions: BTreeMap<String, u64>,
    /// How often each was asked for with GET.
    asked: BTreeMap<String, u64>,
}

/// The origin. A target says its size: `/any/name?size=BYTES`.
#[derive(Debug)]
pub(crate) struct TruthOrigin {
    pub(crate) address: SocketAddr,
    known: Arc<Mutex<Known>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl TruthOrigin {
    /// Starts one on a port of the system's choice.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let (known, stopping) = (Arc::<Mutex<Known>>::default(), Arc::<AtomicBool>::default());
        let thread = std::thread::spawn({
            let (known, stopping) = (Arc::clone(&known), Arc::clone(&stopping));
            move || {
                for stream in listener.incoming().map_while(Result::ok) {
                    if stopping.load(Ordering::SeqCst) {
                        return;
                    }
                    let known = Arc::clone(&known);
                    // ends with its connection
                    std::thread::spawn(move || serve(stream, &known));
                }
            }
        });
        Self {
            address,
            known,
            stopping,
            thread: Some(thread),
        }
    }

    /// As a next hop.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on the target has another version; its number.
    pub(crate) fn change(&self, target: &str) -> u64 {
        let mut known = self.known.lock().expect("no panic");
        let version = known.versions.entry(target.to_owned()).or_default();
        *version += 1;
        *version
    }

    /// How often the target was asked for.
    pub(crate) fn asked(&self, target: &str) -> u64 {
        let known = self.known.lock().expect("no panic");
        known.asked.get(target).copied().unwrap_or_default()
    }
}

impl Drop for TruthOrigin {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // wakes the thread
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

/// The byte of a target's version at an offset.
fn seed_of(target: &str, version: u64) -> u64 {
    // FNV-1a (Fowler, Noll, Vo)
    let start = 0xcbf2_9ce4_8422_2325 ^ version.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    target.bytes().fold(start, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// `count` bytes of a target's version from `from` on, which is a multiple of eight.
fn bytes(target: &str, version: u64, from: u64, count: usize) -> Vec<u8> {
    let seed = seed_of(target, version);
    let mut bytes = Vec::with_capacity(count + 8);
    let mut word = from / 8;
    while bytes.len() < count {
        bytes.extend_from_slice(&mix(seed ^ mix(word)).to_le_bytes());
        word += 1;
    }
    bytes.truncate(count);
    bytes
}

/// Checks every byte of a whole response to `target`; the version it is.
#[track_caller]
pub(crate) fn check(target: &str, reply: &Reply) -> u64 {
    assert_eq!(reply.status(), 200, "{target}: {}", reply.head);
    let tag = reply.field("etag");
    let version = tag.trim_matches(['"', 'v']).parse();
    let version = version.unwrap_or_else(|_| panic!("{target}: {tag}"));
    let size = size_of(target);
    assert_eq!(reply.body.len(), size, "{target}: {}", reply.head);
    let truth = bytes(target, version, 0, size);
    let wrong = (0..size).find(|&at| truth[at] != reply.body[at]);
    assert_eq!(wrong, None, "{target} is wrong there: {}", reply.head);
    version
}

fn size_of(target: &str) -> usize {
    let size = target.split_once("size=").map(|(_, size)| size.parse());
    size.and_then(Result::ok)
        .unwrap_or_else(|| panic!("{target} has no size"))
}

/// Bytes written at once.
const PIECE_BYTES: usize = 64 * 1024;

fn serve(stream: TcpStream, known: &Mutex<Known>) {
    let Ok(mut out) = stream.try_clone() else {
        return;
    };
    let mut lines = BufReader::new(stream);
    while let Some(head) = request(&mut lines) {
        if answer(&head, &mut out, known).is_err() {
            return;
        }
    }
}

fn request(lines: &mut BufReader<TcpStream>) -> Option<String> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if lines.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if head[before..].trim_end().is_empty() {
            return Some(head);
        }
    }
}

fn answer(head: &str, out: &mut TcpStream, known: &Mutex<Known>) -> std::io::Result<()> {
    let mut words = head.split(' ');
    let (method, target) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    if method != "GET" {
        return out.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
    }
    let version = {
        let mut known = known.lock().expect("no panic");
        *known.asked.entry(target.to_owned()).or_default() += 1;
        known.versions.get(target).copied().unwrap_or_default()
    };
    let size = size_of(target);
    let field = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let mut these = lines.filter(|(found, _)| found.eq_ignore_ascii_case(name));
        these.next().map(|(_, value)| value.trim())
    };
    let tag = format!("\"v{version}\"");
    let is_same = field("if-range").is_none_or(|wanted| wanted == tag);
    let range = field("range").filter(|_| is_same).and_then(range);
    let (from, to) = range.map_or((0, size), |(from, to)| (from, to.min(size)));
    let (status, part) = match range {
        Some(_) => (
            "206 Partial Content",
            format!("Content-Range: bytes {from}-{}/{size}\r\n", to - 1),
        ),
        None => ("200 OK", String::new()),
    };
    write!(
        out,
        "HTTP/1.1 {status}\r\nCache-Control: max-age=86400\r\nETag: {tag}\r\n{part}Content-Length: {}\r\n\r\n",
        to - from
    )?;
    let mut at = from;
    while at < to {
        let aligned = at / 8 * 8;
        let count = (to - aligned).min(PIECE_BYTES);
        let piece = bytes(target, version, aligned as u64, count);
        out.write_all(&piece[at - aligned..])?;
        at = aligned + count;
    }
    Ok(())
}

fn range(value: &str) -> Option<(usize, usize)> {
    let (from, to) = value.strip_prefix("bytes=")?.split_once('-')?;
    let to = if to.is_empty() {
        usize::MAX
    } else {
        to.parse::<usize>().ok()? + 1
    };
    Some((from.parse().ok()?, to))
}
