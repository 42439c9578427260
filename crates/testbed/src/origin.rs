//! The origin that every proxy stands in front of: that of `weir bench` in a process of its own,
//! whose responses are described by their targets and which keeps an account of what was fetched
//! and how much of it a peer's kernel has taken.

mod http2;

use crate::client::get;
use crate::process::guarded;
use crate::process::ioctl;
use crate::proxy::server::{self, Place, Server};
use crate::proxy::template::Words;
use clap::Args;
use http2::Http2Origin;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use weir_bench::failure::FailureKind;
use weir_bench::origin::{ByTarget, FetchTally, OriginHandle, start_by_target};
use xtask::failure::{During, Failure};
use xtask::program;

/// A target that every proxy answers when it is ready.
pub(crate) const READY: &str = "/ready?size=1000";

/// The command that makes a process the origin.
pub(crate) const ROLE: &str = "origin";

/// The running origin, as the process that measures sees it.
#[derive(Debug)]
pub(crate) struct Origin {
    server: Server,
    /// Proxies fetch from this one, if there is one, and only their fetches are counted.
    http2: Option<Http2Origin>,
}

impl Origin {
    /// Starts this program again as an origin, and waits until it answers.
    pub(crate) fn start(
        directory: &Path,
        place: &Place<'_>,
        send_buffer_bytes: Option<usize>,
    ) -> Result<Self, Failure> {
        let mut origin = Self::launch(directory, place, send_buffer_bytes)?;
        origin.wait_until_it_answers()?;
        Ok(origin)
    }

    /// Has proxies fetch by HTTP/2: [`Self::words`] name another address then.
    ///
    /// # Errors
    /// It cannot listen, or have a thread.
    pub(crate) fn speak_http2(&mut self, send_buffer_bytes: usize) -> Result<(), Failure> {
        self.http2 = Some(Http2Origin::start(Some(send_buffer_bytes))?);
        Ok(())
    }

    /// Starts this program again as an origin; for `send_buffer_bytes` see [`ByTarget`].
    ///
    /// The process that measures reaches it at the place's address. It listens on all addresses of
    /// its network: between two addresses and a port there are some 28 000 connections, so each
    /// proxy may reach it at an address of its own.
    pub(crate) fn launch(
        directory: &Path,
        place: &Place<'_>,
        send_buffer_bytes: Option<usize>,
    ) -> Result<Self, Failure> {
        std::fs::create_dir_all(directory).during("make the origin's directory")?;
        let port = server::take_port()?;
        let mut arguments = place.within.to_vec();
        arguments.extend([program::own()?, ROLE.to_owned(), port.to_string()]);
        arguments.extend(send_buffer_bytes.map(|bytes| bytes.to_string()));
        let mut command = guarded::command(&arguments, place.life);
        let address = SocketAddr::from((place.host, port));
        let server = Server::spawn("origin", &mut command, directory, address, place.core)?;
        Ok(Self {
            server,
            http2: None,
        })
    }

    /// These arguments, and those with the origin's address for a proxy.
    pub(crate) fn words(&self, words: &Words, host: Ipv4Addr) -> Words {
        let mut words = words.clone();
        let http2 = self.http2.as_ref().map(Http2Origin::port);
        let address = SocketAddr::from((host, http2.unwrap_or(self.address().port())));
        words.set("ORIGIN", address);
        words.set("ORIGIN_HOST", address.ip());
        words.set("ORIGIN_PORT", address.port());
        words
    }

    pub(crate) fn wait_until_it_answers(&mut self) -> Result<(), Failure> {
        self.server.wait_until_it_answers(READY)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// What was fetched below a prefix of paths until now.
    pub(crate) fn tally(&self, prefix: &str) -> Result<FetchTally, Failure> {
        match &self.http2 {
            Some(http2) => Ok(http2.tally(prefix)),
            None => tally(self.address(), prefix),
        }
    }

    /// How many connections carried fetches of `path`; `None` by HTTP/1.1.
    pub(crate) fn connections_of(&self, path: &str) -> Option<u64> {
        self.http2.as_ref().map(|http2| http2.connections_of(path))
    }
}

/// A failure of `weir bench` as one of a chore, with its hint.
pub(crate) fn of_bench(failure: weir_bench::failure::Failure) -> Failure {
    let hint = failure.hint.as_ref();
    let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
    let text = format!("{failure}{hint}");
    match failure.kind {
        FailureKind::Usage => Failure::Usage(text),
        FailureKind::Outside => Failure::Outside(text),
    }
}

fn tally(origin: SocketAddr, prefix: &str) -> Result<FetchTally, Failure> {
    let answer = get::get_once(origin, &format!("/tally?{prefix}"));
    let answer = answer.during("ask the origin for its tally")?;
    serde_json::from_slice(&answer.body).during("understand the origin's tally")
}

/// Options of the process that is the origin.
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Where it listens, on all addresses
    port: u16,
    /// The size of send buffers; the kernel's, if not given
    send_buffer_bytes: Option<usize>,
}

