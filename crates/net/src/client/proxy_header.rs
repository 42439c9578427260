//! The header by which a balancer in front says whose connection it hands on (the PROXY protocol of
//! HAProxy, versions 1 and 2).
//!
//! It is read to its last byte and no further: what follows it is of the client.

use ppp::{HeaderResult, v1, v2};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

/// The most bytes of a header of version 1, with its CRLF (section 2.1).
const V1_BYTES_MAX: usize = 107;

/// The most bytes of a header of version 2 that are read: addresses take at most 216, and balancers
/// add some hundred about TLS.
const V2_BYTES_MAX: usize = 4096;

/// What both versions have at least, and tells which of them it is.
const FRONT_BYTES: usize = 12;

const V2_SIGNATURE: [u8; FRONT_BYTES] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Bytes of version 2 up to what its length counts.
const V2_FIXED_BYTES: usize = 16;

/// Why there is no header.
#[derive(Debug)]
pub enum ProxyHeaderError {
    /// The connection has ended.
    Disconnected,
    /// It is no header of version 1 or 2, or one that is longer than is read.
    Malformed,
}

impl From<io::Error> for ProxyHeaderError {
    fn from(_: io::Error) -> Self {
        Self::Disconnected
    }
}

/// Reads the header at the begin of a connection: the address and port of the client; `None` if
/// the header names none, as for a connection of the balancer's own (`LOCAL`, `UNKNOWN`).
///
/// # Errors
///
/// There is none: nothing that was read may be taken for a client's.
pub async fn read_proxy_header(
    stream: &mut TcpStream,
) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    let mut bytes = vec![0; FRONT_BYTES];
    stream.read_exact(&mut bytes).await?;
    if bytes == V2_SIGNATURE {
        read_v2(stream, &mut bytes).await?;
    } else if bytes.starts_with(b"PROXY ") {
        read_v1(stream, &mut bytes).await?;
    } else {
        return Err(ProxyHeaderError::Malformed);
    }
    client_of(&bytes)
}

