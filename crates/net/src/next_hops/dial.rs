//! Opening a connection: resolve, judge every address, try them one after the other with a head
//! start each; then the PROXY header and the TLS handshake, if there are.

use super::destination::{ConnectOutcome, Destination};
use super::failure::ConnectFailure;
use super::hop_key::{HopKey, proxy_header};
use super::link::count_set_up;
use super::rules::ConnectionRules;
use super::socket::{NextHopSocket, TlsConnection};
use crate::flow::{self, first_window};
use crate::resolver::ResolveError;
use crate::tls::client::{TlsFailure, UNTRUSTED, handshake};
use crate::tls::{TlsClient, Trust};
use crate::workers::Worker;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};
use weir_measure::{HopOutcome, Metric};
use weir_semantics::ProxyError;

/// Head start of one address before the next one is tried as well (RFC 8305 §5 recommends 250 ms).
const HEAD_START: Duration = Duration::from_millis(250);

/// Addresses tried for one connection.
const ADDRESSES_MAX: usize = 6;

/// A socket that has just been connected, with its handshake complete.
pub(crate) struct NewStream {
    pub(super) stream: NextHopSocket,
    /// The address that answered first.
    pub(super) address: SocketAddr,
    /// From SYN to SYN-ACK, microseconds.
    pub(super) setup_us: u64,
}

/// A socket that an address has accepted.
struct Connected {
    stream: TcpStream,
    address: SocketAddr,
    setup_us: u64,
}

/// Connects to `destination`, whose addresses are resolved and judged now.
///
/// # Errors
///
/// As for [`obtain`](super::obtain); [`ProxyError::ConnectionLimitReached`] if this process or the
/// machine is out of file descriptors.
pub(crate) async fn dial(
    worker: &Worker,
    rules: &ConnectionRules,
    destination: &Destination,
) -> Result<NewStream, ConnectFailure> {
    let tls = match &destination.hop.tls {
        Some(trust) => Some(client_of(rules, trust)?),
        None => None,
    };
    let addresses = allowed_addresses(worker, rules, destination).await?;
    let limit = rules.connect_limit;
    let until = Instant::now() + limit;
    let window = first_window(destination.read_ahead, worker.now());
    let window = rules.links.first_window(&destination.hop, window);
    let raced = timeout_at(until, race(&addresses, window)).await;
    let (outcome, result) = match raced {
        Ok(Ok(connected)) => (HopOutcome::Opened, Ok(connected)),
        Ok(Err(error)) => (outcome_of(&error), Err(refused(destination, &error))),
        Err(_) => (
            HopOutcome::Timeout,
            Err(ConnectFailure::new(
                ProxyError::ConnectionTimeout,
                format!(
                    "{} did not accept a connection within {} s",
                    destination.hop,
                    limit.as_secs_f32()
                ),
            )),
        ),
    };
    worker.counters().inc(Metric::NextHopConnections(outcome));
    match outcome {
        // it is well when its handshake is complete
        HopOutcome::Opened if tls.is_some() => {}
        HopOutcome::Opened => destination.report(worker.now(), ConnectOutcome::Connected, None),
        // a lack of descriptors says nothing about the next hop
        HopOutcome::Limit => {}
        _ => destination.report(worker.now(), ConnectOutcome::Failed, None),
    }
    let mut connected = result?;
    if let Some(version) = destination.hop.proxy_header {
        let header = proxy_header(version, destination.client_ends.as_deref().copied());
        tell(
            rules,
            &destination.hop,
            &mut connected.stream,
            &header,
            until,
        )
        .await?;
    }
    let stream = match tls {
        None => NextHopSocket::Clear(connected.stream),
        Some(client) => {
            let shaken = secure(rules, &destination.hop, client, connected.stream, until).await;
            let outcome = match &shaken {
                Ok(_) => Some(ConnectOutcome::Connected),
                // HTTP/1.1 was offered alone, as this request needs it: that the next hop does not
                // speak it says nothing of other requests
                Err(failure) if failure.refuses_protocols && !destination.hop.http2 => None,
                Err(_) => Some(ConnectOutcome::HandshakeFailed),
            };
            if let Some(outcome) = outcome {
                let why = shaken.as_ref().err().map(|failure| &*failure.text);
                destination.report(worker.now(), outcome, why);
            }
            if shaken.is_err() {
                let failed = Metric::NextHopConnections(HopOutcome::Tls);
                worker.counters().inc(failed);
            }
            shaken.map_err(|failure| {
                let text = format!("no TLS with {}: {}", destination.hop, failure.text);
                ConnectFailure::new(failure.error, text)
            })?
        }
    };
    Ok(NewStream {
        stream,
        address: connected.address,
        setup_us: connected.setup_us,
    })
}

/// Tells the next hop for whom the connection is.
async fn tell(
    rules: &ConnectionRules,
    hop: &HopKey,
    socket: &mut TcpStream,
    header: &[u8],
    until: Instant,
) -> Result<(), ConnectFailure> {
    let sent = timeout_at(until, socket.write_all(header)).await;
    if let Some(link) = rules.links.of(hop) {
        count_set_up(link, (0, header.len()));
    }
    match sent {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) | Err(_) => Err(ConnectFailure::new(
            ProxyError::ConnectionTerminated,
            format!("{hop} closed the connection before it was told for whom it is"),
        )),
    }
}

/// What connections with `trust` are opened with.
fn client_of<'r>(
    rules: &'r ConnectionRules,
    trust: &Trust,
) -> Result<&'r Arc<TlsClient>, ConnectFailure> {
    rules.tls.of(trust).ok_or_else(|| {
        ConnectFailure::new(
            ProxyError::ProxyInternalError,
            "no certificates of authorities were read for this next hop",
        )
    })
}

