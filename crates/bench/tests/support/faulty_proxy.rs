//! A small proxy that is wrong on command: real sockets, one thread a connection, responses held
//! whole.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use weir_wire::Version;

use super::exchange::{Asked, Reply, Wire};
use super::fault::Fault;

/// A proxy with a fault that the test chooses.
///
/// Requests in absolute-form go to the authority they name, those in origin-form to the origin
/// given to [`FaultyProxy::gateway`]. Every response is fetched anew, except where the [`Fault`] is
/// about stored ones.
#[derive(Debug)]
pub(crate) struct FaultyProxy {
    address: SocketAddr,
    mind: Arc<Mutex<Mind>>,
}

#[derive(Debug)]
struct Mind {
    lie: Fault,
    /// Honest responses before the lie begins.
    honest: u64,
    /// After one lie the truth again.
    once: bool,
    told: u64,
    asked: u64,
    stored: HashMap<String, Reply>,
    /// The target before, and its response.
    last: Option<(String, Reply)>,
    gateway_to: Option<SocketAddr>,
}

impl FaultyProxy {
    /// A forward proxy on a port of 127.0.0.1.
    pub(crate) fn forward(lie: Fault) -> Self {
        Self::start(lie, None)
    }

    /// A gateway in front of `origin`.
    pub(crate) fn gateway(origin: SocketAddr, lie: Fault) -> Self {
        Self::start(lie, Some(origin))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lies so from now on.
    pub(crate) fn tell(&self, lie: Fault) {
        self.tell_after(0, lie);
    }

    /// Lies so after that many more honest responses.
    pub(crate) fn tell_after(&self, honest: u64, lie: Fault) {
        let mut mind = self.mind.lock().expect("a sound mind");
        (mind.lie, mind.honest, mind.once) = (lie, honest, false);
    }

    /// Lies so once, after that many more honest responses.
    pub(crate) fn tell_once(&self, honest: u64, lie: Fault) {
        let mut mind = self.mind.lock().expect("a sound mind");
        (mind.lie, mind.honest, mind.once) = (lie, honest, true);
    }

    /// Responses so far that were not the origin's. A stored response that is still right is no
    /// lie, and one that has changed at the origin cannot be told from it here: [`Fault::Stale`]
    /// counts every stored response that is sent.
    pub(crate) fn told(&self) -> u64 {
        self.mind.lock().expect("a sound mind").told
    }

    /// Requests so far.
    pub(crate) fn asked(&self) -> u64 {
        self.mind.lock().expect("a sound mind").asked
    }

    fn start(lie: Fault, gateway_to: Option<SocketAddr>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("its address");
        let mind = Arc::new(Mutex::new(Mind {
            lie,
            honest: 0,
            once: false,
            told: 0,
            asked: 0,
            stored: HashMap::new(),
            last: None,
            gateway_to,
        }));
        let of_threads = Arc::clone(&mind);
        // ends with the test's process
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mind = Arc::clone(&of_threads);
                std::thread::spawn(move || serve(stream, &mind));
            }
        });
        Self { address, mind }
    }
}

/// Serves a connection until either side has enough; what went wrong shows at the client.
fn serve(stream: TcpStream, mind: &Mutex<Mind>) {
    let mut client = Wire::of(stream);
    while let Ok(Some(asked)) = client.request() {
        let keeps = asked.version == Version::Http11
            && !asked
                .field("connection")
                .is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let told = respond(&asked, mind);
        let Ok((bytes, ends)) = told else {
            let _ = client.send(b"HTTP/1.1 502 Nothing\r\nContent-Length: 0\r\n\r\n");
            return;
        };
        if client.send(&bytes).is_err() || ends || !keeps {
            return;
        }
    }
}

/// The bytes of a response, and whether the connection ends behind it.
fn respond(asked: &Asked, mind: &Mutex<Mind>) -> io::Result<(Vec<u8>, bool)> {
    let (lie, gateway_to) = {
        let mut mind = mind.lock().expect("a sound mind");
        mind.asked += 1;
        let lie = mind.next();
        (lie, mind.gateway_to)
    };
    let stored = {
        let mind = mind.lock().expect("a sound mind");
        match lie {
            Fault::Stale => mind.stored.get(&asked.target).cloned(),
            Fault::Swapped => mind
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
    let mut mind = mind.lock().expect("a sound mind");
    if !is_stored && asked.method == "GET" && reply.status == 200 {
        mind.stored
            .entry(asked.target.clone())
            .or_insert_with(|| reply.clone());
        mind.last = Some((asked.target.clone(), reply.clone()));
    }
    let told = lie.tell(reply, asked.method == "HEAD");
    let is_lie = match lie {
        Fault::Stale | Fault::Swapped => is_stored,
        _ => told.is_lie,
    };
    mind.told += u64::from(is_lie);
    if mind.once && lie != Fault::None && !is_lie {
        // it did not fit: the next one
        (mind.lie, mind.honest) = (lie, 0);
    }
    Ok((told.bytes, told.ends))
}

impl Mind {
    /// What the next response is.
    fn next(&mut self) -> Fault {
        if self.honest > 0 {
            self.honest -= 1;
            return Fault::None;
        }
        let lie = self.lie;
        if self.once {
            self.lie = Fault::None;
        }
        lie
    }
}

/// The response of the origin, whole.
fn fetch(asked: &Asked, gateway_to: Option<SocketAddr>) -> io::Result<Reply> {
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
