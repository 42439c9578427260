//! A client and an origin that say exactly what they are told to, over plain sockets.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than anything takes on a busy machine; a longer wait never ends.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A message as it was received.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    /// Start line and fields, without the empty line.
    pub(crate) head: String,
    /// Its content, chunks put together.
    pub(crate) content: Vec<u8>,
    /// All of the content came.
    pub(crate) is_whole: bool,
}

impl Message {
    /// The status code of a response.
    pub(crate) fn status(&self) -> u16 {
        let status = self.head.split(' ').nth(1);
        status.and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// The values of the fields of this name, with a comma between.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let lines = self.head.split("\r\n").skip(1);
        let fields = lines.filter_map(|line| line.split_once(':'));
        let values: Vec<&str> = fields
            .filter(|field| field.0.eq_ignore_ascii_case(name))
            .map(|field| field.1.trim())
            .collect();
        (!values.is_empty()).then(|| values.join(", "))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.content).into_owned()
    }
}

/// Reads a message; `None` if the connection ends before its head does. `to_head`: it answers a
/// HEAD.
pub(crate) fn read(stream: &mut TcpStream, to_head: bool) -> Option<Message> {
    let mut message = Message::default();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(byte(stream)?);
    }
    message.head = String::from_utf8_lossy(&head[..head.len() - 4]).into_owned();
    let is_response = message.head.starts_with("HTTP/");
    let has_none = is_response && (to_head || matches!(message.status(), 204 | 304));
    let length = message.field("content-length");
    message.is_whole = match (message.field("transfer-encoding"), length) {
        _ if has_none => true,
        (Some(_), _) => chunks(stream, &mut message.content).is_some(),
        (None, Some(length)) => {
            let length: usize = length.parse().ok()?;
            message.content.resize(length, 0);
            stream.read_exact(&mut message.content).is_ok()
        }
        (None, None) if is_response => stream.read_to_end(&mut message.content).is_ok(),
        (None, None) => true,
    };
    Some(message)
}

fn byte(stream: &mut TcpStream) -> Option<u8> {
    let mut byte = [0];
    stream.read_exact(&mut byte).ok()?;
    Some(byte[0])
}

fn chunks(stream: &mut TcpStream, content: &mut Vec<u8>) -> Option<()> {
    loop {
        let size = line(stream)?;
        let size = usize::from_str_radix(&size, 16).ok()?;
        let start = content.len();
        content.resize(start + size, 0);
        stream.read_exact(&mut content[start..]).ok()?;
        line(stream)?;
        if size == 0 {
            return Some(());
        }
    }
}

fn line(stream: &mut TcpStream) -> Option<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(byte(stream)?);
    }
    line.truncate(line.len() - 2);
    String::from_utf8(line).ok()
}

/// A connection of a client.
pub(crate) struct Client(TcpStream);

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
        Self(stream)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).expect("sent");
    }

    pub(crate) fn read(&mut self) -> Message {
        read(&mut self.0, false).expect("a response")
    }

    /// Sends a request and reads the response to it.
    pub(crate) fn ask(&mut self, request: impl AsRef<[u8]>) -> Message {
        self.send(request);
        self.read()
    }

    /// The same for a HEAD.
    pub(crate) fn ask_head(&mut self, request: impl AsRef<[u8]>) -> Message {
        self.send(request);
        read(&mut self.0, true).expect("a response")
    }
}

type Answer = dyn Fn(&Message) -> Vec<u8> + Send + Sync;

/// An origin that answers each request by itself, and remembers what it was asked.
pub(crate) struct Origin {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Message>>>,
    is_stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Origin {
    pub(crate) fn new(answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        let seen: Arc<Mutex<Vec<Message>>> = Arc::default();
        let is_stopping: Arc<AtomicBool> = Arc::default();
        let (log, stop) = (Arc::clone(&seen), Arc::clone(&is_stopping));
        let answer: Arc<Answer> = Arc::new(answer);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                let mut stream = stream.expect("a connection");
                // ends with its connection, which the proxy closes when it stops
                std::thread::spawn(move || {
                    while let Some(request) = read(&mut stream, false) {
                        if !request.is_whole {
                            // given up on its way, as a filter refused its content
                            return;
                        }
                        let bytes = answer(&request);
                        log.lock().expect("no panic").push(request);
                        if stream.write_all(&bytes).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self {
            address,
            seen,
            is_stopping,
            thread: Some(thread),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// All whole requests so far.
    pub(crate) fn seen(&self) -> Vec<Message> {
        self.seen.lock().expect("no panic").clone()
    }

    /// The last request.
    pub(crate) fn last(&self) -> Message {
        self.seen().pop().expect("a request")
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        // wakes the thread
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

/// A response with this content.
pub(crate) fn response(fields: &str, content: &str) -> Vec<u8> {
    let length = content.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{fields}\r\n{content}").into_bytes()
}
