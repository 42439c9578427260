//! The origin of images, and of one response that stays stored.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use xtask::failure::{During, Failure};

/// The target of the hits.
pub(super) const HIT: &str = "/hit";

/// Their content.
pub(super) const HIT_BYTES: [u8; 1024] = [b'h'; 1024];

/// A longer head is none of weir.
const HEAD_BYTES_MAX: usize = 8 << 10;

/// A running origin, until it is dropped.
#[derive(Debug)]
pub(super) struct ImageOrigin {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    jpeg: Vec<u8>,
    /// How often the target of the hits was fetched.
    hits: AtomicU64,
    is_over: AtomicBool,
}

impl ImageOrigin {
    /// Starts one that serves this image for all targets but that of the hits.
    ///
    /// # Errors
    /// There is no port.
    pub(super) fn start(jpeg: Vec<u8>) -> Result<Self, Failure> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).during("find a free port")?;
        let address = listener.local_addr().during("find a free port")?;
        let shared = Arc::new(Shared {
            jpeg,
            hits: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Ok(Self { address, shared })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often the target of the hits was fetched.
    pub(super) fn hits(&self) -> u64 {
        self.shared.hits.load(Ordering::SeqCst)
    }
}

impl Drop for ImageOrigin {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        // wakes the thread that accepts
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            let serving = Arc::clone(self);
            // it ends with the connection
            thread::spawn(move || serving.serve(stream));
        }
    }

    fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut head = Vec::new();
        let mut part = [0; 1024];
        loop {
            let length = stream.read(&mut part)?;
            head.extend_from_slice(&part[..length]);
            if length == 0 || head.len() > HEAD_BYTES_MAX {
                return Ok(());
            }
            if !head.ends_with(b"\r\n\r\n") {
                continue;
            }
            let is_hit = head.starts_with(format!("GET {HIT} ").as_bytes());
            self.hits.fetch_add(u64::from(is_hit), Ordering::SeqCst);
            let (kind, content) = if is_hit {
                ("text/plain", &HIT_BYTES[..])
            } else {
                ("image/jpeg", &self.jpeg[..])
            };
            let length = content.len();
            let fields = format!("Content-Type: {kind}\r\nContent-Length: {length}");
            let lines =
                format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=86400\r\n{fields}\r\n\r\n");
            stream.write_all(&[lines.as_bytes(), content].concat())?;
            head.clear();
        }
    }
}