/// Serves until the process is ended.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let address = SocketAddr::from((Ipv4Addr::UNSPECIFIED, options.port));
    let _serving = serve(address, options.send_buffer_bytes)?;
    loop {
        std::thread::park();
    }
}

fn serve(address: SocketAddr, send_buffer_bytes: Option<usize>) -> Result<OriginHandle, Failure> {
    let options = ByTarget {
        send_buffer_bytes,
        write_bytes_max: 8 * 1024,
        unacknowledged_bytes: ioctl::bytes_not_acknowledged,
    };
    start_by_target(address, options).map_err(of_bench)
}

/// An origin in threads of this process, until it is dropped; and its address.
#[cfg(test)]
pub(crate) fn in_threads() -> (OriginHandle, SocketAddr) {
    let origin = serve((Ipv4Addr::LOCALHOST, 0).into(), None).expect("an origin");
    let address = origin.servers()[0];
    (origin, address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use weir_bench::origin::{FetchEnd, ResponseSpec, content_of};

    #[test]
    fn persistent_connection_serves_exact_content_and_counts_it() {
        let (_origin, address) = in_threads();
        let mut stream = get::connect(address).expect("the origin");
        for (number, size) in [0_u64, 1, 100_000].into_iter().enumerate() {
            let target = ResponseSpec::new(&format!("/a/{number}"), size).to_string();
            let answer = get::get(&mut stream, &target).expect("an answer");
            assert_eq!((answer.status, answer.body.len() as u64), (200, size));
            assert_eq!(content_of(&target).differs_at(0, &answer.body), None);
        }
        let nothing = get::get_once(address, "/nothing").map(|answer| answer.status);
        assert_eq!(nothing.ok(), Some(404));
        let tally = |prefix| tally(address, prefix).expect("a tally");
        let mut all = tally("/a/");
        // the client's kernel may take its time to acknowledge the last bytes
        while all.acknowledged_bytes < all.handed_bytes {
            all = tally("/a/");
        }
        assert_eq!((all.fetches, all.running), (3, 0));
        assert_eq!(all.handed_bytes, 100_001);
        assert_eq!((tally("/a/2").fetches, tally("/b").fetches), (1, 0));
    }

    #[test]
    fn unread_response_is_handed_over_only_partly_and_ends_as_cut() {
        let (_origin, address) = in_threads();
        let tally = || tally(address, "/a").expect("a tally");
        let mut stream = TcpStream::connect(address).expect("the origin");
        let target = ResponseSpec::new("/a", 100_000_000);
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nRange: bytes=1-\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        stream.read_exact(&mut [0; 1]).expect("an answer");
        let running = tally();
        assert_eq!(running.running, 1);
        assert!(running.acknowledged_bytes <= running.handed_bytes);
        assert!(running.handed_bytes < 100_000_000);
        drop(stream);
        // the origin hears of it some time later
        let mut ended = tally();
        while ended.running > 0 {
            ended = tally();
        }
        let first = &ended.first[0];
        assert_eq!((first.end, first.status), (FetchEnd::Cut, 206));
        assert_eq!(first.range.as_deref(), Some("bytes=1-"));
        assert!(ended.acknowledged_bytes < 100_000_000);
    }

    #[test]
    fn response_without_length_ends_with_its_connection() {
        let (_origin, address) = in_threads();
        let mut stream = get::connect(address).expect("the origin");
        let spec = ResponseSpec {
            has_length: false,
            is_storable: false,
            ..ResponseSpec::new("/a", 5000)
        };
        let request = format!("GET {spec} HTTP/1.0\r\nHost: a\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("a request");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("an end");
        let head_bytes = received.len() - 5000;
        let head = String::from_utf8_lossy(&received[..head_bytes]).to_ascii_lowercase();
        assert!(!head.contains("content-length:"), "{head}");
        assert!(head.contains("cache-control: no-store\r\n"), "{head}");
        assert!(head.ends_with("\r\n\r\n"), "{head}");
    }
}