/// The rest of a header of version 1, whose end is only found byte by byte.
async fn read_v1(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Result<(), ProxyHeaderError> {
    while !bytes.ends_with(b"\r\n") {
        if bytes.len() == V1_BYTES_MAX {
            return Err(ProxyHeaderError::Malformed);
        }
        bytes.push(stream.read_u8().await?);
    }
    Ok(())
}

/// The rest of a header of version 2.
async fn read_v2(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Result<(), ProxyHeaderError> {
    bytes.resize(V2_FIXED_BYTES, 0);
    stream.read_exact(&mut bytes[FRONT_BYTES..]).await?;
    let length = u16::from_be_bytes([bytes[V2_FIXED_BYTES - 2], bytes[V2_FIXED_BYTES - 1]]);
    let total = V2_FIXED_BYTES + usize::from(length);
    if total > V2_BYTES_MAX {
        return Err(ProxyHeaderError::Malformed);
    }
    bytes.resize(total, 0);
    stream.read_exact(&mut bytes[V2_FIXED_BYTES..]).await?;
    Ok(())
}

/// The client that a whole header names.
fn client_of(bytes: &[u8]) -> Result<Option<SocketAddr>, ProxyHeaderError> {
    let is_text = !bytes.starts_with(&V2_SIGNATURE);
    let named: Option<(IpAddr, u16)> = match HeaderResult::parse(bytes) {
        HeaderResult::V1(Ok(header)) => match header.addresses {
            v1::Addresses::Tcp4(it) => Some((it.source_address.into(), it.source_port)),
            v1::Addresses::Tcp6(it) => Some((it.source_address.into(), it.source_port)),
            v1::Addresses::Unknown => None,
        },
        HeaderResult::V2(Ok(header)) => match (header.command, header.protocol) {
            (v2::Command::Local, _) | (_, v2::Protocol::Unspecified) => None,
            (v2::Command::Proxy, v2::Protocol::Stream) => match header.addresses {
                v2::Addresses::IPv4(it) => Some((it.source_address.into(), it.source_port)),
                v2::Addresses::IPv6(it) => Some((it.source_address.into(), it.source_port)),
                v2::Addresses::Unix(_) | v2::Addresses::Unspecified => None,
            },
            // of packets, which this is not
            (v2::Command::Proxy, v2::Protocol::Datagram) => {
                return Err(ProxyHeaderError::Malformed);
            }
        },
        HeaderResult::V1(Err(_)) | HeaderResult::V2(Err(_)) => {
            return Err(ProxyHeaderError::Malformed);
        }
    };
    // the library takes it in front of a port, where only digits may be
    if named.is_some() && is_text && bytes.contains(&b'+') {
        return Err(ProxyHeaderError::Malformed);
    }
    Ok(named.map(SocketAddr::from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ppp::v2::{Builder, Command, Protocol, Version};
    use std::net::{Ipv4Addr, Ipv6Addr};
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;

    /// Reads a header from a connection on which `sent` arrives in pieces of this size; also what
    /// is left behind it.
    fn read(sent: &[u8], piece: usize) -> (Result<Option<SocketAddr>, ProxyHeaderError>, Vec<u8>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
                .await
                .expect("a port");
            let address = listener.local_addr().expect("an address");
            let client = async {
                let mut client = TcpStream::connect(address).await.expect("a connection");
                client.set_nodelay(true).expect("an option");
                for piece in sent.chunks(piece) {
                    // one that is refused may be closed before its end
                    if client.write_all(piece).await.is_err() {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
            };
            let server = async {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let header = read_proxy_header(&mut stream).await;
                let mut rest = Vec::new();
                if header.is_ok() {
                    stream.read_to_end(&mut rest).await.expect("the rest");
                }
                (header, rest)
            };
            let ((), read) = tokio::join!(client, server);
            read
        })
    }

    #[track_caller]
    fn check(header: &[u8], expected: Option<&str>) {
        let sent = [header, b"GET / HTTP/1.1\r\n"].concat();
        for piece in [1, 5, sent.len()] {
            let (found, rest) = read(&sent, piece);
            let found = found.expect("a header").map(|client| client.to_string());
            assert_eq!(found.as_deref(), expected, "{header:?}");
            assert_eq!(rest, b"GET / HTTP/1.1\r\n", "{header:?}");
        }
    }

    fn v2(protocol: Protocol, addresses: impl Into<ppp::v2::Addresses>) -> Vec<u8> {
        let version_command = Version::Two | Command::Proxy;
        let builder = Builder::with_addresses(version_command, protocol, addresses);
        // as a balancer says the name that the client has called it
        let builder = builder.write_tlv(ppp::v2::Type::Authority, b"www.example.com");
        builder.expect("a value").build().expect("a header")
    }

    #[test]
    fn client_is_the_one_that_the_header_names_and_the_rest_stays() {
        check(
            b"PROXY TCP4 192.0.2.7 192.0.2.1 51000 80\r\n",
            Some("192.0.2.7:51000"),
        );
        check(
            b"PROXY TCP6 2001:db8::7 2001:db8::1 51000 80\r\n",
            Some("[2001:db8::7]:51000"),
        );
        check(b"PROXY UNKNOWN\r\n", None);
        let of = (Ipv4Addr::new(192, 0, 2, 7), Ipv4Addr::new(192, 0, 2, 1));
        let of = ppp::v2::IPv4::new(of.0, of.1, 51000, 80);
        check(&v2(Protocol::Stream, of), Some("192.0.2.7:51000"));
        let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last);
        let of = ppp::v2::IPv6::new(address(7), address(1), 51000, 80);
        check(&v2(Protocol::Stream, of), Some("[2001:db8::7]:51000"));
        let local = [&V2_SIGNATURE[..], &[0x20, 0, 0, 0]].concat();
        check(&local, None);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let of = ppp::v2::IPv4::new([192, 0, 2, 7], [192, 0, 2, 1], 1, 2);
        let long = [&V2_SIGNATURE[..], &[0x21, 0x11, 0xff, 0xff]].concat();
        for sent in [
            &b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"[..],
            b"PROXY TCP4 192.0.2.300 192.0.2.1 51000 80\r\n",
            b"PROXY TCP4 192.0.2.7 192.0.2.1 51000\r\n",
            b"PROXY TCP4 192.0.2.7 192.0.2.1 +1 80\r\n",
            b"PROXY TCP4 192.0.2.7 192.0.2.1 51000 +80\r\n",
            &[b"PROXY UNKNOWN ".as_slice(), &[b'a'; 200]].concat(),
            &v2(Protocol::Datagram, of),
            &long,
            &[&V2_SIGNATURE[..], &[0x31, 0x11, 0, 0, b' ', b' ']].concat(),
        ] {
            let (found, _) = read(sent, sent.len());
            assert!(
                matches!(found, Err(ProxyHeaderError::Malformed)),
                "{found:?}: {sent:?}"
            );
        }
        for sent in [&b""[..], b"PROXY TCP4", b"PROXY TCP4 192.0.2.7 192.0.2.1"] {
            let (found, _) = read(sent, 1);
            assert!(
                matches!(found, Err(ProxyHeaderError::Disconnected)),
                "{found:?}"
            );
        }
    }
}
