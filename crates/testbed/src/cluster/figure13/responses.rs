//! The responses of pipelined requests, as they come on one connection: each is compared byte by
//! byte.

use crate::client::get::connect_from;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;
use weir_bench::origin::content_of;
use weir_semantics::line_named;
use weir_wire::{HeadLimits, LineBuffer, Progress, parse_response};

/// Far more than any of the servers sends.
const HEAD_LIMITS: HeadLimits = HeadLimits {
    bytes_max: 16_384,
    fields_max: 64,
};

/// A response that takes longer has failed: a disk of 40 reads a second has 130 requests before it.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(60);

const BUFFER_BYTES: usize = 64 << 10;

/// How clients speak.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Http {
    /// A connection each request
    #[value(name = "1.0")]
    #[serde(rename = "1.0")]
    V1_0,
    /// Connections and pipelined batches of the trace
    Persistent,
}

impl Http {
    /// For people.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::V1_0 => "HTTP/1.0",
            Self::Persistent => "persistent connections",
        }
    }
}

/// A connection, and what was received and not looked at.
#[derive(Debug)]
pub(super) struct Responses {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// What is to be looked at, in the buffer.
    from: usize,
    to: usize,
}

impl Responses {
    pub(super) fn connect(from: Ipv4Addr, to: SocketAddr) -> std::io::Result<Self> {
        let stream = connect_from(from, to, None)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        Ok(Self {
            stream,
            buffer: vec![0; BUFFER_BYTES],
            from: 0,
            to: 0,
        })
    }

    /// Sends requests, all at once.
    pub(super) fn ask(&mut self, targets: &[String], http: Http) -> std::io::Result<()> {
        let version = match http {
            Http::V1_0 => "1.0",
            Http::Persistent => "1.1",
        };
        let mut heads = String::new();
        for target in targets {
            heads += &format!("GET {target} HTTP/{version}\r\nHost: origin.example\r\n\r\n");
        }
        self.stream.write_all(heads.as_bytes())
    }

    /// Receives the next response, which is to be that of a target. How many bytes of content it
    /// had.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub(super) fn receive(&mut self, target: &str) -> Result<u64, String> {
        let (status, length) = self.head()?;
        if status != 200 {
            return Err(format!("status {status} for {target}"));
        }
        let content = content_of(target);
        let mut read = 0;
        while read < length {
            if self.from == self.to {
                self.read()?;
            }
            let here = u64::try_from(self.to - self.from).unwrap_or(u64::MAX);
            let part = usize::try_from(here.min(length - read)).unwrap_or_default();
            let bytes = &self.buffer[self.from..self.from + part];
            if let Some(at) = content.differs_at(read, bytes) {
                return Err(format!("wrong content of {target} at {at}"));
            }
            self.from += part;
            read += part as u64;
        }
        Ok(length)
    }

    /// Status and content length of the next response.
    fn head(&mut self) -> Result<(u16, u64), String> {
        loop {
            let mut lines = LineBuffer::new();
            let bytes = &self.buffer[self.from..self.to];
            let parsed = parse_response(bytes, &HEAD_LIMITS, &mut lines);
            match parsed.map_err(|error| format!("no head: {error:?}"))? {
                Progress::Complete { head, consumed } => {
                    let length = line_named(head.fields, "content-length");
                    let length = length.and_then(|it| std::str::from_utf8(it).ok()?.parse().ok());
                    let length = length.ok_or("a response without its length")?;
                    let status = head.status;
                    self.from += consumed;
                    return Ok((status, length));
                }
                Progress::Partial => self.read()?,
            }
        }
    }

    /// Reads once, behind what is there.
    fn read(&mut self) -> Result<(), String> {
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        match self.stream.read(&mut self.buffer[self.to..]) {
            Ok(0) => Err("the connection ended".to_owned()),
            Ok(length) => {
                self.to += length;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::in_threads;
    use std::net::TcpListener;
    use weir_bench::origin::ResponseSpec;

    fn target(number: u32, size: u64) -> String {
        ResponseSpec::new(&format!("/t/{number}"), size).to_string()
    }

    #[test]
    fn responses_of_one_connection_are_compared_each_with_its_own_content() {
        let (_origin, address) = in_threads();
        let mut responses = Responses::connect(Ipv4Addr::LOCALHOST, address).expect("the origin");
        // the origin takes one request at a time
        for (number, size) in [(1, 100_000), (2, 1)] {
            let target = target(number, size);
            responses
                .ask(std::slice::from_ref(&target), Http::Persistent)
                .expect("a connection");
            assert_eq!(responses.receive(&target), Ok(size));
        }
        let right = target(3, 100);
        responses
            .ask(&[right], Http::Persistent)
            .expect("a connection");
        let other = responses.receive(&target(4, 100));
        assert!(other.is_err_and(|why| why.contains("wrong content")));
    }

    #[test]
    fn pipelined_responses_are_told_apart_wherever_they_are_cut() {
        let both = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let (one, two) = (target(1, 70_000), target(2, 3));
        let mut bytes = Vec::new();
        for target in [&one, &two] {
            let size = ResponseSpec::parse(target).expect("a target").size_bytes;
            let mut body = vec![0; usize::try_from(size).expect("a size")];
            content_of(target).fill(0, &mut body);
            bytes.extend(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").bytes());
            bytes.extend(body);
        }
        bytes.extend(both.bytes());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            for part in bytes.chunks(69_990) {
                stream.write_all(part).expect("a reader");
            }
            // until the client has had enough
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let mut responses = Responses::connect(Ipv4Addr::LOCALHOST, address).expect("the server");
        let batch = [one, two];
        responses
            .ask(&batch, Http::Persistent)
            .expect("a connection");
        assert_eq!(responses.receive(&batch[0]), Ok(70_000));
        assert_eq!(responses.receive(&batch[1]), Ok(3));
        let refused = responses.receive(&batch[1]);
        assert!(refused.is_err_and(|why| why.starts_with("status 404")));
        drop(responses);
        server.join().expect("no panic");
    }
}
