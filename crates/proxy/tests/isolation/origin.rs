//! The origin's sockets: a thread a connection.

use super::random::mix;
use super::responses::{Asked, Kind, Reply};
use crate::support::{Head, Peer};
use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A slow response comes when others have asked meanwhile, or after this.
const SLOW: Duration = Duration::from_millis(20);

/// Questions that a slow response waits for.
const MEANWHILE: u64 = 4;

/// An origin that answers by its script.
pub(crate) struct Origin {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    seed: u64,
    state: Mutex<State>,
    asked: Condvar,
}

#[derive(Default)]
struct State {
    stopping: bool,
    questions: u64,
    /// By URL: how often it was asked for, and changed.
    urls: HashMap<u64, (u64, u64)>,
}

impl Origin {
    pub(crate) fn start(seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            seed,
            state: Mutex::default(),
            asked: Condvar::new(),
        });
        let own = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if own.state.lock().expect("no panic").stopping {
                    return;
                }
                let (shared, stream) = (Arc::clone(&own), stream.expect("a connection"));
                // ends with its connection, which the proxy closes when it stops
                std::thread::spawn(move || shared.serve(Peer::new(stream)));
            }
        });
        Self {
            shared,
            address,
            thread: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes a URL; its version now.
    pub(crate) fn change(&self, path: u64) -> u64 {
        let mut state = self.shared.state.lock().expect("no panic");
        let (_, version) = state.urls.entry(path).or_insert((0, 1));
        *version += 1;
        *version
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.state.lock().expect("no panic").stopping = true;
        // wakes the thread
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok() || std::thread::panicking());
        }
    }
}

impl Shared {
    fn serve(&self, mut peer: Peer) {
        let mut byte = [0];
        while matches!(peer.stream.peek(&mut byte), Ok(1..)) {
            let head = peer.read_head();
            peer.read_exactly(head.length().unwrap_or(0));
            if !self.answer(&mut peer, &head) {
                return;
            }
        }
    }

    /// Answers; whether the connection goes on.
    fn answer(&self, peer: &mut Peer, head: &Head) -> bool {
        let mut words = head.start_line().split(' ');
        let method = words.next().unwrap_or_default();
        let path = words.next().unwrap_or_default();
        let path = path.rsplit('/').next().unwrap_or_default();
        let path: u64 = path.parse().unwrap_or(0);
        let (at, version) = self.note(method, path);
        let die = mix(self.seed, path, at);
        if die.is_multiple_of(97) {
            return false;
        }
        let reply = Asked {
            head,
            method,
            path,
            version,
            die: die >> 8,
        }
        .reply();
        let (head, content) = written(&reply, method);
        let is_slow = Kind::of(path).is_slow();
        if is_slow {
            self.wait();
        }
        if die.is_multiple_of(89) {
            // cut in the middle
            peer.try_send([&head[..], &content[..content.len() / 2]].concat());
            return false;
        }
        if is_slow && content.len() > 100 {
            let (first, rest) = content.split_at(100);
            let sent = peer.try_send([&head[..], first].concat());
            self.wait();
            return sent && peer.try_send(rest);
        }
        peer.try_send([head, content].concat())
    }

    /// How often the URL was asked for before, and its version now.
    fn note(&self, method: &str, path: u64) -> (u64, u64) {
        let mut state = self.state.lock().expect("no panic");
        state.questions += 1;
        let (asked, version) = state.urls.entry(path).or_insert((0, 1));
        *asked += 1;
        if method == "POST" || mix(self.seed, path ^ 0xff, *asked).is_multiple_of(40) {
            *version += 1;
        }
        let noted = (*asked, *version);
        self.asked.notify_all();
        noted
    }

    fn wait(&self) {
        let state = self.state.lock().expect("no panic");
        let enough = state.questions + MEANWHILE;
        let waited = self
            .asked
            .wait_timeout_while(state, SLOW, |state| state.questions < enough);
        drop(waited.expect("no panic"));
    }
}

/// Head and content as they are sent.
fn written(reply: &Reply, method: &str) -> (Vec<u8>, Vec<u8>) {
    let has_content = method != "HEAD" && reply.status != 304;
    let (framing, content) = if reply.chunked && has_content {
        let mut chunks = Vec::new();
        for chunk in reply.content.chunks(500) {
            chunks.extend(format!("{:x}\r\n", chunk.len()).into_bytes());
            chunks.extend_from_slice(chunk);
            chunks.extend_from_slice(b"\r\n");
        }
        chunks.extend_from_slice(b"0\r\n\r\n");
        ("Transfer-Encoding: chunked\r\n".to_owned(), chunks)
    } else if has_content {
        let length = reply.content.len();
        (
            format!("Content-Length: {length}\r\n"),
            reply.content.clone(),
        )
    } else {
        (String::new(), Vec::new())
    };
    let (status, fields) = (reply.status, &reply.fields);
    let head = format!("HTTP/1.1 {status} Said\r\n{fields}{framing}\r\n");
    (head.into_bytes(), content)
}