/// Has the TLS handshake with the next hop, until it is complete or `until`.
async fn secure(
    rules: &ConnectionRules,
    hop: &HopKey,
    client: &Arc<TlsClient>,
    socket: TcpStream,
    until: Instant,
) -> Result<NextHopSocket, TlsFailure> {
    let done = handshake(client, socket, (&hop.host, hop.http2), until).await;
    let (moved, result) = match done {
        Ok(stream) => {
            let client = Arc::clone(client);
            let socket = NextHopSocket::Tls(Box::new(TlsConnection { stream, client }));
            (socket.take_moved(), Ok(socket))
        }
        Err(mut failure) => {
            if failure.text.ends_with(UNTRUSTED) {
                failure.text.push_str(" (route[].tls.ca)");
            }
            if hop.proxy_header.is_some() && failure.error == ProxyError::TlsProtocolError {
                let other = ", or it expects no PROXY header (route[].send_proxy_protocol)";
                failure.text.push_str(other);
            }
            (failure.moved, Err(failure))
        }
    };
    if let Some(link) = rules.links.of(hop) {
        count_set_up(link, moved);
    }
    result
}

/// The addresses of a destination that may be connected to. They are resolved and judged now, and
/// connected to as they were judged.
async fn allowed_addresses(
    worker: &Worker,
    rules: &ConnectionRules,
    destination: &Destination,
) -> Result<Vec<SocketAddr>, ConnectFailure> {
    let hop = &destination.hop;
    let addresses = match hop.host.parse::<IpAddr>() {
        Ok(ip) => vec![ip],
        Err(_) => worker
            .network()
            .resolver()
            .resolve(&hop.host)
            .await
            .map_err(|error| unresolved(&hop.host, &error))?
            .to_vec(),
    };
    let mut denied = None;
    let mut allowed = Vec::new();
    for ip in addresses {
        let address = SocketAddr::new(ip, hop.port);
        match destination.check(worker.network(), rules, address) {
            Err(why) => denied = denied.or(Some(why)),
            Ok(()) => allowed.push(address),
        }
    }
    allowed.truncate(ADDRESSES_MAX);
    match denied {
        Some(denied) if allowed.is_empty() => Err(denied),
        _ => Ok(allowed),
    }
}

/// Tries the addresses in order; a later one starts when the earlier has failed or its head start
/// is over.
async fn race(addresses: &[SocketAddr], window: Option<u32>) -> io::Result<Connected> {
    let (first, rest) = addresses
        .split_first()
        .ok_or(io::ErrorKind::AddrNotAvailable)?;
    if rest.is_empty() {
        return attempt(*first, window).await;
    }
    let mut attempts = JoinSet::new();
    attempts.spawn_local(attempt(*first, window));
    let mut waiting = rest.iter();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    let mut next_start = Instant::now() + HEAD_START;
    loop {
        tokio::select! {
            ended = attempts.join_next() => match ended {
                Some(Ok(Ok(connected))) => return Ok(connected),
                Some(Ok(Err(error))) => failure = error,
                Some(Err(_)) => {}
                None if waiting.len() == 0 => return Err(failure),
                None => {}
            },
            () = sleep_until(next_start), if waiting.len() > 0 => {}
        }
        if let Some(address) = waiting.next() {
            attempts.spawn_local(attempt(*address, window));
            next_start = Instant::now() + HEAD_START;
        }
    }
}

/// Connects to one address, with an initial receive window of so many bytes; `None` leaves it to
/// the kernel.
async fn attempt(address: SocketAddr, window: Option<u32>) -> io::Result<Connected> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // an old kernel without the option sizes the window itself, which is better than no connection
    let bounded = window.is_some_and(|window| flow::before_connect(&socket, window).is_ok());
    let began = Instant::now();
    let stream = socket.connect(address).await?;
    let took = began.elapsed();
    if bounded {
        let _ = flow::after_connect(&stream);
    }
    stream.set_nodelay(true)?;
    Ok(Connected {
        stream,
        address,
        setup_us: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
    })
}

fn outcome_of(error: &io::Error) -> HopOutcome {
    match error.kind() {
        _ if is_our_lack(error) => HopOutcome::Limit,
        io::ErrorKind::ConnectionRefused => HopOutcome::Refused,
        io::ErrorKind::TimedOut => HopOutcome::Timeout,
        _ => HopOutcome::Failed,
    }
}

/// Whether this process, or the whole machine, is out of file descriptors.
fn is_our_lack(error: &io::Error) -> bool {
    use rustix::io::Errno;
    [Errno::MFILE, Errno::NFILE]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

fn refused(destination: &Destination, error: &io::Error) -> ConnectFailure {
    let kind = match error.kind() {
        _ if is_our_lack(error) => ProxyError::ConnectionLimitReached,
        io::ErrorKind::ConnectionRefused => ProxyError::ConnectionRefused,
        _ => ProxyError::DestinationUnavailable,
    };
    ConnectFailure::new(
        kind,
        format!("cannot connect to {}: {error}", destination.hop),
    )
}

fn unresolved(host: &str, error: &ResolveError) -> ConnectFailure {
    let kind = match error {
        ResolveError::Timeout | ResolveError::Overloaded => ProxyError::DnsTimeout,
        _ => ProxyError::DnsError,
    };
    ConnectFailure::new(kind, format!("cannot resolve `{host}`: {error}"))
}
