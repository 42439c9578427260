//! A small proxy that is wrong on command: real sockets, one thread a connection, responses held
//! whole.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use weir_wire::Version;

use super::exchange::{ReceivedRequest, Reply, Wire};
use super::fault::Fault;

/// A proxy with a fault that the test chooses.
///
/// Requests in absolute-form go to the authority they name, those in origin-form to the origin
/// given to [`FaultyProxy::gateway`]. Every response is fetched anew, except where the [`Fault`] is
/// about stored ones.
#[derive(Debug)]
pub(crate) struct FaultyProxy {
    address: SocketAddr,
    state: Arc<Mutex<ProxyState>>,
}

#[derive(Debug)]
struct ProxyState {
    fault: Fault,
    /// Correct responses before the fault begins.
    correct_before: u64,
    /// Only one response is faulty.
    once: bool,
    sent_faulty: u64,
    asked: u64,
    stored: HashMap<String, Reply>,
    /// The target before, and its response.
    last: Option<(String, Reply)>,
    gateway_to: Option<SocketAddr>,
}

impl FaultyProxy {
    /// A forward proxy on a port of 127.0.0.1.
    pub(crate) fn forward(fault: Fault) -> Self {
        Self::start(fault, None)
    }

    /// A gateway in front of `origin`.
    pub(crate) fn gateway(origin: SocketAddr, fault: Fault) -> Self {
        Self::start(fault, Some(origin))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lies so from now on.
    pub(crate) fn tell(&self, fault: Fault) {
        self.tell_after(0, fault);
    }

    /// Lies so after that many more honest responses.
    pub(crate) fn tell_after(&self, correct_before: u64, fault: Fault) {
        let mut state = self.state.lock().expect("a sound mind");
        (state.fault, state.correct_before, state.once) = (fault, correct_before, false);
    }

    /// Lies so once, after that many more honest responses.
    pub(crate) fn tell_once(&self, correct_before: u64, fault: Fault) {
        let mut state = self.state.lock().expect("a sound mind");
        (state.fault, state.correct_before, state.once) = (fault, correct_before, true);
    }

    /// Responses so far that were not the origin's. A stored response that is still right is no
    /// lie, and one that has changed at the origin cannot be told from it here: [`Fault::Stale`]
    /// counts every stored response that is sent.
    pub(crate) fn sent_faulty(&self) -> u64 {
        self.state.lock().expect("a sound mind").sent_faulty
    }

    /// Requests so far.
    pub(crate) fn asked(&self) -> u64 {
        self.state.lock().expect("a sound mind").asked
    }

    fn start(fault: Fault, gateway_to: Option<SocketAddr>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(Mutex::new(ProxyState {
            fault,
            correct_before: 0,
            once: false,
            sent_faulty: 0,
            asked: 0,
            stored: HashMap::new(),
            last: None,
            gateway_to,
        }));
        let of_threads = Arc::clone(&state);
        // ends with the test's process
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&of_threads);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Self { address, state }
    }
}

/// Serves a connection until either side has enough; what went wrong shows at the client.
fn serve(stream: TcpStream, state: &Mutex<ProxyState>) {
    let mut client = Wire::of(stream);
    while let Ok(Some(asked)) = client.request() {
        let keeps = asked.version == Version::Http11
            && !asked
                .field("connection")
                .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let sent_faulty = respond(&asked, state);
        let Ok((bytes, ends)) = sent_faulty else {
            let _ = client.send(b"HTTP/1.1 502 Nothing\r\nContent-Length: 0\r\n\r\n");
            return;
        };
        if client.send(&bytes).is_err() || ends || !keeps {
            return;
        }
    }
}

/// The bytes of a response, and whether the connection ends behind it.
fn respond(asked: &ReceivedRequest, state: &Mutex<ProxyState>) -> io::Result<(Vec<u8>, bool)> {
    let (fault, gateway_to) = {
        let mut state = state.lock().expect("a sound mind");
        state.asked += 1;
        let fault = state.next();
        (fault, state.gateway_to)
    };
    let stored = {
        let state = state.lock().expect("a sound mind");
        match fault {
            Fault::Stale => state.stored.get(&asked.target).cloned(),
            Fault::Swapped => state
                .last
                .clone()
                .filter(|(target, _)| *target != asked.target)
                .map(|(_, reply)| reply),
            _ => None,
        }
    };
    let is_stored = stored.is_some();
    let reply = match stored {
        Some(reply) => reply,
        None => fetch(asked, gateway_to)?,
    };
    let mut state = state.lock().expect("a sound mind");
    if !is_stored && asked.method == "GET" && reply.status == 200 {
        state
            .stored
            .entry(asked.target.clone())
            .or_insert_with(|| reply.clone());
        state.last = Some((asked.target.clone(), reply.clone()));
    }
    let sent_faulty = fault.tell(reply, asked.method == "HEAD");
    let is_faulty = match fault {
        Fault::Stale | Fault::Swapped => is_stored,
        _ => sent_faulty.is_faulty,
    };
    state.sent_faulty += u64::from(is_faulty);
    if state.once && fault != Fault::None && !is_faulty {
        // it did not fit: the next one
        (state.fault, state.correct_before) = (fault, 0);
    }
    Ok((sent_faulty.bytes, sent_faulty.ends))
}

impl ProxyState {
    /// What the next response is.
    fn next(&mut self) -> Fault {
        if self.correct_before > 0 {
            self.correct_before -= 1;
            return Fault::None;
        }
        let fault = self.fault;
        if self.once {
            self.fault = Fault::None;
        }
        fault
    }
}

/// The response of the origin, whole.
fn fetch(asked: &ReceivedRequest, gateway_to: Option<SocketAddr>) -> io::Result<Reply> {
    let (authority, path) = match asked.target.strip_prefix("http://") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", asked.target.as_str()),
    };
    let next_hop = match gateway_to {
        Some(next_hop) => next_hop,
        None => authority.parse().map_err(io::Error::other)?,
    };
    let mut request = format!("{} {path} HTTP/1.1\r\nHost: {next_hop}\r\n", asked.method);
    for (name, value) in &asked.fields {
        if !["host", "connection", "content-length", "transfer-encoding"]
            .iter()
            .any(|own| name.eq_ignore_ascii_case(own))
        {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    if asked.method == "POST" {
        request.push_str(&format!("Content-Length: {}\r\n", asked.content.len()));
    }
    request.push_str("Via: 1.1 faulty_proxy\r\nConnection: close\r\n\r\n");
    let mut origin = Wire::of(TcpStream::connect(next_hop)?);
    origin.send(request.as_bytes())?;
    origin.send(&asked.content)?;
    origin.reply(&asked.method)
}
