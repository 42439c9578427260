//! The origin: it has content for each user, and echoes what is sent to it. A request that is cut
//! ends its connection.

use super::request::{Kind, bytes_of, content, owner};
use crate::support::Head;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

pub(super) struct Origin {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let stream = stream.expect("a connection");
                // ends with its connection, which the proxy closes when it stops
                std::thread::spawn(move || {
                    let mut incoming = Incoming::new(stream);
                    while incoming.serve().is_some() {}
                });
            }
        });
        Self {
            address,
            is_over,
            thread: Some(thread),
        }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_some_and(|it| it.is_ok()) || std::thread::panicking());
    }
}

/// What comes on a connection that may end anywhere.
pub(super) struct Incoming {
    pub(super) stream: TcpStream,
    unused: Vec<u8>,
}

impl Incoming {
    pub(super) fn new(stream: TcpStream) -> Self {
        let patience = Some(crate::support::PATIENCE);
        stream.set_read_timeout(patience).expect("a socket");
        stream.set_write_timeout(patience).expect("a socket");
        stream.set_nodelay(true).expect("a socket");
        Self {
            stream,
            unused: Vec::new(),
        }
    }

    fn read_more(&mut self) -> Option<()> {
        let mut buffer = [0; 65_536];
        match self.stream.read(&mut buffer) {
            Ok(count @ 1..) => self.unused.extend_from_slice(&buffer[..count]),
            Ok(0) => return None,
            Err(error) => {
                let is_reset = error.kind() == std::io::ErrorKind::ConnectionReset;
                assert!(is_reset, "nothing came: {error}");
                return None;
            }
        }
        Some(())
    }

    fn read_until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            let mut windows = self.unused.windows(mark.len());
            if let Some(at) = windows.position(|window| window == mark) {
                return Some(self.take(at + mark.len()));
            }
            self.read_more()?;
        }
    }

    fn take(&mut self, bytes: usize) -> Vec<u8> {
        let rest = self.unused.split_off(bytes);
        std::mem::replace(&mut self.unused, rest)
    }

    pub(super) fn read_head(&mut self) -> Option<Head> {
        Some(Head::new(&self.read_until(b"\r\n\r\n")?))
    }

    /// Content as far as it comes, and whether it is whole.
    pub(super) fn read_content(&mut self, head: &Head) -> (Vec<u8>, bool) {
        let mut content = Vec::new();
        if !head.is_chunked() {
            let bytes = head.length().unwrap_or(0);
            let is_whole = self.read_into(&mut content, bytes).is_some();
            return (content, is_whole);
        }
        let is_whole = self.read_chunks(&mut content).is_some();
        (content, is_whole)
    }

    fn read_into(&mut self, content: &mut Vec<u8>, bytes: usize) -> Option<()> {
        let end = content.len() + bytes;
        loop {
            let count = self.unused.len().min(end - content.len());
            content.extend(self.take(count));
            if content.len() == end {
                return Some(());
            }
            self.read_more()?;
        }
    }

    fn read_chunks(&mut self, content: &mut Vec<u8>) -> Option<()> {
        loop {
            let line = String::from_utf8(self.read_until(b"\r\n")?).expect("a size");
            let bytes = usize::from_str_radix(line.trim_end(), 16).expect("a size");
            self.read_into(content, bytes)?;
            assert_eq!(self.read_until(b"\r\n")?, b"\r\n", "more behind a chunk");
            if bytes == 0 {
                return Some(());
            }
        }
    }

    /// Answers a request, if it is whole.
    fn serve(&mut self) -> Option<()> {
        let head = self.read_head()?;
        let (sent, true) = self.read_content(&head) else {
            return None;
        };
        self.stream.write_all(&answer(&head, sent)).ok()
    }
}

fn answer(head: &Head, sent: Vec<u8>) -> Vec<u8> {
    let path = head.start_line().split(' ').nth(1).expect("a target");
    let user = head.field("cookie").unwrap_or("sid=nobody");
    let user = user.strip_prefix("sid=").expect("a user");
    let group = head.field("x-group").unwrap_or("nobody");
    let (kind, user, control) = match &path[..3] {
        "/s/" => (Kind::Shared, user, "max-age=60"),
        "/p/" => (Kind::Private, user, "private"),
        "/v/" => (Kind::Vary, group, "max-age=60\r\nVary: X-Group"),
        _ => (Kind::Echo, user, "no-store"),
    };
    let owner = owner(kind, user);
    let mut content = match kind {
        Kind::Echo => sent,
        _ => content(path, owner, bytes_of(path)),
    };
    let mut answer = format!("HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nX-Owner: {owner}\r\n");
    let range = head.field("range").and_then(part);
    if let Some((first, last)) = range.filter(|range| range.0 < content.len()) {
        let last = last.min(content.len() - 1);
        answer = answer.replace("200 OK", "206 Partial Content");
        answer += &format!("Content-Range: bytes {first}-{last}/{}\r\n", content.len());
        content = content[first..=last].to_vec();
    }
    if kind != Kind::Echo {
        answer += &format!("ETag: \"{owner}\"\r\n");
    }
    let fields = head.fields();
    let mut asked = fields.iter().map(|(name, _)| name.to_ascii_lowercase());
    let is_set = |name: &String| name.starts_with("x-q") || name == "x-deferred";
    let names: Vec<String> = asked.by_ref().filter(is_set).collect();
    answer += &format!("X-Names: {}\r\n", names.join(" "));
    let began = [head.field("x-began"), head.field("x-asked")];
    let began = began.map(|it| it.unwrap_or("-"));
    answer += &format!("X-Asked-By: {} {}\r\n", began[0], began[1]);
    let is_head = head.start_line().starts_with("HEAD");
    if content.len() % 2 == 0 || is_head {
        answer += &format!("Content-Length: {}\r\n\r\n", content.len());
        let content = if is_head { Vec::new() } else { content };
        return [answer.as_bytes(), &content].concat();
    }
    answer += &format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", content.len());
    [answer.as_bytes(), &content, b"\r\n0\r\n\r\n"].concat()
}

/// The first and the last byte of `bytes=FIRST-LAST`.
fn part(range: &str) -> Option<(usize, usize)> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let last = if last.is_empty() {
        usize::MAX
    } else {
        last.parse().ok()?
    };
    Some((first.parse().ok()?, last))
}
